/**
 * pi-lossless-context as Pi loads it: finds the native engine and wires it into Pi's events, tools and commands.
 *
 * It decides nothing. Each handler takes an event's fields, makes one call of the engine, and gives Pi the shape Pi wants.
 * Whatever fails in here is shown once through Pi's UI, and Pi goes on as it would without us: a factory that throws keeps
 * Pi from starting, so nothing is loaded at the top level.
 */

import fs from "node:fs";
import { createRequire } from "node:module";
import os from "node:os";
import path from "node:path";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionAPI} ExtensionAPI */
/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("@earendil-works/pi-coding-agent").SessionEntry} SessionEntry */
/** @typedef {import("./index.d.ts").Native} Native */
/** @typedef {import("./index.d.ts").Engine} Engine */
/** @typedef {import("@earendil-works/pi-ai").Model<any>} Model */

/**
 * One session of Pi with its engine.
 *
 * @typedef {object} Session
 * @property {string} id Pi's session id
 * @property {ExtensionContext["sessionManager"]} manager the session's tree
 * @property {Promise<Engine>} engine rejects when the store can't be opened
 * @property {() => Promise<Engine>} reopen tries again what failed
 * @property {Promise<Engine> | null} reopening under way
 * @property {number} [failed] when opening failed last
 * @property {Promise<void>} caughtUp when what was said before we were here is handed over
 * @property {boolean} live entries may be handed over one by one: we have caught up
 * @property {string | null} last the leaf that was looked at last
 * @property {boolean} catchingUp under way
 * @property {boolean} closing nothing more is to be handed over
 * @property {string | null} preamble what the system prompt gets; changes at compactions only
 * @property {{ summary: string, text: string, degraded: boolean } | null} offered the compaction under way
 * @property {boolean} footer whether the footer is wanted
 * @property {boolean} counting for the footer; `stale` when it has to be done once more
 * @property {boolean} stale
 */

const require = createRequire(import.meta.url);

/**
 * Characters of JSON handed over at once when a session is seen for the first time, and entries asked about; between slices
 * Pi's own work goes on.
 */
const SLICE = { characters: 256 * 1024, entries: 2000 };

/** In the TUI Pi draws its transcript anew after a compaction; what is said before that is wiped out with the old one. */
const REDRAWN_MS = 200;

/** Rest between two attempts to open a store that can't be opened. */
const REST_MS = 1000;

/** How long a session's end waits for its past, which may be long. */
const PATIENCE_MS = 2000;

/** What the user has heard of how we were set up; it need not be said again at each `/new`. @type {Set<string>} */
const circumstances = new Set();

/**
 * Stores of sessions that were left, which are writing their last and being closed. Kept where every evaluation of this file
 * finds them: some Pis evaluate it anew for each session.
 *
 * @type {Set<Promise<void>>}
 */
const closings = (/** @type {any} */ (globalThis)[Symbol.for("pi-lossless-context.closings")] ??= new Set());

/** Numbers by which running calls are stopped. */
let nextOperation = 1;

/**
 * The engine, for scripts: `const { Engine } = loadEngine()`.
 *
 * @returns {Native}
 * @throws {Error} a sentence that names the missing file and the remedy
 */
export function loadEngine() {
  loaded ??= load();
  return loaded;
}

/** The engine, once it is loaded. @type {Native | undefined} */
let loaded;

/** @returns {Native} */
function load() {
  const file = `pi-lossless-context.${platform()}.node`;
  const remedy = "reinstall the package, or run `npm run build` in its folder";
  const place = require.resolve("./package.json");
  const { version } = require("./package.json");
  if (!fs.existsSync(path.join(path.dirname(place), file))) {
    throw new Error(`${file}, the engine for this platform, is missing: ${remedy}`);
  }
  /** @type {Native} */
  let native;
  try {
    native = require(`./${file}`);
  } catch (error) {
    throw new Error(`${file} can't be loaded (${messageOf(error)}): ${remedy}`);
  }
  const found = native.version?.();
  if (found !== version) {
    throw new Error(`${file} is of version ${found}, but this is version ${version}: ${remedy}`);
  }
  return native;
}

/** The part of the addon's file name that tells platforms apart: `linux-x64-gnu`, `darwin-arm64`, … */
function platform() {
  const { platform, arch } = process;
  if (platform === "win32") return `${platform}-${arch}-msvc`;
  if (platform !== "linux") return `${platform}-${arch}`;
  return `${platform}-${arch}-${libc()}`;
}

/** The C library that this Node was made for: its file names the loader near its beginning. */
function libc() {
  try {
    const file = fs.openSync(process.execPath, "r");
    const head = Buffer.alloc(4096);
    fs.readSync(file, head);
    fs.closeSync(file);
    const [, loader] = /\/ld-(musl|linux)/.exec(head.toString("latin1")) ?? [];
    if (loader) return loader === "musl" ? "musl" : "gnu";
  } catch {
    // A report knows it too.
  }
  return libcOfReport();
}

/** The same where the file does not say, at several milliseconds of the user's start. */
function libcOfReport() {
  const { report: reporter } = /** @type {any} */ (process);
  // A report asks the name server about every connection that is open, and Pi would have to wait for that.
  const before = reporter?.excludeNetwork;
  if (reporter) reporter.excludeNetwork = true;
  const report = reporter?.getReport();
  if (reporter) reporter.excludeNetwork = before ?? false;
  return report?.header?.glibcVersionRuntime ? "gnu" : "musl";
}

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
  /** What the last compaction took. @type {string | undefined} */
  let lastReport;
  /** Failures the user has heard of. @type {Set<string>} */
  const told = new Set();

  /**
   * @param {ExtensionContext} ctx
   * @param {unknown} error
   * @param {Set<string>} [heard] what need not be said again
   */
  function tell(ctx, error, heard = told) {
    const message = `pi-lossless-context: ${messageOf(error)}`;
    if (heard.has(message)) return;
    heard.add(message);
    quietly(() => ctx.ui.notify(message, "warning"));
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
      quietly(() => ctx.ui.notify(reason, "error"));
      return registerOff(reason, "error");
    }
    const specs = JSON.parse(native.toolSpecs());
    const rival = ownerOf(specs);
    if (rival) {
      const others = `another extension (${rival}) keeps the history already, with tools of the same names`;
      return tell(ctx, `${others}, so this one does nothing. Remove one of the two.`, circumstances);
    }
    const { settings, notice } = settingsFor(native, ctx);
    if (notice) tell(ctx, notice, circumstances);
    if (!settings.enabled) return registerOff("pi-lossless-context is switched off by its setting `enabled`.", "info");
    registerTools(specs);
    registerCommand(JSON.parse(native.commandSpecs()));
    session = open(native, ctx, settings);
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
   * @param {{ status: boolean }} settings
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
        .then(() => showStatus(ctx, opened))
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
      preamble: null,
      offered: null,
      footer: settings.status,
      counting: false,
      stale: false,
    };
    opened.caughtUp = opened.engine.then(begin);
    goesOn();
    return opened;
  }

  /**
   * @param {ExtensionContext} ctx
   * @param {Session} session
   */
  async function showStatus(ctx, session) {
    // Counting takes its time in a long history, and turns may be short.
    session.stale = true;
    if (session.counting) return;
    session.counting = true;
    try {
      while (session.stale) {
        session.stale = false;
        await showCounts(ctx, session);
      }
    } finally {
      session.counting = false;
    }
  }

  /** @type {typeof showStatus} */
  async function showCounts(ctx, session) {
    try {
      const { text, notice } = unwrap(await (await session.engine).status());
      if (notice) tell(ctx, notice);
      if (session.footer) ctx.ui.setStatus("lcm", text);
    } catch {
      // Closed meanwhile, or the context went stale with its session: there is no footer to show it in.
    }
  }

  /**
   * Tells once in a project's life of sessions from before, to somebody who can do something about them.
   *
   * @param {ExtensionContext} ctx
   * @param {Session} session
   */
  async function offerImport(ctx, session) {
    if (!["tui", "rpc"].includes(modeOf(ctx))) return;
    const text = unwrap(await (await session.engine).offerImport(sessionFolders(session)));
    if (text) quietly(() => ctx.ui.notify(text, "info"));
  }

  /**
   * `/lcm import`: each slice on the engine's threads, with a line in the footer as long as it lasts.
   *
   * @param {ExtensionContext} ctx
   * @param {string} line
   */
  async function importSessions(ctx, line) {
    const asked = current();
    const engine = await ready(asked);
    /** @param {string | undefined} text */
    const show = (text) => quietly(() => ctx.ui.setStatus("lcm-import", text));
    const showing = setInterval(() => show(engine.importProgress() ?? undefined), 200);
    try {
      say(ctx, unwrap(await engine.import(line, sessionFolders(asked))));
    } catch (error) {
      say(ctx, messageOf(error), "error");
    } finally {
      clearInterval(showing);
      show(undefined);
    }
    void showStatus(ctx, asked);
  }

  /** Hands over what is new and shows it. @type {(event: unknown, ctx: ExtensionContext, session: Session) => Promise<void>} */
  const sync = async (_event, ctx, session) => {
    // Not awaited: it may fail as slowly as before.
    if (session.failed !== undefined && performance.now() > session.failed + REST_MS) session.reopen().catch((error) => tell(ctx, error));
    const engine = await session.engine;
    goOn(session, engine)?.catch((error) => tell(ctx, error));
    walk(session, engine);
    void showStatus(ctx, session);
  };

  /** The same, with what the store would not take earlier, on whatever branch. @type {typeof sync} */
  const syncAll = async (event, ctx, session) => {
    const engine = await session.engine;
    await sync(event, ctx, session);
    if (session.live && engine.known() < session.manager.getEntries().length) session.live = false;
    goOn(session, engine)?.catch((error) => tell(ctx, error));
  };

  pi.on("session_start", (_event, ctx) => {
    try {
      const id = ctx.sessionManager.getSessionId();
      // In rpc mode it comes twice for one session.
      if (started === id) return;
      started = id;
      start(ctx);
    } catch (error) {
      tell(ctx, error);
    }
  });

  // The entry stands one tick after its event.
  pi.on(
    "message_end",
    withSession((_event, _ctx, session) => {
      setImmediate(() => {
        session.engine.then((engine) => walk(session, engine)).catch(() => {});
      });
    }),
  );
  pi.on("turn_end", withSession(sync));
  pi.on("agent_end", withSession(syncAll));
  pi.on("session_tree", withSession(sync));

  pi.on(
    "before_agent_start",
    withSession(async (event, _ctx, session) => {
      await session.engine;
      if (!session.preamble) return undefined;
      /** @type {{ sections?: Record<string, string>, forceSystemPrompt?: string } | undefined} */
      const options = event.systemPromptOptions;
      if (options?.sections) options.sections.lcm = session.preamble;
      // Where another extension has put a whole prompt in their place, Pi shows no sections.
      if (options?.sections && options.forceSystemPrompt === undefined) return undefined;
      return { systemPrompt: `${event.systemPrompt}\n\n${session.preamble}` };
    }),
  );

  pi.on(
    "session_before_compact",
    withSession(async (event, ctx, session) => {
      session.offered = null;
      const engine = await ready(session);
      const { preparation, signal } = event;
      const request = {
        leafId: session.manager.getLeafId(),
        firstKeptEntryId: preparation.firstKeptEntryId,
        tokensBefore: preparation.tokensBefore,
        customInstructions: event.customInstructions,
        reason: event.reason,
        // A virtual model may not know its window; what Pi last talked to does.
        contextWindow: ctx.getContextUsage?.()?.contextWindow || ctx.model?.contextWindow || undefined,
        reserveTokens: preparation.settings?.reserveTokens,
      };
      const outcome = unwrap(
        await cancellable(engine, signal, (operation) =>
          engine.compact(operation, JSON.stringify(request), modelsOf(ctx, signal)),
        ),
      );
      if (outcome.kind === "cancelled") return { cancel: true };
      if (outcome.kind !== "compacted") return undefined;
      session.offered = { summary: outcome.compaction.summary, text: outcome.report, degraded: outcome.degraded };
      return { compaction: outcome.compaction };
    }),
  );

  pi.on(
    "session_compact",
    withSession(async (event, ctx, session) => {
      const engine = await session.engine;
      walk(session, engine);
      session.preamble = engine.preamble();
      const { offered } = session;
      session.offered = null;
      if (offered && event.compactionEntry?.summary === offered.summary) {
        const [text, type] = /** @type {const} */ ([`LCM: ${offered.text}`, offered.degraded ? "warning" : "info"]);
        lastReport = text;
        const show = () => quietly(() => ctx.ui.notify(text, type));
        if (modeOf(ctx) === "tui") setTimeout(show, REDRAWN_MS);
        else show();
      } else if (offered) {
        tell(ctx, "another extension's compaction took the place of this one's. Every message is kept all the same.");
      }
      void showStatus(ctx, session);
    }),
  );

  pi.on("session_shutdown", async (event, ctx) => {
    const left = session;
    session = undefined;
    if (left) {
      try {
        const engine = await (left.reopening ?? left.engine);
        // What was said while the past is still being handed over waits behind it; the next start would bring it too.
        if (!left.live) await Promise.race([left.caughtUp.catch(() => {}), patience()]);
        walk(left, engine);
        left.closing = true;
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

  /** @param {any[]} specs */
  function registerTools(specs) {
    for (const spec of specs) {
      pi.registerTool({
        ...spec,
        /** @type {import("@earendil-works/pi-coding-agent").ToolDefinition["execute"]} */
        execute: async (_id, params, signal) => {
          const asked = current();
          const engine = await ready(asked);
          const leaf = asked.manager.getLeafId() ?? undefined;
          // Pi shows the model what is thrown here.
          const content = unwrap(
            await cancellable(engine, signal, (operation) =>
              engine.callTool(operation, spec.name, JSON.stringify(params), leaf),
            ),
          );
          return { content, details: undefined };
        },
      });
    }
  }

  /** @param {{ name: string, help: string }[]} commands */
  function registerCommand(commands) {
    pi.registerCommand("lcm", {
      description: `Lossless history: ${commands.map(({ name }) => name).join(", ")}`,
      getArgumentCompletions: (prefix) => {
        // A list that is still open takes the Enter that should send the command.
        const open = commands.filter(({ name }) => name.startsWith(prefix) && name !== prefix);
        return open.length > 0 ? open.map(({ name, help }) => ({ value: name, label: name, description: help })) : null;
      },
      handler: async (line, ctx) => {
        try {
          const [, name, rest] = /^\s*(\S*)\s*([^]*)$/.exec(line) ?? [];
          if (name === "compact") {
            await compact(ctx, rest?.trim());
            // Elsewhere the notification of `session_compact` has said so.
            if (modeOf(ctx) === "print" && lastReport) say(ctx, lastReport);
            return;
          }
          if (name === "import") {
            const done = importSessions(ctx, rest ?? "");
            // The TUI takes nothing else until a command has ended.
            if (modeOf(ctx) === "tui") done.catch((error) => tell(ctx, error));
            else await done;
            return;
          }
          const asked = current();
          const engine = await ready(asked);
          say(ctx, unwrap(await engine.command(line, asked.manager.getLeafId() ?? undefined)));
        } catch (error) {
          say(ctx, messageOf(error), "error");
        }
      },
    });
  }

  /**
   * Without a command of that name Pi would take `/lcm …` for something to ask the model.
   *
   * @param {string} reason
   * @param {"info" | "error"} type
   */
  function registerOff(reason, type) {
    pi.registerCommand("lcm", { description: "Lossless history (off)", handler: async (_line, ctx) => say(ctx, reason, type) });
  }
}

/**
 * @param {Native} native
 * @param {ExtensionContext} ctx
 * @returns {{ settings: { enabled: boolean, status: boolean }, notice: string | null }}
 */
function settingsFor(native, ctx) {
  const sources = {
    agentDir: agentDir(),
    cwd: ctx.cwd,
    // A Pi that does not ask whether a project is trusted trusts them all.
    projectTrusted: ctx.isProjectTrusted?.() ?? true,
    environment: Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("LCM_"))),
  };
  return unwrap(native.loadSettings(JSON.stringify(sources)));
}

/**
 * The engine of a session, with everything said so far handed over.
 *
 * @param {Session} session
 */
async function ready(session) {
  const engine = await session.engine.catch(() => session.reopen());
  goOn(session, engine);
  await session.caughtUp;
  walk(session, engine);
  return engine;
}

/**
 * Goes on where handing over the past was broken off, once the store takes something again.
 *
 * @param {Session} session
 * @param {Engine} engine
 */
function goOn(session, engine) {
  if (session.live || session.catchingUp || session.closing || !engine.accepts()) return undefined;
  session.caughtUp = catchUp(session, engine);
  return session.caughtUp;
}

/**
 * Hands over the entries between the leaf and what the engine knows: the length of what is new, whatever made it new.
 *
 * @param {Session} session
 * @param {Engine} engine
 */
function walk(session, engine) {
  const { manager } = session;
  // While the past is being handed over, the end of the branch still hangs in the air.
  if (!session.live || manager.getSessionId() !== session.id) return;
  let id = manager.getLeafId();
  // Mostly the session went on by one entry. Pi stands still for this, so that is one call and nothing else.
  const next = id && id !== session.last ? manager.getEntry(id) : undefined;
  const goesOn = next?.parentId && next.parentId === session.last;
  session.last = id;
  if ((goesOn && engine.append(next.id, JSON.stringify(next))) || !engine.accepts()) return;
  /** @type {SessionEntry[]} */
  const fresh = [];
  while (id && !engine.knows(id)) {
    const entry = manager.getEntry(id);
    if (!entry) break;
    fresh.push(entry);
    id = entry.parentId;
  }
  if (fresh.length > 0) handOver(session, engine, fresh.reverse());
}

/**
 * Hands over what a session has beyond what is stored of it, all branches, in slices, each when the one before is stored.
 * What the store would not take is left for the next time.
 *
 * @param {Session} session
 * @param {Engine} engine
 */
async function catchUp(session, engine) {
  session.live = false;
  session.catchingUp = true;
  try {
    session.live = await handOverAll(session, engine);
  } finally {
    session.catchingUp = false;
  }
  walk(session, engine);
}

/**
 * @param {Session} session
 * @param {Engine} engine
 * @returns {Promise<boolean>} whether nothing was left over
 */
async function handOverAll(session, engine) {
  const all = session.manager.getEntries();
  for (let at = 0; at < all.length; at += SLICE.entries) {
    const asked = all.slice(at, at + SLICE.entries);
    const answer = await engine.missing(JSON.stringify(asked.map(({ id }) => id)));
    if (session.closing) return false;
    /** @type {number[]} */
    const missing = unwrap(answer);
    const entries = parentsFirst(session, engine, missing.map((place) => asked[place]));
    if (!(await handOverSlices(session, engine, entries))) return false;
  }
  return true;
}

/**
 * Pi appends, so that parents come first; in a file that was merged or edited by hand they may not, and to Pi it is all the
 * same.
 *
 * @param {Session} session
 * @param {Engine} engine
 * @param {SessionEntry[]} entries
 * @returns {SessionEntry[]} the same, each behind its parent
 */
function parentsFirst({ manager }, engine, entries) {
  /** @type {Set<SessionEntry>} */
  const ordered = new Set();
  const ids = new Set();
  for (const entry of entries) {
    /** @type {SessionEntry[]} */
    const chain = [];
    for (let next = /** @type {SessionEntry | undefined} */ (entry); next && !ordered.has(next) && !chain.includes(next); ) {
      chain.push(next);
      const { parentId } = next;
      next = parentId && !ids.has(parentId) && !engine.knows(parentId) ? manager.getEntry(parentId) : undefined;
    }
    for (const next of chain.reverse()) {
      ordered.add(next);
      ids.add(next.id);
    }
  }
  return [...ordered];
}

/**
 * @param {Session} session
 * @param {Engine} engine
 * @param {SessionEntry[]} entries parents before children
 * @returns {Promise<boolean>} whether nothing was left over
 */
async function handOverSlices(session, engine, entries) {
  /** @type {SessionEntry[]} */
  let slice = [];
  /** @type {string[]} */
  let texts = [];
  let characters = 0;
  for (const entry of entries) {
    const text = JSON.stringify(entry);
    slice.push(entry);
    texts.push(text);
    characters += text.length;
    if (characters < SLICE.characters && entry !== entries.at(-1)) continue;
    handOver(session, engine, slice, `[${texts.join()}]`);
    [slice, texts, characters] = [[], [], 0];
    await engine.flush();
    if (session.closing || !engine.accepts()) return false;
  }
  return true;
}

/**
 * @param {Session} session
 * @param {Engine} engine
 * @param {SessionEntry[]} entries parents before children
 * @param {string} json the same, written down
 */
function handOver({ manager }, engine, entries, json = JSON.stringify(entries)) {
  // Of an entry whose parent is nowhere Pi makes a root. Any other that lacks its parent in the store must wait for it.
  const orphans = entries.filter(({ parentId }) => parentId && !manager.getEntry(parentId)).map(({ id }) => id);
  unwrap(engine.handOver(json, orphans));
}

/**
 * Runs a call of the engine that `signal` can stop.
 *
 * @template T
 * @param {Engine} engine
 * @param {AbortSignal | undefined} signal
 * @param {(operation: number) => Promise<T>} call
 */
async function cancellable(engine, signal, call) {
  const operation = nextOperation++;
  const stop = () => engine.cancel(operation);
  if (signal?.aborted) stop();
  signal?.addEventListener("abort", stop, { once: true });
  try {
    return await call(operation);
  } finally {
    signal?.removeEventListener("abort", stop);
  }
}

/**
 * Pi's models, as the engine asks for them: what is known of one, with its key, and Pi's own call of it.
 *
 * @param {ExtensionContext} ctx
 * @param {AbortSignal | undefined} abort
 * @returns {(call: string) => Promise<string>}
 */
function modelsOf(ctx, abort) {
  // Taken at once: later the context may be stale.
  const { model: own, modelRegistry: registry } = ctx;
  return async (call) => {
    const { kind, model: name, request } = JSON.parse(call);
    const [, provider = "", id = ""] = name?.match(/^([^/]*)\/([^]*)$/) ?? [];
    const model = name ? registry.find(provider, id) : own;
    if (kind === "ask") return JSON.stringify(await askPi(registry, model, request, abort));
    if (!model) return JSON.stringify({ error: name ? "Pi does not know it" : "no model is chosen" });
    if (name && !registry.hasConfiguredAuth(model)) return JSON.stringify({ error: "it has no key" });
    const auth = await registry.getApiKeyAndHeaders(model);
    return JSON.stringify({ model, auth, oauth: registry.isUsingOAuth(model), ownStream: isExtensions(registry, model) });
  };
}

/**
 * Does another extension bring this model's provider, or the way its wire format is spoken?
 *
 * @param {any} registry whose shape differs between versions of Pi
 * @param {Model} model
 */
function isExtensions(registry, model) {
  if (registry.getRegisteredProviderIds) return registry.getRegisteredProviderIds().includes(model.provider);
  // Before 0.86 a provider with a call of its own took over its wire format for all others too.
  /** @type {Map<string, any>} */
  const theirs = registry.registeredProviders ?? new Map();
  return theirs.has(model.provider) || [...theirs.values()].some(({ api, streamSimple }) => streamSimple && api === model.api);
}

/**
 * One question, one assistant message; provider errors are messages too.
 *
 * @param {any} registry whose shape differs between versions of Pi
 * @param {Model | undefined} model
 * @param {{ system: string, prompt: string, maxTokens: number, timeoutMs: number }} request
 * @param {AbortSignal | undefined} abort
 */
async function askPi(registry, model, request, abort) {
  if (!model) throw new Error("no model is chosen");
  const content = [{ type: "text", text: request.prompt }];
  const context = { systemPrompt: request.system, messages: [{ role: "user", content, timestamp: Date.now() }] };
  const limit = AbortSignal.timeout(request.timeoutMs);
  const signal = abort ? AbortSignal.any([abort, limit]) : limit;
  const options = { maxTokens: request.maxTokens, signal, cacheRetention: "none" };
  if (registry.streamSimple) return registry.streamSimple(model, context, options).result();
  // Before 0.86 the registry only knew the keys.
  const auth = await registry.getApiKeyAndHeaders(model);
  if (!auth.ok) throw new Error(auth.error);
  const { completeSimple } = await hostAi();
  return completeSimple(model, context, { ...options, apiKey: auth.apiKey, headers: auth.headers });
}

/** Pi's model library, under the name that this Pi gives it. @returns {Promise<any>} */
async function hostAi() {
  const names = ["@earendil-works/pi-ai", "@mariozechner/pi-ai"];
  return import(names[0]).catch(() => import(names[1]));
}

/**
 * `/lcm compact`: Pi's own compaction, which asks us.
 *
 * @param {import("@earendil-works/pi-coding-agent").ExtensionCommandContext} ctx
 * @param {string | undefined} instructions
 * @returns {Promise<void>}
 */
async function compact(ctx, instructions) {
  // Pi would stop the agent for it; before 0.75 a tool's result would be lost with that.
  await ctx.waitForIdle();
  return new Promise((resolve, reject) => {
    ctx.compact({
      customInstructions: instructions || undefined,
      onComplete: () => resolve(),
      // The TUI shows by itself why it did not compact.
      onError: (error) => (modeOf(ctx) === "tui" ? resolve() : reject(error)),
    });
  });
}

/**
 * Shows what a command answers: on stdout in print mode, where that is the only way, else through Pi's UI.
 *
 * @param {ExtensionContext} ctx
 * @param {string} text
 * @param {"info" | "error"} [type]
 */
function say(ctx, text, type = "info") {
  quietly(() => {
    // Pi moves `process.stdout` to stderr in print mode; the file descriptor itself is still stdout.
    if (modeOf(ctx) === "print") fs.writeSync(1, `${text}\n`);
    else ctx.ui.notify(text, type);
  });
}

/**
 * How Pi talks with its user. Before 0.78 it did not say; then it is told by what it was started with.
 *
 * @param {ExtensionContext} ctx
 * @returns {"tui" | "rpc" | "json" | "print"}
 */
function modeOf(ctx) {
  if (ctx.mode) return ctx.mode;
  const asked = process.argv[process.argv.indexOf("--mode") + 1];
  if (ctx.hasUI) return asked === "rpc" ? "rpc" : "tui";
  return asked === "json" ? "json" : "print";
}

/** Where Pi keeps its sessions, as JSON. @param {Session} session */
function sessionFolders({ manager }) {
  return JSON.stringify({ sessionDir: manager.getSessionDir(), allSessions: path.join(agentDir(), "sessions") });
}

/** Where Pi keeps its settings and sessions. */
function agentDir() {
  const dir = process.env.PI_CODING_AGENT_DIR;
  if (!dir) return path.join(os.homedir(), ".pi", "agent");
  return dir.startsWith("~") ? path.join(os.homedir(), dir.slice(1)) : dir;
}

/**
 * What the engine answered.
 *
 * @param {string} answer
 * @throws {Error} with the engine's sentence, if it failed
 */
function unwrap(answer) {
  const { ok, error } = JSON.parse(answer);
  if (error) throw new Error(error.message);
  return ok;
}

/** @param {unknown} error */
function messageOf(error) {
  return error instanceof Error ? error.message : String(error);
}

/** A while that does not keep Pi from leaving. @returns {Promise<void>} */
function patience() {
  return new Promise((resolve) => setTimeout(resolve, PATIENCE_MS).unref());
}

/** @param {() => void} action that may find its context stale */
function quietly(action) {
  try {
    action();
  } catch {
    // The session it belonged to is gone, and its screen with it.
  }
}
