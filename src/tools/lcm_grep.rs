//! `lcm_grep`: a search, and its results a line each.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::parameters::{self, read, schema};
use super::{Block, lines};
use crate::error::Result;
use crate::recall::Scope;
use crate::recall::grep::{
    DEFAULT_LIMIT, Findings, Found, Hit, Kinds, Mode, Place, Question, Searched, Sessions, Snippet, grep,
};
use crate::store::Store;
use crate::text::count;

pub(super) const NAME: &str = "lcm_grep";

/// What a call says.
#[derive(Debug, Deserialize, JsonSchema)]
struct Parameters {
    /// Words, identifiers, a path, an error text, a "quoted phrase" or a whole question; with mode regex a pattern.
    query: String,
    /// text (default): best match first. regex: Rust syntax, case-sensitive, newest first.
    #[serde(default)]
    mode: Mode,
    /// What to search. Default: messages, the originals.
    #[serde(default)]
    scope: Kinds,
    /// this (default): this session with all its branches. project: earlier sessions too.
    #[serde(default)]
    session: Sessions,
    /// Only messages of this role.
    role: Option<Speaker>,
    /// Only results of this tool, e.g. bash.
    #[serde(default, deserialize_with = "parameters::word")]
    tool: Option<String>,
    /// Results per answer, at most 100. Default: 20.
    #[serde(default, deserialize_with = "parameters::count")]
    limit: Option<usize>,
    /// Where to go on, as the answer before said.
    #[serde(default, deserialize_with = "parameters::word")]
    cursor: Option<String>,
}

/// Whose messages.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
enum Speaker {
    User,
    Assistant,
    ToolResult,
    BashExecution,
    Custom,
    BranchSummary,
}

impl Speaker {
    fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::ToolResult => "toolResult",
            Self::BashExecution => "bashExecution",
            Self::Custom => "custom",
            Self::BranchSummary => "branchSummary",
        }
    }
}

pub(super) fn spec() -> Value {
    json!({
        "name": NAME,
        "label": "Search history",
        "description": "Search everything that was ever said in this session, also what compaction took out of your \
            context: user messages, replies, tool calls, tool output. Returns ids with snippets; lcm_expand brings \
            back the whole.",
        "promptSnippet": "Search the full conversation history, compacted messages included",
        "parameters": schema::<Parameters>(),
    })
}

pub(super) async fn answer(
    store: &Store,
    scope: &Scope,
    arguments: &str,
    cancel: &CancellationToken,
) -> Result<Vec<Block>> {
    let parameters: Parameters = read(NAME, arguments)?;
    let question = Question {
        query: parameters.query,
        mode: parameters.mode,
        kinds: parameters.scope,
        sessions: parameters.session,
        role: parameters.role.map(|role| role.as_str().to_owned()),
        tool: parameters.tool,
        limit: parameters.limit.unwrap_or(DEFAULT_LIMIT),
        cursor: parameters.cursor,
    };
    let (scope, cancel) = (scope.clone(), cancel.clone());
    store
        .read(move |view| {
            let findings = grep(view, &scope, &question, &cancel)?;
            Ok(vec![Block::Text(render(&question, &findings))])
        })
        .await
}

fn render(question: &Question, findings: &Findings) -> String {
    let mut out: String = findings.hits.iter().map(|hit| line(hit) + "\n").collect();
    match findings.hits.first() {
        Some(first) => out.push_str(&closing(first, findings)),
        None if question.cursor.is_some() => out.push_str("No more results."),
        None => out.push_str(&nothing(question, findings)),
    }
    out
}

fn line(hit: &Hit) -> String {
    let mut line = match &hit.found {
        Found::Message(card, covering) => {
            let covering = covering.as_ref().map(|summary| format!(" · in {summary}")).unwrap_or_default();
            lines::message(card) + &covering
        }
        Found::Summary(card) => lines::summary(card),
    };
    line.push_str(match (hit.place, &hit.found) {
        (Place::Here, _) => "",
        (Place::OtherBranch, Found::Message(..)) => " · on another branch",
        (Place::OtherBranch, Found::Summary(_)) => " · of another branch, or superseded",
        (Place::OtherSession, _) => " · in another session",
    });
    format!("{line}: {}", marked(&hit.snippet))
}

/// The snippet with its matches in «».
fn marked(snippet: &Snippet) -> String {
    let mut out = String::from(if snippet.cut_before { "…" } else { "" });
    let mut at = 0;
    for mark in &snippet.marks {
        let _ = write!(out, "{}«{}»", &snippet.text[at..mark.start], &snippet.text[mark.clone()]);
        at = mark.end;
    }
    out.push_str(&snippet.text[at..]);
    out.push_str(if snippet.cut_after { "…" } else { "" });
    out
}

fn closing(first: &Hit, findings: &Findings) -> String {
    let id = match &first.found {
        Found::Message(card, _) => &card.handle,
        Found::Summary(card) => &card.handle,
    };
    let mut closing = format!("The whole of one: lcm_expand {}.", json!({"summary_id": id}));
    if let Some(next) = &findings.next {
        let more = next.more.map_or_else(|| "Older ones".to_owned(), |more| format!("{more} more"));
        let _ = write!(closing, " {more}: the same lcm_grep with \"cursor\":\"{}\".", next.cursor);
    }
    closing
}

fn nothing(question: &Question, findings: &Findings) -> String {
    let bounds = match (&question.role, &question.tool) {
        (None, None) => String::new(),
        (Some(role), None) => format!(" with role {role}"),
        (None, Some(tool)) => format!(" from the tool {}", crate::text::one_line(tool, 60)),
        (Some(role), Some(tool)) => {
            format!(" with role {role} from the tool {}", crate::text::one_line(tool, 60))
        }
    };
    let whose = match question.sessions {
        Sessions::This => "this session",
        Sessions::Project => "this project",
    };
    let query = crate::text::one_line(&question.query, 80);
    let mut out = format!(
        "Nothing found for `{query}`{bounds} in {} of {whose}.",
        searched(question.kinds, findings.searched)
    );
    let elsewhere = findings.elsewhere;
    if elsewhere.summaries > 0 {
        let summaries = count(elsewhere.summaries, "summary");
        let _ = write!(out, " {summaries} of it would match: pass \"scope\":\"all\".");
    }
    let (sessions, messages) =
        (count(elsewhere.sessions, "other session"), count(elsewhere.messages, "message"));
    let _ = match (elsewhere.sessions, question.mode) {
        (0, _) => Ok(()),
        (_, Mode::Text) => {
            write!(out, " {messages} of {sessions} would match: pass \"session\":\"project\".")
        }
        (_, Mode::Regex) => {
            write!(out, " Not searched: {sessions} of this project; pass \"session\":\"project\".")
        }
    };
    out
}

fn searched(kinds: Kinds, searched: Searched) -> String {
    let (messages, summaries) = (count(searched.messages, "message"), count(searched.summaries, "summary"));
    match kinds {
        Kinds::Messages => messages,
        Kinds::Summaries => summaries,
        Kinds::All => format!("{messages} and {summaries}"),
    }
}
