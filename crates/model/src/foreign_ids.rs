//! The ids of entries in the sessions of other agents. What is stored stays as it is, so that an import recognizes it:
//!
//! ```text
//! id     = record ["/" n]                                a message of a record that never changes, or a further one
//!        | record "@" digest                             that record alone, if it is below another session's message
//!        | name ":" digest ["@" digest]                  a message of a record that is rewritten; with the record, if it carries it
//!        | name "@" digest                               a version of such a record alone
//!        | name ["@"] ":" role [" " call] ":purged " row one that had digests, once it is purged
//!        | (the line above) "~" entry                    the same, if another entry of the message has that id
//!        | id " " hash                                   another message with the id, as in sessions of Pi
//!        | id " purged " row                             the same once it is purged
//! record = name ["~" times]                              times: from 2, if the log repeats the name
//! name   = [side chain ":"] [log "."] (own | "L" line)   own: the agent's id of the record, or of a message in it
//! digest = 16 hex digits
//! ```

use crate::ids::{Hash, MessageId};

/// The length of a digest.
const DIGEST: usize = 16;
/// What stands instead of digests once a message is purged, followed by the message's row.
pub const PURGED: &str = ":purged ";
/// The longest id of a call that names a purged message.
const LONGEST_CALL: usize = 256;

/// The start of a SHA-256 in hex, enough to distinguish the versions of one record.
pub fn digest(of: &[&str]) -> String {
    Hash::of_all(of).to_string()[..DIGEST].to_owned()
}

/// An id without the digest at its end that follows `mark`, and that digest.
fn cut(id: &str, mark: char) -> (&str, Option<&str>) {
    let is_digest = |end: &str| end.len() == DIGEST && end.bytes().all(|byte| byte.is_ascii_hexdigit());
    let cut = id.rsplit_once(mark).filter(|(_, end)| is_digest(end));
    cut.map_or((id, None), |(left, digest)| (left, Some(digest)))
}

/// An id without the digest of its record, and that digest.
pub fn split_version(entry: &str) -> (&str, Option<&str>) {
    cut(entry, '@')
}

/// An id without its digests, and those of its message and of its record.
fn digests(entry: &str) -> (&str, Option<&str>, Option<&str>) {
    let (left, record) = split_version(entry);
    let (name, message) = cut(left, ':');
    (name, message, record)
}

/// An id without its digests, if it has any. One that only has a record keeps the @, so that it never counts as a message.
pub fn without_digests(entry: &str) -> Option<&str> {
    match digests(entry) {
        (_, None, None) => None,
        (name, None, Some(_)) => entry.get(..=name.len()),
        (name, ..) => Some(name),
    }
}

/// What the id of an entry begins with once its message is purged; the message's row follows. The role and the call stay, so that
/// it does not stand for another message that comes later. The results of calls may come in any order.
pub fn purged_name(record: &str, role: &str, call: Option<&str>) -> String {
    match call.filter(|call| (1..=LONGEST_CALL).contains(&call.len())) {
        Some(call) => format!("{record}:{role} {call}{PURGED}"),
        None => format!("{record}:{role}{PURGED}"),
    }
}

/// The id of an entry once its message is purged, if its own has digests.
pub fn purged_id(entry: &str, role: &str, call: Option<&str>, message: MessageId) -> Option<String> {
    without_digests(entry).map(|record| format!("{}{}", purged_name(record, role, call), message.0))
}

/// The [`purged_name`] and the row of a purged message by its entry's id.
pub fn split_purged(entry: &str) -> Option<(&str, i64)> {
    let (name, row) = entry.split_at(entry.rfind(PURGED)? + PURGED.len());
    Some((name, row.parse().ok()?))
}

/// Whether an entry is of a side chain.
pub fn is_of_side_chain(entry: &str) -> bool {
    let name = match entry.split_once(PURGED) {
        // The id of a call may have colons, too.
        Some((name, _)) => name.split(' ').next().and_then(|name| Some(name.rsplit_once(':')?.0)),
        None => without_digests(entry),
    };
    name.unwrap_or(entry).contains(':')
}

/// The start of an id that all messages of its record have.
pub fn record_of(entry: &str) -> &str {
    match digests(entry) {
        (_, None, None) => entry.rsplit_once('/').map_or(entry, |(first, _)| first),
        (name, ..) => name,
    }
}

/// Whether an entry only has a record.
pub fn is_record(entry: &str) -> bool {
    matches!(digests(entry), (_, None, Some(_)))
}

/// Whether an entry's message may carry its record: where ids have digests, only one with the record's does.
pub fn may_carry(entry: &str) -> bool {
    !matches!(digests(entry), (_, Some(_), None))
}

/// The id of an entry that has the record of another entry's message alone, as the message `json`.
pub fn alone_id(entry: &str, json: &str) -> String {
    let record = digests(entry).2.map_or_else(|| digest(&[json]), ToOwned::to_owned);
    format!("{}@{record}", record_of(entry))
}

/// Whether the entry `next`, which follows `entry`, has the record of its message alone.
pub fn is_alone(entry: &str, next: &str) -> bool {
    let ((.., own), (name, _, digest)) = (digests(entry), digests(next));
    is_record(next) && name == record_of(entry) && own.is_none_or(|_| own == digest)
}

/// Whether an entry is named by the line of its record, for want of an id.
pub fn is_numbered(entry: &str) -> bool {
    let name = entry.rsplit([':', '.']).next().and_then(|name| name.strip_prefix('L'));
    name.is_some_and(|number| number.bytes().all(|byte| byte.is_ascii_digit()))
}

/// The id of the entry that a log repeats in an entry with this id: `id~2`, or `id~2/1` of a record's second message.
pub fn repeated(entry: &str) -> Option<String> {
    let (id, times) = entry.rsplit_once('~')?;
    let number = times.trim_start_matches(|digit: char| digit.is_ascii_digit());
    let is_number = |number: &str| number.bytes().all(|byte| byte.is_ascii_digit());
    (number.is_empty() || number.strip_prefix('/').is_some_and(is_number)).then(|| [id, number].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_of_any_form_is_taken_apart() {
        for name in ["u1", "L5", "agent-1:u1", "log.L5", "ses_1:log.L5"] {
            for name in [name.to_owned(), format!("{name}~2")] {
                let (said, version) = (format!("{name}:{}", digest(&["said"])), digest(&["record"]));
                let (further, alone) = (format!("{name}/1"), alone_id(&name, "{}"));
                let (carrying, own) = (format!("{said}@{version}"), format!("{name}@{version}"));
                let all = [&name, &further, &alone, &said, &carrying, &own];
                assert_eq!(all.map(|id| record_of(id)), [&name; 6]);
                assert_eq!(all.map(|id| is_record(id)), [false, false, true, false, false, true]);
                assert_eq!(all.map(|id| may_carry(id)), [true, true, true, false, true, true]);
                assert_eq!(all.map(|id| is_alone(id, &alone)), [true, true, true, true, false, false]);
                assert_eq!((is_alone(&carrying, &own), alone_id(&carrying, "{}")), (true, own.clone()));
                assert_eq!(split_version(&carrying), (said.as_str(), Some(version.as_str())));
                let purged = |id: &str| purged_id(id, "assistant", Some("bash:0"), MessageId(7));
                assert_eq!(all.map(|id| purged(id).is_some()), [false, false, true, true, true, true]);
                for (id, left) in
                    [(&said, name.clone()), (&carrying, name.clone()), (&own, format!("{name}@"))]
                {
                    let (purged, begin) =
                        (purged(id).unwrap(), purged_name(&left, "assistant", Some("bash:0")));
                    assert_eq!(split_purged(&purged), Some((begin.as_str(), 7)));
                    assert_eq!(
                        (without_digests(&purged), is_of_side_chain(&purged)),
                        (None, name.contains(':'))
                    );
                }
                assert_eq!(all.map(|id| is_of_side_chain(id)), [name.contains(':'); 6]);
            }
            let [again, further] = ["~2", "~2/1"].map(|end| repeated(&format!("{name}{end}")));
            assert_eq!((again, further), (Some(name.to_owned()), Some(format!("{name}/1"))));
            assert_eq!((repeated(name), is_numbered(name)), (None, name.ends_with("L5")));
        }
    }
}
