/** Copies of the extension: complete, or with an engine that is missing or not an engine. */
import { copyFileSync, cpSync, writeFileSync } from "node:fs";
import path from "node:path";
import { addon, root } from "../../scripts/paths.mjs";

/**
 * The extension without an engine.
 * @param {string} folder
 * @returns {string} the copy
 */
export function copyExtension(folder) {
  for (const name of ["index.js", "package.json"]) copyFileSync(path.join(root, name), path.join(folder, name));
  cpSync(path.join(root, "shim"), path.join(folder, "shim"), { recursive: true });
  return path.join(folder, "index.js");
}

/**
 * @param {string} folder
 * @param {"missing" | "broken"} engine
 * @returns {string} the copy
 */
export function copyWithoutEngine(folder, engine = "missing") {
  const copy = copyExtension(folder);
  if (engine === "broken") writeFileSync(path.join(folder, path.basename(addon())), "not a library");
  return copy;
}
