//! Messages that other agents wrote, as they are stored: what such a message says in Pi's words, behind its agent and version and in
//! front of the record it was read from, byte for byte. Search and readers look at the first part alone.

use std::borrow::Cow;

use crate::ids::AGENTS;

const BEGIN: &str = r#"{"agent":""#;
const ORIGINAL: &str = r#","original":"#;
const BYTES: &str = r#","originalBytes":"#;

/// A message of `agent`. `fields` are those of a message of Pi's; `original` is the record, of which the first message carries it.
///
/// A record that `JSON.stringify` would write just so stands there as it is, so that it is the same after an export and an import;
/// any other one is a string.
#[must_use]
pub fn foreign(
    agent: &str,
    version: &str,
    fields: &str,
    original: Option<&str>,
    is_canonical: bool,
) -> String {
    let original = match original {
        Some(record) if is_canonical && record.starts_with('{') => Cow::Borrowed(record),
        Some(record) => Cow::Owned(serde_json::Value::from(record).to_string()),
        None => Cow::Borrowed("null"),
    };
    let (version, bytes) = (serde_json::Value::from(version), original.len());
    format!("{BEGIN}{agent}\",\"agentVersion\":{version},{fields}{ORIGINAL}{original}{BYTES}{bytes}}}")
}

/// The agent that wrote a stored message; `None` where Pi did.
#[must_use]
pub fn agent_of(json: &str) -> Option<&'static str> {
    let (name, _) = json.strip_prefix(BEGIN)?.split_once('"')?;
    let agent = AGENTS.into_iter().find(|agent| *agent == name)?;
    split(json).map(|_| agent)
}

/// The agent whose session has this id.
#[must_use]
pub fn agent_of_session(session: &str) -> Option<&'static str> {
    let (name, _) = session.split_once(':')?;
    AGENTS.into_iter().find(|agent| *agent == name)
}

/// The record that a stored message was read from, as its agent wrote it.
#[must_use]
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

/// What stands in front of the record, and the record.
fn split(json: &str) -> Option<(&str, &str)> {
    let (rest, bytes) = json.strip_prefix(BEGIN)?.strip_suffix('}')?.rsplit_once(BYTES)?;
    let (head, original) = rest.split_at_checked(rest.len().checked_sub(bytes.parse().ok()?)?)?;
    let head = head.strip_suffix(ORIGINAL)?;
    Some((json.get(..BEGIN.len() + head.len())?, original))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Message, Role, searchable};

    #[test]
    fn a_message_says_what_it_says_and_its_record_comes_back_as_it_was() {
        let fields = r#""role":"user","content":[{"type":"text","text":"hay"}],"timestamp":5"#;
        for (record, is_canonical) in
            [(r#"{"a":"needle","originalBytes":7}"#, true), ("{ \"a\": 1.0 }\r", false), ("\"half", false)]
        {
            let json = foreign("codex", "0.9", fields, Some(record), is_canonical);
            assert_eq!(original_of(&json).as_deref(), Some(record));
            let message = Message::parse(&json);
            assert_eq!((message.role == Role::User, message.timestamp), (true, Some(5)));
            assert_eq!((message.searchable().as_str(), searchable(&json).as_str()), ("hay", "hay"));
            assert_eq!(agent_of(&json), Some("codex"));
        }
        let second = foreign("codex", "0.9", fields, None, true);
        assert_eq!((original_of(&second), agent_of(&second)), (None, Some("codex")));
    }

    #[test]
    fn a_message_of_pi_s_is_of_no_agent() {
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
