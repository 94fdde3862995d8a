/** State that outlives a session. It is global because some versions of Pi evaluate the extension again for each session. */

/**
 * `closings`: stores of former sessions that are being closed. `reported`: reports on the extension's setup, which are not repeated at
 * each `/new`. `answer`: the answer of the command that made Pi reload its extensions.
 *
 * @type {{ closings: Set<Promise<void>>, reported: Set<string>, answer?: string }}
 */
export const shared = (/** @type {any} */ (globalThis)[Symbol.for("pi-lossless-context")] ??= { closings: new Set(), reported: new Set() });
