//! The words that a sentence is about: what is left without common words and endings.

use std::collections::HashSet;
use std::sync::LazyLock;

use crate::Pattern;

/// Words that say nothing about a sentence's topic; most are part of rules of any kind.
static COMMON: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    concat!(
        "a an the of to in on at for from with and or but is are be was it this that these those i you we me my your ",
        "our do don t s not no never always only please must should may can now also still then use using instead ",
        "rather than again all any as so if by will want make sure keep ok fine anymore longer project todo just have ",
        "has need needs needed required necessary more later afterwards after next end today tomorrow already finally ",
        "yesterday myself them they been thank thanks take stop actually forget remember remind what said rule thing ",
        "directly direkt und oder der die das den ein eine nicht kein keine nie immer bitte ab jetzt auf wieder noch ",
        "später du darfst kannst benutze benutzen verwende verwenden nutze nutzen ist sind est sont está le la les de ",
        "des un une ne n pas oublie à plus jamais toujours el los las nunca siempre por favor olvides d ll m re ve ",
    )
    .split_whitespace()
    .collect()
});
/// A word that starts another one, like `clean` in `cleanup`, counts as the same from this many bytes on.
const PREFIX: usize = 5;
/// Past forms that no ending tells, with their verbs.
const IRREGULAR: [(&str, &str); 12] = [
    ("wrote", "write"),
    ("written", "write"),
    ("rewrote", "rewrite"),
    ("rewritten", "rewrite"),
    ("built", "build"),
    ("rebuilt", "rebuild"),
    ("made", "make"),
    ("ran", "run"),
    ("sent", "send"),
    ("took", "take"),
    ("brought", "bring"),
    ("found", "find"),
];

/// The words that a sentence is about, without their endings; in scripts without spaces, pairs of characters.
pub(super) fn words(sentence: &str) -> HashSet<String> {
    let lower = sentence.to_lowercase();
    let mut words = HashSet::new();
    for word in lower.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()) {
        if word.chars().any(|c| c >= '\u{2e80}') {
            let characters: Vec<char> = word.chars().collect();
            words.extend(characters.windows(2).map(|pair| pair.iter().collect::<String>()));
        } else if !COMMON.contains(word) {
            words.insert(stem(word));
        }
    }
    words
}

/// The same of what follows each of `marks`.
pub(super) fn words_after(marks: &Pattern, sentence: &str) -> HashSet<String> {
    marks.found(sentence).flat_map(|found| words(&sentence[found.end()..])).collect()
}

/// Whether two such words mean the same, as far as their beginnings tell.
pub(super) fn are_kin(one: &str, other: &str) -> bool {
    let begins = |one: &str, other: &str| one.len() >= PREFIX && other.starts_with(one);
    one == other || begins(one, other) || begins(other, one)
}

fn stem(word: &str) -> String {
    let word = IRREGULAR.iter().find(|(past, _)| *past == word).map_or(word, |(_, verb)| verb);
    if let Some(stem) = word.strip_suffix("ies").filter(|stem| stem.len() > 2) {
        return format!("{stem}y");
    }
    let stem = ["ing", "ed", "es", "s", "en", "e"].iter().find_map(|ending| word.strip_suffix(ending));
    let stem = stem.filter(|stem| stem.len() > 2).unwrap_or(word);
    // As in `logging`.
    let doubled = stem.len() > 3 && stem.chars().rev().nth(1) == stem.chars().last();
    stem[..stem.len() - if doubled { stem.chars().last().map_or(0, char::len_utf8) } else { 0 }].to_owned()
}
