/** Messages and questions to the user, in each of Pi's modes. */

import fs from "node:fs";
import tty from "node:tty";
import { legible, legibleJson, plain } from "./columns.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */

const STDOUT = 1;

/** Pause before writing to stdout again if its reader is slow, in ms. */
const FULL_PIPE_MS = 5;

/** In the TUI, Pi redraws its transcript after a compaction or a reload, which erases earlier messages. */
const REDRAWN_MS = 200;

/** The TUI shows such a message in place of the last one. Those of one moment, in ms, are shown together. */
const MOMENT_MS = 2_000;
let moment = { ends: 0, texts: /** @type {string[]} */ ([]) };

/** Whether a user is there to read and answer. @param {ExtensionContext} ctx */
export function isAttended(ctx) {
  try {
    return ["tui", "rpc"].includes(ctx.mode);
  } catch {
    // The session is gone.
    return false;
  }
}

/** Shows something, unless the session is gone. @param {ExtensionContext} ctx @param {string} text @param {"info" | "warning" | "error"} type */
export function notify(ctx, text, type) {
  quietly(() => uiOf(ctx).notify(ctx.mode === "tui" && type === "info" ? together(text) : text, type));
}

/** @param {string} text */
function together(text) {
  const texts = Date.now() < moment.ends ? moment.texts : [];
  moment = { ends: Date.now() + MOMENT_MS, texts: texts.includes(text) ? texts : [...texts, text] };
  return moment.texts.join("\n\n");
}

/** The same, but shown after Pi has redrawn its transcript. @type {typeof notify} */
export function notifyRedrawn(ctx, text, type) {
  if (ctx.mode === "tui") setTimeout(() => notify(ctx, text, type), REDRAWN_MS);
  else notify(ctx, text, type);
}

/**
 * Shows a command's answer: on stdout in print mode, as an event on stdout in json mode, otherwise through Pi's UI.
 *
 * @param {ExtensionContext} ctx
 * @param {string} text
 * @param {"info" | "error"} [type]
 * @param {unknown} [answer] the same as data
 */
export function say(ctx, text, type = "info", answer = undefined) {
  quietly(() => {
    const { mode } = ctx;
    // Output that does not go to a terminal stays byte for byte.
    if (mode === "print") write(`${tty.isatty(STDOUT) ? legible(text) : text}\n`);
    else if (mode === "json") write(`${legibleJson(JSON.stringify({ type: "lcm", level: type, text, answer }))}\n`);
    else notify(ctx, text, type);
  });
}

/**
 * Pi's UI. Texts for it may contain untrusted parts, such as file names, so all of them are made legible here.
 *
 * @param {ExtensionContext} ctx
 */
export function uiOf(ctx) {
  const { ui } = ctx;
  const shown = ctx.mode === "tui" ? plain : legible;
  return {
    /** @param {string} text @param {"info" | "warning" | "error"} type */
    notify: (text, type) => ui.notify(shown(text), type),
    /** Shows texts in colors. @param {string[]} texts @param {(text: string, at: number) => string} paint */
    show: (texts, paint) => ui.notify(texts.map((text, at) => paint(shown(text), at)).join("\n\n"), "info"),
    /** Types into the prompt. @param {string} text */
    type: (text) => ui.pasteToEditor(shown(text)),
    /** @param {string} title @param {string} message */
    confirm: (title, message) => ui.confirm(shown(title), shown(message)),
    /** @param {string} title @param {string[]} options @returns {Promise<string | undefined>} one of the options */
    select: async (title, options) => {
      const offered = options.map(shown);
      const chosen = await ui.select(shown(title), offered);
      return options[offered.indexOf(chosen ?? "")];
    },
    /** @param {string} title @param {string} placeholder */
    input: (title, placeholder) => ui.input(shown(title), shown(placeholder)),
    /** @param {string} key @param {string | undefined} text */
    setStatus: (key, text) => ui.setStatus(key, text && shown(text)),
  };
}

/**
 * Writes to stdout. In print mode Pi redirects `process.stdout` to stderr; the file descriptor is still stdout. Its reader may be slow.
 *
 * @param {string} text
 */
function write(text) {
  let rest = Buffer.from(text);
  while (rest.length > 0) {
    try {
      rest = rest.subarray(fs.writeSync(STDOUT, rest));
    } catch (error) {
      if (/** @type {NodeJS.ErrnoException} */ (error).code !== "EAGAIN") throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, FULL_PIPE_MS);
    }
  }
}

/** @param {() => void} action that may find its context stale */
export function quietly(action) {
  try {
    action();
  } catch {
    // The session is gone, and its screen too.
  }
}
