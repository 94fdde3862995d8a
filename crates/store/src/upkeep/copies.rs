//! Finds messages that only repeat others: our tools' answers, also to scripts, and our summaries of abandoned branches. A
//! purge also removes those that repeat a purged message or name it by its short id, which is the start of a
//! hash of its text.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::ops::Bound;

use memchr::memmem;

use super::purge_plan::{PurgePlan, Tombstone};
use crate::Upkeep;
use crate::columns::Queries as _;
use lcm_model::dag::Sources;
use lcm_model::error::Result;
use lcm_model::ids::{Hash, MessageId, SummaryId};
use lcm_model::text::folded;
use lcm_model::{CompactionDetails, Message, Part, SCRIPT_TOOL};

/// The fewest digits of a short id.
const FEWEST: usize = 6;
/// The digits of a short id that are shown.
const DIGITS: usize = 10;
/// The first bytes of a message, with whitespace folded, that distinguish it from others.
pub(super) const BEGINNING: usize = 32;
/// The bytes that are compared in another agent's record: many results of tools begin alike.
const LONGER: usize = 128;

/// Occurs in the summary of an abandoned branch.
const LEFT: &str = "\"branch_summary\"";

/// A message that repeats others.
pub(crate) struct Copy {
    pub id: MessageId,
    pub names: BTreeSet<String>,
    /// What it repeats others in, with whitespace folded.
    pub text: String,
}

/// What identifies purged messages in a copy.
pub(crate) struct Traces {
    /// What begins with each of these: more of the text, which distinguishes the messages of other agents.
    beginnings: HashMap<Vec<u8>, HashSet<Vec<u8>>>,
    names: BTreeSet<String>,
}

impl Copy {
    fn of(id: MessageId, json: &str) -> Option<Self> {
        let message = Message::parse(json);
        let is_ours = message.is_recall_echo() || CompactionDetails::of_left_branch(json).is_some();
        let names = is_ours.then(|| names_held(json).collect())?;
        Some(Self { id, names, text: folded(&message.readable()) })
    }

    /// Whether it repeats anything of `traces`.
    pub(crate) fn repeats(&self, traces: &Traces) -> bool {
        self.names.iter().any(|name| is_named(name, &traces.names))
            || traces.are_in(self.text.as_bytes(), |_, _| true)
    }
}

impl Traces {
    /// Replaces the short ids with those purged so far.
    pub(crate) fn naming(self, names: BTreeSet<String>) -> Self {
        Self { names, ..self }
    }

    /// Whether the text of a record has more of a purged message, and what its messages show does not. Whitespace is folded in both.
    pub(crate) fn are_told(&self, text: &str, own: &str) -> bool {
        let (text, own) = (text.as_bytes(), own.as_bytes());
        self.are_in(text, |at, longer| {
            let is_in_it = |said: &Vec<u8>| text[at..].starts_with(said) && memmem::find(own, said).is_none();
            longer.iter().any(is_in_it)
        })
    }

    /// Whether a text has a beginning at a place that `is_it` accepts, given what else begins with it.
    fn are_in(&self, text: &[u8], is_it: impl Fn(usize, &HashSet<Vec<u8>>) -> bool) -> bool {
        let has = |(at, part)| self.beginnings.get(part).is_some_and(|longer| is_it(at, longer));
        text.windows(BEGINNING).enumerate().any(has)
    }
}

impl Upkeep<'_> {
    /// All copies.
    pub(crate) fn copies(&self) -> Result<Vec<Copy>> {
        let ids: Vec<MessageId> = self.all(
            "SELECT id FROM messages
              WHERE kind IN (0, 1, 2) AND (tool_name GLOB 'lcm_*' OR tool_name = 'codemode' OR role = 'branchSummary')",
            [],
        )?;
        // Unreadable messages count as repeating nothing.
        let read = |id| Copy::of(id, &self.messages().json_of(id).ok()?);
        Ok(ids.into_iter().filter_map(read).collect())
    }

    /// The other results of the scripts in these messages: Pi records there how each script called tools.
    pub(crate) fn results_of_scripts(&self, messages: &BTreeSet<MessageId>) -> Result<BTreeSet<MessageId>> {
        let read = |id: MessageId| self.messages().parsed(id).ok();
        let mut results: BTreeSet<MessageId> =
            self.all("SELECT id FROM messages WHERE kind IN (0, 1, 2) AND tool_name = ?1", [SCRIPT_TOOL])?;
        // Mostly no script has ever run, and none of the messages need be read.
        if results.is_empty() {
            return Ok(results);
        }
        let mut scripts: HashSet<String> = HashSet::new();
        for message in messages.iter().filter_map(|id| read(*id)) {
            scripts.extend(message.parts.into_iter().filter_map(|part| match part {
                Part::ToolCall { id, name, .. } if name == SCRIPT_TOOL => Some(id),
                _ => None,
            }));
        }
        let is_of_one = |result: Message| {
            !result.nested.is_empty() && result.tool_call_id.is_some_and(|call| scripts.contains(&call))
        };
        results.retain(|id| !messages.contains(id) && read(*id).is_some_and(is_of_one));
        Ok(results)
    }

    /// The beginnings of these messages and of their parts, except copies, which all begin alike.
    pub(crate) fn beginnings_of(&self, messages: &BTreeSet<MessageId>) -> Traces {
        let mut beginnings: HashMap<Vec<u8>, HashSet<Vec<u8>>> = HashMap::new();
        for id in messages {
            let Ok(json) = self.messages().json_of(*id) else { continue };
            let message = Message::parse(&json);
            if message.is_recall_echo() {
                continue;
            }
            let parts = message.parts.iter().filter_map(|part| match part {
                Part::Text(text) | Part::Thinking(text) => Some(folded(text)),
                _ => None,
            });
            let texts = parts.chain([folded(&message.readable())]);
            for text in texts.filter(|text| text.len() >= BEGINNING) {
                let text = &text.as_bytes()[..text.len().min(LONGER)];
                beginnings.entry(text[..BEGINNING].to_vec()).or_default().insert(text.to_vec());
            }
        }
        Traces { beginnings, names: BTreeSet::new() }
    }

    /// The short ids of everything a purge removes.
    pub(crate) fn names_of(&self, plan: &PurgePlan) -> Result<BTreeSet<String>> {
        let messages = plan.messages.iter().chain(&plan.renditions);
        self.names(messages.copied().collect(), plan.summaries.iter().copied().collect())
    }

    fn names(&self, messages: Vec<MessageId>, summaries: Vec<SummaryId>) -> Result<BTreeSet<String>> {
        let identities = |of| self.summaries().identities(&of);
        let (messages, summaries) =
            (identities(Sources::Messages(messages))?, identities(Sources::Summaries(summaries))?);
        let messages = messages.iter().map(Hash::message_handle);
        Ok(messages.chain(summaries.iter().map(Hash::summary_handle)).collect())
    }

    /// The remaining messages that mention a short id which the purge removes or changes.
    pub(crate) fn keeping_names(
        &self,
        plan: &PurgePlan,
        tombstones: &[Tombstone],
    ) -> Result<BTreeSet<MessageId>> {
        let mut below: HashSet<MessageId> = HashSet::new();
        for tombstone in tombstones {
            if plan.messages.contains(&tombstone.id) || tombstone.parent.is_some_and(|id| below.contains(&id))
            {
                below.insert(tombstone.id);
            }
        }
        let mut summaries: HashSet<SummaryId> = plan.summaries.iter().copied().collect();
        let all: Vec<SummaryId> = self.all("SELECT id FROM summaries ORDER BY depth, id", [])?;
        for id in all {
            let follows = match self.summaries().sources(id)? {
                Sources::Messages(sources) => sources.iter().any(|source| below.contains(source)),
                Sources::Summaries(sources) => sources.iter().any(|source| summaries.contains(source)),
            };
            if follows {
                summaries.insert(id);
            }
        }
        // Those of the renditions too, which are below their originals.
        let names = self.names(below.into_iter().collect(), summaries.into_iter().collect())?;
        let keeps = |id: &MessageId| {
            let json = self.messages().json_of(*id).unwrap_or_default();
            names_held(&json).any(|name| is_named(&name, &names))
        };
        let mut stay: Vec<MessageId> = self.all("SELECT id FROM messages WHERE kind IN (0, 1, 2)", [])?;
        stay.retain(|id| !plan.messages.contains(id) && keeps(id));
        Ok(stay.into_iter().collect())
    }
}

/// The short ids in a message: in its text, and of the summaries that our summary of an abandoned branch
/// carries.
fn names_held(json: &str) -> impl Iterator<Item = String> {
    let details = json.contains(LEFT).then(|| CompactionDetails::of_left_branch(json)).flatten();
    let carried = details.into_iter().flat_map(|details| {
        let ids = details.summaries.iter().map(|summary| summary.hash.to_string()).chain(details.frontier);
        ids.filter_map(|id| Some(format!("s-{}", id.get(..DIGITS)?))).collect::<Vec<_>>()
    });
    names_in(json).chain(carried)
}

/// Everything in a text that looks like a short id.
fn names_in(text: &str) -> impl Iterator<Item = String> {
    text.match_indices('-').filter_map(|(dash, _)| {
        let start = dash.checked_sub(1)?;
        let is_kind = matches!(text.as_bytes()[start], b'm' | b's' | b'M' | b'S');
        let digits =
            text.as_bytes()[dash + 1..].iter().take(DIGITS).take_while(|byte| byte.is_ascii_hexdigit());
        let end = dash + 1 + if is_kind { digits.count() } else { 0 };
        (end > dash + FEWEST).then(|| text[start..end].to_ascii_lowercase())
    })
}

fn is_named(name: &str, names: &BTreeSet<String>) -> bool {
    let mut from = names.range::<str, _>((Bound::Included(name), Bound::Unbounded));
    from.next().is_some_and(|known| known.starts_with(name))
}
