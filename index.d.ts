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
   * The tools as Pi registers them, a JSON array: `name`, `label`, `description`, `parameters` (a
   * JSON Schema). Guidance for the model stands in the preamble, which is there only when there is something to find. With
   * `notes`, as the setting says, there is `lcm_note` too.
   */
  toolSpecs(notes?: boolean | undefined | null): string;
  /**
   * The sub-commands of `/lcm`, a JSON array of `{name, help, arguments, long}`: `arguments` are `{value, help}`, what may be
   * completed behind the name; nobody should have to wait for one that is `long`.
   */
  commandSpecs(): string;
  /**
   * Reads the settings. `sources` is JSON: `agentDir`, `cwd`, `projectTrusted`, `environment` (the `LCM_*` variables). The
   * answer is JSON: `{"ok": {"settings", "notice"}}`, the notice naming what could not be right, or `{"error"}`.
   */
  loadSettings(sources: string): string;
  /**
   * Runs a line of `/lcm settings` where no session is open. `request` is JSON: `line`, what stands behind `/lcm`, and `sources` as for
   * `loadSettings`. The answer is as that of `Engine.command`.
   */
  settingsCommand(request: string): string;
}

/** One open session of one project's history. */
export declare class Engine {
  private constructor();
  /**
   * Opens a session. `options` is JSON: `cwd`, `sessionId`, `settings` as `loadSettings` gave them, and where there are
   * any `sessionFile`, `parentSession`. Without `sessionFile` the history stays in memory.
   * Rejects with a sentence for the user when the store can't be opened.
   */
  static open(options: string): Promise<Engine>;
  /** What the user should know about where the history lies, or null. */
  notice(): string | null;
  /** What to add to the system prompt, or null. Changes only when a compaction succeeds. */
  preamble(): string | null;
  /**
   * Which entries are neither stored nor on their way. `ids` is a JSON array of entry ids: all of the session's, or part of
   * them after part. The answer is JSON: `{"ok": [places in ids]}` or `{"error"}`.
   */
  missing(ids: string): Promise<string>;
  /**
   * Is the entry with this id stored or on its way? What `missing` was not asked about, and what was not handed over, is
   * taken for unknown.
   */
  knows(entryId: string): boolean;
  /** How many entries that were named to `missing` or handed over are stored or on their way. */
  known(): number;
  /** Is it worth while to hand over now? Not for a while after the store failed. */
  accepts(): boolean;
  /**
   * Takes a JSON array of session entries, parents before children, and returns before they are stored. `orphans` are
   * the ids of those whose parent the session itself does not have: Pi shows them as roots. The answer is JSON,
   * `{"ok": null}` or `{"error"}`.
   */
  handOver(entries: string, orphans?: Array<string> | undefined | null): string;
  /**
   * Takes the one entry `id`, as JSON, that the session goes on with below the one that was handed over last, and returns
   * before it is stored. False, and nothing is taken, where it must be handed over in the other way: nothing was said in
   * the session yet, something was lost on its way, the store does not accept.
   */
  append(id: string, entry: string): boolean;
  /** Resolves when everything handed over before stands on the disk. */
  flush(): Promise<string>;
  /**
   * What to tell the model of files that changed on disk since the branch that ends with the entry `leafId` showed them. The answer
   * is JSON: `{"ok": text or null}` or `{"error"}`.
   */
  changedFiles(leafId: string): Promise<string>;
  /**
   * Compacts. `operation` is a number of the caller's for `cancel`; `request` is JSON: `leafId`, `firstKeptEntryId`,
   * `tokensBefore`, and where known `customInstructions`, `reason`, `contextWindow`, `reserveTokens`, `model`, `failure`, what the
   * provider said when it failed last, `promptTokens`, those of system prompt and tools, `shownFrom` as for
   * `boundary`. `pi` is asked about
   * models, `model` being `provider/id`, `cheapest` for the sibling of the session's, or null for the session's own: `{"kind": "resolve", "model"}` promises what Pi
   * knows of it, `{"model", "auth", "oauth", "ownStream"}` or `{"error"}`; `{"kind": "ask", "model", "request": {"system",
   * "prompt", "maxTokens", "timeoutMs"}}` promises the assistant message. All of that is JSON.
   * The answer is JSON: `{"ok": {"kind": "compacted" | "declined" | "cancelled", …}}` or `{"error"}`.
   */
  compact(operation: number, request: string, pi: (call: string) => Promise<string>): Promise<string>;
  /**
   * Summarizes ahead, while the agent works, what the next compaction will ask for, and resolves when that is done; at once
   * while the context is not full enough. `request` is JSON: `leafId`, and where known `contextTokens`, `contextWindow`, `model`; `pi`
   * as for `compact`. The answer is JSON: `{"ok": null}` or `{"error"}`.
   */
  prepare(request: string, pi: (call: string) => Promise<string>): Promise<string>;
  /**
   * What is to be appended now, from what is there already: no model is asked. `live` is JSON: `leafId`, and where known
   * `contextTokens`, `contextWindow`, `model`, `shownFrom`, the first entry that the branch's last compaction left raw, `edited`,
   * entries that others edit, `cost` and `summarizer`, prices of the session's model and of the one that writes summaries,
   * `usage` of the request that was just answered, `blockTokens`, those of the block, `promptTokens`, `ownTokens`, those of our tools,
   * `isCold`, whether the provider's cache has expired, `canFold`, and `isLate`, whether what is appended misses the next request.
   * The answer is JSON: `{"ok": {"entries": [what Pi takes at a boundary], "report"?: {text, degraded}}}` or `{"error"}`.
   */
  boundary(live: string): Promise<string>;
  /** How far the compaction is that is under way, in a line for the footer, or null. */
  compactionProgress(): string | null;
  /**
   * Tells of a branch that the person leaves for another. `left` is JSON: `leafId`, the entry it ends with,
   * `commonAncestorId`, the last entry that the other has in common with it, or null, and where known
   * `customInstructions`, `contextWindow`, `model`; all else as for `compact`. The answer is JSON:
   * `{"ok": {"kind": "summarized" | "declined" | "cancelled", "summary"?: {summary, details, usage}}}` or `{"error"}`.
   */
  summarizeLeft(operation: number, left: string, pi: (call: string) => Promise<string>): Promise<string>;
  /**
   * Calls a tool. `args` is JSON; `leafId` is the last stored entry of the asking branch, and `newerRequest` says that the user has
   * sent a request since. The answer is JSON: `{"ok": [content blocks]}` or `{"error"}`, whose message is for the model.
   */
  callTool(operation: number, name: string, args: string, leafId?: string | undefined | null, newerRequest?: boolean | undefined | null): Promise<string>;
  /**
   * Runs a line of `/lcm` to its end. `request` is JSON: `line`, what stands behind `/lcm`; `folders`, `{"sessionDir",
   * "allSessions"}`, where this project's sessions lie, and the folders of all projects' sessions; `sources` as for
   * `loadSettings`; and where known `leafId`, `contextWindow`, that of the session's model in tokens, `columns` of the screen, `live`, the
   * context as for `boundary`, and `viewerTemplate`, the file that `export --html` fills. The answer is JSON: `{"ok": {"text", "answer", "confirm"?, "told"?}}` or
   * `{"error"}`. `text` is for the user, `answer` the same as data; with `confirm`, `{"title", "message", "line"}`, nothing was
   * done yet, and `line` is to be run once the user agrees; `told`, `{"customType", "content", "details"}`, is for Pi's
   * `sendMessage`.
   */
  command(request: string): Promise<string>;
  /**
   * Works by other settings from here on: those of `loadSettings`, as JSON. `enabled` and `dbDir` hold for sessions that are opened
   * afterwards. The answer is JSON: `{"ok": null}` or `{"error"}`.
   */
  reconfigure(settings: string): string;
  /** How far the import is that is under way, or null. */
  importProgress(): string | null;
  /**
   * What to tell the user of sessions that could be imported; `folders` as for `command`. The answer is JSON, `{"ok": text
   * or null}` or `{"error"}`; there is a text once in a project's life at most.
   */
  offerImport(folders: string): Promise<string>;
  /**
   * Imports what the agents of `alsoRead` have said in this project since that was done last; `folders` as for `command`. The
   * answer is JSON, `{"ok": null}` or `{"error"}`.
   */
  alsoRead(folders: string): Promise<string>;
  /** What the footer shows, as JSON: `{"ok": {text, notice}}` or `{"error"}`. A notice is given once. */
  status(): Promise<string>;
  /** Stops an operation, under way or yet to begin. */
  cancel(operation: number): void;
  /** Stores what was handed over and lets go of the database. */
  close(): Promise<void>;
}

/** Somebody in a shell who asks about a history. */
export declare class Cli {
  private constructor();
  /** Nothing is opened before something is asked. */
  static begin(): Cli;
  /**
   * Answers a line of `pi-lcm`. `request` is JSON: `arguments`, everything behind the program's name, `cwd`, `agentDir`,
   * `environment` (the variables `LCM_*`, `PI_*`, `NO_COLOR` and `TERM`), and where there are any `viewerTemplate` as for
   * `Engine.command` and `columns`, those of the terminal that reads it. The answer
   * is JSON: `{"ok": {"output", "complaint", "code"}}`, for stdout, stderr and the end of the process, or `{"error"}`.
   */
  run(request: string): Promise<string>;
  /** Stops what is under way, and resolves when nothing of it is left half-written. */
  stop(): Promise<void>;
}
