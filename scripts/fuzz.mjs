/**
 * `npm run fuzz -- TARGET [SECONDS]`: lets libFuzzer look for inputs on which a target of `src/fuzzing.rs` breaks a promise.
 *
 * It needs no nightly compiler: what guides libFuzzer are passes of LLVM that stable Rust has too. Beside the corpus in `fuzz/corpus`
 * it keeps one of its own in `target/fuzz`, with what it found interesting; an input that fails stands there too, to be put into
 * the corpus with the repair, where `npm test` runs it.
 */
import { mkdirSync, readdirSync } from "node:fs";
import path from "node:path";
import { root } from "./paths.mjs";
import { collect, show } from "./proc.mjs";
import { Failure, needCargo } from "./setup.mjs";

const SECONDS = 300;
/** No input is longer, in bytes, and none may take longer, in seconds. */
const LIMITS = ["-max_len=4096", "-timeout=20", "-rss_limit_mb=4096"];

/** What counts the edges that an input takes, and the values that it is compared with. */
const COVERAGE = ["level=4", "inline-8bit-counters", "pc-table", "trace-compares"].map((option) => `-Cllvm-args=-sanitizer-coverage-${option}`);

/** @param {string[]} args a target, and for how many seconds */
export async function fuzz([target = "", seconds = String(SECONDS)]) {
  const targets = readdirSync(path.join(root, "fuzz", "corpus"));
  if (!targets.includes(target)) throw new Failure(`npm run fuzz needs a target, such as \`npm run fuzz -- sessions 60\`: ${targets.join(", ")}.`);
  if (!/^\d+$/.test(seconds)) throw new Failure(`npm run fuzz takes a number of seconds, not \`${seconds}\`.`);
  await needCargo();
  const program = await build();
  const found = path.join(root, "target", "fuzz", target);
  mkdirSync(found, { recursive: true });
  const limits = [...LIMITS, `-max_total_time=${seconds}`, "-print_final_stats=1", `-artifact_prefix=${found}-`];
  return show(program, [found, path.join(root, "fuzz", "corpus", target), ...limits], { env: { ...process.env, FUZZ_TARGET: target } });
}

/** @returns {Promise<string>} the program */
async function build() {
  const { stdout } = await collect("rustc", ["-vV"]);
  const host = /^host: (.+)$/m.exec(stdout)?.[1] ?? "";
  const folder = path.join(root, "target", "fuzz", "build");
  // With a target named, the flags are not those of build scripts and macros, which libFuzzer is no part of.
  const args = ["build", "--locked", "--release", "--manifest-path", path.join(root, "fuzz", "Cargo.toml"), "--target-dir", folder, "--target", host];
  const env = { ...process.env, RUSTFLAGS: ["--cfg", "fuzzing", "-Cpasses=sancov-module", ...COVERAGE].join(" ") };
  const code = await show("cargo", args, { cwd: root, env });
  if (code !== 0) throw new Failure(`cargo build failed with exit code ${code}: its own words stand above.`);
  return path.join(folder, host, "release", "fuzz");
}
