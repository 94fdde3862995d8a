/**
 * The footer: the size of the history, and the progress of long operations.
 *
 * Pi redraws its screen for every status, so it gets one only when the text changes.
 */

import { unwrap } from "./pi.js";
import { quietly, uiOf } from "./ui.js";

/** @typedef {import("../index.d.ts").Engine} Engine */

/** Interval between updates of the progress, in ms. */
const PROGRESS_MS = 200;
/** Least interval between two counts within a run, in ms. */
const COUNT_MS = 1000;

export class Footer {
  #session;
  /** The text of each line: Pi clears it with the session. @type {Map<string, string | undefined>} */
  #shown = new Map();
  /** @type {Promise<void> | undefined} */
  #counting;
  /** When the last count began. */
  #countedAt = -Infinity;
  /** Whether to count once more. */
  #isStale = false;
  #isCompacting = false;

  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** Shows the size of the history. Resolves once everything handed over before is stored or has failed, and is counted. */
  update() {
    this.#isStale = true;
    return (this.#counting ??= this.#count());
  }

  /** The same within a run, whose turns may be short: not each is counted. */
  updateSoon() {
    if (performance.now() > this.#countedAt + COUNT_MS) void this.update();
  }

  async #count() {
    while (this.#isStale) {
      this.#isStale = false;
      this.#countedAt = performance.now();
      await this.#showCounts();
    }
    // At once: an update that comes from now on counts by itself.
    this.#counting = undefined;
  }

  async #showCounts() {
    try {
      const engine = await this.#session.engine;
      const { text, notice, reopen } = unwrap(await engine.status());
      if (notice) this.#session.report(notice);
      if (reopen) return void this.#session.renew(engine);
      if (!this.#isCompacting) this.#show("lcm", this.#session.settings.status ? text : undefined);
    } catch {
      // The session has closed: there is no footer to show it in.
    }
  }

  /**
   * Shows the progress of a compaction, or that the agent waits for its summaries.
   *
   * @param {() => string | null} look
   * @returns {() => void} to be called when it has ended
   */
  followCompaction(look) {
    if (!this.#session.settings.status) return () => {};
    this.#isCompacting = true;
    const stop = this.#follow("lcm", look);
    return () => {
      stop();
      this.#isCompacting = false;
      void this.update();
    };
  }

  /**
   * An import shows its progress in a separate line even without the footer, since the user waits for it.
   *
   * @param {Engine} engine
   * @returns {() => void} to be called when it has ended
   */
  followImport(engine) {
    const stop = this.#follow("lcm-import", () => engine.importProgress());
    return () => {
      stop();
      this.#show("lcm-import", undefined);
    };
  }

  /**
   * Shows the result of `look` repeatedly. Until it returns a text, the line stays unchanged.
   *
   * @param {string} key
   * @param {() => string | null} look
   */
  #follow(key, look) {
    const timer = setInterval(() => {
      const text = look();
      if (text) this.#show(key, text);
    }, PROGRESS_MS);
    return () => clearInterval(timer);
  }

  /** @param {string} key @param {string | undefined} text undefined removes the line */
  #show(key, text) {
    if (this.#shown.get(key) === text) return;
    quietly(() => {
      uiOf(this.#session.ctx).setStatus(key, text);
      this.#shown.set(key, text);
    });
  }
}
