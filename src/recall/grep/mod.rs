//! Finding: words by relevance through the index, or a regular expression over the text itself, newest first.

mod candidates;
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
mod snippet;
mod synonyms;
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

pub(super) use inside::Lookup;
pub use snippet::Snippet;

/// Results of one answer where the question does not say.
pub const DEFAULT_LIMIT: usize = 20;
/// Results of one answer at most.
pub const MOST_RESULTS: usize = 100;

/// What Pi is called among the agents.
pub const PI: &str = "pi";

/// Passages that name the file asked for, of which the messages are looked for.
const MOST_ABOUT: usize = 5_000;
/// Messages that are counted to say how many were searched.
pub const MOST_COUNTED: usize = 5_000;
/// Characters of a passage that is shown whole.
const FULL: usize = 800;
/// Messages on each side of a result that are named with it.
const MOST_BESIDE: usize = 5;
/// Characters of one of them.
const HEADLINE: usize = 120;

/// How the query is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// Words; what fits best comes first.
    #[default]
    Text,
    /// A regular expression; the newest comes first.
    Regex,
}

/// What is searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Kinds {
    /// What was said.
    #[default]
    Messages,
    /// What summaries say.
    Summaries,
    /// Both.
    All,
    /// What was said, of the sessions of the project, the best session first.
    Sessions,
}

/// Whose history is searched.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Sessions {
    /// This session's, all its branches.
    #[default]
    This,
    /// All sessions of the project.
    Project,
    /// One session, by Pi's id of it or its beginning.
    Of(String),
}

/// Which branches are searched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Branches {
    /// All of them.
    #[default]
    All,
    /// The one the question is asked from.
    Current,
}

/// In which order results come.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Sort {
    /// What fits best.
    #[default]
    Relevance,
    /// What was said last.
    Recent,
    /// What was said first.
    Oldest,
}

/// A question.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Question {
    /// What to look for.
    pub query: String,
    /// How to read it.
    pub mode: Mode,
    /// In messages, summaries or both.
    pub kinds: Kinds,
    /// In which sessions.
    pub sessions: Sessions,
    /// On which branches.
    pub branches: Branches,
    /// Only messages that name this file, and results of those calls that do.
    pub path: Option<String>,
    /// Only messages from this time on, ms, and summaries that tell of some.
    pub after: Option<i64>,
    /// Only messages up to this time, ms, and summaries that tell of some.
    pub before: Option<i64>,
    /// In which order; a regular expression finds the newest first unless the oldest are asked for.
    pub sort: Sort,
    /// Passages whole instead of the piece around a match.
    pub full: bool,
    /// Messages before and after each result that are named with it.
    pub context: usize,
    /// Only messages of this role, as Pi names roles.
    pub role: Option<String>,
    /// Only results of this tool.
    pub tool: Option<String>,
    /// Only what this agent said; [`PI`] for Pi.
    pub agent: Option<String>,
    /// Results of one answer; brought into bounds.
    pub limit: usize,
    /// Where to go on, as the answer before said.
    pub cursor: Option<String>,
    /// The request that is being worked on may be a result too: a person asks.
    pub also_current: bool,
    /// How long a regular expression is looked for before the answer says how far it came.
    pub patience: Duration,
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Findings {
    /// What was found, in order.
    pub hits: Vec<Hit>,
    /// How to go on, where there is more.
    pub next: Option<Next>,
    /// What was looked at.
    pub searched: Searched,
    /// Where else there is something, if nothing was found here.
    pub elsewhere: Elsewhere,
    /// The search took too long: the time of the message that it came to, in ms since the epoch.
    pub stopped_at: Option<i64>,
}

/// One result.
#[derive(Clone, Debug, PartialEq)]
pub struct Hit {
    /// What was found.
    pub found: Found,
    /// Where it was said.
    pub place: Place,
    /// Pi's id of the session it was said in, where sessions are asked for.
    pub session: Option<String>,
    /// What stands around the match.
    pub snippet: Snippet,
    /// The handle of a better result whose snippet says the same.
    pub like: Option<String>,
    /// What was said before and after it, in order, each in a line.
    pub beside: Vec<(MessageCard, String)>,
}

/// What was found.
#[derive(Clone, Debug, PartialEq)]
pub enum Found {
    /// A message, and the leaf summary that stands for it on this branch.
    Message(MessageCard, Option<String>),
    /// A summary.
    Summary(SummaryCard),
}

/// What further answers hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Next {
    /// Where to go on.
    pub cursor: String,
    /// How many more there are, where that is known.
    pub more: Option<usize>,
}

/// What was looked at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Searched {
    /// Messages with text to search.
    pub messages: usize,
    /// Summaries.
    pub summaries: usize,
}

/// What a search would find with wider bounds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Elsewhere {
    /// Summaries of this session that fit, where only messages were asked for.
    pub summaries: usize,
    /// Messages of other sessions that fit.
    pub messages: usize,
    /// Sessions that have them; for a regular expression, all other sessions: they were not searched.
    pub sessions: usize,
}

/// Answers `question`, asked from `scope`.
///
/// # Errors
/// [`crate::error::Code::Invalid`] for a query that cannot be searched for and for a cursor that no answer gave;
/// [`crate::error::Code::Cancelled`] when `cancel` was raised.
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
    fold::name_equals(&mut findings.hits);
    // Only whoever found nothing asks how much was looked through; counting costs the length of the history.
    if findings.hits.is_empty() {
        let (messages, summaries) = view.index().searchable(search.conversation(), MOST_COUNTED)?;
        findings.searched = Searched {
            messages: if question.kinds == Kinds::Summaries { 0 } else { messages },
            summaries: if search.takes_summaries() { summaries } else { 0 },
        };
    }
    Ok(findings)
}

/// The messages that are read for a pattern, where they are not all: as a search does it, or by all that the index tells.
#[cfg(test)]
pub(crate) fn narrowed(view: &View<'_>, pattern: &str, by_all: bool) -> Result<Option<Vec<MessageId>>> {
    let Some(required) = literal::Required::of(pattern) else { return Ok(None) };
    let narrowing = narrow::Narrowing::new(view, &|| Ok(()))?;
    if by_all { narrowing.by_every_piece() } else { narrowing }.candidates(&required)
}

/// The session whose id begins so.
///
/// # Errors
/// When there is none, with `remedy` behind the sentence, or more than one.
pub fn session(view: &View<'_>, id: &str, remedy: &str) -> Result<ConversationId> {
    let shown = crate::text::one_line(id, 60);
    match view.index().conversations_like(id.trim())?.as_slice() {
        [session] => Ok(*session),
        [] => Err(Error::invalid(format!("there is no session `{shown}` in this project{remedy}"))),
        _ => Err(Error::invalid(format!("more than one session begins with `{shown}`: give more of its id"))),
    }
}

/// A question with all that answering it looks at.
struct Search<'a> {
    view: &'a View<'a>,
    scope: &'a Scope,
    question: &'a Question,
    sight: &'a Visibility<'a>,
    /// The session that is searched, if it is only one.
    conversation: Option<ConversationId>,
    /// The messages about the file that was asked for.
    about: Option<HashSet<MessageId>>,
    /// The request that is being worked on: no answer to any question.
    request: Option<MessageId>,
    cancel: &'a CancellationToken,
}

impl Search<'_> {
    /// The session that is searched, if it is only one.
    fn conversation(&self) -> Option<ConversationId> {
        self.conversation
    }

    /// What the index's rows are held against.
    fn filter(&self) -> Filter {
        Filter {
            conversation: self.conversation(),
            role: self.question.role.clone(),
            tool: self.question.tool.clone(),
            after: self.question.after,
            before: self.question.before,
        }
    }

    /// Is this message a possible answer?
    fn lets_through(&self, message: MessageId) -> Result<bool> {
        let is_about = self.about.as_ref().is_none_or(|about| about.contains(&message));
        Ok(is_about
            && self.request != Some(message)
            && self.is_of_agent(message)?
            && (self.question.branches == Branches::All || self.sight.shows(message)?))
    }

    /// Did the agent say it that was asked for?
    fn is_of_agent(&self, message: MessageId) -> Result<bool> {
        let Some(wanted) = &self.question.agent else { return Ok(true) };
        let sessions = self.view.messages().sessions_of(message)?;
        let session =
            sessions.first().map(|session| self.view.messages().session_id(*session)).transpose()?;
        Ok(session.as_deref().and_then(agent_of_session).unwrap_or(PI) == wanted)
    }

    /// Is something asked for that summaries do not have: a role, a tool, a file?
    fn is_of_messages(&self) -> bool {
        let Question { role, tool, path, agent, .. } = self.question;
        role.is_some()
            || tool.is_some()
            || path.is_some()
            || agent.as_deref().is_some_and(|agent| agent != PI)
    }

    /// Are summaries looked at?
    fn takes_summaries(&self) -> bool {
        matches!(self.question.kinds, Kinds::Summaries | Kinds::All) && !self.is_of_messages()
    }

    /// Is this summary a possible answer?
    fn lets_summary_through(&self, summary: SummaryId) -> Result<bool> {
        Ok(self.question.branches == Branches::All || self.sight.branch()?.forest.span(summary).is_some())
    }

    /// Characters of a snippet.
    fn width(&self) -> usize {
        if self.question.full { FULL } else { snippet::WIDTH }
    }

    /// What was said before and after a message, in order.
    fn beside(&self, message: MessageId) -> Result<Vec<(MessageCard, String)>> {
        let (mut before, mut after) = (Vec::new(), Vec::new());
        for (step, list) in [(-1, &mut before), (1, &mut after)] {
            let mut at = message;
            for _ in 0..self.question.context.min(MOST_BESIDE) {
                let next = self
                    .view
                    .index()
                    .neighbors(at)?
                    .into_iter()
                    .find(|next| (next.0 - at.0).signum() == step);
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

    fn limit(&self) -> usize {
        self.question.limit.clamp(1, MOST_RESULTS)
    }

    /// Stops a search that nobody waits for any more.
    fn go_on(&self) -> Result<()> {
        if self.cancel.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
    }

    /// The session that a message was first said in.
    fn session_of(&self, message: MessageId) -> Result<Option<ConversationId>> {
        match self.conversation {
            Some(session) => Ok(Some(session)),
            None => Ok(self.view.messages().sessions_of(message)?.into_iter().min()),
        }
    }

    /// Pi's id of that session, where sessions are asked for.
    fn heading(&self, message: MessageId) -> Result<Option<String>> {
        let session = if self.question.kinds == Kinds::Sessions { self.session_of(message)? } else { None };
        session.map(|session| self.view.messages().session_id(session)).transpose()
    }

    /// Where a message was said.
    fn place(&self, message: MessageId) -> Result<Place> {
        if self.sight.shows(message)? { Ok(Place::Here) } else { self.place_elsewhere(message) }
    }

    /// Where what a summary tells of was said.
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

    /// The short id of the leaf summary that stands for a message on this branch.
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
