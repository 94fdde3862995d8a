//! Asking without Pi: which models, with which requests, and how answers are read.

#![allow(clippy::needless_pass_by_value, reason = "a case lists its values in place")]

mod bodies;
mod eligibility;
mod replies;
mod serving;

use serde_json::{Value, json};

use crate::llm::{Facts, ModelRequest};

/// `cerebras/zai-glm-4.7` as described by the versions of Pi that have it.
fn glm() -> Value {
    json!({
        "id": "zai-glm-4.7", "name": "Z.AI GLM-4.7", "api": "openai-completions", "provider": "cerebras",
        "baseUrl": "https://api.cerebras.ai/v1", "reasoning": false, "input": ["text"],
        "cost": {"input": 2.25, "output": 2.75, "cacheRead": 0, "cacheWrite": 0}, "contextWindow": 131_072, "maxTokens": 40_000,
    })
}

/// `anthropic/claude-haiku-4-5` as described by the newest Pi.
fn haiku() -> Value {
    json!({
        "id": "claude-haiku-4-5", "name": "Claude Haiku 4.5 (latest)", "api": "anthropic-messages", "provider": "anthropic",
        "baseUrl": "https://api.anthropic.com", "reasoning": true, "input": ["text", "image"],
        "cost": {"input": 1, "output": 5, "cacheRead": 0.1, "cacheWrite": 1.25}, "contextWindow": 200_000, "maxTokens": 64_000,
        "compat": {"supportsStrictTools": true}, "promptCache": {"short": 300, "long": 3600},
        "inputLimits": {"maxRequestBytes": 33_554_432}, "type": "chat",
    })
}

/// `model` with `changes` applied.
fn with(mut model: Value, changes: Value) -> Value {
    let Value::Object(changes) = changes else { panic!("{changes} are no changes") };
    for (key, value) in changes {
        model[key] = value;
    }
    model
}

fn keyed(model: Value) -> Value {
    json!({"model": model, "auth": {"ok": true, "apiKey": "sk-a1b2c3d4e5f6g7h8"}, "oauth": false, "ownStream": false})
}

fn facts(json: Value) -> Facts {
    serde_json::from_value(json).unwrap()
}

fn question() -> ModelRequest {
    ModelRequest {
        system: "Be short.".into(),
        prompt: "What happened?".into(),
        max_tokens: 5_000,
        reasoning: None,
        timeout_ms: 20_000,
        by: None,
        in_session: None,
    }
}
