/**
 * Providers that redirect: the other address gets neither the key nor the conversation.
 */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import http from "node:http";
import path from "node:path";
import { test } from "node:test";
import { hostsFor } from "../../scripts/hosts.mjs";
import { hasty } from "../support/fires.mjs";
import { aProject } from "../support/project.mjs";

/** The wire formats, by the provider whose model speaks it. */
const formats = { demo: "openai", claude: "anthropic" };

/** With the body, and as a question without one. */
const redirects = [307, 302];

/** Another server, and what it is asked. @param {import("node:test").TestContext} t */
async function anotherServer(t) {
  /** @type {{ method?: string, headers: http.IncomingHttpHeaders }[]} */
  const asked = [];
  const server = http.createServer(({ method, headers }, response) => {
    asked.push({ method, headers });
    response.end();
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(undefined)));
  t.after(() => server.close());
  const { port } = /** @type {import("node:net").AddressInfo} */ (server.address());
  return { asked, url: `http://127.0.0.1:${port}/steal` };
}

/** Adds a provider of the other format, and one that Pi asks in its own way only. @param {import("../support/project.mjs").Project} project */
function define({ agentDir, server }) {
  const file = path.join(agentDir, "models.json");
  const { demo } = JSON.parse(readFileSync(file, "utf8")).providers;
  const claude = { ...demo, baseUrl: server.url, api: "anthropic-messages" };
  const gemini = { ...demo, baseUrl: server.url, api: "google-generative-ai" };
  writeFileSync(file, JSON.stringify({ providers: { demo, claude, gemini } }));
}

/**
 * Compacts a session of its own and returns what the user is told.
 * @param {import("../support/project.mjs").Project} project
 * @param {import("../support/project.mjs").Pi} pi
 * @param {string} provider whose model is asked
 * @param {() => import("../../demo/model-server.mjs").Reply} reply to each question
 */
async function notified(project, pi, provider, reply) {
  const history = project.history(randomUUID());
  history.talk(30);
  history.entry("model_change", { provider, modelId: "demo-model" });
  await project.resume(pi, history);
  project.script.summary = reply;
  await pi.request("compact");
  return pi.ui("notify").map(({ message }) => message).join("\n");
}

for (const host of hostsFor()) {
  test(`a redirect is a failed answer, on ${host.name}`, async (t) => {
    const project = await aProject(t, { host, api: "openai" });
    define(project);
    project.storeIn("store", hasty);
    const other = await anotherServer(t);
    const pi = project.startPi();
    for (const [provider, format] of Object.entries(formats)) {
      for (const status of redirects) {
        await t.test(`${status}, in ${format}'s format`, async () => {
          const said = await notified(project, pi, provider, () => ({ status, headers: { location: other.url } }));
          assert.ok(project.summaryCalls.length > 0 && project.summaryCalls.every(({ api }) => api === format));
          assert.deepEqual(other.asked, [], "the other server");
          assert.ok(said.includes(`${status}: it redirects to another address`), said);
        });
      }
    }

    await t.test("also after an error that reads like an adapter's own", async () => {
      let asked = 0;
      // After the first failure, a model is asked again by the next compaction.
      for (const status of [400, redirects[0]]) {
        await notified(project, pi, "claude", () => (asked++, { status, errorBody: "Custom fetch is not supported", headers: { location: other.url } }));
      }
      assert.ok(asked > 1);
      assert.deepEqual(other.asked, [], "the other server");
    });

    await t.test("a model whose adapter cannot be told so is asked all the same", async () => {
      const said = await notified(project, pi, "gemini", () => ({}));
      assert.match(said, /no such endpoint: POST/);
    });
  });
}
