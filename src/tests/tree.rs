//! Pi's rules for a session's tree, implemented a second time to check the product's.

use std::collections::HashMap;

use serde_json::{Value, json};

pub fn id_of(entry: &Value) -> &str {
    entry["id"].as_str().unwrap()
}

/// Pi's rules, as plainly as possible.
pub struct Tree<'f> {
    entries: HashMap<&'f str, &'f Value>,
}

impl<'f> Tree<'f> {
    pub fn of(entries: &'f [Value]) -> Self {
        Self { entries: entries.iter().map(|entry| (id_of(entry), entry)).collect() }
    }

    /// The entries from the root to `leaf`.
    pub fn path(&self, leaf: &str) -> Vec<&'f Value> {
        let mut path = Vec::new();
        let mut next = self.entries.get(leaf);
        while let Some(entry) = next {
            path.insert(0, *entry);
            next = entry["parentId"].as_str().and_then(|parent| self.entries.get(parent));
        }
        path
    }

    /// The message of an entry, if it has one.
    pub fn message(entry: &Value) -> Option<Value> {
        match entry["type"].as_str()? {
            "message" => Some(entry["message"].clone()),
            "custom_message" | "branch_summary" => {
                let mut message = entry.clone();
                message.as_object_mut()?.retain(|key, _| key != "id" && key != "parentId");
                Some(message)
            }
            _ => None,
        }
    }

    /// The messages that the model sees at `leaf`, as JSON.
    pub fn visible(&self, leaf: &str) -> Vec<String> {
        self.seen(leaf).into_iter().map(|(_, message)| message).collect()
    }

    /// The same with the ids of their entries.
    pub fn seen(&self, leaf: &str) -> Vec<(String, String)> {
        let path = self.path(leaf);
        let mut seen = Vec::new();
        for entry in &path {
            let Some(mut message) = Self::message(entry) else { continue };
            if message["role"] == "system" || message["excludeFromContext"] == true {
                continue;
            }
            let edit =
                path.iter().rfind(|edit| edit["type"] == "context_edit" && edit["targetId"] == entry["id"]);
            match edit.map(|edit| &edit["replacement"]) {
                Some(Value::Null) => continue,
                Some(replacement) => {
                    let content = &replacement["content"];
                    let kind = (message["type"].as_str(), message["role"].as_str());
                    match kind {
                        (_, Some("assistant" | "toolResult")) if content.is_string() => {
                            message["content"] = json!([{"type": "text", "text": content}]);
                        }
                        (_, Some("user" | "assistant" | "toolResult" | "custom"))
                        | (Some("custom_message"), _) => {
                            message["content"] = content.clone();
                        }
                        _ => {}
                    }
                }
                None => {}
            }
            seen.push((id_of(entry).to_owned(), message.to_string()));
        }
        seen
    }
}
