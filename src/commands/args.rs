//! Parses the text after `/lcm`.

use std::path::{Path, PathBuf};

use super::rest::{Given, Rest, written};
use crate::config::at_home;
use crate::error::{Error, Result};
use crate::text::one_line;

/// A parsed line.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// The command, `help` by default.
    pub name: String,
    /// Everything after it as typed, without the options of every command.
    pub rest: String,
    /// Whether it included `--json`.
    pub as_json: bool,
    /// Whether it included `--help`.
    pub wants_help: bool,
}

impl Words {
    pub fn of(line: &str) -> Self {
        let line = line.trim();
        let (name, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
        let (rest, as_json) = without(rest.trim(), "--json");
        let (rest, wants_help) = without(&rest, "--help");
        match name {
            // `/lcm --json` lists the commands as JSON.
            "" | "--json" | "--help" => {
                Self { name: "help".into(), rest, as_json: as_json || name == "--json", wants_help: false }
            }
            name => Self { name: name.to_owned(), rest, as_json, wants_help },
        }
    }
}

/// Ends the options.
const END: &str = "--";

/// `text` without the option `flag`, and whether it was there. After [`END`] nothing is an option.
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

/// The text after the options, as typed.
pub(super) fn behind_options(text: &str) -> &str {
    match text.strip_prefix(END) {
        Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => rest.trim_start(),
        _ => text,
    }
}

/// Those of the options `known` that are present, and the remaining text.
pub(super) fn take<'k>(rest: impl Into<Rest>, known: &[&'k str]) -> (Vec<&'k str>, String) {
    let rest = rest.into();
    if let Some(Given { options, words }) = rest.given() {
        let is_given = |known: &&&str| options.iter().any(|(name, _)| name == *known);
        return (known.iter().filter(is_given).copied().collect(), written(words));
    }
    let mut left = rest.to_string();
    let mut found = Vec::new();
    for option in known {
        let (without, is_there) = without(&left, option);
        if is_there {
            (left, found) = (without, [found, vec![*option]].concat());
        }
    }
    (found, left)
}

/// The same, but nothing else may start with `--`.
///
/// # Errors
/// For any other option: [`foreign`].
pub(super) fn options<'k>(
    command: &str,
    rest: impl Into<Rest>,
    known: &[&'k str],
) -> Result<(Vec<&'k str>, String)> {
    let rest = rest.into();
    let (found, left) = take(&rest, known);
    match left.split_whitespace().find(|word| rest.given().is_none() && word.starts_with("--")) {
        None => Ok((found, left)),
        Some(word) => Err(foreign(command, word, known)),
    }
}

/// Options with a value, written `--name=value` or `--name value`, and the remaining text.
///
/// # Errors
/// When one has no value.
pub(super) fn values<'k>(rest: &Rest, known: &[&'k str]) -> Result<(Vec<(&'k str, String)>, Rest)> {
    if let Some(given) = rest.given() {
        let (values, options) = given.options.iter().cloned().partition(|(name, _)| known.contains(name));
        return Ok((values, Rest::of(Given { options, words: given.words.clone() })));
    }
    let (mut values, mut left) = (Vec::new(), String::new());
    let mut words = rest.split_inclusive(char::is_whitespace);
    while let Some(word) = words.next() {
        if word.trim() == END {
            left.extend(std::iter::once(word).chain(words.by_ref()));
            break;
        }
        let (name, value) = word.trim().split_once('=').unwrap_or((word.trim(), ""));
        let Some(name) = known.iter().find(|known| **known == name) else {
            left += word;
            continue;
        };
        let value = if value.is_empty() { words.next().unwrap_or_default().trim() } else { value };
        if value.is_empty() {
            return Err(Error::invalid(format!("{name} needs a value")));
        }
        values.push((*name, value.to_owned()));
    }
    Ok((values, Rest::from(left.trim().to_owned())))
}

/// The one of `names` most similar to `name`.
pub(super) fn nearest<'n>(name: &str, names: impl Iterator<Item = &'n str>) -> Option<&'n str> {
    let alike = |known: &str| strsim::jaro_winkler(&name.to_lowercase(), known);
    names.max_by(|a, b| alike(a).total_cmp(&alike(b)))
}

/// For a command without arguments.
///
/// # Errors
/// When there are any.
pub(super) fn none(command: &str, rest: &str) -> Result<()> {
    match rest.split_whitespace().next() {
        None => Ok(()),
        Some(word) => Err(foreign(command, word, &[])),
    }
}

/// The error for an argument that a command does not know.
pub(super) fn foreign(command: &str, word: &str, known: &[&str]) -> Error {
    let takes = match known {
        [] => "it takes only --json".to_owned(),
        known => format!("it takes {}", known.join(", ")),
    };
    Error::invalid(format!("/lcm {command} has no {}: {takes}; see /lcm help {command}", one_line(word, 40)))
}

/// A path as a user types it: quoted or not, possibly from the home folder.
pub(super) fn path(text: &str) -> PathBuf {
    let text = text.trim();
    let inner = ['"', '\''].into_iter().find_map(|quote| text.strip_prefix(quote)?.strip_suffix(quote));
    from_home(inner.unwrap_or(text))
}

/// A path that may start with `~`, which a shell does not expand after an equals sign.
pub(crate) fn from_home(text: &str) -> PathBuf {
    at_home(text, Path::new("")).unwrap_or_else(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_a_name_common_options_and_the_rest_as_typed() {
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
    fn options_are_found_anywhere() {
        let (found, rest) = options("export", "--md a  b --force", &["--md", "--force"]).unwrap();
        assert_eq!((found, rest.as_str()), (vec!["--md", "--force"], "a  b"));
        let (found, rest) = take("--more -- what --more does", &["--more", "--regex"]);
        assert_eq!((found, behind_options(&rest)), (vec!["--more"], "what --more does"));
        assert_eq!((behind_options("--x -- y"), behind_options("--")), ("--x -- y", ""));
        let error = options("export", "--mad", &["--md", "--force"]).unwrap_err().to_string();
        assert_eq!(error, "/lcm export has no --mad: it takes --md, --force; see /lcm help export");
        assert!(none("stats", "now").is_err() && none("stats", " ").is_ok());
    }

    #[test]
    fn values_follow_their_options_and_shell_arguments_are_not_parsed_again() {
        let read = |rest: &Rest| {
            let (values, left) = values(rest, &["--role", "--limit"]).unwrap();
            (values, left.to_string())
        };
        let (values_found, left) =
            read(&Rest::from("two --role=user  words --limit 5 -- --role x".to_owned()));
        assert_eq!(values_found, [("--role", "user".to_owned()), ("--limit", "5".to_owned())]);
        assert_eq!(left, "two  words -- --role x");
        assert!(values(&Rest::from("words --role".to_owned()), &["--role"]).is_err());

        let options_given = vec![("--role", "user".to_owned()), ("--more", String::new())];
        let rest = Rest::of(Given { options: options_given, words: vec!["--more".into(), " x".into()] });
        let (values_found, rest) = read_given(&rest);
        assert_eq!(values_found, [("--role", "user".to_owned())]);
        let (found, left) = options("search", &rest, &["--more", "--regex"]).unwrap();
        assert_eq!((found, left.as_str()), (vec!["--more"], "--more  x"));
        let spaced = Rest::of(Given { options: Vec::new(), words: vec![" \"a\" ".into()] });
        assert_eq!(path(&options("export", &spaced, &[]).unwrap().1), PathBuf::from(" \"a\" "));
    }

    fn read_given(rest: &Rest) -> (Vec<(&'static str, String)>, Rest) {
        values(rest, &["--role"]).unwrap()
    }
}
