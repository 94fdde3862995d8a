/**
 * Monday: the night's import went wrong in three ways. The log, wide digits from Osaka, markup from Shenzhen.
 */
import { bash, commit, edit, gitDiff, grep, ls, read, tests } from "./tools.mjs";

/** @param {import("./recorder.mjs").Recorder} s */
export function monday(s) {
  s.useModel("demo-model");
  s.useThinking("medium");
  orientation(s);
  theLog(s);
  wideDigits(s);
  markup(s);
}

/** @param {import("./recorder.mjs").Recorder} s */
function orientation(s) {
  s.user(
    "Morning. This is kontor, our invoice service. I need you on it all week: the import has been losing files since the partners changed their exports. Get an overview first: README, docs, where the import lives. Don't change anything yet.",
  );
  s.step({ think: "Start with the README and the folder, then the import code.", say: "I'll look around first." }, read("README.md"), ls("."), ls("src"), ls("test"));
  s.step({ say: "Now the decisions and the import." }, read("docs/decisions.md"), read("src/import/reader.ts"), read("src/import/csv.ts"), read("src/import/xml.ts"), read("src/import/encoding.ts"));
  s.step({ think: "reader.ts depends on amounts and invoice. cli.ts calls readFile. Let me read those too." }, read("src/amounts.ts"), read("src/invoice.ts"), read("src/cli.ts"));
  s.says(
    `Overview:

- \`src/cli.ts\` \`importAll\` walks the inbox, \`readFile\` (\`src/import/reader.ts\`) turns one file into invoices or into a rejection with a reason; nothing throws past it.
- The format comes from the file name (\`.xml\` or CSV), the encoding from the bytes (\`guess\` in \`encoding.ts\`: UTF-8 if valid, Shift_JIS if more than a tenth of the bytes are high, otherwise windows-1252).
- Amounts are read by \`parseAmount\`, which knows ASCII digits only.
- Originals are moved to \`verarbeitet\`, rejected files stay in the inbox.

Three places look fragile to me: the encoding threshold, \`[0-9]\` in \`parseAmount\`, and the XML tokenizer, which has no CDATA.`,
    "I have enough for an overview. Name the places that look risky, without changing anything.",
  );
  s.user(
    "Good. Two rules before you start, please keep to them all week. Amounts stay bigint minor units: we had floats once and order 4711 from Osaka was booked one cent short, the audit cost us two days. And files from partners are never deleted or rewritten, only moved to verarbeitet: GoBD wants the original for ten years.",
  );
  s.says("Noted: amounts stay `bigint` minor units (because of the cent lost on order 4711), and partners' originals are only ever moved, never changed or deleted (GoBD, ten years).");
}

/** @param {import("./recorder.mjs").Recorder} s */
function theLog(s) {
  s.user("Here is last night's log: logs/import-2026-11-02.log. What went wrong, and how often?");
  s.step({ think: "It is about 40 KB. Read the whole of it, the excerpts under the rejections matter.", say: "Reading the whole log." }, read("logs/import-2026-11-02.log"));
  s.step(
    { think: "Count the kinds. Three reasons for rejections; also partner names that are mojibake but were booked, which is worse." },
    bash("cd logs && for p in 'not an amount' 'unexpected .\"<!.CDATA' 'expected </br>'; do printf '%s: ' \"$p\"; grep -c \"$p\" import-2026-11-02.log; done", "not an amount: 21\nunexpected .\"<!.CDATA: 6\nexpected </br>: 12"),
    bash("grep -c 'booked file' logs/import-2026-11-02.log; grep 'booked file' logs/import-2026-11-02.log | grep -cE 'partner=\"(Š”|‘å|—L)'; grep -c 'slow read' logs/import-2026-11-02.log", "166\n8\n13"),
  );
  s.says(
    `Four things, three of them rejections:

1. **Wide digits, 21 files.** Osaka writes amounts as \`９８，０００\`: full-width digits and comma. \`parseAmount\` rejects them.
2. **CDATA, 6 files.** Shenzhen wraps descriptions in \`<![CDATA[…]]>\`, some of which contain a literal \`</content>\`.
3. **HTML outside CDATA, 12 files.** \`<content>…<br>…</content>\`: never closed, so \`</content>\` is unexpected.
4. **Not rejected, but wrong:** 8 of the 166 booked invoices, all from Osaka, stand under names such as \`Š”Ž®‰ïŽÐƒ~ƒiƒg¤‰ï\`. That is Shift_JIS read as windows-1252. These are in the database now.

The share also answered \`ERROR_NETNAME_DELETED\` 13 times; those files were read at the second try.`,
    "The fourth is the dangerous one because nobody sees it.",
  );
  s.user("Nr. 4 scares me. But one after the other: start with 1, Osaka is waiting.\n\n田中さんから：「金額の全角数字が読めていないようです。至急ご確認ください。」");
}

/** @param {import("./recorder.mjs").Recorder} s */
function wideDigits(s) {
  s.step({ think: "NFKC would do it in one call: wide digits, wide comma, wide yen sign. Look at the tests first." }, read("test/amounts.test.ts"), grep("parseAmount", "src"));
  s.step(
    { say: "A failing test first, then the fix: normalise to NFKC before anything else." },
    edit(
      "test/amounts.test.ts",
      ['  ["1\'000.00", "EUR", 100000n],\n', '  ["1\'000.00", "EUR", 100000n],\n  ["９８，０００", "JPY", 98000n],\n  ["￥１２，５００", "JPY", 12500n],\n'],
      ['  test("says what it could not read"', '  test("does not take a raised digit for a digit", () => {\n    assert.throws(() => parseAmount("12²", "EUR"), /not an amount/);\n  });\n\n  test("says what it could not read"'],
    ),
    edit("src/amounts.ts", ["const cleaned = text.trim().replace(", 'const cleaned = text.normalize("NFKC").trim().replace(']),
    tests({
      only: "test/amounts.test.ts",
      fails: [
        {
          file: "test/amounts.test.ts",
          test: "does not take a raised digit for a digit",
          error: "AssertionError [ERR_ASSERTION]: Missing expected exception.",
        },
      ],
    }),
  );
  s.step(
    {
      think: "NFKC turns ² into 2, so 12² is read as 122 EUR. That is exactly the kind of silent error they fear. Map the ten digits and the handful of signs by hand.",
      say: "NFKC is too generous: it reads `12²` as 122. I'll map only the wide digits and signs, by their fixed distance to ASCII.",
    },
    edit(
      "src/amounts.ts",
      ['const cleaned = text.normalize("NFKC").trim().replace(', "const cleaned = narrow(text).trim().replace("],
      [
        "function split(body: string",
        `/**
 * Full-width digits and signs, as Japanese keyboards write them. By hand and not by NFKC, which would also read 12² as 122.
 */
function narrow(text: string): string {
  return text.replace(/[０-９，．－＋￥]/g, (wide) => (wide === "￥" ? "¥" : String.fromCharCode(wide.charCodeAt(0) - 0xfee0)));
}

function split(body: string`,
      ],
    ),
    tests({ only: "test/amounts.test.ts" }),
  );
  s.step({ say: "Now everything." }, tests());
  s.says(
    "Done. `parseAmount` now reads `９８，０００` and `￥１２，５００`. Decision worth keeping: we map the wide digits by hand and do not use NFKC, because NFKC turns `12²` into `122` without a word. There is a test for that.",
  );
  s.user("Perfekt. 田中さんに返信したいので、短い日本語で「直りました、今夜の取り込みで反映されます」と書いてもらえる?");
  s.says(
    "田中様\n\nいつもお世話になっております。全角数字の金額が読み取れない件、修正いたしました。今夜の取り込みから反映されます。お手数をおかけし申し訳ございませんでした。\n\nコントーア・ロイター 経理システム担当",
  );
}

/** @param {import("./recorder.mjs").Recorder} s */
function markup(s) {
  s.user("Thanks! Next: Shenzhen, 2 and 3. What does the XML look like that they send now? There is one in samples/.");
  s.step(
    {},
    read("samples/SZ_1101_0042.xml"),
    bash("ls samples; file samples/*", "SZ_1101_0042.xml\nsamples/SZ_1101_0042.xml: XML 1.0 document, Unicode text, UTF-8 text"),
    read("test/xml.test.ts"),
  );
  s.step(
    { think: "The pattern alternation needs a CDATA branch before text. Content of CDATA must not be unescaped. matchAll with the index check stays.", say: "CDATA is a token of its own, and its text must not be unescaped. A test that has both the literal `</content>` and an `&amp;` inside:" },
    edit("test/xml.test.ts", [
      '  test("reads character references"',
      `  test("takes CDATA as it stands", () => {
    const root = parseXml("<content><![CDATA[转接头 </content> a&amp;b \\\\ c]]></content>");
    assert.equal(root.text, "转接头 </content> a&amp;b \\\\ c");
  });

  test("reads character references"`,
    ]),
    edit(
      "src/import/xml.ts",
      [String.raw`/<!--[\s\S]*?-->|<\?`, String.raw`/<!--[\s\S]*?-->|<!\[CDATA\[([\s\S]*?)\]\]>|<\?`],
      ["const [, close, open, attributes = \"\", selfClosing, content] = match;", "const [, cdata, close, open, attributes = \"\", selfClosing, content] = match;\n    if (cdata) yield { kind: \"text\", text: cdata, line };"],
      ["elements, text, attributes, comments. No DTD", "elements, text, CDATA, attributes, comments. No DTD"],
    ),
    tests({ only: "test/xml.test.ts" }),
  );
  s.says(
    `CDATA works (2). For 3, \`<br>\` outside CDATA, there are two ways:

a) treat \`<br>\` as a line break inside \`<content>\`;
b) keep rejecting, and ask Shenzhen to wrap the text in CDATA, which they do in the other half of their files anyway.`,
    "Question for the user: leniency has a price here.",
  );
  s.user("b). We do not repair markup, because the last time somebody guessed at broken XML here, twelve positions were booked as one. But the reason in the log should tell them what to do. 他们看不懂英文的话就加一句中文。");
  s.step(
    { think: "Improve the message in reader.ts for an XmlError that concerns an HTML element. Add a Chinese sentence. Keep the generic message as it is." },
    grep("XmlError", "src"),
    read("test/reader.test.ts"),
  );
  s.step(
    { say: "I'll add the hint where a rejection is made, not in the parser, which knows nothing about partners." },
    edit(
      "src/import/reader.ts",
      ['import { child, parseXml, textOf, type Element } from "./xml.ts";', 'import { child, parseXml, textOf, XmlError, type Element } from "./xml.ts";'],
      [
        '    return { kind: "rejected", file, reason: error instanceof Error ? error.message : String(error) };\n',
        '    return { kind: "rejected", file, reason: reasonOf(error) };\n',
      ],
      [
        "/** One row per line;",
        `const MARKUP_HINT = "put descriptions with markup into <![CDATA[…]]>（说明文字中如有 HTML 标记，请放入 CDATA）";

/** We do not repair markup: a guess once booked twelve positions as one. The partner is told what to do instead. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const html = error instanceof XmlError && /<\\/?(br|b|i|p|ul|li)>/.test(error.message);
  return html ? \`\${error.message}; \${MARKUP_HINT}\` : error.message;
}

/** One row per line;`,
      ],
    ),
    edit("test/reader.test.ts", [
      '  test("rejects a file with a reason, and never throws"',
      `  test("tells a partner who sends HTML what to do", () => {
    const outcome = readFile("sz.xml", bytes("<invoice><content>Kabel<br>2 m</content></invoice>"));
    assert.equal(outcome.kind, "rejected");
    if (outcome.kind === "rejected") assert.match(outcome.reason, /expected <\\/br>.*CDATA.*请放入 CDATA/);
  });

  test("rejects a file with a reason, and never throws"`,
    ]),
    tests(),
  );
  s.step({ say: "The whole change once more before I commit." }, gitDiff());
  s.step({}, commit("Read full-width digits and CDATA; say what to do about HTML", "8c1f2ad"), bash("git log --oneline -4", "8c1f2ad Read full-width digits and CDATA; say what to do about HTML\n0d7aa31 Reminders: second level after 20 days\nf3c2b18 Queue: several workers\n9a41c6e Move to node:sqlite"));
  s.says("Both are in. Shenzhen's CDATA files will be read tonight; files with HTML outside CDATA are still rejected, now with a sentence in both languages. Tomorrow: the encoding, and what to do about the eight invoices under garbled names.");
}

/** One of the files from Shenzhen, with both problems. */
export const sample = `<?xml version="1.0" encoding="UTF-8"?>
<!-- exported by 海联ERP 8.2.1, 2026-11-01 -->
<invoice>
  <number>SZ-7042</number>
  <date>2026-10-30</date>
  <due>2026-11-30</due>
  <currency>CNY</currency>
  <seller>
    <name>深圳海联电子</name>
    <country>CN</country>
  </seller>
  <positions>
    <position>
      <content><![CDATA[USB-C 转接头 </content> 黑色 \\ 白色]]></content>
      <quantity>40</quantity>
      <price>12.80</price>
      <tax>0</tax>
    </position>
    <position>
      <content>连接线 3m<br>见手册 C:\\手册\\SZ-7042.pdf</content>
      <quantity>15</quantity>
      <price>9.90</price>
      <tax>0</tax>
    </position>
  </positions>
</invoice>
`;
