import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { child, parseXml, textOf } from "../src/import/xml.ts";

describe("parseXml", () => {
  test("reads elements, attributes and text", () => {
    const root = parseXml('<?xml version="1.0"?>\n<invoice no="7"><number>A&amp;B</number></invoice>');
    assert.equal(root.attributes.no, "7");
    assert.equal(textOf(root, "number"), "A&B");
  });

  test("skips comments and knows self-closing elements", () => {
    const root = parseXml("<a><!-- <b> --><c/></a>");
    assert.deepEqual(root.children.map((one) => one.name), ["c"]);
    assert.equal(child(root, "b"), undefined);
  });

  test("names the line of a wrong closing tag", () => {
    assert.throws(() => parseXml("<a>\n<b>\n</a>"), /unexpected closing tag <\/a> \(expected <\/b>\) at line 3/);
  });

  test("reads character references", () => {
    assert.equal(parseXml("<a>&#x682a;&#24335;</a>").text, "株式");
  });
});
