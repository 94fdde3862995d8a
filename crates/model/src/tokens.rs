//! Token counts without a tokenizer: weights per class of character.
//!
//! An exact count would fit one family of models only and needs megabytes of tables. The weights follow how
//! byte-pair encoders treat text: a common word is one token, long words and runs of digits break up,
//! indentation joins its line, and non-Latin scripts cost a share of a token per character.

/// Characters of a word that one token covers on average.
const LETTERS_PER_TOKEN: f64 = 6.5;
/// In data such as base64, where letters and digits alternate, a token holds fewer than two characters.
const DATA: f64 = 0.62;
/// A run of at least this many letters and digits is data if they alternate at least once in this many.
const DATA_RUN: (f64, f64) = (20.0, 4.0);
/// Digits group in threes.
const DIGITS_PER_TOKEN: f64 = 3.0;
/// A punctuation mark often joins its neighbor's token.
const PUNCTUATION: f64 = 0.62;
/// A run of blanks, beyond the single one before a word.
const BLANK_RUN: f64 = 0.8;
/// Han, kana and hangul.
const IDEOGRAPH: f64 = 0.75;
/// Latin with diacritics, Greek, Cyrillic, Hebrew, Arabic …
const OTHER_LETTER: f64 = 0.36;
/// Emoji, box drawing and other rare characters.
const RARE: f64 = 1.2;

/// The approximate cost of one image to a vision model.
pub const IMAGE: usize = 1_200;

/// Estimates the tokens in `text`; at least one unless it is empty.
pub fn estimate(text: &str) -> usize {
    let mut sum = 0.0;
    let mut run = CharacterRun { class: Class::Blank, length: 0.0 };
    let mut word = Word::default();
    let (mut previous_is_lower, mut at) = (false, 0);
    let bytes = text.as_bytes();
    while at < bytes.len() {
        let byte = bytes[at];
        // Nearly all text is ASCII, and every message passes through here: ASCII needs no decoding.
        let (class, length) = match byte {
            0..=127 => (ASCII[byte as usize], 1),
            _ => text[at..].chars().next().map_or((Class::Rare, 1), |c| (Class::of(c), c.len_utf8())),
        };
        // A capital inside camelCase starts a new word.
        let hump = previous_is_lower && byte.is_ascii_uppercase();
        if class != run.class || hump {
            sum += run.cost();
            word.add(&run);
            if !matches!(class, Class::Letter | Class::Digit) {
                sum += std::mem::take(&mut word).surcharge();
            }
            run = CharacterRun { class, length: 0.0 };
        }
        run.length += 1.0;
        previous_is_lower = byte.is_ascii_lowercase();
        at += length;
    }
    sum += run.cost();
    word.add(&run);
    sum += word.surcharge();
    (sum.ceil() as usize).max(usize::from(!text.is_empty()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Blank,
    Punctuation,
    Ideograph,
    OtherLetter,
    Rare,
}

/// The classes of ASCII.
const ASCII: [Class; 128] = {
    let (mut classes, mut byte) = ([Class::Punctuation; 128], 0_u8);
    while byte < 128 {
        classes[byte as usize] = match byte {
            b'a'..=b'z' | b'A'..=b'Z' => Class::Letter,
            b'0'..=b'9' => Class::Digit,
            b' ' | b'\t'..=b'\r' => Class::Blank,
            _ => Class::Punctuation,
        };
        byte += 1;
    }
    classes
};

impl Class {
    /// The class of a non-ASCII character.
    fn of(c: char) -> Self {
        match c {
            _ if c.is_whitespace() => Self::Blank,
            '\u{3000}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' => Self::Ideograph,
            '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}' => Self::Ideograph,
            _ if c.is_alphanumeric() => Self::OtherLetter,
            _ => Self::Rare,
        }
    }
}

/// Adjacent runs of letters and digits.
#[derive(Default)]
struct Word {
    length: f64,
    runs: f64,
    cost: f64,
}

impl Word {
    fn add(&mut self, run: &CharacterRun) {
        if matches!(run.class, Class::Letter | Class::Digit) {
            self.length += run.length;
            self.runs += 1.0;
            self.cost += run.cost();
        }
    }

    /// The extra cost if this is data and not a word.
    fn surcharge(self) -> f64 {
        let is_data = self.length >= DATA_RUN.0 && self.runs * DATA_RUN.1 >= self.length;
        if is_data { (self.length * DATA - self.cost).max(0.0) } else { 0.0 }
    }
}

struct CharacterRun {
    class: Class,
    length: f64,
}

impl CharacterRun {
    fn cost(&self) -> f64 {
        match self.class {
            _ if self.length == 0.0 => 0.0,
            Class::Letter => (self.length / LETTERS_PER_TOKEN).max(1.0),
            Class::Digit => (self.length / DIGITS_PER_TOKEN).ceil(),
            // The single blank before a word belongs to the word.
            Class::Blank if self.length <= 1.0 => 0.12,
            Class::Blank => BLANK_RUN,
            Class::Punctuation => (self.length * PUNCTUATION).max(0.7),
            Class::Ideograph => self.length * IDEOGRAPH,
            Class::OtherLetter => self.length * OTHER_LETTER,
            Class::Rare => self.length * RARE,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts with their token counts by the encoder `o200k_base`.
    #[test]
    fn the_estimate_is_close_to_an_encoders_count() {
        let texts = [
            (
                "prose",
                96,
                r"The extension keeps every message of a session in one database. When the context fills up, older messages are told in summaries, and the summaries in shorter ones, so that the model always knows roughly what happened and can bring back any detail on request. Nothing is ever deleted, whatever fails: a summary that no model would write is made by rule, and made anew as soon as a model answers again. What the user sees of all this is a single line in the footer.",
            ),
            (
                "rust",
                91,
                r"impl Ledger {
    /// What is owed on the day, in cents.
    pub fn balance(&self, day: Date) -> Result<i64, LedgerError> {
        let mut sum = 0_i64;
        for entry in self.entries.iter().filter(|entry| entry.day <= day) {
            sum = sum.checked_add(entry.cents).ok_or(LedgerError::Overflow)?;
        }
        Ok(sum)
    }
}
",
            ),
            (
                "js",
                106,
                r#"export async function fetchInvoices({ since, limit = 50 } = {}) {
  const url = new URL("/api/invoices", baseUrl);
  url.searchParams.set("limit", String(limit));
  if (since) url.searchParams.set("since", since.toISOString());
  const response = await fetch(url, { headers: { accept: "application/json" } });
  if (!response.ok) throw new Error(`server said ${response.status}`);
  return (await response.json()).items.map(toInvoice);
}
"#,
            ),
            (
                "json",
                102,
                r#"{"name":"example","version":"1.4.2","private":true,"scripts":{"build":"tsc -p tsconfig.json","test":"node --test"},"dependencies":{"left-pad":"^1.3.0","express":"~4.18.2"},"files":["dist","README.md"],"engines":{"node":">=20.0.0"},"counts":[1024,2048,4096],"nested":{"a":{"b":{"c":null}}}}"#,
            ),
            (
                "base64",
                168,
                r"iVBORw0KGgoAAAANSUhEUgAAABAAAAAQCAYAAAAf8/9hAAAAGXRFWHRTb2Z0d2FyZQBBZG9iZSBJbWFnZVJlYWR5ccllPAAAAyZpVFh0WE1MOmNvbS5hZG9iZS54bXAAAAAAADw/eHBhY2tldCBiZWdpbj0i77u/IiBpZD0iVzVNME1wQ2VoaUh6cmVTek5UY3prYzlkIj8+IDx4OnhtcG1ldGEgeG1sbnM6eD0iYWRvYmU6bnM6bWV0YS8i",
            ),
            (
                "hex",
                83,
                r"3cd3017342b8e4e80f39a8c6228297584c8f20f72b0ff260a8a759f79031392c 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
            ),
            (
                "listing",
                148,
                r"total 64
drwxr-xr-x  7 user group  4096 Nov 21 16:04 .
drwxr-xr-x 14 user group  4096 Nov 21 16:27 ..
-rw-r--r--  1 user group  1033 Nov 21 16:23 Cargo.toml
-rw-r--r--  1 user group 24712 Nov 20 09:12 Cargo.lock
-rwxr-xr-x  1 user group   512 Oct  3 11:45 build.rs
drwxr-xr-x  9 user group  4096 Nov 21 15:58 src
",
            ),
            (
                "chinese",
                73,
                r"这个扩展把会话中的每一条消息都保存在一个数据库里。当上下文快满的时候，较早的消息会被概括成摘要，摘要再被概括成更短的摘要，这样模型总是大致知道发生过什么，并且可以随时取回任何细节。什么都不会被删除。",
            ),
            (
                "japanese",
                69,
                r"この拡張機能は、セッションのすべてのメッセージを一つのデータベースに保存します。コンテキストがいっぱいになると、古いメッセージは要約され、その要約はさらに短くまとめられます。何も削除されません。",
            ),
            (
                "korean",
                55,
                r"이 확장은 세션의 모든 메시지를 하나의 데이터베이스에 보관합니다. 컨텍스트가 가득 차면 오래된 메시지는 요약되고, 그 요약은 다시 더 짧게 요약됩니다. 아무것도 삭제되지 않습니다.",
            ),
            (
                "russian",
                50,
                r"Расширение хранит каждое сообщение сеанса в одной базе данных. Когда контекст заполняется, старые сообщения пересказываются в сводках, а сводки в более коротких. Ничего никогда не удаляется.",
            ),
        ];
        for (name, tokens, text) in texts {
            let (low, high) = (tokens * 75 / 100, tokens * 132 / 100);
            let estimated = estimate(text);
            assert!((low..=high).contains(&estimated), "{name}: {estimated}, really {tokens}");
        }
    }

    #[test]
    fn words_and_names_do_not_count_as_data() {
        assert_eq!(estimate(""), 0);
        assert!((8..=12).contains(&estimate("The quick brown fox jumps over the lazy dog.")));
        let name = "parseIso8601TimestampOfEntries";
        assert!(estimate(name) <= 8, "{}", estimate(name));
        assert!(estimate(&"a".repeat(1_000)) <= 160);
    }
}
