//! The findings of a check as data; the command words them.

use crate::error::Result;

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
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The problem, worded to follow the names of those affected.
    pub what: &'static str,
    pub count: usize,
    /// The first few affected.
    pub named: Vec<String>,
    pub remedy: Remedy,
}

/// A remedy for a problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// [`super::Doctor::fix`].
    Fix,
    /// Rebuilding the database from the session files.
    Rebuild,
    /// None needed; it is only reported.
    None,
}

/// How many occurrences of a problem are named.
const NAMED: usize = 3;

impl Check {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, ..Self::default() }
    }

    /// Runs a part of it; what can't be read ends only that.
    pub(super) fn run(&mut self, part: impl FnOnce(&mut Self) -> Result<()>) {
        if let Err(error) = part(self) {
            self.unfinished.get_or_insert(error.to_string());
        }
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

    /// Session files have what these findings lack.
    pub(super) fn can_be_fixed(&mut self, findings: &[&str]) {
        for finding in self.findings.iter_mut().filter(|finding| findings.contains(&finding.what)) {
            finding.remedy = Remedy::Fix;
        }
    }

    pub(super) fn find(&mut self, remedy: Remedy, what: &'static str, which: impl FnOnce() -> String) {
        let at = self.findings.iter().position(|finding| finding.what == what).unwrap_or(self.findings.len());
        if at == self.findings.len() {
            self.findings.push(Finding { what, count: 0, named: Vec::new(), remedy });
        }
        let finding = &mut self.findings[at];
        finding.count += 1;
        if finding.named.len() < NAMED {
            finding.named.push(which());
        }
    }
}

/// The results of all checks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The checks, in the order in which they ran.
    pub checks: Vec<Check>,
}

impl Report {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.checks.iter().all(Check::is_sound)
    }

    /// Whether any problem has this remedy.
    pub fn calls_for(&self, remedy: Remedy) -> bool {
        self.checks.iter().flat_map(|check| &check.findings).any(|finding| finding.remedy == remedy)
    }
}
