/** Compares requests byte by byte, as a provider's prompt cache does. */
import assert from "node:assert/strict";
import { blocksOf, meaningOf } from "../../demo/judge.mjs";

/** @typedef {import("../../demo/model-server.mjs").Received} Received */

/**
 * The request's messages, including the system prompt, as the bytes that were sent; in Anthropic's format without the cache markers, which
 * are not part of what is cached.
 * @param {Received} request
 * @returns {string} without the closing bracket, so that a longer request begins with it
 */
export function sentMessages({ api, raw, body }) {
  const messages = JSON.stringify(body.messages);
  // Parsing and serializing gives the same bytes; otherwise the comparison would be wrong.
  assert.ok(raw.includes(`"messages":${messages}`), "the request has the messages as JSON.stringify writes them");
  return (api === "anthropic" ? meaningOf([...blocksOf(body.system), ...body.messages]) : messages).slice(0, -1);
}

/**
 * Asserts that each request begins with all of the one before it.
 * @param {Received[]} requests
 */
export function assertGrowing(requests) {
  assert.ok(requests.length > 1, "there is nothing to compare");
  for (const [at, request] of requests.slice(1).entries()) {
    const [before, after] = [sentMessages(requests[at]), sentMessages(request)];
    assert.equal(after.slice(0, before.length), before, `request ${request.index} does not begin with request ${requests[at].index}`);
    assert.ok(after.length > before.length);
  }
}
