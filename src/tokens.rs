//! Token counts without a tokeniser: weights per class of character.
//!
//! An exact count would be exact for one family of models only and costs megabytes of tables. The weights follow how
//! byte-pair encoders treat text: a common word is one token, long words and digit runs break up, indentation folds
//! into its line, and scripts outside Latin cost a share of a token per character.

/// Characters of a word that one token covers on average.
const LETTERS_PER_TOKEN: f64 = 6.5;
/// Digits go in threes.
const DIGITS_PER_TOKEN: f64 = 3.0;
/// A punctuation mark often joins its neighbour.
const PUNCTUATION: f64 = 0.62;
/// A run of blanks that is more than the one before a word.
const BLANK_RUN: f64 = 0.8;
/// Han, kana and hangul.
const IDEOGRAPH: f64 = 0.75;
/// Latin with diacritics, Greek, Cyrillic, Hebrew, Arabic …
const OTHER_LETTER: f64 = 0.36;
/// Emoji, box drawing and all that is rare.
const RARE: f64 = 1.2;

/// About what one picture costs a vision model.
pub const IMAGE: usize = 1_200;

/// An estimate of the tokens in `text`, never less than one for text that is not empty.
///
/// # Examples
/// ```
/// use pi_lossless_context::tokens::estimate;
/// assert_eq!(estimate(""), 0);
/// assert!((8..=12).contains(&estimate("The quick brown fox jumps over the lazy dog.")));
/// ```
#[must_use]
pub fn estimate(text: &str) -> usize {
    let mut sum = 0.0;
    let mut run = Run { class: Class::Blank, length: 0.0 };
    let mut previous = None;
    for c in text.chars() {
        let class = Class::of(c);
        // A hump of camelCase starts a word of its own.
        let hump = c.is_ascii_uppercase() && previous.is_some_and(|p: char| p.is_ascii_lowercase());
        if class != run.class || hump {
            sum += run.cost();
            run = Run { class, length: 0.0 };
        }
        run.length += 1.0;
        previous = Some(c);
    }
    sum += run.cost();
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a count, never negative")]
    let count = sum.ceil() as usize;
    count.max(usize::from(!text.is_empty()))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    Letter,
    Digit,
    Blank,
    Punctuation,
    Ideograph,
    OtherLetter,
    Rare,
}

impl Class {
    fn of(c: char) -> Self {
        match c {
            'a'..='z' | 'A'..='Z' => Self::Letter,
            '0'..='9' => Self::Digit,
            _ if c.is_whitespace() => Self::Blank,
            _ if c.is_ascii() => Self::Punctuation,
            '\u{3000}'..='\u{9fff}' | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' => Self::Ideograph,
            '\u{ff00}'..='\u{ffef}' | '\u{20000}'..='\u{3ffff}' => Self::Ideograph,
            _ if c.is_alphanumeric() => Self::OtherLetter,
            _ => Self::Rare,
        }
    }
}

struct Run {
    class: Class,
    length: f64,
}

impl Run {
    fn cost(&self) -> f64 {
        match self.class {
            _ if self.length == 0.0 => 0.0,
            Class::Letter => (self.length / LETTERS_PER_TOKEN).max(1.0),
            Class::Digit => (self.length / DIGITS_PER_TOKEN).ceil(),
            // The single blank before a word belongs to the word.
            Class::Blank if self.length <= 1.0 => 0.12,
            Class::Blank => BLANK_RUN,
            Class::Punctuation => (self.length * PUNCTUATION).max(0.7),
            Class::Ideograph => self.length * IDEOGRAPH,
            Class::OtherLetter => self.length * OTHER_LETTER,
            Class::Rare => self.length * RARE,
        }
    }
}
