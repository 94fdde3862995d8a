/**
 * Imitates the extension that inspired this one: the same three tools and command, registered at load, a database with the same name in the
 * same folder, and its own compaction.
 *
 * When it closes its database it leaves a copy next to it, which shows whether anyone else has changed it.
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

/** Suppresses Node 22's warning. */
async function sqlite() {
  const { emitWarning } = process;
  process.emitWarning = () => {};
  try {
    return await import("node:sqlite");
  } finally {
    process.emitWarning = emitWarning;
  }
}
