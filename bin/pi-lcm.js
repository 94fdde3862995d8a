#!/usr/bin/env node
/**
 * `pi-lcm`, as npm and npx start it: a module of the older kind, so that any Node reads it and can say what it lacks.
 */
(async () => {
  const { emitWarning } = process;
  // In a source tree Node remarks that modules don't name their kind; in a shell nobody need hear of that.
  process.emitWarning = () => {};
  try {
    const { main } = await import("../shim/cli.js");
    process.emitWarning = emitWarning;
    await main();
  } catch (error) {
    const why = error instanceof SyntaxError ? `it needs Node 20.19 or newer, and this is ${process.version}` : String(error);
    process.stderr.write(`pi-lcm can't start: ${why}\n`);
    process.exitCode = 2;
  }
})();
