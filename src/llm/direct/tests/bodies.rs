//! Requests equal Pi's. The expected ones were taken from Pi's own code, in three versions.

use serde_json::{Value, json};

use super::{facts, glm, haiku, keyed, question, with};
use crate::llm::direct::direct;

fn body(model: Value) -> Value {
    direct(&facts(keyed(model))).unwrap().body(&question())
}

fn completions(head: Value, role: &str) -> Value {
    let body = json!({
        "model": head["model"],
        "messages": [
            {"role": role, "content": "Be short."},
            {"role": "user", "content": [{"type": "text", "text": "What happened?"}]},
        ],
        "stream": false,
    });
    with(body, head)
}

#[test]
fn completion_requests_follow_each_providers_rules() {
    let cerebras = with(glm(), json!({"compat": {"supportsStore": false, "supportsDeveloperRole": false}}));
    let thinking =
        |off: Value| with(glm(), json!({"reasoning": true, "thinkingLevelMap": {"off": off, "low": "low"}}));
    let elsewhere = |changes: Value| {
        with(with(glm(), json!({"provider": "own", "baseUrl": "http://127.0.0.1:9/v1"})), changes)
    };
    let id = "zai-glm-4.7";
    let cases = [
        (glm(), completions(json!({"model": id, "max_completion_tokens": 5_000}), "system")),
        (cerebras, completions(json!({"model": id, "max_completion_tokens": 5_000}), "system")),
        // A thinking model that does not know the role such models use for instructions.
        (thinking(Value::Null), completions(json!({"model": id, "max_completion_tokens": 5_000}), "system")),
        (
            thinking(json!("none")),
            completions(
                json!({"model": id, "max_completion_tokens": 5_000, "reasoning_effort": "none"}),
                "system",
            ),
        ),
        (
            elsewhere(json!({})),
            completions(json!({"model": id, "store": false, "max_completion_tokens": 5_000}), "system"),
        ),
        (
            elsewhere(json!({"reasoning": true, "thinkingLevelMap": {"off": "minimal"}})),
            completions(
                json!({"model": id, "store": false, "max_completion_tokens": 5_000, "reasoning_effort": "minimal"}),
                "system",
            ),
        ),
        (
            elsewhere(json!({"reasoning": true, "compat": {"supportsDeveloperRole": true}})),
            completions(json!({"model": id, "store": false, "max_completion_tokens": 5_000}), "developer"),
        ),
        (
            elsewhere(json!({"reasoning": true, "baseUrl": "https://api.openai.com/v1"})),
            completions(json!({"model": id, "store": false, "max_completion_tokens": 5_000}), "developer"),
        ),
        (
            elsewhere(json!({"provider": "openai"})),
            completions(json!({"model": id, "store": false, "max_completion_tokens": 5_000}), "system"),
        ),
        (
            elsewhere(json!({"reasoning": true, "thinkingLevelMap": {"off": "minimal"}, "compat": {
                "supportsReasoningEffort": false, "maxTokensField": "max_tokens", "supportsStore": false, "supportsStrictMode": true,
            }})),
            completions(json!({"model": id, "max_tokens": 5_000}), "system"),
        ),
    ];
    for (model, expected) in cases {
        assert_eq!(body(model.clone()), expected, "{model}");
    }
}

#[test]
fn fields_are_in_pis_order() {
    assert_eq!(
        body(with(glm(), json!({"provider": "own", "baseUrl": "http://h/v1"}))).to_string(),
        r#"{"model":"zai-glm-4.7","messages":[{"role":"system","content":"Be short."},{"role":"user","content":[{"type":"text","text":"What happened?"}]}],"stream":false,"store":false,"max_completion_tokens":5000}"#
    );
    assert_eq!(
        body(haiku()).to_string(),
        r#"{"model":"claude-haiku-4-5","messages":[{"role":"user","content":[{"type":"text","text":"What happened?"}]}],"max_tokens":5000,"stream":false,"system":[{"type":"text","text":"Be short."}],"thinking":{"type":"disabled"}}"#
    );
}

#[test]
fn thinking_is_disabled_if_possible() {
    assert_eq!(body(haiku())["thinking"], json!({"type": "disabled"}));
    let always = with(haiku(), json!({"thinkingLevelMap": {"off": null}}));
    assert_eq!(body(always)["thinking"], Value::Null);
    let never = with(haiku(), json!({"reasoning": false}));
    assert_eq!(body(never)["thinking"], Value::Null);
}
