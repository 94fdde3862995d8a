//! Asks a language model: one question, one answer, and what counts as an answer.
//!
//! The engine does not know who answers. Each compaction gets a [`Model`]: a script in tests, otherwise a
//! [`Chain`] of models that Pi knows and asks.

mod chain;
mod cost;
mod failure;
mod health;
mod model_info;
mod provider_state;
mod queue;
mod reported;
mod spend;
mod thinking;

pub use chain::{Chain, Host, Pending};
use cost::reporting;
pub(crate) use cost::{count_usage, usage};
pub use failure::{Failure, Kind};
pub use model_info::{Facts, ModelFacts};
pub use provider_state::ProviderState;

use std::collections::HashMap;

use serde_json::Value;

use lcm_model::read_json;

/// One question.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ModelRequest {
    pub system: String,
    pub prompt: String,
    /// The most tokens of the answer, including thinking.
    pub max_tokens: usize,
    /// Pi's thinking level; without it, the model is asked not to think.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reasoning: Option<&'static str>,
    /// The call's time limit, in ms.
    pub timeout_ms: u64,
    /// The only model that may be asked, `provider/id`.
    #[serde(skip)]
    pub by: Option<String>,
    /// The same question, for asking the session's own model within its conversation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_session: Option<InSession>,
}

/// A question about a range of the session's own conversation, asked as its next message. The provider has
/// the conversation in its prompt cache, so the range costs only cached tokens.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct InSession {
    pub prompt: String,
    /// The first entry of the range.
    pub first: String,
    pub last: String,
    /// The provider's name for the model's lowest thinking level, if it can't be asked without thinking.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
    /// Every answer to the question contains these words. A model that continued its work instead has not
    /// answered.
    #[serde(skip)]
    pub mark: String,
}

/// A usable answer of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct Reply {
    pub text: String,
    /// `provider/model`.
    pub model: Option<String>,
    /// What the call used, in Pi's format.
    pub usage: Option<Value>,
}

/// The outcome of a call.
pub type Answer = Result<Reply, Failure>;

/// Something that answers questions.
pub trait Model: Send + Sync {
    /// Asks. The future may be dropped at any time if the answer is no longer wanted.
    fn ask(&self, request: ModelRequest) -> Pending<'_, Answer>;

    /// Takes over how many real tokens an estimated one is, by `provider/model`.
    fn calibrate(&self, _ratios: HashMap<String, f64>) {}

    /// The number of calls so far: a question may take none or several, of other models or as retries.
    fn calls(&self) -> usize;
}

/// The approximate tokens of `text`, by our estimate or Pi's, whichever is larger.
pub fn size(text: &str) -> usize {
    lcm_model::tokens::estimate(text).max(text.encode_utf16().count().div_ceil(4))
}

/// Reads the assistant message, as JSON, that Pi's model call resolves to. Provider errors have the same
/// form; the shim adds the delay that the provider asks for.
///
/// Only text counts: a reasoning model that only thought has not answered, nor has one whose answer was cut
/// off.
///
/// # Errors
/// [`Failure`] if it has no complete text.
pub fn read_reply(json: &str) -> Answer {
    let message = read_json(json)
        .map_err(|error| Failure::unreachable(format!("the model call returned no message: {error}")))?;
    let usage = Some(message["usage"].clone()).filter(Value::is_object);
    let fail = |failure| Err(Failure { usage: usage.clone(), ..failure });
    let texts = message["content"].as_array().into_iter().flatten().filter(|block| block["type"] == "text");
    let text =
        texts.filter_map(|block| block["text"].as_str()).collect::<Vec<_>>().join("\n").trim().to_owned();
    match message["stopReason"].as_str() {
        Some("error" | "aborted") => {
            let reason = message["errorMessage"].as_str().unwrap_or("the model call failed");
            let delay = message["retryAfterMs"].as_u64();
            let retry_after_ms = delay.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX));
            return fail(Failure { retry_after_ms, ..Failure::said(reason) });
        }
        Some("length") if text.is_empty() || usage.as_ref().is_some_and(thought) => {
            let failure = Failure::useless("the model used up the answer's tokens to think");
            return fail(Failure { was_thinking: true, ..failure });
        }
        Some("length") => return fail(Failure::useless("the answer was cut off")),
        Some("toolUse") => return fail(Failure::useless("the model called a tool instead of answering")),
        _ => {}
    }
    if text.is_empty() {
        return fail(Failure::useless("the answer has no text"));
    }
    let name = message["provider"].as_str().zip(message["model"].as_str());
    let model = name.map(|(provider, model)| format!("{provider}/{model}"));
    Ok(Reply { text, model, usage })
}

/// Whether the model thought, as far as its provider reports.
fn thought(usage: &Value) -> bool {
    usage["reasoning"].as_u64().is_some_and(|tokens| tokens > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_whole_text_is_an_answer() {
        let answer = |fields: &str| read_reply(&format!("{{{fields}}}"));
        let good = answer(
            r#""stopReason":"stop","provider":"p","model":"m","content":[{"type":"thinking","thinking":"hm"},{"type":"text","text":" yes "}]"#,
        );
        assert_eq!(good, Ok(Reply { text: "yes".into(), model: Some("p/m".into()), usage: None }));
        let cases = [
            (r#""stopReason":"length","content":[{"type":"text","text":"half"}]"#, true),
            (r#""stopReason":"stop","content":[{"type":"thinking","thinking":"hm"}]"#, true),
            (r#""stopReason":"stop","content":[]"#, true),
            (r#""stopReason":"error","errorMessage":"503","content":[]"#, false),
        ];
        for (fields, answered) in cases {
            assert_eq!(answer(fields).unwrap_err().answered(), answered, "{fields}");
        }
        assert!(!read_reply("nonsense").unwrap_err().answered());
    }
}
