//! The findings of a check as data; the command words them.

use serde::Serialize;

use lcm_model::error::Result;

/// One of the checks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Check {
    pub name: &'static str,
    /// What was checked: counts, each with a noun in the singular.
    pub seen: Vec<(usize, &'static str)>,
    pub findings: Vec<Finding>,
    /// Notable facts that are not problems.
    pub notes: Vec<String>,
    /// Why the check could not be finished.
    pub unfinished: Option<String>,
}

/// One kind of problem, with all its occurrences.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The problem, worded to follow the names of those affected.
    pub what: &'static str,
    pub count: usize,
    /// The first few affected.
    pub named: Vec<String>,
}

/// How many occurrences of a problem are named.
const NAMED: usize = 3;

impl Check {
    /// Runs a check; what can't be read ends only that.
    pub(super) fn of(name: &'static str, check: impl FnOnce(&mut Self) -> Result<()>) -> Self {
        let mut own = Self { name, ..Self::default() };
        own.unfinished = check(&mut own).err().map(|error| error.to_string());
        own
    }

    /// Whether nothing is wrong and everything was checked.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty() && self.unfinished.is_none()
    }

    /// Adds `n` to the count for `noun`.
    pub(super) fn saw(&mut self, n: usize, noun: &'static str) {
        match self.seen.iter_mut().find(|(_, known)| *known == noun) {
            Some((count, _)) => *count += n,
            None => self.seen.push((n, noun)),
        }
    }

    pub(super) fn find(&mut self, what: &'static str, which: impl FnOnce() -> String) {
        let at = self.findings.iter().position(|finding| finding.what == what).unwrap_or(self.findings.len());
        if at == self.findings.len() {
            self.findings.push(Finding { what, count: 0, named: Vec::new() });
        }
        let finding = &mut self.findings[at];
        finding.count += 1;
        if finding.named.len() < NAMED {
            finding.named.push(which());
        }
    }
}
