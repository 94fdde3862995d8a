//! `/lcm search WORDS`: what was said, wherever it was said, best match first.

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::{Answer, Asked, Command, args};
use crate::error::{Error, Result};
use crate::recall::grep::{
    DEFAULT_LIMIT, Findings, Found, Hit, Kinds, MOST_RESULTS, Mode, Place, Question, Sessions, grep,
};
use crate::text::{age, count, now, timestamp};

const NAME: &str = "search";
const PROJECT: &str = "--project";
const REGEX: &str = "--regex";
const MORE: &str = "--more";

pub(super) const COMMAND: Command = Command {
    name: NAME,
    help: "find what was said; --project: in all sessions",
    usage: &[
        ("search", "in the TUI: type, look through the hits, open one in full"),
        ("search WORDS", "the best matches of this session, messages and summaries, a line each"),
        ("search WORDS --project", "the same in all sessions of this project"),
        ("search PATTERN --regex", "what fits a regular expression, newest first"),
        ("search WORDS --more", "up to 100 matches instead of 20"),
        ("search -- WORDS", "the same for words that look like options"),
    ],
    arguments: &[
        (PROJECT, "in all sessions of this project"),
        (REGEX, "a regular expression"),
        (MORE, "up to 100 matches"),
    ],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Hits {
    query: String,
    hits: Vec<Match>,
    /// There are more than are told.
    is_cut: bool,
    /// As many as one answer can have were asked for.
    #[serde(skip)]
    is_most: bool,
    /// Messages of other sessions that would match, where nothing was found here.
    elsewhere: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Match {
    kind: &'static str,
    id: String,
    /// Of a message.
    role: Option<String>,
    tool: Option<String>,
    /// Of a summary.
    depth: Option<u32>,
    time: String,
    /// `here`, `otherBranch` or `otherSession`.
    place: &'static str,
    /// The leaf summary that stands for a message on this branch.
    summary: Option<String>,
    snippet: String,
    /// Where in the snippet the matches are, in characters.
    marks: Vec<Range<usize>>,
    #[serde(skip)]
    line: String,
}

async fn answer(asked: &Asked<'_>) -> Result<Answer> {
    let (options, query) = args::take(&asked.rest, &[PROJECT, REGEX, MORE]);
    let query = args::behind_options(&query).to_owned();
    if query.is_empty() {
        return Err(Error::invalid("/lcm search takes the words to look for"));
    }
    let has = |option| options.contains(&option);
    let question = Question {
        query,
        mode: if has(REGEX) { Mode::Regex } else { Mode::Text },
        kinds: Kinds::All,
        sessions: if has(PROJECT) { Sessions::Project } else { Sessions::This },
        limit: if has(MORE) { MOST_RESULTS } else { DEFAULT_LIMIT },
        also_current: true,
        ..Question::default()
    };
    let (scope, now) = (asked.scope.clone(), now());
    asked
        .store()
        .read(move |view| {
            let Findings { hits, next, elsewhere, .. } =
                grep(view, &scope, &question, &CancellationToken::new())?;
            Ok(Answer::of(&Hits {
                query: question.query,
                hits: hits.into_iter().map(|hit| Match::of(hit, now)).collect(),
                is_cut: next.is_some(),
                is_most: question.limit == MOST_RESULTS,
                elsewhere: elsewhere.messages,
            }))
        })
        .await
}

impl Match {
    fn of(hit: Hit, now: i64) -> Self {
        let place = match hit.place {
            Place::Here => "here",
            Place::OtherBranch => "otherBranch",
            Place::OtherSession => "otherSession",
        };
        let snippet = hit.snippet;
        let characters = |at: usize| snippet.text[..at].chars().count();
        let marks: Vec<_> =
            snippet.marks.iter().map(|mark| characters(mark.start)..characters(mark.end)).collect();
        let line = marked(&snippet.text, &snippet.marks);
        let cut = |is_cut: bool| if is_cut { "…" } else { "" };
        let line = format!("{}{line}{}", cut(snippet.cut_before), cut(snippet.cut_after));
        let found = match hit.found {
            Found::Message(card, summary) => {
                let who =
                    card.tool.as_ref().map_or_else(|| card.role.clone(), |tool| format!("{tool} output"));
                let head = format!("{} {who} {}", card.handle, age(card.timestamp, now));
                (("message", card.handle, Some(card.role), card.tool), (None, card.timestamp, summary, head))
            }
            Found::Summary(card) => {
                let head = format!("{} D{} {}", card.handle, card.depth, card.title);
                (("summary", card.handle, None, None), (Some(card.depth), card.from_time, None, head))
            }
        };
        let ((kind, id, role, tool), (depth, time, summary, head)) = found;
        let elsewhere = match place {
            "otherBranch" => ", on another branch",
            "otherSession" => ", in another session",
            _ => "",
        };
        Self {
            kind,
            id,
            role,
            tool,
            depth,
            time: timestamp(time),
            place,
            summary,
            snippet: snippet.text.clone(),
            marks,
            line: format!("{head}{elsewhere}\n  {line}"),
        }
    }
}

/// The snippet with its matches in «».
fn marked(text: &str, marks: &[Range<usize>]) -> String {
    let mut out = String::new();
    let mut at = 0;
    for mark in marks {
        out += &format!("{}«{}»", &text[at..mark.start], &text[mark.clone()]);
        at = mark.end;
    }
    out + &text[at..]
}

impl fmt::Display for Hits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.hits.is_empty() {
            write!(f, "Nothing found for {}.", crate::text::one_line(&self.query, 80))?;
            if self.elsewhere > 0 {
                let messages = count(self.elsewhere, "message");
                write!(f, " {messages} of other sessions would match: add {PROJECT}.")?;
            }
            return Ok(());
        }
        for hit in &self.hits {
            writeln!(f, "{}", hit.line)?;
        }
        f.write_str("\nThe whole of one: /lcm show ID.")?;
        match (self.is_cut, self.is_most) {
            (true, false) => write!(f, " There are more: add {MORE}, or more words.")?,
            (true, true) => f.write_str(" There are more: add more words.")?,
            (false, _) => {}
        }
        Ok(())
    }
}
