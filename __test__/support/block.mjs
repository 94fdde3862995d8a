/** Reads the model's context after a compaction: Pi's frame, our block in it, and the parts of the block. */

const FRAME = /^The conversation history before this point was compacted into the following summary:\n\n<summary>\n([^]*)\n<\/summary>\s*$/;

/**
 * @param {import("../../demo/wire.mjs").Conversation} request
 * @returns {string | undefined} the text in place of the compacted messages, if the request begins with one
 */
export function blockOf({ messages: [first] }) {
  return first?.role === "user" ? FRAME.exec(first.text)?.[1] : undefined;
}

/**
 * The ids under "Summary IDs for Drill-Down", in order.
 * @param {string} block
 * @returns {string[]}
 */
export function drillDownIds(block) {
  const [, list = ""] = block.split("### Summary IDs for Drill-Down\n");
  return list.split("\n").flatMap((line) => /^- (s-[0-9a-f]{10})\b/.exec(line)?.[1] ?? []);
}

/** @param {string | undefined} words such as `1,234` */
const numberOf = (words) => Number(words?.replaceAll(",", ""));

/**
 * The numbers of the statistics line.
 * @param {string} block
 */
export function statistics(block) {
  const counts = /^([\d,]+) messages? stored \| ([\d,]+) summar(?:y|ies) \| DAG depth (\d+) \| /m;
  const coverage = / \| covers ([\d,]+) messages?, (none|\d+) missing, (\d+) degraded$/m;
  const [, stored, summaries, depth] = (counts.exec(block) ?? []).map(numberOf);
  const [, covers, missing, degraded] = coverage.exec(block) ?? [];
  return { stored, summaries, depth, covers: numberOf(covers), missing, degraded: Number(degraded) };
}
