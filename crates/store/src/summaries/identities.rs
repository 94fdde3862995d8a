//! The identities of a summary's sources.

use rusqlite::params;

use crate::Summaries;
use crate::columns::Queries as _;
use lcm_model::dag::Sources;
use lcm_model::error::Result;
use lcm_model::ids::Hash;

impl Summaries<'_> {
    /// The identities of these sources.
    pub fn identities(&self, sources: &Sources) -> Result<Vec<Hash>> {
        let messages = match sources {
            Sources::Messages(messages) => messages,
            Sources::Summaries(summaries) => {
                let hash = |id| self.one("SELECT hash FROM summaries WHERE id = ?1", [id]);
                return summaries.iter().map(hash).collect();
            }
        };
        // Most are in consecutive rows.
        if let [first, .., last] = messages.as_slice()
            && messages.windows(2).all(|pair| pair[0].0 + 1 == pair[1].0)
        {
            let sql = "SELECT lineage FROM messages WHERE id BETWEEN ?1 AND ?2 ORDER BY id";
            let found: Vec<Hash> = self.all(sql, [first, last])?;
            if found.len() == messages.len() {
                return Ok(found);
            }
        }
        let lineage = |id| self.one("SELECT lineage FROM messages WHERE id = ?1", [id]);
        messages.iter().map(lineage).collect()
    }

    /// The sources with these identities, of a summary of this depth; `None` if one is missing, or there are none.
    pub fn named(&self, depth: u32, names: &[Hash]) -> Result<Option<Sources>> {
        let mut last = None;
        let message = |name: &Hash| {
            // Most are in consecutive rows, and looking one up takes a search in each run of rows.
            let sql = "SELECT id FROM messages WHERE id = ?1 + 1 AND lineage = ?2";
            let next = self.first(sql, params![last, name])?;
            last = next.map_or_else(|| self.messages().message_by_lineage(*name), |next| Ok(Some(next)))?;
            Ok(last)
        };
        let summary = |name: &Hash| self.summary_by_hash(*name);
        Ok(match depth {
            _ if names.is_empty() => None,
            0 => names.iter().map(message).collect::<Result<Option<_>>>()?.map(Sources::Messages),
            _ => names.iter().map(summary).collect::<Result<Option<_>>>()?.map(Sources::Summaries),
        })
    }
}
