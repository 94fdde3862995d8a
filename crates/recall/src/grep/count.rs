//! Exact totals: how many messages match, by session, day, role, tool, file, outcome or agent.
//!
//! Nothing is ranked or estimated. A regular expression must match, a quoted phrase must stand in the message, and of
//! other words all must be in it, each in any of the forms that a search finds. Every message counts once: one that
//! forks share, in the session in which it first appeared.

use std::collections::{BTreeSet, HashMap};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::exact;
use super::phrases::{Phrase, stand_in};
use super::query::{Query, TermRole};
use super::words::{has_form, words};
use super::{DEFAULT_LIMIT, Mode, Search, SessionName, in_project, pattern};
use lcm_model::error::{Error, Result};
use lcm_model::ids::{ConversationId, MessageId, PI};
use lcm_model::text::{minute, one_line};
use lcm_model::{Message, Role, agent_of_session, folded, humps, is_ideograph, searchable};
use lcm_store::StoredMessage;

/// What messages are counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum CountBy {
    /// The session in which they first appeared.
    Session,
    /// The day in UTC.
    Day,
    /// Who speaks.
    Role,
    /// The tool that they are results of.
    Tool,
    /// The files that they call tools about, and of whose calls they are results: a message may count in several.
    Path,
    /// Whether a tool or command succeeded.
    Outcome,
    /// The agent whose session that is.
    Agent,
}

/// What `lcm_grep` and `/lcm search` count by.
pub const COUNTED_BY: [&str; 7] = ["session", "day", "role", "tool", "path", "outcome", "agent"];

/// The arguments of tools, Pi's and others', that name a file.
const PATHS: [&str; 4] = ["path", "file_path", "filePath", "absolute_path"];
/// What a patch of Codex does to a file.
const PATCHED: [&str; 3] = ["Add", "Update", "Delete"];

/// Totals.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// How many messages match.
    pub messages: usize,
    /// The same by group: the largest first, days newest first.
    pub groups: Vec<Group>,
    /// The words of which all must be in a message, in any form.
    pub words: Vec<String>,
    /// The number of other sessions, which were not searched.
    pub other_sessions: usize,
    /// After when and before when the messages are, in ms since the epoch.
    pub times: [Option<i64>; 2],
}

/// The matching messages that have something in common.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// What they have in common; none for those without a tool, a file or an outcome.
    pub key: Option<String>,
    /// The session, if they are counted by session and within the limit.
    pub session: Option<SessionName>,
    pub messages: usize,
    /// The short ids of the earliest and the latest.
    pub first: String,
    pub last: String,
}

/// A message that counts: its time, its row and its short id.
type Counted = (i64, MessageId, String);

pub(super) fn count(search: &Search<'_>, by: CountBy) -> Result<Counts> {
    let (messages, words) = match search.question.mode {
        Mode::Regex => (pattern::matching(search)?, Vec::new()),
        Mode::Text => with_all(search)?,
    };
    let mut found: HashMap<Option<String>, Vec<Counted>> = HashMap::new();
    let (mut total, mut sessions) = (0, HashMap::new());
    for id in messages {
        search.go_on()?;
        if !search.lets_through(id)? {
            continue;
        }
        total += 1;
        let stored = search.view.messages().message(id)?;
        let at = (stored.timestamp, id, stored.lineage.message_handle());
        for key in keys(search, by, &stored, &mut sessions)? {
            found.entry(key).or_default().push(at.clone());
        }
    }
    let group = |(key, counted): (Option<String>, Vec<Counted>)| {
        let handle = |one: Option<&Counted>| one.map(|(.., handle)| handle.clone()).unwrap_or_default();
        let (first, last) = (handle(counted.iter().min()), handle(counted.iter().max()));
        Group { key, session: None, messages: counted.len(), first, last }
    };
    let mut groups: Vec<Group> = found.into_iter().map(group).collect();
    groups.sort_by(|one, other| match by {
        CountBy::Day => other.key.cmp(&one.key),
        _ => other.messages.cmp(&one.messages).then_with(|| one.key.cmp(&other.key)),
    });
    // A name costs a look at all sessions.
    for group in groups.iter_mut().take(search.question.limit.max(DEFAULT_LIMIT)) {
        let session = group.key.as_ref().and_then(|key| sessions.get(key));
        group.session = session.map(|session| SessionName::of(search.view, *session)).transpose()?;
    }
    let other_sessions = search.other_sessions()?;
    let times = [search.filter.after, search.filter.before];
    Ok(Counts { messages: total, groups, words, other_sessions, times })
}

/// The messages with all words and phrases of the query, and these words.
fn with_all(search: &Search<'_>) -> Result<(BTreeSet<MessageId>, Vec<String>)> {
    let mut phrases = Phrase::all_in(&search.question.query)?;
    let terms = phrases.iter().flat_map(|phrase| Query::parse(&phrase.written).terms);
    let in_quotes: BTreeSet<String> = terms.map(|term| term.text).collect();
    let of_phrase = |phrase: &Phrase| (phrase.expression(), phrase.clone());
    let mut expressions: Vec<(String, Phrase)> = phrases.iter().map(of_phrase).collect();
    let (mut counted, mut forms) = (Vec::new(), Vec::new());
    for term in Query::parse(&search.question.query).terms {
        if term.role != TermRole::Asked || in_quotes.contains(&term.text) {
            continue;
        }
        let phrase = Phrase::of_term(&term.text);
        // A path, or a word with signs in it, is searched for as written; with ideographs, it is unknown where a word ends.
        if words(&term.text).nth(1).is_some() || term.text.contains(is_ideograph) {
            expressions.push(of_phrase(&phrase));
            phrases.push(phrase);
        } else {
            // The index has stems, which other words share.
            let is_plain = humps(&term.text).len() == 1 && !phrase.may_be_data;
            forms.extend(is_plain.then(|| folded(&term.text)));
            expressions.push((term.expression, phrase));
            counted.push(term.text);
        }
    }
    if expressions.is_empty() {
        return Err(Error::invalid(format!(
            "there is no word in `{}` to count: a regular expression finds other signs too",
            one_line(&search.question.query, 60)
        )));
    }
    let within = search.view.index().passages(&search.filter)?;
    let mut found: Option<BTreeSet<MessageId>> = None;
    for (expression, phrase) in expressions {
        search.go_on()?;
        let mut with = within.messages(&expression, &search.filter)?;
        if phrase.may_be_data {
            with.extend(exact::messages(search, &phrase)?);
        }
        with.retain(|id| found.as_ref().is_none_or(|found| found.contains(id)));
        found = Some(with.into_iter().collect());
    }
    let mut all = BTreeSet::new();
    for id in found.unwrap_or_default() {
        search.go_on()?;
        if stand_in(search, &phrases, id)? && has_forms(search, &forms, id)? {
            all.insert(id);
        }
    }
    Ok((all, counted))
}

/// Whether a message has a form of each of these words.
fn has_forms(search: &Search<'_>, words: &[String], message: MessageId) -> Result<bool> {
    if words.is_empty() {
        return Ok(true);
    }
    let text = searchable(&search.view.messages().message(message)?.json);
    Ok(words.iter().all(|word| has_form(&text, word)))
}

/// The groups that a message counts in.
fn keys(
    search: &Search<'_>,
    by: CountBy,
    stored: &StoredMessage,
    sessions: &mut HashMap<String, ConversationId>,
) -> Result<Vec<Option<String>>> {
    let key = match by {
        CountBy::Session => {
            let Some(session) = search.session_of(stored.id)? else { return Ok(vec![None]) };
            let id = search.view.messages().session_id(session)?;
            sessions.insert(id.clone(), session);
            Some(id)
        }
        CountBy::Day => Some(minute(stored.timestamp).chars().take("2026-11-20".len()).collect()),
        CountBy::Role => Some(stored.role.clone()),
        CountBy::Tool => stored.tool.clone(),
        CountBy::Agent => {
            let session = search.session_of(stored.id)?.map(|id| search.view.messages().session_id(id));
            Some(session.transpose()?.and_then(|id| agent_of_session(&id)).unwrap_or(PI).to_owned())
        }
        CountBy::Outcome => {
            let message = Message::parse(&stored.json);
            let is_outcome = matches!(message.role, Role::ToolResult | Role::Bash);
            is_outcome.then(|| if message.is_error { "error" } else { "ok" }.to_owned())
        }
        CountBy::Path => return paths(search, stored),
    };
    Ok(vec![key])
}

/// The files that a message's calls, or the call that it answers, are about.
fn paths(search: &Search<'_>, stored: &StoredMessage) -> Result<Vec<Option<String>>> {
    let message = Message::parse(&stored.json);
    let mut paths: BTreeSet<String> =
        message.calls().flat_map(|(_, arguments)| paths_in(arguments)).collect();
    if let Some(call) = &message.tool_call_id
        && let Some(calling) = calling(search, stored.id)?
    {
        paths.extend(calling.call_of(call).into_iter().flat_map(paths_in));
    }
    let paths: BTreeSet<&str> = paths.iter().map(|path| in_project(path, &search.project)).collect();
    Ok(if paths.is_empty() {
        vec![None]
    } else {
        paths.into_iter().map(|path| Some(path.to_owned())).collect()
    })
}

/// The message with the call that a tool result answers.
fn calling(search: &Search<'_>, result: MessageId) -> Result<Option<Message>> {
    let mut at = result;
    while let Some((above, role)) = search.view.messages().above(at)? {
        if role != Role::ToolResult.as_str() {
            // One that was purged, or that can't be read, names no file.
            return Ok(search.view.messages().json_of(above).ok().map(|json| Message::parse(&json)));
        }
        at = above;
    }
    Ok(None)
}

/// The file that a call's arguments name, or those of the patch that it applies, as Codex does.
fn paths_in(arguments: &Value) -> Vec<String> {
    let named = PATHS.iter().find_map(|name| arguments[*name].as_str());
    let patch = arguments["input"].as_str().unwrap_or_default();
    let changed = patch.lines().filter_map(|line| {
        PATCHED
            .iter()
            .find_map(|change| line.strip_prefix("*** ")?.strip_prefix(change)?.strip_prefix(" File: "))
    });
    named.into_iter().chain(changed).map(|path| path.trim().to_owned()).collect()
}
