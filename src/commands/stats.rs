//! `/lcm stats`: the history in numbers.

use std::fmt;

use serde::Serialize;

use super::columns::hanging;
use super::context::Bill;
use super::help::lies_in;
use super::spent::{Cache, Cost};
use super::{Answer, Command, CommandContext, args, size};
use crate::error::Result;
use crate::recall::describe::Overview;
use crate::store::{Place, Sizes};
use crate::text::{count, grouped, megabytes};

const NAME: &str = "stats";
/// Columns for the rows' names.
const NAMES: usize = 15;

pub(crate) const COMMAND: Command = Command {
    name: NAME,
    help: "messages, summaries, tokens saved, cost, prompt cache, sizes",
    usage: &[(
        "stats",
        "shows what is stored, what the summaries save and cost, the state of the prompt cache, and running work",
    )],
    arguments: &[],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

/// Only in a shell.
pub(crate) const FULL: &str = "--full";
/// For a larger history, a shell gets only what is known at once, unless it asks for everything.
const LONG: u64 = 32 * 1024 * 1024;

/// All numbers. Tokens are estimates.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Stats {
    session: Session,
    project: Project,
    summaries: Summaries,
    /// `None` for a long history, in a shell that did not ask for everything.
    branch: Option<BranchSize>,
    cost: Costs,
    /// `None` before the first request, and without an open session.
    requests: Option<Bill>,
    /// `None` if no provider reported cache use, and in the cases of `branch`.
    cache: Option<Cache>,
    background: Background,
    database: Database,
    #[serde(skip)]
    columns: Option<usize>,
}

/// The cost of model calls for summaries.
#[derive(Serialize)]
struct Costs {
    session: Cost,
    project: Cost,
}

/// Running work, and its results.
#[derive(Serialize)]
struct Background {
    /// `off`, `idle`, `working`, or `resting` after a failure.
    state: &'static str,
    /// Summaries that are ready for the next compaction.
    ready: usize,
    compaction: Option<String>,
    import: Option<String>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Session {
    messages: usize,
    /// Messages visible to the model on the current branch, or that would be without summaries; `None` as for
    /// `branch`.
    on_branch: Option<usize>,
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
struct BranchSize {
    /// Tokens of its original messages.
    tokens: usize,
    /// Tokens with its topmost summaries in place of the messages they cover.
    frontier_tokens: usize,
    saved_tokens: usize,
}

#[derive(Serialize)]
struct Database {
    /// `None` for a session in memory.
    path: Option<String>,
    bytes: u64,
    /// `None` as for `branch`.
    parts: Option<Sizes>,
    #[serde(skip)]
    place: String,
}

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    let (options, left) = match asked.manner.is_shell {
        true => args::options(NAME, &asked.rest, &[FULL])?,
        false => (Vec::new(), asked.rest.to_string()),
    };
    args::none(NAME, &left)?;
    let (store, doing) = (asked.store(), asked.doing);
    let bytes = store.bytes().await?;
    let is_all = !asked.manner.is_shell || bytes <= LONG || options.contains(&FULL);
    let conversation = asked.scope.conversation;
    let own = store.read(move |view| {
        let costs = Costs {
            session: Cost::of(&view.summaries().usages(Some(conversation))?),
            project: Cost::of(&view.summaries().usages(None)?),
        };
        Ok((
            view.summaries().totals(conversation)?,
            view.summaries().depths(conversation)?,
            costs,
            view.summaries().uncarried(conversation)?,
        ))
    });
    let of_project =
        store.read(|view| Ok((view.messages().project_messages()?, view.messages().conversations()?)));
    let ((totals, depths, cost, ready), (project_messages, sessions)) = tokio::try_join!(own, of_project)?;
    let long = if is_all { Some(long(asked).await?) } else { None };
    let (on_branch, branch, cache, parts) = match long {
        Some(Long { on_branch, branch, cache, parts }) => (Some(on_branch), Some(branch), cache, Some(parts)),
        None => (None, None, None, None),
    };
    let depth = |depth: &crate::store::DepthCount| Depth {
        depth: depth.depth,
        summaries: depth.summaries,
        degraded: depth.degraded,
    };
    Ok(Answer::of(&Stats {
        cost,
        requests: Bill::of(doing, asked.live),
        cache,
        background: Background {
            state: doing.background,
            ready,
            compaction: doing.compaction.clone(),
            import: doing.import.clone(),
        },
        session: Session { messages: totals.messages, on_branch },
        project: Project { messages: project_messages, sessions },
        summaries: Summaries { degraded: totals.degraded, by_depth: depths.iter().map(depth).collect() },
        branch,
        database: Database {
            path: match store.place() {
                Place::Memory => None,
                Place::File(path) => Some(path.display().to_string()),
            },
            bytes,
            parts,
            place: lies_in(store.place()),
        },
        columns: asked.columns,
    }))
}

/// Numbers that cost the length of the branch or of the file.
struct Long {
    on_branch: usize,
    branch: BranchSize,
    cache: Option<Cache>,
    parts: Sizes,
}

async fn long(asked: &CommandContext<'_>) -> Result<Long> {
    let (Overview { visible, .. }, tokens) = asked.overview().await?;
    let scope = asked.scope.clone();
    let read = asked.store().read(move |view| Ok((Cache::of(view, &scope)?, view.database().sizes()?)));
    let (cache, parts) = read.await?;
    let saved_tokens = tokens.visible.saturating_sub(tokens.frontier);
    let branch = BranchSize { tokens: tokens.visible, frontier_tokens: tokens.frontier, saved_tokens };
    Ok(Long { on_branch: visible, branch, cache, parts })
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            session,
            project,
            summaries,
            branch,
            cost,
            requests,
            cache,
            background,
            database,
            columns,
        } = self;
        let wrapped = |value: &str| hanging(value, NAMES + 1, *columns);
        let mut row = |name: &str, value: String| writeln!(f, "{name:<NAMES$} {}", wrapped(&value));
        let on_branch =
            session.on_branch.map(|messages| format!(", {messages} on this branch")).unwrap_or_default();
        row("This session", format!("{}{on_branch}", count(session.messages, "message")))?;
        row(
            "This project",
            format!("{}, {}", count(project.messages, "message"), count(project.sessions, "session")),
        )?;
        row("Summaries", summaries.to_string())?;
        if let Some(branch) = branch {
            row("This branch", branch.in_words(!summaries.by_depth.is_empty()))?;
            row("Saved", format!("about {} tokens of each request", grouped(branch.saved_tokens)))?;
        }
        row("Cost", format!("{}; all of this project: {}", cost.session, cost.project))?;
        if let Some(requests) = requests {
            row("Requests", requests.to_string())?;
        }
        if branch.is_some() {
            row(
                "Prompt cache",
                cache.as_ref().map_or_else(|| "not reported".to_owned(), ToString::to_string),
            )?;
        }
        row("Background", background.to_string())?;
        row("Database", format!("{}, {}", megabytes(database.bytes), database.place))?;
        let last = match &database.parts {
            Some(parts) => size::parts(parts),
            None => format!("{FULL} shows more, but reads all of this long history"),
        };
        write!(f, "{:<NAMES$} {}", "", wrapped(&last))
    }
}

impl fmt::Display for Background {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.state {
            "off" => "off (setting background)",
            "working" => "writing summaries",
            "resting" => "paused after a failure",
            // Only the Pi with the open session knows.
            "unknown" => return write!(f, "{} ready for the next compaction", count(self.ready, "summary")),
            _ => "idle",
        })?;
        write!(f, "; {} ready for the next compaction", count(self.ready, "summary"))?;
        let under_way = [&self.compaction, &self.import];
        under_way.into_iter().flatten().try_for_each(|line| write!(f, "; {line}"))
    }
}

impl BranchSize {
    fn in_words(&self, is_summarized: bool) -> String {
        let tokens = grouped(self.tokens);
        match is_summarized {
            false => format!("about {tokens} tokens"),
            true => {
                let rest = grouped(self.frontier_tokens);
                format!("about {tokens} tokens, {rest} with summaries in place of the messages they cover")
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
