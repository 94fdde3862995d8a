//! The addition to the system prompt: how to look things up and, if enabled, which earlier sessions there
//! are.
//!
//! It never changes while a session is open, since that would invalidate a cached prompt. So it lists only
//! the sessions before this one, and only fixed facts: their number, and when the newest began. None of their
//! text is included, because it would get more weight here than intended.

use lcm_model::error::Result;
use lcm_model::ids::ConversationId;
use lcm_model::text;
use lcm_store::View;

/// What a model is told about its memory.
const PREAMBLE: &str = include_str!("../preamble.md");
/// The number of sessions listed.
const NAMED: usize = 3;
/// Characters of a session's id: enough to distinguish sessions that began in different milliseconds.
const ID: usize = 13;

/// The preamble, with the text about earlier sessions.
pub(super) fn preamble(earlier: Option<&str>) -> String {
    match earlier {
        Some(earlier) => format!("{}\n\n{earlier}", PREAMBLE.trim_ascii_end()),
        None => PREAMBLE.trim_ascii_end().to_owned(),
    }
}

/// A text about the sessions before this one, if any; `parent` is the file of the session it was forked from.
pub(super) fn earlier(
    view: &View<'_>,
    conversation: ConversationId,
    parent: Option<&str>,
) -> Result<Option<String>> {
    let (count, newest) = view.messages().sessions_before(conversation, parent, NAMED)?;
    if count == 0 {
        return Ok(None);
    }
    let named = newest.iter().map(|session| {
        let facts = view.messages().session_facts(*session)?;
        let id: String = facts.session_id.chars().take(ID).collect();
        Ok(format!("{} (began {})", text::one_line(&id, ID), text::minute(facts.from_time)))
    });
    Ok(Some(format!(
        "Earlier sessions of this project: {count}, the newest of them {}. lcm_describe lists what was asked in each; \
         lcm_grep with \"session\":\"project\" searches them all, with the beginning of an id in place of project one of them.",
        named.collect::<Result<Vec<_>>>()?.join(", ")
    )))
}
