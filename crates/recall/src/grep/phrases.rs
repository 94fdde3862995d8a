//! Quoted phrases, which must stand in a message word for word: whole words, their order and the punctuation
//! between them. Case, diacritics and the width of white space do not matter, as in the index.
//!
//! The index finds the passages that may have a phrase, also where it is cut between two; the text decides.

use memchr::memmem;

use super::Search;
use super::query::{other_version, quote, whole};
use super::words::words;
use lcm_model::error::{Error, Result};
use lcm_model::ids::MessageId;
use lcm_model::text::one_line;
use lcm_model::{PART_MARK, folded, is_ideograph, is_of_data, may_be_data, seam, searchable, spelled};

/// The most words of a phrase, its last, that are looked up in the index.
const LOOKED_UP: usize = 8;
/// The fewest characters of a run of data.
const DATA: usize = 32;

/// A quoted phrase.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Phrase {
    /// As written in the query.
    pub written: String,
    /// As compared with texts.
    folded: String,
    /// Another way to write it that counts too.
    other: Option<String>,
    /// Whether it may be a part of data, of which it needs no whole words.
    pub may_be_data: bool,
}

/// A text to look for phrases in.
pub(super) struct PhraseText(String);

impl PhraseText {
    pub fn of(text: &str) -> Self {
        let folded = folded(text).replace('’', "'");
        let mut out = String::with_capacity(folded.len());
        for word in folded.split_whitespace() {
            if !out.is_empty() {
                out.push(' ');
            }
            out.push_str(word);
        }
        Self(out)
    }

    pub fn has(&self, phrase: &Phrase) -> bool {
        let text = &self.0;
        let ends = |at: usize| {
            let (before, behind) = text.split_at(at);
            is_boundary(before.chars().next_back(), behind.chars().next())
                || phrase.may_be_data && is_within_data(before, behind)
        };
        [Some(&phrase.folded), phrase.other.as_ref()].into_iter().flatten().any(|wanted| {
            memmem::find_iter(text.as_bytes(), wanted).any(|at| ends(at) && ends(at + wanted.len()))
        })
    }
}

/// Whether no word goes on from one character to the next. Ideographs have no spaces between words.
fn is_boundary(one: Option<char>, next: Option<char>) -> bool {
    let is_of_word = |c: char| c.is_alphanumeric() && !is_ideograph(c);
    !(one.is_some_and(is_of_word) && next.is_some_and(is_of_word))
}

/// Whether a run so long that it is data goes on from one text to the next.
fn is_within_data(before: &str, behind: &str) -> bool {
    let of_run = |c: &char| is_of_data(*c);
    before.chars().rev().take_while(of_run).chain(behind.chars().take_while(of_run)).nth(DATA - 1).is_some()
}

impl Phrase {
    /// The quoted phrases of a query. A quotation mark within or after a word, as in 5", begins none.
    ///
    /// # Errors
    /// When there is one without a word.
    pub(crate) fn all_in(query: &str) -> Result<Vec<Self>> {
        let is_mark = |c: char| matches!(c, '"' | '“' | '”' | '„');
        let (mut phrases, mut begun) = (Vec::new(), None);
        for (at, c) in query.char_indices().filter(|(_, c)| is_mark(*c)) {
            let (last, next) = (query[..at].chars().next_back(), query[at + c.len_utf8()..].chars().next());
            match begun {
                None if is_boundary(last, Some('a')) => {
                    begun = Some(at + c.len_utf8());
                }
                Some(start) if is_boundary(Some('a'), next) => {
                    phrases.push(query[start..at].trim());
                    begun = None;
                }
                _ => {}
            }
        }
        phrases.retain(|phrase| !phrase.is_empty());
        if let Some(phrase) = phrases.iter().find(|phrase| words(phrase).next().is_none()) {
            return Err(Error::invalid(format!(
                "there is no word in the phrase \"{}\" to look for: a regular expression finds other signs too",
                one_line(phrase, 60)
            )));
        }
        Ok(phrases.into_iter().map(Self::of).collect())
    }

    pub fn of(written: &str) -> Self {
        Self {
            written: written.to_owned(),
            folded: PhraseText::of(written).0,
            other: None,
            may_be_data: may_be_data(written),
        }
    }

    /// A term without quotation marks, which may have another spelling.
    pub fn of_term(term: &str) -> Self {
        Self { other: other_version(term).map(|other| PhraseText::of(&other).0), ..Self::of(term) }
    }

    /// What finds each passage in which the phrase may end.
    pub fn expression(&self) -> String {
        // In the case that was written: it tells random words from others.
        let spelled = spelled(&self.written);
        let all: Vec<&str> = words(&spelled).map(|(_, word)| word).collect();
        let last = &all[all.len().saturating_sub(LOOKED_UP)..];
        if self.folded.contains(is_ideograph) {
            return last.last().map(|word| whole(word).join(" OR ")).unwrap_or_default();
        }
        let joined = |words: &[&str]| quote(&words.join(" "));
        let part = |word: &str| format!("parts : {}", quote(word));
        let mut any = vec![joined(last)];
        any.extend(self.other.as_deref().map(quote));
        // It may begin in the passage before; the rest of it is in this one.
        any.extend(
            (1..last.len())
                .map(|at| format!("({} AND {})", part(&seam(last[at - 1], last[at])), joined(&last[at..]))),
        );
        if let [first, between @ .., end] = last {
            // Next to ideographs, a word is only a part.
            let all = |outer: &[String]| -> String {
                let between = (!between.is_empty()).then(|| joined(between));
                let all: Vec<String> = outer.iter().cloned().chain(between).collect();
                format!("({})", all.join(" AND "))
            };
            let mixed = |word: &str| part(&format!("{PART_MARK} {word}"));
            any.push(all(&[mixed(first), quote(end)]));
            any.push(all(&[quote(first), mixed(end)]));
        }
        any.join(" OR ")
    }
}

/// The rows of the passages that may have all phrases, oldest first: those of the rarest one.
pub(super) fn rows(search: &Search<'_>, phrases: &[Phrase]) -> Result<Vec<i64>> {
    let within = search.view.index().passages(&search.filter)?;
    let mut rarest: Option<Vec<i64>> = None;
    for phrase in phrases {
        search.go_on()?;
        let rows = within.from(&phrase.expression(), 0)?;
        if rarest.as_ref().is_none_or(|rarest| rows.len() < rarest.len()) {
            rarest = Some(rows);
        }
    }
    Ok(rarest.unwrap_or_default())
}

/// Whether a message has all phrases.
pub(super) fn stand_in(search: &Search<'_>, phrases: &[Phrase], message: MessageId) -> Result<bool> {
    if phrases.is_empty() {
        return Ok(true);
    }
    let text = PhraseText::of(&searchable(&search.view.messages().message(message)?.json));
    Ok(phrases.iter().all(|phrase| text.has(phrase)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn phrases(query: &str) -> Vec<String> {
        Phrase::all_in(query).unwrap().into_iter().map(|phrase| phrase.written).collect()
    }

    #[test]
    fn phrases_stand_between_quotation_marks() {
        assert_eq!(phrases(r#"say "connection refused" now"#), ["connection refused"]);
        assert_eq!(phrases("“one two” and \"three\""), ["one two", "three"]);
        assert_eq!(phrases(r#"{"name": "foo bar"}"#), ["name", "foo bar"]);
        assert!(phrases(r#"3.5" and 5.25" disks"#).is_empty() && phrases("an \"open end").is_empty());
        assert!(phrases("\"\" \" \"").is_empty() && Phrase::all_in("\"=>\"").is_err());
    }

    #[test]
    fn a_phrase_stands_as_whole_words_with_its_punctuation() {
        let has = |text: &str, phrase: &str| {
            PhraseText::of(text).has(&Phrase::all_in(&format!("\"{phrase}\"")).unwrap()[0])
        };
        assert!(has("The Ｃｏｎｎｅｃｔｉｏｎ\n\n  refused", "connection refused"));
        assert!(has("Déjà vu, don’t", "deja vu, don't") && !has("deja vu dont", "deja vu, don't"));
        assert!(!has("reconnection refused", "connection refused") && !has("get userNames", "get userName"));
        assert!(has("昨天构建失败了", "构建失败") && has("用docker部署", "docker") && has("a.b.c", "b.c"));
    }
}
