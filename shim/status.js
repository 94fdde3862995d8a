/**
 * The footer: what is stored, and how far something is that takes its time.
 *
 * Pi draws its screen anew for every status it is given, so it is given one only when the words have changed.
 */

import { modeOf, quietly, uiOf, unwrap } from "./pi.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("../index.d.ts").Engine} Engine */
/** @typedef {import("./tree.js").Session} Session */
/** @typedef {(ctx: ExtensionContext, error: unknown) => void} Tell */

/** How often the footer tells how far something is. */
const PROGRESS_MS = 200;

/** In the TUI Pi draws its transcript anew after a compaction; what is said before that is wiped out with the old one. */
const REDRAWN_MS = 200;

/** What each line of the footer shows, by session: Pi clears it with the session. @type {WeakMap<Session, Map<string, string | undefined>>} */
const shown = new WeakMap();

/**
 * @param {ExtensionContext} ctx
 * @param {Session} session
 * @param {string} key
 * @param {string | undefined} text nothing takes the line away
 */
function show(ctx, session, key, text) {
  const lines = shown.get(session) ?? new Map();
  shown.set(session, lines);
  if (lines.get(key) === text) return;
  quietly(() => {
    uiOf(ctx).setStatus(key, text);
    lines.set(key, text);
  });
}

/**
 * @param {ExtensionContext} ctx
 * @param {Session} session
 * @param {Tell} tell
 */
export async function showStatus(ctx, session, tell) {
  // Counting takes its time in a long history, and turns may be short.
  session.stale = true;
  if (session.counting) return;
  session.counting = true;
  try {
    while (session.stale) {
      session.stale = false;
      await showCounts(ctx, session, tell);
    }
  } finally {
    session.counting = false;
  }
}

/** @type {typeof showStatus} */
async function showCounts(ctx, session, tell) {
  try {
    const { text, notice } = unwrap(await (await session.engine).status());
    if (notice) tell(ctx, notice);
    if (!session.compacting) show(ctx, session, "lcm", session.footer ? text : undefined);
  } catch {
    // Closed meanwhile, or the context went stale with its session: there is no footer to show it in.
  }
}

/**
 * Tells something where it stays to be seen behind a compaction.
 *
 * @param {ExtensionContext} ctx
 * @param {string} text
 * @param {"info" | "warning"} type
 */
export function notifyRedrawn(ctx, text, type) {
  const show = () => quietly(() => uiOf(ctx).notify(text, type));
  if (modeOf(ctx) === "tui") setTimeout(show, REDRAWN_MS);
  else show();
}

/**
 * The footer tells how far a compaction is.
 *
 * @param {ExtensionContext} ctx
 * @param {Session} session
 * @param {Engine} engine
 * @param {Tell} tell
 * @returns {() => void} to be called when it has ended
 */
export function showProgress(ctx, session, engine, tell) {
  if (!session.footer) return () => {};
  session.compacting = true;
  const stop = follow(() => engine.compactionProgress(), (text) => show(ctx, session, "lcm", text));
  return () => {
    stop();
    session.compacting = false;
    void showStatus(ctx, session, tell);
  };
}

/**
 * A line of its own tells how far an import is, footer or not: somebody waits for it.
 *
 * @param {ExtensionContext} ctx
 * @param {Session} session
 * @param {Engine} engine
 * @returns {() => void} to be called when it has ended
 */
export function showImport(ctx, session, engine) {
  const stop = follow(() => engine.importProgress(), (text) => show(ctx, session, "lcm-import", text));
  return () => {
    stop();
    show(ctx, session, "lcm-import", undefined);
  };
}

/**
 * Shows, again and again, what there is to be told. Before there is anything the line stays as it is.
 *
 * @param {() => string | null} look
 * @param {(text: string) => void} show
 * @returns {() => void} ends it
 */
function follow(look, show) {
  const timer = setInterval(() => {
    const text = look();
    if (text) show(text);
  }, PROGRESS_MS);
  return () => clearInterval(timer);
}
