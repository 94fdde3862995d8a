//! Finds the passages that may answer a query, in a bounded amount of work.
//!
//! Each term is counted first. The index ranks the matches of rare terms. A more frequent term only adds its
//! weight to its passages: they are short, so how often they contain it matters little. A term too frequent
//! even for that finds nothing by itself; together, frequent terms find the newest passages that contain them
//! all. For a term that is not in the index, words are used that begin with it, contain it or resemble its
//! spelling; if it may be a part of data, which the index does not have, the messages are read.

use std::collections::{HashMap, HashSet};

use super::query::{Mark, Query, QueryTerm, TermRole, quote};
use super::stand_ins::{LONG_ENOUGH, Vocabulary};
use super::words::{has_form, words};
use super::{Kinds, Search, Sort};
use super::{exact, phrases};
use lcm_model::error::Result;
use lcm_model::ids::ConversationId;
use lcm_model::{folded, humps, is_ideograph, may_be_data, searchable};
use lcm_store::{Filter, Passages};

/// The most matches counted per term.
const COUNTED: usize = 20_000;
/// The most matches counted for all terms together.
const COUNTED_IN_ALL: usize = 100_000;
/// The matches of the rarest word, times the number of words, among which a phrase or a combination of words
/// is searched: the newest ones if there are more.
const WALKED: i64 = 8_000;
/// The newest passages, used to estimate the frequency of a word with too many matches to count.
const SAMPLE: i64 = 20_000;
/// The most matches that the index ranks, for all terms together.
const RANKED: usize = 2_000;
/// The most matches added up, for all terms together.
const ADDED_UP: usize = 30_000;
/// How many of the newest passages with all frequent terms are used.
const NEWEST: usize = 1_000;
/// The most passages tried one by one if a filter leaves out the others.
const BEYOND: usize = 200_000;
/// The last used sessions of which the newest passages with all frequent terms are used, and how many of each.
const SESSIONS: usize = 200;
const OF_SESSION: usize = 3;
/// Up to this many passages, phrases are searched like words.
const SMALL: i64 = 100_000;
/// Up to this many matches of a term are read to know whether what is searched has it: of a stand-in, and of the term.
const MOST_TRIED: usize = 50;
const MOST_READ: usize = 500;
/// What a query finds.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Rows of passages with their scores, best first; among equals, newer first.
    pub passages: Vec<(i64, f64)>,
    /// Words to highlight besides the query's own.
    pub marks: Vec<Mark>,
    /// Words too frequent to search for, with their weight in a passage that contains them.
    pub frequent: Vec<(String, f64)>,
    /// The weight of each counted word.
    pub worth: HashMap<String, f64>,
    /// The index words that replace a word unknown to it.
    pub stand_ins: HashMap<String, Vec<String>>,
    /// The query's terms, if nothing has any of them, and these passages have only similar words, or parts of them.
    pub unknown: Vec<String>,
    /// Those of the query's terms that nothing has, if something has others of them.
    pub absent: Vec<String>,
    /// The rows of the passages that may have the quoted phrases, oldest first.
    pub quoted: Vec<i64>,
    /// Where the time decides, the rows of the passages with all words, in that order.
    pub by_time: Vec<i64>,
    /// Whether more passages match than make up the results.
    pub is_full: bool,
    /// If not all messages were read for data, the time of the last one, in ms since the epoch.
    pub stopped_at: Option<i64>,
    /// Terms that may be data, which the index does not have.
    data: Vec<String>,
    /// Expressions of which not all passages are here.
    cut: Vec<String>,
}

/// A term that the index contains.
struct KnownTerm<'a> {
    term: &'a QueryTerm,
    expression: String,
    matches: usize,
}

/// Deducts `wanted` from `left` if there is enough.
fn take(left: &mut usize, wanted: usize) -> bool {
    let fits = wanted <= *left;
    if fits {
        *left -= wanted;
    }
    fits
}

impl Candidates {
    /// Finds the passages that may answer `query`.
    pub fn find(search: &Search<'_>, query: &Query) -> Result<Self> {
        let quoted = phrases::rows(search, &query.phrases)?;
        // Nothing else would be found, and similar words are not wanted.
        let is_over = quoted.is_empty() && !query.phrases.is_empty() && !search.takes_summaries();
        let found = if is_over { Self::default() } else { Self::of_words(search, query)? };
        Ok(Self { quoted, ..found })
    }

    fn of_words(search: &Search<'_>, query: &Query) -> Result<Self> {
        let mut reach = Self::default();
        let within = search.view.index().passages(&search.filter)?;
        let mut counter =
            Counter { left: COUNTED_IN_ALL, passages: within.size(), within, counted: HashMap::new() };
        let mut vocabulary = Vocabulary::of(search.view);
        let mut known = Vec::new();
        for term in &query.terms {
            search.go_on()?;
            if counter.passages > SMALL && term.tokens.len() > 1 {
                known.extend(reach.find_in_large_store(search, term, &mut counter)?);
                continue;
            }
            let matches = counter.count_up(&term.expression)?;
            if matches > 0 {
                let found = KnownTerm { term, expression: term.expression.clone(), matches };
                if term.role == TermRole::Asked && counter.is_unknown(search, &found, has_form)? {
                    reach.unknown.push(term.text.clone());
                }
                known.push(found);
            } else if term.role == TermRole::Asked {
                known.extend(reach.find_instead(search, term, &mut counter, &mut vocabulary)?);
            }
        }
        let asked = query.terms.iter().filter(|term| term.role == TermRole::Asked).count();
        let is_joined =
            |known: &KnownTerm<'_>| known.term.role == TermRole::Extra && !known.term.text.is_empty();
        if known.iter().any(is_joined) {
            reach.unknown.clear();
        } else if reach.unknown.len() < asked {
            reach.absent = std::mem::take(&mut reach.unknown);
        }
        if !reach.data.is_empty() {
            let texts: Vec<&str> = reach.data.iter().map(String::as_str).collect();
            let (rows, stopped_at) = exact::find(search, &texts)?;
            if !rows.is_empty() || stopped_at.is_some() {
                reach.unknown.clear();
                reach.absent.clear();
            }
            let worth = counter.telling(rows.len());
            reach.passages.extend(rows.into_iter().map(|row| (row, worth)));
            reach.stopped_at = stopped_at;
        }
        reach.worth = counter.worth();
        let all = known.iter().filter(|known| known.term.role == TermRole::Asked);
        let all: Vec<String> = all.map(|known| format!("({})", known.expression)).collect();
        if search.question.sort != Sort::Relevance
            && query.phrases.is_empty()
            && all.len() == asked
            && asked > 0
        {
            reach.by_time = by_time(search, &counter.within, &all.join(" AND "))?;
        }
        // The query's own terms come before synonyms when work is limited.
        known.sort_by_key(|known| (known.term.role == TermRole::Synonym, known.matches));
        let (mut ranked, mut added_up) = (RANKED, ADDED_UP);
        // Expressions by weight.
        let mut tiers: Vec<(String, f64)> = Vec::new();
        let mut frequent = Vec::new();
        for known in known {
            if take(&mut ranked, known.matches) {
                #[expect(clippy::float_cmp, reason = "equal weights come from the same constant")]
                match tiers.iter_mut().find(|(_, weight)| *weight == known.term.weight) {
                    Some((tier, _)) => *tier += &format!(" OR {}", known.expression),
                    None => tiers.push((known.expression, known.term.weight)),
                }
            } else if take(&mut added_up, known.matches) && known.matches < COUNTED {
                let worth = known.term.weight * counter.telling(known.matches);
                let rows = counter.within.from(&known.expression, 0)?;
                reach.passages.extend(rows.into_iter().map(|row| (row, worth)));
            } else if known.term.role == TermRole::Asked {
                frequent.push(known);
            }
        }
        for (expression, weight) in &tiers {
            search.go_on()?;
            let rows = counter.within.ranked(expression)?;
            reach.passages.extend(rows.into_iter().map(|(row, score)| (row, score * weight)));
        }
        search.go_on()?;
        // Of one word alone, the others match too.
        reach.is_full = asked == 1 && !frequent.is_empty();
        if !frequent.is_empty() {
            reach.add_newest(&mut counter, &frequent)?;
            if search.question.kinds == Kinds::Sessions {
                reach.add_of_sessions(search, &frequent)?;
            }
        }
        reach.add_up();
        Ok(reach)
    }

    /// Finds a phrase, or the parts of an identifier, in a store so large that the index would be slow to
    /// match adjacent words. The identifier itself is one word.
    fn find_in_large_store<'a>(
        &mut self,
        search: &Search<'_>,
        term: &'a QueryTerm,
        counter: &mut Counter<'_>,
    ) -> Result<Option<KnownTerm<'a>>> {
        let from = counter.from(&term.tokens)?;
        let rows = counter.within.from(&term.expression, from)?;
        if from > 0 || rows.len() > RANKED {
            self.cut.push(term.expression.clone());
        }
        let rows = &rows[rows.len().saturating_sub(RANKED)..];
        let worth = term.weight * counter.telling(rows.len());
        let is_word = words(&term.text).nth(1).is_none();
        let expression = quote(&term.text);
        let matches = if is_word { counter.count_up(&expression)? } else { 0 };
        let had: HashSet<i64> = self.passages.iter().map(|(row, _)| *row).collect();
        let is_found = matches > 0 || !rows.is_empty();
        self.passages.extend(rows.iter().filter(|row| !had.contains(row)).map(|row| (*row, worth)));
        if is_found || term.role == TermRole::Extra {
            return Ok((matches > 0).then_some(KnownTerm { term, expression, matches }));
        }
        if is_word && let Some(known) = self.find_begun(search, term, counter)? {
            return Ok(Some(known));
        }
        self.data.extend(may_be_data(&term.text).then(|| term.text.clone()));
        self.unknown.push(term.text.clone());
        self.find_by_rarest(term, counter)
    }

    /// Finds a phrase by its rarest word, if only the text can show where it occurs. The other words add
    /// weight to those passages.
    fn find_by_rarest<'a>(
        &mut self,
        term: &'a QueryTerm,
        counter: &mut Counter<'_>,
    ) -> Result<Option<KnownTerm<'a>>> {
        let mut counted = Vec::new();
        for token in &term.tokens {
            counted.push((counter.count_up(token)?, token));
        }
        counted.sort_by_key(|(matches, _)| *matches);
        let mut known = counted.into_iter().filter(|(matches, _)| *matches > 0);
        let rarest = known.next();
        let others =
            known.map(|(matches, token)| (token.trim_matches('"').to_lowercase(), counter.telling(matches)));
        self.frequent.extend(others);
        Ok(rarest.map(|(matches, token)| KnownTerm { term, expression: token.clone(), matches }))
    }

    /// Finds a term as the beginning of words.
    fn find_begun<'a>(
        &mut self,
        search: &Search<'_>,
        term: &'a QueryTerm,
        counter: &mut Counter<'_>,
    ) -> Result<Option<KnownTerm<'a>>> {
        let expression = format!("{} *", quote(&term.text));
        let matches = counter.count_up(&expression)?;
        if matches == 0 {
            return Ok(None);
        }
        let known = KnownTerm { term, expression, matches };
        let begins = |text: &str, wanted: &str| folded(text).contains(wanted);
        self.unknown.extend(counter.is_unknown(search, &known, begins)?.then(|| term.text.clone()));
        Ok(Some(known))
    }

    /// Finds a replacement for a term that the index does not contain: words that begin with it, contain it
    /// or resemble its spelling.
    fn find_instead<'a>(
        &mut self,
        search: &Search<'_>,
        term: &'a QueryTerm,
        counter: &mut Counter<'_>,
        vocabulary: &mut Vocabulary<'_>,
    ) -> Result<Option<KnownTerm<'a>>> {
        let is_long = term.text.chars().count() >= LONG_ENOUGH && !term.tokens.is_empty();
        if is_long && let Some(begun) = self.find_begun(search, term, counter)? {
            return Ok(Some(begun));
        }
        self.unknown.push(term.text.clone());
        if !is_long {
            return Ok(None);
        }
        let plain: Vec<String> = words(&term.text).map(|(_, word)| word.to_lowercase()).collect();
        let is_data = may_be_data(&term.text);
        let [word] = plain.as_slice() else {
            self.data.extend(is_data.then(|| term.text.clone()));
            return Ok(None);
        };
        let (stand_ins, weight) = vocabulary.stand_ins(word)?;
        self.stand_ins.insert(word.clone(), stand_ins.clone());
        let (mut rows, mut is_part) = (Vec::new(), false);
        for stand_in in stand_ins {
            let found = counter.within.with(&stand_in, RANKED)?;
            is_part = is_part || is_part_of(search, word, &stand_in, &found)?;
            rows.extend(found);
            self.marks.push(Mark { weight: stand_in.chars().count().clamp(2, 12) * 2, word: stand_in });
        }
        rows.sort_unstable();
        rows.dedup();
        if is_part {
            self.unknown.pop();
        }
        self.data.extend((is_data && rows.is_empty()).then(|| term.text.clone()));
        let worth = term.weight * weight * counter.telling(rows.len());
        self.passages.extend(rows.into_iter().map(|row| (row, worth)));
        Ok(None)
    }

    /// Adds the newest passages with all frequent terms. If nothing else was found, also those with any of
    /// them.
    fn add_newest(&mut self, counter: &mut Counter<'_>, frequent: &[KnownTerm<'_>]) -> Result<()> {
        let nothing_else = self.passages.is_empty();
        self.cut.extend(frequent.iter().map(|known| known.expression.clone()));
        let expressions: Vec<String> = frequent.iter().map(|known| known.expression.clone()).collect();
        let from = counter.from(&expressions)?;
        let joined = |between: &str| {
            let all: Vec<String> = frequent.iter().map(|known| format!("({})", known.expression)).collect();
            all.join(between)
        };
        let worth = |known: &KnownTerm<'_>| known.term.weight * counter.telling(known.matches);
        if frequent.len() > 1 || nothing_else {
            let all: f64 = frequent.iter().map(worth).sum();
            let rows = counter.within.from(&joined(" AND "), from)?;
            let newest = &rows[rows.len().saturating_sub(NEWEST)..];
            self.passages.extend(newest.iter().map(|row| (*row, all)));
        }
        if frequent.len() > 1 && nothing_else {
            let rows = counter.within.newest(&joined(" OR "), from, NEWEST)?;
            let had: HashSet<i64> = self.passages.iter().map(|(row, _)| *row).collect();
            let least = worth(&frequent[frequent.len() - 1]);
            self.passages.extend(rows.into_iter().filter(|row| !had.contains(row)).map(|row| (row, least)));
        }
        if !nothing_else {
            for known in frequent {
                let words_of = words(&known.term.text).map(|(_, word)| word.to_lowercase());
                self.frequent.extend(words_of.map(|word| (word, worth(known))));
            }
        }
        Ok(())
    }

    /// Adds the newest passages with all frequent terms of each session, as the newest of all are of few sessions.
    fn add_of_sessions(&mut self, search: &Search<'_>, frequent: &[KnownTerm<'_>]) -> Result<()> {
        let all: Vec<String> = frequent.iter().map(|known| format!("({})", known.expression)).collect();
        for session in search.view.messages().other_sessions(ConversationId::NONE, SESSIONS)? {
            search.go_on()?;
            let filter = Filter { conversation: Some(session), ..search.filter.clone() };
            let rows = search.view.index().passages(&filter)?.newest(&all.join(" AND "), 0, OF_SESSION)?;
            self.passages.extend(rows.into_iter().map(|row| (row, 0.0)));
        }
        Ok(())
    }

    /// The newest rows of the terms of which not all are here, if a filter may leave out those that are.
    pub fn beyond(&self, search: &Search<'_>) -> Result<Vec<i64>> {
        if self.cut.is_empty() || !search.is_narrow() {
            return Ok(Vec::new());
        }
        search.view.index().passages(&search.filter)?.newest(&self.cut.join(" OR "), 0, BEYOND)
    }

    /// Sums the scores of each passage and sorts, best first.
    fn add_up(&mut self) {
        self.passages.sort_unstable_by_key(|(row, _)| *row);
        self.passages.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            if same {
                kept.1 += next.1;
            }
            same
        });
        self.passages.sort_unstable_by(|one, other| other.1.total_cmp(&one.1).then(other.0.cmp(&one.0)));
    }
}

/// The rows of the passages that match `expression`, in the order that was asked for. Of very many, the order in which they
/// were stored decides.
fn by_time(search: &Search<'_>, within: &Passages<'_>, expression: &str) -> Result<Vec<i64>> {
    let mut rows = within.from(expression, 0)?;
    if rows.len() <= BEYOND {
        let timed = rows.into_iter().map(|row| Ok((search.view.index().time(row)?, row)));
        let mut timed = timed.collect::<Result<Vec<_>>>()?;
        timed.sort_unstable();
        rows = timed.into_iter().map(|(_, row)| row).collect();
    }
    if search.question.sort == Sort::Recent {
        rows.reverse();
    }
    rows.truncate(BEYOND);
    Ok(rows)
}

/// Whether a message that may be a result has `word` within one that the index keeps as `stand_in`, in the passages
/// `found`. The index's word alone does not show it if it has lost its ending: `them` and `anthem` stand in for `theme`
/// too.
fn is_part_of(search: &Search<'_>, word: &str, stand_in: &str, found: &[i64]) -> Result<bool> {
    let is_shown = stand_in.contains(word);
    if is_shown && found.len() > MOST_TRIED {
        return Ok(true);
    }
    for row in found.iter().rev().take(MOST_TRIED) {
        let hit = search.view.index().hit(*row, &search.filter)?;
        let Some(message) = hit.map(|hit| hit.message) else { continue };
        if search.lets_through(message)?
            && (is_shown || folded(&searchable(&search.view.messages().json_of(message)?)).contains(word))
        {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Counts matches as long as that is cheap.
struct Counter<'a> {
    within: Passages<'a>,
    left: usize,
    /// The approximate number of passages in the store.
    passages: i64,
    counted: HashMap<String, usize>,
}

impl Counter<'_> {
    /// The first passage to search for all `expressions` together. It bounds the matches of the rarest one,
    /// and only those are examined.
    fn from(&mut self, expressions: &[String]) -> Result<i64> {
        let mut rarest = i64::MAX;
        for expression in expressions {
            rarest = rarest.min(self.estimate(expression)?);
        }
        // For each match of the rarest, the index looks up that position in the lists of all others.
        let matches = WALKED / i64::try_from(expressions.len()).unwrap_or(i64::MAX).max(1);
        let window = self.passages.saturating_mul(matches) / rarest.max(1);
        Ok(self.within.newest_from(window))
    }

    /// Whether no message that may be a result has a term, though passages match: they may be of other messages, or have
    /// another word of the same stem.
    fn is_unknown(
        &self,
        search: &Search<'_>,
        known: &KnownTerm<'_>,
        has: impl Fn(&str, &str) -> bool,
    ) -> Result<bool> {
        if known.matches > MOST_READ {
            return Ok(false);
        }
        let word = &known.term.text;
        let is_plain = words(word).nth(1).is_none() && humps(word).len() == 1 && !word.contains(is_ideograph);
        let wanted = (is_plain && !may_be_data(word)).then(|| folded(word));
        for row in self.within.from(&known.expression, 0)?.into_iter().rev() {
            let hit = search.view.index().hit(row, &search.filter)?;
            let Some(message) = hit.map(|hit| hit.message) else { continue };
            let has_it = |wanted: &String| -> Result<bool> {
                Ok(has(&searchable(&search.view.messages().json_of(message)?), wanted))
            };
            if search.lets_through(message)? && wanted.as_ref().map_or(Ok(true), has_it)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The number of matching passages; extrapolated from the newest ones if there are many.
    fn estimate(&mut self, expression: &str) -> Result<i64> {
        let matches = self.count_up(expression)?;
        if matches < COUNTED {
            return Ok(i64::try_from(matches).unwrap_or(i64::MAX));
        }
        let newest = self.within.newest_from(SAMPLE);
        let having = self.within.count(expression, newest, COUNTED)?;
        Ok(i64::try_from(having).unwrap_or(i64::MAX).saturating_mul(self.passages) / SAMPLE)
    }

    /// The number of matching passages, or `COUNTED` if there are more.
    fn count_up(&mut self, expression: &str) -> Result<usize> {
        if let Some(matches) = self.counted.get(expression) {
            return Ok(*matches);
        }
        if self.left == 0 {
            return Ok(COUNTED);
        }
        let most = COUNTED.min(self.left);
        let matches = self.within.count(expression, 0, most)?;
        self.left -= matches;
        let matches = if matches == most { COUNTED } else { matches };
        self.counted.insert(expression.to_owned(), matches);
        Ok(matches)
    }

    /// The weights of all counted words.
    fn worth(&self) -> HashMap<String, f64> {
        let telling = |(expression, matches): (&String, &usize)| {
            (expression.trim_matches('"').to_lowercase(), self.telling(*matches))
        };
        self.counted.iter().map(telling).collect()
    }

    /// The weight of a term with this many matches, as bm25 computes it for a passage of average length.
    fn telling(&self, matches: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let (all, having) = (self.passages as f64, matches as f64);
        ((all - having + 0.5) / (having + 0.5)).ln().max(0.05)
    }
}
