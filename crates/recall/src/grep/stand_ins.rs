//! The index words that replace one it lacks: those that begin with it or contain it, or resemble its spelling.

use std::collections::BTreeSet;

use memchr::memmem;

use super::words::SUFFIXES;
use lcm_model::error::Result;
use lcm_store::{Pages, View};

/// The fewest letters of a word that is searched within others or by similar spelling.
pub(super) const LONG_ENOUGH: usize = 4;
/// The most index words containing an unknown word that replace it.
const MOST_CONTAINING: usize = 40;
/// The most with similar spelling.
const MOST_ALIKE: usize = 8;
/// The weight of a word with similar spelling.
const ALIKE_WEIGHT: f64 = 0.8;
/// Pages of index words read per search, some hundred words each. Words with the same beginning come first.
const PAGES: usize = 1_500;

/// The index's words, as far as they are read for one search.
pub(super) struct Vocabulary<'a> {
    view: &'a View<'a>,
    pages: Pages,
}

impl<'a> Vocabulary<'a> {
    pub fn of(view: &'a View<'a>) -> Self {
        Self { view, pages: Pages(PAGES) }
    }

    /// The words that replace an unknown one, and their weight: those that contain it, or those with similar
    /// spelling.
    pub fn stand_ins(&mut self, wanted: &str) -> Result<(Vec<String>, f64)> {
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
                // The index's word may lack the ending of the wanted one.
                let ends =
                    |stem: &String| word.last() == stem.as_bytes().last() && word.ends_with(stem.as_bytes());
                if memmem::find(word, wanted.as_bytes()).is_some() || stems.iter().any(ends) {
                    containing.insert(String::from_utf8_lossy(word).into_owned());
                } else if is_same_letter {
                    // Comparing lengths and letters avoids computing the edit distance of most words. One
                    // mistake changes the length by one character, of up to four bytes, or replaces one
                    // letter.
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

/// The set of a word's letters, approximately: replacing one letter changes two bits.
fn letters(word: &[u8]) -> u64 {
    word.iter().fold(0, |letters, byte| letters | 1 << (byte & 63))
}

/// Ranges of the index with words like `wanted`, the likeliest first: those with the same two first letters,
/// the same first letter, all others.
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

/// The forms that the index may hold of a word: itself, or without one of its endings.
fn stems(word: &str) -> Vec<String> {
    let mut stems = vec![word.to_owned()];
    stems.extend(word.strip_suffix('y').map(|stem| format!("{stem}i")));
    for suffix in SUFFIXES.iter().filter(|suffix| !suffix.is_empty()) {
        let stem = word.strip_suffix(suffix).filter(|stem| stem.len() >= LONG_ENOUGH);
        stems.extend(stem.map(str::to_owned));
    }
    stems
}

/// Further endings that the index cuts off, besides [`SUFFIXES`].
const ENDINGS: &[&str] =
    &["ate", "ates", "ated", "ating", "ize", "izes", "ized", "izing", "ant", "ants", "ent", "ents", "ical"];

/// The forms that the index may hold of a misspelled word, with the number of mistakes in its ending: without
/// an ending, with an `e` in its place, or without a misspelled ending.
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
            // The index has `take` for `taking`, but not `mode` for `modify`: a short stem with a mistake is
            // too vague.
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
    fn misspelled_words_match_their_indexed_forms() {
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
