/**
 * `npm run rehearse -- [JOB …]`: runs `.github/workflows/release.yml` as far as this machine can, each job in a clone of HEAD.
 *
 * Every `run:` step runs as written. Substitutes replace what only GitHub has, and the table at the end names them: folders for artifacts,
 * `try-engine.mjs` for containers, a registry on loopback for npm's, with a token in place of GitHub's identity. Publishing runs until it
 * has failed in each way that it should survive.
 */
import { cpSync, existsSync, mkdtempSync, readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import vm from "node:vm";
import { parse } from "yaml";
import { aRegistry } from "../__test__/support/registry.mjs";
import { ownManifest, packMain, packPlatform, packViewer } from "./pack.mjs";
import { root } from "./paths.mjs";
import { PACKAGE, packageOf, platforms, VIEWER } from "./platforms.mjs";
import { collect, show } from "./proc.mjs";

/** @typedef {{ name?: string, if?: string, uses?: string, run?: string, with?: Record<string, string>, env?: Record<string, string> }} Step */
/** @typedef {{ name?: string, if?: string, "runs-on": string, strategy?: { matrix: any }, env?: Record<string, string>, steps: Step[] }} Job */
/** A job on one row of its matrix. @typedef {{ tree: string, context: Record<string, any>, env: NodeJS.ProcessEnv }} Machine */

/** @type {{ jobs: Record<string, Job> }} */
const { jobs } = parse(readFileSync(path.join(root, ".github", "workflows", "release.yml"), "utf8"));
const chosen = process.argv.slice(2);
const unknown = chosen.filter((name) => !Object.hasOwn(jobs, name));
if (unknown.length > 0) {
  process.stderr.write(`The release has no job ${unknown.join(", ")}: its jobs are ${Object.keys(jobs).join(", ")}.\n`);
  process.exit(1);
}

const { version } = ownManifest();
const folder = mkdtempSync(path.join(os.tmpdir(), "lcm-rehearsal-"));
const artifacts = path.join(folder, "artifacts");
const github = { ref_type: "tag", ref_name: `v${version}`, ref: `refs/tags/v${version}`, repository: "owner/name", token: "" };
/** The outcome of each step. @type {{ job: string, step: string, outcome: string }[]} */
const table = [];
/** @type {(() => unknown)[]} */
const cleaning = [];

try {
  // They are in the order of their dependencies.
  for (const [name, job] of Object.entries(jobs)) {
    if (chosen.length > 0 && !chosen.includes(name)) note(name, "all steps", "not tried: it was not asked for");
    else for (const row of rowsOf(job)) await playJob(name, job, row);
  }
} finally {
  for (const clean of cleaning) await clean();
  rmSync(folder, { recursive: true, force: true });
}
const width = (/** @type {"job" | "step"} */ column) => Math.max(...table.map((line) => line[column].length));
process.stdout.write(`\n${table.map(({ job, step, outcome }) => `${job.padEnd(width("job"))}  ${step.padEnd(width("step"))}  ${outcome}\n`).join("")}`);
process.exitCode = table.some(({ outcome }) => outcome.startsWith("FAILED")) ? 1 : 0;

/** @param {Job} job @returns {Record<string, string>[]} */
function rowsOf({ strategy }) {
  if (!strategy) return [{}];
  const { include = [], ...lists } = strategy.matrix;
  const [[key, values] = ["", []]] = Object.entries(lists);
  return [...include, .../** @type {string[]} */ (values).map((value) => ({ [key]: value }))];
}

/** @param {string} name @param {Job} job @param {Record<string, string>} matrix */
async function playJob(name, job, matrix) {
  const title = [name, ...Object.values(matrix).slice(0, 1)].join(" ");
  const context = { matrix, github };
  if (!holds(job.if, context)) return note(title, "all steps", "left out, as its condition says");
  const runner = resolve(job["runs-on"], context);
  if (!runner.startsWith("ubuntu")) return note(title, "all steps", `not tried: it needs ${runner}`);
  const tree = path.join(folder, title.replaceAll(/\W+/g, "-"));
  const env = { ...process.env, CI: "true", GITHUB_REF_TYPE: github.ref_type, GITHUB_REF_NAME: github.ref_name, ...resolveAll(job.env, context) };
  let failed = false;
  for (const step of job.steps) {
    const label = resolve(step.name ?? step.run?.trim().split("\n")[0] ?? step.uses ?? "", context);
    if (!holds(step.if, context)) continue;
    process.stdout.write(`\n── ${title}: ${label} ──\n`);
    /** @type {string} */
    const outcome = failed ? "not reached" : await (step.uses ? standIn : playRun)(step, { tree, context, env });
    failed ||= outcome.startsWith("FAILED");
    note(title, label, outcome);
  }
  rmSync(tree, { recursive: true, force: true });
}

/** The substitute for an action. @param {Step} step @param {Machine} machine @returns {Promise<string>} */
async function standIn({ uses = "", with: inputs = {} }, { tree, context }) {
  const [action] = uses.split("@");
  if (action === "actions/checkout") {
    const code = await show("git", ["clone", "--quiet", root, tree]);
    return code === 0 ? "stood in for: a clone of HEAD" : "FAILED";
  }
  if (action === "./.github/actions/setup") return `stood in for: Node ${process.version} and the Rust that is here, without caches`;
  if (action === "actions/setup-node") return `stood in for: Node ${process.version}`;
  const place = path.join(tree, path.dirname(inputs.path ?? "."));
  if (action === "actions/upload-artifact") {
    const files = readdirSync(place).filter((file) => file.endsWith(path.basename(inputs.path).slice(1)));
    const artifact = path.join(artifacts, resolve(inputs.name, context));
    for (const file of files) cpSync(path.join(place, file), path.join(artifact, file));
    return files.length > 0 ? `stood in for: a folder that takes ${files.join(", ")}` : "FAILED: there is no such file";
  }
  if (action !== "actions/download-artifact") return `FAILED: nothing replaces ${uses}`;
  const target = path.join(tree, inputs.path);
  const made = existsSync(artifacts) ? readdirSync(artifacts).filter((artifact) => artifact === (inputs.name ?? artifact)) : [];
  for (const artifact of made) cpSync(path.join(artifacts, artifact), target, { recursive: true });
  if (inputs.name) return made.length > 0 ? "stood in for: the folder" : "not played: its job was not asked for";
  if (!existsSync(path.join(target, `${PACKAGE}-${version}.tgz`))) await packMain(target);
  if (!existsSync(path.join(target, `${VIEWER}-${version}.tgz`))) await packViewer(target);
  const missing = platforms.filter(({ name }) => !existsSync(path.join(target, `${packageOf(name)}-${version}.tgz`)));
  for (const platform of missing) await packPlatform(platform, path.join(root, "LICENSE"), target);
  return `stood in for: the folder${missing.map(({ name }, at) => `${at ? "," : "; engines without contents for"} ${name}`).join("")}`;
}

/** @param {Step} step @param {Machine} machine @returns {Promise<string>} */
async function playRun({ run = "", env: own }, { tree, context, env }) {
  const script = resolve(run, context);
  const settings = { ...env, ...resolveAll(own, context) };
  if (script.includes("publish:all")) return playPublishing(script, tree, settings);
  if (script.startsWith("gh ")) return playRelease(tree);
  if (script.startsWith("docker run")) {
    const code = await show(process.execPath, ["scripts/try-engine.mjs", context.matrix.platform], { cwd: tree, env: settings });
    return code === 0 ? `stood in for: try-engine.mjs instead of ${context.matrix.image}` : "FAILED in try-engine.mjs";
  }
  const code = await show("bash", ["-eo", "pipefail", "-c", script], { cwd: tree, env: settings });
  return code === 0 ? "played" : `FAILED with exit code ${code}`;
}

/** The files that `gh` would attach; only GitHub can take them. @param {string} tree */
function playRelease(tree) {
  const dist = path.join(tree, "dist");
  if (!existsSync(dist)) return "not played: the job that makes what it attaches was not asked for";
  const files = readdirSync(dist).filter((file) => file.endsWith(".cdx.json"));
  const { length } = files.filter((file) => JSON.parse(readFileSync(path.join(dist, file), "utf8")).components.length > 0);
  return length === 2 ? "not played: only GitHub has it; both bills of materials are there" : `FAILED: of ${files.join(", ")} ${length} list components`;
}

/** @param {string} script @param {string} tree @param {NodeJS.ProcessEnv} env @returns {Promise<string>} */
async function playPublishing(script, tree, env) {
  const registry = await aRegistry(/** @type {any} */ ({ after: (/** @type {() => unknown} */ clean) => cleaning.push(clean) }));
  const npmrc = path.join(folder, "npmrc");
  writeFileSync(npmrc, `${registry.url.replace("http:", "")}:_authToken=any\n`);
  const settings = { ...env, npm_config_userconfig: npmrc, npm_config_registry: registry.url };
  // Only GitHub can sign a package's provenance.
  const publish = async (/** @type {NodeJS.ProcessEnv} */ more = {}) => {
    const { code, stdout, stderr } = await collect("bash", ["-eo", "pipefail", "-c", script.replace(" -- --provenance", "")], { cwd: tree, env: { ...settings, ...more } });
    process.stdout.write(stdout + stderr);
    return code;
  };
  const names = [...platforms.map(({ name }) => packageOf(name)), VIEWER, PACKAGE].map((name) => `${name}@${version}`);
  const isPublished = (/** @type {string[]} */ wanted) => registry.published.join() === wanted.join();

  if ((await publish({ GITHUB_REF_NAME: "v0.0.0-other" })) === 0 || !isPublished([])) return "FAILED: a tag of another version was published";
  const third = path.join(tree, "dist", `${packageOf(platforms[2].name)}-${version}.tgz`);
  const whole = readFileSync(third);
  truncateSync(third, 1000);
  if ((await publish()) === 0 || !isPublished(names.slice(0, 2))) return `FAILED: after a damaged third package there were ${registry.published}`;
  writeFileSync(third, whole);
  if ((await publish()) !== 0 || !isPublished(names)) return `FAILED: after the second start there were ${registry.published}`;
  if ((await publish()) !== 0 || !isPublished(names)) return "FAILED: a third start did not leave everything as it was";
  return "played to a registry on loopback, without provenance: refused for another tag, broken off, started again twice";
}

/** @param {Record<string, string> | undefined} values @param {Record<string, any>} context */
function resolveAll(values, context) {
  return Object.fromEntries(Object.entries(values ?? {}).map(([key, value]) => [key, resolve(value, context)]));
}

/** @param {string} text @param {Record<string, any>} context */
function resolve(text, context) {
  return text.replace(/\$\{\{(.+?)\}\}/g, (_, expression) => evaluate(expression, context) ?? "");
}

/** @param {string | undefined} condition @param {Record<string, any>} context */
function holds(condition, context) {
  return !condition || Boolean(evaluate(condition.replace(/^\$\{\{|\}\}$/g, ""), context));
}

/** The expressions in the workflow are valid JavaScript. @param {string} expression @param {Record<string, any>} context */
function evaluate(expression, context) {
  return vm.runInNewContext(expression, { ...context });
}

/** @param {string} job @param {string} step @param {string} outcome */
function note(job, step, outcome) {
  table.push({ job, step, outcome });
}
