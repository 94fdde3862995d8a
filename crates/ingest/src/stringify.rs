//! Writes JSON as `JSON.stringify(JSON.parse(text))` does: a line of a session file becomes what Pi hands
//! over live, so that a message has the same text either way. What Pi wrote itself does not change.

use memchr::memchr2;
use serde_json::value::RawValue;

/// Deeper values are left as they are: no message is that deep, and the stack is limited.
const DEPTH: usize = 500;

/// `json` in JavaScript's format; `None` if JavaScript could not parse it.
pub(super) fn stringify(json: &str) -> Option<String> {
    // From here on the text is valid JSON.
    serde_json::from_str::<&RawValue>(json).ok()?;
    let mut writer = Writer { json, at: 0, out: String::with_capacity(json.len()) };
    match writer.value(0) {
        Some(()) => Some(writer.out),
        None => Some(json.trim_ascii().to_owned()),
    }
}

struct Writer<'a> {
    json: &'a str,
    at: usize,
    out: String,
}

/// The positions of an object's field in the output.
struct FieldRange {
    start: usize,
    key_end: usize,
    end: usize,
}

impl<'a> Writer<'a> {
    /// Writes the value that begins here; `None` if it is too deep.
    fn value(&mut self, depth: usize) -> Option<()> {
        match self.next()? {
            b'{' | b'[' if depth == DEPTH => None,
            b'{' => self.object(depth),
            b'[' => self.array(depth),
            b'"' => self.string(),
            b'-' | b'0'..=b'9' => self.number(),
            _ => {
                let word = self.run(|byte| byte.is_ascii_alphabetic());
                self.out.push_str(word);
                Some(())
            }
        }
    }

    fn array(&mut self, depth: usize) -> Option<()> {
        self.copy();
        loop {
            match self.next()? {
                b']' => break,
                b',' => self.copy(),
                _ => self.value(depth + 1)?,
            }
        }
        self.copy();
        Some(())
    }

    fn object(&mut self, depth: usize) -> Option<()> {
        self.copy();
        let body = self.out.len();
        let mut fields = Vec::new();
        loop {
            match self.next()? {
                b'}' => break,
                b',' => self.copy(),
                _ => {
                    let start = self.out.len();
                    self.string()?;
                    let key_end = self.out.len();
                    self.next()?;
                    self.copy();
                    self.value(depth + 1)?;
                    fields.push(FieldRange { start, key_end, end: self.out.len() });
                }
            }
        }
        if let Some(ordered) = self.reordered(&fields) {
            self.out.truncate(body);
            self.out.push_str(&ordered);
        }
        self.copy();
        Some(())
    }

    /// The fields in JavaScript's order, if it differs: array indices first, by number. A repeated key keeps
    /// its first position and its last value.
    fn reordered(&self, fields: &[FieldRange]) -> Option<String> {
        let key = |field: &FieldRange| &self.out[field.start..field.key_end];
        let mut keys: Vec<&str> = fields.iter().map(key).collect();
        keys.sort_unstable();
        let twice = keys.windows(2).any(|pair| pair[0] == pair[1]);
        if !twice && keys.iter().all(|key| index(key).is_none()) {
            return None;
        }
        let mut places = std::collections::HashMap::new();
        let mut ordered: Vec<&FieldRange> = Vec::new();
        for field in fields {
            let place = *places.entry(key(field)).or_insert(ordered.len());
            match ordered.get_mut(place) {
                Some(earlier) => *earlier = field,
                None => ordered.push(field),
            }
        }
        ordered.sort_by_key(|field| index(key(field)).unwrap_or(u32::MAX));
        let texts: Vec<&str> = ordered.iter().map(|field| &self.out[field.start..field.end]).collect();
        Some(texts.join(","))
    }

    fn string(&mut self) -> Option<()> {
        self.copy();
        loop {
            let rest = self.json.get(self.at..)?;
            let (plain, _) = rest.split_at(memchr2(b'"', b'\\', rest.as_bytes())?);
            self.out.push_str(plain);
            self.at += plain.len();
            if self.peek()? == b'"' {
                self.copy();
                return Some(());
            }
            self.escape()?;
        }
    }

    fn escape(&mut self) -> Option<()> {
        match *self.json.as_bytes().get(self.at + 1)? {
            b'u' => self.unit()?,
            b'/' => {
                self.out.push('/');
                self.at += 2;
            }
            _ => {
                self.copy();
                self.copy();
            }
        }
        Some(())
    }

    /// `\u…`: as the character itself, if JSON allows that.
    fn unit(&mut self) -> Option<()> {
        let unit = self.unit_at(self.at)?;
        self.at += 6;
        if let (0xd800..=0xdbff, Some(low @ 0xdc00..=0xdfff)) = (unit, self.unit_at(self.at)) {
            self.at += 6;
            self.out.push(char::from_u32(0x10000 + ((unit - 0xd800) << 10) + (low - 0xdc00))?);
            return Some(());
        }
        match char::from_u32(unit) {
            Some('"') => self.out.push_str("\\\""),
            Some('\\') => self.out.push_str("\\\\"),
            Some('\u{8}') => self.out.push_str("\\b"),
            Some('\u{c}') => self.out.push_str("\\f"),
            Some('\n') => self.out.push_str("\\n"),
            Some('\r') => self.out.push_str("\\r"),
            Some('\t') => self.out.push_str("\\t"),
            Some(c) if c >= ' ' => self.out.push(c),
            // Control characters and lone surrogates.
            _ => self.out.push_str(&format!("\\u{unit:04x}")),
        }
        Some(())
    }

    fn unit_at(&self, at: usize) -> Option<u32> {
        let digits = self.json.get(at..at + 6)?.strip_prefix("\\u")?;
        u32::from_str_radix(digits, 16).ok()
    }

    fn number(&mut self) -> Option<()> {
        let text = self.run(|byte| matches!(byte, b'-' | b'+' | b'.' | b'e' | b'E' | b'0'..=b'9'));
        let plain = text.len() <= 15 && text != "-0" && !text.contains(['.', 'e', 'E']);
        if plain {
            self.out.push_str(text);
        } else {
            self.out.push_str(&number(text.parse().ok()?));
        }
        Some(())
    }

    /// The next byte that is not whitespace.
    fn next(&mut self) -> Option<u8> {
        self.run(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r'));
        self.peek()
    }

    fn peek(&self) -> Option<u8> {
        self.json.as_bytes().get(self.at).copied()
    }

    /// Copies the bytes that match `is`. It must stop at a character boundary.
    fn run(&mut self, is: impl Fn(u8) -> bool) -> &'a str {
        let rest = self.json.as_bytes().get(self.at..).unwrap_or_default();
        let length = rest.iter().position(|byte| !is(*byte)).unwrap_or(rest.len());
        let run = self.json.get(self.at..self.at + length).unwrap_or_default();
        self.at += length;
        run
    }

    /// Copies one ASCII character.
    fn copy(&mut self) {
        if let Some(byte) = self.peek() {
            self.out.push(char::from(byte));
            self.at += 1;
        }
    }
}

/// A quoted key as an array index.
fn index(key: &str) -> Option<u32> {
    let digits = key.get(1..key.len() - 1)?;
    let canonical = digits == "0" || digits.starts_with(|c: char| matches!(c, '1'..='9'));
    digits.parse().ok().filter(|index| canonical && *index < u32::MAX)
}

/// A number as JavaScript writes it: the shortest digits that parse back to it.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "null".into();
    }
    if value == 0.0 {
        return "0".into();
    }
    let sign = if value < 0.0 { "-" } else { "" };
    let shortest = format!("{:e}", value.abs());
    // Of two equally short and near candidates JavaScript takes the even one; so does rounding to that many
    // digits.
    let length = shortest.bytes().take_while(|byte| *byte != b'e').filter(u8::is_ascii_digit).count();
    let rounded = format!("{:.*e}", length - 1, value.abs());
    let scientific = if rounded.parse() == Ok(value.abs()) { rounded } else { shortest };
    let (mantissa, exponent) = scientific.split_once('e').unwrap_or((&scientific, "0"));
    let digits = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or_default();
    let count = i32::try_from(digits.len()).unwrap_or_default();
    let zeros = |n: i32| "0".repeat(usize::try_from(n).unwrap_or_default());
    // The number of digits before the point.
    let whole = exponent + 1;
    let body = match whole {
        1..=21 if count <= whole => format!("{digits}{}", zeros(whole - count)),
        1..=21 => {
            let (before, after) = digits.split_at(usize::try_from(whole).unwrap_or_default());
            format!("{before}.{after}")
        }
        -5..=0 => format!("0.{}{digits}", zeros(-whole)),
        _ => format!("{mantissa}e{exponent:+}"),
    };
    format!("{sign}{body}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_from_javascript_does_not_change() {
        for json in [
            r#"{"role":"user","content":"a\"b\\c\n\u001f\ud800  👋🏽","n":[1,-2.5,0.001,1e-7,1e+21,12345678901234567000]}"#,
            "{}",
            "[]",
            r#"{"1":0,"10":0,"b":{},"a":[[],{}],"01":0,"":null}"#,
        ] {
            assert_eq!(stringify(json).as_deref(), Some(json));
        }
    }

    #[test]
    fn json_from_other_programs_becomes_javascripts() {
        let strings = r#"["\u0041\u00e9\/\ud83d\uDE00\uD83D\u0022\u0008\u000a\u0001"]"#;
        let numbers =
            "[1.0,-0,-0.0,1e3,1E999,-1e999,0.1e-6,123456789012345678901234,5e-324,1708327852186103.25]";
        for (json, expected) in [
            (" { \"a\" : [ 1 , 2 ] }\r", r#"{"a":[1,2]}"#),
            (strings, r#"["Aé/😀\ud83d\"\b\n\u0001"]"#),
            (numbers, "[1,0,0,1000,null,null,1e-7,1.2345678901234569e+23,5e-324,1708327852186103.2]"),
            (r#"{"b":1,"10":2,"2":3,"b":4,"4294967295":5}"#, r#"{"2":3,"10":2,"b":4,"4294967295":5}"#),
            (r#"{"a":1,"\u0061":2}"#, r#"{"a":2}"#),
        ] {
            assert_eq!(stringify(json).as_deref(), Some(expected), "{json}");
        }
    }

    #[test]
    fn invalid_json_is_refused_and_very_deep_json_stays() {
        for json in ["", "{", r#"{"a":1"#, "{} {}", "\u{feff}{}", "[01]", "[\"\t\"]", "undefined"] {
            assert_eq!(stringify(json), None, "{json}");
        }
        let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
        assert_eq!(stringify(&deep), Some(deep));
    }
}
