/**
 * The platforms with packages. Each package has only the engine, and npm installs the one that fits by `os`, `cpu` and `libc`: so no user
 * needs a compiler or downloads another platform's engine.
 */

/** The main package. */
export const PACKAGE = "pi-lossless-context";

/** The package with the page for `/lcm export --html`. */
export const VIEWER = `${PACKAGE}-viewer`;

/** The minimum glibc of Node 22: a Linux that runs Pi has at least this one. */
export const OLDEST_GLIBC = "2.28";

/**
 * @typedef {object} Platform
 * @property {string} name as the loader calls it
 * @property {string} target as rustc calls it
 * @property {NodeJS.Platform} os where it runs, and where it is built
 * @property {NodeJS.Architecture} cpu
 * @property {"glibc" | "musl"} [libc]
 */

/** @type {Platform[]} */
export const platforms = [
  { name: "linux-x64-gnu", target: "x86_64-unknown-linux-gnu", os: "linux", cpu: "x64", libc: "glibc" },
  { name: "linux-x64-musl", target: "x86_64-unknown-linux-musl", os: "linux", cpu: "x64", libc: "musl" },
  { name: "linux-arm64-gnu", target: "aarch64-unknown-linux-gnu", os: "linux", cpu: "arm64", libc: "glibc" },
  { name: "darwin-arm64", target: "aarch64-apple-darwin", os: "darwin", cpu: "arm64" },
  { name: "darwin-x64", target: "x86_64-apple-darwin", os: "darwin", cpu: "x64" },
  { name: "win32-x64-msvc", target: "x86_64-pc-windows-msvc", os: "win32", cpu: "x64" },
];

/** The npm package of a platform. @param {string} name */
export const packageOf = (name) => `${PACKAGE}-${name}`;

/** The addon's file name in it, and in a source tree. @param {string} name */
export const addonOf = (name) => `${PACKAGE}.${name}.node`;
