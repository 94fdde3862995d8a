/**
 * A session of Pi and all of its state: created when the session starts, disposed of when it ends.
 *
 * State for a single purpose is in a separate object that the session holds.
 */

import { Boundary } from "./boundary.js";
import { ChangedFiles } from "./changed-files.js";
import { registerCommands, registerOff, repeatAnswer } from "./commands.js";
import { Compaction } from "./compaction.js";
import { Context } from "./context.js";
import { Footer } from "./footer.js";
import { LastRequest } from "./last-request.js";
import { loadEngine } from "./loader.js";
import { canRecall, isAbsurd, messageOf, passCompaction, recordedSection, sessionFolders, settingsFor, timeout, unwrap } from "./pi.js";
import { shared } from "./shared.js";
import { Handover } from "./handover.js";
import { Thinking } from "./thinking.js";
import { registerTools } from "./tools.js";
import { isAttended, notify, notifyRedrawn } from "./ui.js";

/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionAPI} ExtensionAPI */
/** @typedef {import("@earendil-works/pi-coding-agent").ExtensionContext} ExtensionContext */
/** @typedef {import("../index.d.ts").Native} Native */
/** @typedef {import("../index.d.ts").Engine} Engine */

/** Pause between two attempts to open the store, in ms. */
const REST_MS = 1000;

/** The report on a session in which Pi's ids are ambiguous. */
const DUPLICATE_IDS = `several entries of this session's file have one id, and Pi shows only the last of them. All are kept and can be found, \
but Pi compacts this session by itself: repair its file, or continue in a new session`;

/** The report on a session whose file was changed by others. */
const EDITED = `this session's file was edited since it was stored. From now on, summaries and the model have what Pi shows; the earlier text \
stays stored and can be found`;

const ABSURD = `the provider reports more tokens for a request than any can use. Figures of this extension leave such reports out; Pi's own total of \
the session has them`;

const OFF = "pi-lossless-context is switched off by its setting `enabled`: /lcm settings enabled=true switches it on.";

export class Session {
  /** Whether the extension is active in this session, and the session has not ended. */
  isOpen = false;
  /** Whether the extension does nothing at all: another one has its tools. Switched off, it still takes reasoning out that its tools were part of. */
  isLeftAlone = false;
  /** Whether no more entries may be handed over. */
  isClosing = false;
  /** The addon; undefined until it is loaded. @type {Native} */
  native = /** @type {any} */ (undefined);
  /** @type {import("./pi.js").Settings} */
  settings = /** @type {any} */ (undefined);
  /** Rejects when the store can't be opened. @type {Promise<Engine>} */
  engine = /** @type {any} */ (undefined);
  /** Number of cancelable engine calls so far; each call's number is its id. */
  operations = 0;
  /** Aborts background model calls. */
  leaving = new AbortController();
  /** Reports during a compaction, which the TUI erases when it redraws the transcript. @type {[string, "info" | "warning"][] | undefined} */
  repeats;

  /** The system prompt's addition: it never changes. */
  #preamble = "";
  /** Reports shown in this session. @type {Set<string>} */
  #reported = new Set();
  /** @type {Promise<Engine> | null} */
  #reopening = null;
  /** When opening last failed. @type {number | undefined} */
  #failedAt;

  /**
   * @param {ExtensionAPI} pi
   * @param {ExtensionContext} ctx of any event of the session; its fields are always current
   */
  constructor(pi, ctx) {
    this.pi = pi;
    this.ctx = ctx;
    this.manager = ctx.sessionManager;
    this.id = this.manager.getSessionId();
    this.handover = new Handover(this);
    this.context = new Context(this);
    this.compaction = new Compaction(this);
    this.boundary = new Boundary(this);
    this.footer = new Footer(this);
    this.changedFiles = new ChangedFiles(this);
    this.lastRequest = new LastRequest(this.manager);
    this.thinking = new Thinking(this);
  }

  /**
   * Reports a failure to the user, once.
   *
   * @param {unknown} error
   * @param {Set<string>} [known] earlier reports
   * @param {"info" | "warning"} [type]
   * @param {typeof notify} [show]
   */
  report(error, known = this.#reported, type = "warning", show = notify) {
    // The store is being opened anew.
    if (/** @type {any} */ (error)?.code === "LCM_CLOSED") return;
    const message = `pi-lossless-context: ${messageOf(error)}`;
    if (known.has(message)) return;
    known.add(message);
    this.repeats?.push([message, type]);
    show(this.ctx, message, type);
  }

  /** Repeats the reports that the TUI has erased during a compaction. */
  repeatReports() {
    const repeats = this.repeats ?? [];
    this.repeats = undefined;
    if (this.ctx.mode === "tui") for (const [text, type] of repeats) notifyRedrawn(this.ctx, text, type);
  }

  /**
   * Runs `work`. A failure is reported, and Pi continues as it would without us.
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
   * Finds out whether the extension is to be active, and starts. Tools and prompt are changed from here on and not before: an
   * inactive extension leaves no trace.
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
      notifyRedrawn(ctx, reason, "error");
      return registerOff(this, reason, "error");
    }
    const rival = this.#rival();
    if (rival) {
      this.isLeftAlone = true;
      const others = `another extension (${rival}) already provides tools with the same names`;
      return this.report(`${others}, so this one does nothing. Remove one of them.`, shared.reported, "warning", notifyRedrawn);
    }
    const { settings, notice } = settingsFor(this.native, ctx);
    this.settings = settings;
    // Pi draws a resumed session below what is shown at its start.
    if (notice) this.report(notice, shared.reported, "warning", notifyRedrawn);
    if (!settings.enabled) return registerOff(this, OFF, "info");
    registerTools(this);
    registerCommands(this);
    this.isOpen = true;
    this.engine = this.#open();
    this.#catchUp(this.engine.then((engine) => this.#opened(engine)));
    this.changedFiles.check();
  }

  /** Another extension with tools of the same names; to be called before ours are registered. */
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
    // One after the other: a database that is being closed may still be locked.
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
      const before = await this.engine.catch(() => undefined);
      const engine = await this.#open();
      if (before) engine.continueFrom(before);
      this.#failedAt = undefined;
      this.engine = Promise.resolve(engine);
      this.#catchUp(this.#opened(engine));
      return engine;
    };
    return (this.#reopening ??= reopen().finally(() => (this.#reopening = null)));
  }

  /** Opens the store anew, unless that was done: another file takes the place of that of `engine`. @param {Engine} engine */
  async renew(engine) {
    const opened = await this.engine.catch(() => engine);
    if (opened !== engine || this.#reopening) return;
    await engine.close();
    await this.#reopen().catch((error) => this.report(error));
  }

  /** @param {Engine} engine that was just opened */
  async #opened(engine) {
    this.#preamble = recordedSection(this.manager) ?? engine.preamble();
    const notice = engine.notice();
    if (notice) this.report(notice);
    await this.handover.start(engine);
    if (this.handover.hasDuplicates) this.report(DUPLICATE_IDS);
    if (this.handover.edited > 0) this.report(EDITED);
  }

  /** @param {Promise<void>} caughtUp */
  #catchUp(caughtUp) {
    this.handover.caughtUp = caughtUp;
    caughtUp.catch((error) => this.report(error));
    caughtUp
      .then(() => this.#catchUpElsewhere())
      .then(() => this.#offerImport())
      .catch(() => {});
  }

  /** Imports new messages of other agents about this project, and syncs with other machines, in the background, if the user wants that. */
  async #catchUpElsewhere() {
    const read = (await this.engine).catchUp(JSON.stringify(sessionFolders(this.manager)));
    read.then(unwrap).catch((error) => this.report(error));
  }

  /** Offers to import older sessions, once per project and only to a user who can answer. */
  async #offerImport() {
    if (!isAttended(this.ctx)) return;
    const text = unwrap(await (await this.engine).offerImport(JSON.stringify(sessionFolders(this.manager))));
    if (text) notify(this.ctx, text, "info");
  }

  /** The engine, once all entries so far are handed over. */
  async ready() {
    if (!this.isOpen) throw new Error("no session is open, so there is no history to search");
    const engine = await this.engine.catch(() => this.#reopen());
    this.handover.resume();
    await this.handover.caughtUp;
    this.handover.walk();
    return engine;
  }

  /** Applies new settings. @param {import("./pi.js").Settings} settings */
  async reconfigure(settings) {
    this.settings = settings;
    // Without one, the settings may be what mends that.
    const engine = await this.engine.catch(() => undefined);
    if (engine) unwrap(engine.reconfigure(JSON.stringify(settings)));
    void this.footer.update();
  }

  /** Hands over new entries. */
  async #update() {
    // Not awaited: it may take long to fail.
    if (this.#failedAt !== undefined && performance.now() > this.#failedAt + REST_MS) this.#reopen().catch((error) => this.report(error));
    await this.engine;
    this.handover.resume()?.catch((error) => this.report(error));
    this.handover.walk();
  }

  /** Updates the footer, and retries at once what failed. @param {boolean} isMoved whether entries may be on a branch that was left */
  async #retry(isMoved) {
    await this.#reopening?.catch(() => {});
    if (this.#failedAt !== undefined) return void (await this.#reopen());
    const engine = await this.engine;
    await this.footer.update();
    if (isMoved || engine.lacks()) await this.handover.retry();
  }

  /** @param {import("@earendil-works/pi-coding-agent").TurnEndEvent} event */
  async atTurnEnd(event) {
    if (event.message.role === "assistant" && isAbsurd(event.message.usage)) this.report(ABSURD);
    this.lastRequest.noteAnswer(event.message);
    await this.#update();
    this.footer.updateSoon();
    return this.boundary.atTurnEnd(event);
  }

  /** The user has switched branches. */
  atTree() {
    this.boundary.moved();
    return this.atAgentEnd(true);
  }

  /** When the agent has ended: also updates the footer, and retries what failed. */
  async atAgentEnd(isMoved = false) {
    // Not awaited: it may take long to fail.
    this.#retry(isMoved).catch((error) => this.report(error));
    await this.#update();
    await this.compaction.settle();
  }

  /** @param {{ systemPrompt: string, systemPromptOptions?: { sections?: Record<string, string>, forceSystemPrompt?: string } }} event */
  async beforePrompt({ systemPrompt, systemPromptOptions: options }) {
    const engine = await this.engine;
    await this.guard(() => passCompaction(this, engine));
    const message = await this.changedFiles.message();
    // It names tools that the user may have excluded.
    const shown = () => (canRecall(this.pi) ? this.#preamble : "");
    const preamble = shown();
    /** A later extension may change it. @type {string | undefined} */
    let changed;
    // Read when every extension is done: a later one may also take the tools away.
    const section = { get: () => shown() && (changed ?? preamble), set: (/** @type {string} */ text) => (changed = text), enumerable: true, configurable: true };
    if (preamble && options?.sections) Object.defineProperty(options.sections, "lcm", section);
    // If another extension replaces the whole prompt, Pi shows no sections.
    const isShown = !preamble || (options?.sections && options.forceSystemPrompt === undefined);
    if (isShown) return message && { message };
    return { ...(message && { message }), systemPrompt: `${systemPrompt}\n\n${preamble}` };
  }

  /** @param {any} payload that Pi is about to send */
  beforeRequest(payload) {
    this.lastRequest.note(payload, this.ctx.model, this.context.begin().from);
  }

  /** Hands over the last entries and closes the store. @param {string} reason given by Pi */
  async dispose(reason) {
    if (this.isOpen) await this.guard(() => this.#close());
    // Pi assigns input that arrives before the next session starts to the one that ends.
    if (!["new", "resume", "fork", "reload"].includes(reason)) await Promise.allSettled(shared.closings);
  }

  async #close() {
    this.isOpen = false;
    const engine = await (this.#reopening ?? this.engine);
    // New entries wait behind the history that is still being handed over; the next start would store them too.
    if (!this.handover.isLive) await Promise.race([this.handover.caughtUp.catch(() => {}), timeout()]);
    this.handover.walk();
    // Entries of a branch that was left with no run since, and failed ones.
    if (this.handover.isBehind) await Promise.race([this.handover.retry().catch(() => {}), timeout()]);
    this.isClosing = true;
    // A pending call through Pi would keep it from exiting.
    this.leaving.abort();
    const closed = engine.close().catch(() => {});
    shared.closings.add(closed);
    void closed.then(() => shared.closings.delete(closed));
  }
}
