//! Reading what stands behind `/lcm`.

use std::path::PathBuf;

use crate::error::{Error, Result};
use crate::text::one_line;

/// A line, taken apart.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// The command; without one it is `help`.
    pub name: String,
    /// Everything behind it as it was typed, but for the words that every command takes.
    pub rest: String,
    /// `--json` was among them.
    pub as_json: bool,
    /// `--help` was.
    pub wants_help: bool,
}

impl Words {
    pub fn of(line: &str) -> Self {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let (rest, as_json) = without(rest.trim(), "--json");
        let (rest, wants_help) = without(&rest, "--help");
        match name {
            // `/lcm --json` is the list of commands as JSON.
            "" | "--json" | "--help" => {
                Self { name: "help".into(), rest, as_json: as_json || name == "--json", wants_help: false }
            }
            name => Self { name: name.to_owned(), rest, as_json, wants_help },
        }
    }
}

/// What says that nothing behind it is an option.
const END: &str = "--";

/// `text` without the word `flag`, and whether it was there. Behind [`END`] words are words.
fn without(text: &str, flag: &str) -> (String, bool) {
    let mut is_option = true;
    let mut is_there = false;
    let is_kept = |word: &&str| {
        is_option &= word.trim() != END;
        let is_it = is_option && word.trim() == flag;
        is_there |= is_it;
        !is_it
    };
    let kept: Vec<&str> = text.split_inclusive(char::is_whitespace).filter(is_kept).collect();
    if is_there { (kept.concat().trim().to_owned(), true) } else { (text.to_owned(), false) }
}

/// What stands behind the options, as it was typed.
pub(super) fn behind_options(text: &str) -> &str {
    match text.strip_prefix(END) {
        Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => rest.trim_start(),
        _ => text,
    }
}

/// The words of `known` among the others, and what is left.
pub(super) fn take<'k>(rest: &str, known: &[&'k str]) -> (Vec<&'k str>, String) {
    let mut left = rest.to_owned();
    let mut found = Vec::new();
    for option in known {
        let (without, is_there) = without(&left, option);
        if is_there {
            (left, found) = (without, [found, vec![*option]].concat());
        }
    }
    (found, left)
}

/// The same, where nothing else may begin with `--`.
///
/// # Errors
/// For what does: [`foreign`].
pub(super) fn options<'k>(command: &str, rest: &str, known: &[&'k str]) -> Result<(Vec<&'k str>, String)> {
    let (found, left) = take(rest, known);
    match left.split_whitespace().find(|word| word.starts_with("--")) {
        None => Ok((found, left)),
        Some(word) => Err(foreign(command, word, known)),
    }
}

/// For a command that takes nothing.
///
/// # Errors
/// When there is something all the same.
pub(super) fn none(command: &str, rest: &str) -> Result<()> {
    match rest.split_whitespace().next() {
        None => Ok(()),
        Some(word) => Err(foreign(command, word, &[])),
    }
}

/// What to say of an argument that a command does not know.
pub(super) fn foreign(command: &str, word: &str, known: &[&str]) -> Error {
    let takes = match known {
        [] => "it takes --json alone".to_owned(),
        known => format!("it takes {}", known.join(", ")),
    };
    Error::invalid(format!(
        "/lcm {command} knows no {}: {takes}; /lcm help {command} tells more",
        one_line(word, 40)
    ))
}

/// A path as a person types it: in quotes or not, from the home folder or not.
pub(super) fn path(text: &str) -> PathBuf {
    let text = text.trim();
    let inner = ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    let text = inner.unwrap_or(text);
    let below_home = if text == "~" { Some("") } else { text.strip_prefix("~/") };
    match (below_home, std::env::home_dir()) {
        (Some(rest), Some(home)) => home.join(rest),
        _ => PathBuf::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_what_every_command_takes_and_the_rest_as_it_was_typed() {
        let words = |line| {
            let Words { name, rest, as_json, wants_help } = Words::of(line);
            (name, rest, as_json, wants_help)
        };
        let cases = [
            ("", "help", "", false, false),
            ("--json", "help", "", true, false),
            ("stats", "stats", "", false, false),
            ("stats --json", "stats", "", true, false),
            (" import  '/a  b' --json", "import", "'/a  b'", true, false),
            ("search --json  two  words", "search", "two  words", true, false),
            ("search --jsonish", "search", "--jsonish", false, false),
            ("tree --help", "tree", "", false, true),
            (
                "search --json -- what --json and --help do",
                "search",
                "-- what --json and --help do",
                true,
                false,
            ),
        ];
        for (line, name, rest, json, help) in cases {
            assert_eq!(words(line), (name.into(), rest.into(), json, help), "{line}");
        }
    }

    #[test]
    fn options_are_taken_out_wherever_they_stand() {
        let (found, rest) = options("export", "--md a  b --force", &["--md", "--force"]).unwrap();
        assert_eq!((found, rest.as_str()), (vec!["--md", "--force"], "a  b"));
        let (found, rest) = take("--more -- what --more does", &["--more", "--regex"]);
        assert_eq!((found, behind_options(&rest)), (vec!["--more"], "what --more does"));
        assert_eq!((behind_options("--x -- y"), behind_options("--")), ("--x -- y", ""));
        let error = options("export", "--mad", &["--md", "--force"]).unwrap_err().to_string();
        assert_eq!(error, "/lcm export knows no --mad: it takes --md, --force; /lcm help export tells more");
        assert!(none("stats", "now").is_err() && none("stats", " ").is_ok());
    }
}
