//! What a check found, as data: the words around it are the command's.

/// One of the things that are checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// What was looked at.
    pub name: &'static str,
    /// How many of what: a count and the noun in the singular.
    pub seen: Vec<(usize, &'static str)>,
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What is not wrong, but good to know.
    pub notes: Vec<String>,
    /// Why it could not be finished.
    pub unfinished: Option<String>,
}

/// One kind of trouble, wherever it was met.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// What is wrong, as the end of a sentence about those that are named.
    pub what: &'static str,
    /// How many have it.
    pub count: usize,
    /// The first few of them.
    pub named: Vec<String>,
    /// What helps.
    pub remedy: Remedy,
}

/// What helps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Remedy {
    /// [`super::Doctor::fix`].
    Fix,
    /// Only a database made anew from the session files.
    Anew,
    /// Nothing has to be done: it is told.
    None,
}

/// Those of one kind that are named.
const NAMED: usize = 3;

impl Check {
    pub(super) fn new(name: &'static str) -> Self {
        Self { name, seen: Vec::new(), findings: Vec::new(), notes: Vec::new(), unfinished: None }
    }

    /// Nothing is wrong, and all was looked at.
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty() && self.unfinished.is_none()
    }

    /// Counts `n` more of what `noun` names.
    pub(super) fn saw(&mut self, n: usize, noun: &'static str) {
        match self.seen.iter_mut().find(|(_, known)| *known == noun) {
            Some((count, _)) => *count += n,
            None => self.seen.push((n, noun)),
        }
    }

    pub(super) fn find(&mut self, remedy: Remedy, what: &'static str, which: impl FnOnce() -> String) {
        let at = match self.findings.iter().position(|finding| finding.what == what) {
            Some(at) => at,
            None => {
                self.findings.push(Finding { what, count: 0, named: Vec::new(), remedy });
                self.findings.len() - 1
            }
        };
        let finding = &mut self.findings[at];
        finding.count += 1;
        if finding.named.len() < NAMED {
            finding.named.push(which());
        }
    }
}

/// What the checks found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// Each check, in the order they were made.
    pub checks: Vec<Check>,
}

impl Report {
    /// Is everything as it must be?
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.checks.iter().all(Check::is_sound)
    }

    /// Does something help against what was found, and is it this?
    #[must_use]
    pub fn calls_for(&self, remedy: Remedy) -> bool {
        self.checks.iter().flat_map(|check| &check.findings).any(|finding| finding.remedy == remedy)
    }
}
