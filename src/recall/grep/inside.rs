//! Inside one text: which of its lines have what is looked for, and how much of it.

use super::query::{Mark, Query};
use super::snippet::{Snippet, sightings};

/// What one word or phrase weighs at most: a line with two words is not to be outdone by what merely stands together.
const HEAVIEST: usize = 30;

/// A query that lines are held against.
pub(in crate::recall) struct Lookup {
    marks: Vec<Mark>,
}

impl Lookup {
    pub fn new(query: &str) -> Self {
        Self { marks: Query::parse(query).marks }
    }

    /// How much of what is looked for stands in `line`; zero if nothing does.
    pub fn weigh(&self, line: &str) -> usize {
        let mut seen = vec![false; self.marks.len()];
        for sighting in sightings(line, &(0..line.len()), &self.marks) {
            seen[sighting.mark] = true;
        }
        let weights = self.marks.iter().zip(seen).filter(|(_, seen)| *seen);
        weights.map(|(mark, _)| mark.weight.min(HEAVIEST)).sum()
    }

    /// The `width` characters of `line` that have most of it.
    pub fn show(&self, line: &str, width: usize) -> Snippet {
        Snippet::best(line, &(0..line.len()), &self.marks, width)
    }
}

impl Snippet {
    /// The beginning of a line that matched nothing.
    pub(in crate::recall) fn plain(line: &str, width: usize) -> Self {
        Self::around(line, &(0..0), Vec::new(), width)
    }
}
