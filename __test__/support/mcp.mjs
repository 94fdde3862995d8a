/** Clients of `pi-lcm mcp`: the official one, and one that sends any input on stdin. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { pathToFileURL } from "node:url";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StdioClientTransport } from "@modelcontextprotocol/sdk/client/stdio.js";
import { ListRootsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { node22 } from "../../scripts/paths.mjs";
import { environmentOf, program } from "./cli.mjs";

/** @typedef {import("./cli.mjs").Shell} Shell */

/** The variables that are set. @param {Shell} shell */
const environment = (shell) => /** @type {Record<string, string>} */ (Object.fromEntries(Object.entries(environmentOf(shell)).filter(([, value]) => value !== undefined)));

/**
 * The official client, connected to a new server. Any other text on stdout, or anything on stderr, fails the test.
 * @param {import("node:test").TestContext} t
 * @param {Shell} shell
 * @param {object} [how]
 * @param {string[]} [how.args] of `pi-lcm mcp`
 * @param {string} [how.version] of the protocol to request, instead of the newest
 * @param {string[]} [how.roots] the client's folders; may be changed
 */
export async function connect(t, shell, { args = [], version, roots } = {}) {
  const transport = new StdioClientTransport({ command: node22, args: [program, "mcp", ...args], cwd: shell.cwd, env: environment(shell), stderr: "pipe" });
  const client = new Client({ name: "test", version: "1" }, { capabilities: roots ? { roots: { listChanged: true } } : {} });
  const seen = { revision: "", errors: /** @type {string[]} */ ([]), rootsAsked: 0 };
  client.onerror = (error) => seen.errors.push(error.message);
  transport.stderr?.on("data", (data) => seen.errors.push(String(data)));
  Object.assign(transport, { setProtocolVersion: (/** @type {string} */ negotiated) => (seen.revision = negotiated) });
  if (version) {
    const send = transport.send.bind(transport);
    transport.send = (message) => {
      if (!("method" in message) || message.method !== "initialize") return send(message);
      return send({ ...message, params: { ...message.params, protocolVersion: version } });
    };
  }
  if (roots) {
    client.setRequestHandler(ListRootsRequestSchema, () => {
      seen.rootsAsked++;
      return { roots: roots.map((root) => ({ uri: pathToFileURL(root).href })) };
    });
  }
  t.after(async () => {
    await client.close();
    assert.deepEqual(seen.errors, []);
  });
  await client.connect(transport);
  return { client, seen };
}

/**
 * Calls a tool.
 * @param {Client} client
 * @param {string} name
 * @param {Record<string, unknown>} args
 * @returns {Promise<any>}
 */
export const call = (client, name, args) => client.callTool({ name, arguments: args });

/**
 * The text of a call's answer.
 * @param {Client} client
 * @param {string} name
 * @param {Record<string, unknown>} args
 */
export async function textOf(client, name, args) {
  const { content } = await call(client, name, args);
  return content.map((/** @type {any} */ block) => block.text ?? `[${block.mimeType}]`).join("\n");
}

/**
 * A server that gets lines, and its output at the end.
 * @param {import("node:test").TestContext} t
 * @param {Shell} shell
 * @param {...string} args of `pi-lcm mcp`
 */
export function start(t, shell, ...args) {
  const child = spawn(node22, [program, "mcp", ...args], { cwd: shell.cwd, env: environmentOf(shell), stdio: "pipe" });
  t.after(() => child.kill("SIGKILL"));
  let [stdout, stderr] = ["", ""];
  child.stdout.setEncoding("utf8").on("data", (data) => (stdout += data));
  child.stderr.setEncoding("utf8").on("data", (data) => (stderr += data));
  /** @type {Promise<number | string | null>} */
  const ended = new Promise((resolve) => child.on("close", (code, signal) => resolve(code ?? signal)));
  return {
    child,
    /** @param {...(object | string)} messages */
    say: (...messages) => child.stdin.write(messages.map((message) => `${typeof message === "string" ? message : JSON.stringify(message)}\n`).join("")),
    /** Everything on stdout, which must be only the protocol. */
    heard: () => stdout.split("\n").slice(0, -1).map((line) => JSON.parse(line)),
    /** The exit code, and the text on stderr. */
    end: async () => ({ code: await ended, stderr }),
  };
}

/** @param {number} id @param {string} method @param {object} [params] */
export const request = (id, method, params = {}) => ({ jsonrpc: "2.0", id, method, params });

/** A client's first request. @param {string} [protocolVersion] */
export const initialize = (protocolVersion = "2025-11-25") => request(0, "initialize", { protocolVersion, capabilities: {}, clientInfo: { name: "raw", version: "1" } });
