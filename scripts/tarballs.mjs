/** Installs npm packages from their tarballs, checked against a pinned hash: for packages that bundle their dependencies. */
import { createHash } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { collect } from "./proc.mjs";
import { Failure, npm } from "./setup.mjs";

/**
 * @param {string} spec such as `npm@10.9.9`
 * @param {string} integrity the tarball's, as lock files write it
 * @param {string} target the folder to unpack it to
 */
export async function bringTarball(spec, integrity, target) {
  const temporary = mkdtempSync(path.join(os.tmpdir(), "lcm-tarball-"));
  try {
    await npm(["pack", spec, "--silent"], temporary, { quiet: true });
    const tarball = readdirSync(temporary).find((name) => name.endsWith(".tgz"));
    if (!tarball) throw new Failure(`npm pack left no tarball of ${spec}.`);
    const found = integrityOf(readFileSync(path.join(temporary, tarball)));
    if (found !== integrity) throw new Failure(`The tarball of ${spec} is not the one that was pinned: it has ${found}, expected was ${integrity}.`);
    mkdirSync(target, { recursive: true });
    // With relative names: some tars take the colon of `C:` for another machine's name.
    const { code, stderr } = await collect("tar", ["-xzf", tarball, "-C", path.relative(temporary, target), "--strip-components=1"], { cwd: temporary });
    if (code === 127) throw new Failure(`The command tar was not found, which unpacks ${spec}: install it and run this again.`);
    if (code !== 0) throw new Failure(`The tarball of ${spec} can't be unpacked: ${stderr.trim()}`);
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

/** A file's hash, as npm writes it. @param {Buffer} bytes */
export function integrityOf(bytes) {
  return `sha512-${createHash("sha512").update(bytes).digest("base64")}`;
}
