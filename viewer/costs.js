/**
 * Tokens and cost of a branch as numbers: each request as its provider counted it, the total so far, the cost of compactions, and the
 * composition of the history. Pure.
 */

/** @typedef {import("./branch.js").Branch} Branch */
/** @typedef {import("./branch.js").Item} Item */

/**
 * A request of the agent, in tokens; `cost` is in dollars, for this request only.
 * @typedef {{ item: Item, cached: number, written: number, input: number, output: number, cost: number }} Request
 */

/** The total that a provider counted; some report none. @param {any} used */
export function countedIn(used) {
  const parts = [used?.input, used?.cacheRead, used?.cacheWrite, used?.output];
  return used?.totalTokens || parts.reduce((sum, part) => sum + (part ?? 0), 0);
}

/** @param {Branch} branch @returns {Request[]} */
export function requestsOf(branch) {
  return branch.said.flatMap((item) => {
    const used = item.line.entry.message?.usage;
    if (item.speaker !== "assistant" || !countedIn(used)) return [];
    return [{ item, cached: used.cacheRead ?? 0, written: used.cacheWrite ?? 0, input: used.input ?? 0, output: used.output ?? 0, cost: used.cost?.total ?? 0 }];
  });
}

/** The totals. @param {Branch} branch @param {Request[]} requests */
export function totalsOf(branch, requests) {
  const sum = (/** @type {keyof Omit<Request, "item">} */ name) => requests.reduce((all, request) => all + request[name], 0);
  const summaries = [...branch.session.summaries.values()].filter(({ id }) => branch.node(id));
  const prompt = sum("cached") + sum("written") + sum("input");
  return {
    messages: branch.seen.length,
    requests: requests.length,
    prompt,
    cachedShare: prompt > 0 ? sum("cached") / prompt : 0,
    output: sum("output"),
    cost: sum("cost"),
    summaries: summaries.length,
    replaced: summaries.length - branch.below(branch.frontier).length,
    summariesCost: summaries.reduce((all, { usage }) => all + (usage?.cost?.total ?? 0), 0),
  };
}

/** The costs of a branch's summaries, in the order in which they were made. @param {Branch} branch */
export function summaryCosts(branch) {
  return [...branch.session.summaries.values()]
    .filter(({ id }) => branch.node(id))
    .map(({ createdAt, usage }) => ({ time: createdAt, cost: usage?.cost?.total ?? 0 }))
    .sort((a, b) => a.time - b.time);
}

/** What fills the history: estimated tokens by speaker, and for tool results by tool, largest first. @param {Branch} branch */
export function compositionOf(branch) {
  /** @type {Map<string, { name: string, speaker: string, tokens: number, messages: number }>} */
  const found = new Map();
  for (const { speaker, tokens, line } of branch.said) {
    const tool = line.entry.message?.toolName;
    const name = tool ? `${speaker}: ${tool}` : speaker;
    const part = found.get(name) ?? { name, speaker, tokens: 0, messages: 0 };
    part.tokens += tokens;
    part.messages += 1;
    found.set(name, part);
  }
  return [...found.values()].sort((a, b) => b.tokens - a.tokens);
}
