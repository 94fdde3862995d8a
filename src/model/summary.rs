//! A summary as it travels: every compaction writes its new summaries into its own session entry, so that a session
//! file alone restores the DAG of a lost database.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::ids::Hash;

/// The format of [`CompactionDetails`]; a higher one is left alone.
const FORMAT: u32 = 1;

/// How a summary came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A model wrote it.
    Ok,
    /// No model would: a deterministic extract, made anew when one answers.
    Degraded,
}

impl State {
    /// The name as stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
        }
    }
}

/// What a quote is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuoteKind {
    /// What the user wants to hold from then on.
    Rule,
    /// What was still to be done when it was said.
    Task,
}

impl QuoteKind {
    /// The name as a model writes it and as it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Task => "task",
        }
    }
}

/// Words that stand in a message exactly so, blanks folded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    /// What it is.
    pub kind: QuoteKind,
    /// The words.
    pub text: String,
}

/// What a summary is about: its first line with words, at most 80 characters.
#[must_use]
pub fn title(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim_start_matches(['#', '-', '*', ' ']));
    let first =
        lines.map(|line| line.strip_prefix("Title:").unwrap_or(line).trim()).find(|line| !line.is_empty());
    crate::text::one_line(first.unwrap_or_default(), 80)
}

/// One summary with its edges, complete in itself.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct SummaryRecord {
    /// Its identity, 64 hexadecimal digits: [`SummaryRecord::identity`].
    pub id: String,
    /// 0 for a leaf summary, one more than its deepest source for a condensed one.
    pub depth: u32,
    /// The text.
    pub text: String,
    /// Estimated tokens of the text.
    pub tokens: usize,
    /// How it came about.
    pub state: State,
    /// `provider/model` that wrote it; none for an extract.
    pub model: Option<String>,
    /// Version of the prompts it was asked with.
    pub prompt_version: u32,
    /// ms since the epoch.
    pub created_at: i64,
    /// What the calls for it used, as Pi reports usage.
    pub usage: Option<Value>,
    /// What its messages say word for word, in their order; absent where there is nothing.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<Quote>,
    /// Its sources in order: session entry ids for a leaf summary, summary ids for a condensed one.
    pub sources: Vec<String>,
}

impl SummaryRecord {
    /// The identity of a summary: what it says and quotes, and what it was made from.
    ///
    /// One without quotes has the identity it had before there were any.
    #[must_use]
    pub fn identity(
        depth: u32,
        state: State,
        prompt_version: u32,
        text: &str,
        quotes: &[Quote],
        sources: &[Hash],
    ) -> Hash {
        let head = match quotes.len() {
            0 => format!("summary {depth} {} {prompt_version}", state.as_str()),
            n => format!("summary {depth} {} {prompt_version} with {n} quotes", state.as_str()),
        };
        let parts = [head.as_bytes(), text.as_bytes()].into_iter();
        let quotes = quotes.iter().flat_map(|quote| [quote.kind.as_str().as_bytes(), quote.text.as_bytes()]);
        Hash::of(parts.chain(quotes).chain(sources.iter().map(|source| source.0.as_slice())))
    }
}

/// The `details` of a compaction entry of ours, or of our account of a branch that was left.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionDetails {
    /// Format version; its presence is also how an entry is known to be ours.
    pub lcm: u32,
    /// Summaries that no earlier compaction on this branch carries, sources before what was condensed from them.
    pub summaries: Vec<SummaryRecord>,
    /// The frontier that the block shows, in order: summary ids.
    pub frontier: Vec<String>,
    /// Messages the block covers.
    pub covered: usize,
    /// Files only read, as Pi names the list.
    pub read_files: Vec<String>,
    /// Files changed, as Pi names the list.
    pub modified_files: Vec<String>,
    /// The entry that the branch ends with which the summaries are of, where that is not the entry's own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leaf: Option<String>,
}

impl CompactionDetails {
    /// The version this engine writes.
    pub const FORMAT: u32 = FORMAT;

    /// Those of our account of a branch that was left, out of its entry's JSON; `None` where it is not of ours.
    #[must_use]
    pub fn of_left_branch(entry: &str) -> Option<Self> {
        #[derive(Deserialize)]
        struct Left<'a> {
            #[serde(borrow)]
            details: &'a RawValue,
        }
        let left: Left<'_> = serde_json::from_str(entry).ok()?;
        Self::parse(left.details.get()).filter(|details| details.leaf.is_some())
    }

    /// Reads the details of a compaction entry; `None` where they are not ours or of a newer format.
    #[must_use]
    pub fn parse(json: &str) -> Option<Self> {
        serde_json::from_str::<Self>(json).ok().filter(|details| details.lcm == FORMAT)
    }
}

/// The last line of an exported session: summaries that no compaction in it carries. Pi passes over every line but the first that
/// is of type `session`, as it has done since there are session files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Supplement {
    #[serde(rename = "type")]
    kind: String,
    /// Pi's id of the session.
    pub id: String,
    /// Format version, that of [`CompactionDetails`].
    pub lcm: u32,
    /// Sources before what was condensed from them; those of a leaf summary are named by the lineages of its messages.
    pub summaries: Vec<SummaryRecord>,
}

impl Supplement {
    /// Of a session.
    #[must_use]
    pub fn new(session_id: &str, summaries: Vec<SummaryRecord>) -> Self {
        Self { kind: "session".into(), id: session_id.into(), lcm: FORMAT, summaries }
    }

    /// Reads a line; `None` where it is another, or of a newer format.
    #[must_use]
    pub fn parse(json: &str) -> Option<Self> {
        serde_json::from_str::<Self>(json).ok().filter(|line| line.lcm == FORMAT && line.kind == "session")
    }
}
