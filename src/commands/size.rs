//! Reports the store's size by part, and warns once when it exceeds the budget.

use crate::error::Result;
use crate::store::{Place, Sizes, Store};
use crate::text::{grouped, megabytes};

const MEGABYTE: u64 = 1_000_000;
/// The warning repeats when the store has grown by this share since: 1/n.
const AGAIN: u64 = 10;

/// `0.4 MB messages (0.9 MB unpacked), 0.3 MB full text, …`
pub(super) fn parts(sizes: &Sizes) -> String {
    let named = [
        ("full text", sizes.full_text),
        ("entries", sizes.entries),
        ("identities", sizes.identities),
        ("summaries", sizes.summaries),
        ("other", sizes.other),
        ("free", sizes.free),
    ];
    let mut parts =
        vec![format!("{} messages ({} unpacked)", megabytes(sizes.messages), megabytes(sizes.unpacked))];
    parts.extend(
        named
            .iter()
            .filter(|(_, bytes)| *bytes > 0)
            .map(|(name, bytes)| format!("{} {name}", megabytes(*bytes))),
    );
    parts.join(", ")
}

/// The warning for a store of `bytes`, if that exceeds the budget and was not reported before.
pub async fn warning(store: &Store, bytes: u64, budget_megabytes: usize) -> Result<Option<String>> {
    let budget = u64::try_from(budget_megabytes).unwrap_or(u64::MAX).saturating_mul(MEGABYTE);
    let Place::File(path) = store.place() else { return Ok(None) };
    if bytes <= budget {
        return Ok(None);
    }
    let warned_at = store.read(|view| view.database().size_warned_at()).await?;
    if warned_at.is_some_and(|at| bytes < at.saturating_add(at / AGAIN)) {
        return Ok(None);
    }
    store.write(move |batch| batch.database().note_size_warned_at(bytes)).await?;
    Ok(Some(format!(
        "the history of this project takes {}, more than the {} MB of the setting sizeBudgetMegabytes; nothing is deleted \
         automatically: raise the setting, or quit Pi and move {} away (/lcm import with its path restores it)",
        megabytes(bytes),
        grouped(budget_megabytes),
        path.display()
    )))
}
