//! The portable form of a summary: every compaction writes its new summaries into its own session entry, so
//! that a session file alone restores the DAG of a lost database.

use std::ops::Deref;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::Fields;
use crate::ids::Hash;

/// The last moment of the year 9999, ms.
const LATEST: i64 = 253_402_300_799_999;
/// More tokens or dollars than any request uses.
const MOST_USED: f64 = 1e9;

/// How a summary was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// A model wrote it.
    Ok,
    /// No model answered: a deterministic extract, remade when one does.
    Degraded,
}

impl State {
    /// The name as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Degraded => "degraded",
        }
    }
}

/// The kind of a quote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QuoteKind {
    /// A rule that the user wants followed from then on.
    Rule,
    /// A task that was still open.
    Task,
}

impl QuoteKind {
    /// The name as written by a model and as stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Rule => "rule",
            Self::Task => "task",
        }
    }
}

/// Words that a message contains verbatim, with whitespace folded.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Quote {
    pub kind: QuoteKind,
    pub text: String,
}

/// The topic of a summary: its first line with words, at most 80 characters.
pub fn title(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim_start_matches(['#', '-', '*', ' ']));
    let first =
        lines.map(|line| line.strip_prefix("Title:").unwrap_or(line).trim()).find(|line| !line.is_empty());
    crate::text::one_line(first.unwrap_or_default(), 80)
}

/// A summary without its edges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Summary {
    /// Its identity: [`Summary::identity`].
    #[serde(rename = "id")]
    pub hash: Hash,
    /// 0 for a leaf summary, one more than its deepest source for a condensed one.
    pub depth: u32,
    pub text: String,
    pub tokens: usize,
    pub state: State,
    /// The model, as `provider/model`; `None` for an extract.
    pub model: Option<String>,
    pub prompt_version: u32,
    pub created_at: i64,
    /// The usage of its model calls, in Pi's format.
    pub usage: Option<Value>,
    /// Verbatim quotes from its messages, in order; absent if there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<Quote>,
}

/// One self-contained summary with its edges.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SummaryRecord {
    #[serde(flatten)]
    pub summary: Summary,
    /// Its sources in order: session entry ids for a leaf summary, summary ids for a condensed one.
    pub sources: Vec<String>,
}

impl Deref for SummaryRecord {
    type Target = Summary;

    fn deref(&self) -> &Summary {
        &self.summary
    }
}

impl Summary {
    /// The identity it has if it was made from these sources: its text, its quotes and its sources.
    ///
    /// A summary without quotes has the same identity as before quotes existed.
    pub fn identity(&self, sources: &[Hash]) -> Hash {
        let Self { depth, prompt_version, text, quotes, .. } = self;
        let head = match quotes.len() {
            0 => format!("summary {depth} {} {prompt_version}", self.state.as_str()),
            n => format!("summary {depth} {} {prompt_version} with {n} quotes", self.state.as_str()),
        };
        let parts = [head.as_bytes(), text.as_bytes()].into_iter();
        let quotes = quotes.iter().flat_map(|quote| [quote.kind.as_str().as_bytes(), quote.text.as_bytes()]);
        Hash::of(parts.chain(quotes).chain(sources.iter().map(|source| source.0.as_slice())))
    }
}

impl SummaryRecord {
    /// A summary whose sources have these identities.
    pub fn of(summary: Summary, sources: &[Hash]) -> Self {
        Self { summary, sources: sources.iter().map(ToString::to_string).collect() }
    }

    /// Whether its numbers can be: a file may contain any.
    pub fn is_possible(&self) -> bool {
        let is_used = |usage: &Value| numbers(usage).all(|number| (0.0..=MOST_USED).contains(&number));
        (0..=LATEST).contains(&self.created_at) && self.usage.as_ref().is_none_or(is_used)
    }
}

/// The numbers in a report of usage.
fn numbers(usage: &Value) -> Box<dyn Iterator<Item = f64> + '_> {
    match usage {
        Value::Object(fields) => Box::new(fields.values().flat_map(numbers)),
        usage => Box::new(usage.as_f64().into_iter()),
    }
}

/// Reads a list of summaries. One that can't be is left out, and does not cost the others.
fn possible<'de, D: Deserializer<'de>>(list: D) -> Result<Vec<SummaryRecord>, D::Error> {
    let list: Vec<Box<RawValue>> = lenient(list)?;
    let records = list.iter().filter_map(|json| serde_json::from_str(json.get()).ok());
    Ok(records.filter(SummaryRecord::is_possible).collect())
}

/// Reads a field; one of another type counts as missing.
fn lenient<'de, D: Deserializer<'de>, T: DeserializeOwned + Default>(field: D) -> Result<T, D::Error> {
    let json = Box::<RawValue>::deserialize(field)?;
    Ok(serde_json::from_str(json.get()).unwrap_or_default())
}

/// The `details` of a compaction entry of ours, or of our summary of an abandoned branch.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CompactionDetails {
    /// The format version; its presence also identifies an entry as ours.
    pub lcm: u32,
    /// Summaries that no earlier compaction on this branch carries, sources before the summaries condensed
    /// from them.
    #[serde(deserialize_with = "possible")]
    pub summaries: Vec<SummaryRecord>,
    /// The frontier in the block, in order: summary ids.
    #[serde(default, deserialize_with = "lenient")]
    pub frontier: Vec<String>,
    /// The number of messages the block covers.
    #[serde(default, deserialize_with = "lenient")]
    pub covered: usize,
    /// Files only read, under Pi's name for the list.
    #[serde(default, deserialize_with = "lenient")]
    pub read_files: Vec<String>,
    /// Files changed, under Pi's name for the list.
    #[serde(default, deserialize_with = "lenient")]
    pub modified_files: Vec<String>,
    /// The last entry of the summarized branch, if that is not the entry's own.
    #[serde(default, deserialize_with = "lenient", skip_serializing_if = "Option::is_none")]
    pub leaf: Option<String>,
}

impl CompactionDetails {
    /// The version this engine writes; a higher one is ignored.
    pub const FORMAT: u32 = 1;

    /// The details of our summary of an abandoned branch, from its entry's JSON; `None` if it is not ours.
    pub fn of_left_branch(entry: &str) -> Option<Self> {
        Self::parse(Fields::of(entry)?.json("details")?).filter(|details| details.leaf.is_some())
    }

    /// Parses the details of a compaction entry; `None` if they are not ours or of a newer format.
    pub fn parse(json: &str) -> Option<Self> {
        serde_json::from_str::<Self>(json).ok().filter(|details| details.lcm == Self::FORMAT)
    }
}

/// The last line of an exported session: summaries that no compaction in it carries. Pi has always ignored
/// every line of type `session` except the first.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Supplement {
    #[serde(rename = "type")]
    kind: String,
    pub id: String,
    /// The format version, that of [`CompactionDetails`].
    pub lcm: u32,
    /// Sources before the summaries condensed from them; a leaf summary refers to its messages by their
    /// lineages.
    #[serde(deserialize_with = "possible")]
    pub summaries: Vec<SummaryRecord>,
}

impl Supplement {
    /// The supplement of a session.
    pub fn new(session_id: &str, summaries: Vec<SummaryRecord>) -> Self {
        Self { kind: "session".into(), id: session_id.into(), lcm: CompactionDetails::FORMAT, summaries }
    }

    /// Parses a line; `None` if it is another kind, or of a newer format.
    pub fn parse(json: &str) -> Option<Self> {
        let line = serde_json::from_str::<Self>(json).ok();
        line.filter(|line| line.lcm == CompactionDetails::FORMAT && line.kind == "session")
    }
}
