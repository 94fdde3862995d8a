/** Shapes of sessions: the number of requests per turn, and the sizes of answers and tool results. */

/**
 * @typedef {object} Shape
 * @property {number} requests of each turn; with the last the model answers the user, the others call a tool
 * @property {(at: number) => number} result tokens of the n-th result
 * @property {(at: number) => number} answer tokens of the n-th answer
 */

/**
 * Sizes from three recorded conversations with 813 requests, in twentieths: two of Pi's own (github.com/badlogic/pi-mono, MIT) and thirteen
 * tasks of SWE-agent in a row (github.com/SWE-agent/SWE-agent, MIT). Most results are small, and a few have most tokens.
 */
const RECORDED = {
  answers: [5, 21, 25, 28, 29, 31, 33, 36, 40, 46, 54, 65, 79, 96, 116, 141, 171, 224, 314, 774],
  results: [2, 3, 7, 17, 22, 26, 28, 28, 30, 34, 40, 68, 101, 135, 203, 257, 318, 446, 756, 3_137],
};

/** All equally often, without a repeating order. @param {number[]} sizes */
const oneOf = (sizes) => (/** @type {number} */ at) => sizes[(at * 7919 + Math.floor(at / sizes.length) * 3) % sizes.length];
const recorded = { requests: 5, result: oneOf(RECORDED.results), answer: oneOf(RECORDED.answers) };

/** @type {Record<string, Shape>} */
export const SHAPES = {
  recorded,
  bulky: { ...recorded, result: (at) => Math.min(11_000, 5 * Math.max(60, recorded.result(at))) },
  long: { ...recorded, requests: 40 },
  small: { requests: 2, result: () => 60, answer: () => 60 },
};
