//! Claims: which process is making which summary. Summaries cost money, and several processes may work on one
//! history.

use rusqlite::{Connection, params};

use crate::columns::Queries as _;
use crate::{Summaries, SummaryWriter};
use lcm_model::error::Result;
use lcm_model::ids::Hash;
use lcm_model::text;

/// The longest claim, in ms. One that ends later was made with a clock that was ahead.
const LONGEST: i64 = 60_000;

impl Summaries<'_> {
    /// Whether anyone but `owner` holds a claim on `span` that is valid at `now`, in ms.
    pub fn is_claimed(&self, span: Hash, owner: &str, now: i64) -> Result<bool> {
        self.one(
            "SELECT EXISTS (SELECT 1 FROM claims WHERE span = ?1 AND owner <> ?2 AND until > ?3 AND until <= ?4)",
            params![span, owner, now, now + LONGEST],
        )
    }
}

impl SummaryWriter<'_> {
    /// Claims each of `spans` for `owner` until `until`, at most a minute ahead, unless another holds it at
    /// `now`. Returns which were obtained. Times are in ms.
    pub fn claim(&self, spans: &[Hash], owner: &str, now: i64, until: i64) -> Result<Vec<bool>> {
        end(self.connection, now)?;
        let claim = |span: &Hash| {
            let sql = "INSERT INTO claims (span, owner, until) VALUES (?1, ?2, ?3)
                       ON CONFLICT (span) DO UPDATE SET until = excluded.until WHERE owner = excluded.owner";
            self.changes_any(sql, params![span, owner, until])
        };
        spans.iter().map(claim).collect()
    }

    /// Extends all claims of `owner` until `until`, in ms.
    pub fn renew_claims(&self, owner: &str, until: i64) -> Result<()> {
        self.change("UPDATE claims SET until = ?2 WHERE owner = ?1", params![owner, until])
    }

    /// Releases a claim of `owner`.
    pub fn release(&self, span: Hash, owner: &str) -> Result<()> {
        self.change("DELETE FROM claims WHERE span = ?1 AND owner = ?2", params![span, owner])
    }
}

/// Removes expired claims. A process at work during a purge may have claimed a span afterwards, whose name is
/// a hash of purged text.
pub(crate) fn end_expired(connection: &Connection) -> Result<()> {
    end(connection, text::now())
}

fn end(connection: &Connection, now: i64) -> Result<()> {
    connection.change("DELETE FROM claims WHERE until <= ?1 OR until > ?2", [now, now + LONGEST])
}
