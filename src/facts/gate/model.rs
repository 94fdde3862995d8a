//! Estimates how likely the author of a summary wants to keep a candidate.
//!
//! This is a logistic regression: the sum of the weights of a candidate's features is positive if it is more
//! likely kept than not. The weights are fitted by Newton's method, one column after the other, to the
//! development sets of the tests. Positive examples are the candidates that name what a summary keeps or what
//! its author lists as lost; negative ones are absent from the summary and not listed. The squares of all
//! weights but the first are penalized with half their sum. A weight of 0 is not fitted: in cross-validation by
//! conversation, the feature did not lower the error. To fit again, print the features and whether a
//! candidate is an example, and round to one decimal.

use super::Kind;

/// What is known about a candidate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feature {
    /// True of all.
    Any,
    /// In the user's text; in the last.
    User,
    Last,
    /// In the model's text; in the last; marked as code there.
    Assistant,
    Concluding,
    Ticked,
    /// In an edit; defined by it; thrown by it as an error.
    Edit,
    Defined,
    Thrown,
    /// In another call; in output; in the last output.
    Call,
    Output,
    Closing,
    /// An error that is common in output.
    Daily,
    /// How many parts contain it, and how many candidates are in the part that has fewest, as logarithms.
    Often,
    Crowd,
    /// A name's shape: `max_age`, `E0308`, `order.total`.
    Compound,
    Mixed,
    Joined,
    /// A number's unit, or what it counts; below 10 without a unit.
    Unit,
    Counted,
    Small,
    /// A file without its folder.
    Bare,
    /// A clause that limits what may be done; that is a question; that starts its sentence.
    Limit,
    Question,
    Start,
}

use Feature::*;

/// The weights of each feature for files, names, numbers, clauses, and errors.
const WEIGHTS: &[(Feature, [f64; 5])] = &[
    (Any, [0.6, -2.1, -0.9, -1.9, 1.2]),
    (User, [0.0, 0.8, 2.0, 0.0, 0.0]),
    (Last, [1.3, 0.6, 0.0, 0.0, 0.0]),
    (Assistant, [0.0, 0.6, 1.6, 0.0, 1.7]),
    (Concluding, [0.0, 0.8, 0.0, 0.0, 0.0]),
    (Ticked, [0.0, 1.1, 0.0, 0.0, 0.0]),
    (Edit, [3.1, 0.0, 0.0, 0.0, 0.0]),
    (Defined, [0.0, 0.7, 0.0, 0.0, 0.0]),
    (Thrown, [0.0, 1.9, 0.0, 0.0, 0.0]),
    (Call, [-1.9, 0.0, 0.0, 0.0, 0.0]),
    (Output, [0.0, 0.0, -1.3, 0.0, 0.0]),
    (Closing, [0.0, 0.0, 0.9, 0.0, 0.0]),
    (Daily, [0.0, 0.0, 0.0, 0.0, -1.0]),
    (Often, [1.0, 0.8, 0.0, 0.0, 1.3]),
    (Crowd, [0.0, -0.7, -0.6, 0.0, -0.7]),
    (Compound, [0.0, 1.4, 0.0, 0.0, 0.0]),
    (Mixed, [0.0, 2.3, 0.0, 0.0, 0.0]),
    (Joined, [0.0, 0.8, 0.0, 0.0, 0.0]),
    (Unit, [0.0, 0.0, 1.5, 0.0, 0.0]),
    (Counted, [0.0, 0.0, 0.9, 0.0, 0.0]),
    (Small, [0.0, 0.0, -1.5, 0.0, 0.0]),
    (Bare, [-0.9, 0.0, 0.0, 0.0, 0.0]),
    (Limit, [0.0, 0.0, 0.0, 2.7, 0.0]),
    (Question, [0.0, 0.0, 0.0, -1.1, 0.0]),
    (Start, [0.0, 0.0, 0.0, 0.9, 0.0]),
];
/// The number of features.
const FEATURES: usize = Start as usize + 1;

/// The features of a candidate, mostly 0 or 1.
#[derive(Clone, Copy, Debug)]
pub(super) struct Features([f64; FEATURES]);

impl Default for Features {
    fn default() -> Self {
        let mut all = [0.0; FEATURES];
        all[Any as usize] = 1.0;
        Self(all)
    }
}

impl Features {
    pub(super) fn set(&mut self, feature: Feature, is_true: bool) {
        if is_true {
            self.0[feature as usize] = 1.0;
        }
    }

    /// Sets the logarithm of a count.
    pub(super) fn count(&mut self, feature: Feature, count: usize) {
        self.0[feature as usize] = f64::from(u32::try_from(count.max(1)).unwrap_or(u32::MAX)).ln();
    }

    pub(super) fn without(mut self, features: &[Feature]) -> Self {
        features.iter().for_each(|feature| self.0[*feature as usize] = 0.0);
        self
    }

    /// Adds what is known about the same candidate from elsewhere.
    pub(super) fn merge(&mut self, other: &Self) {
        for (mine, its) in self.0.iter_mut().zip(other.0) {
            *mine = mine.max(its);
        }
    }

    /// The sum of the weights.
    pub(super) fn score(&self, kind: Kind) -> f64 {
        WEIGHTS.iter().map(|(feature, weights)| self.0[*feature as usize] * weights[kind as usize]).sum()
    }
}
