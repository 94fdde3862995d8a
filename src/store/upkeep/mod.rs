//! Upkeep: audits, backups, repairs, purges and imports from other databases.
//!
//! Only this module removes messages, and only at the user's request.

pub(super) mod adopt;
pub(super) mod audit;
pub(super) mod audit_index;
pub(super) mod backup;
pub(super) mod copies;
pub(super) mod purge;
pub(super) mod purge_plan;
pub(super) mod purged;
pub(super) mod rebase;
pub(super) mod records;
pub(super) mod repair;
pub(super) mod salvage;
pub(super) mod vacuum;

crate::store::view::handles!("What audits, backups and purges read." Upkeep, "Repairs, purges and records backups." UpkeepWriter);
