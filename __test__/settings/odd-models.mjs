/** An extension with models whose limits or prices are odd, which Pi takes from extensions as they are. They use the scripted model server. */
import { readFileSync } from "node:fs";
import path from "node:path";

const cost = { input: 1, output: 4, cacheRead: 0, cacheWrite: 0 };

/** What is odd, by the model's id. @type {Record<string, { contextWindow?: any, maxTokens?: any, cost?: any }>} */
export const ODD = {
  "no-window": { contextWindow: undefined },
  "window-0": { contextWindow: 0 },
  "window-negative": { contextWindow: -1 },
  "window-nan": { contextWindow: NaN },
  "window-text": { contextWindow: "200000" },
  "window-fraction": { contextWindow: 60_000.5 },
  "window-huge": { contextWindow: 1e300 },
  "no-answer": { maxTokens: undefined },
  "answer-0": { maxTokens: 0 },
  "answer-fraction": { maxTokens: 4_000.5 },
  "answer-huge": { maxTokens: 1e300 },
  "answer-text": { maxTokens: "4000" },
  "no-cost": { cost: { input: 0, output: 0, cacheRead: 0, cacheWrite: 0 } },
  "cost-negative": { cost: { input: -1, output: -4, cacheRead: -1, cacheWrite: -1 } },
  "cost-huge": { cost: { input: 1e300, output: 1e300, cacheRead: 1e300, cacheWrite: 1e300 } },
  "tier-fraction": { cost: { ...cost, tiers: [{ ...cost, inputTokensAbove: 20_000.5 }] } },
  "tier-huge": { cost: { ...cost, tiers: [{ ...cost, inputTokensAbove: 1e300 }] } },
};

const model = { name: "odd", reasoning: false, input: ["text"], cost, contextWindow: 200_000, maxTokens: 8192 };

/** @param {any} pi */
export default function oddModels(pi) {
  const { demo } = JSON.parse(readFileSync(path.join(process.env.PI_CODING_AGENT_DIR ?? "", "models.json"), "utf8")).providers;
  const models = Object.entries(ODD).map(([id, limits]) => ({ ...model, id, ...limits }));
  pi.registerProvider("odd", { baseUrl: demo.baseUrl, apiKey: "odd-key", api: demo.api, models });
}
