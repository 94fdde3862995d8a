/**
 * The footer: what is stored, and the progress of long operations.
 *
 * Pi redraws its screen for every status it gets, so it gets one only when the text has changed.
 */

import { unwrap } from "./pi.js";
import { quietly, uiOf } from "./ui.js";

/** @typedef {import("../index.d.ts").Engine} Engine */

/** How often the footer shows progress. */
const PROGRESS_MS = 200;

export class Footer {
  #session;
  /** What each line shows: Pi clears it with the session. @type {Map<string, string | undefined>} */
  #shown = new Map();
  #isCounting = false;
  /** Whether it has to be counted once more. */
  #isStale = false;
  #isCompacting = false;

  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /** Shows what is stored. */
  async update() {
    // Counting takes its time in a long history, and turns may be short.
    this.#isStale = true;
    if (this.#isCounting) return;
    this.#isCounting = true;
    while (this.#isStale) {
      this.#isStale = false;
      await this.#showCounts();
    }
    this.#isCounting = false;
  }

  async #showCounts() {
    try {
      const { text, notice } = unwrap(await (await this.#session.engine).status());
      if (notice) this.#session.report(notice);
      if (!this.#isCompacting) this.#show("lcm", this.#session.settings.status ? text : undefined);
    } catch {
      // The session has closed: there is no footer to show it in.
    }
  }

  /** Tells how far a compaction is. @param {Engine} engine @returns {() => void} to be called when it has ended */
  followCompaction(engine) {
    if (!this.#session.settings.status) return () => {};
    this.#isCompacting = true;
    const stop = this.#follow("lcm", () => engine.compactionProgress());
    return () => {
      stop();
      this.#isCompacting = false;
      void this.update();
    };
  }

  /**
   * An import shows its progress in a line of its own even without the footer, since the user waits for it.
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
   * Shows again and again what `look` returns. Before it returns a text, the line stays as it is.
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

  /** @param {string} key @param {string | undefined} text nothing takes the line away */
  #show(key, text) {
    if (this.#shown.get(key) === text) return;
    quietly(() => {
      uiOf(this.#session.ctx).setStatus(key, text);
      this.#shown.set(key, text);
    });
  }
}
