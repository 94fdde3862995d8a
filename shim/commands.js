/**
 * `/lcm`: hands a line to the engine and shows what it answers, in whatever way this Pi talks with its user.
 *
 * The engine knows the sub-commands; here is only what needs Pi for it.
 */

import { compact, messageOf, modeOf, quietly, say, sessionFolders, unwrap, windowOf } from "./pi.js";
import { showImport, showStatus } from "./status.js";
import { ready } from "./tree.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionAPI} ExtensionAPI */
/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionCommandContext} ExtensionCommandContext */
/** @typedef {import("./tree.js").Session} Session */

/** A sub-command. @typedef {{ name: string, help: string, arguments: { value: string, help: string }[], long: boolean }} Spec */
/** What one answers. @typedef {{ text: string, answer: unknown, confirm?: { title: string, message: string, line: string } }} Answer */

/**
 * What the commands share with the rest of the extension.
 *
 * @typedef {object} Shared
 * @property {() => Session} current the session that is open, or throws
 * @property {import("./status.js").Tell} tell
 * @property {() => string | undefined} lastReport what the last compaction took
 */

/**
 * @param {ExtensionAPI} pi
 * @param {Spec[]} specs
 * @param {Shared} shared
 */
export function registerCommands(pi, specs, shared) {
  pi.registerCommand("lcm", {
    description: `Lossless history: ${specs.map(({ name }) => name).join(", ")}`,
    getArgumentCompletions: (prefix) => completions(specs, prefix),
    handler: async (line, ctx) => {
      try {
        await run(specs, shared, line.trim(), ctx);
      } catch (error) {
        say(ctx, messageOf(error), "error");
      }
    },
  });
}

/**
 * Without a command of that name Pi would take `/lcm …` for something to ask the model.
 *
 * @param {ExtensionAPI} pi
 * @param {string} reason
 * @param {"info" | "error"} type
 */
export function registerOff(pi, reason, type) {
  pi.registerCommand("lcm", { description: "Lossless history (off)", handler: async (_line, ctx) => say(ctx, reason, type) });
}

/**
 * The names that begin with what is typed, or behind a name its arguments.
 *
 * @param {Spec[]} specs
 * @param {string} prefix
 */
function completions(specs, prefix) {
  const [, before = "", word = ""] = /^(.*\s)?(\S*)$/s.exec(prefix.trimStart()) ?? [];
  const [name, ...given] = before.trim().split(/\s+/);
  const known = name === "help" ? named(specs) : (specs.find((spec) => spec.name === name)?.arguments ?? []);
  const choices = before ? known.filter(({ value }) => !given.includes(value)) : named(specs);
  // A list that is still open takes the Enter that should send the command.
  const open = choices.filter(({ value }) => value.startsWith(word) && value !== word);
  // Before anything of an argument is typed, the Enter is the user's too.
  if (open.length === 0 || (before && !word)) return null;
  return open.map(({ value, help }) => ({ value: before + value, label: value, description: help }));
}

/** @param {Spec[]} specs */
function named(specs) {
  return specs.map(({ name, help }) => ({ value: name, help }));
}

/**
 * @param {Spec[]} specs
 * @param {Shared} shared
 * @param {string} line
 * @param {ExtensionCommandContext} ctx
 */
async function run(specs, shared, line, ctx) {
  const [, name = "", rest = ""] = /^(\S*)\s*([^]*)$/.exec(line) ?? [];
  if (name === "compact" && !rest.startsWith("--")) return compactNow(shared, rest, ctx);
  // The TUI takes nothing else until a command has ended.
  const waits = modeOf(ctx) !== "tui" || !specs.find((spec) => spec.name === name)?.long;
  const done = answer(shared, line, ctx);
  if (waits) return done;
  done.catch((error) => say(ctx, messageOf(error), "error"));
}

/**
 * @param {Shared} shared
 * @param {string} focus
 * @param {ExtensionCommandContext} ctx
 */
async function compactNow({ lastReport }, focus, ctx) {
  await compact(ctx, focus);
  const report = lastReport();
  // Elsewhere the notification of `session_compact` has said so.
  if (modeOf(ctx) === "print" && report) say(ctx, report);
}

/**
 * @param {Shared} shared
 * @param {string} line
 * @param {ExtensionCommandContext} ctx
 * @returns {Promise<void>}
 */
async function answer(shared, line, ctx) {
  const session = shared.current();
  const engine = await ready(session);
  const request = {
    line,
    leafId: session.manager.getLeafId() ?? undefined,
    contextWindow: windowOf(ctx),
    folders: sessionFolders(session),
  };
  const shown = showImport(ctx, session, engine);
  /** @type {Answer} */
  const { text, confirm } = await engine.command(JSON.stringify(request)).then(unwrap).finally(shown);
  if (!confirm || !ctx.hasUI) {
    say(ctx, text);
  } else if (await ctx.ui.confirm(confirm.title, confirm.message)) {
    return answer(shared, confirm.line, ctx);
  }
  void showStatus(ctx, session, shared.tell);
}
