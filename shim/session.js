/**
 * One session of Pi and all that the extension knows of it: made when the session starts, disposed when it ends.
 *
 * What is kept for one purpose stands in an object of its own that the session holds.
 */

import { Boundary } from "./boundary.js";
import { ChangedFiles } from "./changed-files.js";
import { registerCommands, registerOff, repeatAnswer } from "./commands.js";
import { Compaction } from "./compaction.js";
import { Context } from "./context.js";
import { Footer } from "./footer.js";
import { LastRequest } from "./last-request.js";
import { loadEngine } from "./loader.js";
import { CacheMarker } from "./marker.js";
import { messageOf, sessionFolders, settingsFor, timeout, unwrap } from "./pi.js";
import { shared } from "./shared.js";
import { Stubs } from "./stubs.js";
import { Sync } from "./sync.js";
import { registerTools } from "./tools.js";
import { isAttended, modeOf, notify, notifyRedrawn } from "./ui.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionAPI} ExtensionAPI */
/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("../index.d.ts").Native} Native */
/** @typedef {import("../index.d.ts").Engine} Engine */

/** Rest between two attempts to open a store that can't be opened. */
const REST_MS = 1000;

/** The report on a session in which the store can't go by Pi's ids. */
const DUPLICATE_IDS = `several entries of this session's file have one id, and Pi shows only the last of them. All are kept and can be found, \
but Pi compacts this session by itself: repair its file, or continue in a new session`;

const OFF = "pi-lossless-context is switched off by its setting `enabled`: /lcm settings enabled=true switches it on.";

export class Session {
  /** Whether there is something for us to do, and the session has not ended. */
  isOpen = false;
  /** Whether nothing more may be handed over. */
  isClosing = false;
  /** The addon; nothing until it is loaded. @type {Native} */
  native = /** @type {any} */ (undefined);
  /** @type {import("./pi.js").Settings} */
  settings = /** @type {any} */ (undefined);
  /** Rejects when the store can't be opened. @type {Promise<Engine>} */
  engine = /** @type {any} */ (undefined);
  /** Calls of the engine so far that can be stopped: their numbers. */
  operations = 0;
  /** Stops the model calls that nobody waits for. */
  leaving = new AbortController();
  /** What the system prompt gets from the next run on, unless a request comes before that. @type {string | null} */
  nextPreamble = null;
  /** Reports during a compaction: the TUI wipes them out when it redraws the transcript. @type {[string, "info" | "warning"][] | undefined} */
  repeats;

  /** What the system prompt gets; changes only with what stands before all messages. @type {string | null} */
  #preamble = null;
  /** What was reported in this session. @type {Set<string>} */
  #reported = new Set();
  /** @type {Promise<Engine> | null} */
  #reopening = null;
  /** When opening failed last. @type {number | undefined} */
  #failedAt;

  /**
   * @param {ExtensionAPI} pi
   * @param {ExtensionContext} ctx of any event of the session: each looks its fields up when they are asked for
   */
  constructor(pi, ctx) {
    this.pi = pi;
    this.ctx = ctx;
    this.manager = ctx.sessionManager;
    this.id = this.manager.getSessionId();
    this.sync = new Sync(this);
    this.context = new Context(this);
    this.compaction = new Compaction(this);
    this.boundary = new Boundary(this);
    this.stubs = new Stubs(this);
    this.footer = new Footer(this);
    this.changedFiles = new ChangedFiles(this);
    this.lastRequest = new LastRequest(this.manager);
    this.marker = new CacheMarker();
  }

  /**
   * Reports a failure to the user, once.
   *
   * @param {unknown} error
   * @param {Set<string>} [known] what was reported before
   * @param {"info" | "warning"} [type]
   */
  report(error, known = this.#reported, type = "warning") {
    const message = `pi-lossless-context: ${messageOf(error)}`;
    if (known.has(message)) return;
    known.add(message);
    this.repeats?.push([message, type]);
    notify(this.ctx, message, type);
  }

  /** Repeats what was reported during a compaction, where the TUI has wiped it out. */
  repeatReports() {
    const repeats = this.repeats ?? [];
    this.repeats = undefined;
    if (modeOf(this.ctx) === "tui") for (const [text, type] of repeats) notifyRedrawn(this.ctx, text, type);
  }

  /**
   * Runs `work`; where it fails, that is reported, and Pi does what it does alone.
   *
   * @template R
   * @param {() => Promise<R> | R} work
   */
  async guard(work) {
    try {
      return await work();
    } catch (error) {
      this.report(error);
      return undefined;
    }
  }

  /**
   * Finds out whether there is anything for us to do in this session, and begins. What Pi shows the model, tools and prompt, is
   * touched from here on and not before: where we have nothing to do, Pi must be as it is alone.
   */
  start() {
    return this.guard(() => {
      this.#begin();
      repeatAnswer(this.ctx);
    });
  }

  #begin() {
    const { ctx } = this;
    try {
      this.native = loadEngine();
    } catch (error) {
      const reason = `pi-lossless-context is off: ${messageOf(error)}. Until this is fixed, Pi compacts by itself.`;
      notify(ctx, reason, "error");
      return registerOff(this, reason, "error");
    }
    const rival = this.#rival();
    if (rival) {
      const others = `another extension (${rival}) already provides tools with the same names`;
      return this.report(`${others}, so this one does nothing. Remove one of them.`, shared.reported);
    }
    const { settings, notice } = settingsFor(this.native, ctx);
    this.settings = settings;
    if (notice) this.report(notice, shared.reported);
    if (!settings.enabled) return registerOff(this, OFF, "info");
    registerTools(this);
    registerCommands(this);
    this.isOpen = true;
    this.engine = this.#open();
    this.#catchUp(this.engine.then((engine) => this.#opened(engine)));
    this.changedFiles.check();
    this.stubs.start();
  }

  /** Who else has a tool of ours; only asked before we register them. */
  #rival() {
    /** @type {{ name: string }[]} */
    const specs = JSON.parse(this.native.toolSpecs());
    const theirs = this.pi.getAllTools().find(({ name }) => specs.some((spec) => spec.name === name));
    return theirs && (theirs.sourceInfo?.path ?? theirs.name);
  }

  async #open() {
    const { ctx, manager, settings } = this;
    const options = {
      cwd: ctx.cwd,
      sessionId: this.id,
      sessionFile: manager.getSessionFile(),
      parentSession: manager.getHeader()?.parentSession,
      settings,
    };
    // One after the other: whoever opens a database while another lets go of it may find it locked.
    await Promise.allSettled(shared.closings);
    try {
      return await this.native.Engine.open(JSON.stringify(options));
    } catch (error) {
      this.#failedAt = performance.now();
      throw new Error(`${messageOf(error)}. Until this is fixed, nothing is stored and Pi compacts by itself.`);
    }
  }

  /** Tries again to open the store. */
  #reopen() {
    const reopen = async () => {
      const engine = await this.#open();
      this.#failedAt = undefined;
      this.engine = Promise.resolve(engine);
      this.#catchUp(this.#opened(engine));
      return engine;
    };
    return (this.#reopening ??= reopen().finally(() => (this.#reopening = null)));
  }

  /** @param {Engine} engine that was just opened */
  async #opened(engine) {
    this.#preamble = engine.preamble();
    const notice = engine.notice();
    if (notice) this.report(notice);
    await this.sync.start(engine);
    if (this.sync.hasDuplicates) this.report(DUPLICATE_IDS);
  }

  /** @param {Promise<void>} caughtUp */
  #catchUp(caughtUp) {
    this.sync.caughtUp = caughtUp;
    caughtUp.catch((error) => this.report(error));
    caughtUp
      .then(() => this.footer.update())
      .then(() => this.#offerImport())
      .catch(() => {});
  }

  /** Tells once in a project's life of sessions from before, to somebody who can do something about them. */
  async #offerImport() {
    if (!isAttended(this.ctx)) return;
    const text = unwrap(await (await this.engine).offerImport(JSON.stringify(sessionFolders(this.manager))));
    if (text) notify(this.ctx, text, "info");
  }

  /** The engine, with everything said so far handed over. */
  async ready() {
    if (!this.isOpen) throw new Error("no session is open, so there is no history to search");
    const engine = await this.engine.catch(() => this.#reopen());
    this.sync.resume();
    await this.sync.caughtUp;
    this.sync.walk();
    return engine;
  }

  /** Goes by other settings from here on. @param {import("./pi.js").Settings} settings */
  async reconfigure(settings) {
    unwrap((await this.engine).reconfigure(JSON.stringify(settings)));
    this.settings = settings;
    void this.footer.update();
  }

  /** Hands over what is new and shows it. */
  async #update() {
    // Not awaited: it may fail as slowly as before.
    if (this.#failedAt !== undefined && performance.now() > this.#failedAt + REST_MS) this.#reopen().catch((error) => this.report(error));
    await this.engine;
    this.sync.resume()?.catch((error) => this.report(error));
    this.sync.walk();
    void this.footer.update();
  }

  /** Makes up for what failed, whether it is given a rest or not. */
  async #retry() {
    await this.#reopening?.catch(() => {});
    if (this.#failedAt !== undefined) return void (await this.#reopen());
    await this.engine;
    await this.sync.retry();
  }

  /** @param {{ message?: any, entries?: import("./boundary.js").Draft[] }} event @returns {Promise<any>} */
  async atTurnEnd(event) {
    this.lastRequest.noteAnswer(event.message ?? {});
    await this.#update();
    const usage = this.ctx.getContextUsage?.();
    const appended = this.boundary.atTurnEnd(event, usage).then((entries) => {
      this.stubs.show();
      if (!entries) this.boundary.prepare(usage).catch(() => {});
      return entries;
    });
    // A Pi that takes no entries has nothing to wait for, and would end before others have heard of the run's end.
    return this.boundary.takesEntries ? appended : void appended.catch((error) => this.report(error));
  }

  /** The same once the agent is done, or the user is on another branch; with what the store would not take earlier. @param {{ messages?: any[] }} event */
  async atAgentEnd(event) {
    // Not awaited: it may fail as slowly as before.
    this.#retry().catch((error) => this.report(error));
    await this.#update();
    this.boundary.prepare().catch(() => {});
    await this.compaction.settle();
    if (isAttended(this.ctx)) await this.boundary.atAgentEnd(event);
  }

  /** @param {{ systemPrompt: string, systemPromptOptions?: { sections?: Record<string, string>, forceSystemPrompt?: string } }} event */
  async beforePrompt({ systemPrompt, systemPromptOptions: options }) {
    await this.engine;
    await this.boundary.beforePrompt();
    this.stubs.show();
    const message = await this.changedFiles.message();
    // Where the run went on after the compaction, the prefix is in the provider's cache by now, and worth more than these words.
    this.#preamble = this.nextPreamble ?? this.#preamble;
    if (this.#preamble && options?.sections) options.sections.lcm = this.#preamble;
    // Where another extension has put a whole prompt in their place, Pi shows no sections.
    const isShown = !this.#preamble || (options?.sections && options.forceSystemPrompt === undefined);
    if (isShown) return message && { message };
    return { ...(message && { message }), systemPrompt: `${systemPrompt}\n\n${this.#preamble}` };
  }

  /** @param {any} payload that Pi is about to send */
  beforeRequest(payload) {
    this.nextPreamble = null;
    const { from } = this.context.begin();
    const marked = this.settings.context === "lean" ? this.marker.mark(payload, from !== undefined) : undefined;
    this.lastRequest.note(marked ?? payload, this.ctx.model, from);
    return marked;
  }

  /** Hands over the rest and lets go of the store. @param {string} reason that Pi gives */
  async dispose(reason) {
    if (this.isOpen) await this.guard(() => this.#close());
    // What is typed before another session is there, Pi takes for something said in the one that is going.
    if (!["new", "resume", "fork", "reload"].includes(reason)) await Promise.allSettled(shared.closings);
  }

  async #close() {
    this.isOpen = false;
    const engine = await (this.#reopening ?? this.engine);
    // What was said while the past is still being handed over waits behind it; the next start would bring it too.
    if (!this.sync.isLive) await Promise.race([this.sync.caughtUp.catch(() => {}), timeout()]);
    this.sync.walk();
    // What was said on a branch that was left, with no run since, and what failed.
    if (this.sync.isBehind) await Promise.race([this.sync.retry().catch(() => {}), timeout()]);
    this.isClosing = true;
    // A call of Pi's that nobody waits for any more would keep it from leaving.
    this.leaving.abort();
    const closed = engine.close().catch(() => {});
    shared.closings.add(closed);
    void closed.then(() => shared.closings.delete(closed));
  }
}
