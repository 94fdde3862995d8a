//! How answers are read, in both wire formats.

use serde_json::{Value, json};

use super::super::{Wire, message as read};
use super::{facts, glm, haiku, keyed, with};
use crate::llm::{Answer, ModelFacts, Reply, read_message};

fn model(json: Value) -> ModelFacts {
    facts(keyed(json)).model
}

fn completion(answer: Value) -> Answer {
    read_message(&read(&model(glm()), Wire::Completions, &answer))
}

fn message(answer: Value) -> Answer {
    read_message(&read(&model(haiku()), Wire::Messages, &answer))
}

fn choice(message: Value, finish: Value) -> Value {
    json!({"choices": [{"message": message, "finish_reason": finish}]})
}

#[test]
fn a_completion_is_read_with_what_it_cost() {
    let usage = json!({
        "prompt_tokens": 1_000, "completion_tokens": 40, "total_tokens": 1_040,
        "prompt_tokens_details": {"cached_tokens": 100}, "completion_tokens_details": {"reasoning_tokens": 30},
    });
    let answer = with(
        choice(json!({"content": " It did. ", "reasoning_content": "hm"}), json!("stop")),
        json!({"usage": usage}),
    );
    let Reply { text, model, usage } = completion(answer).unwrap();
    assert_eq!((text.as_str(), model.as_deref()), ("It did.", Some("cerebras/zai-glm-4.7")));
    let usage = usage.unwrap();
    let tokens = ["input", "output", "cacheRead", "cacheWrite", "reasoning", "totalTokens"]
        .map(|key| usage[key].as_u64());
    assert_eq!(tokens, [900, 40, 100, 0, 30, 1_040].map(Some));
    assert_eq!(usage["cost"]["total"].as_f64(), Some(2.25 / 1e6 * 900.0 + 2.75 / 1e6 * 40.0));
}

#[test]
fn usage_is_found_in_every_providers_field() {
    let cached = |usage: Value| {
        let usage = completion(with(choice(json!({"content": "a"}), json!("stop")), json!({"usage": usage})))
            .unwrap()
            .usage
            .unwrap();
        (usage["input"].as_u64().unwrap(), usage["cacheRead"].as_u64().unwrap())
    };
    assert_eq!(cached(json!({"prompt_tokens": 10, "prompt_cache_hit_tokens": 4})), (6, 4));
    assert_eq!(cached(json!({"prompt_tokens": 10, "cached_tokens": 3})), (7, 3));
    assert_eq!(cached(json!({"prompt_tokens": 10, "prompt_tokens_details": null})), (10, 0));
    assert_eq!(cached(json!({"prompt_tokens": 2, "cached_tokens": 3})), (0, 3));
    assert_eq!(cached(Value::Null), (0, 0));
}

#[test]
fn useless_completions_say_why() {
    let cases = [
        (choice(json!({"content": "half"}), json!("length")), "the answer was cut off", true),
        (
            choice(json!({"content": null, "tool_calls": [{}]}), json!("tool_calls")),
            "the model called a tool instead of answering",
            true,
        ),
        (choice(json!({"content": ""}), json!("stop")), "the answer has no text", true),
        (choice(json!({"content": null, "refusal": "no"}), json!("stop")), "the model refused: no", false),
        (
            choice(json!({"content": "a"}), json!("content_filter")),
            "the provider ended the answer: content_filter",
            false,
        ),
        (choice(json!({"content": "a"}), Value::Null), "the answer is incomplete", false),
        (json!({"choices": []}), "the answer is incomplete", false),
        (json!({}), "the answer is incomplete", false),
    ];
    for (answer, reason, answered) in cases {
        let failure = completion(answer.clone()).unwrap_err();
        assert_eq!((failure.reason.as_str(), failure.answered()), (reason, answered), "{answer}");
        assert!(failure.usage.is_some(), "{answer}");
    }
}

#[test]
fn text_may_come_in_parts_and_without_a_finish_reason() {
    let parts = json!([{"type": "text", "text": "a"}, {"type": "other"}, {"type": "text", "text": "b"}]);
    assert_eq!(completion(choice(json!({"content": parts}), json!("stop"))).unwrap().text, "ab");
    let endless = model(with(glm(), json!({"compat": {"supportsFinishReason": false}})));
    let answer = read(&endless, Wire::Completions, &choice(json!({"content": "a"}), Value::Null));
    assert_eq!(read_message(&answer).unwrap().text, "a");
}

#[test]
fn a_message_is_read_with_what_it_cost() {
    let answer = json!({
        "type": "message", "model": "claude-haiku-4-5-20251001", "stop_reason": "end_turn",
        "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "It"}, {"type": "text", "text": "did."}],
        "usage": {
            "input_tokens": 900, "output_tokens": 40, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20,
            "cache_creation": {"ephemeral_5m_input_tokens": 15, "ephemeral_1h_input_tokens": 5},
            "output_tokens_details": {"thinking_tokens": 7},
        },
    });
    let Reply { text, model, usage } = message(answer).unwrap();
    assert_eq!((text.as_str(), model.as_deref()), ("It\ndid.", Some("anthropic/claude-haiku-4-5")));
    let usage = usage.unwrap();
    let keys = ["input", "output", "cacheRead", "cacheWrite", "cacheWrite1h", "reasoning", "totalTokens"];
    assert_eq!(keys.map(|key| usage[key].as_u64()), [900, 40, 100, 20, 5, 7, 1_060].map(Some));
    assert_eq!(usage["cost"]["cacheWrite"].as_f64(), Some((1.25 * 15.0 + 1.0 * 2.0 * 5.0) / 1e6));
}

#[test]
fn useless_messages_say_why() {
    let said = |stop: Value| json!({"content": [{"type": "text", "text": "a"}], "stop_reason": stop, "usage": {"input_tokens": 3}});
    let refused = with(said(json!("refusal")), json!({"stop_details": {"explanation": "not this"}}));
    let cases = [
        (said(json!("max_tokens")), "the answer was cut off", true),
        (said(json!("tool_use")), "the model called a tool instead of answering", true),
        (with(said(json!("end_turn")), json!({"content": []})), "the answer has no text", true),
        (said(json!("refusal")), "the model refused to answer", false),
        (refused, "the model refused: not this", false),
        (said(json!("sensitive")), "the provider ended the answer: sensitive", false),
        (said(Value::Null), "the answer is incomplete", false),
    ];
    for (answer, reason, answered) in cases {
        let failure = message(answer.clone()).unwrap_err();
        assert_eq!((failure.reason.as_str(), failure.answered()), (reason, answered), "{answer}");
        assert_eq!(failure.usage.unwrap()["input"], 3, "{answer}");
    }
}
