/**
 * What the extension by whose example ours was made looks like from outside: the same three tools and the same command,
 * registered while it is loaded, a database under the same name in the same folder, a compaction of its own.
 *
 * When it lets go of its database it leaves a copy of it beside, by which one can see whether anybody else has been in it.
 */
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync } from "node:fs";
import path from "node:path";

/** @param {import("@earendil-works/pi-coding-agent").ExtensionAPI} pi */
export default function twin(pi) {
  /** @type {import("node:sqlite").DatabaseSync | undefined} */
  let database;
  let file = "";

  for (const name of ["lcm_grep", "lcm_describe", "lcm_expand"]) {
    pi.registerTool({
      name,
      label: name,
      description: `The twin's ${name}`,
      parameters: /** @type {any} */ ({ type: "object", properties: { query: { type: "string" } } }),
      execute: async () => ({ content: [{ type: "text", text: `the twin's ${name} answers` }], details: undefined }),
    });
  }
  for (const name of ["lcm", "lcm-settings"]) {
    pi.registerCommand(name, { description: `The twin's ${name}`, handler: async (_line, ctx) => ctx.ui.notify(`the twin's /${name}`, "info") });
  }

  pi.on("session_start", async (_event, ctx) => {
    const dir = process.env.LCM_DB_DIR ?? "";
    mkdirSync(dir, { recursive: true });
    file = path.join(dir, `${createHash("sha256").update(ctx.cwd).digest("hex").slice(0, 16)}.db`);
    const { DatabaseSync } = await sqlite();
    database ??= new DatabaseSync(file);
    database.exec("PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS messages (id INTEGER PRIMARY KEY, content TEXT)");
  });
  pi.on("message_end", ({ message }) => {
    database?.prepare("INSERT INTO messages (content) VALUES (?)").run(JSON.stringify(message));
  });
  pi.on("session_before_compact", ({ preparation: { firstKeptEntryId, tokensBefore } }) => ({
    compaction: { summary: "What the twin makes of it.", firstKeptEntryId, tokensBefore },
  }));
  pi.on("session_shutdown", () => {
    database?.close();
    database = undefined;
    copyFileSync(file, `${file}.left`);
  });
}

/** Without the warning that Node 22 gives with it. */
async function sqlite() {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return await import("node:sqlite");
  } finally {
    process.emitWarning = emitWarning;
  }
}
