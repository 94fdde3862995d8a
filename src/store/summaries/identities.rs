//! The identities of a summary's sources.

use crate::dag::Sources;
use crate::error::Result;
use crate::ids::Hash;
use crate::store::Summaries;
use crate::store::columns::{Queries as _, reading};

impl Summaries<'_> {
    /// The identities of these sources.
    pub fn identities(&self, sources: &Sources) -> Result<Vec<Hash>> {
        let (sql, rows): (_, Vec<i64>) = match sources {
            Sources::Messages(messages) => {
                ("SELECT lineage FROM messages WHERE id = ?1", messages.iter().map(|id| id.0).collect())
            }
            Sources::Summaries(summaries) => (
                "SELECT hash AS lineage FROM summaries WHERE id = ?1",
                summaries.iter().map(|id| id.0).collect(),
            ),
        };
        if let (Sources::Messages(_), [first, .., last]) = (sources, rows.as_slice())
            && rows.windows(2).all(|pair| pair[0] + 1 == pair[1])
        {
            let found = self.lineages(*first, *last)?;
            if found.len() == rows.len() {
                return Ok(found);
            }
        }
        let mut query = self.connection.prepare_cached(sql)?;
        rows.into_iter().map(|id| query.query_row([id], |row| row.get("lineage")).map_err(reading)).collect()
    }

    /// The same for messages in consecutive rows, which most are.
    fn lineages(&self, first: i64, last: i64) -> Result<Vec<Hash>> {
        self.connection.all(
            "SELECT lineage FROM messages WHERE id BETWEEN ?1 AND ?2 ORDER BY id",
            [first, last],
            |row| row.get("lineage"),
        )
    }
}
