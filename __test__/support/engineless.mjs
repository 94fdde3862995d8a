/** A copy of the extension whose engine is missing, or is a file that is no engine. */
import { copyFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { addon, root } from "../../scripts/paths.mjs";

/**
 * @param {string} folder
 * @param {"missing" | "broken"} engine
 * @returns {string} the copy
 */
export function copyWithoutEngine(folder, engine = "missing") {
  for (const name of ["index.js", "package.json"]) copyFileSync(path.join(root, name), path.join(folder, name));
  if (engine === "broken") writeFileSync(path.join(folder, path.basename(addon())), "not a library");
  return path.join(folder, "index.js");
}
