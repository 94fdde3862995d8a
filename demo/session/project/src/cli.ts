import { mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import path from "node:path";
import { configFrom, type Config } from "./config.ts";
import { sendMail, type Mailer } from "./deliver/mail.ts";
import { sendPeppol } from "./deliver/peppol.ts";
import { Worker } from "./deliver/worker.ts";
import { readFile } from "./import/reader.ts";
import { consoleLog, type Log } from "./log.ts";
import { Queue } from "./queue.ts";
import { createServer } from "./server.ts";
import { openStore, type Store } from "./store.ts";
import { totalsOf } from "./tax.ts";

const log = consoleLog();
const config = configFrom(process.env);
const store = openStore(config.database);

const [command, ...flags] = process.argv.slice(2);
if (command === "serve") serve(config, store, log);
else if (command === "import") importAll(config, store, log, flags.includes("--dry"));
else throw new Error("usage: cli.ts serve | import [--dry]");

/** Reads every file in the inbox. The original is moved, never deleted. */
export function importAll({ inbox }: Config, store: Store, log: Log, dry: boolean): void {
  const done = path.join(inbox, "verarbeitet");
  mkdirSync(done, { recursive: true });
  for (const file of readdirSync(inbox).filter((name) => /\.(csv|xml)$/i.test(name)).sort()) {
    const outcome = readFile(file, readFileSync(path.join(inbox, file)));
    if (outcome.kind === "rejected") {
      log.warn("rejected", { file, reason: outcome.reason });
      continue;
    }
    for (const invoice of outcome.invoices) {
      if (!dry) store.insertInvoice("in", invoice, totalsOf(invoice).gross);
      log.info(dry ? "would book" : "booked", { file, number: invoice.number });
    }
    if (!dry) renameSync(path.join(inbox, file), path.join(done, file));
  }
}

function serve(config: Config, store: Store, log: Log): void {
  const queue = new Queue(store);
  const mailer: Mailer = { send: async ({ to }) => `<${Date.now()}@${to.split("@")[1]}>` };
  const channels = {
    peppol: (invoice: Parameters<typeof sendPeppol>[0]) => sendPeppol(invoice, config.gateway),
    mail: (invoice: Parameters<typeof sendMail>[0]) => sendMail(invoice, mailer),
  };
  for (let index = 1; index <= config.workers; index++) new Worker(`worker-${index}`, store, queue, channels, log).start();
  createServer(store, queue).listen(config.port, () => log.info("listening", { port: config.port }));
}
