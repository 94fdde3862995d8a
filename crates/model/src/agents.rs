//! Messages of other agents, as stored: the message in Pi's format, preceded by its agent and version, and
//! followed by the original record, byte for byte. Search and readers use only the first part.

use std::borrow::Cow;

use super::Fields;
use crate::ids::AGENTS;

const BEGIN: &str = r#"{"agent":""#;
const ORIGINAL: &str = r#","original":"#;
const BYTES: &str = r#","originalBytes":"#;
/// What the fields of a message begin with, and what follows them. No version contains the first: its quotes are escaped.
const ROLE: &str = r#""role":""#;
const TIME: &str = r#","timestamp":"#;

/// Builds a message of `agent`. `fields` are those of a message of Pi before its time; `original` is the record, which
/// only its first message carries.
///
/// A record in exactly the form of `JSON.stringify` is embedded as it is, so that it survives an export and
/// an import; any other one is a string.
pub fn foreign(
    agent: &str,
    version: &str,
    fields: &str,
    time: i64,
    original: Option<&str>,
    is_canonical: bool,
) -> String {
    let original = match original {
        Some(record) if is_canonical && record.starts_with('{') => Cow::Borrowed(record),
        Some(record) => Cow::Owned(serde_json::Value::from(record).to_string()),
        None => Cow::Borrowed("null"),
    };
    let (version, bytes) = (serde_json::Value::from(version), original.len());
    let head = format!("{BEGIN}{agent}\",\"agentVersion\":{version},");
    let (time, end) = (format!("{TIME}{time}"), format!("{BYTES}{bytes}}}"));
    // Without room to spare: a record may be long.
    [&head, fields, &time, ORIGINAL, &original, &end].concat()
}

/// The agent of a stored message; `None` if it is Pi's.
pub fn agent_of(json: &str) -> Option<&'static str> {
    let (name, _) = json.strip_prefix(BEGIN)?.split_once('"')?;
    let agent = AGENTS.into_iter().find(|agent| *agent == name)?;
    split(json).map(|_| agent)
}

/// The agent of the session with this id.
pub fn agent_of_session(session: &str) -> Option<&'static str> {
    let (name, _) = session.split_once(':')?;
    AGENTS.into_iter().find(|agent| *agent == name)
}

/// The original record of a stored message.
pub fn original_of(json: &str) -> Option<Cow<'_, str>> {
    match split(json)?.1 {
        "null" => None,
        record if record.starts_with('"') => serde_json::from_str(record).ok().map(Cow::Owned),
        record => Some(Cow::Borrowed(record)),
    }
}

/// A stored message of another agent without its record.
pub(super) fn without_original(json: &str) -> Option<String> {
    let (head, _) = split(json)?;
    Some(format!("{head}}}"))
}

/// What a message of another agent says: its fields without its version, time and record.
pub fn said(json: &str) -> Option<&str> {
    let (head, _) = split(json)?;
    head.get(head.find(ROLE)?..head.rfind(TIME)?)
}

/// The record of a message as a message of its own, which search ignores; `None` if it carries none.
pub fn record_alone(json: &str) -> Option<String> {
    let (head, record) = split(json)?;
    let (begin, end) = (head.get(..head.find(ROLE)?)?, json.get(head.rfind(TIME)?..)?);
    (record != "null").then(|| [begin, ROLE, r#"system","content":[]"#, end].concat())
}

/// The agent's id of the record that this one copies, if the record names it: forks by Claude Code do.
pub fn forked_from(json: &str) -> Option<String> {
    Fields::of(&original_of(json)?)?.within("forkedFrom")?.text("messageUuid")
}

/// The agent's id of the first record that says the same, if a record names it.
pub fn first_id(json: &str) -> Option<String> {
    forked_from(json).or_else(|| Fields::of(&original_of(json)?)?.text("uuid"))
}

/// Splits a message into the part before the record, and the record.
fn split(json: &str) -> Option<(&str, &str)> {
    let rest = json.strip_prefix(BEGIN)?.strip_suffix('}')?;
    let (rest, bytes) = rest.split_at(rest.trim_end_matches(|c: char| c.is_ascii_digit()).len());
    let rest = rest.strip_suffix(BYTES)?;
    let (head, original) = rest.split_at_checked(rest.len().checked_sub(bytes.parse().ok()?)?)?;
    let head = head.strip_suffix(ORIGINAL)?;
    Some((json.get(..BEGIN.len() + head.len())?, original))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Message, Role, searchable};

    #[test]
    fn a_message_is_readable_and_its_record_round_trips() {
        let fields = r#""role":"user","content":[{"type":"text","text":"hay"}]"#;
        for (record, is_canonical) in
            [(r#"{"a":"needle","originalBytes":7}"#, true), ("{ \"a\": 1.0 }\r", false), ("\"half", false)]
        {
            let json = foreign("codex", "0.9", fields, 5, Some(record), is_canonical);
            assert_eq!(original_of(&json).as_deref(), Some(record));
            let message = Message::parse(&json);
            assert_eq!((message.role == Role::User, message.timestamp), (true, Some(5)));
            assert_eq!((message.searchable().as_str(), searchable(&json).as_str()), ("hay", "hay"));
            assert_eq!(agent_of(&json), Some("codex"));
        }
        let second = foreign("codex", "0.9", fields, 5, None, true);
        assert_eq!((original_of(&second), agent_of(&second)), (None, Some("codex")));
    }

    #[test]
    fn pis_messages_have_no_agent() {
        for json in [
            r#"{"role":"user","content":"x"}"#,
            r#"{"agent":"codex","role":"user","content":"x"}"#,
            r#"{"agent":"codex","original":{},"originalBytes":99}"#,
        ] {
            assert_eq!((agent_of(json), original_of(json)), (None, None));
        }
        assert_eq!((agent_of_session("codex:1"), agent_of_session("019a-4f")), (Some("codex"), None));
    }
}
