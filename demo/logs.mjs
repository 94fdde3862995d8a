/**
 * The logs of the demo's session. The server's log of Saturday is the large tool result that the demo recovers byte for byte; names and notes
 * in several scripts, a misread encoding and nested quotes make that harder.
 */
/** The command that printed it, and the order that the demo asks about. */
export const SATURDAY = "ssh web-1 'cat /var/log/shop/2026-10-31.log'";
export const ORDER = 10_482;
export const CUSTOMERS = ["Zoë Müller", "José Álvarez", "佐藤 美咲", "王小明", "Łukasz Żak", "Siân O'Brien", "Anaïs Lefèvre", "Amy Chen", "ZoÃ« MÃ¼ller", "Tom Baker"];
const NOTES = ["", "", "", ' note="gift: \\"happy birthday\\" 🎂"', ' note="生日快乐"', ' note="ring at C:\\\\Lab"', ' note="プレゼント用に包んでください"'];

/**
 * A day's log. On a broken day, slow webhooks are delivered again, and each delivery captures.
 *
 * @param {string} date
 * @param {number} requests
 * @param {{ isBroken?: boolean }} [options]
 */
export function serverLog(date, requests, { isBroken = false } = {}) {
  const numbers = seeded(Number(date.replaceAll("-", "")));
  /** @type {{ at: number, text: string }[]} */
  const lines = [];
  const say = (/** @type {number} */ at, /** @type {string} */ text, level = "INFO ") => void lines.push({ at, text: `${new Date(at).toISOString()} ${level} ${text}` });
  const start = Date.parse(`${date}T13:50:00.000Z`);
  const checkout = (/** @type {number} */ at, /** @type {number} */ order, /** @type {string} */ customer, /** @type {string} */ amount, /** @type {string} */ event, /** @type {number} */ ms) => {
    say(at, `web-${numbers.between(1, 2)} POST /checkout order=${order} customer="${customer}" total=${amount}${numbers.pick(NOTES)} status=201 ms=${numbers.between(4, 19)}`);
    const isSlow = ms > 10_000;
    for (const [n, wait] of (isSlow ? [0, 15_000, 60_000] : [0]).entries()) {
      const [arrived, took] = [at + 21_000 + wait + (n > 0 ? 10_000 : 0), isBroken && n === 0 ? ms : numbers.between(2, 9)];
      if (isBroken) say(arrived + took - 2, `web-${n === 0 ? 1 : 2} captured order=${order} amount=${amount} capture=cap_${numbers.hex(10)}`);
      say(arrived + took, `web-${n === 0 ? 1 : 2} POST /webhooks/payments event=${event} order=${order} delivery=${n + 1} result=${isBroken || n === 0 ? "accepted" : "known"} status=200 ms=${took}`);
      if (isBroken && isSlow && n === 0) say(arrived + took + 1, `web-1 slow answer event=${event} ms=${took} limit=10000`, "WARN ");
    }
  };
  for (let n = 0; n < requests; n++) {
    const at = start + n * 6_000 + numbers.between(0, 5_000);
    const kind = numbers.between(1, 100);
    const visitor = `ip=203.0.113.${numbers.between(2, 250)} agent="Mozilla/5.0 (${numbers.pick(["X11; Linux x86_64", "Macintosh; Intel Mac OS X 10_15_7", "iPhone; CPU iPhone OS 18_1 like Mac OS X"])})"`;
    if (kind <= 45) say(at, `web-${numbers.between(1, 2)} GET /products/${numbers.between(1, 90)} status=200 ms=${numbers.between(1, 12)} ${visitor}`);
    else if (kind <= 65) say(at, `web-${numbers.between(1, 2)} POST /cart cart=${numbers.hex(8)} product=${numbers.between(1, 90)} status=${numbers.between(0, 9) > 0 ? 201 : "409 reason=\"sold out\""} ms=${numbers.between(2, 15)} ${visitor}`);
    else if (kind <= 92) checkout(at, ORDER - 116 + n + (n > 115 ? 1 : 0), numbers.pick(CUSTOMERS), `$${numbers.between(9, 180)}.${numbers.pick(["00", "50", "90"])}`, `evt_${numbers.hex(8)}`, kind > 89 ? numbers.between(10_050, 14_000) : numbers.between(120, 2_400));
    else say(at, `web-${numbers.between(1, 2)} GET /health status=200 ms=0`);
  }
  if (isBroken) checkout(Date.parse(`${date}T14:01:40.170Z`), ORDER, "José Álvarez", "$49.90", "evt_7Qm2", 10_312);
  return `${lines.sort((a, b) => a.at - b.at).map(({ text }) => text).join("\n")}\n`;
}

/** The log of a CI run that fails. @param {import("./make-session.mjs").Recorder} recorder */
export function ciLog({ random, testReport }) {
  const lines = ["22", "24"].flatMap((node) => [
    `##[group]Job test (node ${node}, ubuntu-24.04)`, "Current runner version: '2.329.0'", "##[group]Run actions/checkout@v5", "Syncing repository: shop/shop", "[command]/usr/bin/git version", "git version 2.51.1",
    ...Array.from({ length: 24 }, (_, n) => `remote: Compressing objects: ${String(Math.round(((n + 1) * 100) / 24)).padStart(3)}% (${(n + 1) * 17}/408)`), "HEAD is now at c09be15 Wait for a locked database", "##[endgroup]",
    `##[group]Run actions/setup-node@v6 with node-version: ${node}`, ...Array.from({ length: 30 }, () => `Extracting node-v${node}/${random.pick(["include/node", "lib/node_modules/npm/node_modules", "share/doc"])}/${random.hex(6)}`), "##[endgroup]",
    ...testReport(node === "24" ? { "a reservation expires after 15 minutes": "The expression evaluated to a falsy value:\n\n  assert.ok(reserve(db, \"two\", 1, 1))\n" } : {}).split("\n"), ...(node === "24" ? ["##[error]Process completed with exit code 1."] : []), "##[group]Post job cleanup.", "##[endgroup]",
  ]);
  return `${lines.map((line, n) => `${new Date(Date.parse("2026-11-03T01:12:04.000Z") + n * 211).toISOString()} ${line}`).join("\n")}\n`;
}

/** Repeatable random numbers (mulberry32): the session is the same, byte for byte, each time it is made. @param {number} seed */
export function seeded(seed) {
  const between = (/** @type {number} */ low, /** @type {number} */ high) => {
    seed = (seed + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(seed ^ (seed >>> 15), seed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return low + Math.floor((((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32) * (high - low + 1));
  };
  const pick = (/** @type {readonly string[]} */ items) => items[between(0, items.length - 1)];
  const hex = (/** @type {number} */ digits) => Array.from({ length: digits }, () => between(0, 15).toString(16)).join("");
  return { between, pick, hex };
}
