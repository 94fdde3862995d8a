/**
 * How people phrase things in a coding session: rules, requests, decisions, commands, files, errors, numbers and open tasks, each in
 * several ways, and for each a question from someone who has forgotten the answer.
 */

/**
 * @typedef {object} Phrasing
 * @property {(topic: string, needle: string) => string} say
 * @property {(topic: string) => string} ask
 * @property {(word: string, n: number) => string} [needle] made from a word that is unique and from the fact's number
 * @property {RegExp} [nearby]
 */

/** How outcomes are worded. */
export const PASSED = /\b(pass(ed|es|ing)?|ok|succeed(ed|s)?|success|green|clean|all good|exit(ed)?( with)?( code)? 0)\b|✓|✔/i;
export const FAILED = /\b(fail(ed|s|ing|ure)?|not ok|error|red|exit(ed)?( with)?( code)? 1)\b|✗|✖|AssertionError/i;

const upper = (/** @type {string} */ word) => word.toUpperCase().replaceAll("-", "_");
/** A number that no other fact has; the decimals distinguish it from numbers in files and tool output. */
const decimal = (/** @type {number} */ n) => (100 + n * 0.37).toFixed(2);
export const slug = (/** @type {string} */ topic) => topic.replaceAll(" ", "-");

/** @type {Record<import("./facts.mjs").Kind, Phrasing[]>} */
export const PHRASINGS = {
  rule: [
    {
      say: (topic, needle) => `And please leave the branch ${needle} alone, the ${topic} is released from it.`,
      ask: (topic) => `which branch is the ${topic} released from and has to be left alone`,
    },
    {
      say: (topic, needle) => `From now on every change to the ${topic} goes past ${needle} first, she owns it.`,
      ask: (topic) => `who owns the ${topic} and sees every change to it first`,
    },
    {
      say: (topic, needle) => `Don't run the ${topic} against ${needle}, that's the box the customers see.`,
      ask: (topic) => `against which box the customers see should the ${topic} not be run`,
    },
    {
      say: (topic, needle) => `One thing to keep in mind: dates in the ${topic} are stored as ${needle}, no exceptions.`,
      ask: (topic) => `how are dates stored in the ${topic}`,
    },
    {
      say: (topic, needle) => `I want the ${topic} to stay on protocol ${needle} until I say otherwise.`,
      ask: (topic) => `on which protocol does the user want the ${topic} to stay`,
    },
    {
      say: (topic, needle) => `You may touch anything in the ${topic} except ${needle}; legal signed that part off.`,
      ask: (topic) => `which part of the ${topic} did legal sign off`,
    },
    {
      say: (topic, needle) => `Never write the header ${needle} into the logs of the ${topic}.`,
      ask: (topic) => `which header may not get into the logs of the ${topic}`,
    },
    {
      say: (topic, needle) => `When you commit something for the ${topic}, put ${needle} into the subject line.`,
      ask: (topic) => `what goes into the subject line of a commit for the ${topic}`,
    },
  ],
  request: [
    {
      say: (topic, needle) => `Can you find out why the ${topic} drops every second batch from ${needle}? It started on Monday, and nobody changed anything on our side, at least nobody admits it.`,
      ask: (topic) => `where do the batches come from that the ${topic} drops`,
    },
    {
      say: (topic, needle) => `The ${topic} needs a dry run, call the switch ${needle}. It prints what it would do and exits without touching anything.`,
      ask: (topic) => `what is the dry run switch of the ${topic} to be called`,
    },
    {
      say: (topic, needle) => `Customer ${needle} says the ${topic} is slow in the mornings. Measure first and then propose something, I'm not after another rewrite.`,
      ask: (topic) => `which customer says the ${topic} is slow in the mornings`,
    },
    {
      say: (topic, needle) => `Next one is the ${topic}, ticket ${needle}: after a restart it picks up jobs that were done already. I'd like a test that shows this before you fix it.`,
      ask: (topic) => `ticket about the ${topic} picking up jobs again after a restart`,
    },
    {
      say: (topic, needle) => `Let's get rid of ${needle} in the ${topic}, it's been deprecated for two years. Check who still calls it.`,
      ask: (topic) => `what deprecated thing do we get rid of in the ${topic}`,
    },
    {
      say: (topic, needle) => `Please add paging to the ${topic}. The list of ${needle} is the longest one we have, so try it out with that.`,
      ask: (topic) => `longest list to try out the paging of the ${topic}`,
    },
    {
      say: (topic, needle) => `I had a look at the ${topic} yesterday and ${needle} seems wrong to me, its totals are off by a day. Tell me what you find before you change it.`,
      ask: (topic) => `what seems wrong in the ${topic} with totals off by a day`,
    },
    {
      say: (topic, needle) => `Could we make the ${topic} retry when ${needle} times out? Three attempts are plenty.`,
      ask: (topic) => `for which timeout is the ${topic} to make three attempts`,
    },
  ],
  decision: [
    {
      say: (topic, needle) => `I went with ${needle} for the ${topic}, because the alternatives lose the order of events.`,
      ask: (topic) => `what did we go with for the ${topic} to keep events in order`,
      nearby: /order of events/,
    },
    {
      say: (topic, needle) => `A cron job would do as well, but I'd take ${needle} for the ${topic} since it survives a restart.`,
      ask: (topic) => `what was taken for the ${topic} instead of a cron job`,
      nearby: /survives a restart/,
    },
    {
      say: (topic, needle) => `For the ${topic} ${needle} stays: a second index would double the write time.`,
      ask: (topic) => `what stays in the ${topic} and no second index`,
      nearby: /write time/,
    },
    {
      say: (topic, needle) => `I kept ${needle} in the ${topic} rather than a global lock, which blocks readers for seconds.`,
      ask: (topic) => `what did we keep in the ${topic} rather than a global lock`,
      nearby: /blocks readers/,
    },
    {
      say: (topic, needle) => `After reading both, ${needle} is the better fit for the ${topic} as it needs no migration.`,
      ask: (topic) => `better fit for the ${topic} that needs no migration`,
      nearby: /no migration/,
    },
    {
      say: (topic, needle) => `The ${topic} uses ${needle} now. I dropped the queue, it would need a broker that we don't run.`,
      ask: (topic) => `what does the ${topic} use now that the queue was dropped`,
      nearby: /broker/,
    },
    {
      say: (topic, needle) => `So that the ${topic} stays idempotent I chose ${needle} over plain retries.`,
      ask: (topic) => `what was chosen over plain retries in the ${topic}`,
      nearby: /idempotent/,
    },
    {
      say: (topic, needle) => `We're better off with ${needle} in the ${topic}; polling runs into their rate limit.`,
      ask: (topic) => `what are we better off with in the ${topic} than polling`,
      nearby: /rate limit/,
    },
  ],
  command: [
    {
      say: (topic, needle) => `npm test -- ${slug(topic)}-${needle}`,
      ask: (topic) => `npm test of the ${topic}`,
    },
    {
      say: (topic, needle) => `npm run build -- ${slug(topic)}-${needle}`,
      ask: (topic) => `npm run build of the ${topic}`,
    },
    {
      say: (topic, needle) => `node check.mjs ${slug(topic)}-${needle}`,
      ask: (topic) => `check.mjs for the ${topic}`,
    },
    {
      say: (topic, needle) => `npm run lint -- ${slug(topic)}-${needle}`,
      ask: (topic) => `did lint of the ${topic} succeed`,
    },
    {
      say: (topic, needle) => `sh scripts/ci.sh ${slug(topic)}-${needle}`,
      ask: (topic) => `scripts/ci.sh run for the ${topic}`,
    },
    {
      say: (topic, needle) => `set -o pipefail; npm run typecheck -- ${slug(topic)}-${needle} 2>&1 | tail -20`,
      ask: (topic) => `typecheck of the ${topic}`,
    },
  ],
  file: [
    {
      say: (topic, needle) => `src/${slug(topic)}/${needle}.ts`,
      ask: (topic) => `changed source file below src/${slug(topic)}`,
    },
    {
      say: (topic, needle) => `tests/${slug(topic)}-${needle}.test.ts`,
      ask: (topic) => `test file that was written for the ${topic}`,
    },
    {
      say: (topic, needle) => `docs/${needle}/${slug(topic)}.md`,
      ask: (topic) => `page in docs that was changed for the ${topic}`,
    },
    {
      say: (topic, needle) => `config/${slug(topic)}.${needle}.json`,
      ask: (topic) => `json in config for the ${topic}`,
    },
    {
      say: (topic, needle) => `migrations/0042_${needle}_${slug(topic)}.sql`,
      ask: (topic) => `sql migration of the ${topic}`,
    },
    {
      say: (topic, needle) => `lib/${slug(topic)}/${needle}/index.js`,
      ask: (topic) => `index.js in lib for the ${topic}`,
    },
    {
      say: (topic, needle) => `.github/workflows/${slug(topic)}-${needle}.yml`,
      ask: (topic) => `workflow yml for the ${topic}`,
    },
  ],
  error: [
    {
      say: (topic, needle) => `Error: the ${topic} refused the handshake, code ${needle}`,
      ask: (topic) => `code when the ${topic} refused the handshake`,
      needle: upper,
    },
    {
      say: (topic, needle) => `2026-05-04T08:12:44Z ERROR [${slug(topic)}] upstream said ${needle}, giving up after 3 attempts`,
      ask: (topic) => `what did upstream say before the ${topic} gave up after 3 attempts`,
      needle: (word) => `E_${upper(word)}`,
    },
    {
      say: (topic, needle) => `${slug(topic)}: fatal: ${needle}: lease is held by another worker`,
      ask: (topic) => `fatal error of the ${topic} about a lease held by another worker`,
      needle: (word) => `E${String(Number.parseInt(word.split("-")[1], 36)).padStart(7, "0")}`,
    },
    {
      say: (topic, needle) => `    at connect (${slug(topic)}/pool.js:88:13) { errno: -111, code: '${needle}' }`,
      ask: (topic) => `errno and code at connect in pool.js of the ${topic}`,
      needle: (word) => `ECONN_${upper(word)}`,
    },
    {
      say: (topic, needle) => `ERROR:  duplicate key value violates unique constraint (SQLSTATE ${needle}) in ${slug(topic)}`,
      ask: (topic) => `SQLSTATE of the duplicate key in the ${topic}`,
      needle: (word) => `23${upper(word)}`,
    },
    {
      say: (topic, needle) => `warn  ${slug(topic)} checksum mismatch on part 7, got ${needle}`,
      ask: (topic) => `checksum mismatch of the ${topic} on part 7`,
    },
    {
      say: (topic, needle) => `thread 'main' panicked at '${slug(topic)}: unexpected status ${needle}', src/main.rs:212`,
      ask: (topic) => `main panicked with an unexpected status in the ${topic}`,
    },
  ],
  number: [
    {
      say: (topic, needle) => `Measured it: a batch of the ${topic} takes ${needle} now.`,
      ask: (topic) => `how long does a batch of the ${topic} take`,
      needle: (_, n) => `${decimal(n)} ms`,
    },
    {
      say: (topic, needle) => `The ${topic} peaks at ${needle} of memory.`,
      ask: (topic) => `memory peak of the ${topic}`,
      needle: (_, n) => `${decimal(n)} MB`,
    },
    {
      say: (topic, needle) => `With the change the ${topic} handles ${needle}, which is about twice what it did.`,
      ask: (topic) => `how much does the ${topic} handle, about twice what it did`,
      needle: (_, n) => `${decimal(n)} req/s`,
    },
    {
      say: (topic, needle) => `Traffic of the ${topic} is up ${needle} on last year.`,
      ask: (topic) => `how far is traffic of the ${topic} up on last year`,
      needle: (_, n) => `${decimal(n)} %`,
    },
    {
      say: (topic, needle) => `Cold start of the ${topic}: ${needle}, warm it is a tenth of that.`,
      ask: (topic) => `cold start time of the ${topic}`,
      needle: (_, n) => `${decimal(n)} s`,
    },
    {
      say: (topic, needle) => `The table behind the ${topic} has grown to ${needle} since spring.`,
      ask: (topic) => `to what has the table behind the ${topic} grown`,
      needle: (_, n) => `${decimal(n)} GB`,
    },
    {
      say: (topic, needle) => `p95 of the ${topic} went down to ${needle}.`,
      ask: (topic) => `p95 of the ${topic}`,
      needle: (_, n) => `${decimal(n)} µs`,
    },
  ],
  task: [
    {
      say: (topic, needle) => `Still to do: rename ${needle} in the ${topic}, but not today.`,
      ask: (topic) => `what is to be renamed in the ${topic}`,
    },
    {
      say: (topic, needle) => `For later: the ${topic} needs a page about ${needle}.`,
      ask: (topic) => `about what does the ${topic} need a page`,
    },
    {
      say: (topic, needle) => `Put on the list that ${needle} of the ${topic} has no test yet.`,
      ask: (topic) => `what in the ${topic} has no test yet`,
    },
    {
      say: (topic, needle) => `We'll have to come back to ${needle} in the ${topic} once the release is out.`,
      ask: (topic) => `what in the ${topic} do we come back to after the release`,
    },
    {
      say: (topic, needle) => `TODO for this week: ask ops about ${needle} for the ${topic}.`,
      ask: (topic) => `what do we ask ops about for the ${topic}`,
    },
    {
      say: (topic, needle) => `Not now, but ${needle} in the ${topic} should be cleaned up before we ship.`,
      ask: (topic) => `what in the ${topic} should be cleaned up before we ship`,
    },
    {
      say: (topic, needle) => `Remind me that the ${topic} still lacks ${needle}.`,
      ask: (topic) => `what does the ${topic} still lack`,
    },
  ],
};

/** The user's words for a finished task, in the order of the tasks' phrasings. @type {((topic: string) => string)[]} */
export const CLOSINGS = [
  (topic) => `By the way, the rename in the ${topic} is done, Mira did it.`,
  (topic) => `I wrote that page for the ${topic} myself, you can strike it.`,
  (topic) => `The missing test of the ${topic} is there now, take it off the list.`,
  (topic) => `What we wanted to come back to in the ${topic} is settled.`,
  (topic) => `Ops have answered about the ${topic}, so that's closed.`,
  (topic) => `The cleanup in the ${topic} went in last night, nothing left to do there.`,
  (topic) => `The ${topic} has what it was lacking, forget about that one.`,
];
