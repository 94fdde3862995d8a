//! Claims: which process is making which summary. Summaries cost money, and several processes may work on one
//! history.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::{Error, Result};
use crate::ids::Hash;
use crate::store::columns::reading;
use crate::store::{Summaries, SummaryWriter};
use crate::text;

/// The longest claim, in ms. One that ends later was made with a clock that was ahead.
const LONGEST: i64 = 60_000;

impl Summaries<'_> {
    /// Whether anyone but `owner` holds a claim on `span` that is valid at `now`, in ms.
    ///
    /// # Errors
    /// When the database can't be read.
    pub fn is_claimed(&self, span: Hash, owner: &str, now: i64) -> Result<bool> {
        self.connection
            .prepare_cached(
                "SELECT 1 FROM claims WHERE span = ?1 AND owner <> ?2 AND until > ?3 AND until <= ?4",
            )
            .and_then(|mut query| {
                query.query_row(params![span.0, owner, now, now + LONGEST], |_| Ok(())).optional()
            })
            .map(|row| row.is_some())
            .map_err(reading)
    }
}

impl SummaryWriter<'_> {
    /// Claims each of `spans` for `owner` until `until`, at most a minute ahead, unless another holds it at
    /// `now`. Returns which were obtained. Times are in ms.
    ///
    /// # Errors
    /// When the database can't be written; so for all methods here.
    pub fn claim(&self, spans: &[Hash], owner: &str, now: i64, until: i64) -> Result<Vec<bool>> {
        end(self.connection, now).map_err(claiming)?;
        let claim = |span: &Hash| {
            let sql = "INSERT INTO claims (span, owner, until) VALUES (?1, ?2, ?3)
                       ON CONFLICT (span) DO UPDATE SET until = excluded.until WHERE owner = excluded.owner";
            self.execute(sql, params![span.0, owner, until]).map(|rows| rows > 0)
        };
        spans.iter().map(claim).collect()
    }

    /// Extends all claims of `owner` until `until`, in ms.
    pub fn renew_claims(&self, owner: &str, until: i64) -> Result<()> {
        self.execute("UPDATE claims SET until = ?2 WHERE owner = ?1", params![owner, until]).map(drop)
    }

    /// Releases a claim of `owner`.
    pub fn release(&self, span: Hash, owner: &str) -> Result<()> {
        self.execute("DELETE FROM claims WHERE span = ?1 AND owner = ?2", params![span.0, owner]).map(drop)
    }

    fn execute(&self, sql: &str, values: &[&dyn rusqlite::ToSql]) -> Result<usize> {
        self.connection
            .prepare_cached(sql)
            .and_then(|mut statement| statement.execute(values))
            .map_err(claiming)
    }
}

fn claiming(error: rusqlite::Error) -> Error {
    Error::storing("failed to record running summaries in the history store", error)
}

/// Removes expired claims. A process at work during a purge may have claimed a span afterwards, whose name is
/// a hash of purged text.
pub(in crate::store) fn end_expired(connection: &Connection) -> rusqlite::Result<()> {
    end(connection, text::now())
}

fn end(connection: &Connection, now: i64) -> rusqlite::Result<()> {
    connection
        .prepare_cached("DELETE FROM claims WHERE until <= ?1 OR until > ?2")?
        .execute(params![now, now + LONGEST])
        .map(drop)
}
