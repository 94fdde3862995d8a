/**
 * A tiny extension for the demo: says above the editor what to try, since Pi draws over what was printed before it started.
 */

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function hint(pi) {
  pi.on("session_start", (_event, ctx) => {
    ctx.ui.setWidget("demo", [
      "Demo: the model in here is scripted. Try: What did the import log say? · /compact · /lcm tree · /quit",
      process.env.DEMO_REASON ?? "",
    ].filter(Boolean));
  });
}
