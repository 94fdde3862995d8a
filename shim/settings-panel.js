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
/** Lines of the panel besides the settings: two of the title, the search, the position, the description with a note, the keys. */
const BESIDE_LIST = 12;
/** Lines of the description and the note together: what goes beyond the screen is cut off, and the keys come last. */
const ABOUT = 4;

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

/** The first lines of a text. @param {string} text @param {number} width @param {number} most */
function beginning(text, width, most) {
  const lines = wrap(text, width);
  return lines.length > most ? [...lines.slice(0, most - 1), `${fit(lines[most - 1], width - 1).trimEnd()}…`].join("\n") : text;
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
    // A value's own panel saves it.
    this.#list = new tui.SettingsList([...this.#items.keys()], screen.rows(BESIDE_LIST), colors, () => {}, () => screen.close(), { enableSearch: true });
  }

  invalidate() {
    this.#list.invalidate();
  }

  /** @param {number} width */
  render(width) {
    const { theme } = this.#screen;
    const [here, other] = this.#scope === "--global" ? ["all projects", "this project"] : ["this project", "all projects"];
    const note = this.#note ? wrap(this.#note, width) : [];
    const listWidth = Math.max(40, width);
    for (const [item, setting] of this.#items) {
      // The end of a long value may be cut off, but not its source.
      item.currentValue = shown(setting, width - BESIDE_VALUES);
      // The value's own panel has all of it.
      item.description = beginning(plain(setting.help), listWidth - 4, Math.max(1, ABOUT - note.length));
    }
    const list = this.#list.render(listWidth).map((line) => this.#tui.truncateToWidth(line, width));
    return [
      theme.fg("accent", theme.bold(fit("Settings of pi-lossless-context", width))),
      theme.fg("muted", fit(`A change applies to ${here} · tab: to ${other}`, width)),
      ...list,
      ...note.map((line) => theme.fg(this.#failed ? "error" : "success", line)),
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
    const { name } = setting;
    return { id: name, label: name, currentValue: "", submenu: (_current, done) => this.#submenu(setting, done) };
  }

  /** @param {Setting} setting @param {() => void} done */
  #submenu(setting, done) {
    this.#note = "";
    const save = async (/** @type {string} */ text) => {
      const isOwn = setting.source === "default" || `--${setting.source}` === this.#scope;
      const isSame = text.trim() ? text === written(setting.value) : setting.source === "default";
      if (isOwn && isSame) return undefined;
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

/** The values to choose from; undefined if the value is typed. @param {Setting} setting */
function choicesOf({ kind, takes }) {
  if (kind === "switch") return ["true", "false"];
  return kind === "word" ? takes.replaceAll('"', "").split(" or ") : undefined;
}

/** A panel to choose or type one value. */
class Value {
  #screen;
  #setting;
  /** @type {{ render(width: number): string[], handleInput(data: string): void, invalidate(): void }} */
  #field;
  #save;
  #done;
  #note = "";

  /** @param {Screen} screen @param {Tui} tui @param {Setting} setting @param {(text: string) => Promise<string | undefined>} save @param {() => void} done */
  constructor(screen, tui, setting, save, done) {
    this.#screen = screen;
    this.#setting = setting;
    this.#save = save;
    this.#done = done;
    const choices = choicesOf(setting);
    this.#field = choices ? this.#choice(tui, choices) : this.#input(tui);
  }

  /** @param {Tui} tui @param {string[]} choices */
  #choice(tui, choices) {
    const { theme } = this.#screen;
    const fallback = written(this.#setting.default);
    const items = [...choices.map((value) => ({ value, label: value })), { value: "", label: `reset: ${fallback}` }];
    const accent = (/** @type {string} */ text) => theme.fg("accent", text);
    const list = new tui.SelectList(items, items.length, { selectedPrefix: accent, selectedText: accent, description: accent, scrollInfo: accent, noMatch: accent });
    list.setSelectedIndex(choices.indexOf(written(this.#setting.value)));
    list.onSelect = ({ value }) => void this.#confirm(value);
    list.onCancel = this.#done;
    return list;
  }

  /** @param {Tui} tui */
  #input(tui) {
    const input = new tui.Input();
    input.setValue(plain(written(this.#setting.value)));
    // Move the cursor to the end of the value.
    input.handleInput("\u0005");
    input.focused = true;
    input.onSubmit = (value) => void this.#confirm(value);
    input.onEscape = this.#done;
    return input;
  }

  invalidate() {
    this.#field.invalidate();
  }

  /** @param {number} width */
  render(width) {
    const { theme } = this.#screen;
    const { name, help, takes, source, variable } = this.#setting;
    const about = [help, `Takes ${takes}. Now: ${written(this.#setting.value) || "none"} (${source}). Default: ${written(this.#setting.default) || "none"}. Environment: ${variable}.`];
    return [
      theme.fg("accent", fit(name, width)),
      ...about.flatMap((text) => wrap(text, width)).map((line) => theme.fg("dim", line)),
      "",
      ...this.#field.render(width),
      ...(this.#note ? wrap(this.#note, width).map((line) => theme.fg("error", line)) : []),
      "",
      theme.fg("dim", fit(`enter: save${choicesOf(this.#setting) ? "" : " · empty: reset"} · esc: back`, width)),
    ];
  }

  /** @param {string} data */
  handleInput(data) {
    this.#note = "";
    this.#field.handleInput(data);
  }

  /** @param {string} value */
  async #confirm(value) {
    const failure = await this.#save(value);
    if (failure === undefined) this.#done();
    else this.#note = failure;
    this.#screen.draw();
  }
}
