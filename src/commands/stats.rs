//! `/lcm stats`: the history in numbers.

use std::fmt;

use serde::Serialize;

use super::columns::hanging;
use super::help::lies_in;
use super::spent::{Cache, Cost};
use super::{Answer, Asked, Command, args, size};
use crate::error::Result;
use crate::recall::describe::Overview;
use crate::store::{Place, Sizes};
use crate::text::{count, grouped, megabytes};

const NAME: &str = "stats";
/// Columns of the names of the rows.
const NAMES: usize = 15;

pub(super) const COMMAND: Command = Command {
    name: NAME,
    help: "messages, summaries, tokens saved, cost, prompt cache, sizes",
    usage: &[(
        "stats",
        "tells what is stored, what the summaries save and cost, how the prompt cache holds, what is under way",
    )],
    arguments: &[],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

/// All numbers. Tokens are estimates.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    session: Session,
    project: Project,
    summaries: Summaries,
    branch: Branch,
    cost: Costs,
    /// None where no provider told of its cache.
    cache: Option<Cache>,
    background: Background,
    database: Database,
    #[serde(skip)]
    columns: Option<usize>,
}

/// What the model calls for summaries took.
#[derive(Serialize)]
struct Costs {
    session: Cost,
    project: Cost,
}

/// What is under way, and what it made.
#[derive(Serialize)]
struct Background {
    /// `off`, `idle`, `working`, or `resting` after a failure.
    state: &'static str,
    /// Summaries that the next compaction finds ready.
    ready: usize,
    compaction: Option<String>,
    import: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    messages: usize,
    /// Those that the model sees on the current branch, or would without summaries.
    on_branch: usize,
}

#[derive(Serialize)]
struct Project {
    messages: usize,
    sessions: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summaries {
    degraded: usize,
    by_depth: Vec<Depth>,
}

#[derive(Serialize)]
struct Depth {
    depth: u32,
    summaries: usize,
    degraded: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Branch {
    /// Of its messages as they were said.
    tokens: usize,
    /// With its topmost summaries in place of what they stand for.
    frontier_tokens: usize,
    saved_tokens: usize,
}

#[derive(Serialize)]
struct Database {
    /// None for a session that leaves no trace.
    path: Option<String>,
    bytes: u64,
    parts: Sizes,
    #[serde(skip)]
    place: String,
}

async fn answer(asked: &Asked<'_>) -> Result<Answer> {
    args::none(NAME, &asked.rest)?;
    let store = asked.store();
    let Overview {
        totals, depths, sessions, project_messages, visible, visible_tokens, frontier_tokens, ..
    } = asked.overview().await?;
    let depth = |depth: &crate::store::DepthCount| Depth {
        depth: depth.depth,
        summaries: depth.summaries,
        degraded: depth.degraded,
    };
    #[expect(clippy::redundant_closure_for_method_calls, reason = "the path is not general over lifetimes")]
    let parts = store.read(|view| view.sizes()).await?;
    let (scope, doing) = (asked.scope.clone(), asked.doing);
    let (cost, cache, ready) = store
        .read(move |view| {
            let conversation = scope.conversation;
            let session = Cost::of(&view.usages(Some(conversation))?);
            let cost = Costs { session, project: Cost::of(&view.usages(None)?) };
            Ok((cost, Cache::of(view, &scope)?, view.uncarried(conversation)?))
        })
        .await?;
    Ok(Answer::of(&Stats {
        cost,
        cache,
        background: Background {
            state: doing.background,
            ready,
            compaction: doing.compaction.clone(),
            import: doing.import.clone(),
        },
        session: Session { messages: totals.messages, on_branch: visible },
        project: Project { messages: project_messages, sessions },
        summaries: Summaries { degraded: totals.degraded, by_depth: depths.iter().map(depth).collect() },
        branch: Branch {
            tokens: visible_tokens,
            frontier_tokens,
            saved_tokens: visible_tokens.saturating_sub(frontier_tokens),
        },
        database: Database {
            path: match store.place() {
                Place::Memory => None,
                Place::File(path) => Some(path.display().to_string()),
            },
            bytes: store.bytes().await?,
            parts,
            place: lies_in(store.place()),
        },
        columns: asked.columns,
    }))
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { session, project, summaries, branch, cost, cache, background, database, columns } = self;
        let beside = |value: &str| hanging(value, NAMES + 1, *columns);
        let mut row = |name: &str, value: String| writeln!(f, "{name:<NAMES$} {}", beside(&value));
        row(
            "This session",
            format!("{}, {} on this branch", count(session.messages, "message"), session.on_branch),
        )?;
        row(
            "This project",
            format!("{}, {}", count(project.messages, "message"), count(project.sessions, "session")),
        )?;
        row("Summaries", summaries.to_string())?;
        row("This branch", branch.in_words(!summaries.by_depth.is_empty()))?;
        row("Saved", format!("about {} tokens of each request", grouped(branch.saved_tokens)))?;
        row("Cost", format!("{}; all of this project: {}", cost.session, cost.project))?;
        row("Prompt cache", cache.as_ref().map_or_else(|| "not told of".to_owned(), ToString::to_string))?;
        row("Background", background.to_string())?;
        row("Database", format!("{}, {}", megabytes(database.bytes), database.place))?;
        write!(f, "{:<NAMES$} {}", "", beside(&size::parts(&database.parts)))
    }
}

impl fmt::Display for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            "off" => "off (setting background)",
            "working" => "summaries are being written ahead",
            "resting" => "rests after a failure",
            _ => "nothing under way",
        })?;
        write!(f, "; {} ready for the next compaction", count(self.ready, "summary"))?;
        let under_way = [&self.compaction, &self.import];
        under_way.into_iter().flatten().try_for_each(|line| write!(f, "; {line}"))
    }
}

impl Branch {
    fn in_words(&self, is_summarised: bool) -> String {
        let tokens = grouped(self.tokens);
        match is_summarised {
            false => format!("about {tokens} tokens"),
            true => {
                let rest = grouped(self.frontier_tokens);
                format!("about {tokens} tokens, {rest} with its summaries in place of what they stand for")
            }
        }
    }
}

impl fmt::Display for Summaries {
    /// `24 D0, 6 D1, 1 D2; 2 degraded`
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let depths = self.by_depth.iter().map(|depth| format!("{} D{}", depth.summaries, depth.depth));
        let depths: Vec<String> = depths.collect();
        match (depths.as_slice(), self.degraded) {
            ([], _) => f.write_str("none yet"),
            (depths, 0) => f.write_str(&depths.join(", ")),
            (depths, degraded) => write!(f, "{}; {degraded} degraded", depths.join(", ")),
        }
    }
}
