//! A query in words, read into expressions for the index and words for the eye.
//!
//! Nothing of the query ever reaches the index's query language but as a quoted string, so no query can be wrong in it.

use std::collections::HashSet;

use super::words::{is_function_word, words};
use crate::model::{bigrams, humps, is_ideograph};

/// Characters of a query that are looked at.
const LONGEST: usize = 2_000;
/// Terms of a query that are looked for.
const MOST_TERMS: usize = 40;
/// Pieces of one term that are looked for.
const MOST_PIECES: usize = 8;
/// What a phrase in quotes counts beside its words.
const PHRASE_WEIGHT: f64 = 1.5;
/// What the pieces of a term count together beside the whole.
const PIECES_WEIGHT: f64 = 0.35;

/// A query, read.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Query {
    /// Expressions for the index; the scores of a passage are added up.
    pub tiers: Vec<Tier>,
    /// The whole query in lower case.
    pub whole: String,
    /// All its words in lower case, in order.
    pub phrase: Vec<String>,
    /// Its words in lower case, in order, function words left out.
    pub words: Vec<String>,
    /// What to point out where a passage is shown.
    pub marks: Vec<Mark>,
}

/// An expression with its weight.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Tier {
    /// Quoted strings, joined by OR.
    pub expression: String,
    /// What a match counts.
    pub weight: f64,
}

/// A word that tells why a passage was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mark {
    /// In lower case.
    pub word: String,
    /// How much it tells.
    pub weight: usize,
}

impl Query {
    /// Reads a query; without any tier if there is no word in it.
    pub fn parse(text: &str) -> Self {
        let text = &text[..text.floor_char_boundary(LONGEST)];
        let terms = terms(text);
        let (mut wholes, mut pieces, mut compounds) = (Vec::new(), Vec::new(), 0_usize);
        for term in &terms {
            wholes.extend(whole(term));
            let parts = parts(term);
            if !parts.is_empty() {
                compounds += 1;
                pieces.extend(parts);
            }
        }
        let phrases: Vec<String> = quoted_phrases(text).into_iter().map(quote).collect();
        #[expect(clippy::cast_precision_loss, reason = "both are small")]
        let share = compounds as f64 / pieces.len().max(1) as f64;
        let tiers = [(wholes, 1.0), (phrases, PHRASE_WEIGHT), (pieces, PIECES_WEIGHT * share)];
        let tiers = tiers.into_iter().filter(|(strings, _)| !strings.is_empty());
        Self {
            tiers: tiers
                .map(|(strings, weight)| Tier { expression: unique(strings).join(" OR "), weight })
                .collect(),
            phrase: words(text).map(|(_, word)| word.to_lowercase()).collect(),
            whole: text.trim().trim_matches('"').to_lowercase(),
            words: terms.iter().flat_map(|term| words(term)).map(|(_, word)| word.to_lowercase()).collect(),
            marks: marks(&terms),
        }
    }
}

/// What the query asks for, one by one: split where words are, function words left out unless there is nothing else.
fn terms(text: &str) -> Vec<&str> {
    let between =
        |c: char| c.is_whitespace() || c.is_control() || "\"`“”«»()[]{}<>,;|、。，；（）「」".contains(c);
    let all = text.split(between).map(|term| term.trim_matches(|c: char| !c.is_alphanumeric()));
    let all: Vec<&str> = all.filter(|term| !term.is_empty()).collect();
    let telling: Vec<&str> = all.iter().copied().filter(|term| !is_function_word(term)).collect();
    let mut seen = HashSet::new();
    let chosen = if telling.is_empty() { all } else { telling };
    chosen.into_iter().filter(|term| seen.insert(term.to_lowercase())).take(MOST_TERMS).collect()
}

/// The phrases in double quotes that have several words.
fn quoted_phrases(text: &str) -> Vec<&str> {
    let text_in_quotes = text.split('"').skip(1).step_by(2);
    text_in_quotes.filter(|phrase| words(phrase).nth(1).is_some()).take(MOST_TERMS).collect()
}

/// The strings that stand for the whole of a term: itself, its identifiers taken apart, its ideographs in pairs.
fn whole(term: &str) -> Vec<String> {
    let mut strings = Vec::new();
    let runs: Vec<&str> = term.split(|c| !is_ideograph(c)).filter(|run| !run.is_empty()).collect();
    if runs.iter().map(|run| run.len()).sum::<usize>() < term.len() {
        strings.push(quote(term));
    }
    for (_, word) in words(term).filter(|(_, word)| !word.contains(is_ideograph)) {
        let humps = humps(word);
        if humps.len() > 1 {
            strings.push(quote(&humps.join(" ")));
        }
    }
    for run in runs {
        let pairs = quote(&bigrams(run).join(" "));
        // A single ideograph is known as the first of its pairs only.
        let star = if run.chars().nth(1).is_none() { " *" } else { "" };
        strings.push(format!("parts : {pairs}{star}"));
    }
    strings
}

/// The strings that stand for pieces of a term that has several.
fn parts(term: &str) -> Vec<String> {
    let mut pieces: Vec<String> = Vec::new();
    for (_, word) in words(term) {
        if word.contains(is_ideograph) {
            let pairs = bigrams(word);
            if pairs.len() > 1 {
                pieces.extend(pairs.iter().map(|pair| format!("parts : {}", quote(pair))));
            }
        } else {
            let humps = humps(word)
                .into_iter()
                .filter(|hump| hump.chars().nth(1).is_some() && !is_function_word(hump));
            pieces.extend(humps.map(quote));
        }
    }
    let same = |piece: &String| *piece == quote(term);
    if pieces.iter().all(same) {
        pieces.clear();
    }
    pieces.truncate(MOST_PIECES);
    pieces
}

/// The words to point out: those of the terms, and with less weight their pieces.
fn marks(terms: &[&str]) -> Vec<Mark> {
    let mut marks = Vec::new();
    for (_, word) in terms.iter().flat_map(|term| words(term)) {
        // Longer words are rarer, and a run of ideographs is several words.
        marks.push(Mark { word: word.to_lowercase(), weight: word.chars().count().clamp(2, 12) * 2 });
        let pieces = if word.contains(is_ideograph) { bigrams(word) } else { Vec::new() };
        let humps = humps(word).into_iter().map(ToOwned::to_owned).filter(|hump| hump.len() > 2);
        let pieces = pieces.into_iter().chain(humps).filter(|piece| piece != word);
        marks.extend(pieces.map(|piece| Mark { word: piece.to_lowercase(), weight: 2 }));
    }
    let mut seen = HashSet::new();
    marks.retain(|mark: &Mark| seen.insert(mark.word.clone()));
    marks
}

/// A string of the index's query language: whatever it holds, it is a phrase.
fn quote(text: &str) -> String {
    let plain: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("\"{}\"", plain.replace('"', "\"\""))
}

fn unique(strings: Vec<String>) -> Vec<String> {
    let mut seen = HashSet::new();
    strings.into_iter().filter(|string| seen.insert(string.clone())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expressions(text: &str) -> Vec<String> {
        Query::parse(text).tiers.into_iter().map(|tier| tier.expression).collect()
    }

    #[test]
    fn a_question_loses_its_function_words_unless_there_is_nothing_else() {
        assert_eq!(expressions("What was the port of the server?"), [r#""port" OR "server""#]);
        assert_eq!(expressions("to be or"), [r#""to" OR "be" OR "or""#]);
    }

    #[test]
    fn identifiers_paths_and_ideographs_come_whole_and_in_pieces() {
        assert_eq!(
            expressions("getUserName"),
            [r#""getUserName" OR "get User Name""#, r#""User" OR "Name""#]
        );
        assert_eq!(expressions("`src/main.ts`"), [r#""src/main.ts""#, r#""src" OR "main" OR "ts""#]);
        assert_eq!(
            expressions("构建失败"),
            [r#"parts : "构建 建失 失败""#, r#"parts : "构建" OR parts : "建失" OR parts : "失败""#]
        );
        assert_eq!(expressions("东"), [r#"parts : "东" *"#]);
    }

    #[test]
    fn a_phrase_in_quotes_is_one_more_term() {
        let query = Query::parse(r#"say "connection refused" now"#);
        let tiers: Vec<_> = query.tiers.iter().map(|tier| (tier.expression.as_str(), tier.weight)).collect();
        assert_eq!(
            tiers,
            [(r#""say" OR "connection" OR "refused" OR "now""#, 1.0), (r#""connection refused""#, 1.5)]
        );
    }

    #[test]
    fn what_has_no_word_has_no_expression() {
        for text in ["=>", "\"\"", "  \u{0} ", "()"] {
            assert!(expressions(text).is_empty(), "{text}");
        }
    }
}
