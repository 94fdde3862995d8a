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

/**
 * One session of Pi with its engine.
 *
 * @typedef {object} Session
 * @property {string} id Pi's session id
 * @property {ExtensionContext["sessionManager"]} manager the session's tree
 * @property {Promise<Engine>} engine rejects when the store can't be opened
 * @property {Promise<void>} caughtUp when what was said before we were here is handed over
 * @property {boolean} live entries may be handed over one by one: we have caught up
 * @property {boolean} closing nothing more is to be handed over
 * @property {string | null} preamble what the system prompt gets; changes at compactions only
 * @property {{ text: string, degraded: boolean } | null} report what the compaction under way took
 */

const require = createRequire(import.meta.url);

/**
 * Characters of JSON handed over at once when a session is seen for the first time, and entries looked through; between
 * slices Pi's own work goes on.
 */
const SLICE = { characters: 256 * 1024, entries: 500 };

/** In the TUI Pi draws its transcript anew after a compaction; what is said before that is wiped out with the old one. */
const REDRAWN_MS = 200;

/** Numbers by which running calls are stopped. */
let nextOperation = 1;

/**
 * The engine, for scripts: `const { Engine } = loadEngine()`.
 *
 * @returns {Native}
 * @throws {Error} a sentence that names the missing file and the remedy
 */
export function loadEngine() {
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
  const report = /** @type {any} */ (process.report?.getReport());
  return `${platform}-${arch}-${report?.header?.glibcVersionRuntime ? "gnu" : "musl"}`;
}

/**
 * Wires the extension into Pi.
 *
 * @param {ExtensionAPI} pi
 */
export default function losslessContext(pi) {
  /** @type {Native} */
  let native;
  try {
    native = loadEngine();
  } catch (error) {
    const reason = `pi-lossless-context is off: ${messageOf(error)}. Pi compacts in its own way until then.`;
    // Without a command of that name Pi would take `/lcm …` for something to ask the model.
    pi.registerCommand("lcm", { description: "Lossless history (off)", handler: async (_line, ctx) => say(ctx, reason, "error") });
    let told = false;
    pi.on("session_start", (_event, ctx) => {
      if (!told) quietly(() => ctx.ui.notify(reason, "error"));
      told = true;
    });
    return;
  }

  /** @type {Session | undefined} */
  let session;
  /** What the last compaction took. @type {string | undefined} */
  let lastReport;
  /** Failures the user has heard of. @type {Set<string>} */
  const told = new Set();

  /**
   * @param {ExtensionContext} ctx
   * @param {unknown} error
   */
  function tell(ctx, error) {
    const message = `pi-lossless-context: ${messageOf(error)}`;
    if (told.has(message)) return;
    told.add(message);
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

  /** @param {ExtensionContext} ctx */
  function open(ctx) {
    const manager = ctx.sessionManager;
    const id = manager.getSessionId();
    // In rpc mode `session_start` comes twice for one session.
    if (session?.id === id) return session;
    const options = {
      cwd: ctx.cwd,
      agentDir: agentDir(),
      sessionId: id,
      sessionFile: manager.getSessionFile(),
      parentSession: manager.getHeader()?.parentSession,
      environment: Object.fromEntries(Object.entries(process.env).filter(([name]) => name.startsWith("LCM_"))),
    };
    /** @type {Session} */
    const opened = {
      id,
      manager,
      engine: native.Engine.open(JSON.stringify(options)),
      caughtUp: Promise.resolve(),
      live: false,
      closing: false,
      preamble: null,
      report: null,
    };
    opened.caughtUp = opened.engine.then(async (engine) => {
      opened.preamble = engine.preamble();
      const notice = engine.notice();
      if (notice) tell(ctx, notice);
      await catchUp(opened, engine);
    });
    opened.caughtUp.catch((error) => tell(ctx, error));
    return opened;
  }

  /**
   * @param {ExtensionContext} ctx
   * @param {Session} session
   */
  async function showStatus(ctx, session) {
    try {
      const { text, notice } = unwrap(await (await session.engine).status());
      if (notice) tell(ctx, notice);
      ctx.ui.setStatus("lcm", text);
    } catch {
      // Closed meanwhile, or the context went stale with its session: there is no footer to show it in.
    }
  }

  /** Hands over what is new and shows it. @type {(event: unknown, ctx: ExtensionContext, session: Session) => Promise<void>} */
  const sync = async (_event, ctx, session) => {
    walk(session, await session.engine);
    void showStatus(ctx, session);
  };

  /** The same, with what the store would not take earlier, on whatever branch. @type {typeof sync} */
  const syncAll = async (event, ctx, session) => {
    const engine = await session.engine;
    await sync(event, ctx, session);
    if (!engine.accepts() || engine.known() >= session.manager.getEntries().length) return;
    session.caughtUp = session.caughtUp.catch(() => {}).then(() => catchUp(session, engine));
    session.caughtUp.catch((error) => tell(ctx, error));
  };

  pi.on("session_start", (_event, ctx) => {
    try {
      const opened = open(ctx);
      session = opened;
      opened.caughtUp.then(() => showStatus(ctx, opened)).catch(() => {});
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
      const sections = event.systemPromptOptions?.sections;
      if (!sections) return { systemPrompt: `${event.systemPrompt}\n\n${session.preamble}` };
      sections.lcm = session.preamble;
      return undefined;
    }),
  );

  pi.on(
    "session_before_compact",
    withSession(async (event, ctx, session) => {
      const engine = await ready(session);
      const { preparation, signal } = event;
      const request = {
        leafId: session.manager.getLeafId(),
        firstKeptEntryId: preparation.firstKeptEntryId,
        tokensBefore: preparation.tokensBefore,
        customInstructions: event.customInstructions,
        reason: event.reason,
        contextWindow: ctx.model?.contextWindow,
        reserveTokens: preparation.settings?.reserveTokens,
      };
      const outcome = unwrap(
        await cancellable(engine, signal, (operation) =>
          engine.compact(operation, JSON.stringify(request), asker(ctx, signal)),
        ),
      );
      if (outcome.kind === "cancelled") return { cancel: true };
      if (outcome.kind !== "compacted") return undefined;
      session.report = { text: outcome.report, degraded: outcome.degraded };
      return { compaction: outcome.compaction };
    }),
  );

  pi.on(
    "session_compact",
    withSession(async (event, ctx, session) => {
      const engine = await session.engine;
      walk(session, engine);
      session.preamble = engine.preamble();
      const { report } = session;
      session.report = null;
      if (event.fromExtension && report) {
        const [text, type] = /** @type {const} */ ([`LCM: ${report.text}`, report.degraded ? "warning" : "info"]);
        lastReport = text;
        const show = () => quietly(() => ctx.ui.notify(text, type));
        if (ctx.mode === "tui") setTimeout(show, REDRAWN_MS);
        else show();
      }
      void showStatus(ctx, session);
    }),
  );

  pi.on("session_shutdown", async (_event, ctx) => {
    const closing = session;
    session = undefined;
    if (!closing) return;
    try {
      const engine = await closing.engine;
      walk(closing, engine);
      closing.closing = true;
      await engine.close();
    } catch (error) {
      tell(ctx, error);
    }
  });

  for (const spec of JSON.parse(native.toolSpecs())) {
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

  /** @type {{name: string, help: string}[]} */
  const commands = JSON.parse(native.commandSpecs());
  pi.registerCommand("lcm", {
    description: "Lossless history: help, stats, tree, compact",
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
          if (ctx.mode === "print" && lastReport) say(ctx, lastReport);
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
 * The engine of a session, with everything said so far handed over.
 *
 * @param {Session} session
 */
async function ready(session) {
  const engine = await session.engine;
  await session.caughtUp;
  walk(session, engine);
  return engine;
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
  if (!session.live || manager.getSessionId() !== session.id || !engine.accepts()) return;
  /** @type {SessionEntry[]} */
  const fresh = [];
  let id = manager.getLeafId();
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
  const entries = session.manager.getEntries();
  const missing = engine.known() !== entries.length;
  /** @type {SessionEntry[]} */
  let slice = [];
  let characters = 0;
  for (let at = 0; missing && at < entries.length; at++) {
    const entry = entries[at];
    if (!engine.knows(entry.id)) {
      slice.push(entry);
      characters += JSON.stringify(entry).length;
    }
    const full = characters > SLICE.characters || at % SLICE.entries === SLICE.entries - 1;
    if (!full && at < entries.length - 1) continue;
    if (slice.length > 0) handOver(session, engine, slice);
    slice = [];
    characters = 0;
    await engine.flush();
    if (session.closing || !engine.accepts()) return;
  }
  session.live = true;
  walk(session, engine);
}

/**
 * @param {Session} session
 * @param {Engine} engine
 * @param {SessionEntry[]} entries parents before children
 */
function handOver({ manager }, engine, entries) {
  // Of an entry whose parent is nowhere Pi makes a root. Any other that lacks its parent in the store must wait for it.
  const orphans = entries.filter(({ parentId }) => parentId && !manager.getEntry(parentId)).map(({ id }) => id);
  unwrap(engine.handOver(JSON.stringify(entries), orphans));
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
 * Pi's own model call, as the engine asks for it: a request in, the assistant message out, both as JSON. Provider errors
 * are messages too.
 *
 * @param {ExtensionContext} ctx
 * @param {AbortSignal} abort
 * @returns {(request: string) => Promise<string>}
 */
function asker(ctx, abort) {
  const { model, modelRegistry } = ctx;
  return async (json) => {
    const request = JSON.parse(json);
    if (!model) throw new Error("no model is chosen");
    const context = {
      systemPrompt: request.system,
      messages: [
        { role: /** @type {const} */ ("user"), content: [{ type: /** @type {const} */ ("text"), text: request.prompt }], timestamp: Date.now() },
      ],
    };
    const signal = AbortSignal.any([abort, AbortSignal.timeout(request.timeoutMs)]);
    const maxTokens = Math.min(request.maxTokens, model.maxTokens || request.maxTokens);
    const options = { maxTokens, signal, cacheRetention: /** @type {const} */ ("none") };
    return JSON.stringify(await modelRegistry.streamSimple(model, context, options).result());
  };
}

/**
 * `/lcm compact`: Pi's own compaction, which asks us.
 *
 * @param {import("@earendil-works/pi-coding-agent").ExtensionCommandContext} ctx
 * @param {string | undefined} instructions
 * @returns {Promise<void>}
 */
function compact(ctx, instructions) {
  return new Promise((resolve, reject) => {
    ctx.compact({
      customInstructions: instructions || undefined,
      onComplete: () => resolve(),
      // The TUI shows by itself why it did not compact.
      onError: (error) => (ctx.mode === "tui" ? resolve() : reject(error)),
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
    if (ctx.mode === "print") fs.writeSync(1, `${text}\n`);
    else ctx.ui.notify(text, type);
  });
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

/** @param {() => void} action that may find its context stale */
function quietly(action) {
  try {
    action();
  } catch {
    // The session it belonged to is gone, and its screen with it.
  }
}
