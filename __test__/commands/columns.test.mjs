/** No line is wider than the terminal, as Pi counts columns: some versions of Pi exit on a line that is too wide. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { everything, MAIN } from "../../scripts/hosts.mjs";
import { inModules } from "../../scripts/paths.mjs";
import { columns, fit, wrap } from "../../shim/columns.js";

/** Pieces of unusual width, or of none. */
const PIECES = ["a", " ", "Word", "請", "ｆ", "か\u3099", "e\u0301", "🦀", "👩‍👩‍👧‍👦", "🇩🇪", "❤️", "‼️", "⁉️", "©️", "®️", "1️⃣", "ไทย", "ำ", "﷽", "한", "\u1112\u1161\u11ab", "\t", "\u001b[31m", "\u200b", "\u00ad", "…", "→", "─", "●", "🏴󠁧󠁢󠁳󠁣󠁴󠁿", "\u{1f3fd}", "☎", "¡", "नि", "\u{20000}", "ﬃ", "\u{e000}", "\ud800"];

/** Random texts, the same each time. */
function* texts() {
  let seed = 7;
  const next = () => (seed = (seed * 48_271) % 2_147_483_647);
  for (let n = 0; n < (everything ? 400 : 120); n++) yield Array.from({ length: next() % 40 }, () => PIECES[next() % PIECES.length]).join("");
}

test(`no line is wider than allowed, as Pi ${MAIN} counts`, async () => {
  const { visibleWidth } = await import(pathToFileURL(inModules("@earendil-works", "pi-tui", "dist", "index.js")).href);
  for (const text of texts()) {
    assert.ok(visibleWidth(fit(text, 1000)) <= columns(fit(text, 1000)), JSON.stringify(text));
    for (const width of [1, 2, 7, 30]) {
      for (const line of [fit(text, width), ...wrap(text, width)]) {
        assert.ok(visibleWidth(line) <= width, `${JSON.stringify(line)} of ${JSON.stringify(text)} in ${width}`);
      }
    }
  }
});

test("text is broken between words and nothing is lost", () => {
  assert.deepEqual(wrap("one two three four", 9), ["one two", "three", "four"]);
  assert.deepEqual(wrap("請求書はどこですか", 8), ["請求書は", "どこです", "か"]);
  assert.deepEqual(wrap("a\n\nb", 8), ["a", "", "b"]);
  assert.deepEqual(wrap("  one two\n      three", 7), ["  one", "  two", "      t", "hree"]);
  assert.equal(fit("one  two\nthree", 80), "one two three");
  assert.equal(fit("one two three", 8), "one two…");
  const long = "abcdefghij".repeat(10);
  assert.equal(wrap(long, 7).join(""), long);
});
