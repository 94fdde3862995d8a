//! Decides which models are plain: one API key, one address, and nothing special that we do not know.
//!
//! In doubt, Pi asks the model: it knows each provider's peculiarities and learns new ones with each version.

use reqwest::Url;
use reqwest::header::{self, HeaderMap, HeaderName, HeaderValue};
use serde_json::Value;

use super::super::{Facts, Headers, Secret};
use super::Wire;

/// Everything about the request except its body.
pub(super) struct Plan {
    pub wire: Wire,
    pub url: Url,
    /// Values from the user are marked as sensitive.
    pub headers: HeaderMap,
}

/// Fields of a model's description, besides those read, that do not affect a single text question.
const HARMLESS_FIELDS: [&str; 5] = ["name", "input", "inputLimits", "promptCache", "type"];

/// Variables that change how Node reaches a server, or what Pi sends to it.
const WAYS: [&str; 12] = [
    "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy",
    "NODE_EXTRA_CA_CERTS", "NODE_TLS_REJECT_UNAUTHORIZED", "ANTHROPIC_CUSTOM_HEADERS",
    "OPENAI_CUSTOM_HEADERS", "OPENAI_ORG_ID", "OPENAI_PROJECT_ID",
];

/// Headers that control transport, or request something only Pi can handle.
const CARRYING: [&str; 8] = [
    "accept-encoding", "anthropic-beta", "connection", "content-encoding", "content-length", "expect",
    "host", "transfer-encoding",
];

/// How to ask the model without Pi; `None` if it is not plain. `variable` reads the environment.
pub(super) fn plan(facts: &Facts, variable: impl Fn(&str) -> Option<String>) -> Option<Plan> {
    let (model, auth) = (&facts.model, &facts.auth);
    let wire = match model.api.as_str() {
        "openai-completions" => Wire::Completions,
        "anthropic-messages" => Wire::Messages,
        _ => return None,
    };
    let key = auth.api_key.as_ref().filter(|key| !key.reveal().trim().is_empty())?;
    let own_ways = facts.oauth || facts.own_stream || key.reveal().contains("sk-ant-oat");
    let plain = auth.ok
        && !own_ways
        && auth.env.is_empty()
        && !model.id.is_empty()
        && model
            .other
            .iter()
            .all(|(key, value)| HARMLESS_FIELDS.contains(&key.as_str()) || says_nothing(value))
        && model.compat.iter().all(|(key, value)| is_known(model.reasoning, key, value))
        && WAYS.iter().all(|name| variable(name).is_none_or(|value| value.trim().is_empty()));
    if !plain {
        return None;
    }
    let base = auth.base_url.as_deref().filter(|url| !url.is_empty()).unwrap_or(&model.base_url);
    let url = address(wire, base)?;
    let headers = headers(wire, key, [&model.headers, &auth.headers])?;
    Some(Plan { wire, url, headers })
}

/// An empty value of any type.
fn says_nothing(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Object(object) => object.is_empty(),
        Value::Array(array) => array.is_empty(),
        _ => false,
    }
}

/// Whether it does not affect a single text question, or is implemented. What is switched on or off concerns tools,
/// earlier messages, sessions or requested thinking, for which [`Direct::takes`](super::Direct::takes) checks it; a
/// server that nevertheless rejects the request is asked by Pi.
fn is_known(reasoning: bool, key: &str, value: &Value) -> bool {
    match key {
        _ if says_nothing(value) => true,
        "supportsMidConvoEffort" => value == false,
        "maxTokensField" => value == "max_tokens" || value == "max_completion_tokens",
        // A model that does not think need not be told not to.
        "thinkingFormat" => value == "openai" || !reasoning,
        "thinkingTokenBudgetField" => true,
        _ => value.is_boolean(),
    }
}

fn address(wire: Wire, base: &str) -> Option<Url> {
    let path = match wire {
        Wire::Completions => "/chat/completions",
        Wire::Messages => "/v1/messages",
    };
    let base = Url::parse(base).ok()?;
    let strange = !matches!(base.scheme(), "http" | "https")
        || base.query().is_some()
        || base.fragment().is_some()
        || !base.username().is_empty()
        || base.password().is_some()
        // A placeholder that Pi fills in.
        || base.path().contains("%7B");
    if strange {
        return None;
    }
    Url::parse(&format!("{}{path}", base.as_str().trim_end_matches('/'))).ok()
}

/// Ours, then the model's, then those that came with the key.
fn headers(wire: Wire, key: &Secret, theirs: [&Headers; 2]) -> Option<HeaderMap> {
    let json = HeaderValue::from_static("application/json");
    let own_name = HeaderValue::from_static(concat!("pi-lossless-context/", env!("CARGO_PKG_VERSION")));
    let mut headers = HeaderMap::from_iter([
        (header::ACCEPT, json.clone()),
        (header::CONTENT_TYPE, json),
        (header::USER_AGENT, own_name),
    ]);
    match wire {
        Wire::Completions => {
            headers.insert(header::AUTHORIZATION, secret(&format!("Bearer {}", key.reveal()))?);
        }
        Wire::Messages => {
            headers.insert("x-api-key", secret(key.reveal())?);
            headers.insert("anthropic-version", HeaderValue::from_static("2023-06-01"));
        }
    }
    for (name, value) in theirs.into_iter().flat_map(Headers::iter) {
        let name =
            HeaderName::from_bytes(name.as_bytes()).ok().filter(|name| !CARRYING.contains(&name.as_str()))?;
        match value {
            Some(value) => headers.insert(name, secret(value.reveal())?),
            None => headers.remove(name),
        };
    }
    Some(headers)
}

fn secret(text: &str) -> Option<HeaderValue> {
    let mut value = HeaderValue::from_str(text.trim()).ok()?;
    value.set_sensitive(true);
    Some(value)
}
