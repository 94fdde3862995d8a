/**
 * Files that changed on disk while the session was closed: the engine looks when a session is resumed, and the next prompt tells
 * the model, once.
 */

import { setTimeout as pause } from "node:timers/promises";
import { unwrap } from "./pi.js";

/** @typedef {import("./tree.js").Session} Session */

/** What Pi calls the message. */
const TYPE = "lcm_changed";
/** How long a prompt waits for the engine's look at the files, in ms; after that a later prompt tells. */
const PATIENCE_MS = 2_000;

/**
 * Looks at the files that the session has seen, in the background.
 *
 * @param {Session} session that was just opened
 */
export function lookAtFiles(session) {
  const leaf = session.manager.getLeafId();
  if (!leaf) return;
  const look = async () => {
    await session.caughtUp;
    return unwrap(await (await session.engine).changedFiles(leaf));
  };
  session.changed = look().catch(() => null);
}

/**
 * Returns the message for the prompt that begins now, if any file changed and the model was not told the same before.
 *
 * @param {Session} session
 */
export async function changedFiles(session) {
  const content = await Promise.race([session.changed, pause(PATIENCE_MS, undefined, { ref: false })]);
  if (content === undefined) return undefined;
  session.changed = null;
  if (!content || content === toldLast(session)) return undefined;
  return { customType: TYPE, content, display: true };
}

/** What the model was told last. @param {Session} session */
function toldLast({ manager }) {
  for (let id = manager.getLeafId(); id; ) {
    const entry = manager.getEntry(id);
    if (entry?.type === "custom_message" && entry.customType === TYPE) return entry.content;
    id = entry?.parentId ?? null;
  }
  return undefined;
}
