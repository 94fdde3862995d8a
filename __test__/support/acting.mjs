/**
 * An extension for modes and steps without a Pi command: `/act WHAT [WHICH]` does what another extension, or the user in the TUI, could do.
 * Entries are chosen by their text. It also counts the sessions that Pi announces.
 */
import { appendFileSync, readFileSync } from "node:fs";
import path from "node:path";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionCommandContext} Context */
/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionAPI} ExtensionAPI */

/** @type {Record<string, (ctx: Context, which: string, pi: ExtensionAPI) => unknown>} */
const actions = {
  new: (ctx) => ctx.newSession(),
  fork: (ctx, text) => ctx.fork(entrySaying(ctx, text)),
  clone: (ctx) => ctx.fork(ctx.sessionManager.getLeafId() ?? "", { position: "at" }),
  tree: (ctx, text) => ctx.navigateTree(entrySaying(ctx, text)),
  "tree-summary": (ctx, text) => ctx.navigateTree(entrySaying(ctx, text), { summarize: true }),
  reload: (ctx) => ctx.reload(),
  switch: (ctx, file) => ctx.switchSession(file),
  label: (ctx, text, pi) => pi.setLabel(entrySaying(ctx, text), `the label of ${text}`),
  note: (_ctx, content, pi) => pi.sendMessage({ customType: "note", content, display: true }),
  remember: (_ctx, note, pi) => pi.appendEntry("remembered", { note }),
  trigger: async (ctx, content, pi) => {
    pi.sendMessage({ customType: "note", content, display: true }, { triggerTurn: true });
    // In print mode Pi would exit before the reply.
    await ctx.waitForIdle();
  },
};

/** @param {ExtensionAPI} pi */
export default function acting(pi) {
  pi.on("session_start", () => appendFileSync(startsOf(process.env.PI_CODING_AGENT_DIR ?? ""), "\n"));
  pi.registerCommand("act", {
    description: "What a test wants done",
    handler: async (line, ctx) => {
      const [, what, which] = /^(\S+) ?([^]*)$/.exec(line) ?? [];
      await actions[what](ctx, which, pi);
    },
  });
}

/** @param {string} agentDir */
const startsOf = (agentDir) => path.join(agentDir, "session-starts.txt");

/** How many session starts were announced. @param {string} agentDir */
export const startsIn = (agentDir) => readFileSync(startsOf(agentDir), "utf8").length;

/**
 * @param {Context} ctx
 * @param {string} text
 */
function entrySaying(ctx, text) {
  const found = ctx.sessionManager.getBranch().find((entry) => entry.type === "message" && textOf(entry.message) === text);
  if (!found) throw new Error(`no entry of the branch says "${text}"`);
  return found.id;
}

/** @param {any} message */
function textOf({ content }) {
  if (typeof content === "string") return content;
  return content?.find((/** @type {any} */ block) => block.type === "text")?.text;
}
