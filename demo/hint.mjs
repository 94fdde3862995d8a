/**
 * A tiny extension for the demo: says above the editor what to try, since Pi draws over what was printed before it started.
 */
import { PROMPTS } from "./script.mjs";

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function hint(pi) {
  pi.on("session_start", (_event, ctx) => {
    const lines = [process.env.DEMO_REASON ?? "", "Demo, scripted model. Ask 1, then 2, then type /lcm context. To leave: /quit", ...[PROMPTS.check, PROMPTS.order].map((prompt, n) => `${n + 1}. ${prompt}`)];
    ctx.ui.setWidget("demo", lines.filter(Boolean));
  });
}
