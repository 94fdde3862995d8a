import { format, money } from "../src/money.ts";
import { openStore } from "../src/store.ts";
import { totalsOf } from "../src/tax.ts";

/**
 * Which invoices of a month depend on how a half cent is rounded.
 *
 *   node scripts/halves.ts <month>
 */
const [month = ""] = process.argv.slice(2);
const store = openStore(process.env.KONTOR_DB ?? "kontor.db");
const rows = store.db.prepare("SELECT id FROM invoices WHERE direction = 'out' AND date LIKE ? ORDER BY id").all(`${month}%`);
let differ = 0n;
let count = 0;

for (const { id } of rows) {
  const { invoice } = store.invoice(Number(id))!;
  for (const { rate, net } of totalsOf(invoice).byRate) {
    const twice = net.units * BigInt(rate) * 2n;
    if (twice % 200n !== 100n) continue;
    const down = twice / 200n;
    const even = down % 2n === 0n ? down : down + 1n;
    if (even === down + 1n) continue;
    count++;
    differ++;
    process.stdout.write(`${invoice.number}  net ${format(net)}  ${rate} %  half-even ${format(money(even, "EUR"))}  half-up ${format(money(down + 1n, "EUR"))}\n`);
  }
}
process.stdout.write(`${rows.length} invoices, ${count} differ, together ${format(money(differ, "EUR"))}\n`);
