//! Weighs the lines of one text by how much of a query they contain.

use super::query::{Mark, Query};
use super::snippet::{Snippet, sightings};

/// The most that one word or phrase weighs, so that a line with two words is not outweighed by one with a
/// phrase.
const HEAVIEST: usize = 30;

/// A query to compare lines with.
pub struct Lookup {
    marks: Vec<Mark>,
}

impl Lookup {
    pub fn new(query: &str) -> Self {
        Self { marks: Query::parse(query).marks }
    }

    /// How much of the query `line` contains; 0 if nothing.
    pub fn weigh(&self, line: &str) -> usize {
        let mut seen = vec![false; self.marks.len()];
        for sighting in sightings(line, &(0..line.len()), &self.marks) {
            seen[sighting.mark] = true;
        }
        let weights = self.marks.iter().zip(seen).filter(|(_, seen)| *seen);
        weights.map(|(mark, _)| mark.weight.min(HEAVIEST)).sum()
    }

    /// The best `width` characters of `line`.
    pub fn show(&self, line: &str, width: usize) -> Snippet {
        Snippet::best(line, &(0..line.len()), &self.marks, width)
    }
}

impl Snippet {
    /// The beginning of a line that did not match.
    pub fn plain(line: &str, width: usize) -> Self {
        Self::around(line, &(0..0), Vec::new(), width)
    }
}
