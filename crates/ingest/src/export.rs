//! Writes a stored session as a session file of Pi's: the reverse of storing.
//!
//! Messages, ids, the tree, edits and summaries come from the store. What it does not keep (labels, model
//! changes, the text of a compaction) comes from the lines of the session file, if it still exists. A line is
//! used only if it agrees with the store. Without a line, such an entry becomes a `custom` entry that holds
//! its children.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::Path;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::file::{LINE, SessionFile};
use super::stringify::stringify;
use lcm_model::dag::{Sources, visible};
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, MessageId, SummaryId};
use lcm_model::text::timestamp;
use lcm_model::{
    CompactionDetails, Content, Entry, SummaryRecord, Supplement, files, parse_one, replacements,
};
use lcm_store::{ExportedEntry, Shows, StoredSession, StoredSummary, View};

/// The version of the session files that are written.
const VERSION: u32 = 3;
/// The type of a `custom` entry that only holds its children.
const LINK: &str = "lcm-link";

/// The first line of a session's file.
pub fn header(session: &StoredSession, cwd: &str, lines: &LinePositions) -> String {
    if let Some(own) = lines.header.as_ref().filter(|own| own["id"] == session.session_id.as_str()) {
        return own.to_string();
    }
    let mut header = json!({
        "type": "session", "version": VERSION, "id": session.session_id,
        "timestamp": timestamp(session.started_at), "cwd": cwd
    });
    if let Some(parent) = &session.parent {
        header["parentSession"] = parent.as_str().into();
    }
    header.to_string()
}

/// The positions of a session file's lines, by the ids of their entries.
#[derive(Default)]
pub struct LinePositions {
    file: Option<File>,
    /// The first line.
    header: Option<Value>,
    places: HashMap<String, (u64, usize)>,
    /// How many compactions were written without their text, which only the file has.
    pub textless: usize,
}

impl LinePositions {
    /// Indexes the file. A file that is gone or can't be read has no lines, nor has any once `cancel` is raised.
    pub fn of(path: Option<&Path>, cancel: &CancellationToken) -> Self {
        let read = || {
            // A file that is no session is not read to its end.
            SessionFile::open(path?).ok()?;
            let file = files::open(path?).ok()?;
            let mut lines = Self::default();
            // Some files in `/proc` have no end, and the size 0. What is added meanwhile is left out.
            let mut reader = BufReader::new((&file).take(file.metadata().ok()?.len()));
            let (mut at, mut line) = (0, Vec::new());
            while reader.by_ref().take(LINE as u64).read_until(b'\n', &mut line).ok()? > 0 {
                if cancel.is_cancelled() {
                    return None;
                }
                // A hole in the file, which may be larger than the disk.
                if line.len() == LINE && line.last() != Some(&b'\n') {
                    break;
                }
                if at == 0 {
                    lines.header = serde_json::from_slice(&line).ok();
                }
                let id = std::str::from_utf8(&line).ok().and_then(|line| parse_one(line).ok());
                if let Some(Entry { id, .. }) = id {
                    // If two lines have one id, the store has the first.
                    lines.places.entry(id).or_insert((at, line.len()));
                }
                at += line.len() as u64;
                line.clear();
            }
            lines.file = Some(file);
            Some(lines)
        };
        read().unwrap_or_default()
    }

    /// Reads the line of an entry, in the format of `JSON.stringify`.
    fn read(&mut self, id: &str) -> Option<String> {
        let (at, length) = *self.places.get(id)?;
        let file = self.file.as_mut()?;
        file.seek(SeekFrom::Start(at)).ok()?;
        let mut line = vec![0; length];
        file.read_exact(&mut line).ok()?;
        stringify(std::str::from_utf8(&line).ok()?.trim_end())
    }
}

/// Returns the line of an entry.
pub fn line(
    view: &View<'_>,
    conversation: ConversationId,
    entry: &ExportedEntry,
    lines: &mut LinePositions,
) -> Result<String> {
    let own = match &entry.shows {
        Shows::Message(message) => Some(of_message(view, entry, *message)?),
        Shows::Edit { target, rendition } => Some(of_edit(view, entry, target, *rendition)?),
        Shows::Compaction | Shows::Link => None,
    };
    if let Some(line) = lines.read(&entry.id).filter(|line| is_of(line, entry, own.as_deref())) {
        return Ok(line);
    }
    match own {
        Some(own) => Ok(own),
        None if entry.shows == Shows::Compaction => {
            lines.textless += 1;
            of_compaction(view, conversation, entry)
        }
        None => Ok(placed(entry, json!({"type": "custom", "customType": LINK}))),
    }
}

/// Whether a line of the file agrees with what the store has of the entry.
fn is_of(line: &str, entry: &ExportedEntry, own: Option<&str>) -> bool {
    let Ok(found) = parse_one(line) else { return false };
    let said = own.and_then(|own| parse_one(own).ok()).map(|entry| entry.content);
    found.parent == entry.parent
        && match (&found.content, said) {
            (Content::Message(json), Some(Content::Message(own))) => *json == own,
            (
                Content::Edit { target, replacement },
                Some(Content::Edit { target: own, replacement: with }),
            ) => *target == own && *replacement == with,
            (Content::Compaction(_) | Content::OtherCompaction(_), None) => entry.shows == Shows::Compaction,
            (Content::Other | Content::Edit { .. }, None) => entry.shows == Shows::Link,
            _ => false,
        }
}

/// Returns the last line of a session's file, which holds the summaries that no compaction carries, if there
/// are any.
pub fn supplement(view: &View<'_>, conversation: ConversationId) -> Result<Option<String>> {
    let mut summaries = Vec::new();
    for id in view.summaries().carried_nowhere(conversation)? {
        let sources = view.summaries().identities(&view.summaries().sources(id)?)?;
        summaries.push(SummaryRecord::of(view.summaries().summary(id)?.summary, &sources));
    }
    if summaries.is_empty() {
        return Ok(None);
    }
    let line = Supplement::new(&view.messages().session_id(conversation)?, summaries);
    Ok(Some(serde_json::to_string(&line).unwrap_or_default()))
}

fn of_message(view: &View<'_>, entry: &ExportedEntry, message: MessageId) -> Result<String> {
    let stored = view.messages().message(message)?;
    let (id, parent) = (Value::from(entry.id.as_str()), Value::from(entry.parent.clone()));
    // Such an entry is its own message: the store has all its fields but its id and parent.
    let is_whole = serde_json::from_str::<Value>(&stored.json)
        .is_ok_and(|json| matches!(json["type"].as_str(), Some("custom_message" | "branch_summary")));
    if let (true, Some(rest)) = (is_whole, stored.json.strip_prefix('{')) {
        return Ok(format!("{{\"id\":{id},\"parentId\":{parent},{rest}"));
    }
    let time = Value::from(timestamp(stored.timestamp));
    let json = &stored.json;
    Ok(format!(
        "{{\"type\":\"message\",\"id\":{id},\"parentId\":{parent},\"timestamp\":{time},\"message\":{json}}}"
    ))
}

fn of_edit(
    view: &View<'_>,
    entry: &ExportedEntry,
    target: &str,
    rendition: Option<MessageId>,
) -> Result<String> {
    let mut replacement = "null".to_owned();
    let mut time = 0;
    if let Some(rendition) = rendition {
        let shown = view.messages().message(rendition)?;
        let original = view.messages().message(view.messages().original(rendition)?)?;
        time = shown.timestamp;
        let found = replacements(&original.json, &shown.json)
            .into_iter()
            .find(|replacement| original.lineage.edited(replacement) == shown.lineage);
        replacement = found.unwrap_or(shown.json);
    }
    let (id, target) = (Value::from(entry.id.as_str()), Value::from(target));
    let (parent, time) = (Value::from(entry.parent.clone()), Value::from(timestamp(time)));
    Ok(format!(
        "{{\"type\":\"context_edit\",\"id\":{id},\"parentId\":{parent},\"timestamp\":{time},\"targetId\":{target},\
         \"replacement\":{replacement}}}"
    ))
}

/// A compaction whose text is gone, with the summaries it carried.
fn of_compaction(view: &View<'_>, conversation: ConversationId, entry: &ExportedEntry) -> Result<String> {
    let branch = view.messages().branch(conversation, &entry.id)?;
    let names: HashMap<MessageId, String> =
        visible(&branch).into_iter().map(|visible| (visible.seen.id, visible.entry_id)).collect();
    let mut summaries = Vec::new();
    let mut newest = String::new();
    for id in view.summaries().carried_by(entry.row)? {
        let stored = view.summaries().summary(id)?;
        newest = stored.text.clone();
        summaries.extend(record(view, id, stored, &names)?);
    }
    // With this entry Pi keeps everything before the compaction.
    let first = branch.first().map(|first| first.entry_id.clone()).unwrap_or_default();
    let mut fields =
        json!({"type": "compaction", "summary": newest, "firstKeptEntryId": first, "tokensBefore": 0});
    if !summaries.is_empty() {
        let details = CompactionDetails {
            lcm: CompactionDetails::FORMAT,
            frontier: summaries.iter().map(|summary| summary.hash.to_string()).collect(),
            summaries,
            ..CompactionDetails::default()
        };
        fields["details"] = serde_json::to_value(details).unwrap_or_default();
    } else if let Some(files) = view.summaries().listed_by(entry.row)? {
        fields["details"] = json!({"readFiles": files.read, "modifiedFiles": files.modified});
    }
    Ok(placed(entry, fields))
}

/// A summary as a compaction carries it; `None` if one of its messages has no entry here.
pub(super) fn record(
    view: &View<'_>,
    id: SummaryId,
    stored: StoredSummary,
    names: &HashMap<MessageId, String>,
) -> Result<Option<SummaryRecord>> {
    let sources: Option<Vec<String>> = match view.summaries().sources(id)? {
        Sources::Messages(messages) => messages.iter().map(|id| names.get(id).cloned()).collect(),
        Sources::Summaries(children) => {
            let hashes = children.iter().map(|child| Ok(view.summaries().summary(*child)?.hash.to_string()));
            Some(hashes.collect::<Result<_>>()?)
        }
    };
    Ok(sources.map(|sources| SummaryRecord { summary: stored.summary, sources }))
}

fn placed(entry: &ExportedEntry, mut fields: Value) -> String {
    fields["id"] = entry.id.as_str().into();
    fields["parentId"] = entry.parent.clone().into();
    fields["timestamp"] = timestamp(0).into();
    fields.to_string()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use std::io::Write as _;

    use super::*;

    #[test]
    fn a_file_without_an_end_has_no_lines_and_a_long_one_is_read_as_far_as_it_has_some() {
        let cancel = CancellationToken::new();
        assert!(LinePositions::of(Some(Path::new("/proc/self/pagemap")), &cancel).places.is_empty());
        let mut long = tempfile::NamedTempFile::new().unwrap();
        writeln!(long, "{}", json!({"type": "session", "id": "one"})).unwrap();
        writeln!(long, "{}", json!({"type": "custom", "id": "e1", "parentId": null})).unwrap();
        assert!(LinePositions::of(Some(long.path()), &cancel).places.contains_key("e1"));
        // A hole, which takes minutes to read: no session has such a line.
        long.as_file().set_len(1 << 41).unwrap();
        assert!(LinePositions::of(Some(long.path()), &cancel).places.contains_key("e1"));
        let hole = tempfile::NamedTempFile::new().unwrap();
        hole.as_file().set_len(1 << 41).unwrap();
        assert!(LinePositions::of(Some(hole.path()), &cancel).places.is_empty());
        cancel.cancel();
        assert!(LinePositions::of(Some(long.path()), &cancel).places.is_empty());
    }
}
