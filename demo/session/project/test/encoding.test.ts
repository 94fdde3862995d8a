import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { decode, guess } from "../src/import/encoding.ts";

describe("encoding", () => {
  test("knows UTF-8", () => {
    assert.equal(guess(new TextEncoder().encode("株式会社ミナト")), "utf-8");
  });

  test("knows Shift_JIS by its many high bytes", () => {
    const bytes = Uint8Array.from([0x8a, 0x94, 0x8e, 0xae, 0x89, 0xef, 0x8e, 0xd0]);
    assert.deepEqual(decode(bytes), { text: "株式会社", encoding: "shift_jis" });
  });

  test("takes what is left for windows-1252", () => {
    const bytes = Uint8Array.from([...Buffer.from("number;seller\n1;M"), 0xfc, ...Buffer.from("ller\n")]);
    assert.equal(decode(bytes).text, "number;seller\n1;Müller\n");
  });
});
