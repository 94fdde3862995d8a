//! `/lcm stats`: the history in numbers, with the size of each part; and a warning once the store exceeds the
//! budget.

use serde_json::{Value, json};

use super::context::Bill;
use super::help::database;
use super::sessions::heading;
use super::spent::{Cache, SummaryCost};
use super::style::table;
use super::{Answer, Command, CommandContext, Doing};
use lcm_model::error::Result;
use lcm_model::text::{count, grouped, megabytes};
use lcm_recall::describe::{BranchTokens, Overview};
use lcm_store::{DepthCount, Sizes, Store, Totals, View};

/// Columns for the rows' names.
const NAMES: usize = 16;

pub(crate) const COMMAND: Command = Command {
    name: "stats",
    help: "messages, summaries, tokens, cost, prompt cache, sizes",
    usage: &[(
        "stats",
        "shows what is stored, what the summaries cover and cost, the state of the prompt cache, and running work",
    )],
    arguments: &[],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

/// Only in a shell.
pub(crate) const FULL: &str = "--full";
/// For a larger history, a shell gets only what is known at once, unless it asks for everything.
const LONG: u64 = 32 * 1024 * 1024;
const MEGABYTE: u64 = 1_000_000;
/// The warning repeats when the store has grown by this share since: 1/n.
const AGAIN: u64 = 10;

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    asked.rest.none()?;
    let stats = Stats::read(asked).await?;
    let text = heading(asked).await? + &table(&stats.rows(asked), NAMES, asked.request.columns);
    Ok(Answer::new(text, stats.json(asked)))
}

/// All numbers. Tokens are estimates.
struct Stats {
    totals: Totals,
    depths: Vec<DepthCount>,
    /// Of model calls for the summaries that are stored, for this session and the project.
    costs: (SummaryCost, SummaryCost),
    /// Summaries that are ready for the next compaction.
    ready: usize,
    /// Whether something was purged from the session.
    is_purged: bool,
    /// Of the project.
    messages: usize,
    sessions: usize,
    bytes: u64,
    /// `None` for a long history, in a shell that did not ask for everything.
    long: Option<Long>,
}

impl Stats {
    async fn read(asked: &CommandContext<'_>) -> Result<Self> {
        let (store, conversation) = (asked.store(), asked.scope.conversation);
        let bytes = store.bytes().await?;
        let is_all = !asked.manner.is_shell || bytes <= LONG || asked.rest.has(FULL);
        let long = if is_all { Some(long(asked).await?) } else { None };
        let ready = long.as_ref().map(|long| long.ready);
        let read = move |view: &View<'_>| {
            let (summaries, messages) = (view.summaries(), view.messages());
            Ok(Self {
                totals: summaries.totals(conversation)?,
                depths: summaries.depths(conversation)?,
                costs: (
                    SummaryCost::of(&summaries.usages(Some(conversation))?),
                    SummaryCost::of(&summaries.usages(None)?),
                ),
                ready: ready.map_or_else(|| summaries.uncarried(conversation).map(|all| all.len()), Ok)?,
                is_purged: !messages.purged_in(conversation)?.is_empty(),
                messages: messages.project_messages()?,
                sessions: messages.conversations()?,
                bytes,
                long,
            })
        };
        store.read(read).await
    }

    fn rows(&self, asked: &CommandContext<'_>) -> Vec<(&'static str, String)> {
        let Self { totals, depths, costs, long, .. } = self;
        let long = long.as_ref();
        let on_branch =
            long.map(|long| format!(", {} on this branch", grouped(long.on_branch))).unwrap_or_default();
        let project = format!("{}, {}", count(self.messages, "message"), count(self.sessions, "session"));
        let mut rows = vec![
            ("This session", count(totals.messages, "message") + &on_branch),
            ("This project", project),
            ("Summaries", summaries(depths, totals.degraded)),
        ];
        if let Some(Long { tokens, .. }) = long {
            let (all, rest) = (grouped(tokens.visible), grouped(tokens.frontier));
            let with = match depths.is_empty() {
                true => String::new(),
                false => format!(", {rest} with summaries in place of the messages they cover"),
            };
            rows.push(("This branch", format!("about {all} tokens{with}")));
        }
        let [own, all] = [&costs.0, &costs.1].map(SummaryCost::in_words);
        rows.push(("Cost", format!("{own} for the summaries kept; all of this project: {all}")));
        let bill = Bill::of(asked.doing, &asked.request.live);
        rows.extend(bill.map(|bill| ("Requests", bill.in_words())));
        rows.extend(long.map(|long| {
            ("Prompt cache", long.cache.as_ref().map_or_else(|| "not reported".to_owned(), Cache::in_words))
        }));
        if self.is_purged {
            rows.push(("Purged", "what was removed no longer counts in the messages, the cost of summaries and the prompt cache".to_owned()));
        }
        rows.push(("Background", background(asked.doing, self.ready)));
        rows.push(("Database", format!("{}, {}", megabytes(self.bytes), database(asked.store()).1)));
        let more = || format!("{FULL} shows more, but reads all of this long history");
        rows.push(("", long.map_or_else(more, |long| parts(&long.parts, !self.depths.is_empty()))));
        rows
    }

    fn json(&self, asked: &CommandContext<'_>) -> Value {
        let depth = |depth: &DepthCount| json!({"depth": depth.depth, "summaries": depth.summaries, "degraded": depth.degraded});
        let branch = |Long { tokens, .. }: &Long| {
            let (visible, frontier) = (tokens.visible, tokens.frontier);
            json!({"tokens": visible, "frontierTokens": frontier})
        };
        let (Self { totals, long, .. }, doing) = (self, asked.doing);
        let (long, depths): (_, Value) = (long.as_ref(), self.depths.iter().map(depth).collect());
        json!({
            "session": {"messages": totals.messages, "onBranch": long.map(|long| long.on_branch)},
            "project": {"messages": self.messages, "sessions": self.sessions},
            "summaries": {"degraded": totals.degraded, "byDepth": depths},
            "branch": long.map(branch),
            "cost": {"session": self.costs.0, "project": self.costs.1},
            "requests": Bill::of(doing, &asked.request.live),
            "cache": long.map(|long| &long.cache),
            "background": {
                "state": doing.background, "ready": self.ready,
                "compaction": doing.compaction, "import": doing.import,
            },
            "database": {
                "path": database(asked.store()).0, "bytes": self.bytes,
                "parts": long.map(|long| &long.parts),
            },
        })
    }
}

/// Numbers that cost the length of the branch or of the file.
struct Long {
    /// Messages visible to the model on the current branch, or that would be without summaries.
    on_branch: usize,
    /// Summaries that the branch uses and no compaction carries yet.
    ready: usize,
    tokens: BranchTokens,
    /// `None` if no provider reported cache use.
    cache: Option<Cache>,
    parts: Sizes,
}

async fn long(asked: &CommandContext<'_>) -> Result<Long> {
    let (Overview { visible, ready, .. }, tokens) = asked.overview().await?;
    let scope = asked.scope.clone();
    let read = asked.store().read(move |view| Ok((Cache::of(view, &scope)?, view.database().sizes()?)));
    let (cache, parts) = read.await?;
    Ok(Long { on_branch: visible, ready, tokens, cache, parts })
}

fn background(doing: &Doing, ready: usize) -> String {
    let pause = doing.pause_in_words().map(|pause| format!("{pause}; "));
    let state = match doing.background {
        "off" => "off (setting background); ",
        "working" => "writing summaries; ",
        "resting" => pause.as_deref().unwrap_or_default(),
        // Only the Pi with the open session knows.
        "unknown" => "",
        _ => "idle; ",
    };
    let under_way = [&doing.compaction, &doing.import].into_iter().flatten();
    let under_way: String = under_way.map(|line| format!("; {line}")).collect();
    format!("{state}{} ready for the next compaction{under_way}", count(ready, "summary"))
}

/// `24 D0, 6 D1, 1 D2; 2 degraded`
fn summaries(depths: &[DepthCount], degraded: usize) -> String {
    let depths: Vec<String> =
        depths.iter().map(|depth| format!("{} D{}", depth.summaries, depth.depth)).collect();
    match (depths.as_slice(), degraded) {
        ([], _) => "none yet".to_owned(),
        (depths, 0) => depths.join(", "),
        (depths, degraded) => format!("{}; {degraded} degraded", depths.join(", ")),
    }
}

/// `0.4 MB messages (0.9 MB unpacked), 0.3 MB full text, …`
fn parts(sizes: &Sizes, has_summaries: bool) -> String {
    // Empty tables take space too.
    let empty = if has_summaries { 0 } else { sizes.summaries };
    let named = [
        ("full text", sizes.full_text),
        ("entries", sizes.entries),
        ("ids", sizes.identities),
        ("summaries", sizes.summaries - empty),
        ("other", sizes.other + empty),
        ("free", sizes.free),
    ];
    let mut parts =
        vec![format!("{} messages ({} unpacked)", megabytes(sizes.messages), megabytes(sizes.unpacked))];
    let named = named.iter().filter(|(_, bytes)| *bytes > 0);
    parts.extend(named.map(|(name, bytes)| format!("{} {name}", megabytes(*bytes))));
    parts.join(", ")
}

/// The warning for a store of `bytes`, if that exceeds the budget and was not reported before.
pub async fn size_warning(store: &Store, bytes: u64, budget_megabytes: usize) -> Result<Option<String>> {
    let budget = u64::try_from(budget_megabytes).unwrap_or(u64::MAX).saturating_mul(MEGABYTE);
    let Some(path) = store.place() else { return Ok(None) };
    if bytes <= budget {
        return Ok(None);
    }
    let warned_at = store.read(|view| view.database().size_warned_at()).await?;
    if warned_at.is_some_and(|at| bytes < at.saturating_add(at / AGAIN)) {
        return Ok(None);
    }
    store.write(move |batch| batch.database().note_size_warned_at(bytes)).await?;
    Ok(Some(format!(
        "the history of this project takes {}, more than the {} MB of the setting sizeBudgetMegabytes; nothing is deleted \
         automatically: raise the setting, or quit Pi and move {} away (/lcm import with its path restores it)",
        megabytes(bytes),
        grouped(budget_megabytes),
        path.display()
    )))
}
