import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { DeliveryError, sendPeppol } from "../src/deliver/peppol.ts";
import { anInvoice } from "./support.ts";

const stored = { id: 1, direction: "out" as const, invoice: anInvoice(), total: 11900n, paidOn: null };

/** A gateway that answers every call alike. */
function gateway(status: number, body: string, headers: Record<string, string> = {}) {
  return { url: "http://gateway.example", token: "t", fetch: (async () => new Response(body, { status, headers })) as typeof fetch };
}

async function failureOf(sending: Promise<string>): Promise<DeliveryError> {
  return sending.then(
    () => assert.fail("it was sent"),
    (error) => error,
  );
}

describe("peppol", () => {
  test("returns the gateway's id", async () => {
    assert.equal(await sendPeppol(stored, gateway(202, '{"id":"m-1"}')), "m-1");
  });

  test("takes a refusal as final", async () => {
    const error = await failureOf(sendPeppol(stored, gateway(422, "no such receiver")));
    assert.deepEqual([error.transient, error.message], [false, "gateway said 422: no such receiver"]);
  });

  test("reads Retry-After in seconds and as a date", async () => {
    const seconds = await failureOf(sendPeppol(stored, gateway(429, "slow down", { "retry-after": "30" })));
    assert.equal(seconds.retryAfterMs, 30_000);
    const date = new Date(Date.now() + 60_000).toUTCString();
    const later = await failureOf(sendPeppol(stored, gateway(503, "back soon", { "retry-after": date })));
    assert.ok(later.retryAfterMs! > 55_000 && later.retryAfterMs! <= 60_000);
  });

  test("does without Retry-After", async () => {
    assert.equal((await failureOf(sendPeppol(stored, gateway(500, "oops")))).retryAfterMs, undefined);
  });
});
