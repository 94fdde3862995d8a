/**
 * Invalid tool calls by the model, on the real Pi: each gets a tool error with a correction, whether Pi itself or the tool refuses it, and
 * the next call works.
 */
import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { aProject } from "../support/project.mjs";

const long = "walrus ".repeat(3_000);

/**
 * Tool, arguments, and the expected error; without one, or with "answered", the call succeeds.
 * @type {[string, Record<string, unknown>, RegExp?, "answered"?][]}
 */
const calls = [
  ["lcm_grep", {}, /query/],
  ["lcm_grep", { query: "" }, /the query is empty/],
  ["lcm_grep", { query: "   " }, /the query is empty/],
  // Hosts turn null into nothing, zero or the word.
  ["lcm_grep", { query: "walrus", limit: null, tool: null, path: null, session: null, after: null, cursor: null, full: null }, /walrus.* plan/, "answered"],
  ["lcm_expand", { summary_id: "$ID", around: null, lines: null, depth: null, max_tokens: null, cursor: null, raw: null }, /\nHere is the walrus plan: feed it\.\n/, "answered"],
  ["lcm_grep", { query: ["walrus", "plan"] }, /query/],
  ["lcm_grep", { query: long }],
  ["lcm_grep", { query: "walrus AND NOT (plan OR body:*) NEAR(a b, 2)" }],
  ["lcm_grep", { query: "'; DROP TABLE messages; -- walrus" }],
  ["lcm_grep", { query: "=>" }, /a regular expression finds other signs too/],
  ["lcm_grep", { query: "(walrus", mode: "regex" }, /unclosed group.*or search for words/],
  ["lcm_grep", { query: "(?=walrus)", mode: "regex" }, /look-around/],
  ["lcm_grep", { query: "(\\w{900}){900}", mode: "regex" }, /too large: use fewer or smaller repetitions/],
  ["lcm_grep", { query: "(".repeat(20_000), mode: "regex" }, /unclosed group|nest/],
  ["lcm_grep", { query: "walrus", mode: "fuzzy" }, /mode/],
  ["lcm_grep", { query: "walrus", limit: "3", full: "true" }],
  ["lcm_grep", { query: "walrus", limit: 5000 }],
  ["lcm_grep", { query: "walrus", limit: -1 }, /limit must be a number from 0 to 1000000, not -1: leave it out for the default/],
  ["lcm_grep", { query: "walrus", limit: 1e12 }, /limit must be a number from 0 to 1000000/],
  ["lcm_grep", { query: "walrus", limit: "many" }, /limit/],
  ["lcm_grep", { query: "walrus", role: "user", tool: "bash" }, /leave out role user or tool bash: /],
  ["lcm_grep", { query: "walrus", scope: "summaries", path: "a.ts" }, /leave one of them out/],
  ["lcm_grep", { query: "walrus", after: "1h", before: "3d" }, /after is later than before/],
  ["lcm_grep", { query: "walrus", after: "soon" }, /after `soon` is not a time: write/],
  ["lcm_grep", { query: "walrus", session: "nobody" }, /there is no session `nobody`/],
  ["lcm_grep", { query: "walrus", cursor: "7:7:7" }, /leave it out to start with the first results/],
  ["lcm_grep", { query: "walrus", color: "red" }],
  ["lcm_expand", {}, /summary_id/],
  ["lcm_expand", { summary_id: "the walrus" }, /ids look like m-1a2b3c4d5e/],
  ["lcm_expand", { summary_id: "m-0123456789" }, /there is no message m-0123456789 in this project: lcm_grep and lcm_describe show ids/],
  ["lcm_expand", { summary_id: "s-0123456789" }, /there is no summary/],
  ["lcm_expand", { summary_id: "m-" }, /ids look like/],
  ["lcm_expand", { summary_id: long }, /ids look like/],
  ["lcm_expand", { summary_id: ["m-1", "m-2"] }, /summary_id/],
  ["lcm_expand", { summary_id: "$ID", max_tokens: -4000 }, /max_tokens must be a number from 0/],
  ["lcm_expand", { summary_id: "$ID", max_tokens: "500", raw: "true" }],
  ["lcm_expand", { summary_id: "$ID", cursor: "99999999" }, /belongs to no page of m-/],
  ["lcm_expand", { summary_id: "$ID", lines: "9-2" }, /write the first and the last line, such as 100-180/],
  ["lcm_expand", { summary_id: "$ID", lines: "5000-5010" }, /is past the end, there are 1: write the first and the last line/],
  ["lcm_expand", { summary_id: "$ID", around: -1 }, /around must be a number from 0/],
  ["lcm_expand", { summary_id: "$ID", around: 2, query: "walrus" }, /exclude each other/],
  ["lcm_expand", { summary_id: "$ID", query: long }],
  ["lcm_describe", { section: "by_id" }, /needs a summary_id/],
  ["lcm_describe", { section: "everything" }, /section/],
  ["lcm_describe", { section: "recent", summary_id: "$ID" }, /take no summary_id/],
  ["lcm_describe", { section: "by_id", summary_id: "m-zz" }, /ids look like/],
  ["lcm_describe", {}],
  ["lcm_grep", { query: "walrus ".repeat(30_000) }],
  ["lcm_grep", { query: "x".repeat(200_000), mode: "regex" }, /too large: use fewer or smaller repetitions/],
];

describe("invalid calls", () => {
  for (const host of hostsFor("1.6.0")) {
    test(host.name, async (t) => {
      // Everything stays in the context and must not fill it. A search names the summary of a hit, so none is written meanwhile.
      const project = await aProject(t, { host, contextWindow: 20_000_000, settings: { lcm: { background: false } } });
      const history = project.history();
      history.user("Here is the walrus plan: feed it.");
      history.assistant("Noted.");
      history.bash("cat secrets.txt", "the password is pangolin", { excludeFromContext: true });
      history.talk(4);
      const pi = project.startPi(["--session", history.write(project.sessionDir)]);

      /** Lets the model make all calls in one turn. @param {[string, Record<string, unknown>][]} made */
      const answersTo = async (made) => {
        const toolCalls = made.map(([name, args], n) => ({ id: `call_${project.turns.length}_${n}`, name, arguments: args }));
        project.script.turns = [{ toolCalls }];
        await pi.prompt("go on");
        const { entries } = await project.session(pi);
        return toolCalls.map(({ id }) => {
          const { message } = entries.find(({ message }) => message?.toolCallId === id);
          return { isError: message.isError, text: message.content.map((/** @type {any} */ part) => part.text ?? "").join("\n") };
        });
      };
      const search = /** @type {[string, Record<string, unknown>]} */ (["lcm_grep", { query: "walrus plan feed" }]);
      const [known] = await answersTo([search]);
      const [id] = /m-[0-9a-f]{10}/.exec(known.text) ?? [];
      assert.ok(id, known.text);

      const answers = await answersTo(calls.map(([name, given]) => [name, given.summary_id === "$ID" ? { ...given, summary_id: id } : given]));
      for (const [at, { isError, text }] of answers.entries()) {
        const [name, given, expected, answered] = calls[at];
        const shown = `${name} ${JSON.stringify(given).slice(0, 100)}`;
        assert.doesNotMatch(text, /pangolin/, shown);
        if (!expected) assert.equal(isError, false, `${shown}: ${text.slice(0, 300)}`);
        else assert.match(text, expected, shown);
        if (expected) assert.equal(isError, !answered, `${shown}: ${text.slice(0, 300)}`);
        if (isError) assert.ok(text.length < 600, `${shown}: ${text.length} characters`);
      }
      const [again] = await answersTo([search]);
      assert.equal(again.text.split("\n")[1], known.text.split("\n")[1], "everything is as before");
    });
  }
});
