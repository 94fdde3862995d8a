//! From a query to the passages that may answer it, in a bounded amount of work.
//!
//! Each term is counted before it is looked at. What is rare is ranked by the index itself. What is less rare only adds its
//! weight to a passage: the passages are short, so that how often they say it matters little. What is so frequent that even
//! that would take long does not lead anywhere by itself; together, frequent terms find the newest passages that have all of
//! them. What the index does not know is looked for in words that begin with it, contain it, or are misspelt like it.

use std::collections::{BTreeSet, HashMap, HashSet};

use super::Search;
use super::query::{Mark, Query, Role, Term, quote};
use super::words::{SUFFIXES, words};
use crate::error::Result;
use crate::store::{Pages, View, holds};

/// Matches that are counted, of one term.
const COUNTED: usize = 20_000;
/// Matches that are counted, of all terms together.
const COUNTED_IN_ALL: usize = 100_000;
/// Matches of its rarest word, times its words, that a phrase, or words together, are looked for among; the newest where there
/// are more.
const WALKED: i64 = 8_000;
/// Newest passages that tell how frequent a word is that is too frequent to be counted.
const SAMPLE: i64 = 20_000;
/// Matches that the index ranks, of all terms together.
const RANKED: usize = 2_000;
/// Matches that are added up, of all terms together.
const ADDED_UP: usize = 30_000;
/// Of passages that have all the frequent terms, the newest.
const NEWEST: usize = 1_000;
/// Passages of a store in which phrases are looked for like words.
const SMALL: i64 = 100_000;
/// Letters of a word that is looked for inside others, or misspelt.
const LONG_ENOUGH: usize = 4;
/// Words of the index that stand for one that it does not know.
const MOST_CONTAINING: usize = 40;
/// The same where they are only spelt like it.
const MOST_ALIKE: usize = 8;
/// What a word counts that is only spelt like the one asked for.
const ALIKE_WEIGHT: f64 = 0.8;
/// Pages of the index's words that are read for one search, some hundred words each. Where there are more, those with the
/// same beginning have been read.
const PAGES: usize = 1_500;

/// What a query reaches.
#[derive(Debug, Default)]
pub(super) struct Candidates {
    /// Rows of passages with their scores, best first, the newer first where they are equal.
    pub passages: Vec<(i64, f64)>,
    /// What to point out besides the query's own words.
    pub marks: Vec<Mark>,
    /// Words that were too frequent to be looked at, with what they count in a passage that has them.
    pub frequent: Vec<(String, f64)>,
    /// How much it tells of a passage that it has a word.
    pub worth: HashMap<String, f64>,
    /// The index's words that stand for one that it does not know.
    pub stand_ins: HashMap<String, Vec<String>>,
    /// The expressions that were looked for, with their weights.
    pub tiers: Vec<(String, f64)>,
}

/// A term that the index knows.
struct Known<'a> {
    term: &'a Term,
    expression: String,
    weight: f64,
    matches: usize,
}

/// Finds what `query` reaches among all passages.
pub(super) fn reach(search: &Search<'_>, query: &Query) -> Result<Candidates> {
    let mut reach = Candidates::default();
    let mut counter = Counter {
        view: search.view,
        left: COUNTED_IN_ALL,
        passages: search.view.index().last_passage()?,
        counted: HashMap::new(),
    };
    let mut vocabulary = Vocabulary { view: search.view, pages: Pages(PAGES) };
    let mut known = Vec::new();
    for term in &query.terms {
        search.go_on()?;
        if counter.passages > SMALL && term.tokens.len() > 1 {
            known.extend(reach.find_in_large_store(term, &mut counter)?);
            continue;
        }
        let matches = counter.count_up(&term.expression)?;
        if matches > 0 {
            known.push(Known { term, expression: term.expression.clone(), weight: term.weight, matches });
        } else if term.role == Role::Asked {
            known.extend(reach.find_instead(term, &mut counter, &mut vocabulary)?);
        }
    }
    reach.worth = counter.worth();
    // What was asked for is not to be left out for what means the same.
    known.sort_by_key(|known| (known.term.role == Role::Synonym, known.matches));
    let (mut ranked, mut added_up) = (RANKED, ADDED_UP);
    let mut frequent = Vec::new();
    for known in known {
        if take(&mut ranked, known.matches) {
            reach.add_tier(known.expression, known.weight);
        } else if take(&mut added_up, known.matches) && known.matches < COUNTED {
            let worth = known.weight * counter.telling(known.matches);
            let rows = search.view.index().passages_from(&known.expression, 0)?;
            reach.passages.extend(rows.into_iter().map(|row| (row, worth)));
        } else if known.term.role == Role::Asked {
            frequent.push(known);
        }
    }
    for (expression, weight) in &reach.tiers {
        search.go_on()?;
        let rows = search.view.index().ranked_passages(expression)?;
        reach.passages.extend(rows.into_iter().map(|(row, score)| (row, score * weight)));
    }
    search.go_on()?;
    if !frequent.is_empty() {
        reach.add_newest(&mut counter, &frequent)?;
    }
    reach.add_up();
    Ok(reach)
}

/// Takes `wanted` off `left` if that is there.
fn take(left: &mut usize, wanted: usize) -> bool {
    let fits = wanted <= *left;
    if fits {
        *left -= wanted;
    }
    fits
}

impl Candidates {
    fn add_tier(&mut self, expression: String, weight: f64) {
        #[expect(clippy::float_cmp, reason = "equal weights come from the same constant")]
        match self.tiers.iter_mut().find(|(_, other)| *other == weight) {
            Some((tier, _)) => {
                tier.push_str(" OR ");
                tier.push_str(&expression);
            }
            None => self.tiers.push((expression, weight)),
        }
    }

    /// Finds a phrase, or the humps of an identifier, in a store where the index would take long to find words side by side.
    /// The identifier itself is a word like any other.
    fn find_in_large_store<'a>(
        &mut self,
        term: &'a Term,
        counter: &mut Counter<'_>,
    ) -> Result<Option<Known<'a>>> {
        let rows = counter.view.index().passages_from(&term.expression, counter.from(&term.tokens)?)?;
        let rows = &rows[rows.len().saturating_sub(RANKED)..];
        let worth = term.weight * counter.telling(rows.len());
        let is_word = words(&term.text).nth(1).is_none();
        let expression = quote(&term.text);
        let matches = if is_word { counter.count_up(&expression)? } else { 0 };
        let had: HashSet<i64> = self.passages.iter().map(|(row, _)| *row).collect();
        let is_found = matches > 0 || !rows.is_empty();
        self.passages.extend(rows.iter().filter(|row| !had.contains(row)).map(|row| (*row, worth)));
        if is_found || term.role == Role::Extra {
            return Ok((matches > 0).then_some(Known { term, expression, weight: term.weight, matches }));
        }
        self.find_by_rarest(term, counter)
    }

    /// Finds a phrase of which only the text can tell where it stands by its rarest word; the others weigh what that finds.
    fn find_by_rarest<'a>(&mut self, term: &'a Term, counter: &mut Counter<'_>) -> Result<Option<Known<'a>>> {
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
        let weight = term.weight;
        Ok(rarest.map(|(matches, token)| Known { term, expression: token.clone(), weight, matches }))
    }

    /// What the index knows instead of a term that it does not: what begins with it, contains it, or is spelt like it.
    fn find_instead<'a>(
        &mut self,
        term: &'a Term,
        counter: &mut Counter<'_>,
        vocabulary: &mut Vocabulary<'_>,
    ) -> Result<Option<Known<'a>>> {
        if term.text.chars().count() < LONG_ENOUGH || term.tokens.is_empty() {
            return Ok(None);
        }
        let begun = format!("{} *", quote(&term.text));
        let matches = counter.count_up(&begun)?;
        if matches > 0 {
            return Ok(Some(Known { term, expression: begun, weight: term.weight, matches }));
        }
        let plain: Vec<String> = words(&term.text).map(|(_, word)| word.to_lowercase()).collect();
        let [word] = plain.as_slice() else { return Ok(None) };
        let (stand_ins, weight) = vocabulary.stand_ins(word)?;
        self.stand_ins.insert(word.clone(), stand_ins.clone());
        let mut rows = Vec::new();
        for word in stand_ins {
            rows.extend(counter.view.index().passages_with(&word, RANKED)?.0);
            self.marks.push(Mark { weight: word.chars().count().clamp(2, 12) * 2, word });
        }
        rows.sort_unstable();
        rows.dedup();
        let worth = term.weight * weight * counter.telling(rows.len());
        self.passages.extend(rows.into_iter().map(|row| (row, worth)));
        Ok(None)
    }

    /// The newest passages that have all frequent terms; where nothing else was found, also those that have one.
    fn add_newest(&mut self, counter: &mut Counter<'_>, frequent: &[Known<'_>]) -> Result<()> {
        let nothing_else = self.passages.is_empty();
        let expressions: Vec<String> = frequent.iter().map(|known| known.expression.clone()).collect();
        let from = counter.from(&expressions)?;
        let joined = |between: &str| {
            let all: Vec<String> = frequent.iter().map(|known| format!("({})", known.expression)).collect();
            all.join(between)
        };
        let worth = |known: &Known<'_>| known.weight * counter.telling(known.matches);
        if frequent.len() > 1 || nothing_else {
            let all: f64 = frequent.iter().map(worth).sum();
            let rows = counter.view.index().passages_from(&joined(" AND "), from)?;
            let newest = &rows[rows.len().saturating_sub(NEWEST)..];
            self.passages.extend(newest.iter().map(|row| (*row, all)));
        }
        if frequent.len() > 1 && nothing_else {
            let rows = counter.view.index().newest_passages(&joined(" OR "), from, NEWEST)?;
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

    /// One score for each passage, best first.
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

/// Counts matches as long as counting is cheap.
struct Counter<'a> {
    view: &'a View<'a>,
    left: usize,
    /// Passages of the whole store, about.
    passages: i64,
    counted: HashMap<String, usize>,
}

impl Counter<'_> {
    /// From which passage on all of `expressions` are looked for together: so that the rarest of them has a bounded number of
    /// matches behind it, which are all that is looked at.
    fn from(&mut self, expressions: &[String]) -> Result<i64> {
        let mut rarest = i64::MAX;
        for expression in expressions {
            rarest = rarest.min(self.estimate(expression)?);
        }
        // At each match of the rarest the index goes to that place in the lists of all others.
        let matches = WALKED / i64::try_from(expressions.len()).unwrap_or(i64::MAX).max(1);
        let window = self.passages.saturating_mul(matches) / rarest.max(1);
        Ok((self.passages - window).max(0))
    }

    /// How many passages match; of very many, as the newest tell.
    fn estimate(&mut self, expression: &str) -> Result<i64> {
        let matches = self.count_up(expression)?;
        if matches < COUNTED {
            return Ok(i64::try_from(matches).unwrap_or(i64::MAX));
        }
        let newest = (self.passages - SAMPLE).max(0);
        let having = self.view.index().count_passages(expression, newest, COUNTED)?;
        Ok(i64::try_from(having).unwrap_or(i64::MAX).saturating_mul(self.passages) / SAMPLE)
    }

    /// How many passages match, `COUNTED` where there are more.
    fn count_up(&mut self, expression: &str) -> Result<usize> {
        if let Some(matches) = self.counted.get(expression) {
            return Ok(*matches);
        }
        if self.left == 0 {
            return Ok(COUNTED);
        }
        let most = COUNTED.min(self.left);
        let matches = self.view.index().count_passages(expression, 0, most)?;
        self.left -= matches;
        let matches = if matches == most { COUNTED } else { matches };
        self.counted.insert(expression.to_owned(), matches);
        Ok(matches)
    }

    /// What the words tell that were counted.
    fn worth(&self) -> HashMap<String, f64> {
        let telling = |(expression, matches): (&String, &usize)| {
            (expression.trim_matches('"').to_lowercase(), self.telling(*matches))
        };
        self.counted.iter().map(telling).collect()
    }

    /// What it tells that a passage has a term which so many have, as bm25 weighs a passage of usual length.
    fn telling(&self, matches: usize) -> f64 {
        #[expect(clippy::cast_precision_loss, reason = "an estimate")]
        let (all, having) = (self.passages as f64, matches as f64);
        ((all - having + 0.5) / (having + 0.5)).ln().max(0.05)
    }
}

/// The words of the index, as far as they are read for one search.
struct Vocabulary<'a> {
    view: &'a View<'a>,
    pages: Pages,
}

impl Vocabulary<'_> {
    /// The words that stand for an unknown one, with what they count: those that contain it, or those spelt like it.
    fn stand_ins(&mut self, wanted: &str) -> Result<(Vec<String>, f64)> {
        let stems = stems(wanted);
        let allowed: usize = if wanted.chars().count() >= 8 { 2 } else { 1 };
        let with_shape = |(form, spent): (String, usize)| {
            let shape = letters(form.as_bytes());
            (form, spent, shape)
        };
        let forms: Vec<(String, usize, u64)> = forms(wanted, &stems).into_iter().map(with_shape).collect();
        let (mut containing, mut alike) = (BTreeSet::new(), BTreeSet::new());
        let first = wanted.chars().next().map(String::from).unwrap_or_default();
        for (from, to) in ranges(wanted) {
            let is_same_letter = from.starts_with(&first);
            self.view.index().index_words(&from, to.as_deref(), &mut self.pages, |word| {
                // Its own ending is no part of the index's word.
                let ends =
                    |stem: &String| word.last() == stem.as_bytes().last() && word.ends_with(stem.as_bytes());
                if holds(word, wanted.as_bytes()) || stems.iter().any(ends) {
                    containing.insert(String::from_utf8_lossy(word).into_owned());
                } else if is_same_letter {
                    // A look at length and letters spares counting what differs of nearly all words: a mistake makes a word
                    // longer or shorter by one character, of up to four bytes, or puts one letter for another.
                    let (shape, is_plain) = (letters(word), word.is_ascii() && wanted.is_ascii());
                    let is_near = |(form, spent, other): &&(String, usize, u64)| {
                        let left = allowed.saturating_sub(*spent);
                        let longer = word.len().abs_diff(form.len());
                        match is_plain {
                            true => longer <= left && (shape ^ other).count_ones() as usize <= 2 * left,
                            false => longer <= 4 * left,
                        }
                    };
                    for (form, spent, _) in forms.iter().filter(is_near) {
                        let word = String::from_utf8_lossy(word).into_owned();
                        let distance = spent + strsim::osa_distance(form, &word);
                        if distance <= allowed {
                            alike.insert((distance, word));
                        }
                    }
                }
                containing.len() < MOST_CONTAINING
            })?;
        }
        if !containing.is_empty() {
            return Ok((containing.into_iter().collect(), 1.0));
        }
        let nearest = alike.first().map_or(0, |(distance, _)| *distance);
        let alike = alike.into_iter().take_while(|(distance, _)| *distance == nearest).take(MOST_ALIKE);
        Ok((alike.map(|(_, word)| word).collect(), ALIKE_WEIGHT))
    }
}

/// Which letters there are in a word, about: whoever puts one for another changes two of them.
fn letters(word: &[u8]) -> u64 {
    word.iter().fold(0, |letters, byte| letters | 1 << (byte & 63))
}

/// Where words like `wanted` stand in the index, the likeliest first: the same two letters, the same first one, all others.
fn ranges(wanted: &str) -> Vec<(String, Option<String>)> {
    let beginning = |letters: usize| wanted.chars().take(letters).collect::<String>();
    let behind = |text: &str| {
        let mut next = text.to_owned();
        let last = next.pop().and_then(|last| char::from_u32(last as u32 + 1)).unwrap_or('\u{10ffff}');
        next.push(last);
        next
    };
    let (one, two) = (beginning(1), beginning(2));
    let (end, end_of_two) = (behind(&one), behind(&two));
    vec![
        (two.clone(), Some(end_of_two.clone())),
        (one.clone(), Some(two)),
        (end_of_two, Some(end.clone())),
        (String::new(), Some(one)),
        (end, None),
    ]
}

/// A word as the index may hold it: without one of its endings, or as it is.
fn stems(word: &str) -> Vec<String> {
    let mut stems = vec![word.to_owned()];
    stems.extend(word.strip_suffix('y').map(|stem| format!("{stem}i")));
    for suffix in SUFFIXES.iter().filter(|suffix| !suffix.is_empty()) {
        let stem = word.strip_suffix(suffix).filter(|stem| stem.len() >= LONG_ENOUGH);
        stems.extend(stem.map(str::to_owned));
    }
    stems
}

/// Endings beside [`SUFFIXES`] that the index cuts off.
const ENDINGS: &[&str] =
    &["ate", "ates", "ated", "ating", "ize", "izes", "ized", "izing", "ant", "ants", "ent", "ents", "ical"];

/// What a misspelt word may be in the index, each with the mistakes that are made in its ending: without one of its endings,
/// with an `e` in its place, or without one that is misspelt itself.
fn forms(word: &str, stems: &[String]) -> Vec<(String, usize)> {
    let mut forms: Vec<(String, usize)> = stems.iter().map(|stem| (stem.clone(), 0)).collect();
    let cut = |letters: usize| {
        let at = word.char_indices().rev().nth(letters.checked_sub(1)?)?.0;
        Some(word.split_at(at))
    };
    for ending in SUFFIXES.iter().chain(ENDINGS).filter(|ending| ending.len() > 2) {
        for letters in ending.len() - 1..=ending.len() + 1 {
            let Some((stem, tail)) = cut(letters) else { continue };
            let mistakes = strsim::osa_distance(tail, ending);
            if mistakes > 1 {
                continue;
            }
            if stem.chars().count() >= LONG_ENOUGH {
                forms.push((stem.to_owned(), mistakes));
            }
            // Of `taking` the index has `take`. Of `modify` it has no `mode`: a short beginning and a mistake are too little.
            let least = if mistakes == 0 { LONG_ENOUGH - 1 } else { LONG_ENOUGH };
            if ending.starts_with('i') && stem.chars().count() >= least {
                forms.push((format!("{stem}e"), mistakes));
            }
        }
    }
    forms.sort();
    forms.dedup_by(|next, kept| next.0 == kept.0);
    forms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_word_is_held_against_what_the_index_may_have_of_it() {
        for (wrong, stem, spent) in [
            ("evidene", "evid", 1),
            ("tnking", "tnke", 0),
            ("writnig", "write", 1),
            ("configuraiton", "configur", 1),
            ("draincarhedvalvestate", "draincarhedvalvest", 0),
            ("rewriite", "rewriite", 0),
        ] {
            let forms = forms(wrong, &stems(wrong));
            assert!(forms.contains(&(stem.to_owned(), spent)), "{wrong}: {forms:?}");
        }
        assert!(!forms("modify", &stems("modify")).iter().any(|(form, _)| form == "mode"));
    }
}
