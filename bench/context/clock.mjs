/** Preloaded into Pi: each SIGUSR2 advances its clock by a step, and calls what was due meanwhile, as if the user had been away. */

const STEP_MS = 90_000;
const RealDate = Date;
const { setTimeout: start, clearTimeout: stop } = globalThis;
/** Timers that no real session of the benchmark would reach. @type {Map<unknown, { at: number, call: () => void }>} */
const waiting = new Map();
let moved = 0;

globalThis.Date = /** @type {DateConstructor} */ (
  class extends RealDate {
    /** @param {any[]} parts */
    constructor(...parts) {
      if (parts.length === 0) super(RealDate.now() + moved);
      else super(.../** @type {[any]} */ (parts));
    }

    static now() {
      return RealDate.now() + moved;
    }
  }
);
globalThis.setTimeout = /** @type {typeof setTimeout} */ (
  /** @param {(...args: any[]) => void} call @param {number} [ms] @param {any[]} args */
  (call, ms = 0, ...args) => {
    const timer = start(call, ms, ...args);
    if (ms >= STEP_MS) waiting.set(timer, { at: Date.now() + ms, call: () => call(...args) });
    return timer;
  }
);
globalThis.clearTimeout = (timer) => {
  waiting.delete(timer);
  stop(timer);
};
process.on("SIGUSR2", () => {
  moved += STEP_MS;
  for (const [timer, { at, call }] of waiting) {
    if (at > Date.now()) continue;
    clearTimeout(/** @type {any} */ (timer));
    call();
  }
});
