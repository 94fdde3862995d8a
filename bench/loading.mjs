/**
 * How long it takes a fresh process to read `index.js` and to load the engine, printed as JSON.
 */
const began = performance.now();
const { loadEngine } = await import("../index.js");
const read = performance.now();
loadEngine();
process.stdout.write(JSON.stringify({ module: read - began, engine: performance.now() - read }));
