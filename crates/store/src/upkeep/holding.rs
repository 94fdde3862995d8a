//! Finds what holds a text, wherever it is stored: in what search reads and in what it ignores.

use std::collections::{BTreeMap, BTreeSet};

use super::purge_plan::PurgePlan;
use crate::Upkeep;
use crate::columns::Queries as _;
use lcm_model::error::Result;
use lcm_model::ids::{EntryId, MessageId, SummaryId};
use lcm_model::{Message, Needles, Part, each_string};

/// The fewest characters of a string that tells messages apart, and the most such strings that are looked for.
const LONG: usize = 20;
const MOST: usize = 32;

/// What holds a text.
#[derive(Default)]
pub(crate) struct Holding {
    /// How many places of each kind.
    pub places: BTreeMap<&'static str, usize>,
    /// Messages; for an edited rendition its original.
    pub messages: BTreeSet<MessageId>,
    pub summaries: BTreeSet<SummaryId>,
    /// Compactions of others that list a file named so.
    pub lists: BTreeSet<EntryId>,
}

impl Upkeep<'_> {
    /// Everything that holds one of these texts.
    pub(crate) fn holding(&self, needles: &Needles) -> Result<Holding> {
        let mut holding = Holding::default();
        let rows: Vec<(MessageId, Option<MessageId>)> = self.all(
            "SELECT id, iif(kind = 3, parent_id, NULL) FROM messages WHERE kind IN (0, 1, 2, 3) ORDER BY id",
            [],
        )?;
        for (id, original) in rows {
            // An unreadable one is the doctor's task.
            let Ok(json) = self.messages().json_of(id) else { continue };
            if needles.are_held(&json) {
                let place = original.map_or_else(|| needles.place(&json), |_| "edited version");
                *holding.places.entry(place).or_default() += 1;
                holding.messages.insert(original.unwrap_or(id));
            }
        }
        for id in self.summary_rows()? {
            let Ok(summary) = self.summaries().summary(id) else { continue };
            let quotes = summary.quotes.iter().map(|quote| quote.text.as_str());
            if quotes.chain([summary.text.as_str()]).any(|text| needles.are_in(text)) {
                *holding.places.entry("summary").or_default() += 1;
                holding.summaries.insert(id);
            }
        }
        let lists: Vec<(EntryId, String)> =
            self.all("SELECT id, files FROM entries WHERE files IS NOT NULL", [])?;
        for (id, _) in lists.into_iter().filter(|(_, files)| needles.are_held(files)) {
            *holding.places.entry("list of files").or_default() += 1;
            holding.lists.insert(id);
        }
        Ok(holding)
    }

    /// Long strings of these messages, such as keys, by which other copies are found.
    pub fn long_strings(&self, messages: &BTreeSet<MessageId>) -> Needles {
        let mut found = BTreeSet::new();
        // A time, as in 2026-11-20T09:30:00.000Z, has no other letters.
        let tells = |c: char| c.is_alphabetic() && !"TZ".contains(c);
        let is_long = |word: &&str| {
            word.chars().count() >= LONG
                && word.contains(|c: char| c.is_ascii_digit())
                && word.contains(tells)
        };
        for id in messages {
            let Ok(json) = self.messages().json_of(*id) else { continue };
            let mut split = |text: &str| {
                let words = text.split(|c: char| c.is_whitespace() || "\"'`,;()[]{}<>=".contains(c));
                found.extend(words.filter(is_long).map(ToOwned::to_owned));
            };
            // Its record has ids that others have, too.
            for part in Message::parse(&json).parts {
                match part {
                    Part::Text(text) | Part::Thinking(text) => split(&text),
                    Part::ToolCall { arguments, .. } => each_string(&arguments, &mut split),
                    Part::Image { .. } => {}
                }
            }
        }
        Needles::of(found.into_iter().take(MOST))
    }

    /// The short ids of what else holds one of these texts, besides what a plan removes.
    pub fn also_holding(&self, needles: &Needles, plan: &PurgePlan) -> Result<Vec<String>> {
        if needles.is_empty() {
            return Ok(Vec::new());
        }
        let Holding { messages, summaries, .. } = self.holding(needles)?;
        let messages = messages
            .difference(&plan.messages)
            .map(|id| self.messages().message(*id).map(|message| message.lineage.message_handle()));
        let summaries = summaries
            .difference(&plan.summaries)
            .map(|id| self.summaries().summary(*id).map(|summary| summary.hash.summary_handle()));
        messages.chain(summaries).collect()
    }
}
