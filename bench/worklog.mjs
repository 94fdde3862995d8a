/**
 * Made-up sessions like those of coding agents: requests, files, tool output, decisions and reasons.
 *
 * The other corpus of this folder is random words, which is fine for size and speed but not for search. Here each session is about one
 * project with its own names, and each task has unique facts. The tuning and reporting halves share no project, name or fact.
 */
import { Dice } from "./corpus.mjs";

const START = Date.parse("2026-05-04T07:30:00.000Z");

/**
 * The subject of a project.
 * @typedef {object} Project
 * @property {string} name
 * @property {"ts" | "rs" | "py" | "go"} language
 * @property {string[]} things of its domain
 * @property {string[]} verbs
 * @property {string[]} modules
 * @property {string[]} faults
 * @property {string[]} reasons
 * @property {boolean} [chinese] its people write Chinese
 */

/** @type {Project[]} */
const TUNED = [
  {
    name: "harbour",
    language: "ts",
    things: ["Vessel", "Berth", "Manifest", "Customs Declaration", "Tide Table", "Pilot Roster", "Container Slot", "Crane Window", "Bunker Order", "Port Fee"],
    verbs: ["reserve", "release", "reconcile", "dispatch", "validate", "archive", "estimate", "reschedule"],
    modules: ["booking", "billing", "tides", "roster", "export", "notify"],
    faults: ["the same berth is given out twice after midnight", "fees come out a cent too low", "the roster forgets the night shift", "declarations with umlauts are refused", "the export stops at the first empty row", "reminders go out on holidays"],
    reasons: ["the harbour master signs each change by hand", "the tide service allows forty requests an hour", "the auditors compare totals every quarter", "two terminals share one crane", "the old scanner cannot read lower case"],
  },
  {
    name: "lumen",
    language: "rs",
    things: ["Glyph Atlas", "Frame Graph", "Texture Pool", "Shader Cache", "Swap Chain", "Light Probe", "Draw List", "Upload Ring", "Depth Pyramid", "Bind Group"],
    verbs: ["allocate", "evict", "compile", "flush", "resolve", "upload", "cull", "blend"],
    modules: ["atlas", "passes", "memory", "shaders", "present", "profiling"],
    faults: ["text flickers after the window is resized", "the pool leaks when a device is lost", "shadows shimmer at sunrise", "the first frame takes two seconds", "probes go black behind glass", "the profiler counts a pass twice"],
    reasons: ["the driver of older laptops ignores that flag", "artists change shaders while the game runs", "a fence per frame is what the console demands", "the heap may not move while it is mapped", "mobile has only four descriptor sets"],
  },
  {
    name: "茶馆",
    language: "py",
    things: ["Order Ticket", "Table Map", "Tea Menu", "Stock Sheet", "Member Card", "Kitchen Queue", "Coupon Rule", "Daily Report"],
    verbs: ["confirm", "refund", "print", "merge", "count", "expire", "sync", "restock"],
    modules: ["orders", "stock", "members", "printing", "reports", "coupons"],
    faults: ["优惠券在零点之后仍然可以使用", "打印机断开后订单丢失", "会员积分被计算了两次", "库存数量出现负数", "日报表缺少外卖订单"],
    reasons: ["收银机只支持旧的编码", "税务局要求保留五年的记录", "厨房的网络经常中断", "总店每天凌晨三点同步数据"],
    chinese: true,
  },
];

/** @type {Project[]} */
const REPORTED = [
  {
    name: "orchard",
    language: "go",
    things: ["Sensor Gateway", "Irrigation Plan", "Frost Alarm", "Harvest Batch", "Pump Controller", "Soil Probe", "Weather Feed", "Valve State", "Field Map", "Spray Permit"],
    verbs: ["calibrate", "throttle", "provision", "forecast", "drain", "register", "aggregate", "revoke"],
    modules: ["gateway", "planner", "alarms", "telemetry", "permits", "fieldmap"],
    faults: ["pumps run dry when the feed is late", "alarms fire for probes that were removed", "the planner waters a field in the rain", "batches lose their label on reprint", "the map draws the north slope mirrored", "telemetry drops every seventh reading"],
    reasons: ["the cooperative pays for water by the hour", "LoRa packets are lost in wet foliage", "the inspector wants the permit number on every sheet", "valves need nine seconds to close", "the gateway reboots itself each Sunday"],
  },
  {
    name: "quillpost",
    language: "ts",
    things: ["Draft Revision", "Mailing List", "Bounce Handler", "Template Engine", "Subscriber Import", "Send Window", "Tracking Pixel", "Consent Record", "Digest Builder", "Link Rewriter"],
    verbs: ["schedule", "suppress", "render", "deduplicate", "anonymise", "requeue", "preview", "segment"],
    modules: ["compose", "delivery", "lists", "consent", "templates", "analytics"],
    faults: ["greetings show the wrong first name", "links break when they hold an ampersand", "the digest goes out twice on Mondays", "bounced addresses come back after an import", "the preview ignores dark mode", "unsubscribing takes two clicks"],
    reasons: ["the relay blocks us above three hundred a minute", "consent has to be provable for six years", "one customer sends from a timezone with half hours", "spam filters punish tracking domains", "editors paste straight from word processors"],
  },
  {
    name: "图书馆",
    language: "py",
    things: ["Loan Record", "Shelf Index", "Reader Account", "Fine Ledger", "Catalog Import", "Hold Request", "Barcode Label", "Branch Transfer"],
    verbs: ["renew", "reserve", "scan", "waive", "transfer", "catalogue", "notify", "audit"],
    modules: ["loans", "catalog", "fines", "readers", "labels", "transfers"],
    faults: ["逾期罚款在假期也会累计", "预约的图书被借给其他读者", "条码标签打印位置偏移", "分馆调拨后馆藏数量不一致", "读者注销后账户仍能登录"],
    reasons: ["教育局规定学生免收罚款", "旧系统的索书号没有年份", "分馆的扫描枪不能识别二维码", "读者隐私数据必须加密保存"],
    chinese: true,
  },
];

const ERRORS = {
  ts: ["TypeError: Cannot read properties of undefined (reading '{field}')", "RangeError: Invalid time value in {ident}", "AssertionError [ERR_ASSERTION]: {ident} returned {n1} instead of {n2}"],
  rs: ["error[E0502]: cannot borrow `{field}` as mutable because it is also borrowed as immutable", "thread 'main' panicked at '{ident}: index out of bounds: the len is {n1} but the index is {n2}'", "error[E0382]: use of moved value: `{field}`"],
  py: ["KeyError: '{field}'", "ValueError: {ident} expected {n1} rows, got {n2}", "sqlite3.IntegrityError: UNIQUE constraint failed: {field}.{word}_id"],
  go: ["panic: runtime error: invalid memory address or nil pointer dereference in {ident}", "context deadline exceeded: {ident} waited {n1}ms", "json: cannot unmarshal string into Go struct field {field}.{word} of type int64"],
};
const COMMANDS = { ts: "npx vitest run {file}", rs: "cargo test -p {project} {word}::", py: "python -m pytest {file} -k {word}", go: "go test ./internal/{word}/... -run {ident}" };
const ENDINGS = { ts: "ts", rs: "rs", py: "py", go: "go" };
const QUALITIES = ["stale", "eager", "pending", "nightly", "partial", "remote", "cached", "shared", "legacy", "orphaned", "batched", "signed", "weekly", "bulk"];
const SUFFIXES = ["Limit", "Policy", "Window", "Key", "Guard", "Index", "Budget", "Cursor", "Token", "Ratio", "Buffer", "Retry"];
const WAYS = ["a lease with a deadline", "a second index on the date", "an append-only journal", "a checksum per row", "a bounded queue", "optimistic versions", "a nightly sweep", "one lock per tenant", "an idempotency header", "a tombstone flag"];
const REJECTED = ["a cron job", "a global mutex", "a message broker", "soft deletes everywhere", "a rewrite of the module", "polling every second", "a bigger timeout", "a feature switch"];

/**
 * The messages of one session, oldest first.
 * @param {Project} project
 * @param {number} seed
 * @param {number} tasks
 */
function session(project, seed, tasks) {
  const dice = new Dice(seed);
  /** @type {object[]} */
  const messages = [];
  let time = START + seed * 86_400_000;
  const pick = (/** @type {readonly string[]} */ list) => list[dice.below(list.length)];
  const say = (/** @type {Record<string, unknown>} */ message) => messages.push({ ...message, timestamp: (time += 1000 * (5 + dice.below(240))) });
  const text = (/** @type {string} */ text) => ({ type: "text", text });
  const user = (/** @type {string} */ words) => say({ role: "user", content: [text(words)] });
  const assistant = (/** @type {string} */ words) => say({ role: "assistant", content: [text(words)], stopReason: "stop" });
  const tool = (/** @type {string} */ name, /** @type {object} */ args, /** @type {string} */ output, words = "") => {
    const id = `call_${dice.below(2 ** 31).toString(36)}`;
    const call = { type: "toolCall", id, name, arguments: args };
    say({ role: "assistant", content: words ? [text(words), call] : [call], stopReason: "toolUse" });
    say({ role: "toolResult", toolCallId: id, toolName: name, content: [text(output)], isError: false });
  };
  const ending = ENDINGS[project.language];
  const camel = (/** @type {string} */ words) => words.replaceAll(" ", "");
  const snake = (/** @type {string} */ words) => words.toLowerCase().replaceAll(" ", "_");
  const lower = (/** @type {string} */ words) => words[0].toLowerCase() + words.slice(1);
  const snakes = project.language === "rs" || project.language === "py";
  const callable = (/** @type {string} */ verb, /** @type {string} */ quality, /** @type {string} */ thing, suffix = "") =>
    snakes ? `${verb}_${quality}_${snake(thing)}${suffix && `_${suffix.toLowerCase()}`}` : `${verb}${quality[0].toUpperCase()}${quality.slice(1)}${camel(thing)}${suffix}`;
  const hash = () => (dice.below(2 ** 28) + 2 ** 28).toString(16).slice(0, 7);

  for (let task = 0; task < tasks; task++) {
    const [thing, other] = [pick(project.things), pick(project.things)];
    const [verb, quality, suffix, module] = [pick(project.verbs), pick(QUALITIES), pick(SUFFIXES), pick(project.modules)];
    const fault = pick(project.faults);
    const reason = pick(project.reasons);
    const ident = callable(verb, quality, thing, suffix);
    const helper = callable(pick(project.verbs), pick(QUALITIES), other);
    const constant = `${snake(other).toUpperCase()}_${suffix.toUpperCase()}_${quality.toUpperCase()}`;
    const file = `src/${module}/${snake(thing)}_${quality}.${ending}`;
    const test = `tests/${module}/${snake(thing)}_${verb}_test.${ending}`;
    const [n1, n2, port, ticket] = [10 + dice.below(900), 10 + dice.below(900), 3000 + dice.below(6000), 100 + dice.below(9000)];
    const [way, rejected] = [pick(WAYS), pick(REJECTED)];
    const fill = (/** @type {string} */ shape) => {
      const values = /** @type {Record<string, unknown>} */ ({ ident, field: snakes ? snake(thing) : lower(camel(thing)), n1, n2, file: test, project: project.name, word: module });
      return shape.replace(/\{(\w+)\}/g, (_, name) => String(values[name]));
    };
    const error = fill(pick(ERRORS[project.language]));
    const command = fill(COMMANDS[project.language]);

    if (project.chinese) user(`工单 #${ticket}：${fault}。请先看 ${file}，不要修改 ${pick(project.modules)} 模块。测试环境的端口是 ${port}。`);
    else user(pick([
      `Ticket #${ticket}: ${fault}. Have a look at ${file} first; please don't touch ${pick(project.modules)} yet. Staging listens on port ${port}.`,
      `Next one, #${ticket}. A customer says ${fault}. I suspect ${ident}, but measure before you change anything. The test box is on ${port}.`,
      `Can you find out why ${fault}? It is ticket ${ticket}. Start with ${file}, and never run the migration against production; use localhost:${port}.`,
    ]));
    tool("read", { path: file }, source(project.language, { ident, helper, constant, thing, quality, n1, n2, dice, project }), project.chinese ? "先看代码。" : "I'll read it first.");
    tool("grep", { pattern: ident, path: "src" }, Array.from({ length: 3 + dice.below(8) }, () => `src/${pick(project.modules)}/${snake(pick(project.things))}_${pick(QUALITIES)}.${ending}:${1 + dice.below(400)}: ${callable(pick(project.verbs), pick(QUALITIES), pick(project.things))}(${snake(thing)})`).join("\n") + `\n${file}:${n1}: ${ident}(${constant})`);
    tool("bash", { command }, `${log(dice, project, camel)}\n${error}\n    at ${file}:${n2}:${dice.below(80)}\n${dice.below(60)} passed, 1 failed in ${dice.below(9000)} ms`);
    if (project.chinese) assistant(`找到原因了：\`${ident}\` 在 ${file} 第 ${n2} 行没有检查 ${constant}，所以${fault}。我建议使用${way}，不用${rejected}，因为${reason}。`);
    else assistant(pick([
      `Found it. \`${ident}\` trusts ${constant} although \`${helper}\` may have changed it in between, so ${fault}. I would use ${way} instead of ${rejected}, because ${reason}.`,
      `The cause is in ${file}, line ${n2}: ${constant} is read before \`${helper}\` ends. Two ways out: ${way}, or ${rejected}. I prefer the first because ${reason}.`,
    ]));
    if (dice.below(3) > 0) user(project.chinese ? `同意，用${way}。另外把 ${constant} 设为 ${n1}，${reason}。` : `Agreed, ${way}. Set ${constant} to ${n1}, not ${n2}: ${reason}. And write that into docs/decisions.md.`);
    tool("edit", { path: file, edits: [{ oldText: `${constant}) {`, newText: `${constant}) {\n  if (${helper}()) return ${n1};` }] }, `Successfully replaced 1 block(s) in ${file}.`);
    tool("bash", { command: `${command} && git commit -am "${verb} ${quality} ${thing.toLowerCase()}: ${way}"` }, `${log(dice, project, camel)}\n${dice.below(90)} passed in ${dice.below(9000)} ms\n[main ${hash()}] ${verb} ${quality} ${thing.toLowerCase()}: ${way}\n 2 files changed, ${dice.below(90)} insertions(+)`);
    assistant(project.chinese ? `已经提交。${thing} 现在使用${way}，测试全部通过，耗时 ${n2} 毫秒。` : `Done: the ${quality} ${thing.toLowerCase()} now has ${way}, and ${test} holds it down. What is left: the ${other.toLowerCase()} in ${module} still takes ${n2} ms at the worst.`);
    if (dice.below(4) === 0) user(pick(project.chinese ? ["好的，继续。", "谢谢，下一个。"] : ["Great, go on.", "Thanks. Next.", "ok continue", "👍"]));
  }
  return messages;
}

/**
 * A file as a tool shows it.
 * @param {Project["language"]} language
 * @param {{ ident: string, helper: string, constant: string, thing: string, quality: string, n1: number, n2: number, dice: Dice, project: Project }} names
 */
function source(language, { ident, helper, constant, thing, quality, n1, n2, dice, project }) {
  const note = `The ${quality} ${thing.toLowerCase()} as ${project.name} sees it; see also ${helper}.`;
  const filler = Array.from({ length: 6 + dice.below(25) }, (_, line) => `  ${dice.word()}${line} = ${dice.word()}(${dice.word()}, ${dice.below(100)})`).join("\n");
  const shapes = {
    ts: `/** ${note} */\nimport { ${helper} } from "./${helper.toLowerCase()}.ts";\n\nconst ${constant} = ${n2};\n\nexport async function ${ident}(id: string) {\n${filler}\n  return ${helper}(id, ${constant});\n}\n`,
    rs: `//! ${note}\n\nconst ${constant}: usize = ${n2};\n\npub fn ${ident}(id: &str) -> Result<usize> {\n${filler}\n    ${helper}(id, ${constant})\n}\n`,
    py: `"""${note}"""\n\n${constant} = ${n2}\n\ndef ${ident}(id):\n${filler}\n    return ${helper}(id, ${constant})\n`,
    go: `// ${note}\npackage ${project.name}\n\nconst ${constant} = ${n2}\n\nfunc ${ident}(id string) error {\n${filler}\n\treturn ${helper}(id, ${constant})\n}\n`,
  };
  return shapes[language];
}

/**
 * The output of running tests.
 * @param {Dice} dice
 * @param {Project} project
 * @param {(words: string) => string} camel
 */
function log(dice, project, camel) {
  return Array.from({ length: 5 + dice.below(30) }, () => {
    const thing = project.things[dice.below(project.things.length)];
    return `✔ ${camel(thing)} ${project.verbs[dice.below(project.verbs.length)]}s ${dice.word()} ${dice.word()} (${(dice.next() * 9).toFixed(3)} ms)`;
  }).join("\n");
}

/**
 * The sessions of one half, each a list of messages.
 * @param {"tuned" | "reported"} half
 */
export const worklogs = (half) => (half === "tuned" ? TUNED : REPORTED).map((project, n) => ({ name: project.name, messages: session(project, (half === "tuned" ? 100 : 500) + n, 40) }));
