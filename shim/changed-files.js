/**
 * Detects files that changed on disk while the session was closed: the engine looks at them when a session is resumed, which makes the
 * second look short, and again at the next prompt, which tells the model once.
 */

import { ancestors, timeout, unwrap } from "./pi.js";

/** The message's `customType` in Pi. */
const TYPE = "lcm_changed";

export class ChangedFiles {
  #session;
  /** Whether the next prompt tells. */
  #isDue = false;
  /** The result for that prompt. @type {Promise<string | null> | null} */
  #found = null;

  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** Looks at the session's files in the background. */
  check() {
    const { manager } = this.#session;
    // A session that is continued in another folder spoke of that folder's files.
    this.#isDue = Boolean(manager.getLeafId()) && manager.getHeader()?.cwd === manager.getCwd();
    if (this.#isDue) void this.#look();
  }

  /** What to tell of the files as they are now. @returns {Promise<string | null>} */
  async #look() {
    const { manager, handover, engine } = this.#session;
    try {
      await handover.caughtUp;
      const leaf = manager.getLeafId();
      return leaf && unwrap(await (await engine).changedFiles(leaf));
    } catch {
      return null;
    }
  }

  /** The message for the prompt that begins now, if any file changed and the model was not told before. */
  async message() {
    if (!this.#isDue) return undefined;
    this.#found ??= this.#look();
    // If it takes longer, a later prompt tells.
    const content = await Promise.race([this.#found, timeout()]);
    if (content === undefined) return undefined;
    this.#isDue = false;
    this.#found = null;
    return content && content !== this.#lastTold() ? { customType: TYPE, content, display: true } : undefined;
  }

  #lastTold() {
    for (const entry of ancestors(this.#session.manager)) if (entry.type === "custom_message" && entry.customType === TYPE) return entry.content;
    return undefined;
  }
}
