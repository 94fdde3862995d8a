//! Finds what a stemmer may have cut off a word: the index holds `compact` for `compaction`.
//!
//! The index stems by Porter's rules. Each step removes an ending or replaces it with a shorter one; this
//! file lists, per step, the endings that can be missing. So an indexed word is a prefix of a word of the
//! text, `kept`, sometimes followed by letters that the rules add ([`ADDED`]).

/// What may follow a stem in place of what was cut off.
const ADDED: &[&str] = &["", "e", "i", "l", "le"];

/// What each step may cut, in word order: the last step comes first.
const STEPS: &[&[&str]] = &[
    &["e", "l"],
    &[
        "al", "ance", "anc", "ence", "enc", "er", "ic", "able", "abl", "ab", "ible", "ibl", "ib", "ant",
        "ement", "ment", "ent", "ion", "ou", "ism", "ate", "at", "iti", "it", "ous", "ive", "iv", "ize",
        "iz",
    ],
    &["al", "ness", "ate", "at", "iti", "it", "ful", "ative", "ativ", "ize", "iz"],
    &["ional", "al", "i", "r", "l", "li", "ation", "ion", "or", "ism", "ness", "iti", "it", "iliti", "ilit"],
    &["y"],
    &["d", "ed", "ing"],
    &["s", "es"],
];
/// The step before which a doubled letter may be cut along with the ending.
const DOUBLED: usize = 5;

/// The possible stems of words that contain a piece of text, or begin with it, in lowercase.
pub struct Kept<'a> {
    piece: &'a str,
    begins: bool,
    /// The prefixes of the piece that can remain when the rest is cut off.
    left: Vec<&'a str>,
}

impl<'a> Kept<'a> {
    /// For words that contain `piece` or, with `begins`, begin with it. `None` if a stem may keep nothing of
    /// it.
    #[must_use]
    pub fn of(piece: &'a str, begins: bool) -> Option<Self> {
        if !begins && lies_in_a_tail(piece) {
            return None;
        }
        let cuts =
            (1..piece.len()).filter(|at| begins_a_tail(&piece[*at..], piece[..*at].chars().next_back(), 0));
        Some(Self { piece, begins, left: cuts.map(|at| &piece[..at]).collect() })
    }

    /// The common prefix of all stems, for words that begin with the piece.
    #[must_use]
    pub fn beginning(&self) -> Option<&'a str> {
        self.begins.then(|| self.least())
    }

    /// Whether a word that contains the piece can have this stem.
    #[must_use]
    pub fn may_be(&self, stem: &[u8]) -> bool {
        let matches = |what: &str| match self.begins {
            true => stem.starts_with(what.as_bytes()),
            false => holds(stem, what.as_bytes()),
        };
        // Almost all of the millions of words lack even the minimum.
        matches(self.least())
            && (matches(self.piece) || ADDED.iter().any(|added| self.is_left_of(stem, added)))
    }

    /// The minimum that every stem contains.
    fn least(&self) -> &'a str {
        self.left.first().copied().unwrap_or(self.piece)
    }

    fn is_left_of(&self, stem: &[u8], added: &str) -> bool {
        let Some(stem) = stem.strip_suffix(added.as_bytes()) else { return false };
        let mut left = self.left.iter().map(|left| left.as_bytes());
        left.any(|left| if self.begins { stem == left } else { stem.ends_with(left) })
    }
}

/// Whether `text` contains `needle`. Both are short.
#[must_use]
pub fn holds(text: &[u8], needle: &[u8]) -> bool {
    let Some((first, rest)) = needle.split_first() else { return true };
    let Some(last) = text.len().checked_sub(needle.len()) else { return false };
    (0..=last).any(|at| text[at] == *first && text[at + 1..].starts_with(rest))
}

/// Whether text cut by the steps from `step` on can begin with `text`. `before` is the preceding letter, if
/// known.
fn begins_a_tail(text: &str, before: Option<char>, step: usize) -> bool {
    if text.is_empty() {
        return true;
    }
    let Some(pieces) = STEPS.get(step) else { return false };
    let mut rest = text.chars();
    let is_doubled =
        |letter: char| letter.is_ascii_alphanumeric() && before.is_none_or(|before| before == letter);
    let doubled = rest.next().is_some_and(is_doubled) && step == DOUBLED;
    begins_a_tail(text, before, step + 1)
        || pieces.iter().any(|piece| goes_on(text, piece, step))
        || (doubled && pieces.iter().any(|piece| goes_on(rest.as_str(), piece, step)))
}

/// Whether `text` begins with `piece`, which a step cuts, and continues with what later steps cut.
fn goes_on(text: &str, piece: &str, step: usize) -> bool {
    let goes_on = |rest| begins_a_tail(rest, piece.chars().next_back(), step + 1);
    piece.starts_with(text) || text.strip_prefix(piece).is_some_and(goes_on)
}

/// Whether `text` can lie entirely within what was cut.
fn lies_in_a_tail(text: &str) -> bool {
    STEPS.iter().enumerate().any(|(step, pieces)| {
        begins_a_tail(text, None, step)
            || pieces.iter().any(|piece| (0..piece.len()).any(|at| goes_on(text, &piece[at..], step)))
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rusqlite::Connection;

    use super::*;

    /// The stem in the index.
    fn stem(connection: &Connection, word: &str) -> String {
        connection.execute("DELETE FROM words", []).unwrap();
        connection.execute("INSERT INTO words VALUES (?1)", [word]).unwrap();
        connection.query_row("SELECT term FROM stems", [], |row| row.get(0)).unwrap()
    }

    fn index() -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        let tables =
            "CREATE VIRTUAL TABLE words USING fts5 (a, tokenize = 'porter unicode61 remove_diacritics 2');
                      CREATE VIRTUAL TABLE stems USING fts5vocab (words, row);";
        connection.execute_batch(tables).unwrap();
        connection
    }

    fn check(connection: &Connection, word: &str) {
        let stem = stem(connection, word);
        for from in 0..word.len() {
            for to in from + 1..=word.len() {
                let (piece, begins) = (&word[from..to], from == 0);
                let Some(kept) = Kept::of(piece, begins) else { continue };
                assert!(kept.may_be(stem.as_bytes()), "{piece} of {word}, which is {stem}");
                let beginning = kept.beginning().unwrap_or_default();
                assert!(stem.starts_with(beginning), "{piece} of {word}, which is {stem}: {beginning}");
            }
        }
    }

    #[test]
    fn cut_off_endings_exclude_no_word() {
        let connection = index();
        for word in [
            "hopping", "hoping", "happyness", "visibilities", "nationalizations", "relational", "ponies",
            "controlling", "agreed", "feed", "sized", "ability", "rationality", "effective", "adoption",
            "hopefulness", "electricity", "rolled", "falling", "conflated", "troubled", "possibly",
            "analogy", "geologies", "valencies", "dying", "triplicate", "communism", "homologous", "sky",
            "as", "generously", // A doubled digit is cut like a doubled letter.
            "da95b544ed", "zanb22ing",
        ] {
            check(&connection, word);
        }
    }

    #[test]
    fn most_pieces_narrow_the_search() {
        for piece in ["error", "panick", "refused", "config", "getuser", "addrinuse", "zqxv", "connect"] {
            assert!(Kept::of(piece, false).is_some(), "{piece}");
        }
        for piece in ["ation", "ing", "ness", "ization", "s", "tting"] {
            assert!(Kept::of(piece, false).is_none(), "{piece}");
        }
        let kept = Kept::of("compaction", false).unwrap();
        assert!(kept.may_be(b"compact") && kept.may_be(b"recompaction1") && !kept.may_be(b"compare"));
    }

    proptest! {
        #![proptest_config(crate::tests::extent::cases(600))]
        #[test]
        fn no_random_word_is_excluded(
            word in "[a-z0-9]{0,5}(at|bl|iz|ll|tt|ss|44|y|e|ie|[bcdfgk1])?(ational|tional|enci|anci|izer|logi|bli|alli|entli|eli|ousli|ization|ation|ator|alism|iveness|fulness|ousness|aliti|iviti|biliti|icate|ative|alize|iciti|ical|ful|ness|al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|ion|ou|ism|ate|iti|ous|ive|ize|ity|ility|ably){0,3}(y|s|es|ies|ed|ing|eed|ings|edly)?",
        ) {
            prop_assume!(!word.is_empty());
            check(&index(), &word);
        }
    }
}
