//! Parses a query into index expressions and words to highlight.
//!
//! Text from the query reaches the index's query language only as quoted strings, so no query can be a syntax
//! error.

use std::collections::{BTreeMap, HashSet};

use super::phrases::Phrase;
use super::synonyms::synonyms;
use super::words::{is_function_word, is_loose_word, words};
use lcm_model::error::{Error, Result};
use lcm_model::policy::float;
use lcm_model::text::one_line;
use lcm_model::{as_indexed, bigrams, humps, is_ideograph, plain};

/// Characters of a query that are used.
const LONGEST: usize = 2_000;
/// The most terms of a query.
const MOST_TERMS: usize = 40;
/// The most pieces of one term.
const MOST_PIECES: usize = 8;
/// The most terms of a query whose neighbors are also searched as one word.
const MOST_JOINED: usize = 10;
/// The most neighbors joined into one word.
const LONGEST_JOINED: usize = 5;
/// The weight of a term of several words when choosing what to show of a passage.
const TELLING: usize = 200;
/// What an apostrophe appends to a word.
const ENDINGS: &[&str] = &["s", "t", "m", "d", "ve", "re", "ll"];
/// The total weight of a term's pieces, in addition to the whole.
const PIECES_WEIGHT: f64 = 0.35;
/// The weight of synonyms.
const SYNONYMS_WEIGHT: f64 = 0.25;

/// A parsed query.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Query {
    /// What to search for; a passage's scores are added up.
    pub terms: Vec<QueryTerm>,
    /// The whole query in lowercase.
    pub whole: String,
    /// All its words in lowercase, in order.
    pub phrase: Vec<String>,
    /// Its words in lowercase, in order, split at humps, without function words.
    pub words: Vec<String>,
    /// Synonyms of some of these words.
    pub synonyms: BTreeMap<String, Vec<&'static str>>,
    /// What to highlight in a passage.
    pub marks: Vec<Mark>,
    /// What must stand in a message word for word.
    pub phrases: Vec<Phrase>,
}

/// A term to search for in the index.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct QueryTerm {
    /// As written in the query.
    pub text: String,
    /// Quoted strings, joined by OR.
    pub expression: String,
    /// The same for each of its words and humps; more than one for phrases and compound terms.
    pub tokens: Vec<String>,
    /// The weight of a match.
    pub weight: f64,
    /// Its role in the query.
    pub role: TermRole,
}

/// A term's role in its query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TermRole {
    /// A term of the query. If the index lacks it, similar words replace it.
    Asked,
    /// It only adds to the score of other terms.
    Extra,
    /// A synonym of a term.
    Synonym,
}

/// A word that shows why a passage was found.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Mark {
    /// In lowercase. With separators between its words, it must occur exactly as written.
    pub word: String,
    /// Its weight.
    pub weight: usize,
}

impl Query {
    /// Parses a query with its quoted phrases.
    ///
    /// # Errors
    /// When the query, or one of its phrases, has no word.
    pub fn asked(text: &str) -> Result<Self> {
        let query = Self::parse(text);
        if query.terms.is_empty() {
            return Err(Error::invalid(format!(
                "there is no word in `{}` to look for: a regular expression finds other signs too",
                one_line(text, 60)
            )));
        }
        Ok(Self { phrases: Phrase::all_in(text)?, ..query })
    }

    /// A query for a phrase alone.
    pub fn of_phrase(phrase: &Phrase) -> Self {
        Self { phrases: vec![phrase.clone()], ..Self::parse(&phrase.written) }
    }

    /// Parses the words of a query; without any, it has no terms.
    pub fn parse(text: &str) -> Self {
        let text = &*plain(&text[..text.floor_char_boundary(LONGEST)]);
        let parts_of_query = terms(text);
        let mut terms: Vec<QueryTerm> = parts_of_query.iter().map(|term| asked(term)).collect();
        terms.extend(joined(&parts_of_query).into_iter().map(|word| extra(&word, quote(&word), 1.0)));
        for term in &parts_of_query {
            let pieces = parts(term);
            let weight = PIECES_WEIGHT / float(pieces.len().max(1));
            terms.extend(pieces.into_iter().map(|piece| extra("", piece, weight)));
        }
        let words_of =
            |text: &str| -> Vec<String> { words(text).map(|(_, word)| word.to_lowercase()).collect() };
        let synonyms = synonyms_of(&parts_of_query);
        terms.extend(synonyms.values().map(|alike| meaning_the_same(alike)));
        let mut seen = HashSet::new();
        terms.retain(|term| seen.insert(term.expression.clone()));
        Self {
            synonyms,
            terms,
            phrase: words_of(text),
            whole: text.trim().trim_matches('"').to_lowercase(),
            words: parts_of_query.iter().flat_map(|term| pieces_of(term)).collect(),
            marks: marks(text, &parts_of_query),
            phrases: Vec::new(),
        }
    }
}

/// The words of `text` in lowercase, with identifiers split.
fn pieces_of(text: &str) -> Vec<String> {
    words(text).flat_map(|(_, word)| humps(word)).map(str::to_lowercase).collect()
}

fn asked(term: &str) -> QueryTerm {
    let ideographs = bigrams(term).into_iter().map(|pair| format!("parts : {}", quote(&pair)));
    let plain =
        words(term).filter(|(_, word)| !word.contains(is_ideograph)).flat_map(|(_, word)| humps(word));
    let plain = plain.map(quote);
    QueryTerm {
        text: term.to_owned(),
        expression: whole(term).join(" OR "),
        tokens: plain.chain(ideographs).collect(),
        weight: 1.0,
        role: TermRole::Asked,
    }
}

fn extra(text: &str, expression: String, weight: f64) -> QueryTerm {
    let tokens = words(text).map(|(_, word)| quote(word)).collect();
    QueryTerm { text: text.to_owned(), expression, tokens, weight, role: TermRole::Extra }
}

/// Synonyms of the query's plain words.
fn synonyms_of(terms: &[&str]) -> BTreeMap<String, Vec<&'static str>> {
    let known = terms.iter().map(|term| term.to_lowercase()).map(|word| (synonyms(&word), word));
    known.filter(|(alike, _)| !alike.is_empty()).map(|(alike, word)| (word, alike)).collect()
}

fn meaning_the_same(alike: &[&str]) -> QueryTerm {
    let any: Vec<String> = alike.iter().map(|word| quote(word)).collect();
    QueryTerm { role: TermRole::Synonym, ..extra("", any.join(" OR "), SYNONYMS_WEIGHT) }
}

/// Neighboring plain words joined into one, like identifiers.
fn joined(terms: &[&str]) -> Vec<String> {
    let plain = |term: &&str| term.is_ascii() && term.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let mut words = Vec::new();
    if terms.len() <= MOST_JOINED {
        for run in terms.split(|term| !plain(term)) {
            for length in 2..=run.len().min(LONGEST_JOINED) {
                words.extend(run.windows(length).map(|window| window.concat().to_lowercase()));
            }
        }
    }
    words
}

/// The terms of the query: split at word boundaries, without function words unless there is nothing else.
fn terms(text: &str) -> Vec<&str> {
    let between =
        |c: char| c.is_whitespace() || c.is_control() || "\"`“”«»()[]{}<>,;|、。，；（）「」".contains(c);
    let all = text.split(between).map(|term| term.trim_matches(|c: char| !c.is_alphanumeric()));
    let all: Vec<&str> = all.map(without_ending).filter(|term| !term.is_empty()).collect();
    let is_sentence = all.iter().any(|term| is_function_word(term));
    let says = |(at, term): &(usize, &str)| {
        !(is_function_word(term) || is_sentence && is_loose_word(term) || is_of_talk(&all, *at))
    };
    let telling: Vec<&str> = all.iter().copied().enumerate().filter(says).map(|(_, term)| term).collect();
    let mut seen = HashSet::new();
    let chosen = if telling.is_empty() { all } else { telling };
    chosen.into_iter().filter(|term| seen.insert(term.to_lowercase())).take(MOST_TERMS).collect()
}

/// Whether the word at that place speaks of the talk itself: our conversations, walk me through.
fn is_of_talk(words: &[&str], at: usize) -> bool {
    let is = |at: usize, wanted: &[&str]| {
        words.get(at).is_some_and(|word| wanted.iter().any(|one| word.eq_ignore_ascii_case(one)))
    };
    at > 0 && is(at - 1, &["our", "these", "this"]) && is(at, &["conversation", "conversations"])
        || is(at + 1, &["me"]) && is(at + 2, &["through"])
}

/// `Ann` for `Ann's`, `don` for `don't`: the index knows the whole only as two words in a row.
fn without_ending(term: &str) -> &str {
    let ending = |(word, ending): &(&str, &str)| !word.is_empty() && ENDINGS.contains(ending);
    term.rsplit_once(['\'', '’']).filter(ending).map_or(term, |(word, _)| word)
}

/// The index strings for a whole term: itself, its identifiers split, its ideographs in pairs.
pub(super) fn whole(term: &str) -> Vec<String> {
    let mut strings = Vec::new();
    let runs: Vec<&str> = term.split(|c| !is_ideograph(c)).filter(|run| !run.is_empty()).collect();
    if runs.iter().map(|run| run.len()).sum::<usize>() < term.len() {
        strings.push(quote(term));
    }
    strings.extend(other_version(term).map(|version| quote(&version)));
    let is_word = words(term).nth(1).is_none();
    for (_, word) in words(term).filter(|(_, word)| is_word && !word.contains(is_ideograph)) {
        let humps = humps(word);
        if humps.len() > 1 {
            strings.push(quote(&humps.join(" ")));
        }
    }
    for run in runs {
        let pairs = quote(&bigrams(run).join(" "));
        // The index knows a single ideograph only as the first of a pair.
        let star = if run.chars().nth(1).is_none() { " *" } else { "" };
        strings.push(format!("parts : {pairs}{star}"));
    }
    strings
}

/// A version number as others write it: `v2.0.1` for `2.0.1`, and the reverse.
pub(super) fn other_version(term: &str) -> Option<String> {
    let number = term.strip_prefix(['v', 'V']);
    let (major, minor) = number.unwrap_or(term).split_once('.')?;
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    let is_version = !major.is_empty() && is_number(major) && minor.starts_with(|c: char| c.is_ascii_digit());
    is_version.then(|| number.map_or_else(|| format!("v{term}"), ToOwned::to_owned))
}

/// The index strings for the pieces of a term that has several.
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

/// What to highlight: the words of the terms, with more weight for exact matches and less for pieces.
fn marks(text: &str, terms: &[&str]) -> Vec<Mark> {
    let mut marks = Vec::new();
    let mut whole = |word: &str| marks.push(Mark { word: word.trim().to_lowercase(), weight: TELLING });
    whole(text.trim().trim_matches('"'));
    terms.iter().filter(|term| words(term).nth(1).is_some()).for_each(|term| whole(term));
    terms.iter().filter_map(|term| other_version(term)).for_each(|version| whole(&version));
    joined(terms).iter().for_each(|word| whole(word));
    let pieces: Vec<String> = terms.iter().flat_map(|term| pieces_of(term)).collect();
    if pieces.len() > 1 {
        [" ", "_", "-", "."].iter().for_each(|between| whole(&pieces.join(between)));
    }
    for (_, word) in terms.iter().flat_map(|term| words(term)) {
        // Longer words are rarer, and a run of ideographs is several words.
        marks.push(Mark { word: word.to_lowercase(), weight: word.chars().count().clamp(2, 12) * 2 });
        let pieces = if word.contains(is_ideograph) { bigrams(word) } else { Vec::new() };
        let humps = humps(word).into_iter().map(ToOwned::to_owned).filter(|hump| hump.len() > 2);
        let pieces = pieces.into_iter().chain(humps).filter(|piece| piece != word);
        marks.extend(pieces.map(|piece| Mark { word: piece.to_lowercase(), weight: 2 }));
    }
    let mut seen = HashSet::new();
    marks.retain(|mark: &Mark| !mark.word.is_empty() && seen.insert(mark.word.clone()));
    marks
}

/// A string of the index's query language: always a phrase, whatever it contains.
pub(super) fn quote(text: &str) -> String {
    let plain: String = as_indexed(text).chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    format!("\"{}\"", plain.replace('"', "\"\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expressions(text: &str) -> Vec<String> {
        let terms = Query::parse(text).terms.into_iter().filter(|term| term.role != TermRole::Synonym);
        terms.map(|term| term.expression).collect()
    }

    #[test]
    fn a_question_loses_its_function_words_unless_there_is_nothing_else() {
        assert_eq!(
            expressions("What was the port of the server?"),
            [r#""port""#, r#""server""#, r#""portserver""#]
        );
        assert_eq!(expressions("to be or")[..3], [r#""to""#, r#""be""#, r#""or""#]);
    }

    #[test]
    fn a_name_loses_its_possessive_and_a_question_its_pronouns() {
        assert_eq!(
            expressions("What did Ann's dog chase while she didn’t look?")[..4],
            [r#""Ann""#, r#""dog""#, r#""chase""#, r#""look""#]
        );
        assert_eq!(expressions("while more")[..2], [r#""while""#, r#""more""#], "these are keywords");
        assert_eq!(expressions("O'Brien"), [r#""O'Brien""#, r#""Brien""#]);
    }

    #[test]
    fn words_about_the_talk_itself_are_not_searched() {
        for (query, searched) in [
            ("How many ports did we mention throughout our conversations?", vec![r#""ports""#]),
            ("Walk me through the deploy", vec![r#""deploy""#]),
            (
                "When is a conversation stored?",
                vec![r#""conversation""#, r#""stored""#, r#""conversationstored""#],
            ),
            ("walk many", vec![r#""walk""#, r#""many""#, r#""walkmany""#]),
        ] {
            assert_eq!(expressions(query), searched, "{query}");
        }
    }

    #[test]
    fn identifiers_paths_and_ideographs_are_searched_whole_and_in_pieces() {
        assert_eq!(
            expressions("getUserName"),
            [r#""getUserName" OR "get User Name""#, r#""User""#, r#""Name""#]
        );
        assert_eq!(expressions("`src/main.ts`"), [r#""src/main.ts""#, r#""src""#, r#""main""#, r#""ts""#]);
        assert_eq!(
            expressions("构建失败"),
            [r#"parts : "构建 建失 失败""#, r#"parts : "构建""#, r#"parts : "建失""#, r#"parts : "失败""#]
        );
        assert_eq!(expressions("东"), [r#"parts : "东" *"#]);
    }

    #[test]
    fn a_version_is_searched_with_and_without_its_letter() {
        assert_eq!(expressions("2.0.1")[0], r#""2.0.1" OR "v2.0.1""#);
        assert_eq!(expressions("v5.0.0-beta.1")[0], r#""v5.0.0-beta.1" OR "5.0.0-beta.1""#);
        for other in ["value.0", "main.rs", "3.x", "12", "v", "2."] {
            assert_eq!(other_version(other), None, "{other}");
        }
    }

    #[test]
    fn neighboring_words_are_also_one_identifier() {
        assert_eq!(expressions("get user name"), [r#""user""#, r#""name""#, r#""username""#]);
    }

    #[test]
    fn a_query_without_words_has_no_expression() {
        for text in ["=>", "\"\"", "  \u{0} ", "()"] {
            assert!(expressions(text).is_empty(), "{text}");
        }
    }
}
