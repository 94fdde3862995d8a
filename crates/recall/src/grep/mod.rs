//! Search: words through the index, ranked by relevance, or a regular expression over the text itself, newest
//! first.
//!
//! Words take four steps, each a file: `query` reads them, `candidates` finds passages in the index, `rank` orders
//! their messages, `hits` shows those of a page. A regular expression is matched in `pattern`, and shown the same way.

mod candidates;
mod closeness;
mod count;
mod dates;
mod exact;
mod hits;
mod inside;
mod pattern;
mod phrases;
mod query;
mod rank;
mod scan;
mod sieve;
mod snippet;
mod stand_ins;
mod synonyms;
mod wanted;
mod words;

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use tokio_util::sync::CancellationToken;

use super::Scope;
use super::cards::{Card, MessageCard, SessionName};
use super::times::span;
pub use super::visibility::Location;
use super::visibility::Visibility;
use lcm_model::error::{Error, Result};
use lcm_model::ids::{AGENTS, ConversationId, MessageId, PI, SummaryId};
use lcm_model::text::{self, one_line};
use lcm_store::tasks::go_on;
use lcm_store::{Filter, View};

use candidates::Candidates;
pub use count::{COUNTED_BY, CountBy, Counts, Group};
use dates::Date;
pub use hits::fold_equals;
pub use inside::Lookup;
use query::{Query, QueryTerm, TermRole};
pub use snippet::Snippet;

/// Results per answer by default.
pub const DEFAULT_LIMIT: usize = 20;
/// The most results per answer.
pub const MOST_RESULTS: usize = 100;

/// The agents whose messages are stored.
pub const WRITERS: [&str; 5] = {
    let [one, two, three, four] = AGENTS;
    [PI, one, two, three, four]
};
/// The roles of messages, in Pi's terms.
pub const ROLES: [&str; 6] = ["user", "assistant", "toolResult", "bashExecution", "custom", "branchSummary"];

/// The most passages that mention the requested file, whose messages are searched.
const MOST_ABOUT: usize = 5_000;
/// The most messages counted to say how many were searched.
pub const MOST_COUNTED: usize = 5_000;

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

/// A question: the arguments of `lcm_grep`, whose schema has these comments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Question {
    /// Words, a path, an error, a "quoted phrase" or a question; with mode regex a pattern.
    pub query: String,
    /// text (default): best first. regex: Rust syntax, newest first.
    #[serde(default)]
    pub mode: Mode,
    /// Default: messages.
    #[serde(default, rename = "scope")]
    pub kinds: Kinds,
    /// this, project (earlier sessions too) or a session's id. Default: this, or project if this has nothing.
    pub session: Option<String>,
    /// Default: all.
    #[serde(default, rename = "branch")]
    pub branches: Branches,
    #[schemars(extend("enum" = ROLES))]
    pub role: Option<String>,
    /// Only its results, e.g. bash.
    pub tool: Option<String>,
    /// Only what it said. Except for pi, session defaults to project.
    #[schemars(extend("enum" = WRITERS))]
    pub agent: Option<String>,
    /// Only what names this file.
    pub path: Option<String>,
    /// ISO, or 2h, 3d, yesterday.
    pub after: Option<String>,
    pub before: Option<String>,
    /// Default: relevance.
    #[serde(default)]
    pub sort: Sort,
    /// Exact totals by this, instead of results: messages with all words, or the regex.
    pub count: Option<CountBy>,
    /// Longer snippets.
    #[serde(default)]
    pub full: bool,
    /// Messages around each result, at most 5.
    #[serde(default)]
    pub context: usize,
    /// Default: 20, at most 100.
    #[serde(default)]
    pub limit: usize,
    /// From the page before.
    pub cursor: Option<String>,
    /// Whether the current request may be a result: true if the user is asking.
    #[serde(skip)]
    pub also_current: bool,
    /// How long a search may read messages before the answer says how far it got.
    #[serde(skip)]
    pub patience: Duration,
    /// Whether it was asked of this session, which has nothing, and is one of the project now.
    #[serde(skip)]
    pub is_widened: bool,
}

impl Question {
    /// The searched session: `this`, `project` or a prefix of an id. Other agents' messages are in sessions of
    /// their own.
    pub fn session(&self) -> &str {
        match self.session.as_deref() {
            None if self.is_of_another_agent() => "project",
            None | Some("this") if self.kinds == Kinds::Sessions => "project",
            session => session.unwrap_or("this"),
        }
    }

    /// Makes it a question to the project, if it does not say where to search. The others are not searched.
    fn widen(&mut self, others: usize) -> bool {
        let is_open = self.session.is_none() && self.branches == Branches::All && self.cursor.is_none();
        if is_open && others > 0 {
            (self.session, self.is_widened) = (Some("project".to_owned()), true);
        }
        is_open && others > 0
    }

    /// Whether it filters by something that summaries don't have: a role, a tool, a file, another agent.
    pub fn is_of_messages(&self) -> bool {
        self.role.is_some() || self.tool.is_some() || self.path.is_some() || self.is_of_another_agent()
    }

    /// Whether it is about another agent than Pi.
    pub fn is_of_another_agent(&self) -> bool {
        self.agent.as_deref().is_some_and(|agent| agent != PI)
    }
}

/// An answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SearchResults {
    /// The results, in order.
    pub hits: Vec<SearchHit>,
    /// How to continue, if there are more.
    pub next: Option<NextPage>,
    /// What was searched.
    pub searched: Searched,
    /// Matching summaries of this session, if only messages were searched and none matches.
    pub matching_summaries: usize,
    /// The number of other sessions, which were not searched.
    pub other_sessions: usize,
    /// The query's words, if nothing that was searched has one: the results have only similar words, or parts.
    pub unknown: Vec<String>,
    /// Those of the query's words that nothing has that was searched, if the results have others of them.
    pub absent: Vec<String>,
    /// The quoted phrases that occur nowhere in what was searched.
    pub missing: Vec<String>,
    /// Whether more passages match than make up all pages.
    pub is_full: bool,
    /// How many weak matches are left out because the order is by time.
    pub weak: usize,
    /// If the search took too long, the time of the last searched message, in ms since the epoch.
    pub stopped_at: Option<i64>,
}

impl SearchResults {
    /// Whether nothing matches, or only similar words do.
    pub fn is_weak(&self) -> bool {
        self.hits.is_empty() || !self.unknown.is_empty()
    }
}

/// One result.
#[derive(Clone, Debug, PartialEq)]
pub struct SearchHit {
    /// The message or summary.
    pub card: Card,
    /// The leaf summary over a message on this branch.
    pub covering: Option<String>,
    /// Where it is, seen from the current branch.
    pub place: Location,
    /// Its session, if that is another one, results are grouped by session, or all are searched from outside.
    pub session: Option<SessionName>,
    /// The text around the match.
    pub snippet: Snippet,
    /// The handles of results with the same snippet that are folded into it.
    pub also: Vec<String>,
    /// The messages before and after it, in order, one line each.
    pub neighbors: Vec<(MessageCard, String)>,
}

/// Where further results are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NextPage {
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
    /// The times after and before which they were, in ms.
    pub times: [Option<i64>; 2],
    /// Whether words are found there without filters by role, tool, agent, file and time.
    pub is_elsewhere: bool,
}

/// Answers `question`, seen from `scope`: for the project, as it says then, if this session has nothing and it
/// does not say where to search.
///
/// # Errors
/// [`lcm_model::error::Code::Invalid`] for a query that can't be searched for and for a cursor that no such search
/// gives; [`lcm_model::error::Code::Cancelled`] when `cancel` was raised.
pub fn grep(
    view: &View<'_>,
    scope: &Scope,
    question: &mut Question,
    cancel: &CancellationToken,
) -> Result<SearchResults> {
    let results = ask(view, scope, question, cancel)?;
    let is_over = results.is_weak() && results.stopped_at.is_none() && results.matching_summaries == 0;
    match is_over && question.widen(results.other_sessions) {
        true => ask(view, scope, question, cancel),
        false => Ok(results),
    }
}

fn ask(
    view: &View<'_>,
    scope: &Scope,
    question: &Question,
    cancel: &CancellationToken,
) -> Result<SearchResults> {
    let sight = Visibility::new(view, scope)?;
    let search = Search::of(question, view, scope, &sight, cancel)?;
    let mut results = match question.mode {
        Mode::Text => by_relevance(&search)?,
        Mode::Regex => pattern::find(&search)?,
    };
    results.other_sessions = search.other_sessions()?;
    // Needed only if nothing was found; counting costs the length of the history.
    if results.hits.is_empty() {
        let Filter { conversation, after, before, .. } = search.filter;
        let (messages, summaries) = view.index().searchable(conversation, MOST_COUNTED)?;
        results.searched = Searched {
            messages: if question.kinds == Kinds::Summaries { 0 } else { messages },
            summaries: if search.takes_summaries() { summaries } else { 0 },
            times: [after, before],
            is_elsewhere: question.mode == Mode::Text && is_elsewhere(view, scope, question, cancel)?,
        };
    }
    Ok(results)
}

/// Whether the question has an answer without its filters.
fn is_elsewhere(
    view: &View<'_>,
    scope: &Scope,
    question: &Question,
    cancel: &CancellationToken,
) -> Result<bool> {
    let Question { role, tool, agent, path, after, before, .. } = Question::default();
    let session = Some(question.session().to_owned());
    let asked = Question { session, limit: 1, cursor: None, ..question.clone() };
    let unfiltered = Question { role, tool, agent, path, after, before, ..asked.clone() };
    if unfiltered == asked {
        return Ok(false);
    }
    let found = ask(view, scope, &unfiltered, cancel)?;
    Ok(!found.hits.is_empty() && found.unknown.is_empty() && found.absent.is_empty())
}

/// Counts the messages that match `question`, for the project where [`grep`] would; its order, page and limit play
/// no part.
///
/// # Errors
/// As for [`grep`], and [`lcm_model::error::Code::Invalid`] if a regular expression takes longer than its patience.
pub fn count(
    view: &View<'_>,
    scope: &Scope,
    question: &mut Question,
    by: CountBy,
    cancel: &CancellationToken,
) -> Result<Counts> {
    let sight = Visibility::new(view, scope)?;
    let counts = count::count(&Search::of(question, view, scope, &sight, cancel)?, by)?;
    match counts.messages == 0 && question.widen(counts.other_sessions) {
        true => count::count(&Search::of(question, view, scope, &sight, cancel)?, by),
        false => Ok(counts),
    }
}

/// The best matches for words.
fn by_relevance(search: &Search<'_>) -> Result<SearchResults> {
    let query = Query::asked(&search.question.query)?;
    let from = match &search.question.cursor {
        Some(cursor) => cursor.trim().parse().map_err(|_| search.foreign_cursor())?,
        None => 0,
    };
    let mut candidates = Candidates::find(search, &query)?;
    let ranked = rank::all(search, &query, &mut candidates)?;
    let stopped_at = candidates.stopped_at;
    if ranked.is_empty() {
        let is_of_messages = search.question.kinds != Kinds::Messages || search.question.is_of_messages();
        let matching_summaries = if is_of_messages { 0 } else { rank::summaries(search, &query)?.len() };
        let missing = missing(search, &query)?;
        return Ok(SearchResults { matching_summaries, missing, stopped_at, ..SearchResults::default() });
    }
    let all = ranked.len();
    let ranked = rank::in_order(search, &query, ranked)?;
    let is_by_time = search.question.sort != Sort::Relevance && search.question.kinds != Kinds::Sessions;
    let weak = if is_by_time { all - ranked.len() } else { 0 };
    let shown = rank::shown(search, &ranked, from);
    let hits = hits::of(search, &query, &candidates, &ranked[from.min(ranked.len())..][..shown])?;
    let more = ranked.len().saturating_sub(from + shown);
    let is_full = candidates.is_full;
    let next =
        (more > 0).then(|| NextPage { cursor: (from + shown).to_string(), more: (!is_full).then_some(more) });
    let unknown = unknown(search, &query, candidates.unknown)?;
    let absent = absent(search, &query, candidates.absent)?;
    Ok(SearchResults { hits, next, is_full, stopped_at, unknown, absent, weak, ..SearchResults::default() })
}

/// The words that nothing has, unless a searched summary has one of them.
fn unknown(search: &Search<'_>, query: &Query, unknown: Vec<String>) -> Result<Vec<String>> {
    if unknown.is_empty() || !query.phrases.is_empty() {
        return Ok(Vec::new());
    }
    let is_in_a_summary = in_summaries(search, query, |_| true)?;
    Ok(if is_in_a_summary { Vec::new() } else { unknown })
}

/// Those of the words that no searched summary has either.
fn absent(search: &Search<'_>, query: &Query, absent: Vec<String>) -> Result<Vec<String>> {
    let mut nowhere = Vec::new();
    let dates = Date::words_in(&search.question.query);
    for word in absent.into_iter().filter(|word| !dates.contains(&word.to_lowercase())) {
        if !in_summaries(search, query, |term| term.text == word)? {
            nowhere.push(word);
        }
    }
    Ok(nowhere)
}

/// Whether a searched summary has one of the query's terms that are meant.
fn in_summaries(search: &Search<'_>, query: &Query, is_meant: impl Fn(&QueryTerm) -> bool) -> Result<bool> {
    let asked = query.terms.iter().filter(|term| term.role == TermRole::Asked && is_meant(term));
    let any = asked.map(|term| term.expression.as_str()).collect::<Vec<_>>().join(" OR ");
    Ok(search.takes_summaries() && !search.view.index().search_summaries(&any, &search.filter, 1)?.is_empty())
}

/// The phrases that nothing has of what was searched, where nothing has all of them.
fn missing(search: &Search<'_>, query: &Query) -> Result<Vec<String>> {
    let mut missing = Vec::new();
    for phrase in &query.phrases {
        let is_missing = query.phrases.len() == 1 || {
            let alone = Query::of_phrase(phrase);
            let mut candidates = Candidates::find(search, &alone)?;
            rank::all(search, &alone, &mut candidates)?.is_empty()
        };
        missing.extend(is_missing.then(|| phrase.written.clone()));
    }
    Ok(missing)
}

/// The first date that a query names, as its first day and the one after its last, in ISO format; without a year, the last
/// one before `now`, in ms.
pub fn days_of(query: &str, now: i64) -> Option<(String, String)> {
    Date::days_of(query, now)
}

/// The session whose id begins with `id`. An answer marks an id that looks like a message's with a backslash.
///
/// # Errors
/// When there is none, with `remedy` after the sentence, or more than one.
pub fn session(view: &View<'_>, id: &str, remedy: &str) -> Result<ConversationId> {
    let shown = one_line(id, 60);
    let id = id.trim();
    let mut found = view.index().conversations_like(id)?;
    if let (true, Some(marked)) = (found.is_empty(), id.strip_prefix('\\')) {
        found = view.index().conversations_like(marked)?;
    }
    match found.as_slice() {
        [session] => Ok(*session),
        [] => Err(Error::invalid(format!("there is no session `{shown}` in this project{remedy}"))),
        several => {
            let ids = several.iter().map(|one| view.messages().session_id(*one));
            let ids = ids.collect::<Result<Vec<_>>>()?.iter().map(|id| one_line(id, 60)).collect::<Vec<_>>();
            Err(Error::invalid(format!(
                "more than one session begins with `{shown}`, among them {}",
                ids.join(" and ")
            )))
        }
    }
}

/// A file's path as most calls name it: from the project's folder on.
fn in_project<'p>(path: &'p str, project: &str) -> &'p str {
    let inside = path.strip_prefix(project).and_then(|rest| rest.strip_prefix('/'));
    let path = inside.filter(|_| !project.is_empty()).unwrap_or(path);
    path.strip_prefix("./").unwrap_or(path)
}

/// A question with everything needed to answer it.
struct Search<'a> {
    view: &'a View<'a>,
    scope: &'a Scope,
    question: &'a Question,
    sight: &'a Visibility<'a>,
    /// The branch that is searched, if it is another session's.
    branch: Option<Visibility<'a>>,
    /// The project's folder.
    project: String,
    filter: Filter,
    /// The messages about the requested file.
    about: Option<HashSet<MessageId>>,
    /// The current request and the message that searches, which answer no question.
    asking: Vec<MessageId>,
    /// The names of sessions, each of which costs a look at all sessions.
    names: RefCell<HashMap<ConversationId, SessionName>>,
    cancel: &'a CancellationToken,
}

impl<'a> Search<'a> {
    /// What `question` asks, seen from `scope`.
    fn of(
        question: &'a Question,
        view: &'a View<'a>,
        scope: &'a Scope,
        sight: &'a Visibility<'a>,
        cancel: &'a CancellationToken,
    ) -> Result<Self> {
        if question.query.trim().is_empty() {
            return Err(Error::invalid(
                "the query is empty: give the words to look for, or a regular expression with mode \"regex\"",
            ));
        }
        let written = [&question.after, &question.before].map(Option::as_deref);
        let [after, before] = span(["after", "before"], written, text::now())?;
        let conversation = match question.session() {
            "this" => Some(scope.conversation),
            "project" => None,
            id => {
                let remedy = ": session is \"this\", \"project\" or the beginning of a session's id";
                Some(session(view, id, remedy)?)
            }
        };
        let of_other = conversation
            .filter(|session| question.branches == Branches::Current && *session != scope.conversation);
        let branch = of_other.map(|session| Visibility::of_session(view, session)).transpose()?;
        let Question { role, tool, agent, .. } = question.clone();
        let filter = Filter { conversation, role, tool, agent, after, before };
        let asking = match question.also_current {
            true => Vec::new(),
            false => sight.current_request()?.into_iter().chain(sight.calling()?).collect(),
        };
        let project = view.messages().project()?;
        let about = question.path.as_deref().map(|path| in_project(path, &project));
        let about =
            about.map(|path| view.index().messages_about(path, &query::quote(path), &filter, MOST_ABOUT));
        let about = about.transpose()?;
        Ok(Self {
            view,
            scope,
            question,
            sight,
            branch,
            project,
            filter,
            asking,
            about,
            names: RefCell::default(),
            cancel,
        })
    }

    /// Whether this message may be a result.
    fn lets_through(&self, message: MessageId) -> Result<bool> {
        let is_about = self.about.as_ref().is_none_or(|about| about.contains(&message));
        Ok(is_about && !self.asking.contains(&message) && self.is_on_branch(message)?)
    }

    /// Whether this message is on a branch that is searched.
    fn is_on_branch(&self, message: MessageId) -> Result<bool> {
        Ok(self.question.branches == Branches::All || self.branch().shows(message)?)
    }

    /// Whether some messages of the searched passages are no results.
    fn is_narrow(&self) -> bool {
        self.filter != Filter::default()
            || self.about.is_some()
            || self.question.branches == Branches::Current
    }

    /// Whether summaries are searched.
    fn takes_summaries(&self) -> bool {
        matches!(self.question.kinds, Kinds::Summaries | Kinds::All) && !self.question.is_of_messages()
    }

    /// Whether this summary may be a result.
    fn lets_summary_through(&self, summary: SummaryId) -> Result<bool> {
        Ok(self.question.branches == Branches::All || self.branch().branch()?.forest.span(summary).is_some())
    }

    /// The branch that is searched, if not all are.
    fn branch(&self) -> &Visibility<'a> {
        self.branch.as_ref().unwrap_or(self.sight)
    }

    /// The message directly before, with `step` -1, or after, with 1.
    fn neighbor(&self, message: MessageId, step: i64) -> Result<Option<MessageId>> {
        let neighbors = self.view.index().neighbors(message)?;
        Ok(neighbors.into_iter().find(|next| (next.0 - message.0).signum() == step))
    }

    fn limit(&self) -> usize {
        match (self.question.limit, self.question.kinds) {
            (0, Kinds::Sessions) => DEFAULT_LIMIT / 2,
            (0, _) => DEFAULT_LIMIT,
            (limit, _) => limit.min(MOST_RESULTS),
        }
    }

    /// The number of sessions that are not searched.
    fn other_sessions(&self) -> Result<usize> {
        match self.filter.conversation {
            // One that has only begun is not counted.
            Some(searched) => {
                let messages = self.view.messages();
                Ok(messages.conversations()? - usize::from(messages.is_left(searched)?))
            }
            None => Ok(0),
        }
    }

    /// Stops a cancelled search.
    fn go_on(&self) -> Result<()> {
        go_on(self.cancel)
    }

    /// The session in which a message first appeared.
    fn session_of(&self, message: MessageId) -> Result<Option<ConversationId>> {
        match self.filter.conversation {
            Some(session) => Ok(Some(session)),
            None => Ok(self.view.messages().sessions_of(message)?.into_iter().min()),
        }
    }

    fn foreign_cursor(&self) -> Error {
        let cursor = self.question.cursor.as_deref().unwrap_or_default();
        Error::invalid(format!(
            "the cursor `{}` belongs to no answer of this search: leave it out to start with the first results",
            one_line(cursor, 40)
        ))
    }
}
