/**
 * The end of a turn: the engine decides whether to fold the context now, and Pi appends the fold without interrupting the agent.
 *
 * It applies to the next request, also within the same run. Nothing waits for it: a fold uses summaries that were written while the agent
 * worked. Between two folds the extension changes nothing in the prompt.
 */

import { withModels } from "./models.js";
import { CHARACTERS_PER_TOKEN, ancestors, canRecall, countsOf, physicalModel, timeout, unwrap } from "./pi.js";
import { isBound } from "./thinking.js";

/** A draft of an entry, as Pi takes it at a boundary. @typedef {import("@earendil-works/pi-coding-agent").SessionBoundaryDraft} Draft */

/** Answers that Pi does not retry, which a compaction after them would prevent. */
const COMPLETE = ["stop", "toolUse", "length"];
/** How long the end of print mode waits for the summaries of a fold; what is written by then is there for the next. */
const LAST_MS = 30_000;
/** Answers that Pi does not send again. */
const FAILED = ["error", "aborted"];

/** Pi's message if all that it may compact fits in the tail that it keeps. */
const TOO_SMALL = /session too small/;
const ASKED = "Pi compacts nothing within its `compaction.keepRecentTokens`. Summaries of what is older than the last messages are written in the background. When a turn ends after that, they replace it, if that frees enough, without a focus.";

/** What Pi records if a provider drops reasoning from a request, by the type of the diagnostic. */
const DROPPED = /^(anthropic|openai)_input_transformations$/;

export class Boundary {
  #session;
  /** Whether the next request continues the last one. */
  #goesOn = false;

  /** @param {import("./session.js").Session} session */
  constructor(session) {
    this.#session = session;
  }

  /**
   * Pi keeps its last `keepRecentTokens` whole, so `/compact` finds nothing in a lean context. A fold may leave less, and Pi accepts one at
   * the end of a turn.
   *
   * @param {import("@earendil-works/pi-coding-agent").SessionCompactFailedEvent} event
   */
  async afterFailed({ reason, errorMessage }) {
    const { ctx, context, manager, pi } = this.#session;
    if (reason !== "manual" || !TOO_SMALL.test(errorMessage ?? "") || !canRecall(pi)) return;
    // Of a session that begins, Pi has said all.
    if (!manager.getEntries().some(({ type }) => type === "message")) return;
    const engine = await this.#session.engine;
    engine.askFold();
    this.#session.report(ASKED, new Set(), "info");
    this.#prepare(context.live(ctx.getContextUsage()?.tokens ?? undefined)).catch(() => {});
  }

  /** The context is another one now: a compaction, or another branch. */
  moved() {
    this.#goesOn = false;
    this.#session.context.moved();
  }

  /**
   * @param {import("@earendil-works/pi-coding-agent").TurnEndEvent} event
   * @returns {Promise<{ entries: Draft[], continue?: true } | undefined>}
   */
  async atTurnEnd(event) {
    const { compaction, ctx, handover } = this.#session;
    const message = /** @type {import("@earendil-works/pi-ai").AssistantMessage} */ (event.message);
    if (!COMPLETE.includes(message.stopReason)) return undefined;
    const engine = await this.#session.engine;
    const at = this.#at(message, event.toolResults);
    const { fold, prepare, retry } = unwrap(engine.turn(JSON.stringify({ live: at, ...this.#turn(message, event.toolResults) })));
    this.#goesOn = true;
    // Another extension compacts here, or the history is not stored completely yet.
    const mayFold = fold && handover.isLive && !handover.hasDuplicates && !this.#session.isClosing && !event.entries.some(({ type }) => type === "compaction");
    if (mayFold) {
      // Like Pi's own compaction, this waits: the answer has no room, or the process ends with the run, and with it what it writes.
      const isLast = message.stopReason === "stop" && !["tui", "rpc"].includes(ctx.mode);
      if (retry || isLast) await Promise.race([this.#prepare({ ...at, isAwaited: true }).catch(() => {}), ...(retry ? [] : [timeout(LAST_MS)])]);
      /** @type {{ entry: Draft & { summary: string } | null, report: { text: string, degraded: boolean }, notice: string | null }} */
      const { entry, report, notice } = unwrap(await engine.fold(JSON.stringify(at)));
      if (notice) this.#session.report(notice, new Set(), "info");
      if (entry) {
        compaction.pending = { summary: entry.summary, ...report, leafId: at.leafId };
        const cut = retry ? [event.messageEntryId, ...event.toolResultEntryIds] : [];
        /** @type {Draft[]} */
        const hidden = cut.map((targetId) => ({ type: "context_edit", targetId, replacement: null }));
        return { entries: [...event.entries, ...hidden, entry], ...(retry && { continue: true }) };
      }
    }
    if (prepare && !ctx.signal?.aborted) this.#prepare(at).catch(() => {});
    return undefined;
  }

  /**
   * Lets the engine write summaries in the background while the agent works. A summary that fails is tried again when a compaction needs
   * it.
   *
   * @param {object} at
   */
  async #prepare(at) {
    const { leaving, handover } = this.#session;
    const engine = await this.#session.engine;
    await handover.caughtUp;
    if (this.#session.isClosing || handover.hasDuplicates) return;
    unwrap(await withModels(this.#session, leaving.signal, (models) => engine.prepare(JSON.stringify(at), models)));
  }

  /**
   * The context at the end of a turn.
   *
   * @param {import("@earendil-works/pi-ai").AssistantMessage} message
   * @param {import("@earendil-works/pi-ai").ToolResultMessage[]} results
   */
  #at(message, results) {
    const { context, ctx } = this.#session;
    const { input, cacheRead, cacheWrite, output } = countsOf(message.usage);
    const counted = input + cacheRead + cacheWrite + output;
    // Pi's own estimate takes longer in a long context.
    const contextTokens = counted > 0 ? counted + sizeOf(results) : (ctx.getContextUsage()?.tokens ?? undefined);
    return context.live(contextTokens);
  }

  /** Estimated tokens of what was said between the last two answers: a prompt, or messages of extensions. */
  #said() {
    const said = [];
    let answers = 0;
    for (const entry of ancestors(this.#session.manager)) {
      const message = entry.type === "message" ? entry.message : undefined;
      if (message?.role === "assistant" && !FAILED.includes(message.stopReason)) answers++;
      if (answers > 1 || entry.type === "compaction") break;
      if (answers === 1 && (message?.role === "user" || entry.type === "custom_message")) said.push(/** @type {any} */ (message ?? entry));
    }
    return sizeOf(said);
  }

  /**
   * @param {import("@earendil-works/pi-ai").AssistantMessage} message
   * @param {import("@earendil-works/pi-ai").ToolResultMessage[]} results
   */
  #turn(message, results) {
    const thoughts = message.content.flatMap((part) => (part.type === "thinking" ? [part.thinking] : []));
    /** @type {Map<string, string>} */
    const read = new Map(message.content.flatMap((part) => (part.type === "toolCall" && part.name === "read" ? [[part.id, String(part.arguments.path)]] : [])));
    return {
      usage: countsOf(message.usage),
      thinking: Math.ceil(thoughts.join("").length / CHARACTERS_PER_TOKEN),
      results: sizeOf(results),
      said: this.#said(),
      lookups: sizeOf(results.filter(({ toolName }) => toolName.startsWith("lcm_"))),
      reads: results.flatMap((result) => (read.has(result.toolCallId) ? [[read.get(result.toolCallId), sizeOf([result])]] : [])),
      dropped: droppedIn(message),
      goesOn: this.#goesOn,
      isPrompt: message.stopReason === "stop",
      isCut: message.stopReason === "length",
      isBound: isBound(physicalModel(this.#session.ctx)),
    };
  }
}

/** Estimated tokens of messages. @param {{ content?: any }[]} messages */
function sizeOf(messages) {
  // Another extension's tool may return anything.
  const sizes = messages.flatMap(({ content }) => [content ?? []].flat().map((part) => (part?.type === "image" ? IMAGE : String(part?.text ?? part ?? "").length)));
  return Math.ceil(sizes.reduce((sum, length) => sum + length, 0) / CHARACTERS_PER_TOKEN);
}

/** Characters that an image counts for, as in Pi. */
const IMAGE = 4_800;

/** How many reasoning blocks the provider has dropped from a request. @param {any} message the answer */
function droppedIn({ diagnostics = [] }) {
  const lists = diagnostics.filter((/** @type {any} */ { type }) => DROPPED.test(type)).map((/** @type {any} */ { details }) => details?.transformations ?? []);
  return lists.flat().length;
}
