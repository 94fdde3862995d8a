//! Upkeep: audits, backups, repairs, purges, and what another database holds.
//!
//! The only room in which a message may be removed, on the user's word.

pub(super) mod adopt;
pub(super) mod audit;
pub(super) mod audit_index;
pub(super) mod backup;
pub(super) mod copies;
pub(super) mod purge;
pub(super) mod purge_plan;
pub(super) mod purged;
pub(super) mod rebase;
pub(super) mod repair;
pub(super) mod salvage;
pub(super) mod vacuum;

crate::store::view::handles!("What audits, backups and purges look at." Upkeep, "Repairs, purges, and notes backups." UpkeepWriter);
