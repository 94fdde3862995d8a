/**
 * Builds the addon and copies it to where `index.js` loads it.
 *
 * cargo's JSON messages name the library's path, so a custom target folder works.
 */
import { copyFileSync, existsSync, mkdirSync, renameSync } from "node:fs";
import path from "node:path";
import { addon, root } from "./paths.mjs";
import { PACKAGE } from "./platforms.mjs";
import { collect } from "./proc.mjs";
import { Failure } from "./setup.mjs";

const typeFolder = path.join(root, "target", "type-def");

/** The types that napi's macros wrote in the build of the current addon; `index.d.ts` is checked against them. */
export const typeDefinitions = path.join(root, "target", "type-def.jsonl");

/** The environment for every cargo run: a difference in this variable would recompile the crate. */
export const cargoEnvironment = () => ({ ...process.env, NAPI_TYPE_DEF_TMP_FOLDER: typeFolder });

/** Has what `npm test` compiles linted as it is compiled: `cargo clippy` would check all dependencies once more, for a minute of two cores. */
export const linting = () => ({ ...cargoEnvironment(), RUSTC_WORKSPACE_WRAPPER: "clippy-driver", CLIPPY_ARGS: "-Dwarnings" });

/** Without a target that tests need, cargo would resolve other features, and compile everything that depends on them twice. */
const FAST = ["build", "--profile", "fast", "--lib", "--bench", "bare_loop"];

/**
 * The builds of the addon: for tests, which compile often and run little; for a working tree; and as shipped, for benchmarks.
 * @type {Record<"tests" | "tree" | "shipped", { args: string[], env?: () => NodeJS.ProcessEnv }>}
 */
const BUILDS = {
  tests: { args: FAST, env: linting },
  tree: { args: FAST, env: () => ({ ...cargoEnvironment(), CARGO_PROFILE_FAST_OPT_LEVEL: "2" }) },
  // With the Rust library as well it would be linked without LTO.
  shipped: { args: ["rustc", "--crate-type", "cdylib", "--profile", "dist", "--lib"] },
};

/** A build that takes longer than this shows its output, where the user wants something else. */
export const PATIENCE_MS = 1500;

/**
 * @param {object} options
 * @param {number} options.revealAfterMs how long a build may stay silent
 * @param {keyof typeof BUILDS} [options.kind]
 * @returns {Promise<string>} the addon
 */
export async function buildAddon({ revealAfterMs, kind = "tree" }) {
  const { args, env = cargoEnvironment } = BUILDS[kind];
  const { library, fresh } = await cargoBuild(args, { revealAfterMs, title: "Building the addon …", env: env() });
  keepTypeDefinitions(fresh);
  return place(library);
}

/**
 * @param {string[]} args cargo's: how to build the library
 * @param {object} [how]
 * @param {string} [how.title]
 * @param {number} [how.revealAfterMs]
 * @param {string} [how.program] instead of cargo
 * @param {NodeJS.ProcessEnv} [how.env]
 * @returns {Promise<{ library: string, fresh: boolean }>}
 */
export async function cargoBuild(args, { title, revealAfterMs = 0, program = "cargo", env = cargoEnvironment() } = {}) {
  mkdirSync(typeFolder, { recursive: true });
  const all = [...args, "--locked", "--message-format=json-render-diagnostics"];
  const { code, stdout, stderr } = await collect(program, all, { cwd: root, env, revealAfterMs, title });
  if (code !== 0) {
    process.stderr.write(stderr);
    throw new Failure(`${path.basename(program)} ${args[0]} failed with exit code ${code}: its output is above.`);
  }
  return artifactIn(stdout);
}

/**
 * @param {string} messages cargo's JSON messages, one a line
 * @returns {{ library: string, fresh: boolean }} the shared library among them, and whether it was there before
 */
function artifactIn(messages) {
  for (const line of messages.split("\n").filter(Boolean)) {
    const message = JSON.parse(line);
    if (message.reason !== "compiler-artifact" || message.target.name !== PACKAGE.replaceAll("-", "_")) continue;
    const library = message.filenames.find((/** @type {string} */ file) => /\.(so|dylib|dll)$/.test(file));
    if (library) return { library, fresh: message.fresh };
  }
  throw new Failure("cargo build made no shared library: is `cdylib` still among the crate types?");
}

/**
 * Saves the type definitions of this build at once: the macros write them whenever the crate is compiled, also by clippy and the tests,
 * where several compilers write to one file.
 * @param {boolean} fresh whether this build compiled nothing
 */
function keepTypeDefinitions(fresh) {
  const written = path.join(typeFolder, PACKAGE);
  if (!existsSync(written)) return;
  if (fresh && existsSync(typeDefinitions)) return;
  copyFileSync(written, typeDefinitions);
}

/**
 * Copies to a temporary name first: a running Pi keeps the old addon's file.
 * @param {string} library
 */
function place(library) {
  const target = addon();
  const temporary = `${target}.tmp-${process.pid}`;
  copyFileSync(library, temporary);
  renameSync(temporary, target);
  return target;
}
