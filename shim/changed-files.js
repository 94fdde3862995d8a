/**
 * Detects files that changed on disk while the session was closed: the engine checks them when a session is resumed, and the next prompt
 * tells the model once.
 */

import { ancestors, timeout, unwrap } from "./pi.js";

/** The message's `customType` in Pi. */
const TYPE = "lcm_changed";

export class ChangedFiles {
  #session;
  /** The result for the first prompt. @type {Promise<string | null> | null} */
  #found = null;

  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** Checks the session's files in the background. */
  check() {
    const { manager, handover } = this.#session;
    const leaf = manager.getLeafId();
    // A session that is continued in another folder spoke of that folder's files.
    if (!leaf || manager.getHeader()?.cwd !== manager.getCwd()) return;
    const check = async () => {
      await handover.caughtUp;
      return unwrap(await (await this.#session.engine).changedFiles(leaf));
    };
    this.#found = check().catch(() => null);
  }

  /** The message for the prompt that begins now, if any file changed and the model was not told before. */
  async message() {
    if (!this.#found) return undefined;
    // If it takes longer, a later prompt tells.
    const content = await Promise.race([this.#found, timeout()]);
    if (content === undefined) return undefined;
    this.#found = null;
    return content && content !== this.#lastTold() ? { customType: TYPE, content, display: true } : undefined;
  }

  #lastTold() {
    for (const entry of ancestors(this.#session.manager)) if (entry.type === "custom_message" && entry.customType === TYPE) return entry.content;
    return undefined;
  }
}
