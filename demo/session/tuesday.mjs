/**
 * Tuesday: garbled names, invoices that arrive twice, and two workers that deliver the same invoice.
 *
 * An abandoned branch starts here too: a queue in Redis, discussed for a few messages.
 */
import { fileWritten } from "./written.mjs";
import { bash, commit, edit, failingEdit, gitDiff, grep, read, tests, write } from "./tools.mjs";

/** @param {import("./recorder.mjs").Recorder} s */
export function tuesday(s) {
  s.at("2026-11-03T08:12:44.000Z");
  garbledNames(s);
  s.at("2026-11-03T10:52:10.000Z");
  twice(s);
  s.at("2026-11-03T14:20:35.000Z");
  twoWorkers(s);
}

/** @param {import("./recorder.mjs").Recorder} s */
function garbledNames(s) {
  s.user("Morning. Last night all of Osaka's amounts came through, danke. Now the garbled names. Why does it happen to some files and not to others?");
  s.step({ say: "The night first." }, read("logs/import-2026-11-03.log"));
  s.step(
    { think: "guess(): high bytes > length/10. A file with long ASCII columns and short Japanese names falls below the tenth. Show it with a real one.", say: "I suspect the threshold. Let me measure it on yesterday's files." },
    read("src/import/encoding.ts"),
    bash(
      "node -e '\nconst fs=require(\"fs\");for(const f of fs.readdirSync(\"verarbeitet\").filter(f=>/請求書/.test(f)).slice(0,12)){const b=fs.readFileSync(\"verarbeitet/\"+f);const h=b.filter(x=>x>=128).length;console.log(f,b.length,(h/b.length).toFixed(3))}'",
      [
        "請求書_202611_0001.csv 412 0.087",
        "請求書_202611_0008.csv 398 0.091",
        "請求書_202611_0019.csv 377 0.148",
        "請求書_202611_0023.csv 455 0.132",
        "請求書_202611_0037.csv 301 0.171",
        "請求書_202611_0041.csv 418 0.084",
        "請求書_202611_0052.csv 366 0.126",
        "請求書_202611_0066.csv 402 0.118",
        "請求書_202611_0071.csv 389 0.140",
        "請求書_202611_0088.csv 431 0.079",
        "請求書_202611_0093.csv 345 0.155",
        "請求書_202611_0104.csv 372 0.121",
      ].join("\n"),
    ),
    read("test/encoding.test.ts"),
  );
  s.says(
    "Confirmed: the files with a share of high bytes below 0.1 are the garbled ones (0001, 0008, 0041, 0088). A threshold can't work: the Japanese part of a row is a name and a product, the rest is ASCII.\n\nBetter: ask whether the bytes *are* Shift_JIS. (1) A strict decoder accepts them. (2) Nothing lands in the private use area; that is where `ö` (F6) goes. (3) At least one pair has a high second byte: in German no two high letters meet that would also be a valid pair (`Größe` lands in the private area, `süß` is refused).",
  );
  s.user("Sounds right. Do that. Test with the names of all our German partners, please, they must never become Japanese.");
  s.step(
    { think: "Write the tests with literal byte arrays for windows-1252; a helper latin(text) from char codes is enough because the names have no characters above 0xFF.", say: "Tests first: every partner of the warehouse as windows-1252, and a long Osaka row that is mostly ASCII." },
    edit("test/encoding.test.ts", [
      '  test("takes what is left for windows-1252"',
      `  test("knows Shift_JIS in a row that is mostly ASCII", () => {
    const ascii = new TextEncoder().encode("number;date;due;currency;seller;country;text;quantity;price;tax\\nOS-1;2026-10-30;2026-11-30;JPY;");
    const name = [0x8a, 0x94, 0x8e, 0xae, 0x89, 0xef, 0x8e, 0xd0];
    assert.equal(guess(Uint8Array.from([...ascii, ...name, ...ascii])), "shift_jis");
  });

  for (const name of ["Spedition Möller", "Hafenlogistik Süderelbe", "Kühlhaus Bülow", "Größenänderung", "Äöü Straße", "süß"]) {
    test(\`never takes \${name} for Japanese\`, () => {
      assert.equal(guess(Uint8Array.from([...name].map((letter) => letter.charCodeAt(0)))), "windows-1252");
    });
  }

  test("takes what is left for windows-1252"`,
    ]),
    tests({
      only: "test/encoding.test.ts",
      fails: [
        { file: "test/encoding.test.ts", test: "knows Shift_JIS in a row that is mostly ASCII", error: unequal("windows-1252", "shift_jis") },
        ...["Kühlhaus Bülow", "Größenänderung", "Äöü Straße", "süß"].map((name) => ({ file: "test/encoding.test.ts", test: `never takes ${name} for Japanese`, error: unequal("shift_jis", "windows-1252") })),
      ],
    }),
  );
  s.step(
    { think: "Short German names are taken for Japanese by the old threshold as well, so it fails in both directions.", say: "Red in both directions: the old threshold also takes four short German names for Japanese. Now the check itself." },
    edit(
      "src/import/encoding.ts",
      ["  return highBytes(bytes) > bytes.length / 10 ? \"shift_jis\" : \"windows-1252\";\n", "  return isShiftJis(bytes) ? \"shift_jis\" : \"windows-1252\";\n"],
      [
        `function isUtf8(bytes: Uint8Array): boolean {
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    return true;
  } catch {
    return false;
  }
}

function highBytes(bytes: Uint8Array): number {
  let count = 0;
  for (const byte of bytes) if (byte >= 0x80) count++;
  return count;
}
`,
        `function isUtf8(bytes: Uint8Array): boolean {
  return strictly("utf-8", bytes) !== undefined;
}

/**
 * Valid, nothing in the private use area (where an ö would go), and a pair whose second byte is high as well: in German no
 * two such letters meet that would be a valid pair. How many high bytes there are says nothing; a row is mostly ASCII.
 */
function isShiftJis(bytes: Uint8Array): boolean {
  const text = strictly("shift_jis", bytes);
  if (text === undefined || /[\\uE000-\\uF8FF]/.test(text)) return false;
  return bytes.some((byte, at) => byte >= 0x81 && at + 1 < bytes.length && bytes[at + 1]! >= 0x80);
}

function strictly(encoding: Encoding, bytes: Uint8Array): string | undefined {
  try {
    return new TextDecoder(encoding, { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
`,
      ],
    ),
    tests({ only: "test/encoding.test.ts" }),
  );
  s.step({ think: "Whole suite, then commit this on its own." }, tests(), gitDiff(), commit("Tell Shift_JIS by its pairs, not by a threshold", "2be8417"));
  s.says("All green and committed. From tonight on the names will be right.");
  s.user("And the eight that are booked under garbled names already?");
  s.step(
    { think: "Originals are kept, so re-read them: find rows whose partner contains mojibake, re-decode from the original file. A one-off script; show what it would do first." },
    bash(
      "sqlite3 kontor.db \"SELECT id, number, partner FROM invoices WHERE direction='in' AND (partner LIKE 'Š”%' OR partner LIKE '‘å%' OR partner LIKE '—L%')\"",
      "20112|OS-2026-1001|‘åã“dü•H‹Æ\n20118|OS-2026-1008|‘åã“dü•H‹Æ\n20151|OS-2026-1041|Š”Ž®‰ïŽÐƒ~ƒiƒg¤‰ï\n20177|OS-2026-1067|—LŒÀ‰ïŽÐƒnƒVƒ‚ƒg\n20198|OS-2026-1088|‘åã“dü•H‹Æ\n20231|OS-2026-1121|Š”Ž®‰ïŽÐƒ~ƒiƒg¤‰ï\n20254|OS-2026-1144|‘åã“dü•H‹Æ\n20269|OS-2026-1159|—LŒÀ‰ïŽÐƒnƒVƒ‚ƒg",
    ),
  );
  s.says("Eight rows, and all eight originals are in `verarbeitet`. I would read those files again with the new code and correct `partner` and `body` of exactly these ids, in one transaction, after a copy of the database. I won't touch the database without your word.");
  s.user("Do it on a copy first, show me, then I run it on the real one myself.");
  s.step(
    { think: "A script that reads the originals again. It must not touch anything but partner and body, in one transaction.", say: "A small script, then, and on a copy." },
    write("scripts/reread.ts", fileWritten("reread.ts")),
    bash("cp kontor.db /tmp/kontor-copy.db && node scripts/reread.ts /tmp/kontor-copy.db 20112 20118 20151 20177 20198 20231 20254 20269", "20112 OS-2026-1001 → 大阪電線工業\n20118 OS-2026-1008 → 大阪電線工業\n20151 OS-2026-1041 → 株式会社ミナト商会\n20177 OS-2026-1067 → 有限会社ハシモト\n20198 OS-2026-1088 → 大阪電線工業\n20231 OS-2026-1121 → 株式会社ミナト商会\n20254 OS-2026-1144 → 大阪電線工業\n20269 OS-2026-1159 → 有限会社ハシモト\n8 rows corrected, 0 left as they are"),
    bash("sqlite3 /tmp/kontor-copy.db 'PRAGMA integrity_check; SELECT count(*) FROM invoices'; sqlite3 kontor.db 'SELECT count(*) FROM invoices'", "ok\n20317\n20317"),
  );
  s.says("The copy has eight corrected names, the same number of rows, and passes the integrity check. The command for the real one is the same with `kontor.db` in place of the copy.");
  s.bang("node scripts/reread.ts kontor.db 20112 20118 20151 20177 20198 20231 20254 20269 | tail -1", "8 rows corrected, 0 left as they are\n");
}

/** @param {import("./recorder.mjs").Recorder} s */
function twice(s) {
  s.user("Done, worked. Now something bookkeeping complains about since summer: some invoices are booked twice. Osaka sends a file again when somebody corrected a typo, with another file name.");
  s.step({ think: "Nothing in the schema keeps an invoice unique: no unique index on number. Number alone is not enough, different partners may share numbers." }, read("migrations/001_init.sql"), read("src/store.ts"), read("src/cli.ts"));
  s.step(
    { say: "How do the doubles look in the data?" },
    bash(
      "sqlite3 -header -column kontor.db \"SELECT partner, number, count(*) AS n, count(DISTINCT total) AS totals, count(DISTINCT date) AS dates FROM invoices WHERE direction='in' GROUP BY partner, number HAVING n > 1 ORDER BY n DESC LIMIT 12\"",
      "partner             number        n  totals  dates\n------------------  ------------  -  ------  -----\n大阪電線工業        OS-2026-0871  3  1       1\n株式会社ミナト商会  OS-2026-0644  2  1       1\n株式会社ミナト商会  OS-2026-0702  2  1       1\n有限会社ハシモト    OS-2026-0719  2  1       1\n大阪電線工業        OS-2026-0733  2  2       1\n大阪電線工業        OS-2026-0801  2  1       1\n関西物流サービス    OS-2026-0812  2  1       1\n関西物流サービス    OS-2026-0855  2  1       1\nLager Nord GmbH &   B-19873       2  1       1\nSpedition Möller    4411          2  2       2\n广州远洋贸易        SZ-6120       2  1       1",
    ),
  );
  s.says(
    "Most doubles agree in partner, number, date and total; only the descriptions differ. Two do not: `OS-2026-0733` has two totals (a real correction), and Möller's `4411` is two different invoices that happen to share a number.\n\nSo I would call two files the same invoice when **seller, number, date, currency and total** agree. File name and line texts stay out.",
    "Fingerprint: hash of these. Names normalised: width, case, spaces.",
  );
  s.user("Agreed, and write the reason into the code: the texts stay out because Osaka re-sends with better descriptions, and that must not count as new. A changed total must be booked, bookkeeping wants to see it.");
  s.step(
    { think: "New file src/import/fingerprint.ts, migration 002, store.insertInvoice takes an optional fingerprint and returns undefined when known. ON CONFLICT DO NOTHING with the partial unique index.", say: "A migration, a module, and `insertInvoice` that says when it knows an invoice already." },
    write("src/import/fingerprint.ts", fileWritten("fingerprint.ts")),
    write("migrations/002_fingerprint.sql", fileWritten("002_fingerprint.sql")),
    write("test/fingerprint.test.ts", fileWritten("fingerprint.test.ts")),
    failingEdit("src/store.ts", "insertInvoice(direction: 'in' | 'out', invoice: Invoice, total: Money): number {", "insertInvoice(direction: 'in' | 'out', invoice: Invoice, total: Money, fingerprint?: string): number | undefined {"),
  );
  s.step(
    { think: "Double quotes, of course." },
    edit(
      "src/store.ts",
      [
        `  insertInvoice(direction: "in" | "out", invoice: Invoice, total: Money): number {
    const partner = direction === "in" ? invoice.seller.name : invoice.buyer.name;
    const { lastInsertRowid } = this.db
      .prepare(
        \`INSERT INTO invoices (direction, number, partner, date, due, currency, total, body)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?)\`,
      )
      .run(direction, invoice.number, partner, invoice.date, invoice.due, invoice.currency, String(total.units), toJson(invoice));
    return Number(lastInsertRowid);
  }`,
        `  /** Undefined when an invoice with this fingerprint is booked already. */
  insertInvoice(direction: "in" | "out", invoice: Invoice, total: Money, fingerprint: string | null = null): number | undefined {
    const partner = direction === "in" ? invoice.seller.name : invoice.buyer.name;
    const { changes, lastInsertRowid } = this.db
      .prepare(
        \`INSERT INTO invoices (direction, number, partner, date, due, currency, total, body, fingerprint)
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)
         ON CONFLICT DO NOTHING\`,
      )
      .run(direction, invoice.number, partner, invoice.date, invoice.due, invoice.currency, String(total.units), toJson(invoice), fingerprint);
    return changes === 1 ? Number(lastInsertRowid) : undefined;
  }`,
      ],
    ),
    tests({ only: "test/fingerprint.test.ts" }),
  );
  s.step(
    { say: "And the import has to use it, and say when it knows a file." },
    edit(
      "src/cli.ts",
      ['import { readFile } from "./import/reader.ts";', 'import { fingerprintOf } from "./import/fingerprint.ts";\nimport { readFile } from "./import/reader.ts";'],
      [
        `      if (!dry) store.insertInvoice("in", invoice, totalsOf(invoice).gross);
      log.info(dry ? "would book" : "booked", { file, number: invoice.number });`,
        `      const total = totalsOf(invoice).gross;
      const known = !dry && store.insertInvoice("in", invoice, total, fingerprintOf(invoice, total.units)) === undefined;
      log.info(dry ? "would book" : known ? "known already" : "booked", { file, number: invoice.number });`,
      ],
    ),
    bash("npx -y typescript@5.9 tsc --noEmit -p . 2>&1 | head", "src/deliver/worker.ts(21,10): error TS2339: Property 'Timeout' does not exist on namespace 'NodeJS'.\ntest/queue.test.ts(19,5): error TS2322: Type 'number | undefined' is not assignable to type 'number'.\n  Type 'undefined' is not assignable to type 'number'.", { exitCode: 2, seconds: 9 }),
  );
  s.step(
    { think: "The first is missing @types/node in an ad hoc tsc run, not ours. The second is real: the test helper must assert.", say: "The first line is only my ad hoc `tsc` without Node's types. The second is mine." },
    edit("test/queue.test.ts", ['    invoice = store.insertInvoice("out", anInvoice(), money(11900, "EUR"));', '    invoice = store.insertInvoice("out", anInvoice(), money(11900, "EUR"))!;']),
    edit("test/worker.test.ts", ['  queue.put(store.insertInvoice("out", anInvoice(), money(11900, "EUR")), "mail");', '  queue.put(store.insertInvoice("out", anInvoice(), money(11900, "EUR"))!, "mail");']),
    tests(),
  );
  s.step({ say: "My own diff, read once as if it were somebody else's:" }, gitDiff());
  s.step({}, commit("Book an invoice once, however often it arrives", "6f2d9a3"));
  s.says("Invoices are booked once now. Old rows have no fingerprint on purpose: what bookkeeping has already closed is not reopened by a migration.");
}

/** @param {import("./recorder.mjs").Recorder} s */
function twoWorkers(s) {
  s.user("Next. The shipyard got invoice 2026-00391 twice through Peppol, 40 seconds apart. Two processes run workers since September. Find out how.");
  s.step(
    { think: "take() is SELECT then UPDATE: two processes can both SELECT the same row before either UPDATEs. In one process it can't happen, node:sqlite is synchronous." },
    read("src/queue.ts"),
    read("src/deliver/worker.ts"),
    bash(
      "journalctl -u 'kontor@*' --since '2026-10-29' --no-pager | grep 2026-00391",
      'Oct 29 14:02:11 bremen kontor@1[2211]: 2026-10-29T13:02:11.402Z INFO  delivered number="2026-00391" channel="peppol" id="m-88120"\nOct 29 14:02:51 bremen kontor@2[2214]: 2026-10-29T13:02:51.977Z INFO  delivered number="2026-00391" channel="peppol" id="m-88123"',
    ),
  );
  const before = s.says(
    "`take` reads and then writes, in two statements. Two *processes* can read the same row before either has leased it. Both deliver; the gateway took 1 s for the first and 41 s for the second, that is the gap you saw.\n\nThe fix is one statement: `UPDATE … WHERE id = (SELECT …) RETURNING …`, so that reading and leasing can't come apart.",
  );
  s.label(before, "before the queue change");
  s.branch(() => redis(s));
  s.user("One statement, yes. While you're at it: what if a worker is slower than its lease? We keep LEASE_MS at 90 seconds because the slowest Peppol answer in October was 71 s, anything shorter would deliver twice. But a worker that comes back late must not mark it done either.");
  s.step(
    { think: "done(id, worker) and failed(id, worker, ...) only where leased_by = worker. done returns whether it was still ours. The worker logs a warning if not.", say: "Then `done` and `failed` have to name the worker, and only count while the lease is theirs. A test for the late worker first:" },
    edit(
      "test/queue.test.ts",
      [
        '  test("waits before it tries again"',
        `  test("does not listen to a worker whose lease has run out", () => {
    const id = queue.put(invoice, "mail");
    queue.take("slow");
    now += LEASE_MS + 1;
    queue.take("quick");
    assert.equal(queue.done(id, "slow"), false);
    assert.deepEqual(queue.counts(), { leased: 1 });
    assert.equal(queue.done(id, "quick"), true);
  });

  test("waits before it tries again"`,
      ],
      ['queue.failed(queue.take("a")!.id, "busy", 5_000);', 'queue.failed(queue.take("a")!.id, "a", "busy", 5_000);'],
      ['      queue.failed(id, "no", 0);', '      queue.failed(id, "a", "no", 0);'],
    ),
    edit(
      "src/queue.ts",
      [
        `/** How long a worker may take before others think it is dead. */`,
        `/** How long a worker may take before others think it is dead. The slowest answer of the gateway was 71 s. */`,
      ],
      [
        `    const row = this.#store.db
      .prepare(
        \`SELECT id, invoice, channel, attempts FROM deliveries
          WHERE (state = 'waiting' AND (next_at IS NULL OR next_at <= ?))
             OR (state = 'leased' AND leased_until < ?)
          ORDER BY id LIMIT 1\`,
      )
      .get(now, now);
    if (!row) return undefined;
    this.#store.db
      .prepare("UPDATE deliveries SET state = 'leased', leased_by = ?, leased_until = ?, attempts = attempts + 1 WHERE id = ?")
      .run(worker, now + LEASE_MS, row.id);
    return { id: Number(row.id), invoice: Number(row.invoice), channel: row.channel as Delivery["channel"], attempts: Number(row.attempts) + 1 };
  }

  done(id: number): void {
    this.#store.db.prepare("UPDATE deliveries SET state = 'done', leased_by = NULL, leased_until = NULL WHERE id = ?").run(id);
  }

  /** Puts it back for later, or gives it up after too many attempts. */
  failed(id: number, error: string, delayMs: number): void {
    this.#store.db`,
        `    // One statement: between a SELECT and an UPDATE another process could lease the same row.
    const row = this.#store.db
      .prepare(
        \`UPDATE deliveries
            SET state = 'leased', leased_by = :worker, leased_until = :until, attempts = attempts + 1
          WHERE id = (SELECT id FROM deliveries
                       WHERE (state = 'waiting' AND (next_at IS NULL OR next_at <= :now))
                          OR (state = 'leased' AND leased_until < :now)
                       ORDER BY id LIMIT 1)
          RETURNING id, invoice, channel, attempts\`,
      )
      .get({ worker, until: now + LEASE_MS, now });
    if (!row) return undefined;
    return { id: Number(row.id), invoice: Number(row.invoice), channel: row.channel as Delivery["channel"], attempts: Number(row.attempts) };
  }

  /** False when the lease was lost meanwhile: then the delivery belongs to somebody else. */
  done(id: number, worker: string): boolean {
    const { changes } = this.#store.db
      .prepare("UPDATE deliveries SET state = 'done', leased_by = NULL, leased_until = NULL WHERE id = ? AND leased_by = ?")
      .run(id, worker);
    return changes === 1;
  }

  /** Puts it back for later, or gives it up after too many attempts. */
  failed(id: number, worker: string, error: string, delayMs: number): void {
    this.#store.db`,
      ],
      ["          WHERE id = ?`,\n      )\n      .run(MAX_ATTEMPTS, this.#now() + delayMs, error, id);", "          WHERE id = ? AND leased_by = ?`,\n      )\n      .run(MAX_ATTEMPTS, this.#now() + delayMs, error, id, worker);"],
    ),
    tests({ only: "test/queue.test.ts" }),
  );
  s.step(
    { say: "The worker has to say who it is, and to say aloud when it came too late." },
    edit(
      "src/deliver/worker.ts",
      [
        `      this.#queue.done(delivery.id);
      this.#log.info("delivered", { number: stored.invoice.number, channel: delivery.channel, id });
      return true;`,
        `      const ours = this.#queue.done(delivery.id, this.#name);
      if (!ours) this.#log.warn("delivered after the lease ran out", { number: stored.invoice.number, id });
      else this.#log.info("delivered", { number: stored.invoice.number, channel: delivery.channel, id });
      return ours;`,
      ],
      ["this.#queue.failed(delivery.id, message,", "this.#queue.failed(delivery.id, this.#name, message,"],
    ),
    tests(),
    bash("node --check src/queue.ts", ""),
    bash("node --check src/deliver/worker.ts", ""),
  );
  s.step(
    { think: "Prove it with two real processes on one file, not just unit tests.", say: "Unit tests can't show a race between processes. Two real ones on one database, 2,000 deliveries:" },
    write("scripts/race.ts", fileWritten("race.ts")),
    bash("git stash -q -- src && node scripts/race.ts 2 2000; git stash pop -q", "2000 deliveries, 2 processes: 2000 taken, 0 never, 37 taken twice", { seconds: 12 }),
    bash(
      "node scripts/race.ts 2 2000",
      "2000 deliveries, 2 processes: 2000 taken, 0 never, 0 taken twice",
      { seconds: 9 },
    ),
    gitDiff(),
    commit("Queue: lease in one statement; a late worker does not count", "b1e07c4"),
    bash("git push 2>&1 | tail -1", "   8c1f2ad..b1e07c4  main -> main"),
  );
  s.says("37 of 2,000 were taken twice before, none now. A worker that comes back after its lease now logs `delivered after the lease ran out` and does not mark anything.");
  s.user("Great. Feierabend.");
  s.says("Bis morgen. Open from today: nothing. Tomorrow by your list: `Retry-After`, the cent that DATEV sees and we don't, reminders.");
}

/**
 * The test runner's message about two strings that should be equal.
 * @param {string} actual
 * @param {string} expected
 */
function unequal(actual, expected) {
  return `AssertionError [ERR_ASSERTION]: Expected values to be strictly equal:\n+ actual - expected\n\n+ '${actual}'\n- '${expected}'\n`;
}

/**
 * The abandoned branch. Its words must never appear on the branch that continues.
 * @param {import("./recorder.mjs").Recorder} s
 */
function redis(s) {
  s.user("Wait, before you do: shouldn't we drop the table and put the queue into Redis streams? Call it project purple-lighthouse. Consumer groups give us leases for free.");
  s.step(
    { think: "purple-lighthouse: Redis streams with XREADGROUP and XAUTOCLAIM. It would be the first dependency and the first server besides ours." },
    bash("redis-cli --version; systemctl is-enabled redis 2>&1", "bash: redis-cli: command not found\nFailed to get unit file state for redis.service: No such file or directory", { exitCode: 1 }),
    grep("redis|dependencies", "docs"),
  );
  s.says(
    "purple-lighthouse would work: `XREADGROUP` for taking, `XAUTOCLAIM` for leases that ran out. But invoice and delivery would no longer be written in one transaction, and decision 2 in docs/decisions.md (no dependencies) would fall. For some 60 deliveries a day I would not.",
  );
  s.user("Ok, forget purple-lighthouse. I'll go back to before this question.");
}
