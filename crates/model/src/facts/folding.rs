//! Folds a sentence into the form that the patterns in `words.txt` expect, and splits it into clauses.

/// Words that never end a sentence: the next line continues it.
pub(super) const LINKS: &[&str] = &[
    "the", "a", "an", "of", "to", "and", "or", "in", "with", "never", "always", "not", "for", "on", "from",
    "by", "at", "must", "should", "don't", "der", "die", "das", "und", "oder", "nie", "nicht", "mit", "de",
    "la", "le", "et", "el", "que",
];

/// Words after which a clause starts.
const BREAKS: &[&str] = &[
    ",", ":", "and", "but", "so", "then", "also", "please", "pls", "plz", "or", "because", "cause",
    "however", "though", "while", "und", "aber", "dann", "bitte", "denn", "sondern", "et", "mais", "puis",
    "y", "pero", "e", "ma", "poi", "mas", "just", "que", "cuz",
];

/// The clauses of a folded sentence, each including everything after it.
pub(super) fn clauses(folded: &str) -> impl Iterator<Item = &str> {
    let text = folded.trim_start();
    let starts = text.match_indices(' ').filter_map(|(at, _)| {
        let word = text[..at].rsplit(' ').next()?;
        BREAKS.contains(&word).then_some(&text[at + 1..])
    });
    std::iter::once(text).chain(starts).filter(|clause| !clause.is_empty())
}

/// `sentence` in the form that patterns expect.
pub(super) fn folded(sentence: &str) -> String {
    let mut folded = String::with_capacity(sentence.len() + 16);
    folded.push(' ');
    let mut chars = sentence.char_indices().peekable();
    let mut parens = 0;
    while let Some((at, c)) = chars.next() {
        let blank = folded.ends_with(' ');
        let ends =
            chars.peek().is_none_or(|(_, next)| next.is_whitespace() || ",;:.!?)…\"”'’*`".contains(*next));
        match c {
            _ if c.is_whitespace() => blank_after(&mut folded),
            '*' | '~' if blank || ends => {}
            '"' | '“' | '”' | '„' | '«' | '»' | '`' | '「' | '『' => {
                // Several quoted words are someone else's, and count as one.
                let rest = &sentence[at + c.len_utf8()..];
                let close: &[char] = match c {
                    '“' => &['”'],
                    '„' => &['“', '”'],
                    '«' => &['»'],
                    '「' => &['」'],
                    '『' => &['』'],
                    '"' => &['"'],
                    '`' => &['`'],
                    _ => &[],
                };
                let close = if close.is_empty() { None } else { rest.find(close) };
                if let Some(close) =
                    close.filter(|close| rest[..*close].trim().contains(' ') || has_wide(&rest[..*close]))
                {
                    let end = at + c.len_utf8() + close;
                    while chars.next_if(|(at, _)| *at <= end).is_some() {}
                    blank_after(&mut folded);
                    folded.push_str("\"\" ");
                }
            }
            '」' | '』' => {}
            '(' if !blank => {
                parens += 1;
                folded.push(c);
            }
            ')' if parens > 0 => {
                parens -= 1;
                folded.push(c);
            }
            '’' | '‘' | '´' => folded.push('\''),
            '.' | '…' | '!' if ends => apart(&mut folded, ','),
            ':' if ends => apart(&mut folded, ':'),
            '：' => apart(&mut folded, ':'),
            '?' if ends => apart(&mut folded, '?'),
            '？' => apart(&mut folded, '?'),
            ',' | ';' if ends || blank || !folded.ends_with(|c: char| c.is_ascii_digit()) => {
                apart(&mut folded, ',');
            }
            '(' | ')' | '–' | '—' | '，' | '；' | '、' | '。' | '！' | '（' | '）' | '→' | '•' =>
            {
                apart(&mut folded, ',');
            }
            '-' if blank && ends => apart(&mut folded, ','),
            '¿' | '¡' | '\'' if blank => {}
            _ if c.is_ascii() => folded.push(c.to_ascii_lowercase()),
            _ if c.is_alphanumeric() => folded.extend(c.to_lowercase()),
            // An emoji, or another sign.
            _ => blank_after(&mut folded),
        }
    }
    blank_after(&mut folded);
    // A comma at the end has no meaning.
    while folded.ends_with(" , ") {
        folded.truncate(folded.len() - 2);
    }
    folded
}

/// Whether the text contains a character of a script without spaces.
fn has_wide(text: &str) -> bool {
    text.chars().any(|c| c >= '\u{2e80}')
}

fn blank_after(folded: &mut String) {
    if !folded.ends_with(' ') {
        folded.push(' ');
    }
}

fn apart(folded: &mut String, c: char) {
    blank_after(folded);
    if !folded.ends_with(", ") || c != ',' {
        folded.push(c);
        folded.push(' ');
    }
}
