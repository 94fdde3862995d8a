//! What kind of message a query asks for: a decision, what one of the two who talk said, or, if it asks for
//! advice, the user's rules and preferences. Others that repeat the same words come after it.

use lcm_model::facts::{decisions, rules};
use lcm_model::{Pattern, pattern};

/// The weight of a decision.
const DECISION: f64 = 1.25;
/// The weight of a rule or preference of the user, which shares few words with the question it is about.
const RULE: f64 = 3.0;
/// The weight of a message of the one whose words are wanted.
const SAID: f64 = 2.0;

/// Words by which the user asks for what they said themselves.
const MINE: [&str; 3] = ["i", "my", "mine"];
/// Words that, after `you`, ask for what the model said, as `did` does before it.
const SAYING: [&str; 6] = ["advised", "gave", "recommended", "said", "suggested", "told"];

/// Words that ask for a decision.
const DECIDING: [&str; 7] = ["decide", "decided", "decision", "decisions", "agreed", "chose", "chosen"];

/// A preference of the user shows one of these, even in a question.
static PREFERRED: Pattern = pattern!(r"(?i)\bI(?:['’]d| would)? prefer\b|\bmy preference");

/// The messages that a query asks for.
pub(super) struct Intent {
    decision: bool,
    advice: bool,
    /// Whether the user said it, or the model did.
    of_user: Option<bool>,
}

impl Intent {
    /// What all `words` of a query, in lowercase, ask for.
    pub fn by(words: &[String]) -> Self {
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
        let asks_you = |pair: &[String]| match [pair[0].as_str(), pair[1].as_str()] {
            ["did", "you"] => true,
            ["you", saying] => SAYING.contains(&saying),
            _ => false,
        };
        // What did you tell me about my port? The model's words, though the user says `my`.
        let of_user = if words.windows(2).any(asks_you) { Some(false) } else { has(&MINE).then_some(true) };
        let advice = of_user != Some(false) && words.windows(2).any(asks_advice);
        Self { decision: has(&DECIDING), advice, of_user }
    }

    /// The weight of what the user says, or the model.
    pub fn said_by(&self, is_user: bool) -> f64 {
        if self.of_user == Some(is_user) { SAID } else { 1.0 }
    }

    /// The weight of a message of this role, found by this passage of it.
    pub fn weight(&self, role: &str, passage: &str) -> f64 {
        match role {
            "user" if self.advice && (PREFERRED.is_in(passage) || !rules(passage).is_empty()) => RULE,
            "user" | "assistant" if self.decision && !decisions(passage).is_empty() => DECISION,
            _ => 1.0,
        }
    }
}

/// Whether two words in a row ask for advice.
fn asks_advice(pair: &[String]) -> bool {
    match [pair[0].as_str(), pair[1].as_str()] {
        ["can" | "could" | "should", "i"] | ["how", "to" | "can" | "could" | "do" | "should"] => true,
        ["you", asked] => ["advise", "explain", "help", "recommend", "show", "suggest"].contains(&asked),
        _ => false,
    }
}
