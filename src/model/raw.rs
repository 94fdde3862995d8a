//! Reads JSON front to back without building values.
//!
//! It is made for the output of `JSON.stringify` and assumes valid JSON. `None` always means that something
//! has another form or type than expected; then the caller parses it properly.

use memchr::memchr2;

/// A position in JSON.
pub(super) struct Raw<'a> {
    json: &'a str,
    at: usize,
}

impl<'a> Raw<'a> {
    pub fn new(json: &'a str) -> Self {
        Self { json, at: 0 }
    }

    /// The first byte of the next value, or whatever is in its place.
    pub fn peek(&mut self) -> Option<u8> {
        let rest = self.json.as_bytes().get(self.at..)?;
        self.at += rest.iter().position(|byte| !byte.is_ascii_whitespace())?;
        self.json.as_bytes().get(self.at).copied()
    }

    /// Whether nothing follows.
    pub fn is_at_end(&mut self) -> bool {
        self.peek().is_none()
    }

    /// Calls `each` with every key of an object, to read the value after it.
    pub fn fields(&mut self, mut each: impl FnMut(&'a str, &mut Self) -> Option<()>) -> Option<()> {
        self.list(b'{', b'}', |raw| {
            let key = raw.plain()?;
            raw.eat(b':')?;
            each(key, raw)
        })
    }

    /// Calls `each` to read every item of a list.
    pub fn items(&mut self, each: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.list(b'[', b']', each)
    }

    /// A string without escapes.
    pub fn plain(&mut self) -> Option<&'a str> {
        self.eat(b'"')?;
        let (from, to, mark) = self.next_mark()?;
        if mark == b'"' { self.json.get(from..to) } else { None }
    }

    /// Appends a string's text. Part of it may have been appended even if it returns `None`.
    pub fn push_string(&mut self, out: &mut String) -> Option<()> {
        self.eat(b'"')?;
        loop {
            let (from, to, mark) = self.next_mark()?;
            out.push_str(self.json.get(from..to)?);
            if mark == b'"' {
                return Some(());
            }
            out.push(self.escaped()?);
        }
    }

    /// A number or a literal, as written.
    pub fn token(&mut self) -> Option<&'a str> {
        self.peek()?;
        let rest = self.json.get(self.at..)?;
        let ends = |byte: u8| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
        let (token, _) = rest.split_at_checked(rest.bytes().position(ends).unwrap_or(rest.len()))?;
        self.at += token.len();
        Some(token)
    }

    /// Skips a value.
    pub fn skip(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.skip_string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' if depth > 0 => {
                    self.at += 1;
                    continue;
                }
                _ => drop(self.token().filter(|token| !token.is_empty())?),
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn skip_string(&mut self) -> Option<()> {
        self.eat(b'"')?;
        while self.next_mark()?.2 != b'"' {
            self.at += 1;
        }
        Some(())
    }

    /// Moves past the next quotation mark or backslash. Returns where it started, where the mark is, and
    /// which it is.
    fn next_mark(&mut self) -> Option<(usize, usize, u8)> {
        let rest = self.json.as_bytes().get(self.at..)?;
        let length = memchr2(b'"', b'\\', rest)?;
        let from = self.at;
        self.at += length + 1;
        Some((from, from + length, rest[length]))
    }

    /// The character after a backslash. `JSON.stringify` almost never escapes surrogate pairs.
    fn escaped(&mut self) -> Option<char> {
        let sign = *self.json.as_bytes().get(self.at)?;
        self.at += 1;
        Some(match sign {
            b'n' => '\n',
            b't' => '\t',
            b'r' => '\r',
            b'b' => '\u{8}',
            b'f' => '\u{c}',
            b'"' | b'\\' | b'/' => char::from(sign),
            b'u' => {
                let digits = self.json.get(self.at..self.at + 4)?;
                self.at += 4;
                char::from_u32(u32::from_str_radix(digits, 16).ok()?)?
            }
            _ => return None,
        })
    }

    fn eat(&mut self, sign: u8) -> Option<()> {
        (self.peek()? == sign).then(|| self.at += 1)
    }

    fn list(&mut self, begin: u8, end: u8, mut each: impl FnMut(&mut Self) -> Option<()>) -> Option<()> {
        self.eat(begin)?;
        if self.peek()? == end {
            return self.eat(end);
        }
        loop {
            each(self)?;
            match self.peek()? {
                b',' => self.at += 1,
                _ => return self.eat(end),
            }
        }
    }
}
