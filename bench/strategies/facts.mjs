/**
 * Plants facts in a session: statements that are made once, spread over its length, which a compaction may keep or lose.
 *
 * Four kinds, alternately: a rule of the user's, a decision with its reason, an error with its code in a tool's output, a number in an
 * answer. Each has a unique word that identifies it, and a question without that word.
 */

/**
 * @typedef {object} Fact
 * @property {"rule" | "decision" | "error" | "number"} kind
 * @property {string} sentence as it was said
 * @property {string} needle a unique word
 * @property {string} question of someone who has forgotten the answer
 * @property {string} id of its entry
 */

const THINGS = ["exporter", "scheduler", "importer", "billing", "gateway", "thumbnail", "webhook", "archive", "login", "mailer", "replica", "parser", "report", "backup", "session", "invoice"];
const PLACES = ["staging", "nightly", "partner", "customer", "regional", "internal", "mobile", "legacy"];

/** @type {Record<Fact["kind"], { role: string, say: (thing: string, needle: string) => string, ask: (thing: string) => string }>} */
const KINDS = {
  rule: {
    role: "user",
    say: (thing, needle) => `For the ${thing} you must never touch the branch ${needle}.`,
    ask: (thing) => `branch never to touch for the ${thing}`,
  },
  decision: {
    role: "assistant",
    say: (thing, needle) => `We decided to keep ${needle} for the ${thing}, because the alternatives lose the order of events.`,
    ask: (thing) => `what was decided to keep for the ${thing} because of the order of events`,
  },
  error: {
    role: "toolResult",
    say: (thing, needle) => `Error: the ${thing} refused the handshake, code ${needle}`,
    ask: (thing) => `error code when the ${thing} refused the handshake`,
  },
  number: {
    role: "assistant",
    say: (thing, needle) => `Measured for the ${thing}: ${needle} rows per minute.`,
    ask: (thing) => `rows per minute measured for the ${thing}`,
  },
};

/**
 * The entries with this many facts added, from the first to the one before `until`.
 * @param {any[]} entries
 * @param {number} until
 * @param {number} count
 * @returns {{ entries: any[], facts: Fact[] }}
 */
export function plant(entries, until, count) {
  const copy = structuredClone(entries);
  const kinds = /** @type {Fact["kind"][]} */ (Object.keys(KINDS));
  /** @type {Fact[]} */
  const facts = [];
  const taken = new Set();
  for (let n = 0; n < count; n++) {
    const kind = kinds[n % kinds.length];
    const { role, say, ask } = KINDS[kind];
    const at = nearest(copy, Math.floor(((n + 0.5) * until) / count), until, (entry) => entry.message?.role === role && !taken.has(entry.id) && textOf(entry));
    if (at < 0) continue;
    taken.add(copy[at].id);
    const thing = `${PLACES[n % PLACES.length]} ${THINGS[Math.floor(n / PLACES.length + n) % THINGS.length]}`;
    const needle = kind === "number" ? String(70_000 + n * 7919) : `${["quartz", "kestrel", "umbra", "tansy"][n % 4]}-${(n * 7919 + 31_337).toString(36)}`;
    const sentence = say(thing, needle);
    add(copy[at].message, sentence);
    facts.push({ kind, sentence, needle, question: ask(thing), id: copy[at].id });
  }
  const text = JSON.stringify(entries);
  for (const { needle } of facts) if (text.includes(needle)) throw new Error(`the session says ${needle} itself`);
  return { entries: copy, facts };
}

/** @param {any[]} entries @param {number} place @param {number} until @param {(entry: any) => unknown} fits */
function nearest(entries, place, until, fits) {
  for (let step = 0; step < until; step++) {
    for (const at of [place + step, place - step]) if (at >= 0 && at < until && fits(entries[at])) return at;
  }
  return -1;
}

/** @param {any} entry */
const textOf = ({ message: { content } }) => typeof content === "string" || content.some((/** @type {any} */ { type }) => type === "text");

/**
 * Adds a sentence to a message: at the end, or in the middle of a tool's output.
 * @param {any} message
 * @param {string} sentence
 */
function add(message, sentence) {
  if (typeof message.content === "string") return void (message.content += `\n${sentence}`);
  const block = message.content.find((/** @type {any} */ { type }) => type === "text");
  const lines = block.text.split("\n");
  lines.splice(message.role === "toolResult" ? Math.floor(lines.length / 2) : lines.length, 0, sentence);
  block.text = lines.join("\n");
}
