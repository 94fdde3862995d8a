/**
 * An extension of Pi that puts other words in place of texts that steer the model, wherever they are in a request: in the system prompt, the
 * tools or the block.
 *
 * `BENCH_GUIDANCE` is a JSON file, `{"words as sent today": "other words"}`, read at each request. It is loaded before the extension itself,
 * so that both see the same request.
 */
import { readFileSync } from "node:fs";

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function guidance(pi) {
  pi.on("before_provider_request", ({ payload }, ctx) => {
    const inJson = (/** @type {string} */ text) => JSON.stringify(text).slice(1, -1);
    let json = JSON.stringify(payload);
    for (const [now, other] of Object.entries(JSON.parse(readFileSync(process.env.BENCH_GUIDANCE ?? "", "utf8")))) {
      if (!json.includes(inJson(now))) ctx.ui.notify(`guidance: not in the request: ${now}`, "error");
      json = json.replaceAll(inJson(now), () => inJson(String(other)));
    }
    return JSON.parse(json);
  });
}
