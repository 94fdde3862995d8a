//! The files that messages read and change.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Files that tool calls read and modified.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// Read, and possibly modified too.
    pub read: BTreeSet<String>,
    pub modified: BTreeSet<String>,
}

impl Files {
    /// Adds what `other` touched.
    pub fn extend(&mut self, other: Self) {
        self.read.extend(other.read);
        self.modified.extend(other.modified);
    }

    /// The lists in the `details` of a compaction or a branch summary, in Pi's format.
    pub fn listed(details: &Value) -> Self {
        let list = |key: &str| -> BTreeSet<String> {
            let names = details[key].as_array().into_iter().flatten().filter_map(Value::as_str);
            names.map(ToOwned::to_owned).collect()
        };
        Self { read: list("readFiles"), modified: list("modifiedFiles") }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.read.is_empty() && self.modified.is_empty()
    }

    /// Files that were read but never modified, which is what Pi lists as read.
    pub fn only_read(&self) -> impl Iterator<Item = &String> {
        self.read.difference(&self.modified)
    }
}
