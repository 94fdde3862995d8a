/** Small, full or read-only disks, for real: a separate file system if the system lets us mount one. */
import { spawnSync } from "node:child_process";
import { chmodSync, closeSync, mkdtempSync, openSync, rmdirSync, rmSync, writeSync } from "node:fs";
import os from "node:os";
import path from "node:path";

/** @typedef {import("node:test").TestContext} TestContext */

/** Why no disk can be mounted; undefined if one can. */
export const noDisk = reasonAgainst();

function reasonAgainst() {
  if (process.platform !== "linux") return `a test makes its disk with Linux's tmpfs, and this is ${process.platform}`;
  // In separate namespaces, so that the attempt leaves nothing behind.
  const tried = spawnSync("unshare", ["--mount", "mount", "-t", "tmpfs", "none", "/mnt"], { encoding: "utf8" });
  if (tried.status === 0) return undefined;
  return `mounting needs a right that is not ours here: ${(tried.error?.message ?? tried.stderr).trim()}`;
}

/**
 * A folder that is a separate disk until the test ends.
 * @param {TestContext} t
 */
export function aDisk(t) {
  const folder = mkdtempSync(path.join(os.tmpdir(), "lcm-disk-"));
  run("mount", "-t", "tmpfs", "-o", "size=8m,mode=700", "none", folder);
  t.after(() => {
    // Lazily: Pi may still run after a failed test.
    run("umount", "--lazy", folder);
    rmdirSync(folder);
  });
  const filler = path.join(folder, "filler");
  return {
    folder,
    fill: () => fill(filler),
    makeRoom: () => rmSync(filler),
    setWritable: (/** @type {boolean} */ writable) => run("mount", "-o", `remount,${writable ? "rw" : "ro"}`, folder),
  };
}

/**
 * Writes until the disk is full. The free space is not read in advance: a concurrent writer would change it.
 * @param {string} file
 */
function fill(file) {
  const page = Buffer.alloc(4096);
  const open = openSync(file, "w");
  try {
    for (;;) writeSync(open, page);
  } catch (error) {
    if (/** @type {NodeJS.ErrnoException} */ (error).code !== "ENOSPC") throw error;
  } finally {
    closeSync(open);
  }
}

/** Why permissions do not prevent writing here; undefined if they do. */
export const noPermissions =
  process.platform === "win32" ? "a folder's permissions do not keep anybody from writing on Windows" : process.getuid?.() === 0 ? "permissions do not keep root from writing" : undefined;

/**
 * A folder that its owner can be kept from writing to.
 * @param {TestContext} t
 */
export function aFolder(t) {
  const folder = mkdtempSync(path.join(os.tmpdir(), "lcm-folder-"));
  const setWritable = (/** @type {boolean} */ writable) => chmodSync(folder, writable ? 0o700 : 0o500);
  t.after(() => {
    setWritable(true);
    rmSync(folder, { recursive: true });
  });
  return { folder, setWritable };
}

/** @param {string} command @param {...string} args */
function run(command, ...args) {
  const { status, stderr } = spawnSync(command, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${command} ${args.join(" ")}: ${stderr}`);
}
