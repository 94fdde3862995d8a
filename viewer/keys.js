/** The keyboard: one table says what each key does, and `?` shows it. */
import { h } from "./dom.js";

/** @typedef {{ keys: string[], help: string, run: () => void }} Key */

/** The display names of keys. @type {Record<string, string>} */
const NAMES = { ArrowDown: "↓", ArrowUp: "↑", ArrowLeft: "←", ArrowRight: "→", Escape: "Esc", " ": "Space" };

/** What the pointer does on the map. */
const MOUSE = [
  ["click a summary", "its text, and what it was made from"],
  ["double click a summary", "zooms in on it; elsewhere, zooms out"],
  ["wheel, drag", "zoom and move the map"],
];

/** The filter's syntax. */
const NARROWING = ["role:user", "tool:bash", "is:failed", "is:private", "is:purged", "is:image"];

/**
 * Handles keys until the page is closed.
 *
 * @param {Key[]} table
 * @returns {() => void} shows or hides the help
 */
export function listen(table) {
  const rows = table.map(({ keys, help }) => h("li", null, h("span", null, ...keys.map((key) => h("kbd", null, NAMES[key] ?? key))), help));
  const close = h("button", { type: "button", className: "icon", "aria-label": "Close", onclick: () => dialog.close() }, "✕");
  const dialog = h(
    "dialog",
    { className: "help", "aria-label": "Keys" },
    h("header", null, h("h2", null, "Keys"), close),
    h("ul", null, ...rows),
    h("h3", null, "On the map"),
    h("ul", null, ...MOUSE.map(([what, help]) => h("li", null, h("span", null, what), help))),
    h("h3", null, "In the filter"),
    h("p", null, "All words must occur as typed, in upper or lower case, also inside longer words; ", h("code", null, '"two words"'), " is an exact phrase; ", ...NARROWING.flatMap((word) => [h("code", null, word), " "])),
  );
  dialog.addEventListener("click", (event) => event.target === dialog && dialog.close());
  document.body.append(dialog);
  const help = () => (dialog.open ? dialog.close() : dialog.showModal());
  const byKey = new Map(table.flatMap((entry) => entry.keys.map((key) => [key, entry.run])));
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const target = /** @type {HTMLElement} */ (event.target);
    // A list has keys of its own, until it is left.
    if (target.matches?.("select") && ["Escape", "Enter"].includes(event.key)) return target.blur();
    const isTyping = target.matches?.("input, select, textarea");
    const leaves = ["Escape", ...(target.matches?.("input") ? ["Enter", "ArrowDown", "ArrowUp"] : [])];
    if (isTyping && !leaves.includes(event.key)) return;
    if (dialog.open && event.key !== "?") return;
    if (event.key === "Enter" && target.matches?.("button, a, summary")) return;
    // There the browser scrolls.
    if (["ArrowDown", "ArrowUp", "Home", "End"].includes(event.key) && target.closest?.(".reading")) return;
    const run = byKey.get(event.key);
    if (!run) return;
    event.preventDefault();
    run();
  });
  return help;
}
