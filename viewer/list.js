/**
 * A list of any length. Only visible rows are in the document. All rows have the same height.
 */
import { h } from "./dom.js";

/** The number of rows to draw above and below the visible ones. */
const BEYOND = 8;

/** @template T */
export class List {
  /** @type {T[]} */
  #rows = [];
  /** Rows in the document, by place. @type {Map<number, HTMLElement>} */
  #drawn = new Map();
  #selected = -1;
  #waiting = false;

  /**
   * @param {object} options
   * @param {string} options.label
   * @param {number} options.height of a row, px
   * @param {(row: T, place: number) => HTMLElement} options.draw
   * @param {(row: T) => void} options.select when a row is clicked
   * @param {(from: number, to: number) => void} [options.seen] when the visible rows change
   */
  constructor({ label, height, draw, select, seen }) {
    this.height = height;
    this.draw = draw;
    this.seen = seen;
    this.space = h("div", { className: "space", role: "presentation" });
    this.element = h("div", { className: "list", role: "listbox", tabIndex: 0, "aria-label": label, onscroll: () => this.refresh(), onclick: (/** @type {MouseEvent} */ event) => {
      const row = /** @type {HTMLElement} */ (event.target).closest("[data-place]");
      const place = Number(row?.getAttribute("data-place") ?? -1);
      if (place >= 0) select(this.#rows[place]);
    } }, this.space);
    new ResizeObserver(() => this.redraw()).observe(this.element);
  }

  get rows() {
    return this.#rows;
  }

  /** @param {T[]} rows */
  set rows(rows) {
    this.#rows = rows;
    this.#selected = -1;
    this.space.style.height = `${rows.length * this.height}px`;
    this.redraw();
  }

  /** The places of the first and the last row that are visible as a whole. */
  get visible() {
    const { scrollTop, clientHeight } = this.element;
    return [Math.ceil(scrollTop / this.height), Math.min(this.#rows.length, Math.floor((scrollTop + clientHeight) / this.height)) - 1];
  }

  get selected() {
    return this.#selected;
  }

  /** Selects a row, or none with -1, and scrolls to it. @param {number} place @param {boolean} [toSight] */
  select(place, toSight = true) {
    this.#drawn.get(this.#selected)?.setAttribute("aria-selected", "false");
    this.#selected = place;
    if (place >= 0 && toSight) this.show(place);
    this.#fill();
    this.#drawn.get(place)?.setAttribute("aria-selected", "true");
  }

  /** @param {number} place */
  show(place) {
    const [top, room] = [place * this.height, this.element.clientHeight];
    const at = this.element.scrollTop;
    if (top >= at && top + this.height <= at + room) return;
    const isNear = top > at - room && top < at + 2 * room;
    this.element.scrollTop = !isNear ? top - room / 3 : top < at ? top : top + this.height - room;
  }

  /** Redraws all visible rows. */
  redraw() {
    for (const row of this.#drawn.values()) row.remove();
    this.#drawn.clear();
    this.#fill();
  }

  /** Draws newly visible rows, once per frame. */
  refresh() {
    if (this.#waiting) return;
    this.#waiting = true;
    requestAnimationFrame(() => {
      this.#waiting = false;
      this.#fill();
    });
  }

  #fill() {
    const { scrollTop, clientHeight } = this.element;
    const first = Math.floor(scrollTop / this.height);
    const last = Math.ceil((scrollTop + clientHeight) / this.height);
    const [from, to] = [Math.max(0, first - BEYOND), Math.min(this.#rows.length, last + BEYOND)];
    for (const [place, row] of this.#drawn) {
      if (place >= from && place < to) continue;
      row.remove();
      this.#drawn.delete(place);
    }
    for (let place = from; place < to; place++) {
      if (!this.#drawn.has(place)) this.space.append(this.#row(place));
    }
    if (this.#selected >= from && this.#selected < to) this.element.setAttribute("aria-activedescendant", `row-${this.#selected}`);
    else this.element.removeAttribute("aria-activedescendant");
    this.seen?.(Math.min(first, this.#rows.length), Math.min(last, this.#rows.length));
  }

  /** @param {number} place */
  #row(place) {
    const row = this.draw(this.#rows[place], place);
    row.id = `row-${place}`;
    row.style.top = `${place * this.height}px`;
    row.dataset.place = String(place);
    row.setAttribute("role", "option");
    row.setAttribute("aria-setsize", String(this.#rows.length));
    row.setAttribute("aria-posinset", String(place + 1));
    row.setAttribute("aria-selected", String(place === this.#selected));
    this.#drawn.set(place, row);
    return row;
  }
}
