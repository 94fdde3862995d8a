/**
 * The disabled extension leaves Pi exactly as it is without it, byte for byte in requests and in files. After it is enabled again, it has
 * the messages from that time.
 */
import assert from "node:assert/strict";
import { existsSync, readdirSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { extension, root } from "../../scripts/paths.mjs";
import { assertAgreement } from "../support/agreement.mjs";
import { filler } from "../support/history.mjs";
import { eventually } from "../support/project.mjs";
import { Store } from "../support/store.mjs";
import { aPlace } from "./starting.mjs";

/** @typedef {import("./starting.mjs").Place} Place */
/** @typedef {import("../../demo/rpc.mjs").Pi} Pi */
/** @typedef {import("../support/session-file.mjs").SessionFile} SessionFile */

/** Makes reloads possible in rpc mode; it is loaded when Pi runs without the extension too. */
const acting = path.join(root, "__test__", "support", "acting.mjs");

/**
 * Runs a session with prompts, tool calls, a compaction by Pi, and messages after it.
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

/** The requests as a provider gets them. @param {import("../../demo/model-server.mjs").Received[]} requests */
const sent = (requests) => requests.map(({ raw, headers }) => ({ raw, headers }));

/**
 * The parts of a project that read its store, for a store in another folder.
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

for (const host of hostsFor()) {
  test(`when disabled it leaves Pi unchanged, and a reload enables it again, on ${host.name}`, async (t) => {
    const place = await aPlace(t, host, { lcm: { enabled: false, debugMode: true, dbDir: "histories" } });
    const { project } = place;
    // Pi's own compaction, and switching our tools off, change what earlier thinking is bound to.
    project.refusals = /^bound$/;
    const dir = path.join(project.agentDir, "histories");
    const offers = () => project.lastTurn.toolNames.includes("lcm_grep");
    const alone = await place.rpc((pi) => lived(place, pi), { extensions: [acting] });
    await place.rpc(async (pi) => {
      const off = await lived(place, pi);
      const inAgreement = () => eventually(async () => assertAgreement(stored(dir), [await project.session(pi)]));

      await t.test("the model gets the same bytes", () => {
        assert.ok(alone.requests.length >= 6);
        assert.deepEqual(sent(off.requests), sent(alone.requests));
      });

      await t.test("the session gets the same entries", () => {
        assert.deepEqual(kinds(off.session), kinds(alone.session));
        assert.ok(kinds(off.session).some((kind) => kind.startsWith("compaction")));
      });

      await t.test("nothing is shown or stored, and no folder is created", () => {
        assert.deepEqual(off.ui, alone.ui);
        assert.deepEqual(off.ui, []);
        assert.ok(!existsSync(place.defaultDir));
        assert.ok(!readdirSync(project.agentDir).includes("histories"));
      });

      await t.test("enabled by a reload it stores the messages from that time, byte for byte", async () => {
        place.global({ enabled: true, dbDir: "histories" });
        await pi.prompt("/act reload");
        await pi.prompt("what did I ask?");
        assert.ok(offers());
        await inAgreement();
        const session = await project.session(pi);
        assert.ok(session.id === off.session.id && kinds(session).length > kinds(off.session).length);
      });

      await t.test("a reload disables and enables it within a session", async () => {
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

    await t.test("a variable disables it too, whatever the settings say; then /lcm gives the reason without a model call", async () => {
      const asked = project.turns.length;
      const { stdout } = await place.run(["--no-session", "-p", "/lcm stats", "hello"], { env: { LCM_ENABLED: "0" } });
      assert.equal(stdout, "pi-lossless-context is switched off by its setting `enabled`: /lcm settings enabled=true switches it on.\nUnderstood.\n");
      assert.equal(project.turns.length, asked + 1);
      assert.ok(!offers());
    });
  });
}
