//! What kind of message a query asks for: a run by its outcome, a decision, where something was made, what one
//! of the two who talk said, or, if it asks for advice, the user's rules and preferences. Others that repeat
//! the same words come after it.

use std::sync::LazyLock;

use regex::Regex;

use crate::facts::{decisions, rules};
use crate::model::{Message, Role};

/// The weight of a message of the wanted kind.
const WANTED: f64 = 1.25;
/// The weight of a rule or preference of the user, which shares few words with the question it is about.
const RULE: f64 = 3.0;
/// The weight of a message of the one whose words are wanted.
const SAID: f64 = 2.0;

/// Words by which the user asks for what they said themselves.
const MINE: [&str; 3] = ["i", "my", "mine"];
/// Words that, after `you`, ask for what the model said, as `did` does before it.
const SAYING: [&str; 6] = ["advised", "gave", "recommended", "said", "suggested", "told"];

/// Words of a query that ask for a kind.
const ASKING: [(Kind, &[&str]); 4] = [
    (Kind::Failed, &["fail", "fails", "failed", "failing", "failure", "broke", "broken", "crash", "crashed"]),
    (Kind::Passed, &["pass", "passes", "passed", "passing", "green", "succeeded", "success", "successful"]),
    (Kind::Decided, &["decide", "decided", "decision", "decisions", "agreed", "chose", "chosen"]),
    (Kind::Made, &["made", "created", "wrote", "written", "added", "implemented", "introduced", "edited"]),
];

/// Words that ask for where something was made.
const QUESTIONS: [&str; 4] = ["where", "when", "who", "which"];

/// A run that failed shows one of these, whatever its exit code.
static FAILED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?m)\b[1-9]\d* (?:tests? )?(?:failed|failing|failures?|errors?)\b|\bFAIL(?:ED|URE)?\b|^not ok \d|^error\b").ok()
});
/// A run that passed shows one of these.
static PASSED: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(r"(?m)\b[1-9]\d* (?:tests? )?(?:passed|passing)\b|\bPASS(?:ED)?\b|^ok\b|test result: ok|(?i:\bsucceeded\b|\bsuccessful)").ok()
});

/// A preference of the user shows one of these, even in a question.
static PREFERRED: LazyLock<Option<Regex>> =
    LazyLock::new(|| Regex::new(r"(?i)\bI(?:['’]d| would)? prefer\b|\bmy preference").ok());

/// Tools that look at what there is, or change it, and run nothing.
const LOOKING: [&str; 6] = ["read", "write", "edit", "grep", "find", "ls"];

/// A kind of message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// A run that failed.
    Failed,
    /// A run that passed.
    Passed,
    /// A decision.
    Decided,
    /// A file written or edited.
    Made,
    /// A rule or preference of the user.
    Rule,
}

/// The messages that a query asks for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    kinds: Vec<Kind>,
    /// Whether the user said it, or the model did.
    of_user: Option<bool>,
}

impl Wanted {
    /// What all `words` of a query, in lowercase, ask for.
    pub fn by(words: &[String]) -> Self {
        let has = |wanted: &[&str]| words.iter().any(|word| wanted.contains(&word.as_str()));
        // Without a question, `added` may be any word of a text.
        let asks =
            |(kind, asking): &&(Kind, &[&str])| has(asking) && (*kind != Kind::Made || has(&QUESTIONS));
        let asks_you = |pair: &[String]| match [pair[0].as_str(), pair[1].as_str()] {
            ["did", "you"] => true,
            ["you", saying] => SAYING.contains(&saying),
            _ => false,
        };
        // What did you tell me about my port? The model's words, though the user says `my`.
        let of_user = if words.windows(2).any(asks_you) { Some(false) } else { has(&MINE).then_some(true) };
        let asked = ASKING.iter().filter(asks).map(|(kind, _)| *kind);
        let asks_advice = of_user != Some(false) && words.windows(2).any(asks_advice);
        Self { kinds: asked.chain(asks_advice.then_some(Kind::Rule)).collect(), of_user }
    }

    /// The weight of what the user says, or the model.
    pub fn said_by(&self, is_user: bool) -> f64 {
        if self.of_user == Some(is_user) { SAID } else { 1.0 }
    }

    /// The weight of the message with this JSON and searchable `text`, found by this passage of it.
    pub fn weight(&self, is_user: bool, json: &str, text: &str, passage: &str) -> f64 {
        // Parsing takes time, and only the user's rules are wanted.
        if self.kinds.iter().all(|kind| *kind == Kind::Rule && !is_user) {
            return 1.0;
        }
        let message = Message::parse(json);
        let found = self.kinds.iter().filter(|kind| kind.is_of(&message, text, passage));
        found.map(|kind| if *kind == Kind::Rule { RULE } else { WANTED }).fold(1.0, f64::max)
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

impl Kind {
    fn is_of(self, message: &Message, text: &str, passage: &str) -> bool {
        let shows =
            |lines: &LazyLock<Option<Regex>>| lines.as_ref().is_some_and(|lines| lines.is_match(text));
        let is_run = message.role == Role::Bash
            || message.tool.as_deref().is_some_and(|tool| !LOOKING.contains(&tool.to_lowercase().as_str()))
                && message.role == Role::ToolResult;
        match self {
            Self::Failed => is_run && (message.is_error || shows(&FAILED)),
            Self::Passed => is_run && !message.is_error && !shows(&FAILED) && shows(&PASSED),
            Self::Decided => {
                matches!(message.role, Role::User | Role::Assistant) && !decisions(passage).is_empty()
            }
            Self::Made => message.calls().any(|(name, _)| name == "write" || name == "edit"),
            Self::Rule => {
                let prefers = PREFERRED.as_ref().is_some_and(|prefers| prefers.is_match(passage));
                message.role == Role::User && (prefers || !rules(passage).is_empty())
            }
        }
    }
}
