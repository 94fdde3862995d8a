/** Preloaded into Pi: each SIGUSR2 advances its clock by ten minutes, as if the user had been away. */

const AWAY_MS = 10 * 60_000;
const RealDate = Date;
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
process.on("SIGUSR2", () => (moved += AWAY_MS));
