//! Parses the text after `/lcm`, or takes the arguments that a shell has split.

use std::path::{Path, PathBuf};

use super::{Command, redo, search, simulate, sync};
use lcm_model::config::at_home;
use lcm_model::error::{Error, Result};
use lcm_model::text::{nearest, one_line};

/// A parsed line.
pub(super) struct CommandLine {
    /// The command, `help` by default.
    pub name: String,
    /// Everything after it as typed, without the options of every command.
    pub rest: String,
    /// Whether it included `--json`.
    pub as_json: bool,
    /// Whether it included `--help`.
    pub wants_help: bool,
}

impl CommandLine {
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

/// The options of every command.
const COMMON: [&str; 2] = ["--json", "--help"];
/// The option for another agent.
pub(crate) const FROM: &str = "--from";
/// Only in a shell: a database, instead of a project's.
pub(crate) const DATABASE: &str = "--db";
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

/// What follows a command's name: its options, and the remaining text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rest {
    /// The command's name, and its options without a value.
    command: &'static str,
    flags: Vec<&'static str>,
    /// By name; the value is empty if an option takes none.
    options: Vec<(&'static str, String)>,
    /// As typed. Words from a shell are in quotes if they would not be read as they are.
    pub text: String,
    /// From a shell, which has split it: then no word is an option, whatever it looks like.
    words: Option<Vec<String>>,
}

impl Rest {
    /// Parses a line for `command`. Values are written `--name=value` or `--name value`. After [`END`] nothing
    /// is an option.
    ///
    /// # Errors
    /// When an option has no value.
    pub(crate) fn typed(command: &Command, line: &str) -> Result<Self> {
        let mut rest = Self { command: command.name, flags: flags(command), ..Self::default() };
        let mut words = line.split_inclusive(char::is_whitespace);
        while let Some(word) = words.next() {
            let (name, value) = word.trim().split_once('=').unwrap_or((word.trim(), ""));
            if word.trim() == END {
                rest.text.extend(std::iter::once(word).chain(words.by_ref()));
            } else if let Some(name) = valued(command.name).iter().find(|known| **known == name) {
                let value = if value.is_empty() { words.next().unwrap_or_default().trim() } else { value };
                if value.is_empty() {
                    let (of, values) = (command.name, search::values(name));
                    return Err(Error::invalid(format!("{name} needs a value{values}; see /lcm help {of}")));
                }
                rest.options.push((name, value.to_owned()));
            } else if let Some(name) = rest.flags.iter().find(|known| **known == word.trim()) {
                rest.options.push((name, String::new()));
            } else {
                rest.text += word;
            }
        }
        rest.text = rest.text.trim().to_owned();
        Ok(rest)
    }

    /// From arguments that a shell has split.
    pub(crate) fn split(command: &Command, options: Vec<(&'static str, String)>, words: Vec<String>) -> Self {
        let (command, flags) = (command.name, flags(command));
        let text = words.join(" ");
        let is_plain = text.trim() == text && !text.starts_with(['"', '\'']);
        let text = if is_plain { text } else { format!("\"{text}\"") };
        Self { command, flags, options, text, words: Some(words) }
    }

    pub(crate) fn has(&self, option: &str) -> bool {
        self.options.iter().any(|(name, _)| *name == option)
    }

    /// The value of an option; the last one counts.
    pub(crate) fn value(&self, option: &str) -> Option<&str> {
        self.options.iter().rfind(|(name, _)| *name == option).map(|(_, value)| value.as_str())
    }

    /// The words to search for.
    ///
    /// # Errors
    /// When one looks like an option, and is not after [`END`].
    pub(super) fn query(&self) -> Result<String> {
        if let Some(words) = &self.words {
            return Ok(words.join(" "));
        }
        let is_option =
            |word: &&str| word.strip_prefix(END).is_some_and(|name| name.starts_with(char::is_alphabetic));
        let mut words = self.text.split_whitespace().take_while(|word| *word != END);
        let Some(word) = words.find(is_option) else { return Ok(behind_options(&self.text).to_owned()) };
        let (name, shown) = (self.command, one_line(word, 40));
        let meant = meant(word, &[&self.flags, valued(name)].concat());
        let how = format!("see /lcm help {name}, or put {END} before words that look like options");
        Err(Error::invalid(format!("/lcm {name} has no {shown}: {meant}{how}")))
    }

    /// The path in the text, if any.
    ///
    /// # Errors
    /// As [`Rest::only`].
    pub(super) fn path(&self) -> Result<Option<PathBuf>> {
        Ok(Some(self.only()?).filter(|text| !text.is_empty()).map(path))
    }

    /// Several paths from a shell, or the one in the text.
    ///
    /// # Errors
    /// As [`Rest::only`].
    pub(crate) fn paths(&self) -> Result<Vec<PathBuf>> {
        match &self.words {
            Some(words) => Ok(words.iter().map(|word| from_home(word)).collect()),
            None => Ok(self.path()?.into_iter().collect()),
        }
    }

    /// The text, in which nothing may look like an option.
    ///
    /// # Errors
    /// When something does: [`foreign`].
    pub(super) fn only(&self) -> Result<&str> {
        let mut words = self.text.split_whitespace().filter(|_| self.words.is_none());
        match words.find(|word| word.starts_with("--")) {
            None => Ok(&self.text),
            Some(word) => Err(self.foreign(word)),
        }
    }

    /// Checks that there is no text.
    ///
    /// # Errors
    /// When there is some.
    pub(super) fn none(&self) -> Result<()> {
        let word = self.text.split_whitespace().next();
        word.map_or(Ok(()), |word| Err(self.foreign(word)))
    }

    fn foreign(&self, word: &str) -> Error {
        foreign(self.command, word, &[&self.flags, valued(self.command)].concat())
    }
}

/// A command's options without a value.
fn flags(command: &Command) -> Vec<&'static str> {
    command.arguments.iter().map(|(name, _)| *name).filter(|name| name.starts_with("--")).collect()
}

/// A command's options with a value.
pub(crate) fn valued(command: &str) -> &'static [&'static str] {
    match command {
        "search" => &search::VALUED,
        "import" | "export" => &[FROM],
        "simulate" => &[simulate::MODEL],
        "redo" => &[redo::MODEL],
        "sync" => &[sync::NAME],
        _ => &[],
    }
}

/// The error for an argument that a command does not know.
pub(super) fn foreign(command: &str, word: &str, known: &[&str]) -> Error {
    let takes = match known {
        [] => "it takes only --json".to_owned(),
        known => format!("it takes {}", known.join(", ")),
    };
    let meant = meant(word, known);
    let word = one_line(word, 40);
    Error::invalid(format!("/lcm {command} has no {word}: {meant}{takes}; see /lcm help {command}"))
}

/// The option that may be meant by a mistyped one.
fn meant(word: &str, known: &[&str]) -> String {
    let word = word.split('=').next().unwrap_or(word);
    let all = known.iter().copied().chain(COMMON).filter(|_| word.starts_with("--"));
    // All begin alike.
    let name = nearest(word.trim_start_matches('-'), all.map(|name| name.trim_start_matches('-')));
    name.map(|name| format!("did you mean --{name}? ")).unwrap_or_default()
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
    use super::super::{export, stats};
    use super::*;

    #[test]
    fn a_line_is_a_name_common_options_and_the_rest_as_typed() {
        let words = |line| {
            let CommandLine { name, rest, as_json, wants_help } = CommandLine::of(line);
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
        let typed = |command, line| Rest::typed(command, line).unwrap();
        let rest = typed(&export::COMMAND, "--md a  b --force");
        assert!(rest.has("--md") && rest.has("--force") && !rest.has("--all"));
        assert_eq!(rest.only().unwrap(), "a  b");
        let rest = typed(&search::COMMAND, "--more -- what --more does");
        assert_eq!((rest.has("--more"), rest.query().unwrap().as_str()), (true, "what --more does"));
        for words in ["-----BEGIN -x - a--b", "a -- --foo"] {
            assert_eq!(typed(&search::COMMAND, words).query().unwrap(), words);
        }
        let error = typed(&search::COMMAND, "a --foo=1 -- b").query().unwrap_err().to_string();
        assert_eq!(
            error,
            "/lcm search has no --foo=1: see /lcm help search, or put -- before words that look like options"
        );
        assert_eq!((behind_options("--x -- y"), behind_options("--")), ("--x -- y", ""));
        let error = typed(&export::COMMAND, "--mad").only().unwrap_err().to_string();
        assert_eq!(
            error,
            "/lcm export has no --mad: it takes --md, --jsonl, --html, --all, --force, --from; see /lcm help export"
        );
        let error = typed(&export::COMMAND, "--hmtl").only().unwrap_err().to_string();
        assert!(error.starts_with("/lcm export has no --hmtl: did you mean --html? it takes "), "{error}");
        let error = typed(&search::COMMAND, "a --jsno").query().unwrap_err().to_string();
        assert!(error.starts_with("/lcm search has no --jsno: did you mean --json? see "), "{error}");
        let error = Rest::typed(&search::COMMAND, "a --count").unwrap_err().to_string();
        let values = "session, day, role, tool, path, outcome, agent";
        assert_eq!(error, format!("--count needs a value: {values}; see /lcm help search"));
        let none = |line| typed(&stats::COMMAND, line).none();
        assert!(none("now").is_err() && none(" ").is_ok());
    }

    #[test]
    fn values_follow_their_options_and_shell_arguments_are_not_parsed_again() {
        let rest = Rest::typed(&search::COMMAND, "two --role=user  words --limit 5 -- --role x").unwrap();
        assert_eq!((rest.value("--role"), rest.value("--limit")), (Some("user"), Some("5")));
        assert_eq!(rest.text, "two  words -- --role x");
        assert!(Rest::typed(&search::COMMAND, "words --role").is_err());

        let options = vec![("--role", "user".to_owned()), ("--more", String::new())];
        let rest = Rest::split(&search::COMMAND, options, vec!["--more".into(), " x".into()]);
        assert_eq!(rest.value("--role"), Some("user"));
        assert_eq!((rest.has("--more"), rest.only().unwrap()), (true, "--more  x"));
        let spaced = Rest::split(&export::COMMAND, Vec::new(), vec![" \"a\" ".into()]);
        assert_eq!(path(spaced.only().unwrap()), PathBuf::from(" \"a\" "));
    }
}
