//! What stands behind a command's name: a line as a person types it in Pi, or arguments that a shell has taken apart already.
//!
//! A command asks [`super::args`] for its options and reads the rest as a line in both cases.

use std::ops::Deref;

/// What stands behind a command's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    line: String,
    given: Option<Given>,
}

/// Arguments, taken apart: no word among them is an option any more, however it looks.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    /// By their long names; the value is empty where an option takes none.
    pub options: Vec<(&'static str, String)>,
    /// What is left, in order.
    pub words: Vec<String>,
}

impl Rest {
    /// Of arguments that were taken apart.
    pub(crate) fn of(given: Given) -> Self {
        let flags =
            given.options.iter().filter(|(_, value)| value.is_empty()).map(|(name, _)| (*name).to_owned());
        let words: Vec<String> =
            flags.chain([written(&given.words)]).filter(|word| !word.is_empty()).collect();
        Self { line: words.join(" "), given: Some(given) }
    }

    /// The words of arguments that were taken apart; of a line, that as a whole.
    pub(super) fn words(&self) -> Vec<String> {
        self.given.as_ref().map_or_else(|| vec![self.line.clone()], |given| given.words.clone())
    }

    pub(super) fn given(&self) -> Option<&Given> {
        self.given.as_ref()
    }
}

impl From<String> for Rest {
    fn from(line: String) -> Self {
        Self { line, given: None }
    }
}

impl From<&str> for Rest {
    fn from(line: &str) -> Self {
        line.to_owned().into()
    }
}

impl From<&Self> for Rest {
    fn from(rest: &Self) -> Self {
        rest.clone()
    }
}

impl Deref for Rest {
    type Target = String;

    fn deref(&self) -> &String {
        &self.line
    }
}

/// Words as one text, in quotes where a reader of a line would change them.
pub(super) fn written(words: &[String]) -> String {
    let text = words.join(" ");
    let is_plain = text.trim() == text && !text.starts_with(['"', '\'']);
    if is_plain { text } else { format!("\"{text}\"") }
}
