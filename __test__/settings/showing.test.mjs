/** What the extension shows: the footer, unless it is disabled, and a debug log, which has what was done and never any text. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { databasesIn } from "../support/store.mjs";
import { aPlace } from "./starting.mjs";

/** @typedef {import("./starting.mjs").Place} Place */

/** A marker in everything that must not be logged; the word before it names the place. */
const SAID = "5a1d0000x";

/** @param {Place} place */
function changeModels({ project: { agentDir } }) {
  const file = path.join(agentDir, "models.json");
  const { providers } = JSON.parse(readFileSync(file, "utf8"));
  const { demo } = providers;
  demo.apiKey = `key${SAID}`;
  demo.name = `provider${SAID}`;
  demo.headers = { "x-secret": `header${SAID}` };
  demo.models[0].name = `model${SAID}`;
  // The first in the chain, which fails; then the session's own.
  providers.broken = { ...demo, apiKey: `other${SAID}`, models: [{ ...demo.models[0], id: "broken-model" }] };
  writeFileSync(file, JSON.stringify({ providers }));
}

for (const host of hostsFor()) {
  test(`without the footer everything else is the same, and a session without a file leaves no log, on ${host.name}`, async (t) => {
    const place = await aPlace(t, host, { lcm: { status: false, debugMode: true } });
    await place.rpc(async (pi) => {
      await pi.prompt("hello");
      await pi.prompt("/lcm stats");
      assert.match(pi.ui("notify")[0].message, /^This session +2 messages/);
      assert.deepEqual(pi.ui("setStatus"), []);
      assert.ok(!existsSync(place.defaultDir));
      place.global({ debugMode: true });
      await pi.request("new_session");
      await pi.prompt("hello");
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 2 msgs"));
    }, { args: ["--no-session"] });
  });

  test(`a history over its budget is reported once, with remedies, on ${host.name}`, async (t) => {
    const place = await aPlace(t, host, { lcm: { sizeBudgetMegabytes: 1 } });
    const notices = (/** @type {import("../support/project.mjs").Pi} */ pi) => pi.ui("notify").map(({ message }) => message);
    // Hard to compress, and each word and each of its parts is new to the index, which has no hashes: so they are of letters alone.
    const inLetters = (/** @type {string} */ hash) => hash.replace(/\d/g, (digit) => "ghijklmnop"[Number(digit)]);
    const words = Array.from({ length: 30_000 }, (_, n) => {
      const letters = inLetters(createHash("sha256").update(`${n}`).digest("hex"));
      return `${letters.slice(0, 7)}${letters[7].toUpperCase()}${letters.slice(8, 14)}`;
    });
    await place.rpc(async (pi) => {
      await pi.prompt(words.join(" "));
      await pi.waitFor(() => notices(pi).length > 0);
      await pi.prompt("hello");
      // The footer is updated at the same time.
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 4 msgs"));
      assert.match(notices(pi)[0], /^pi-lossless-context: the history of this project takes \d\.\d MB, more than the 1 MB of the setting sizeBudgetMegabytes; nothing is deleted automatically: raise the setting, or quit Pi and move \S+\.db away \(/);
      assert.equal(notices(pi).filter((message) => message.includes("sizeBudgetMegabytes")).length, 1);
      await pi.request("new_session");
      await pi.prompt("hello again");
      await pi.waitFor(() => pi.status("lcm")?.startsWith("LCM: 2 msgs"));
      assert.equal(notices(pi).filter((message) => message.includes("sizeBudgetMegabytes")).length, 1);
    });
  });

  test(`the debug log has what was done and no text, on ${host.name}`, async (t) => {
    const lcm = { debugMode: true, compactionModels: ["broken/broken-model", "nobody/nothing"], minMessagesForCompaction: 2 };
    const place = await aPlace(t, host, { lcm });
    const { project } = place;
    changeModels(place);
    project.script.summary = ({ body }) =>
      body.model === "broken-model"
        ? { status: 400, errorBody: `no, said the provider${SAID} to key${SAID}` }
        : { text: `Title${SAID}\nA summary${SAID} of it.` };
    /** @param {string} name @param {Record<string, unknown>} args */
    const call = (name, args) => ({ text: `text${SAID}`, thinking: `thought${SAID}`, toolCalls: [{ name, arguments: args }] });
    project.script.turns = [
      call("bash", { command: `echo argument${SAID}; echo output${SAID}` }),
      call("lcm_grep", { query: `query${SAID}` }),
      call("lcm_expand", { summary_id: `unknown${SAID}` }),
      { status: 400, errorBody: `failed${SAID}` },
      { text: `answer${SAID}` },
    ];
    const history = project.history();
    history.talk(20, { name: "long" });
    history.user(`past${SAID}`);
    history.assistant(`past answer${SAID}`);
    await place.rpc(async (pi) => {
      await pi.prompt(`prompt${SAID}`);
      await pi.prompt(`after the failure${SAID}`);
      await pi.request("bash", { command: `echo own${SAID}` });
      await pi.request("set_session_name", { name: `name${SAID}` });
      await pi.prompt("on");
      await pi.request("compact", { customInstructions: `focus${SAID}` });
      await pi.prompt("/lcm stats");
      await pi.prompt(`/lcm nothing${SAID}`);
    }, { args: ["--session", history.write(project.sessionDir)] });

    const [database] = databasesIn(place.defaultDir);
    const file = path.join(place.defaultDir, database.replace(/\.db$/, ".log"));
    assert.deepEqual(readdirSync(place.defaultDir).sort(), [database, path.basename(file)].sort());
    const log = readFileSync(file, "utf8");

    await t.test("it is next to the database, for its owner only", () => {
      if (process.platform !== "win32") assert.equal(statSync(file).mode & 0o777, 0o600);
    });

    await t.test("each line is an event, and every kind of event occurs", () => {
      const lines = log.trimEnd().split("\n").map((line) => /^\S+Z? \d+ (\w+)( \w+=\S+)*$/.exec(line)?.[1] ?? `no event: ${line}`);
      for (const event of ["open", "entries", "tool", "model", "call", "compaction", "close"]) assert.ok(lines.includes(event), `${event} in\n${log}`);
      assert.deepEqual(lines.filter((event) => event.startsWith("no event")), []);
      assert.match(log, / tool name=lcm_grep .*outcome=answered took=\d+ms$/m);
      assert.match(log, / call model=broken\/broken-model .*outcome=rejected /);
      assert.match(log, / call model=session .*outcome=answered /);
      assert.match(log, / compaction .*outcome=compacted covered=\d+ new=\d+ took=\d+ms$/m);
    });

    await t.test("it has no key, name or text", () => {
      assert.ok(!log.includes(SAID), log);
      for (const word of ["long0000x", "invoice", "no-key-needed", "Lossless", "demo model"]) assert.ok(!log.includes(word), word);
      const everywhere = project.server.requests.map(({ raw, headers }) => raw + JSON.stringify(headers)).join("");
      for (const place of ["prompt", "text", "output", "argument", "query", "focus", "own", "key", "header"]) assert.ok(everywhere.includes(`${place}${SAID}`), `${place} was planted`);
    });
  });
}
