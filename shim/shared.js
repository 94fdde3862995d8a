/** State that outlives a session. It is global because some versions of Pi evaluate the extension again for each session. */

/**
 * `closings`: stores of sessions that were left, which are writing their last and being closed. `reported`: what the user has heard of how
 * the extension is set up, which need not be said again at each `/new`. `answer`: what a command said that made Pi load its extensions
 * anew.
 *
 * @type {{ closings: Set<Promise<void>>, reported: Set<string>, answer?: string }}
 */
export const shared = (/** @type {any} */ (globalThis)[Symbol.for("pi-lossless-context")] ??= { closings: new Set(), reported: new Set() });
