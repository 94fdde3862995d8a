//! Random projects: session files as Pi writes them, in any version and order.

use std::collections::HashSet;

use proptest::prelude::*;
use proptest::sample::Index;
use serde_json::{Value, json};

use super::tree::{Tree, id_of};

/// A session file: its entries in the order Pi appended them.
#[derive(Clone, Debug, Default)]
pub struct File {
    pub entries: Vec<Value>,
    count: usize,
}

/// The next event in a random project. The numbers choose its place and content.
#[derive(Clone, Debug)]
pub struct Event {
    what: u8,
    session: Index,
    parent: u8,
    place: Index,
    text: u8,
}

impl File {
    /// The id of some entry, or of none.
    fn pick(&self, place: Index) -> String {
        match place.index(self.entries.len() + 1) {
            at if at < self.entries.len() => id_of(&self.entries[at]).to_owned(),
            _ => "nobody".into(),
        }
    }

    fn append(&mut self, event: &Event, kind: &str, fields: Value) {
        let leaf = self.entries.last().map(|entry| entry["id"].clone()).unwrap_or_default();
        let parent = match event.parent {
            0 => Value::Null,
            1 => json!("gone"),
            2..=6 => match self.pick(event.place) {
                id if id == "nobody" => leaf,
                id => id.into(),
            },
            _ => leaf,
        };
        self.count += 1;
        // Many times are equal, and equal texts have equal times: a message without a time gets that of the
        // first entry with it, which must not depend on which came first.
        let time = format!("2026-11-20T09:00:0{}.000Z", event.text % 4 / 2);
        let mut entry =
            json!({"type": kind, "id": format!("e{}", self.count), "parentId": parent, "timestamp": time});
        entry.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        self.entries.push(entry);
    }

    fn happen(&mut self, event: &Event) {
        let text = ["go on", "no", "Ünïcode 日本語 getUserName2", "word ".repeat(200).trim()]
            [usize::from(event.text % 4)]
        .to_owned();
        let blocks = json!([{"type": "text", "text": text}]);
        let target = self.pick(event.place);
        let message = |message: Value| ("message", json!({"message": message}));
        let edit =
            |replacement: Value| ("context_edit", json!({"targetId": target, "replacement": replacement}));
        let compaction = |details: Value| {
            (
                "compaction",
                json!({"summary": text, "firstKeptEntryId": target, "tokensBefore": 9, "details": details}),
            )
        };
        let record = json!({
            "id": "ab".repeat(32), "depth": 0, "text": text, "tokens": 1, "state": "ok", "model": null, "promptVersion": 1,
            "createdAt": 1, "usage": null, "sources": [target],
        });
        let (kind, fields) = match event.what {
            0..=4 => message(json!({"role": "user", "content": text, "timestamp": 1_763_629_920_000_i64})),
            5..=7 => message(json!({"role": "assistant", "content": blocks, "timestamp": 5})),
            8 => message(json!({"role": "user", "timestamp": 7})),
            9 | 10 => {
                message(json!({"role": "toolResult", "toolName": "ls", "toolCallId": "c", "content": blocks}))
            }
            11 => message(json!({"role": "bashExecution", "command": text, "output": "out"})),
            12 => message(
                json!({"role": "bashExecution", "command": text, "output": "", "excludeFromContext": true}),
            ),
            13 => message(json!({"role": "system", "content": text})),
            14 => message(json!({"role": "oracle", "body": text})),
            15 => message(json!({"role": "custom", "customType": "x", "content": text})),
            16 => ("custom_message", json!({"customType": "note", "content": text, "display": true})),
            17 => ("branch_summary", json!({"fromId": target, "summary": text})),
            18..=20 => edit(Value::Null),
            21..=23 => edit(json!({"content": text})),
            24 => edit(json!({"content": blocks, "more": 1})),
            25 => ("label", json!({"targetId": target, "label": text})),
            26 => ("model_change", json!({"provider": "p", "modelId": text})),
            27 => compaction(Value::Null),
            28 => compaction(json!({"readFiles": [], "lcm": text})),
            29 => compaction(json!({"lcm": 1, "summaries": [record, {}], "frontier": []})),
            30 => compaction(
                json!({"lcm": 1, "summaries": [record], "frontier": [], "covered": 1, "readFiles": [], "modifiedFiles": []}),
            ),
            _ => match self.entries.get(event.place.index(self.entries.len().max(1))).cloned() {
                // A repeated line.
                Some(again) => return self.entries.push(again),
                None => return,
            },
        };
        self.append(event, kind, fields);
    }

    /// What `/fork` and `/clone` write: the branch with the same ids, without labels.
    fn fork(&self, place: Index) -> Self {
        let path = Tree::of(&self.entries).path(&self.pick(place)).into_iter().cloned().collect::<Vec<_>>();
        let mut fork = Self { entries: Vec::new(), count: self.count };
        for mut entry in path.into_iter().filter(|entry| entry["type"] != "label") {
            entry["parentId"] = fork.entries.last().map(|above| above["id"].clone()).unwrap_or_default();
            fork.entries.push(entry);
        }
        fork
    }

    /// Entries whose parent does not exist, as the shim lists them.
    pub fn orphans(&self) -> Vec<String> {
        let ids: HashSet<&str> = self.entries.iter().map(id_of).collect();
        let hangs = |entry: &&Value| entry["parentId"].as_str().is_some_and(|parent| !ids.contains(parent));
        self.entries.iter().filter(hangs).map(|entry| id_of(entry).to_owned()).collect()
    }

    /// The session file with its lines shuffled; half of them in the format of version 2.
    pub fn shuffled(&self, mut dice: Dice<'_>) -> String {
        let version = 2 + dice.roll(2);
        let mut lines: Vec<String> = Vec::new();
        for entry in &self.entries {
            let mut entry = entry.clone();
            if version == 2 && entry["message"]["role"] == "custom" {
                entry["message"]["role"] = "hookMessage".into();
            }
            // A repeated line stays behind the first.
            let line = entry.to_string();
            let first = lines.iter().position(|known| *known == line).map_or(0, |at| at + 1);
            lines.insert(first + dice.roll(lines.len() - first + 1), line);
        }
        file_of(version, &lines)
    }

    /// All messages, as if the session had no branches.
    pub fn in_a_row(&self) -> Self {
        let mut row = Self::default();
        for entry in &self.entries {
            let mut entry = entry.clone();
            row.count += 1;
            entry["id"] = format!("v1-{}", row.count).into();
            entry["parentId"] = match row.count {
                1 => Value::Null,
                n => format!("v1-{}", n - 1).into(),
            };
            row.entries.push(entry);
        }
        row
    }

    /// The session file of version 1 with these messages.
    pub fn of_version_1(&self) -> String {
        let without_ids = |entry: &Value| {
            let mut entry = entry.clone();
            entry.as_object_mut().unwrap().retain(|key, _| key != "id" && key != "parentId");
            entry.to_string()
        };
        file_of(1, &self.entries.iter().map(without_ids).collect::<Vec<_>>())
    }

    /// The entries in another order, parents before children.
    pub fn reordered(&self, mut dice: Dice<'_>) -> Vec<Value> {
        let orphans: HashSet<String> = self.orphans().into_iter().collect();
        let (mut waiting, mut ordered, mut done) = (self.entries.clone(), Vec::new(), HashSet::new());
        while !waiting.is_empty() {
            let ready = |entry: &Value| match entry["parentId"].as_str() {
                Some(parent) => done.contains(parent) || orphans.contains(id_of(entry)),
                None => true,
            };
            let ready: Vec<usize> = (0..waiting.len()).filter(|at| ready(&waiting[*at])).collect();
            // Often the next one of the file, so that long runs stay together.
            let pick = if dice.roll(3) > 0 { ready[0] } else { ready[dice.roll(ready.len())] };
            let entry = waiting.remove(pick);
            done.insert(id_of(&entry).to_owned());
            ordered.push(entry);
        }
        ordered
    }
}

fn file_of(version: usize, lines: &[String]) -> String {
    let header = json!({"type": "session", "version": version, "id": "any", "cwd": "/project"}).to_string();
    std::iter::once(&header).chain(lines).map(|line| format!("{line}\n")).collect()
}

pub fn project(events: &[Event]) -> Vec<File> {
    let mut files = vec![File::default()];
    for event in events {
        let at = event.session.index(files.len());
        match event.what {
            39 if files.len() < 4 => files.push(files[at].fork(event.place)),
            38 if files.len() < 4 => files.push(files[at].clone()),
            37 if files.len() < 4 => files.push(File::default()),
            _ => files[at].happen(event),
        }
    }
    files
}

pub fn events() -> impl Strategy<Value = Vec<Event>> {
    let event = (0_u8..40, any::<Index>(), 0_u8..30, any::<Index>(), any::<u8>())
        .prop_map(|(what, session, parent, place, text)| Event { what, session, parent, place, text });
    prop::collection::vec(event, 1..60)
}

/// Random numbers from the test case.
#[derive(Clone)]
pub struct Dice<'d> {
    bytes: std::iter::Cycle<std::slice::Iter<'d, u8>>,
}

impl<'d> Dice<'d> {
    pub fn new(bytes: &'d [u8], skip: usize) -> Self {
        let mut bytes = bytes.iter().cycle();
        bytes.nth(skip);
        Self { bytes }
    }

    pub fn roll(&mut self, sides: usize) -> usize {
        usize::from(*self.bytes.next().unwrap()) % sides
    }
}
