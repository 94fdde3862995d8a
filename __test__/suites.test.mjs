/** `npm test` leaves hosts to `npm run test:all`, never behaviors; and docs/tests.md matches the tests. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import { before, test } from "node:test";
import { allHosts } from "../scripts/hosts.mjs";
import { page, proofs } from "../scripts/list-tests.mjs";
import { root } from "../scripts/paths.mjs";

/** @type {import("../scripts/list-tests.mjs").Proof[]} */
let all;

before(() => {
  all = proofs();
});

test("npm test proves every behavior on some host", () => {
  assert.ok(all.length > 100, `${all.length} behaviors`);
  assert.deepEqual(all.filter(({ quick }) => quick.length === 0), []);
});

test("npm test runs a session in each mode on each Pi", () => {
  const lives = all.filter(({ file }) => file.endsWith("hosts/lifecycle.test.mjs")).map(({ behavior, quick }) => ({ mode: behavior.split(", ").at(-1), hosts: quick }));
  assert.deepEqual(lives.map(({ mode }) => mode), ["print", "json", "rpc", "TUI"]);
  const versions = new Set(allHosts.map(({ version }) => version));
  for (const { mode, hosts } of lives) {
    for (const version of versions) assert.ok(hosts.some((name) => name.includes(version)), `Pi ${version} in ${mode} mode`);
  }
});

test("docs/tests.md is up to date", () => {
  const found = readFileSync(path.join(root, "docs", "tests.md"), "utf8");
  assert.equal(found, page(all), "`node scripts/list-tests.mjs --write` writes it");
});
