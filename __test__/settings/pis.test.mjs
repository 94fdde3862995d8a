/**
 * Pi's own settings, by their effect on what the extension does: `compaction` with its overrides for single models, and where sessions and
 * trust are, for `pi-lcm`.
 */
import assert from "node:assert/strict";
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { runPi } from "../../demo/rpc.mjs";
import { hostsFor } from "../../scripts/hosts.mjs";
import { extension } from "../../scripts/paths.mjs";
import { asked } from "../commands/asking.mjs";
import { settled } from "../support/ahead.mjs";
import { statistics } from "../support/block.mjs";
import { answer, ask } from "../support/cli.mjs";
import { filler, markersIn } from "../support/history.mjs";
import { OnePi } from "../support/one-pi.mjs";
import { aProject, eventually } from "../support/project.mjs";
import { databasesIn } from "../support/store.mjs";

/** @typedef {import("../support/project.mjs").Project} Project */
/** @typedef {import("../support/session-file.mjs").SessionFile} SessionFile */

const MODEL = "demo/demo-model";
const OTHER = "demo/demo-other";
const WINDOW = 200_000;

/** The size of messages, in Pi's tokens. @param {any[]} entries */
const tokensOf = (entries) => entries.reduce((sum, { message }) => sum + Math.ceil(message.content[0].text.length / 4), 0);

/** The compactions of a session. @param {SessionFile} session */
const compactions = (session) => session.entries.filter(({ type }) => type === "compaction");

for (const host of hostsFor("1.6.0")) {
  const one = new OnePi({ host, contextWindow: WINDOW, models: [{ id: "demo-other" }], settings: { defaultProjectTrust: "always" } });
  let count = 0;

  /** A session with a history of about 4,000 tokens. @param {object} compaction Pi's setting */
  const begun = async (compaction) => {
    const project = await one.project();
    project.configure({ compaction });
    project.storeIn(`store-${count++}`, { compactionModels: [MODEL], leafChunkTokens: 500 });
    const past = project.history(`session-${count}`);
    const markers = past.talk(20, { words: 60 });
    return { ...(await one.sit(past)), markers };
  };

  /** Where Pi compacts, for the extension. @param {import("../../demo/rpc.mjs").Pi} pi */
  const threshold = async (pi) => (await asked(pi, "/lcm context")).piCompactsAt;

  test(`/compact keeps the tokens that are set for the session's model, on ${host.name}`, async (t) => {
    /** @type {[string, object, number][]} */
    const cases = [
      ["for all models", { keepRecentTokens: 1_200 }, 1_200],
      ["for this one, more than for all", { keepRecentTokens: 200, modelOverrides: { [MODEL]: { keepRecentTokens: 1_200 } } }, 1_200],
      ["for this one, less than for all", { keepRecentTokens: 1_200, modelOverrides: { [MODEL]: { keepRecentTokens: 200 } } }, 200],
      ["for another one", { keepRecentTokens: 200, modelOverrides: { [OTHER]: { keepRecentTokens: 1_200 } } }, 200],
    ];
    for (const [which, compaction, kept] of cases) {
      await t.test(which, async () => {
        const { project, pi } = await begun(compaction);
        await pi.request("compact");
        const session = await project.session(pi);
        assert.equal(session.lastCompaction.fromHook, true);
        assert.equal(statistics(session.lastCompaction.summary).missing, "none");
        const tokens = tokensOf(session.keptBy());
        assert.ok(tokens >= kept && tokens < kept + 150, `${tokens} tokens are kept`);
      });
    }
  });

  test(`work ahead and Pi's compaction follow the threshold of the session's model, on ${host.name}`, async (t) => {
    /** What the model leaves of its window at 15,000 tokens. */
    const SMALL = WINDOW - 15_000;
    const tail = { keepRecentTokens: 1_200 };
    /** @type {[string, object, number | null][]} */
    const cases = [
      ["for all models", { ...tail, reserveTokens: SMALL }, 15_000],
      ["for this one", { keepRecentTokens: 200, modelOverrides: { [MODEL]: { ...tail, reserveTokens: SMALL } } }, 15_000],
      ["for this one, with nothing in reserve", { ...tail, reserveTokens: SMALL, modelOverrides: { [MODEL]: { reserveTokens: 0 } } }, WINDOW],
      ["for another one", { ...tail, modelOverrides: { [OTHER]: { reserveTokens: SMALL } } }, WINDOW - 16_384],
      ["switched off", { ...tail, enabled: false, reserveTokens: SMALL, modelOverrides: { [MODEL]: { reserveTokens: SMALL } } }, null],
    ];
    for (const [which, compaction, at] of cases) {
      await t.test(which, async () => {
        const { project, pi, markers } = await begun(compaction);
        const answered = (/** @type {number} */ input) => (project.script.otherwise = () => ({ text: "Well.", usage: { input, output: 10 } }));
        answered(12_000);
        await pi.prompt("Where are we?");
        assert.equal(await threshold(pi), at);

        const isSoon = at === 15_000;
        if (isSoon) await eventually(() => assert.ok(project.summaryCalls.length > 0));
        const ahead = await settled(project);
        assert.equal(ahead > 0, isSoon, `${ahead} summaries ahead`);
        // Messages have about 100 tokens each, and an incomplete chunk waits.
        const last = markers.indexOf(markersIn(project.summaryCalls.map(({ messages }) => messages)).at(-1) ?? "");
        if (isSoon) assert.ok(last > 15 && last < markers.length - 10, `the first ${last} messages are summarized`);

        answered(16_000);
        await pi.prompt("Something large");
        const made = compactions(await project.session(pi));
        assert.deepEqual(made.map(({ fromHook }) => fromHook), isSoon ? [true] : []);
      });
    }
  });

  test(`after a change of the model its own values apply, on ${host.name}`, async () => {
    const { pi } = await begun({ reserveTokens: 20_000, modelOverrides: { [MODEL]: { reserveTokens: 1_000 }, [OTHER]: { reserveTokens: 2_000 } } });
    assert.equal(await threshold(pi), WINDOW - 1_000);
    await pi.request("set_model", { provider: "demo", modelId: "demo-other" });
    assert.equal(await threshold(pi), WINDOW - 2_000);
  });

  test(`a trusted project's values come before the global ones, each by itself, on ${host.name}`, async () => {
    const folder = path.join((await one.project()).cwd, ".pi");
    mkdirSync(folder);
    const own = { reserveTokens: 2_000, modelOverrides: { [OTHER]: { reserveTokens: 3_000 } } };
    writeFileSync(path.join(folder, "settings.json"), JSON.stringify({ compaction: own }));
    const { project, pi } = await begun({ keepRecentTokens: 1_200, reserveTokens: 1_000, modelOverrides: { [OTHER]: { reserveTokens: 4_000 } } });
    assert.equal(await threshold(pi), WINDOW - 2_000);
    await pi.request("compact");
    assert.ok(tokensOf((await project.session(pi)).keptBy()) >= 1_200);
    await pi.request("set_model", { provider: "demo", modelId: "demo-other" });
    assert.equal(await threshold(pi), WINDOW - 3_000);
    rmSync(folder, { recursive: true });
  });
}

for (const host of hostsFor()) {
  test(`pi-lcm finds sessions and settings where Pi has them, on ${host.name}`, async (t) => {
    const theirs = "their-sessions";
    const project = await aProject(t, { host, settings: { sessionDir: theirs, defaultProjectTrust: "always" } });
    const { agentDir, cwd } = project;
    mkdirSync(path.join(cwd, ".pi"));
    writeFileSync(path.join(cwd, ".pi", "settings.json"), JSON.stringify({ lcm: { dbDir: "project-store" } }));
    const { node, pi } = host;
    const said = async (/** @type {string} */ text, /** @type {string[]} */ args) => runPi(["-p", text], { agentDir, cwd, node, pi, args });
    await said(`Before. ${filler("before", 20)}`, []);
    await said("With the extension.", ["-e", extension]);
    assert.equal(databasesIn(path.join(cwd, "project-store")).length, 1);

    const shell = { cwd, agentDir };
    assert.deepEqual((await ask(shell, "stats")).project, { messages: 2, sessions: 1 });
    const { stdout } = await answer(shell, "import");
    assert.match(stdout, /2 sessions: 2 messages new, 2 known already/);
  });
}
