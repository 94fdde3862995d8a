/**
 * Preloaded into Pi: ignores the signal of a file's size limit, as Node does by default. One of Pi's libraries would end Pi for it,
 * whatever the file.
 */
const on = process.on;
process.on = /** @type {typeof on} */ (
  function (/** @type {any} */ name, /** @type {any} */ listener) {
    return name === "SIGXFSZ" ? process : on.call(process, name, listener);
  }
);
