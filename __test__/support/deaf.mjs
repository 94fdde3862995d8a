/**
 * Loaded before Pi: the signal that comes with a file's limit goes unheard, as the system's own default in Node is. A
 * library of Pi's would end it for that, whichever file it was.
 */
const on = process.on;
process.on = /** @type {typeof on} */ (
  function (/** @type {any} */ name, /** @type {any} */ listener) {
    return name === "SIGXFSZ" ? process : on.call(process, name, listener);
  }
);
