import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { Payments } from "../src/payments.js";
import { provider } from "./support.js";

const sign = (body, secret) => createHmac("sha256", secret).update(body).digest("hex");

test("a capture that failed with 500 is tried again with the same key", async () => {
  const bank = provider(500, 503);
  await new Payments({ fetch: bank.fetch }).capture(7, 1250);
  assert.deepEqual(bank.requests, ["capture-7", "capture-7", "capture-7"]);
  assert.equal(bank.charged().length, 1);
});

test("a capture that was refused is not tried again", async () => {
  const bank = provider(402);
  await assert.rejects(new Payments({ fetch: bank.fetch }).capture(7, 1250), /capture of order 7: 402/);
  assert.equal(bank.requests.length, 1);
});

test("a body signed with the old or the new secret is the provider's", () => {
  const payments = new Payments({ secrets: ["old", "new"] });
  assert.ok(payments.isSigned("{}", sign("{}", "old")) && payments.isSigned("{}", sign("{}", "new")));
  assert.ok(!payments.isSigned("{}", sign("{}", "other")) && !payments.isSigned("{}", "no hex") && !payments.isSigned("{}"));
});
