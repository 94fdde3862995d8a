//! Asks a model directly over HTTP, without Pi.
//!
//! Our questions are small: a system prompt, one text, one complete answer. For providers with a plain API
//! key that is one request in one of two wire formats, without Pi's JavaScript thread, which may be busy. For anything
//! special, [`direct`] returns `None`; and if the request is rejected or finds no connection, Pi asks too.

mod completions;
mod eligibility;
mod http;
mod messages;

#[cfg(test)]
mod tests;

use std::time::Duration;

use serde_json::{Value, json};

use self::eligibility::Plan;
use super::cost::Used;
use super::failure::complaint;
use super::{Answer, Facts, Failure, ModelFacts, ModelRequest, Secret, read_message};
use lcm_model::read_json;

/// A model that can be asked without Pi.
pub struct Direct {
    model: ModelFacts,
    plan: Plan,
    client: reqwest::Client,
    /// Secrets to remove from error messages.
    secrets: Vec<Secret>,
}

/// The format of questions and answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wire {
    /// `openai-completions`.
    Completions,
    /// `anthropic-messages`.
    Messages,
}

/// The model, if it can be asked without Pi; `None` if anything about it is special.
pub(crate) fn direct(facts: &Facts) -> Option<Direct> {
    let plan = eligibility::plan(facts, variable)?;
    let client = http::client()?;
    let headers = facts.model.headers.iter().chain(facts.auth.headers.iter());
    // A short value is an ordinary word, not a key.
    let values = headers.filter_map(|(_, value)| value.cloned()).filter(|value| value.reveal().len() >= 12);
    let secrets = facts.auth.api_key.clone().into_iter().chain(values).collect();
    // The key may have come with an address, and completions infers peculiarities from it.
    let model = ModelFacts { base_url: plan.url.to_string(), ..facts.model.clone() };
    Some(Direct { model, plan, client, secrets })
}

/// A variable of the environment. In tests there are none, whatever the machine has.
fn variable(name: &str) -> Option<String> {
    if cfg!(test) { None } else { std::env::var(name).ok() }
}

impl Direct {
    /// Whether it can be asked this. Thinking that is limited by a number of tokens is left to Pi.
    pub fn takes(&self, request: &ModelRequest) -> bool {
        let compat = |key: &str| self.model.compat.get(key).unwrap_or(&Value::Null);
        let budgets = ["supportsThinkingTokenBudget", "thinkingTokenBudgetField"].map(compat);
        request.reasoning.is_none()
            || match self.plan.wire {
                Wire::Completions => budgets.iter().all(|way| way.is_null() || **way == false),
                Wire::Messages => compat("forceAdaptiveThinking") == true,
            }
    }

    fn body(&self, request: &ModelRequest) -> Value {
        match self.plan.wire {
            Wire::Completions => completions::body(&self.model, request),
            Wire::Messages => messages::body(&self.model, request),
        }
    }

    async fn call(&self, request: &ModelRequest) -> Answer {
        let said = http::post(&self.client, &self.plan, self.body(request).to_string()).await?;
        let json = read_json(&said.text).ok().filter(Value::is_object);
        if !(200..300).contains(&said.status) {
            let failure = Failure::answered_with(said.status, json.as_ref(), &said.text);
            let retry_after_ms = said.retry_after_ms.map(|ms| u32::try_from(ms).unwrap_or(u32::MAX));
            return Err(Failure { retry_after_ms, ..failure });
        }
        let failed = |reason: String| Failure { status: Some(said.status), ..Failure::unreachable(reason) };
        let json = json.ok_or_else(|| failed("its answer is not JSON".into()))?;
        // Some gateways report failures with a success status.
        if json["error"].is_object() || json["error"].is_string() {
            return Err(failed(complaint(Some(&json), &said.text)));
        }
        read_message(&message(&self.model, self.plan.wire, &json))
            .map_err(|failure| Failure { status: Some(said.status), ..failure })
    }

    /// Asks, within the request's time limit.
    pub async fn ask(&self, request: &ModelRequest) -> Answer {
        let limit = Duration::from_millis(request.timeout_ms);
        let answer = tokio::time::timeout(limit, self.call(request)).await;
        answer.unwrap_or_else(|_| Err(Failure::late(limit))).map_err(|failure| {
            let reason = self.secrets.iter().fold(failure.reason, |text, secret| secret.redact(&text));
            Failure { reason, ..failure }
        })
    }
}

/// What an answer of either format says.
struct Read {
    content: Value,
    used: Used,
    /// Pi's stop reason, or why there is no answer.
    end: Result<&'static str, String>,
}

/// The assistant message that Pi would make of an answer.
fn message(model: &ModelFacts, wire: Wire, answer: &Value) -> Value {
    let Read { content, used, end } = match wire {
        Wire::Completions => completions::read(model, answer),
        Wire::Messages => messages::read(answer),
    };
    json!({
        "provider": model.provider, "model": model.id, "content": content, "usage": used.report(&model.cost),
        "stopReason": end.as_deref().unwrap_or("error"), "errorMessage": end.as_ref().err(),
    })
}

/// Words a model's refusal so that it is recognized as one.
fn refused(said: &str) -> String {
    let said = said.trim();
    if said.is_empty() { "the model refused to answer".into() } else { format!("the model refused: {said}") }
}
