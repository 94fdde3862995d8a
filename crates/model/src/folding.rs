//! One spelling for what reads the same: the index and a query meet in it.
//!
//! Full-width letters, half-width kana, ligatures and mathematical letters become plain ones (Unicode's
//! compatibility forms), diacritics go, and so do invisible characters, such as soft hyphens and
//! zero-width spaces.

use std::borrow::Cow;

use unicode_normalization::UnicodeNormalization as _;
use unicode_normalization::char::{decompose_canonical, decompose_compatible};

/// `text` in its plain spelling, with upper and lower case kept.
pub fn plain(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || text.chars().all(is_plain) {
        return Cow::Borrowed(text);
    }
    let mut out = Vec::new();
    for c in text.chars().filter(|c| !is_invisible(*c)) {
        let mut push = |c| {
            if !is_diacritic(c) {
                out.push(c);
            }
        };
        match c {
            _ if c.is_ascii() => push(c),
            // Signs keep their form: ™ must not turn the word before it into another.
            _ if c.is_alphanumeric() || ('\u{ff00}'..='\u{ffef}').contains(&c) => {
                decompose_compatible(c, push);
            }
            _ => decompose_canonical(c, push),
        }
    }
    Cow::Owned(out.into_iter().nfc().collect())
}

/// `text` in its plain spelling and in lowercase.
pub fn folded(text: &str) -> String {
    let plain = plain(text);
    if plain.is_ascii() {
        return plain.to_ascii_lowercase();
    }
    // Character by character: the form of a sigma depends on its place.
    plain.chars().flat_map(char::to_lowercase).map(|c| if c == 'ς' { 'σ' } else { c }).collect()
}

/// Whether it is invisible: soft hyphens, zero-width spaces and joiners, marks of direction and variation.
pub fn is_invisible(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{2069}'
        | '\u{fe00}'..='\u{fe0f}' | '\u{feff}')
}

/// Whether it belongs to the letter before it.
pub fn is_diacritic(c: char) -> bool {
    ('\u{300}'..='\u{36f}').contains(&c)
}

/// A fast check for the most frequent characters whose spelling is plain: ASCII, dashes and quotes, arrows and
/// boxes, kana, Han, hangul syllables.
fn is_plain(c: char) -> bool {
    c.is_ascii()
        || matches!(c, '\u{2010}'..='\u{2027}' | '\u{2190}'..='\u{2328}' | '\u{2500}'..='\u{25ff}'
            | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}' | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn compatibility_forms_diacritics_and_invisible_characters_fold() {
        for (written, expected) in [
            ("ｆｕｌｌｗｉｄｔｈ ＡＢＣ１２３", "fullwidth abc123"),
            ("ﬁle ﬂow", "file flow"),
            ("ｶﾞﾗｽ", "ガラス"),
            ("co\u{ad}op zero\u{200b}width", "coop zerowidth"),
            ("𝐁𝐨𝐥𝐝 𝓈𝒸𝓇𝒾𝓅𝓉 𝟙𝟚", "bold script 12"),
            ("Übergröße, E\u{301}t\u{e9}", "ubergröße, ete".replace('ö', "o").as_str()),
            ("ΟΔΟΣ οδός", "οδοσ οδοσ"),
            ("Pi™ ½…", "pi™ 1⁄2…"),
            ("か\u{3099}", "が"),
            ("構建 한글", "構建 한글"),
        ] {
            assert_eq!(folded(written), expected, "{written}");
        }
    }

    proptest! {
        #[test]
        fn folding_twice_changes_nothing(text in "([a-cA-Céßİſ\u{300}\u{ad}ﬁｶﾞ가か\u{3099}½ΣςK™]|\\PC){0,20}") {
            let once = folded(&text);
            prop_assert_eq!(folded(&once), once.clone());
            prop_assert_eq!(folded(&plain(&text)), once);
        }
    }
}
