/** Shapes of sessions: the number of requests per turn, and the sizes of answers and tool results. */

/**
 * @typedef {object} Shape
 * @property {number} turns
 * @property {number} requests of each turn; with the last the model answers the user
 * @property {number} calls of tools in each request but the last
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
const bulky = oneOf([500, 1_400, 2_300, 3_200, 4_100, 5_000]);

/** @type {Record<string, Shape>} */
export const SHAPES = {
  bulky: { turns: 300, requests: 2, calls: 2, result: bulky, answer: () => 150 },
  ten: { turns: 60, requests: 10, calls: 1, result: bulky, answer: () => 60 },
  forty: { turns: 15, requests: 40, calls: 1, result: bulky, answer: () => 60 },
  real: { turns: 120, requests: 5, calls: 1, result: oneOf(RECORDED.results), answer: oneOf(RECORDED.answers) },
  small: { turns: 75, requests: 2, calls: 1, result: () => 60, answer: () => 60 },
};
