/**
 * The disabled extension leaves Pi exactly as it is without it: to the byte in what the model is sent, and in what lies on the
 * disk afterwards. Switched on again, it has what was said meanwhile.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsByVersion, hostsFor } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { filler } from "../support/history.mjs";
import { eventually } from "../support/project.mjs";
import { Store } from "../support/store.mjs";
import { aPlace } from "./starting.mjs";

/** @typedef {import("./starting.mjs").Place} Place */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */
/** @typedef {import("../support/session-file.mjs").SessionFile} SessionFile */

/** Brings a reload to rpc mode, and is there when Pi is alone too. */
const acting = path.join(root, "__test__", "support", "acting.mjs");

/**
 * A session with prompts, tool calls, a compaction of Pi's own and what comes after it.
 * @param {Place} place
 * @param {Pi} pi
 */
async function lived({ project }, pi) {
  const from = project.server.requests.length;
  project.script.turns = [
    { text: "Let me look.", thinking: "Where?", toolCalls: [{ id: "call_1", name: "bash", arguments: { command: "echo looked" } }] },
    { text: filler("an answer", 300) },
    { toolCalls: [{ id: "call_2", name: "read", arguments: { path: "nowhere.txt" } }] },
    { text: filler("another answer", 300) },
    { text: "The summary that Pi has asked for." },
    { text: "After the compaction." },
  ];
  await pi.prompt(`Where is it? ${filler("question", 300)}`);
  await pi.prompt(`Read it, 再見. ${filler("another question", 300)}`);
  await pi.request("bash", { command: "echo by the user" });
  await pi.request("compact", { customInstructions: "mind the ledger" });
  await pi.prompt("And now?");
  return { requests: project.server.requests.slice(from), session: await project.session(pi), ui: pi.ui() };
}

/** A session's entries by kind. @param {SessionFile} session */
const kinds = ({ entries }) => entries.map(({ type, customType, message, fromHook }) => [type, customType, message?.role, fromHook].filter((part) => part !== undefined).join(" "));

/** What a provider gets. @param {import("../../demo/model-server.mjs").Received[]} requests */
const sent = (requests) => requests.map(({ raw, headers }) => ({ raw, headers }));

/**
 * What of a project can be asked for its store, where that is not in the project's own place.
 * @param {string} dir
 * @returns {any}
 */
function stored(dir) {
  /** @param {(store: Store) => unknown} question */
  const inStore = (question) => {
    const store = new Store(dir);
    try {
      return question(store);
    } finally {
      store.close();
    }
  };
  return { inStore };
}

for (const host of hostsFor(hostsByVersion)) {
  test(`switched off it leaves Pi as it is alone, and comes back when Pi loads it anew, on ${host.name}`, async (t) => {
    const place = await aPlace(t, host, { lcm: { enabled: false, debugMode: true, dbDir: "histories" } });
    const { project } = place;
    const dir = path.join(project.agentDir, "histories");
    const offers = () => project.lastTurn.toolNames.includes("lcm_grep");
    const alone = await place.rpc((pi) => lived(place, pi), { extensions: [acting] });
    await place.rpc(async (pi) => {
      const off = await lived(place, pi);
      const inAgreement = () => eventually(async () => assertAgreement(stored(dir), [await project.session(pi)]));

      await t.test("the model is sent the same bytes", () => {
        assert.ok(alone.requests.length >= 6);
        assert.deepEqual(sent(off.requests), sent(alone.requests));
      });

      await t.test("the session gets the same entries", () => {
        assert.deepEqual(kinds(off.session), kinds(alone.session));
        assert.ok(kinds(off.session).some((kind) => kind.startsWith("compaction")));
      });

      await t.test("nothing is shown, nothing is stored, no folder is made", () => {
        assert.deepEqual(off.ui, alone.ui);
        assert.deepEqual(off.ui, []);
        assert.ok(!existsSync(place.defaultDir));
        assert.ok(!readdirSync(project.agentDir).includes("histories"));
      });

      await t.test("switched on by a reload it stores what was said meanwhile, byte for byte", async () => {
        place.global({ enabled: true, dbDir: "histories" });
        await pi.prompt("/act reload");
        await pi.prompt("what did I ask?");
        assert.ok(offers());
        await inAgreement();
        const session = await project.session(pi);
        assert.ok(session.id === off.session.id && kinds(session).length > kinds(off.session).length);
      });

      await t.test("a reload is enough to switch it off and on again in the midst of a session", async () => {
        place.global({ enabled: false, dbDir: "histories" });
        await pi.prompt("/act reload");
        const before = pi.events.length;
        await pi.prompt("while it is off");
        assert.ok(!offers());
        assert.deepEqual(pi.events.slice(before).filter(({ type }) => type === "extension_ui_request"), []);
        const { entries } = await project.session(pi);
        assert.ok(stored(dir).inStore((/** @type {Store} */ store) => store.count("entries")) < entries.length);

        place.global({ enabled: true, dbDir: "histories" });
        await pi.prompt("/act reload");
        await pi.prompt("while it is on again");
        assert.ok(offers());
        await inAgreement();
      });
    }, { extensions: [extension, acting] });

    await t.test("a variable switches it off as well, whatever the settings say; then /lcm says why it has nothing to say, and asks no model", async () => {
      const asked = project.turns.length;
      const { stdout } = await place.run(["--no-session", "-p", "/lcm stats", "hello"], { env: { LCM_ENABLED: "0" } });
      assert.equal(stdout, "pi-lossless-context is switched off by its setting `enabled`: /lcm settings enabled=true switches it on.\nUnderstood.\n");
      assert.equal(project.turns.length, asked + 1);
      assert.ok(!offers());
    });
  });
}
