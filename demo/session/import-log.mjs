/**
 * The logs of the nightly imports. The first is the large tool result that the demo recovers byte for byte.
 *
 * It contains what makes such texts hard to preserve: two scripts besides Latin, mojibake, backslashes, nested quotes, XML with wrong
 * closing tags, and lines that look like the end of something.
 */
import { Random } from "./random.mjs";

const SHARE = "\\\\\\\\lager01\\\\Eingang";

const WAREHOUSE = ["Lager Nord GmbH & Co. KG", "Spedition Möller", "Hafenlogistik Süderelbe", "Kühlhaus Bülow", "Werft Vegesack"];
const OSAKA = ["株式会社ミナト商会", "大阪電線工業", "有限会社ハシモト", "関西物流サービス"];
const SHENZHEN = ["深圳海联电子", "广州远洋贸易", "东莞精密五金"];
/** The bytes of the Osaka names, read as windows-1252. */
const GARBLED = ["Š”Ž®‰ïŽÐƒ~ƒiƒg¤‰ï", "‘åã“dü•H‹Æ", "—LŒÀ‰ïŽÐƒnƒVƒ‚ƒg"];
const GOODS_JP = ["USBケーブル 2m", "電源アダプター", "防水コネクタ", "端子台 12P", "結束バンド（黒）"];
const GOODS_CN = ["USB-C 转接头", "铝合金外壳", "防尘网", "硅胶垫圈", "连接线 3m"];
/** The rejection's text since Monday. */
const HINT = "; put descriptions with markup into <![CDATA[…]]>（说明文字中如有 HTML 标记，请放入 CDATA）";
const WIDE = "０１２３４５６７８９";

/**
 * @typedef {object} Night
 * @property {string} date
 * @property {number} files
 * @property {boolean} [mended] whether wide digits, CDATA and Shift_JIS are already supported
 */

/**
 * @param {Night} night
 * @returns {string}
 */
export function importLog({ date, files, mended = false }) {
  const random = new Random(Number(date.replaceAll("-", "")));
  let clock = Date.parse(`${date}T02:00:00.012Z`);
  /** @type {string[]} */
  const lines = [];
  const counts = { booked: 0, rejected: 0 };
  const say = (/** @type {string} */ level, /** @type {string} */ text) => {
    lines.push(`${new Date(clock).toISOString()} ${level} ${text}`);
    clock += random.between(18, 640);
  };
  const booked = (/** @type {string} */ file, /** @type {string} */ number, /** @type {string} */ partner, /** @type {string} */ total) => {
    counts.booked++;
    say("INFO ", `booked file="${SHARE}\\\\${file}" number="${number}" partner="${partner}" total="${total}"`);
  };
  const rejected = (/** @type {string} */ file, /** @type {string} */ reason, /** @type {[number, string][]} */ source) => {
    counts.rejected++;
    say("WARN ", `rejected file="${SHARE}\\\\${file}" reason="${reason}"`);
    for (const [line, text] of source) lines.push(`    ${String(line).padStart(3)} | ${text}`);
  };

  say("INFO ", `import started inbox="${SHARE}" files=${files} dry=false`);
  for (let n = 1; n <= files; n++) {
    const kind = random.between(1, 100);
    const serial = String(n).padStart(4, "0");
    if (kind <= 44) {
      booked(`lager\\\\LAGER_20261101_${serial}.csv`, `B-${20_400 + n}`, random.pick(WAREHOUSE), `${random.between(12, 4200)}.${String(random.between(0, 99)).padStart(2, "0")} EUR`);
    } else if (kind <= 60) {
      booked(`osaka\\\\請求書_202611_${serial}.csv`, `OS-2026-${1000 + n}`, random.pick(!mended && random.between(0, 2) === 0 ? GARBLED : OSAKA), `${random.between(8, 980) * 100} JPY`);
    } else if (kind <= 72) {
      if (mended) booked(`osaka\\\\請求書_202611_${serial}.csv`, `OS-2026-${1000 + n}`, random.pick(OSAKA), `${random.between(12, 980)}000 JPY`);
      else rejectedAmount(n, serial);
    } else if (kind <= 86) {
      booked(`shenzhen\\\\SZ_1101_${serial}.xml`, `SZ-${7000 + n}`, random.pick(SHENZHEN), `${random.between(90, 9900)}.${random.between(10, 99)} CNY`);
    } else if (kind <= 95) {
      rejectedXml(n, serial);
    } else {
      say("WARN ", `slow read file="${SHARE}\\\\lager\\\\LAGER_20261101_${serial}.csv" ms=${random.between(4000, 31000)} note="share answered \\"ERROR_NETNAME_DELETED\\" once, tried again"`);
      booked(`lager\\\\LAGER_20261101_${serial}.csv`, `B-${20_400 + n}`, random.pick(WAREHOUSE), `${random.between(12, 900)}.00 EUR`);
    }
  }
  say("INFO ", `import finished booked=${counts.booked} rejected=${counts.rejected} moved="${SHARE}\\\\verarbeitet"`);
  return `${lines.join("\n")}\n`;

  /**
   * @param {number} n
   * @param {string} serial
   */
  function rejectedAmount(n, serial) {
    const amount = wide(random.between(12, 980));
    const text = `${amount}，０００`;
    const line = random.between(2, 9);
    const goods = random.pick(GOODS_JP);
    rejected(`osaka\\\\請求書_202611_${serial}.csv`, `not an amount in JPY: \\"${text}\\"`, [
      [line, `OS-2026-${1000 + n};2026-10-30;2026-11-30;JPY;${random.pick(OSAKA)};JP;${goods};${random.between(2, 400)};${text};10`],
    ]);
  }

  /**
   * @param {number} n
   * @param {string} serial
   */
  function rejectedXml(n, serial) {
    const line = random.between(9, 41);
    const goods = random.pick(GOODS_CN);
    const file = `shenzhen\\\\SZ_1101_${serial}.xml`;
    if (!mended && random.between(0, 1) === 0) {
      rejected(file, `unexpected \\"<![CDATA[${goods.slice(0, 3)}\\" at line ${line}`, [
        [line - 1, "  <position>"],
        [line, `    <content><![CDATA[${goods} </content> 黑色 \\ 白色]]></content>`],
        [line + 1, `    <quantity>${random.between(1, 90)}</quantity>`],
      ]);
      return;
    }
    if (!mended && n > 180) lines.push("--- source as received ---", "<content>", `${goods}<br>`, "</content>", "--- end of source ---");
    rejected(file, `unexpected closing tag </content> (expected </br>) at line ${line}${mended ? HINT : ""}`, [
      [line, `    <content>${goods}<br>见手册 C:\\手册\\SZ-${7000 + n}.pdf</content>`],
      [line + 1, `    <quantity>${random.between(1, 90)}</quantity>`],
    ]);
  }
}

/** @param {number} value */
function wide(value) {
  return [...String(value)].map((digit) => WIDE[Number(digit)]).join("");
}
