//! What a stemmer may have cut off a word: the index holds `compact` for a text that says `compaction`.
//!
//! The index's words are made by Porter's rules. Each of its steps cuts one ending, or puts a shorter one in its place; here
//! stand, step by step, the pieces that can be missing. A word of the index is thus what is left of a word of the text, `kept`,
//! and sometimes a letter or two ([`ADDED`]) that the rules put behind it.

/// What may stand at the end of a stem instead of what was cut off.
const ADDED: &[&str] = &["", "e", "i", "l", "le"];

/// What each step may cut, in the order in which it stands in a word: the last step's stands first.
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
/// The step before which a doubled letter may be cut together with what it cuts.
const DOUBLED: usize = 5;

/// What the stems of words look like that hold a piece of text, or begin with it; all in small letters.
pub struct Kept<'a> {
    piece: &'a str,
    begins: bool,
    /// What is left of the piece where the rest of it was cut off.
    left: Vec<&'a str>,
}

impl<'a> Kept<'a> {
    /// Of the words that hold `piece`, or, with `begins`, begin with it; `None` where nothing of it may be left in their stems.
    #[must_use]
    pub fn of(piece: &'a str, begins: bool) -> Option<Self> {
        if !begins && lies_in_a_tail(piece) {
            return None;
        }
        let cuts =
            (1..piece.len()).filter(|at| begins_a_tail(&piece[*at..], piece[..*at].chars().next_back(), 0));
        Some(Self { piece, begins, left: cuts.map(|at| &piece[..at]).collect() })
    }

    /// The beginning that all stems have in common where the word begins with the piece.
    #[must_use]
    pub fn beginning(&self) -> Option<&'a str> {
        self.begins.then(|| self.least())
    }

    /// Can a word that holds the piece have this stem?
    #[must_use]
    pub fn may_be(&self, stem: &[u8]) -> bool {
        let stands = |what: &str| match self.begins {
            true => stem.starts_with(what.as_bytes()),
            false => holds(stem, what.as_bytes()),
        };
        // Nearly all words lack even the least that must be left, and there are millions of them.
        stands(self.least()) && (stands(self.piece) || ADDED.iter().any(|added| self.is_left_of(stem, added)))
    }

    /// What is in each stem.
    fn least(&self) -> &'a str {
        self.left.first().copied().unwrap_or(self.piece)
    }

    fn is_left_of(&self, stem: &[u8], added: &str) -> bool {
        let Some(stem) = stem.strip_suffix(added.as_bytes()) else { return false };
        let mut left = self.left.iter().map(|left| left.as_bytes());
        left.any(|left| if self.begins { stem == left } else { stem.ends_with(left) })
    }
}

/// Does `needle` stand in `text`? Both are short.
#[must_use]
pub fn holds(text: &[u8], needle: &[u8]) -> bool {
    let Some((first, rest)) = needle.split_first() else { return true };
    let Some(last) = text.len().checked_sub(needle.len()) else { return false };
    (0..=last).any(|at| text[at] == *first && text[at + 1..].starts_with(rest))
}

/// Can what the steps from `step` on cut begin with `text`? `before` is the letter before it, where that is known.
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

/// Does `text` begin with what is left of a step's `piece`, and go on with what the next ones cut?
fn goes_on(text: &str, piece: &str, step: usize) -> bool {
    let goes_on = |rest| begins_a_tail(rest, piece.chars().next_back(), step + 1);
    piece.starts_with(text) || text.strip_prefix(piece).is_some_and(goes_on)
}

/// Can `text` be within what was cut, so that nothing of it is left?
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

    /// The stem that the index would hold.
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
    fn no_word_is_excluded_for_what_was_cut_off_it() {
        let connection = index();
        for word in [
            "hopping",
            "hoping",
            "happyness",
            "visibilities",
            "nationalizations",
            "relational",
            "ponies",
            "controlling",
            "agreed",
            "feed",
            "sized",
            "ability",
            "rationality",
            "effective",
            "adoption",
            "hopefulness",
            "electricity",
            "rolled",
            "falling",
            "conflated",
            "troubled",
            "possibly",
            "analogy",
            "geologies",
            "valencies",
            "dying",
            "triplicate",
            "communism",
            "homologous",
            "sky",
            "as",
            "generously",
            // A doubled digit is cut as a doubled letter is.
            "da95b544ed",
            "zanb22ing",
        ] {
            check(&connection, word);
        }
    }

    #[test]
    fn most_pieces_tell_something() {
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
        fn no_made_up_word_is_excluded_either(
            word in "[a-z0-9]{0,5}(at|bl|iz|ll|tt|ss|44|y|e|ie|[bcdfgk1])?(ational|tional|enci|anci|izer|logi|bli|alli|entli|eli|ousli|ization|ation|ator|alism|iveness|fulness|ousness|aliti|iviti|biliti|icate|ative|alize|iciti|ical|ful|ness|al|ance|ence|er|ic|able|ible|ant|ement|ment|ent|ion|ou|ism|ate|iti|ous|ive|ize|ity|ility|ably){0,3}(y|s|es|ies|ed|ing|eed|ings|edly)?",
        ) {
            prop_assume!(!word.is_empty());
            check(&index(), &word);
        }
    }
}
