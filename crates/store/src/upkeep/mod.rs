//! Upkeep: audits, backups, purges and reading other databases.
//!
//! Only this module removes messages, and only at the user's request.

pub(super) mod audit;
pub(super) mod backup;
pub(super) mod copies;
pub(super) mod holding;
pub(super) mod old;
pub(crate) mod pages;
pub(super) mod purge;
pub(super) mod purge_plan;
pub(super) mod purged;
pub(super) mod rebase;
pub(super) mod records;
pub(super) mod vacuum;

crate::view::handles!(upkeep: "What audits, backups and purges read." Upkeep, "Purges, and records backups." UpkeepWriter);
