/** Libraries in C that Pi loads before its own, so that the system behaves as a test wants. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import { root } from "../../scripts/paths.mjs";
import { temporaryFolder } from "./project.mjs";

/** Why there are none here. */
export const notPreloaded = process.platform === "linux" ? undefined : `the test's library is made for Linux, and this is ${process.platform}`;

/**
 * Compiles `support/NAME.c`. Returns the library, and the folder it is in.
 * @param {import("node:test").TestContext} t
 * @param {string} name
 */
export function preloaded(t, name) {
  const folder = temporaryFolder(t);
  const library = path.join(folder, `${name}.so`);
  const made = spawnSync("cc", ["-shared", "-fPIC", "-o", library, path.join(root, "__test__", "support", `${name}.c`), "-ldl"], { encoding: "utf8" });
  assert.equal(made.status, 0, made.error?.message ?? made.stderr);
  return { folder, env: { LD_PRELOAD: library } };
}
