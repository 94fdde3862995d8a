//! The wire format `anthropic-messages`, as Pi implements it.

use serde_json::{Value, json};

use super::super::cost::{Used, count};
use super::super::thinking::effort;
use super::super::{ModelFacts, ModelRequest};
use super::{Read, refused};

/// The request's body, with fields in Pi's order.
pub(super) fn body(model: &ModelFacts, request: &ModelRequest) -> Value {
    let text = |text: &str| json!([{"type": "text", "text": text}]);
    let mut body = json!({
        "model": model.id,
        "messages": [{"role": "user", "content": text(&request.prompt)}],
        "max_tokens": request.max_tokens,
        "stream": false,
    });
    if !request.system.is_empty() {
        body["system"] = text(&request.system);
    }
    if let Some(level) = request.reasoning {
        body["thinking"] = json!({"type": "adaptive", "display": "summarized"});
        body["output_config"] = json!({"effort": effort(model, level)});
    } else if model.reasoning {
        body["thinking"] = json!({"type": "disabled"});
    }
    body
}

/// Reads the answer.
pub(super) fn read(answer: &Value) -> Read {
    let refused = || refused(answer["stop_details"]["explanation"].as_str().unwrap_or_default());
    let end = match answer["stop_reason"].as_str() {
        Some("end_turn" | "pause_turn" | "stop_sequence") => Ok("stop"),
        Some("max_tokens") => Ok("length"),
        Some("tool_use") => Ok("toolUse"),
        Some("refusal") => Err(refused()),
        Some(other) => Err(format!("the provider ended the answer: {other}")),
        None => Err("the answer is incomplete".into()),
    };
    Read { content: answer["content"].clone(), used: used(&answer["usage"]), end }
}

fn used(usage: &Value) -> Used {
    Used {
        input: count(&usage["input_tokens"]),
        output: count(&usage["output_tokens"]),
        cache_read: count(&usage["cache_read_input_tokens"]),
        cache_write: count(&usage["cache_creation_input_tokens"]),
        cache_write_1h: usage
            .is_object()
            .then(|| count(&usage["cache_creation"]["ephemeral_1h_input_tokens"])),
        reasoning: usage["output_tokens_details"]["thinking_tokens"].as_u64(),
    }
}
