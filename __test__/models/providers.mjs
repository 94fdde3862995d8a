/**
 * An extension with models that only extensions provide: one with its own wire format, one with a login, and a virtual one, if Pi has
 * those. All use the scripted model server.
 */
import { readFileSync } from "node:fs";
import path from "node:path";

const model = { name: "a model", reasoning: false, input: ["text"], cost: { input: 1, output: 4, cacheRead: 0, cacheWrite: 0 }, contextWindow: 200_000, maxTokens: 8192 };

/** @param {any} pi */
export default async function providers(pi) {
  const { demo } = JSON.parse(readFileSync(path.join(process.env.PI_CODING_AGENT_DIR ?? "", "models.json"), "utf8")).providers;
  const { createAssistantMessageEventStream } = /** @type {any} */ (await import("@earendil-works/pi-ai"));

  pi.registerProvider("homemade", {
    baseUrl: demo.baseUrl,
    apiKey: "homemade-key",
    api: "homemade-messages",
    models: [{ ...model, id: "homemade-model" }],
    streamSimple: (/** @type {any} */ asked, /** @type {any} */ context) => {
      const stream = createAssistantMessageEventStream();
      const text = `Homemade summary\nof ${JSON.stringify(context.messages).length} characters.\nExpand for details about: all of it`;
      const cost = { input: 0, output: 0, cacheRead: 0, cacheWrite: 0, total: 0 };
      const usage = { input: 7, output: 3, cacheRead: 0, cacheWrite: 0, totalTokens: 10, cost };
      const message = { role: "assistant", api: asked.api, provider: asked.provider, model: asked.id, content: [{ type: "text", text }], usage, stopReason: "stop", timestamp: Date.now() };
      queueMicrotask(() => {
        stream.push({ type: "start", partial: message });
        stream.push({ type: "done", reason: "stop", message });
        stream.end();
      });
      return stream;
    },
  });

  pi.registerProvider("club", {
    baseUrl: demo.baseUrl,
    api: "openai-completions",
    models: [{ ...model, id: "club-model" }],
    oauth: {
      name: "Club",
      login: async () => ({ access: "", refresh: "", expires: 0 }),
      refreshToken: async (/** @type {any} */ credentials) => credentials,
      getApiKey: (/** @type {any} */ credentials) => credentials.access,
    },
  });

  pi.registerVirtualModel?.({
    provider: "router",
    id: "auto",
    name: "Auto",
    route: (/** @type {any} */ _request, /** @type {any} */ ctx) => ({ model: ctx.modelRegistry.find("demo", "demo-model"), thinkingLevel: "off" }),
  });
}
