/** Light, dark, or as the system has it; and the colours of the moment, for what is drawn and not laid out. */

const THEMES = /** @type {const} */ (["auto", "light", "dark"]);

/** Under which name the choice is kept, where the browser keeps anything for files. */
const KEPT = "lcm-viewer-theme";

/** What is to be drawn anew. @type {Set<() => void>} */
const listeners = new Set();

/** The choice of last time. */
export function startTheme() {
  let kept;
  try {
    kept = localStorage.getItem(KEPT);
  } catch {
    // Some browsers keep nothing for files: then it is as the system has it.
  }
  document.documentElement.dataset.theme = kept ?? "auto";
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);
}

/** @returns {string} the theme that is chosen */
export function theme() {
  return document.documentElement.dataset.theme ?? "auto";
}

/** The next one. */
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

/** A colour of the style sheet as it is now. @param {string} name without its `--` */
export function colour(name) {
  const probe = document.createElement("i");
  probe.style.color = `var(--${name})`;
  document.body.append(probe);
  const { color } = getComputedStyle(probe);
  probe.remove();
  return color;
}
