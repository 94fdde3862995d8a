/**
 * Types of pi-lossless-context. Everything about the engine is made from its Rust doc comments: change those, build, and run
 * `node scripts/check-types.mjs --write`.
 */

import type { ExtensionAPI } from "@earendil-works/pi-coding-agent";

/** Wires the extension into Pi; Pi calls it. It never throws. */
export default function losslessContext(pi: ExtensionAPI): void;

/**
 * The engine, for scripts: `const { Engine } = loadEngine()`.
 *
 * @throws {Error} a sentence that names the missing file and the remedy
 */
export function loadEngine(): Native;

/** The native addon. */
export interface Native {
  /** The class itself; sessions come from `Engine.open`. */
  Engine: typeof Engine;
  /** The class itself; sessions come from `Cli.open`. */
  Cli: typeof Cli;
  /** The version of the addon; a package of another version must not load it. */
  version(): string;
  /**
   * The tools as Pi registers them, a JSON array: `name`, `label`, `description`, `parameters` (a JSON
   * Schema). The preamble has guidance for the model, and exists only if there is something to find. With
   * `notes`, a setting, `lcm_note` is included.
   */
  toolSpecs(notes?: boolean | undefined | null): string;
  /**
   * The sub-commands of `/lcm`, a JSON array of `{name, help, arguments, long}`: `arguments` are `{value,
   * help}`, completions after the name; a `long` one takes time and should not block the user.
   */
  commandSpecs(): string;
  /**
   * Reads the settings. `sources` is JSON: `agentDir`, `cwd`, `projectTrusted`, `environment` (the `LCM_*`
   * variables). Returns JSON: `{"ok": {"settings", "notice"}}`, where `notice` lists invalid settings, or
   * `{"error"}`.
   */
  loadSettings(sources: string): string;
  /**
   * Runs a line of `/lcm settings` without an open session. `request` is JSON: `line`, the text after `/lcm`,
   * and `sources` as for `loadSettings`. Returns the same as `Engine.command`.
   */
  settingsCommand(request: string): Promise<string>;
}

/** One open session of one project's history. */
export declare class Engine {
  private constructor();
  /**
   * Opens a session. `options` is JSON: `cwd`, `sessionId`, `settings` from `loadSettings`, and if any
   * `sessionFile`, `parentSession`. Without `sessionFile` the history stays in memory. Rejects with a
   * sentence for the user when the store can't be opened.
   */
  static open(options: string): Promise<Engine>;
  /** What the user should know about where the history is kept, or null. */
  notice(): string | null;
  /** The addition to the system prompt. It never changes. */
  preamble(): string;
  /**
   * Which entries are neither stored nor queued. `ids` is a JSON array of entry ids: all of the session's,
   * or one part of them per call. Returns JSON: `{"ok": [indexes into ids]}` or `{"error"}`.
   */
  missing(ids: string): Promise<string>;
  /**
   * Sets aside the stored entries that the session's file shows otherwise: those of the file are unknown then.
   * Returns JSON: `{"ok": how many}` or `{"error"}`.
   */
  setAside(): Promise<string>;
  /**
   * Whether the entry with this id is stored or queued. An entry that was neither passed to `missing` nor
   * handed over counts as unknown.
   */
  knows(entryId: string): boolean;
  /** How many entries that were passed to `missing` or handed over are stored or queued. */
  known(): number;
  /** Whether entries were lost, on any branch, since `missing` was last called. */
  lacks(): boolean;
  /** Whether handing over is worthwhile now. Not for a while after the store failed. */
  accepts(): boolean;
  /**
   * Takes a JSON array of session entries, parents before children, and returns before they are stored.
   * `orphans` are the ids of those whose parent is missing in the session itself: Pi shows them as roots.
   * Returns JSON, `{"ok": null}` or `{"error"}`.
   */
  handOver(entries: string, orphans?: Array<string> | undefined | null): string;
  /**
   * Takes one entry `id`, as JSON, that continues the session below the last one handed over, and returns
   * before it is stored. Returns false, and takes nothing, if the entry must go through `handOver`: before
   * the session's first message, after an entry was lost, or when the store does not accept.
   */
  append(id: string, entry: string): boolean;
  /** Resolves when everything handed over before is on disk. */
  flush(): Promise<string>;
  /**
   * A message for the model about files that changed on disk since the branch that ends at the entry
   * `leafId` showed them. Returns JSON: `{"ok": text or null}` or `{"error"}`.
   */
  changedFiles(leafId: string): Promise<string>;
  /**
   * Compacts. `operation` is a number chosen by the caller for `cancel`. `request` is JSON: `leafId`,
   * `firstKeptEntryId`, `tokensBefore`, and if known `customInstructions`, `reason`, `contextWindow`,
   * `reserveTokens`, `model`, `canRecall`, `failure` (the provider's last error message), `promptTokens` (of system
   * prompt and tools), `shownFrom` as for `fold`. `pi` is called about models, where `model` is
   * `provider/id`, or null for the session's own: `{"kind": "models"}` promises the list of those that write
   * summaries, in the order in which they are asked; `{"kind": "resolve", "model"}` promises what Pi knows
   * about one, `{"model", "auth", "oauth", "ownStream"}` or `{"error"}`; `{"kind": "ask", "model",
   * "request": {"system", "prompt", "maxTokens", "timeoutMs", "reasoning"?}}` promises the assistant message.
   * All of these are JSON. Returns JSON: `{"ok": {"kind": "compacted" | "declined" | "cancelled", …}}` or
   * `{"error"}`.
   */
  compact(operation: number, request: string, pi: (call: string) => Promise<string>): Promise<string>;
  /**
   * Summarizes in advance, while the agent works, what the next fold or compaction will need, and resolves
   * when that is done. `request` is JSON as for `fold`; `pi` as for `compact`. Returns JSON: `{"ok": null}` or
   * `{"error"}`.
   */
  prepare(request: string, pi: (call: string) => Promise<string>): Promise<string>;
  /**
   * Records a turn that has ended, and decides whether to call `fold` and `prepare`, at once and without
   * reading anything. `turn` is JSON: `live`, the context (`contextTokens`, `contextWindow`, `model`, `cost`, `tier`,
   * `summarizer`, `promptTokens`, `ownTokens`, `canRecall`, all if known); `usage` as the provider reported it; the
   * estimated tokens of the answer's `thinking`, of its `results`, and of those that are `lookups`; `reads`,
   * pairs of a file and its tokens; `dropped` reasoning blocks; and whether it `goesOn` from the last turn,
   * `isPrompt` (the run has ended), `isCut` (the answer is), `isBound` (reasoning is). Returns JSON: `{"ok": {"fold",
   * "prepare", "retry"}}` or `{"error"}`.
   */
  turn(turn: string): string;
  /** Takes over the bill and the folds of an engine that was open for the same session. */
  continueFrom(before: Engine): void;
  /** Lets `turn` ask for a fold until there is one, wherever the fold point is. */
  askFold(): void;
  /**
   * Folds the context from summaries that exist: no model is asked. `at` is JSON: `leafId`, `shownFrom` (the
   * first entry that the branch's last compaction left raw, if there is one), `contextTokens`, `contextWindow`,
   * `promptTokens`, `model`. Returns JSON: `{"ok": {"entry", "report", "notice"}}`, each null if there is none, or
   * `{"error"}`. `entry` is for Pi.
   */
  fold(at: string): Promise<string>;
  /** The progress of a running compaction, as a line for the footer, or null. */
  compactionProgress(): string | null;
  /**
   * Summarizes a branch that the user leaves for another. `left` is JSON: `leafId` (its last entry),
   * `commonAncestorId` (the last entry shared with the other branch, or null), and if known
   * `customInstructions`, `contextWindow`, `model`; everything else as for `compact`. Returns JSON:
   * `{"ok": {"kind": "summarized" | "declined" | "cancelled", "summary"?: {summary, details, usage}}}` or
   * `{"error"}`.
   */
  summarizeLeft(operation: number, left: string, pi: (call: string) => Promise<string>): Promise<string>;
  /**
   * Calls a tool. `args` is JSON; `leafId` is the last stored entry of the calling branch, and
   * `newerRequest` means that the user has since sent a request. `callId` is Pi's id of the call. Returns
   * JSON: `{"ok": {"content": [blocks], "structuredContent"?}}` or `{"error"}`, whose message is for the model.
   */
  callTool(operation: number, name: string, args: string, leafId?: string | undefined | null, newerRequest?: boolean | undefined | null, callId?: string | undefined | null): Promise<string>;
  /**
   * Runs a line of `/lcm`. `request` is JSON: `line`, the text after `/lcm`; `folders`, `{"sessionDir",
   * "allSessions"}`, the folder of this project's sessions, and that of all projects' sessions; `sources`
   * as for `loadSettings`; and if known `leafId`,
   * `columns` of the screen, `live` (the context as for `turn`), `summarizers` (the models that write
   * summaries, in the order in which they are asked: `{"model", "price"?: {"input", "output"}}` per million
   * tokens), and `viewerTemplate`, the file that `export --html` fills. Returns JSON: `{"ok": {"text",
   * "answer", "confirm"?, "entry"?}}` or `{"error"}`.
   * `text` is for the user, `answer` the same as data. With `confirm`, `{"title", "message", "line"}`,
   * nothing was done yet, and `line` is to be run once the user agrees. `entry`, `{"customType", "content",
   * "details"}`, is for Pi's `sendMessage`.
   */
  command(request: string): Promise<string>;
  /**
   * Switches to other settings: those of `loadSettings`, as JSON. `enabled` and `dbDir` apply to sessions
   * opened later. Returns JSON: `{"ok": null}` or `{"error"}`.
   */
  reconfigure(settings: string): string;
  /**
   * Takes over Pi's setting `compaction`, as JSON, which may change at any time. Returns JSON: `{"ok": null}` or
   * `{"error"}`.
   */
  setPiCompaction(compaction: string): string;
  /** The progress of a running import, or null. */
  importProgress(): string | null;
  /**
   * A message for the user about sessions that could be imported; `folders` as for `command`. Returns
   * JSON, `{"ok": text or null}` or `{"error"}`; there is a text at most once per project.
   */
  offerImport(folders: string): Promise<string>;
  /**
   * Imports what the agents in `alsoRead` have written in this project since the last time, and syncs with `syncTarget`;
   * `folders` as for `command`. Returns JSON, `{"ok": null}` or `{"error"}`.
   */
  catchUp(folders: string): Promise<string>;
  /** The footer, as JSON: `{"ok": {text, notice, reopen}}` or `{"error"}`. Each notice is given once. */
  status(): Promise<string>;
  /** Cancels an operation, running or not yet started. */
  cancel(operation: number): void;
  /** Stores everything handed over and closes the database. */
  close(): Promise<void>;
}

/** A shell user's access to a history. */
export declare class Cli {
  private constructor();
  /** Opens nothing until a request comes. */
  static begin(): Cli;
  /**
   * Answers a line of `pi-lcm`. `request` is JSON: `arguments` (everything after the program's name),
   * `cwd`, `agentDir`, `environment` (the variables `LCM_*`, `PI_*`, `NO_COLOR` and `TERM`), and if any
   * `viewerTemplate` as for `Engine.command` and `columns` of the terminal. Returns JSON: `{"ok":
   * {"output", "complaint", "code"}}`, for stdout, stderr and the exit code, or `{"error"}`.
   */
  run(request: string): Promise<string>;
  /** The progress of a running import, for a terminal. */
  importProgress(): string | null;
  /** Stops what is running, and resolves when nothing is left half-written. */
  stop(): Promise<void>;
  /**
   * Removes what is half-written, whatever still runs. For a process that exits at once: nothing can be
   * written any more.
   */
  abandon(): void;
}
