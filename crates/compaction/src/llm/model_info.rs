//! Pi's description of a model, as the shim passes it.
//!
//! Versions of Pi differ, and providers are handwritten: a missing field, or one of another type, counts as
//! absent, never as an error.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

/// Replaces a key.
const HIDDEN: &str = "[key]";
/// A word with this many characters of a key is a part of it.
const TELLING: usize = 8;

/// A model with what is needed to ask it.
#[derive(Clone, Deserialize)]
pub struct Facts {
    pub model: ModelFacts,
    /// How to authenticate with its provider.
    #[serde(default)]
    pub auth: Auth,
}

impl Facts {
    /// `provider/id`.
    pub fn name(&self) -> String {
        format!("{}/{}", self.model.provider, self.model.id)
    }

    /// Checks that it can be asked.
    ///
    /// # Errors
    /// Why not, in words.
    pub(crate) fn is_usable(&self) -> Result<(), String> {
        if self.auth.ok {
            return Ok(());
        }
        let reason = self.auth.error.as_deref().unwrap_or_default().trim();
        Err(if reason.is_empty() { "it has no key".into() } else { reason.to_owned() })
    }
}

/// A model as Pi describes it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ModelFacts {
    #[serde(deserialize_with = "lenient")]
    pub provider: String,
    #[serde(deserialize_with = "lenient")]
    pub id: String,
    #[serde(deserialize_with = "lenient")]
    pub api: String,
    #[serde(deserialize_with = "lenient")]
    pub base_url: String,
    /// The most tokens of an answer.
    #[serde(deserialize_with = "count")]
    pub max_tokens: Option<usize>,
    /// The most tokens of question and answer together.
    #[serde(deserialize_with = "count")]
    pub context_window: Option<usize>,
    /// Whether it can think before it answers.
    #[serde(deserialize_with = "lenient")]
    pub reasoning: bool,
    /// The provider's name for each thinking level: a text, or null if there is no such level.
    #[serde(rename = "thinkingLevelMap", deserialize_with = "lenient")]
    pub thinking_levels: Map<String, Value>,
    /// How its provider deviates from others with the same wire format.
    #[serde(deserialize_with = "lenient")]
    pub compat: Map<String, Value>,
    #[serde(deserialize_with = "lenient")]
    pub cost: Map<String, Value>,
}

/// A field of another type counts as absent.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(value: D) -> Result<T, D::Error> {
    Ok(serde_json::from_value(Value::deserialize(value)?).unwrap_or_default())
}

/// A whole number in any notation of JavaScript.
fn count<'de, D: Deserializer<'de>>(value: D) -> Result<Option<usize>, D::Error> {
    let number = Value::deserialize(value)?.as_f64().filter(|number| number.is_finite() && *number >= 0.0);
    Ok(number.and_then(|number| format!("{number:.0}").parse().ok()))
}

/// The result of Pi's `getApiKeyAndHeaders`. It has no debug form, which would show the key.
#[derive(Clone, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Auth {
    /// Whether the model can be asked.
    pub ok: bool,
    /// Why not.
    #[serde(deserialize_with = "lenient")]
    pub error: Option<String>,
    #[serde(deserialize_with = "lenient")]
    pub api_key: Option<String>,
}

impl Auth {
    /// A provider's message without the key, which some quote, whole or in part.
    pub(super) fn without_key(&self, said: &str) -> String {
        let key = self.api_key.as_deref().unwrap_or_default().trim();
        if key.is_empty() {
            return said.to_owned();
        }
        let letters: Vec<char> = key.chars().collect();
        let parts: Vec<String> = letters.windows(TELLING).map(|part| part.iter().collect()).collect();
        let is_of_word = |letter: char| letter.is_alphanumeric() || "-_.*…+/".contains(letter);
        let mut clean = String::with_capacity(said.len());
        for piece in said.replace(key, HIDDEN).split_inclusive(|letter| !is_of_word(letter)) {
            let word = piece.trim_end_matches(|letter| !is_of_word(letter));
            let shows_key = parts.iter().any(|part| word.contains(part));
            clean.push_str(if shows_key { HIDDEN } else { word });
            clean.push_str(&piece[word.len()..]);
        }
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(json: &str) -> Facts {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn pis_description_is_read() {
        let facts = read(
            r#"{"model":{"id":"m/1","name":"M","api":"openai-completions","provider":"p","baseUrl":"http://h/v1","reasoning":true,
                "maxTokens":4e3,"contextWindow":128000,"thinkingLevelMap":{"off":null,"low":"low"},"cost":{"input":0.25},
                "compat":{"supportsStore":false},"headers":{"x-team":"a"},"lab":"L"},
                "auth":{"ok":true,"apiKey":"k","headers":{"x-team":null},"env":{}}}"#,
        );
        assert_eq!(facts.name(), "p/m/1");
        assert_eq!((facts.model.max_tokens, facts.model.context_window), (Some(4_000), Some(128_000)));
        assert!(facts.model.reasoning);
        assert_eq!(facts.auth.api_key.as_deref(), Some("k"));
        assert_eq!(facts.is_usable(), Ok(()));
    }

    #[test]
    fn missing_or_odd_fields_are_none() {
        let facts = read(
            r#"{"model":{"id":7,"maxTokens":"many","contextWindow":-1,"compat":null},"auth":{"apiKey":7}}"#,
        );
        assert_eq!(facts.name(), "/");
        assert_eq!((facts.model.max_tokens, facts.model.context_window), (None, None));
        assert_eq!((facts.is_usable(), facts.auth.api_key), (Err("it has no key".into()), None));
        let facts = read(r#"{"model":{},"auth":{"ok":false,"error":"log in first","apiKey":null}}"#);
        assert_eq!(facts.is_usable(), Err("log in first".into()));
    }

    #[test]
    fn a_key_is_removed_from_a_providers_message() {
        let auth = Auth { api_key: Some("sk-proj-Ab3dEf6hIj9kLmN0pQrS".into()), ..Auth::default() };
        let cases = [
            (
                "Incorrect API key provided: sk-proj-Ab3dEf6hIj9kLmN0pQrS.",
                "Incorrect API key provided: [key].",
            ),
            (r#"{"key":"sk-proj-Ab3dEf6hIj9kLmN0pQrS"}"#, r#"{"key":"[key]"}"#),
            ("provided: sk-proj-****************pQrS. Find", "provided: [key] Find"),
            ("key Ab3dEf6hIj… is wrong", "key [key] is wrong"),
            (
                "Bearer sk-proj-Ab3dEf6hIj9kLmN0pQrS, twice sk-proj-Ab3dEf6hIj9kLmN0pQrS",
                "Bearer [key], twice [key]",
            ),
            ("the model `gpt-5` does not exist, skip it...", "the model `gpt-5` does not exist, skip it..."),
            ("", ""),
        ];
        for (said, clean) in cases {
            assert_eq!(auth.without_key(said), clean);
        }
        assert_eq!(Auth::default().without_key("said"), "said");
    }
}
