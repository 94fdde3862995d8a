/**
 * `npm run fuzz -- TARGET [SECONDS]`: lets libFuzzer look for inputs on which a target of `src/fuzzing.rs` fails.
 *
 * It needs no nightly compiler: libFuzzer is guided by LLVM passes that stable Rust has too. Besides the corpus in `fuzz/corpus` it keeps
 * another in `target/fuzz` with interesting inputs. A failing input is there too: add it to the corpus with the fix, so that `npm test`
 * runs it.
 */
import { mkdirSync, readdirSync } from "node:fs";
import path from "node:path";
import { root } from "./paths.mjs";
import { collect, show } from "./proc.mjs";
import { Failure, needCargo } from "./setup.mjs";

const SECONDS = 300;
/** Limits of an input: length in bytes, time in seconds, memory in MB. */
const LIMITS = ["-max_len=4096", "-timeout=20", "-rss_limit_mb=4096"];

/** Counts the edges that an input takes, and the values that it is compared with. */
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
  // With an explicit target, the flags do not apply to build scripts and macros, which libFuzzer does not link.
  const args = ["build", "--locked", "--release", "--manifest-path", path.join(root, "fuzz", "Cargo.toml"), "--target-dir", folder, "--target", host];
  const env = { ...process.env, RUSTFLAGS: ["--cfg", "fuzzing", "-Cpasses=sancov-module", ...COVERAGE].join(" ") };
  const code = await show("cargo", args, { cwd: root, env });
  if (code !== 0) throw new Failure(`cargo build failed with exit code ${code}: its output is above.`);
  return path.join(folder, host, "release", "fuzz");
}
