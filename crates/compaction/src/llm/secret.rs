//! A key that must never be shown: not in debug output, not in JSON, not in a provider's message.

use std::fmt;

use serde::{Deserialize, Deserializer};
use serde_json::Value;

/// Replaces a key.
const REDACTED: &str = "[key]";
/// The fewest characters of a key that reveal it, or that identify a word as a part of it.
const TELLING: usize = 8;
/// A masked word with the key's first characters shows both ends of the key, as some providers' messages do.
const OPENING: usize = 4;

/// A text that must not be read by accident. Its debug form hides it, and it can't be serialized.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// The text itself, only for the request.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }

    /// `text` without this secret, whether whole, partial or masked in the middle.
    pub fn redact(&self, text: &str) -> String {
        let secret = self.0.trim();
        if secret.is_empty() {
            return text.to_owned();
        }
        let whole = text.replace(secret, REDACTED);
        let mut clean = String::with_capacity(whole.len());
        let mut word = String::new();
        for letter in whole.chars().map(Some).chain([None]) {
            match letter {
                Some(letter) if is_of_a_key(letter) => word.push(letter),
                end => {
                    clean.push_str(if self.shows_in(&word) { REDACTED } else { &word });
                    word.clear();
                    clean.extend(end);
                }
            }
        }
        clean
    }

    fn shows_in(&self, word: &str) -> bool {
        let secret: Vec<char> = self.0.trim().chars().collect();
        let opening: String = secret.iter().take(OPENING).collect();
        let masked = ["**", "...", "…"].iter().any(|mask| word.contains(mask));
        let part = || secret.windows(TELLING).any(|part| word.contains(&part.iter().collect::<String>()));
        (masked && word.starts_with(&opening)) || part()
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(REDACTED)
    }
}

/// Anything but a text is an empty secret: an error message would contain it.
impl<'de> Deserialize<'de> for Secret {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Ok(Self(value.as_str().unwrap_or_default().to_owned()))
    }
}

fn is_of_a_key(letter: char) -> bool {
    letter.is_alphanumeric() || matches!(letter, '-' | '_' | '.' | '*' | '…' | '+' | '/')
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: &str = "sk-proj-Ab3dEf6hIj9kLmN0pQrS";

    #[test]
    fn a_key_is_removed_from_a_providers_message() {
        let secret = Secret::from(KEY);
        let cases = [
            (
                "Incorrect API key provided: sk-proj-Ab3dEf6hIj9kLmN0pQrS.",
                "Incorrect API key provided: [key].",
            ),
            (r#"{"key":"sk-proj-Ab3dEf6hIj9kLmN0pQrS"}"#, r#"{"key":"[key]"}"#),
            ("provided: sk-proj-****************pQrS. Find", "provided: [key] Find"),
            ("provided: sk-p***QrS", "provided: [key]"),
            ("key Ab3dEf6hIj… is wrong", "key [key] is wrong"),
            (
                "Bearer sk-proj-Ab3dEf6hIj9kLmN0pQrS, twice sk-proj-Ab3dEf6hIj9kLmN0pQrS",
                "Bearer [key], twice [key]",
            ),
            ("the model `gpt-5` does not exist, skip it...", "the model `gpt-5` does not exist, skip it..."),
            ("", ""),
        ];
        for (said, clean) in cases {
            assert_eq!(secret.redact(said), clean);
        }
    }

    #[test]
    fn a_secret_never_shows_itself() {
        assert!(!format!("{:?}", Secret::from(KEY)).contains("sk-"));
        let read: Secret = serde_json::from_str("17").unwrap();
        assert_eq!(read.reveal(), "");
        assert_eq!(read.redact("said"), "said");
    }
}
