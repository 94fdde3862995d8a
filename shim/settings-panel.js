/**
 * `/lcm settings` in the TUI: lists every setting with its meaning, value and source; changes are saved at once.
 *
 * The engine knows valid values and files: this panel composes a line of `/lcm settings` and shows the answer.
 */

import { fit, plain, wrap } from "./columns.js";
import { showPanel } from "./panel.js";
import { messageOf } from "./pi.js";
import { uiOf } from "./ui.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("@earendil-works/pi-tui").SettingItem} SettingItem */
/** @typedef {import("./panel.js").Screen} Screen */
/** @typedef {import("./panel.js").Tui} Tui */
/** @typedef {(line: string) => Promise<import("./commands.js").Answer>} Ask */

/** Columns for the names. */
const BESIDE_VALUES = 32;

/** A setting as the engine describes it. @typedef {{ name: string, help: string, takes: string, kind: string, default: unknown, value: unknown, source: string, variable: string }} Setting */

/** @param {ExtensionContext} ctx @param {Tui} tui @param {Ask} ask */
export async function settingsPanel(ctx, tui, ask) {
  const settings = await listed(ask);
  await showPanel(ctx, (screen) => new Settings(screen, tui, ask, settings));
}

/**
 * The same as a series of questions, for a Pi without TUI components.
 *
 * @param {ExtensionContext} ctx
 * @param {Ask} ask
 * @returns {Promise<string | undefined>} the outcome
 */
export async function settingsDialogs(ctx, ask) {
  const ui = uiOf(ctx);
  const settings = await listed(ask);
  const lines = settings.map((setting) => `${setting.name} = ${shown(setting)}`);
  const chosen = await ui.select("Settings of pi-lossless-context", lines);
  const setting = settings[lines.indexOf(chosen ?? "")];
  if (!setting) return undefined;
  const value = await ui.input(`${setting.name} takes ${setting.takes}`, written(setting.value));
  if (value === undefined) return undefined;
  const scope = await ui.select("Where to save it", ["--global", "--project"]);
  return scope && (await ask(`settings ${setting.name}=${value} ${scope}`)).text;
}

/** @param {Ask} ask @returns {Promise<Setting[]>} */
async function listed(ask) {
  return /** @type {any} */ ((await ask("settings")).answer).settings;
}

/** A value as the user would type it. @param {unknown} value */
function written(value) {
  if (Array.isArray(value)) return value.join(", ");
  return value && typeof value === "object" ? JSON.stringify(value) : String(value);
}

/** @param {Setting} setting @param {number} [width] */
function shown({ value, source }, width = Infinity) {
  return `${fit(written(value) || "none", Math.max(1, width - source.length - 3))} (${source})`;
}

class Settings {
  #screen;
  #tui;
  #ask;
  #list;
  /** @type {Map<SettingItem, Setting>} */
  #items;
  #scope = "--global";
  #note = "";
  #failed = false;

  /** @param {Screen} screen @param {Tui} tui @param {Ask} ask @param {Setting[]} settings */
  constructor(screen, tui, ask, settings) {
    const { theme } = screen;
    this.#screen = screen;
    this.#tui = tui;
    this.#ask = ask;
    this.#items = new Map(settings.map((setting) => [this.#item(setting), setting]));
    const dim = (/** @type {string} */ text) => theme.fg("dim", text);
    const colors = {
      label: (/** @type {string} */ text, /** @type {boolean} */ selected) => (selected ? theme.fg("accent", text) : text),
      value: (/** @type {string} */ text, /** @type {boolean} */ selected) => theme.fg(selected ? "accent" : "muted", text),
      description: dim,
      cursor: theme.fg("accent", "> "),
      hint: dim,
    };
    const rows = Math.max(3, screen.rows() - 8);
    const change = (/** @type {string} */ name, /** @type {string} */ value) => void this.#save(name, value);
    this.#list = new tui.SettingsList([...this.#items.keys()], rows, colors, change, () => screen.close(), { enableSearch: true });
  }

  invalidate() {
    this.#list.invalidate();
  }

  /** @param {number} width */
  render(width) {
    const { theme } = this.#screen;
    const where = this.#scope === "--global" ? "global settings, for all projects" : "this project's .pi/settings.json";
    // The end of a long value may be cut off, but not its source.
    for (const [item, setting] of this.#items) item.currentValue = shown(setting, width - BESIDE_VALUES);
    const list = this.#list.render(Math.max(40, width)).map((line) => this.#tui.truncateToWidth(line, width));
    return [
      theme.fg("accent", theme.bold(fit("Settings of pi-lossless-context", width))),
      theme.fg("muted", fit(`Saved to: ${where} (tab: the other)`, width)),
      "",
      ...list,
      ...(this.#note ? wrap(this.#note, width).map((line) => theme.fg(this.#failed ? "error" : "success", line)) : []),
    ];
  }

  /** @param {string} data */
  handleInput(data) {
    if (this.#tui.matchesKey(data, "tab")) this.#scope = this.#scope === "--global" ? "--project" : "--global";
    else this.#list.handleInput(data);
    this.#screen.draw();
  }

  /** @param {Setting} setting @returns {SettingItem} */
  #item(setting) {
    const { name, help, takes, kind, value, source, variable } = setting;
    // On a narrow screen the list has no room for a long value.
    const description = plain(`Now: ${written(value) || "none"} (${source}). ${help} Takes ${takes}. Default: ${written(setting.default) || "none"}. Environment: ${variable}.`);
    /** @type {SettingItem} */
    const item = { id: name, label: name, currentValue: "", description };
    return kind === "switch" ? { ...item, values: [String(!value)] } : { ...item, submenu: (_current, done) => this.#submenu(setting, done) };
  }

  /** @param {Setting} setting @param {() => void} done */
  #submenu(setting, done) {
    this.#note = "";
    const save = async (/** @type {string} */ text) => {
      const failure = await this.#save(setting.name, text);
      // The value's own panel shows the failure.
      if (failure) this.#note = "";
      return failure;
    };
    return new Value(this.#screen, this.#tui, setting, save, done);
  }

  /**
   * @param {string} name
   * @param {string} value an empty one removes the setting
   * @returns {Promise<string | undefined>} why it was not saved
   */
  async #save(name, value) {
    /** @type {string | undefined} */
    let failure;
    try {
      const line = value.trim() ? `settings ${name}=${value} ${this.#scope}` : `settings ${name} --reset ${this.#scope}`;
      this.#note = (await this.#ask(line)).text;
    } catch (error) {
      failure = messageOf(error);
      this.#note = failure;
    }
    this.#failed = failure !== undefined;
    // Show the effective values, saved or not.
    for (const setting of await listed(this.#ask).catch(() => [])) {
      const item = [...this.#items.keys()].find(({ id }) => id === setting.name);
      if (item) this.#items.set(Object.assign(item, this.#item(setting)), setting);
    }
    this.#screen.draw();
    return failure;
  }
}

/** A panel to type one value. */
class Value {
  #screen;
  #setting;
  #input;
  #save;
  #done;
  #note = "";

  /** @param {Screen} screen @param {Tui} tui @param {Setting} setting @param {(text: string) => Promise<string | undefined>} save @param {() => void} done */
  constructor(screen, tui, setting, save, done) {
    this.#screen = screen;
    this.#setting = setting;
    this.#save = save;
    this.#done = done;
    this.#input = new tui.Input();
    this.#input.setValue(plain(written(setting.value)));
    // Move the cursor to the end of the value.
    this.#input.handleInput("\u0005");
    this.#input.focused = true;
  }

  invalidate() {
    this.#input.invalidate();
  }

  /** @param {number} width */
  render(width) {
    const { theme } = this.#screen;
    const { name, help, takes } = this.#setting;
    return [
      theme.fg("accent", fit(name, width)),
      ...wrap(help, width).map((line) => theme.fg("dim", line)),
      ...wrap(`Takes ${takes}. Leave it empty to reset it.`, width).map((line) => theme.fg("dim", line)),
      "",
      ...this.#input.render(width),
      ...(this.#note ? wrap(this.#note, width).map((line) => theme.fg("error", line)) : []),
      "",
      theme.fg("dim", fit("enter: save · esc: back", width)),
    ];
  }

  /** @param {string} data */
  handleInput(data) {
    if (this.#screen.is(data, "cancel")) return this.#done();
    if (this.#screen.is(data, "confirm")) return void this.#confirm();
    this.#note = "";
    this.#input.handleInput(data);
  }

  async #confirm() {
    const failure = await this.#save(this.#input.getValue());
    if (failure === undefined) this.#done();
    else this.#note = failure;
    this.#screen.draw();
  }
}
