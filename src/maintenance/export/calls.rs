//! Stands in for purged calls whose results are left: no provider takes a result without its call.

use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use serde_json::{Value, json};

use super::{Exporter, each_row};
use lcm_model::error::Result;
use lcm_model::ids::ConversationId;
use lcm_model::text::timestamp;
use lcm_store::{ExportedEntry, Shows, View};

/// The messages that stand in, by the ids of their entries.
#[derive(Default)]
pub(super) struct PurgedCalls(HashMap<String, Value>);

/// What a result may answer below an entry.
#[derive(Clone, Default)]
struct Above {
    /// The ids of the calls.
    calls: Rc<HashSet<String>>,
    /// An entry without a message: there a call may have been.
    empty: Option<String>,
}

impl PurgedCalls {
    /// Reads a session of which something was purged.
    pub fn of(of: &Exporter, view: &View<'_>, conversation: ConversationId) -> Result<Self> {
        let mut above: HashMap<String, Above> = HashMap::new();
        let mut calls: HashMap<String, Vec<(Value, Value)>> = HashMap::new();
        let mut answer = json!({});
        each_row(of, view, conversation, |entry| {
            let mut own =
                entry.parent.as_ref().and_then(|parent| above.get(parent)).cloned().unwrap_or_default();
            match entry.shows {
                Shows::Link => own.empty = Some(entry.id.clone()),
                Shows::Message(message) => {
                    let json: Value =
                        serde_json::from_str(&view.messages().json_of(message)?).unwrap_or_default();
                    match (json["role"].as_str(), json["toolCallId"].as_str(), &own.empty) {
                        (Some("toolResult"), Some(call), Some(empty)) if !own.calls.contains(call) => {
                            let call = json!({"type": "toolCall", "id": call, "name": json["toolName"], "arguments": {}});
                            calls.entry(empty.clone()).or_default().push((call, json["timestamp"].clone()));
                        }
                        (Some("toolResult"), ..) => {}
                        _ => own = Above { calls: Rc::new(calls_in(&json)), empty: None },
                    }
                    if json["role"] == "assistant" {
                        answer = json;
                    }
                }
                Shows::Edit { .. } | Shows::Compaction => {}
            }
            above.insert(entry.id, own);
            Ok(())
        })?;
        let cost = json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0});
        let usage =
            json!({"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0, "cost": cost});
        let message = |calls: Vec<(Value, Value)>| {
            let time = calls[0].1.clone();
            let calls: Vec<Value> = calls.into_iter().map(|(call, _)| call).collect();
            // Pi continues a session with the model of its last answer.
            json!({
                "role": "assistant", "content": calls, "api": answer["api"], "provider": answer["provider"],
                "model": answer["model"], "usage": usage, "stopReason": "toolUse", "timestamp": time
            })
        };
        Ok(Self(calls.into_iter().map(|(entry, calls)| (entry, message(calls))).collect()))
    }

    /// The line of an entry that stands in for calls.
    pub fn line(&self, entry: &ExportedEntry) -> Option<String> {
        let message = self.0.get(&entry.id)?;
        let time = timestamp(message["timestamp"].as_i64().unwrap_or_default());
        let line = json!({"type": "message", "id": entry.id, "parentId": entry.parent, "timestamp": time, "message": message});
        Some(line.to_string())
    }
}

fn calls_in(message: &Value) -> HashSet<String> {
    let parts = message["content"].as_array().into_iter().flatten();
    let calls = parts.filter(|part| part["type"] == "toolCall");
    calls.filter_map(|call| call["id"].as_str().map(str::to_owned)).collect()
}
