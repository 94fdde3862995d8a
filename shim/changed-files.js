/**
 * Files that changed on disk while the session was closed: the engine looks when a session is resumed, and the next prompt tells
 * the model, once.
 */

import { ancestors, timeout, unwrap } from "./pi.js";

/** What Pi calls the message. */
const TYPE = "lcm_changed";
/** How long a prompt waits for the engine's look at the files, in ms; after that a later prompt tells. */
const PATIENCE_MS = 2_000;

export class ChangedFiles {
  #session;
  /** What the first prompt is to tell. @type {Promise<string | null> | null} */
  #found = null;

  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** Looks at the files that the session has seen, in the background. */
  check() {
    const { manager, sync } = this.#session;
    const leaf = manager.getLeafId();
    if (!leaf) return;
    const check = async () => {
      await sync.caughtUp;
      return unwrap(await (await this.#session.engine).changedFiles(leaf));
    };
    this.#found = check().catch(() => null);
  }

  /** The message for the prompt that begins now, if any file changed and the model was not told the same before. */
  async message() {
    const content = await Promise.race([this.#found, timeout(PATIENCE_MS)]);
    if (content === undefined) return undefined;
    this.#found = null;
    return content && content !== this.#lastTold() ? { customType: TYPE, content, display: true } : undefined;
  }

  #lastTold() {
    for (const entry of ancestors(this.#session.manager)) if (entry.type === "custom_message" && entry.customType === TYPE) return entry.content;
    return undefined;
  }
}
