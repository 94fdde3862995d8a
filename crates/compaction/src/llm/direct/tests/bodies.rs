//! Requests equal Pi's. The expected ones were taken from Pi's own code, in three versions; where these differ,
//! from the newest.

use serde_json::{Value, json};

use super::{facts, glm, haiku, keyed, question, with};
use crate::llm::ModelRequest;
use crate::llm::direct::direct;

fn body(model: Value) -> Value {
    direct(&facts(keyed(model))).unwrap().body(&question())
}

fn thinking_body(model: Value, reasoning: &'static str) -> Value {
    let request = ModelRequest { reasoning: Some(reasoning), ..question() };
    let direct = direct(&facts(keyed(model))).unwrap();
    assert!(direct.takes(&request));
    direct.body(&request)
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
fn thinking_is_disabled_or_has_an_effort() {
    assert_eq!(body(haiku())["thinking"], json!({"type": "disabled"}));
    let never = with(haiku(), json!({"reasoning": false}));
    assert_eq!(body(never)["thinking"], Value::Null);
    let adaptive = with(haiku(), json!({"compat": {"forceAdaptiveThinking": true}}));
    let effort = |body: Value| (body["thinking"].clone(), body["output_config"].clone());
    let expected = (json!({"type": "adaptive", "display": "summarized"}), json!({"effort": "low"}));
    assert_eq!(effort(thinking_body(adaptive.clone(), "low")), expected);
    let mapped = with(adaptive, json!({"thinkingLevelMap": {"minimal": "low"}}));
    assert_eq!(effort(thinking_body(mapped, "minimal")), expected);
    let named = with(glm(), json!({"reasoning": true, "thinkingLevelMap": {"off": "none", "low": "little"}}));
    assert_eq!(thinking_body(named.clone(), "low")["reasoning_effort"], "little");
    assert_eq!(thinking_body(named, "medium")["reasoning_effort"], "medium");
}

#[test]
fn thinking_within_a_number_of_tokens_is_left_to_pi() {
    let takes = |model: Value| {
        let direct = direct(&facts(keyed(model))).unwrap();
        assert!(direct.takes(&question()));
        direct.takes(&ModelRequest { reasoning: Some("low"), ..question() })
    };
    assert!(takes(with(glm(), json!({"reasoning": true, "compat": {"supportsThinkingTokenBudget": false}}))));
    for compat in [
        json!({"supportsThinkingTokenBudget": true}),
        json!({"thinkingTokenBudgetField": "reasoning_budget"}),
    ] {
        assert!(!takes(with(glm(), json!({"reasoning": true, "compat": compat}))));
    }
    assert!(!takes(haiku()));
}
