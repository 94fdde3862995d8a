/**
 * Lists which suite proves what: the tests of `npm test` and `npm run test:all`, without running them, and checks `docs/tests.md` against
 * them.
 *
 * `node scripts/list-tests.mjs` prints each behavior with its hosts; `--write` writes the page. A test calls `page()`.
 */
import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { allHosts } from "./hosts.mjs";
import { node22, root } from "./paths.mjs";

/**
 * A behavior and its hosts in each suite; a mark instead of a name if it only runs on the main one.
 * @typedef {{ file: string, behavior: string, quick: string[], all: string[] }} Proof
 */

const own = fileURLToPath(import.meta.url);
const collector = path.join(root, "scripts", "collect-tests.mjs");
const target = path.join(root, "docs", "tests.md");

/** Marks a test that names no host. */
const ONCE = "once";

/**
 * Every behavior that a test file proves. If `npm test` skips a test for another reason than `npm run test:all`, it counts for the latter
 * only; if the reason is the same, it is the machine's.
 * @returns {Proof[]}
 */
export function proofs() {
  /** @type {Map<string, Proof>} */
  const found = new Map();
  /** Why `npm run test:all` skips a test. @type {Map<string, unknown>} */
  const reasons = new Map();
  for (const suite of /** @type {const} */ (["all", "quick"])) {
    const env = { ...process.env, TEST_SUITE: suite, TEST_HOSTS: "" };
    /** @type {({ file: string } & import("./listed-test.mjs").Listed)[]} */
    const lists = JSON.parse(execFileSync(node22, ["--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--disable-warning=ExperimentalWarning", collector], { env, encoding: "utf8", maxBuffer: 2 ** 26 }));
    for (const { file, path: names, skip } of lists) {
      const title = names.join(" › ");
      if (suite === "all") reasons.set(`${file}: ${title}`, skip);
      else if (skip && skip !== reasons.get(`${file}: ${title}`)) continue;
      const { behavior, host } = parsed(title);
      const key = `${file}: ${behavior}`;
      const proof = found.get(key) ?? { file, behavior, quick: [], all: [] };
      proof[suite].push(host);
      found.set(key, proof);
    }
  }
  return [...found.values()];
}

/** A test's title without its host, and the host. @param {string} title */
function parsed(title) {
  // The npm is part of a test's host, not of its behavior.
  title = title.replace(/, npm [\d.]+/, "");
  const host = allHosts.find(({ version }) => title.includes(version));
  if (!host) return { behavior: title, host: ONCE };
  const behavior = title.replaceAll(host.name, "*").replaceAll(`Pi ${host.version}`, "*").replaceAll(host.version, "*");
  return { behavior, host: host.name };
}

/** The expected content of docs/tests.md. @param {Proof[]} all */
export function page(all) {
  const files = [...new Set(all.map(({ file }) => file))];
  const rows = files.map((file) => {
    const here = all.filter((proof) => proof.file === file);
    return `| [${file.replace("__test__/", "").replace(".test.mjs", "")}](../${file}) | ${ideaOf(path.join(root, file))} | ${here.length} | ${hostsOf(here)} |`;
  });
  const left = all.filter(({ quick }) => quick.length === 0).map(({ file, behavior }) => `- ${file}: ${behavior}\n`);
  const leftOut = left.length === 0 ? "`npm test` leaves out no test." : `Only in \`npm run test:all\`:\n\n${left.join("")}`;
  const rust = rustTests().map(({ folder, count }) => `| ${folder} | ${count} |`);
  return readFileSync(path.join(root, "scripts", "tests.md"), "utf8")
    .replace("{{javascript}}", rows.join("\n"))
    .replace("{{left}}", leftOut)
    .replace("{{rust}}", rust.join("\n"));
}

/** The hosts in `npm test`. @param {Proof[]} here */
function hostsOf(here) {
  const named = new Set(here.flatMap(({ quick }) => quick));
  return allHosts.filter(({ name }) => named.has(name)).map(({ name }) => name.replace("Pi ", "")).join(", ") || "-";
}

/** The first sentence of a file's opening comment, or its beginning. @param {string} file */
function ideaOf(file) {
  const [, comment] = /^\/\*\*([^]*?)\*\//.exec(readFileSync(file, "utf8")) ?? [];
  const text = (comment ?? "").replace(/^\s*\* ?/gm, "").replace(/\s+/g, " ").trim();
  return (/^.*?(?=[.:;]( |$))/.exec(text)?.[0] ?? text).replaceAll("|", "\\|");
}

/** The number of Rust tests in each folder of src. */
function rustTests() {
  const folders = readdirSync(path.join(root, "src"), { withFileTypes: true }).filter((entry) => entry.isDirectory()).map(({ name }) => name);
  return folders.map((folder) => {
    const files = readdirSync(path.join(root, "src", folder), { recursive: true, encoding: "utf8" }).filter((name) => name.endsWith(".rs"));
    const count = files.reduce((sum, name) => sum + (readFileSync(path.join(root, "src", folder, name), "utf8").match(/^\s*#\[(tokio::)?test/gm)?.length ?? 0), 0);
    return { folder, count };
  }).filter(({ count }) => count > 0);
}

if (process.argv[1] === own) {
  if (process.argv.includes("--write")) writeFileSync(target, page(proofs()));
  else for (const { file, behavior, quick, all } of proofs()) process.stdout.write(`${file}: ${behavior}\n    npm test: ${quick.join("; ") || "-"}\n    npm run test:all: ${all.join("; ")}\n`);
}
