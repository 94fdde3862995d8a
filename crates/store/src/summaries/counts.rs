//! Counts summaries by session and depth, and reads what their model calls used.

use rusqlite::named_params;
use serde_json::Value;

use crate::Summaries;
use crate::columns::{Queries as _, from_row};
use crate::summaries::extras::Extras;
use crate::summaries::spans::IS_IN_SESSION;
use lcm_model::error::Result;
use lcm_model::ids::ConversationId;

/// The counts of one session.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Messages it shows on any branch.
    pub messages: usize,
    /// Summaries of its messages.
    pub summaries: usize,
    pub degraded: usize,
    pub depth: u32,
}

/// The summaries of one depth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthCount {
    pub depth: u32,
    pub summaries: usize,
    pub degraded: usize,
}

from_row!(DepthCount { depth, summaries, degraded });

impl Totals {
    /// The totals of these depths, of a session with so many messages.
    pub fn of(messages: usize, depths: &[DepthCount]) -> Self {
        Self {
            messages,
            summaries: depths.iter().map(|depth| depth.summaries).sum(),
            degraded: depths.iter().map(|depth| depth.degraded).sum(),
            depth: depths.last().map_or(0, |depth| depth.depth),
        }
    }
}

impl Summaries<'_> {
    /// Counts of one session.
    pub fn totals(&self, conversation: ConversationId) -> Result<Totals> {
        let messages = self.messages().said_in(conversation)?;
        Ok(Totals::of(messages, &self.depths(conversation)?))
    }

    /// The number of a session's summaries at each depth, and how many are degraded; depth 0 first.
    pub fn depths(&self, conversation: ConversationId) -> Result<Vec<DepthCount>> {
        // Only the summaries that begin with one of the session's rows.
        let Some((lowest, highest)) = self.messages().counts(conversation)?.rows else {
            return Ok(Vec::new());
        };
        self.all(
            &format!(
                "SELECT depth, count(*) AS summaries, sum(state = 'degraded') AS degraded
                   FROM summaries s INDEXED BY summaries_by_first_message
                  WHERE first_message BETWEEN :lowest AND :highest AND {IS_IN_SESSION}
                  GROUP BY depth ORDER BY depth"
            ),
            named_params! {":conversation": conversation, ":lowest": lowest, ":highest": highest},
        )
    }

    /// The usage of each summary's model calls, for one session or for all.
    pub fn usages(&self, conversation: Option<ConversationId>) -> Result<Vec<Value>> {
        let mut usages = Vec::new();
        self.each(
            &format!(
                "SELECT extras FROM summaries s
                  WHERE extras IS NOT NULL AND (:conversation IS NULL OR {IS_IN_SESSION})"
            ),
            named_params! {":conversation": conversation},
            |row| {
                usages.extend(Extras::from_sql(row.get(0)?).usage);
                Ok(())
            },
        )?;
        Ok(usages)
    }
}
