/**
 * pi-lossless-context as Pi loads it: wires the native engine into Pi's events, tools and commands.
 *
 * It decides nothing. Each handler takes an event's fields, makes one call of the engine, and gives Pi the shape Pi wants.
 * Whatever fails in here is shown once through Pi's UI, and Pi goes on as it would without us: a factory that throws keeps
 * Pi from starting, so nothing is loaded at the top level.
 */

import { atAgentEnd, atPrompt, atTurnEnd, compactionOf, landed, prepare, shownFrom } from "./shim/boundary.js";
import { changedFiles, lookAtFiles } from "./shim/changed.js";
import { registerCommands, registerOff, sayAgain } from "./shim/commands.js";
import { loadEngine } from "./shim/loader.js";
import { withMarker } from "./shim/marker.js";
import { withModels } from "./shim/models.js";
import { cancellable, choices, failureOf, messageOf, modelOf, modeOf, patience, promptSizes, quietly, sessionFolders, settingsFor, uiOf, unlessAborted, unwrap, windowOf } from "./shim/pi.js";
import { hasOwnStubs, withStubs } from "./shim/pruning.js";
import { notifyRedrawn, showProgress, showStatus } from "./shim/status.js";
import { registerTools } from "./shim/tools.js";
import { catchUp, goOn, isBehind, makeUp, ready, walk } from "./shim/tree.js";
import { keepSent, noteAnswered } from "./shim/within.js";

export { loadEngine };

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionAPI} ExtensionAPI */
/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("./index.d.ts").Native} Native */
/** @typedef {import("./index.d.ts").Engine} Engine */
/** @typedef {import("./shim/tree.js").Session} Session */

/** Rest between two attempts to open a store that can't be opened. */
const REST_MS = 1000;

/** What is told of a session in which the store can't go by Pi's ids. */
const REUSED = `several entries of this session's file have one id, and Pi shows only the last of them. All are kept and can be found, but \
this session is left to Pi to compact: mend its file, or go on in a new session`;

/** What the user has heard of how we were set up; it need not be said again at each `/new`. @type {Set<string>} */
const circumstances = new Set();

/**
 * Stores of sessions that were left, which are writing their last and being closed. Kept where every evaluation of this file
 * finds them: some Pis evaluate it anew for each session.
 *
 * @type {Set<Promise<void>>}
 */
const closings = (/** @type {any} */ (globalThis)[Symbol.for("pi-lossless-context.closings")] ??= new Set());

/**
 * Wires the extension into Pi.
 *
 * @param {ExtensionAPI} pi
 */
export default function losslessContext(pi) {
  /** @type {Session | undefined} */
  let session;
  /** The session that was started last, whether it has an engine or not. @type {string | undefined} */
  let started;
  /** What the last compaction took. @type {{ text: string } | undefined} */
  let lastReport;
  /** Failures the user has heard of. @type {Set<string>} */
  const told = new Set();
  /** Whether requests get stubs from us. */
  let puts = false;
  /** What was said during a compaction: in the TUI Pi wipes it out when it draws the transcript anew. @type {string[] | undefined} */
  let wiped;

  /**
   * @param {ExtensionContext} ctx
   * @param {unknown} error
   * @param {Set<string>} [heard] what need not be said again
   */
  function tell(ctx, error, heard = told) {
    const message = `pi-lossless-context: ${messageOf(error)}`;
    if (heard.has(message)) return;
    heard.add(message);
    wiped?.push(message);
    quietly(() => uiOf(ctx).notify(message, "warning"));
  }

  /**
   * A handler whose failure is told once and leaves Pi to its own devices.
   *
   * @template E, R
   * @param {(event: E, ctx: ExtensionContext, session: Session) => Promise<R> | R} handler
   * @returns {(event: E, ctx: ExtensionContext) => Promise<R | undefined>}
   */
  function withSession(handler) {
    return async (event, ctx) => {
      if (!session) return undefined;
      try {
        return await handler(event, ctx, session);
      } catch (error) {
        tell(ctx, error);
        return undefined;
      }
    };
  }

  /** The session that is open, for what can't go on without one. */
  function current() {
    if (!session) throw new Error("no session is open: its history can't be asked");
    return session;
  }

  /**
   * Decides whether there is anything for us to do in this session, and does it. What Pi shows the model, tools and prompt, is
   * touched from here on and not before: where we have nothing to do, Pi must be as it is alone.
   *
   * @param {ExtensionContext} ctx
   */
  function start(ctx) {
    /** @type {Native} */
    let native;
    try {
      native = loadEngine();
    } catch (error) {
      const reason = `pi-lossless-context is off: ${messageOf(error)}. Pi compacts in its own way until then.`;
      quietly(() => uiOf(ctx).notify(reason, "error"));
      return registerOff(pi, reason, "error");
    }
    const rival = ownerOf(JSON.parse(native.toolSpecs()));
    if (rival) {
      const others = `another extension (${rival}) keeps the history already, with tools of the same names`;
      return tell(ctx, `${others}, so this one does nothing. Remove one of the two.`, circumstances);
    }
    const { settings, notice } = settingsFor(native, ctx);
    if (notice) tell(ctx, notice, circumstances);
    if (!settings.enabled) return registerOff(pi, "pi-lossless-context is switched off by its setting `enabled`: /lcm settings enabled=true switches it on.", "info", native);
    registerTools(pi, JSON.parse(native.toolSpecs(settings.notes)), current);
    registerCommands(pi, JSON.parse(native.commandSpecs()), { native, session: () => session, current, tell, lastReport: () => lastReport });
    session = open(native, ctx, settings);
    session.stubs = hasOwnStubs(session.manager);
    showStubs(session);
  }

  /**
   * Who else has a tool of ours; only asked before we register them.
   *
   * @param {{ name: string }[]} specs
   */
  function ownerOf(specs) {
    const names = new Set(specs.map(({ name }) => name));
    const theirs = pi.getAllTools().find(({ name }) => names.has(name));
    return theirs && (theirs.sourceInfo?.path ?? theirs.name);
  }

  /**
   * @param {Native} native
   * @param {ExtensionContext} ctx
   * @param {ReturnType<typeof settingsFor>["settings"]} settings
   */
  function open(native, ctx, settings) {
    const manager = ctx.sessionManager;
    const options = {
      cwd: ctx.cwd,
      sessionId: manager.getSessionId(),
      sessionFile: manager.getSessionFile(),
      parentSession: manager.getHeader()?.parentSession,
      settings,
    };
    const attempt = async () => {
      // One after the other: whoever opens a database while another lets go of it may find it locked.
      await Promise.allSettled(closings);
      try {
        return await native.Engine.open(JSON.stringify(options));
      } catch (error) {
        opened.failed = performance.now();
        throw new Error(`${messageOf(error)}. Until that is mended nothing is stored, and Pi compacts in its own way.`);
      }
    };
    /** @param {Engine} engine */
    const begin = async (engine) => {
      opened.preamble = engine.preamble();
      const notice = engine.notice();
      if (notice) tell(ctx, notice);
      await catchUp(opened, engine);
      if (opened.reused.size > 0) tell(ctx, REUSED);
    };
    const reopen = async () => {
      const engine = await attempt();
      opened.failed = undefined;
      opened.engine = Promise.resolve(engine);
      opened.caughtUp = begin(engine);
      goesOn();
      return engine;
    };
    const goesOn = () => {
      opened.caughtUp.catch((error) => tell(ctx, error));
      opened.caughtUp
        .then(() => showStatus(ctx, opened, tell))
        .then(() => offerImport(ctx, opened))
        .catch(() => {});
    };
    /** @type {Session} */
    const opened = {
      id: options.sessionId,
      manager,
      engine: attempt(),
      reopen: () => (opened.reopening ??= reopen().finally(() => (opened.reopening = null))),
      reopening: null,
      caughtUp: Promise.resolve(),
      live: false,
      last: null,
      catchingUp: false,
      closing: false,
      reused: new Set(),
      surplus: 0,
      leaving: new AbortController(),
      preamble: null,
      nextPreamble: null,
      offered: null,
      ...choices(settings),
      counting: false,
      stale: false,
      compacting: false,
      early: null,
      prompted: false,
      changed: null,
    };
    opened.caughtUp = opened.engine.then(begin);
    lookAtFiles(opened);
    goesOn();
    return opened;
  }

  /**
   * Tells once in a project's life of sessions from before, to somebody who can do something about them.
   *
   * @param {ExtensionContext} ctx
   * @param {Session} session
   */
  async function offerImport(ctx, session) {
    if (!["tui", "rpc"].includes(modeOf(ctx))) return;
    const text = unwrap(await (await session.engine).offerImport(JSON.stringify(sessionFolders(session))));
    if (text) quietly(() => uiOf(ctx).notify(text, "info"));
  }

  /**
   * What is to be done once a compaction stands on the branch.
   *
   * @param {ExtensionContext} ctx
   * @param {Session} session
   * @param {string | undefined} summary of the compaction that stands there
   */
  async function compacted(ctx, session, summary) {
    const engine = await session.engine;
    walk(session, engine);
    session.nextPreamble = engine.preamble();
    const { offered } = session;
    session.offered = null;
    if (offered && summary === offered.summary) {
      lastReport = { text: `LCM: ${offered.text}` };
      notifyRedrawn(ctx, lastReport.text, offered.degraded ? "warning" : "info");
    } else if (offered) {
      tell(ctx, "another extension's compaction took the place of this one's. Every message is kept all the same.");
    }
    const again = wiped ?? [];
    wiped = undefined;
    if (modeOf(ctx) === "tui") again.forEach((text) => notifyRedrawn(ctx, text, "warning"));
    void showStatus(ctx, session, tell);
  }

  /** The same for one that was handed back at a turn's end, of which Pi fires no event. @type {typeof sync} */
  const settle = async (_event, ctx, session) => {
    if (session.offered?.draft) await compacted(ctx, session, landed(session)?.summary);
  };

  /** Hands over what is new and shows it. @type {(event: unknown, ctx: ExtensionContext, session: Session) => Promise<Engine>} */
  const handOverNew = async (_event, ctx, session) => {
    // Not awaited: it may fail as slowly as before.
    if (session.failed !== undefined && performance.now() > session.failed + REST_MS) session.reopen().catch((error) => tell(ctx, error));
    const engine = await session.engine;
    goOn(session, engine)?.catch((error) => tell(ctx, error));
    walk(session, engine);
    void showStatus(ctx, session, tell);
    return engine;
  };

  /** The same, with work ahead. @type {(event: unknown, ctx: ExtensionContext, session: Session) => Promise<void>} */
  const sync = async (event, ctx, session) => {
    prepare(ctx, session, await handOverNew(event, ctx, session)).catch(() => {});
  };

  /** Makes up for what failed, whether it is given a rest or not. @type {(session: Session) => Promise<void>} */
  const tryAgain = async (session) => {
    await session.reopening?.catch(() => {});
    if (session.failed !== undefined) await session.reopen();
    else await makeUp(session, await session.engine);
  };

  /** The same, with what the store would not take earlier, on whatever branch. @type {typeof sync} */
  const syncAll = async (event, ctx, session) => {
    // Not awaited: it may fail as slowly as before.
    tryAgain(session).catch((error) => tell(ctx, error));
    const engine = await session.engine;
    await sync(event, ctx, session);
    await settle(event, ctx, session);
    if (["tui", "rpc"].includes(modeOf(ctx))) await atAgentEnd(pi, /** @type {any} */ (event), ctx, session, engine);
  };

  /**
   * Puts stubs into requests where the host does not do that itself. A Pi that is asked nothing copies no messages for it.
   *
   * @param {Session} session
   */
  function showStubs({ stubs }) {
    if (puts || !stubs) return;
    puts = true;
    pi.on("context", withSession((event, _ctx, session) => {
      const messages = withStubs(session, event.messages);
      return messages && { messages };
    }));
  }

  pi.on("session_start", (_event, ctx) => {
    try {
      const id = ctx.sessionManager.getSessionId();
      // In rpc mode it comes twice for one session.
      if (started === id) return;
      started = id;
      start(ctx);
      sayAgain(ctx);
    } catch (error) {
      tell(ctx, error);
    }
  });

  /** The entry stands one tick after its event. @type {(event: unknown, ctx: ExtensionContext) => Promise<void>} */
  const walkSoon = withSession((_event, _ctx, session) => {
    setImmediate(() => {
      session.engine.then((engine) => walk(session, engine)).catch(() => {});
    });
  });
  pi.on("message_end", walkSoon);
  // What others append once the agent is done.
  pi.on(/** @type {any} */ ("agent_settled"), walkSoon);
  pi.on(
    "turn_end",
    withSession(async (event, ctx, session) => {
      noteAnswered(session, event.message ?? {});
      const engine = await handOverNew(event, ctx, session);
      const usage = ctx.getContextUsage?.();
      const appended = atTurnEnd(pi, event, ctx, session, engine, usage).then((due) => {
        showStubs(session);
        if (!due) prepare(ctx, session, engine, usage).catch(() => {});
        return due;
      });
      // A Pi that takes no entries has nothing to wait for, and would end before others have heard of the run's end.
      if (!session.takesEntries) return void appended.catch((error) => tell(ctx, error));
      return /** @type {any} */ (await appended);
    }),
  );
  pi.on("turn_start", withSession(settle));
  const atEnd = withSession(syncAll);
  pi.on("agent_end", (event, ctx) => {
    const done = atEnd(event, ctx);
    let stays = false;
    quietly(() => void (stays = ["tui", "rpc"].includes(modeOf(ctx))));
    // Where nobody stays, an older Pi leaves before it has told others of the end, if that waits for us.
    return stays ? done : undefined;
  });
  pi.on("session_tree", withSession(syncAll));

  // What is said while an older Pi compacts for us waits until that is done: there it would be lost.
  pi.on(
    "input",
    withSession(async (_event, ctx, session) => {
      await session.early;
      session.prompted = ctx.isIdle();
    }),
  );
  pi.on("agent_start", withSession((_event, _ctx, session) => void (session.prompted = false)));

  pi.on(
    "before_agent_start",
    withSession(async (event, ctx, session) => {
      await atPrompt(pi, ctx, session, await session.engine);
      showStubs(session);
      const message = await changedFiles(session);
      // Where the run went on after the compaction, the prefix is in the provider's cache by now, and worth more than these words.
      session.preamble = session.nextPreamble ?? session.preamble;
      if (!session.preamble) return message && { message };
      /** @type {{ sections?: Record<string, string>, forceSystemPrompt?: string } | undefined} */
      const options = event.systemPromptOptions;
      if (options?.sections) options.sections.lcm = session.preamble;
      // Where another extension has put a whole prompt in their place, Pi shows no sections.
      if (options?.sections && options.forceSystemPrompt === undefined) return message && { message };
      return { ...(message && { message }), systemPrompt: `${event.systemPrompt}\n\n${session.preamble}` };
    }),
  );

  pi.on(
    "before_provider_request",
    withSession(({ payload }, ctx, session) => {
      session.nextPreamble = null;
      const from = shownFrom(session);
      const marked = session.lean ? withMarker(payload, from !== undefined, session) : undefined;
      keepSent(session, ctx, marked ?? payload, from);
      return marked;
    }),
  );

  pi.on(
    "session_before_compact",
    withSession(async (event, ctx, session) => {
      wiped = [];
      // Ours, which is made already.
      if (session.early && session.offered?.draft) return { compaction: compactionOf(session.offered) };
      session.offered = null;
      const { preparation, signal } = event;
      // The past of a long session may still be on its way.
      const engine = await unlessAborted(ready(session), signal);
      if (!engine) return { cancel: true };
      if (session.reused.size > 0) return undefined;
      const request = {
        leafId: session.manager.getLeafId(),
        firstKeptEntryId: preparation.firstKeptEntryId,
        tokensBefore: preparation.tokensBefore,
        customInstructions: event.customInstructions,
        reason: event.reason,
        contextWindow: windowOf(ctx),
        reserveTokens: preparation.settings?.reserveTokens,
        model: modelOf(ctx),
        failure: failureOf(session.manager),
        promptTokens: promptSizes(pi, ctx).promptTokens,
        shownFrom: shownFrom(session),
      };
      const shown = showProgress(ctx, session, engine, tell);
      const answer = await cancellable(engine, signal, (operation) =>
        withModels(ctx, session, signal, (models) => engine.compact(operation, JSON.stringify(request), models)),
      ).finally(shown);
      const outcome = unwrap(answer);
      if (outcome.kind === "cancelled") return { cancel: true };
      if (outcome.kind !== "compacted") return undefined;
      session.offered = { summary: outcome.compaction.summary, text: outcome.report, degraded: outcome.degraded };
      return { compaction: outcome.compaction };
    }),
  );

  pi.on(
    "session_before_tree",
    withSession(async ({ preparation, signal }, ctx, session) => {
      const { oldLeafId, commonAncestorId, customInstructions, userWantsSummary } = preparation;
      if (!userWantsSummary || !oldLeafId) return undefined;
      const engine = await ready(session);
      if (session.reused.size > 0) return undefined;
      const contextWindow = ctx.getContextUsage?.()?.contextWindow || ctx.model?.contextWindow || undefined;
      const left = { leafId: oldLeafId, commonAncestorId, customInstructions, contextWindow, model: modelOf(ctx) };
      const outcome = unwrap(
        await cancellable(engine, signal, (operation) =>
          withModels(ctx, session, signal, (models) => engine.summarizeLeft(operation, JSON.stringify(left), models)),
        ),
      );
      if (outcome.kind === "cancelled") return { cancel: true };
      return outcome.kind === "summarized" ? { summary: outcome.summary } : undefined;
    }),
  );

  pi.on("session_compact", withSession((event, ctx, session) => compacted(ctx, session, event.compactionEntry?.summary)));

  pi.on("session_shutdown", async (event, ctx) => {
    const left = session;
    session = undefined;
    if (left) {
      try {
        const engine = await (left.reopening ?? left.engine);
        // What was said while the past is still being handed over waits behind it; the next start would bring it too.
        if (!left.live) await Promise.race([left.caughtUp.catch(() => {}), patience()]);
        walk(left, engine);
        // What was said on a branch that was left, with no run since, and what failed.
        if (isBehind(left, engine)) await Promise.race([makeUp(left, engine).catch(() => {}), patience()]);
        left.closing = true;
        // A call of Pi's that nobody waits for any more would keep it from leaving.
        left.leaving.abort();
        const closed = engine.close().catch(() => {});
        closings.add(closed);
        void closed.then(() => closings.delete(closed));
      } catch (error) {
        tell(ctx, error);
      }
    }
    // What is typed before another session is there, Pi takes for something said in the one that is going.
    if (["new", "resume", "fork", "reload"].includes(event.reason)) return;
    await Promise.allSettled(closings);
  });
}
