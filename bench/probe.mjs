/**
 * The extension as Pi loads it, with a clock around everything Pi waits for: loading `index.js`, calling it, `session_start`.
 *
 * The times are written to the file `LCM_BENCH_PROBED`.
 */
import { writeFileSync } from "node:fs";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionAPI} ExtensionAPI */

/** @param {ExtensionAPI} pi */
export default async function probed(pi) {
  const began = performance.now();
  const { default: losslessContext } = await import("../index.js");
  const read = performance.now() - began;
  /** @type {any} */
  const watched = new Proxy(pi, {
    get(target, name) {
      const member = /** @type {any} */ (target)[name];
      if (typeof member !== "function") return member;
      return name === "on" ? on : member.bind(target);
    },
  });
  const on = (/** @type {any} */ event, /** @type {any} */ handler) => {
    if (event !== "session_start") return pi.on(event, handler);
    pi.on("session_start", async (what, ctx) => {
      const before = performance.now();
      await handler(what, ctx);
      const started = performance.now() - before;
      if (process.env.LCM_BENCH_PROBED) writeFileSync(process.env.LCM_BENCH_PROBED, JSON.stringify({ read, wired, started }));
    });
  };
  const before = performance.now();
  losslessContext(watched);
  const wired = performance.now() - before;
}
