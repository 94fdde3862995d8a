//! Pi's description of a model, as the shim passes it.
//!
//! Versions of Pi differ, and providers are handwritten: a missing field, or one of another type, counts as
//! absent, never as an error.

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::Secret;

/// A model with what is needed to ask it.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Facts {
    pub model: ModelFacts,
    /// How to authenticate with its provider.
    #[serde(default)]
    pub auth: Auth,
    /// The key comes from a subscription or a login.
    #[serde(default)]
    pub oauth: bool,
    /// An extension asks it in its own way.
    #[serde(default)]
    pub own_stream: bool,
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
    pub headers: Headers,
    /// Everything else in the description.
    #[serde(flatten)]
    pub other: Map<String, Value>,
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

/// The result of Pi's `getApiKeyAndHeaders`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Auth {
    /// Whether the model can be asked.
    pub ok: bool,
    /// Why not.
    pub error: Option<String>,
    pub api_key: Option<Secret>,
    /// Headers to send besides it.
    pub headers: Headers,
    /// The address for this key, if it differs.
    pub base_url: Option<String>,
    /// The provider's own settings, by name.
    pub env: Headers,
}

/// Headers by name; `None` means that the header is not sent. They may contain keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(from = "Value")]
pub struct Headers(Vec<(String, Option<Secret>)>);

impl Headers {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// All headers in order.
    pub fn iter(&self) -> impl Iterator<Item = (&str, Option<&Secret>)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_ref()))
    }
}

impl From<Value> for Headers {
    fn from(said: Value) -> Self {
        let Value::Object(said) = said else { return Self::default() };
        let value = |value| match value {
            Value::Null => None,
            Value::String(text) => Some(Secret::from(text.as_str())),
            other => Some(Secret::from(other.to_string().as_str())),
        };
        Self(said.into_iter().map(|(name, said)| (name, value(said))).collect())
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
                "auth":{"ok":true,"apiKey":"k","headers":{"x-team":null},"env":{}},"oauth":false,"ownStream":true}"#,
        );
        assert_eq!(facts.name(), "p/m/1");
        assert_eq!((facts.model.max_tokens, facts.model.context_window), (Some(4_000), Some(128_000)));
        assert!(facts.model.reasoning && facts.own_stream && !facts.oauth);
        assert_eq!(serde_json::json!(facts.model.other), serde_json::json!({"name": "M", "lab": "L"}));
        assert_eq!(facts.auth.headers.iter().collect::<Vec<_>>(), [("x-team", None)]);
        assert_eq!(facts.auth.api_key.as_ref().map(Secret::reveal), Some("k"));
        assert_eq!(facts.is_usable(), Ok(()));
    }

    #[test]
    fn missing_or_odd_fields_are_none() {
        let facts = read(
            r#"{"model":{"id":7,"maxTokens":"many","contextWindow":-1,"compat":null,"headers":[]},"auth":{"headers":[]}}"#,
        );
        assert_eq!(facts.name(), "/");
        assert_eq!((facts.model.max_tokens, facts.model.context_window), (None, None));
        assert_eq!(facts.is_usable(), Err("it has no key".into()));
        let facts =
            read(r#"{"model":{},"auth":{"ok":false,"error":"log in first","apiKey":null,"headers":null}}"#);
        assert_eq!(facts.is_usable(), Err("log in first".into()));
    }

    #[test]
    fn keys_are_not_printed() {
        let facts = read(
            r#"{"model":{"headers":{"a":"hidden"}},"auth":{"ok":true,"apiKey":"hidden","headers":{"b":"hidden"},"env":{"c":"hidden"}}}"#,
        );
        assert!(!format!("{facts:?}").contains("hidden"));
    }
}
