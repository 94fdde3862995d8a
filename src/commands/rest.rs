//! The text after a command's name: a line typed in Pi, or arguments already split by a shell.
//!
//! In both cases a command asks [`super::args`] for its options and reads the rest as a line.

use std::ops::Deref;

/// The text after a command's name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    line: String,
    given: Option<Given>,
}

/// Split arguments: none of the words is an option any more, whatever it looks like.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Given {
    /// By their long names; the value is empty if an option takes none.
    pub options: Vec<(&'static str, String)>,
    /// The remaining words, in order.
    pub words: Vec<String>,
}

impl Rest {
    /// From split arguments.
    pub(crate) fn of(given: Given) -> Self {
        let flags =
            given.options.iter().filter(|(_, value)| value.is_empty()).map(|(name, _)| (*name).to_owned());
        let words: Vec<String> =
            flags.chain([written(&given.words)]).filter(|word| !word.is_empty()).collect();
        Self { line: words.join(" "), given: Some(given) }
    }

    /// The words of split arguments; a line as a whole.
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

/// Joins words, in quotes if parsing the line would change them.
pub(super) fn written(words: &[String]) -> String {
    let text = words.join(" ");
    let is_plain = text.trim() == text && !text.starts_with(['"', '\'']);
    if is_plain { text } else { format!("\"{text}\"") }
}
