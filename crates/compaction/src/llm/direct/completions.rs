//! The wire format `openai-completions`, as Pi implements it.

use serde_json::{Value, json};

use super::super::cost::{Used, count};
use super::super::thinking::effort;
use super::super::{ModelFacts, ModelRequest};
use super::{Read, refused};

/// The request's body, with fields in Pi's order.
pub(super) fn body(model: &ModelFacts, request: &ModelRequest) -> Value {
    let ways = Ways::of(model);
    let mut messages = Vec::new();
    if !request.system.is_empty() {
        let role = if model.reasoning && ways.developer_role { "developer" } else { "system" };
        messages.push(json!({"role": role, "content": request.system}));
    }
    messages.push(json!({"role": "user", "content": [{"type": "text", "text": request.prompt}]}));
    let mut body = json!({"model": model.id, "messages": messages, "stream": false});
    if ways.store {
        body["store"] = false.into();
    }
    body[ways.max_tokens_field] = request.max_tokens.into();
    // Some models must be told not to think.
    let off = || model.thinking_levels.get("off").and_then(Value::as_str);
    if model.reasoning
        && ways.reasoning_effort
        && let Some(effort) = request.reasoning.map(|level| effort(model, level)).or_else(off)
    {
        body["reasoning_effort"] = effort.into();
    }
    body
}

/// Reads the answer.
pub(super) fn read(model: &ModelFacts, answer: &Value) -> Read {
    let choice = &answer["choices"][0];
    let usage = [&answer["usage"], &choice["usage"]].into_iter().find(|usage| usage.is_object());
    // A refusal may come with a normal finish reason, in place of the content.
    let refusal = choice["message"]["refusal"].as_str().filter(|said| !said.is_empty());
    let end = match (choice["finish_reason"].as_str(), Ways::of(model).finish_reason) {
        _ if refusal.is_some() => Err(refused(refusal.unwrap_or_default())),
        (Some("stop" | "end"), _) | (None, false) => Ok("stop"),
        (Some("length"), _) => Ok("length"),
        (Some("tool_calls" | "function_call"), _) => Ok("toolUse"),
        (Some(other), _) => Err(format!("the provider ended the answer: {other}")),
        (None, true) => Err("the answer is incomplete".into()),
    };
    let content = json!([{"type": "text", "text": text(&choice["message"]["content"])}]);
    Read { content, used: used(usage.unwrap_or(&Value::Null)), end }
}

/// Content is a text, or parts of which some are text.
fn text(content: &Value) -> String {
    match content {
        Value::String(text) => text.clone(),
        Value::Array(parts) => parts.iter().filter_map(|part| part["text"].as_str()).collect(),
        _ => String::new(),
    }
}

/// Providers report cached tokens in different fields; thinking is part of the output.
fn used(usage: &Value) -> Used {
    let prompt = &usage["prompt_tokens_details"];
    let cached = [&prompt["cached_tokens"], &usage["prompt_cache_hit_tokens"], &usage["cached_tokens"]];
    let cache_read = cached.into_iter().find(|count| !count.is_null()).map(count).unwrap_or_default();
    let cache_write = count(&prompt["cache_write_tokens"]);
    Used {
        input: count(&usage["prompt_tokens"]).saturating_sub(cache_read).saturating_sub(cache_write),
        output: count(&usage["completion_tokens"]),
        cache_read,
        cache_write,
        cache_write_1h: None,
        reasoning: usage.is_object().then(|| count(&usage["completion_tokens_details"]["reasoning_tokens"])),
    }
}

/// How a provider deviates from OpenAI's own format.
struct Ways {
    store: bool,
    developer_role: bool,
    reasoning_effort: bool,
    finish_reason: bool,
    max_tokens_field: &'static str,
}

impl Ways {
    /// From the model's definition, otherwise Pi's guess by address, as far as such providers are asked without
    /// Pi.
    fn of(model: &ModelFacts) -> Self {
        let usual = !(model.provider == "cerebras" || model.base_url.contains("cerebras.ai"));
        let says = |key: &str| model.compat.get(key).and_then(Value::as_bool);
        // Only OpenAI itself knows the role; other servers refuse it.
        let is_openai = model.provider == "openai" || model.base_url.contains("api.openai.com");
        let old_name = model.compat.get("maxTokensField").and_then(Value::as_str) == Some("max_tokens");
        Self {
            store: says("supportsStore").unwrap_or(usual),
            developer_role: says("supportsDeveloperRole").unwrap_or(is_openai),
            reasoning_effort: says("supportsReasoningEffort").unwrap_or(true),
            finish_reason: says("supportsFinishReason").unwrap_or(true),
            max_tokens_field: if old_name { "max_tokens" } else { "max_completion_tokens" },
        }
    }
}
