import { mkdirSync, readdirSync, readFileSync, renameSync } from "node:fs";
import path from "node:path";
import type { Log } from "../log.ts";
import type { Store } from "../store.ts";
import { totalsOf } from "../tax.ts";
import { fingerprintOf } from "./fingerprint.ts";
import { readFile } from "./reader.ts";

export interface Report {
  booked: number;
  known: number;
  rejected: number;
}

/**
 * Reads every file in the inbox, one transaction a file. The original is moved, never deleted.
 */
export function importAll(inbox: string, store: Store, log: Log, dry: boolean): Report {
  const report: Report = { booked: 0, known: 0, rejected: 0 };
  const done = path.join(inbox, "verarbeitet");
  mkdirSync(done, { recursive: true });
  for (const file of readdirSync(inbox).filter((name) => /\.(csv|xml)$/i.test(name)).sort()) {
    const outcome = readFile(file, readFileSync(path.join(inbox, file)));
    if (outcome.kind === "rejected") {
      report.rejected++;
      log.warn("rejected", { file, reason: outcome.reason });
      continue;
    }
    store.transaction(() => {
      for (const invoice of outcome.invoices) {
        const total = totalsOf(invoice).gross;
        const fingerprint = fingerprintOf(invoice, total.units);
        if (dry) log.info("would book", { file, number: invoice.number, known: store.knows(fingerprint) });
        else if (store.insertInvoice("in", invoice, total, fingerprint) === undefined) report.known++;
        else report.booked++;
      }
    });
    if (!dry) renameSync(path.join(inbox, file), path.join(done, file));
  }
  log.info("import finished", { ...report });
  return report;
}
