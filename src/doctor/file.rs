//! Checks the database file: what SQLite reports, whose it is, and whether every referenced row exists.

use super::Findings;
use super::report::{Check, Remedy};
use crate::error::Result;
use crate::store::View;

pub(super) fn check(
    view: &View<'_>,
    check: &mut Check,
    index: &mut Check,
    found: &mut Findings,
) -> Result<()> {
    let facts = view.upkeep().file_facts()?;
    check.saw(usize::try_from(facts.version).unwrap_or_default(), "format");
    if !facts.ours {
        check.find(Remedy::Rebuild, "the file lacks this program's application id", || {
            "application_id".into()
        });
    }
    // A file that is only read keeps an older format.
    if !(1..=facts.current).contains(&facts.version) {
        check.find(Remedy::Rebuild, "the format differs from this version's", || {
            format!("{} and {}", facts.version, facts.current)
        });
    }
    let derived = view.upkeep().unreadable_derived();
    found.derived_is_damaged = !derived.is_empty();
    for name in derived {
        check.find(Remedy::Fix, "SQLite can't read what follows from the messages", || name.into());
    }
    // SQLite would stop there. A repair checks the rest.
    for line in if found.derived_is_damaged { Vec::new() } else { view.upkeep().integrity()? } {
        if line.contains("FTS5 table") || line.starts_with("fts5: ") {
            found.index_is_broken = true;
            index.find(Remedy::Fix, "SQLite says", || line);
        } else if line.contains("from index ") || line.contains("entries in index ") {
            found.reindex = true;
            check.find(Remedy::Fix, "SQLite reports about its index", || line);
        } else {
            found.file_is_damaged = true;
            check.find(Remedy::Rebuild, "SQLite says", || line);
        }
    }
    for (table, row, into) in view.upkeep().dangling()? {
        let row = row.map(|row| format!(" {row}")).unwrap_or_default();
        let name = || format!("{table}{row} to {into}");
        match (table.as_str(), into.as_str()) {
            // Other checks describe these better.
            ("messages" | "entries", "messages" | "entries") => {}
            // What is derived from messages can be rebuilt.
            ("carried" | "summary_sources" | "summaries", _) => {
                found.loose_ends = true;
                check.find(Remedy::Fix, "a row refers to a missing row", name);
            }
            _ => check.find(Remedy::Rebuild, "a row refers to a lost row", name),
        }
    }
    Ok(())
}
