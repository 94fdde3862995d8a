#!/usr/bin/env node
/** Starts `pi-lcm` for npm and npx. It is a CommonJS module, so that any Node can load it and report what it lacks. */
(async () => {
  const { emitWarning } = process;
  // In a source tree, Node warns about modules without a declared type; that is no concern of the shell's user.
  process.emitWarning = () => {};
  try {
    const { main } = await import("../shim/cli.js");
    process.emitWarning = emitWarning;
    await main();
  } catch (error) {
    const why = error instanceof SyntaxError ? `it needs Node 22.19 or newer, and this is ${process.version}` : String(error);
    process.stderr.write(`pi-lcm can't start: ${why}\n`);
    process.exitCode = 2;
  }
})();
