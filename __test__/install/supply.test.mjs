/**
 * The supply chain of a release: workflows use only fixed versions, no job has a right that it does not need, and the publishing job runs
 * no code of others.
 */
import assert from "node:assert/strict";
import { cpSync, existsSync, readFileSync, readdirSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { node22, root } from "../../scripts/paths.mjs";
import { collect } from "../../scripts/proc.mjs";
import { temporaryFolder } from "../support/project.mjs";

/** @typedef {{ uses?: string, run?: string, with?: Record<string, string> }} Step */
/** @typedef {{ "runs-on": string, needs?: string[], environment?: string, permissions?: Record<string, string>, steps: Step[] }} Job */

const read = (/** @type {string[]} */ ...names) => readFileSync(path.join(root, ...names), "utf8");
const folder = path.join(".github", "workflows");
/** @type {{ name: string, text: string, permissions: object, jobs: Record<string, Job> }[]} */
const workflows = readdirSync(path.join(root, folder)).map((name) => ({ ...parse(read(folder, name)), name, text: read(folder, name) }));
const jobs = workflows.flatMap(({ name, jobs }) => Object.entries(jobs).map(([job, its]) => ({ name: `${name} ${job}`, ...its })));
const setUp = parse(read(".github", "actions", "setup", "action.yml"));
/** @type {Step[]} */
const steps = [...jobs.flatMap(({ steps }) => steps), ...setUp.runs.steps];
const lines = steps.flatMap(({ run = "" }) => run.split("\n")).map((line) => line.trim());

/** The jobs with more rights than reading the repository, as `permission: jobs`. */
function rights() {
  const granted = jobs.flatMap(({ name, permissions = {} }) => Object.entries(permissions).map(([right, level]) => `${right} ${level}: ${name}`));
  return granted.filter((right) => !right.startsWith("contents read")).sort();
}

test("workflows use only fixed versions", () => {
  const used = steps.flatMap(({ uses }) => uses ?? []).filter((uses) => !uses.startsWith("./"));
  assert.ok(used.length >= 10, `${used.length} actions`);
  for (const uses of used) assert.match(uses, /@[0-9a-f]{40}$/);
  const versions = [setUp.inputs.node.default, setUp.inputs.rust.default, ...steps.flatMap((step) => step.with?.["node-version"] ?? [])];
  for (const version of versions) assert.match(version, /^\d+\.\d+\.\d+$|^\$\{\{ inputs\.node \}\}$/);
  assert.equal(setUp.inputs.node.default, JSON.parse(read("package.json")).devDependencies.node);
  const oldest = /^rust-version = "1\.(\d+)"/m.exec(read("Cargo.toml"))?.[1];
  assert.ok(Number(setUp.inputs.rust.default.split(".")[1]) >= Number(oldest), `Rust 1.${oldest} is the minimum`);
  for (const { name, "runs-on": runner } of jobs) assert.doesNotMatch(runner, /latest/, name);
});

test("every cargo call is locked, and no npm call runs install scripts", () => {
  const cargo = lines.filter((line) => /\bcargo (bench|build|check|clippy|install|run|rustc|test)\b/.test(line));
  assert.ok(cargo.length >= 3, `${cargo.length} calls`);
  for (const line of cargo) assert.match(line, / --locked\b/);
  for (const line of lines.filter((line) => /\b(cargo|go) install\b/.test(line))) assert.match(line, /@v?\d+\.\d+\.\d+$/);
  for (const line of lines.filter((line) => /\bnpm (ci|i|install)\b|\bnpx\b/.test(line))) assert.equal(line, "npm ci --ignore-scripts");
  const scripts = ["scripts", "bench"].flatMap((name) => readdirSync(path.join(root, name)).filter((file) => file.endsWith(".mjs")).map((file) => [name, file]));
  // Builds go through `cargoBuild`, which adds it.
  const calls = scripts.flatMap((names) => [...read(...names).matchAll(/\["(bench|build|clippy|rustc|test)", ("--quiet", )?"--(?!crate-type|lib)[^\]]*\]/g)].map(([call]) => ({ file: names.join("/"), call })));
  const direct = calls.filter(({ file }) => file !== "scripts/build.mjs");
  assert.ok(direct.length >= 4, `${direct.length} calls`);
  for (const { file, call } of direct) assert.match(call, /"--locked"/, file);
  assert.match(read("scripts", "build.mjs"), /const all = \[\.\.\.args, "--locked"/);
});

test("only one job has an identity, it runs only our script, and there are no secrets", () => {
  for (const { name, text, permissions } of workflows) {
    assert.deepEqual(permissions, { contents: "read" }, name);
    assert.doesNotMatch(text, /secrets\.|pull_request_target|NODE_AUTH_TOKEN/, name);
  }
  assert.deepEqual(rights(), ["contents write: release.yml notes", "id-token write: release.yml publish", "issues write: nightly.yml latest"]);
  for (const { uses, with: inputs } of steps) if (uses?.startsWith("actions/checkout@")) assert.equal(String(inputs?.["persist-credentials"]), "false");
  const publish = jobs.find(({ name }) => name === "release.yml publish");
  assert.deepEqual(publish?.steps.flatMap(({ run }) => run ?? []), ["npm run publish:all -- --provenance"]);
  assert.deepEqual(publish?.needs, ["test", "engine", "main", "sbom"]);
  assert.equal(publish?.environment, "npm");
});

test("our script for publishing runs without installed packages", async (t) => {
  const bare = temporaryFolder(t);
  for (const name of ["package.json", "scripts"]) cpSync(path.join(root, name), path.join(bare, name), { recursive: true });
  const { code, stderr } = await collect(node22, [path.join(bare, "scripts", "run.mjs"), "publish"], { cwd: bare });
  assert.equal(code, 1);
  assert.match(stderr, /^Nothing was published, since these are missing/);
});

test("each test that SECURITY.md names exists", () => {
  const named = [...read("SECURITY.md").matchAll(/\]\(((?:__test__|src)\/[^)#]+)\)/g)].map(([, file]) => file);
  assert.ok(named.length >= 10, `${named.length} files`);
  for (const file of named) assert.ok(existsSync(path.join(root, file)), file);
});
