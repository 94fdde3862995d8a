//! Search: words through the index, ranked by relevance, or a regular expression over the text itself, newest
//! first.

mod candidates;
mod dates;
mod fold;
mod inside;
mod literal;
mod narrow;
mod pattern;
mod pieces;
mod query;
mod ranked;
mod rerank;
mod scan;
mod sessions;
mod snippet;
mod synonyms;
mod turns;
mod wanted;
mod words;

use std::collections::HashSet;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::Scope;
use super::cards::{MessageCard, SummaryCard};
pub use super::visibility::Place;
use super::visibility::Visibility;
use crate::dag::Sources;
use crate::error::{Error, Result};
use crate::ids::{ConversationId, MessageId, SummaryId};
use crate::model::agent_of_session;
use crate::store::{Filter, View};

pub use fold::fold_equals;
pub(super) use inside::Lookup;
pub use snippet::Snippet;

/// Results per answer by default.
pub const DEFAULT_LIMIT: usize = 20;
/// The most results per answer.
pub const MOST_RESULTS: usize = 100;

/// Pi's name among the agents.
pub const PI: &str = "pi";

/// The most passages that mention the requested file, whose messages are searched.
const MOST_ABOUT: usize = 5_000;
/// The most messages counted to say how many were searched.
pub const MOST_COUNTED: usize = 5_000;
/// Characters of a passage that is shown in full.
const FULL: usize = 800;
/// Characters of a snippet below its session.
const OF_SESSION: usize = 200;
/// The most messages shown on each side of a result.
const MOST_NEIGHBORS: usize = 5;
/// Characters of one of them.
const HEADLINE: usize = 120;

/// How the query is interpreted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Words; the best match comes first.
    #[default]
    Text,
    /// A regular expression; the newest match comes first.
    Regex,
}

/// What is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kinds {
    /// Messages.
    #[default]
    Messages,
    /// Summaries.
    Summaries,
    /// Both.
    All,
    /// Messages, grouped by session, the best session first.
    Sessions,
}

/// The sessions to search.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sessions {
    /// This session, all branches.
    #[default]
    This,
    /// All sessions of the project.
    Project,
    /// One session, by a prefix of Pi's id.
    Of(String),
}

/// The branches to search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Branches {
    /// All of them.
    #[default]
    All,
    /// The current one.
    Current,
}

/// The order of results.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// The best first.
    #[default]
    Relevance,
    /// The newest first.
    Recent,
    /// The oldest first.
    Oldest,
}

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// The search text.
    pub query: String,
    /// How to interpret it.
    pub mode: Mode,
    /// Whether to search messages, summaries or both.
    pub kinds: Kinds,
    /// The sessions to search.
    pub sessions: Sessions,
    /// The branches to search.
    pub branches: Branches,
    /// Only messages that mention this file, and results of tool calls that do.
    pub path: Option<String>,
    /// Only messages from this time on, in ms, and summaries that cover some.
    pub after: Option<i64>,
    /// Only messages up to this time, in ms, and summaries that cover some.
    pub before: Option<i64>,
    /// The order. A regular expression finds the newest first unless this is the oldest.
    pub sort: Sort,
    /// Whether to show whole passages instead of snippets.
    pub full: bool,
    /// Messages to show before and after each result.
    pub context: usize,
    /// Only messages of this role, in Pi's terms.
    pub role: Option<String>,
    /// Only results of this tool.
    pub tool: Option<String>,
    /// Only messages of this agent; [`PI`] for Pi.
    pub agent: Option<String>,
    /// Results per answer; clamped.
    pub limit: usize,
    /// Where to continue, from the previous answer.
    pub cursor: Option<String>,
    /// Whether the current request may be a result: true if the user is asking.
    pub also_current: bool,
    /// How long a regular expression may search before the answer says how far it got.
    pub patience: Duration,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// The results, in order.
    pub hits: Vec<Hit>,
    /// How to continue, if there are more.
    pub next: Option<Next>,
    /// What was searched.
    pub searched: Searched,
    /// Matches elsewhere, if there are none here.
    pub elsewhere: Elsewhere,
    /// If the search took too long, the time of the last searched message, in ms since the epoch.
    pub stopped_at: Option<i64>,
}

/// One result.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// The message or summary.
    pub found: Found,
    /// Where it is, seen from the current branch.
    pub place: Place,
    /// Pi's id of its session, if results are grouped by session.
    pub session: Option<String>,
    /// The text around the match.
    pub snippet: Snippet,
    /// The handles of results with the same snippet that are folded into it.
    pub also: Vec<String>,
    /// The messages before and after it, in order, one line each.
    pub neighbors: Vec<(MessageCard, String)>,
}

/// What a result is.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// A message, and its leaf summary on this branch.
    Message(MessageCard, Option<String>),
    /// A summary.
    Summary(SummaryCard),
}

/// Where further results are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// Where to continue.
    pub cursor: String,
    /// How many more there are, if known.
    pub more: Option<usize>,
}

/// What was searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// The number of searchable messages.
    pub messages: usize,
    /// The number of summaries.
    pub summaries: usize,
}

/// What a wider search would find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// Matching summaries of this session, if only messages were searched.
    pub summaries: usize,
    /// Matching messages of other sessions.
    pub messages: usize,
    /// The number of sessions with such messages; for a regular expression all other sessions, which were not
    /// searched.
    pub sessions: usize,
}

/// Answers `question`, seen from `scope`.
///
/// # Errors
/// [`crate::error::Code::Invalid`] for a query that can't be searched for and for a cursor from another
/// search; [`crate::error::Code::Cancelled`] when `cancel` was raised.
pub fn grep(
    view: &View<'_>,
    scope: &Scope,
    question: &Question,
    cancel: &CancellationToken,
) -> Result<Findings> {
    if question.query.trim().is_empty() {
        return Err(Error::invalid(
            "the query is empty: give the words to look for, or a regular expression with mode \"regex\"",
        ));
    }
    let sight = Visibility::new(view, scope)?;
    let request = if question.also_current { None } else { sight.current_request()? };
    let conversation = match &question.sessions {
        Sessions::This if question.kinds != Kinds::Sessions => Some(scope.conversation),
        Sessions::This | Sessions::Project => None,
        Sessions::Of(id) => {
            let remedy = ": session is \"this\", \"project\" or the beginning of a session's id";
            Some(session(view, id, remedy)?)
        }
    };
    let about = match &question.path {
        Some(path) => Some(view.index().messages_about(path, &query::quote(path), MOST_ABOUT)?),
        None => None,
    };
    let search = Search { view, scope, question, sight: &sight, conversation, request, about, cancel };
    let mut findings = match question.mode {
        Mode::Text => ranked::find(&search)?,
        Mode::Regex => pattern::find(&search)?,
    };
    // Needed only if nothing was found; counting costs the length of the history.
    if findings.hits.is_empty() {
        let (messages, summaries) = view.index().searchable(search.conversation(), MOST_COUNTED)?;
        findings.searched = Searched {
            messages: if question.kinds == Kinds::Summaries { 0 } else { messages },
            summaries: if search.takes_summaries() { summaries } else { 0 },
        };
    }
    Ok(findings)
}

/// The messages that are read for a pattern, if not all of them: as a search selects them, or using every
/// piece that the index knows.
#[cfg(test)]
pub(crate) fn narrowed(view: &View<'_>, pattern: &str, by_all: bool) -> Result<Option<Vec<MessageId>>> {
    let Some(required) = literal::Required::of(pattern) else { return Ok(None) };
    let narrowing = narrow::Narrowing::new(view, &|| Ok(()))?;
    if by_all { narrowing.by_every_piece() } else { narrowing }.candidates(&required)
}

/// The session whose id begins with `id`. An answer marks an id that looks like a message's with a backslash.
///
/// # Errors
/// When there is none, with `remedy` after the sentence, or more than one.
pub fn session(view: &View<'_>, id: &str, remedy: &str) -> Result<ConversationId> {
    let shown = crate::text::one_line(id, 60);
    let id = id.trim();
    let mut found = view.index().conversations_like(id)?;
    if let (true, Some(marked)) = (found.is_empty(), id.strip_prefix('\\')) {
        found = view.index().conversations_like(marked)?;
    }
    match found.as_slice() {
        [session] => Ok(*session),
        [] => Err(Error::invalid(format!("there is no session `{shown}` in this project{remedy}"))),
        _ => Err(Error::invalid(format!("more than one session begins with `{shown}`: give more of its id"))),
    }
}

/// A question with everything needed to answer it.
struct Search<'a> {
    view: &'a View<'a>,
    scope: &'a Scope,
    question: &'a Question,
    sight: &'a Visibility<'a>,
    /// The searched session, if only one.
    conversation: Option<ConversationId>,
    /// The messages about the requested file.
    about: Option<HashSet<MessageId>>,
    /// The current request, which answers no question.
    request: Option<MessageId>,
    cancel: &'a CancellationToken,
}

impl Search<'_> {
    /// The searched session, if only one.
    fn conversation(&self) -> Option<ConversationId> {
        self.conversation
    }

    /// The filter for rows of the index.
    fn filter(&self) -> Filter {
        Filter {
            conversation: self.conversation(),
            role: self.question.role.clone(),
            tool: self.question.tool.clone(),
            after: self.question.after,
            before: self.question.before,
        }
    }

    /// Whether this message may be a result.
    fn lets_through(&self, message: MessageId) -> Result<bool> {
        let is_about = self.about.as_ref().is_none_or(|about| about.contains(&message));
        Ok(is_about
            && self.request != Some(message)
            && self.is_of_agent(message)?
            && (self.question.branches == Branches::All || self.sight.shows(message)?))
    }

    /// Whether the requested agent wrote it.
    fn is_of_agent(&self, message: MessageId) -> Result<bool> {
        let Some(wanted) = &self.question.agent else { return Ok(true) };
        let sessions = self.view.messages().sessions_of(message)?;
        let session =
            sessions.first().map(|session| self.view.messages().session_id(*session)).transpose()?;
        Ok(session.as_deref().and_then(agent_of_session).unwrap_or(PI) == wanted)
    }

    /// Whether the question filters by something that summaries don't have: a role, a tool, a file.
    fn is_of_messages(&self) -> bool {
        let Question { role, tool, path, agent, .. } = self.question;
        role.is_some()
            || tool.is_some()
            || path.is_some()
            || agent.as_deref().is_some_and(|agent| agent != PI)
    }

    /// Whether summaries are searched.
    fn takes_summaries(&self) -> bool {
        matches!(self.question.kinds, Kinds::Summaries | Kinds::All) && !self.is_of_messages()
    }

    /// Whether this summary may be a result.
    fn lets_summary_through(&self, summary: SummaryId) -> Result<bool> {
        Ok(self.question.branches == Branches::All || self.sight.branch()?.forest.span(summary).is_some())
    }

    /// Characters of a snippet.
    fn width(&self) -> usize {
        match self.question.kinds {
            _ if self.question.full => FULL,
            Kinds::Sessions => OF_SESSION,
            _ => snippet::WIDTH,
        }
    }

    /// The messages before and after a message, in order.
    fn neighbors(&self, message: MessageId) -> Result<Vec<(MessageCard, String)>> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (step, list) in [(-1, &mut before), (1, &mut after)] {
            let mut at = message;
            for _ in 0..self.question.context.min(MOST_NEIGHBORS) {
                let next = self.neighbor(at, step)?;
                let Some(next) = next else { break };
                list.push(next);
                at = next;
            }
        }
        before.reverse();
        let named = before.into_iter().chain(after).map(|id| {
            let stored = self.view.messages().message(id)?;
            let text = crate::model::searchable(&stored.json);
            Ok((MessageCard::of(&stored), crate::text::one_line(&text, HEADLINE)))
        });
        named.collect()
    }

    /// The message directly before, with `step` -1, or after, with 1.
    fn neighbor(&self, message: MessageId, step: i64) -> Result<Option<MessageId>> {
        let neighbors = self.view.index().neighbors(message)?;
        Ok(neighbors.into_iter().find(|next| (next.0 - message.0).signum() == step))
    }

    fn limit(&self) -> usize {
        self.question.limit.clamp(1, MOST_RESULTS)
    }

    /// Stops a cancelled search.
    fn go_on(&self) -> Result<()> {
        if self.cancel.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// The session in which a message first appeared.
    fn session_of(&self, message: MessageId) -> Result<Option<ConversationId>> {
        match self.conversation {
            Some(session) => Ok(Some(session)),
            None => Ok(self.view.messages().sessions_of(message)?.into_iter().min()),
        }
    }

    /// Pi's id of that session, if results are grouped by session.
    fn heading(&self, message: MessageId) -> Result<Option<String>> {
        let session = if self.question.kinds == Kinds::Sessions { self.session_of(message)? } else { None };
        session.map(|session| self.view.messages().session_id(session)).transpose()
    }

    /// Where a message is, seen from the current branch.
    fn place(&self, message: MessageId) -> Result<Place> {
        if self.sight.shows(message)? { Ok(Place::Here) } else { self.place_elsewhere(message) }
    }

    /// Where the messages of a summary are.
    fn place_of_summary(&self, summary: SummaryId) -> Result<Place> {
        if self.sight.branch()?.forest.span(summary).is_some() {
            return Ok(Place::Here);
        }
        let mut first = summary;
        loop {
            match self.view.summaries().edges(first)?.sources {
                Sources::Summaries(children) if !children.is_empty() => first = children[0],
                Sources::Messages(messages) if !messages.is_empty() => {
                    return self.place_elsewhere(messages[0]);
                }
                _ => return Err(Error::store("a summary has no sources")),
            }
        }
    }

    fn place_elsewhere(&self, message: MessageId) -> Result<Place> {
        let ours = self.view.messages().sessions_of(message)?.contains(&self.scope.conversation);
        Ok(if ours { Place::OtherBranch } else { Place::OtherSession })
    }

    /// The short id of a message's leaf summary on this branch.
    fn covering(&self, message: MessageId) -> Result<Option<String>> {
        let leaf = self.sight.leaf_over(message)?;
        leaf.map(|id| Ok(self.view.summaries().summary(id)?.hash.summary_handle())).transpose()
    }

    fn foreign_cursor(&self) -> Error {
        let cursor = self.question.cursor.as_deref().unwrap_or_default();
        Error::invalid(format!(
            "the cursor `{}` belongs to no answer of this search: leave it out to start with the first results",
            crate::text::one_line(cursor, 40)
        ))
    }
}
