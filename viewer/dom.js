/**
 * Creates elements, and formats numbers and times. Text only becomes text nodes: no string of a session is ever parsed as markup.
 */
import { legible } from "./words.js";

/** What an element can contain. @typedef {Node | string | number | null | undefined | false} Child */

/**
 * Creates an element. Properties are set as such, `on…` are listeners, `data-…`, `aria-…` and `role` are attributes. Strings are made
 * legible, as children and as properties; for a string that must stay unchanged, pass a text node.
 *
 * @template {keyof HTMLElementTagNameMap} T
 * @param {T} tag
 * @param {Record<string, any> | null} [properties]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElementTagNameMap[T]}
 */
export function h(tag, properties, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name.includes("-") || name === "role") element.setAttribute(name, value === true ? "" : String(value));
    else /** @type {any} */ (element)[name] = typeof value === "string" ? legible(value) : value;
  }
  element.append(...children.flat().filter(isShown).map((child) => (child instanceof Node ? child : legible(String(child)))));
  return element;
}

/** @param {Child} child @returns {child is Node | string | number} */
function isShown(child) {
  return child !== null && child !== undefined && child !== false;
}

/** A button that looks like a link. @param {string} words @param {() => void} onclick */
export const link = (words, onclick) => h("button", { type: "button", className: "link", onclick }, words);

/** Less prominent words. @param {...Child} words */
export const quiet = (...words) => h("span", { className: "quiet" }, ...words);

const numbers = new Intl.NumberFormat("en");
const compact = new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 });

/** `12,345`. @param {number} n */
export const number = (n) => numbers.format(n);

/** `12.3K`. @param {number} n */
export const short = (n) => compact.format(n);

/** `1 message`, `2 messages`. @param {number} n @param {string} noun */
export const count = (n, noun) => `${number(n)} ${n === 1 ? noun : noun.endsWith("y") ? `${noun.slice(0, -1)}ies` : noun.endsWith("ch") ? `${noun}es` : `${noun}s`}`;

/** `$0.0123`: only significant digits. @param {number} amount */
export function dollars(amount) {
  if (amount === 0) return "$0";
  return `$${amount.toFixed(amount >= 0.1 ? 2 : amount >= 0.01 ? 3 : 5)}`;
}

/** Writes times in the reader's time zone; empty for an unknown one. @param {Intl.DateTimeFormatOptions} parts @returns {(ms: number) => string} */
function written(parts) {
  const format = new Intl.DateTimeFormat("en", parts);
  return (ms) => (isTime(ms) ? format.format(ms) : "");
}

/** `2 Nov`. */
export const date = written({ day: "numeric", month: "short" });
/** `Mon, 2 Nov 2026`. */
export const day = written({ weekday: "short", day: "numeric", month: "short", year: "numeric" });
export const time = written({ hour: "2-digit", minute: "2-digit", second: "2-digit", hourCycle: "h23" });
export const minute = written({ hour: "2-digit", minute: "2-digit", hourCycle: "h23" });

/** @param {number} ms */
function isTime(ms) {
  return ms > 0 && ms < 8.64e15;
}

/** `Mon, 2 Nov 2026 09:12 – 10:40`. @param {number} from @param {number} to */
export function span(from, to) {
  if (!isTime(from) || !isTime(to)) return "";
  return `${day(from)}, ${minute(from)} – ${day(from) === day(to) ? "" : `${day(to)}, `}${minute(to)}`;
}
