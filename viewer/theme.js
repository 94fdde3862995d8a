/** The theme (light, dark, or the system's), and its current colors for canvases. */

const THEMES = /** @type {const} */ (["auto", "light", "dark"]);

/** The key under which the choice is stored, if the browser stores anything for files. */
const KEPT = "lcm-viewer-theme";

/** Called when the theme changes. @type {Set<() => void>} */
const listeners = new Set();

/** Restores the last choice. */
export function startTheme() {
  let kept;
  try {
    kept = localStorage.getItem(KEPT);
  } catch {
    // Some browsers store nothing for files; then the system's theme is used.
  }
  document.documentElement.dataset.theme = kept ?? "auto";
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

/** @returns {string} the chosen theme */
export function theme() {
  return document.documentElement.dataset.theme ?? "auto";
}

/** Switches to the next theme. */
export function switchTheme() {
  const next = THEMES[(THEMES.indexOf(/** @type {any} */ (theme())) + 1) % THEMES.length];
  document.documentElement.dataset.theme = next;
  try {
    localStorage.setItem(KEPT, next);
  } catch {
    // As above.
  }
  changed();
}

/** @param {() => void} listener */
export function onTheme(listener) {
  listeners.add(listener);
}

function changed() {
  for (const listener of listeners) listener();
}

/** The current value of a color in the style sheet. @param {string} name without its `--` */
export function color(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
