//! Messages of other agents, as stored: the message in Pi's format, preceded by its agent and version, and
//! followed by the original record, byte for byte. Search and readers use only the first part.
//!
//! An import recognizes an entry of theirs by its id:
//!
//! ```text
//! id     = record ["/" n]                a message of a record that never changes; n: from 1, if it has several
//!        | record "/" said ["@" digest]  a message of a record that is rewritten; with the version of the record that it carries
//!        | record "@" digest             a version of such a record alone
//! record = [side chain ":"] [log "."] (own | "L" digest) ["~" times]
//!                                        own: the agent's id; without one, a digest of the line; times: from 2, if it is repeated
//! ```

use std::borrow::Cow;

use crate::ids::{AGENTS, Hash};

const BEGIN: &str = r#"{"agent":""#;
const ORIGINAL: &str = r#","original":"#;
const BYTES: &str = r#","originalBytes":"#;
/// What the fields of a message begin with, and what follows them. No version contains the first: its quotes are escaped.
const ROLE: &str = r#""role":""#;
const TIME: &str = r#","timestamp":"#;
/// The length of a digest.
const DIGEST: usize = 16;

/// Builds a message of `agent`. `fields` are those of a message of Pi before its time; `original` is the record, which
/// only its first message carries.
///
/// A record in exactly the form of `JSON.stringify` is embedded as it is, so that it survives an export and
/// an import; any other one is a string.
pub fn foreign(
    agent: &str,
    version: &str,
    mut fields: String,
    time: i64,
    original: Option<&str>,
    is_canonical: bool,
) -> String {
    // In one copy: a record may be long.
    fields.insert_str(0, &format!("{BEGIN}{agent}\",\"agentVersion\":{},", quoted(version)));
    fields.push_str(&format!("{TIME}{time}{ORIGINAL}"));
    let before = fields.len();
    match original {
        Some(record) if is_canonical && record.starts_with('{') => fields.push_str(record),
        Some(record) => fields.push_str(&quoted(record)),
        None => fields.push_str("null"),
    }
    fields.push_str(&format!("{BYTES}{}}}", fields.len() - before));
    fields
}

/// A text as JSON.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
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

/// What a message of another agent says: its fields without its version, time and record.
pub fn said(json: &str) -> Option<&str> {
    let (head, _) = split(json)?;
    head.get(head.find(ROLE)?..head.rfind(TIME)?)
}

/// The start of a SHA-256 in hex: enough to tell the lines of one session apart.
pub fn digest(of: &[&str]) -> String {
    Hash::of_all(of).to_string()[..DIGEST].to_owned()
}

/// An entry's id without the version of a record that is rewritten, and that version.
pub fn split_version(entry: &str) -> (&str, Option<&str>) {
    let cut = entry.rsplit_once('@').filter(|(_, end)| is_digest(end));
    cut.map_or((entry, None), |(left, version)| (left, Some(version)))
}

fn is_digest(text: &str) -> bool {
    text.len() == DIGEST && text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// The end of the id of a message in a record that is rewritten: which one it is, by its role and call, and what it says.
pub fn said_digest(role: &str, call: Option<&str>, fields: &str) -> String {
    let which = digest(&[role, " ", call.unwrap_or_default()]);
    format!("{}-{}", &which[..DIGEST / 2], digest(&[fields]))
}

/// The id of an entry without what its message says in this version, if its agent rewrites it.
pub fn slot_of(entry: &str) -> Option<&str> {
    let (slot, says) = split_version(entry).0.rsplit_once('-')?;
    is_digest(says).then_some(slot)
}

/// Whether an entry is of a record that its agent rewrites, by the entry's id.
pub fn is_rewritten(entry: &str) -> bool {
    split_version(entry).1.is_some() || slot_of(entry).is_some()
}

/// The record that an entry is of, by the entry's id.
pub fn record_of(entry: &str) -> &str {
    let (message, _) = split_version(entry);
    message.rsplit_once('/').map_or(message, |(record, _)| record)
}

/// Whether an entry is of a side chain, by its id.
pub fn is_of_side_chain(entry: &str) -> bool {
    entry.contains(':')
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
            let json = foreign("codex", "0.9", fields.into(), 5, Some(record), is_canonical);
            assert_eq!(original_of(&json).as_deref(), Some(record));
            let mut message = Message::parse(&json);
            assert_eq!((message.role == Role::User, message.timestamp), (true, Some(5)));
            assert_eq!((message.take_searchable().as_str(), searchable(&json).as_str()), ("hay", "hay"));
            assert_eq!(agent_of(&json), Some("codex"));
        }
        let second = foreign("codex", "0.9", fields.into(), 5, None, true);
        assert_eq!((original_of(&second), agent_of(&second)), (None, Some("codex")));
    }

    #[test]
    fn an_id_of_any_form_is_taken_apart() {
        for name in ["u1", "agent-1:u1", "log.L0123456789abcdef", "ses_1:log.7~2"] {
            let (said, version) = (said_digest("user", None, "said"), digest(&["record"]));
            let all = [
                "".to_owned(),
                "/1".into(),
                format!("/{said}"),
                format!("/{said}@{version}"),
                format!("@{version}"),
            ];
            for end in all {
                let id = format!("{name}{end}");
                assert_eq!((record_of(&id), is_of_side_chain(&id)), (name, name.contains(':')), "{id}");
                assert_eq!(split_version(&id).1.is_some(), end.contains('@'), "{id}");
                assert_eq!(is_rewritten(&id), end.len() > 2, "{id}");
                assert_eq!(slot_of(&id).is_some(), end.starts_with('/') && end.len() > 2, "{id}");
            }
        }
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
