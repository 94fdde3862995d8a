//! `pi-lcm`: the same commands in a shell, for scripts and for the history of any project.
//!
//! What a command can do stands in its own file; here is only how a shell calls it: the name, what it takes, which of its
//! options make sense entry Pi, and what the exit code says.

mod completions;
mod help;
mod read;

use std::path::PathBuf;
use std::sync::LazyLock;

use regex::Regex;
use serde_json::Value;

use super::args::Valued;
use super::rest::Rest;
use super::{
    Answer, Command, CommandContext, backup, doctor, export, import, search, sessions, show, stats, tree,
};
use crate::error::Result;

/// The command that is no question: what it answers comes over MCP.
pub const SERVES: &str = "mcp";

/// Found, or all is well.
pub const FOUND: i32 = 0;
/// Nothing was found; for `doctor`, something is wrong.
pub const NOTHING: i32 = 1;
/// It could not be done: one sentence on stderr says why.
pub const FAILED: i32 = 2;

/// What a command needs of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// To read it.
    Reads,
    /// To change what is there.
    Changes,
    /// To add to it, and to make one where there is none.
    Adds,
}

/// What a command takes beside its options.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    Nothing,
    Words,
    Id,
    /// A path, and whether it is that of the current folder where none is given.
    Path {
        or_here: bool,
    },
}

/// A command of `pi-lcm`.
pub struct CliCommand {
    name: &'static str,
    command: &'static Command,
    /// Instead of the command's own line.
    help: Option<&'static str>,
    /// How it is called, without the options.
    form: &'static str,
    takes: Takes,
    /// Its options that are none entry Pi, or are called otherwise.
    without: &'static [&'static str],
    /// Options that it has in a shell alone, each with a line.
    more: &'static [(&'static str, &'static str)],
    valued: &'static [Valued],
    short: &'static [(char, &'static str)],
    access: Access,
}

/// What is the same for most of them.
const PLAIN: CliCommand = CliCommand {
    name: "",
    command: &stats::COMMAND,
    help: None,
    form: "",
    takes: Takes::Nothing,
    without: &[],
    more: &[],
    valued: &[],
    short: &[],
    access: Access::Reads,
};

/// Every command, in the order in which help lists them.
const COMMANDS: &[CliCommand] = &[
    CliCommand {
        name: "stats",
        command: &stats::COMMAND,
        more: &[(stats::FULL, "also of a long history what takes reading all of it")],
        ..PLAIN
    },
    CliCommand { name: "sessions", command: &sessions::COMMAND, ..PLAIN },
    CliCommand {
        name: "grep",
        command: &search::COMMAND,
        help: Some("find what was said, in all sessions; --session: in one"),
        form: "WORDS…",
        takes: Takes::Words,
        without: &[search::PROJECT, search::MORE],
        valued: &search::VALUED,
        short: &[('e', "--regex"), ('i', "--ignore-case"), ('n', "--limit")],
        ..PLAIN
    },
    CliCommand { name: "show", command: &show::COMMAND, form: "ID", takes: Takes::Id, ..PLAIN },
    CliCommand { name: "tree", command: &tree::COMMAND, ..PLAIN },
    CliCommand {
        name: "export",
        command: &export::COMMAND,
        help: Some("a branch as Markdown; --html: a page; --jsonl: Pi's own file"),
        form: "[PATH]",
        takes: Takes::Path { or_here: true },
        ..PLAIN
    },
    CliCommand { name: "doctor", command: &doctor::COMMAND, ..PLAIN },
    CliCommand {
        name: "import",
        command: &import::COMMAND,
        help: Some("keep this project's older sessions; PATH: those of a file or folder"),
        form: "[PATH]",
        takes: Takes::Path { or_here: false },
        without: &["--stop"],
        access: Access::Adds,
        ..PLAIN
    },
    CliCommand {
        name: "backup",
        command: &backup::COMMAND,
        form: "[PATH]",
        takes: Takes::Path { or_here: false },
        ..PLAIN
    },
    CliCommand { name: SERVES, help: Some("answer other agents, over MCP on stdin and stdout"), ..PLAIN },
];

/// Options that every command takes.
const COMMON: [Valued; 4] = [
    Valued::any(PROJECT, "FOLDER", "the project; without it, the current folder"),
    Valued::any(DATABASE, "FILE", "a database or a backup, wherever it lies"),
    Valued::any(SESSION, "ID", "the session, by the beginning of its id, or `last`, which holds without it"),
    Valued::one_of(
        COLOR,
        "WHEN",
        "always, never, or auto: where somebody reads it",
        &["always", "never", "auto"],
    ),
];
const PROJECT: &str = "--project";
const DATABASE: &str = "--db";
const SESSION: &str = "--session";
const COLOR: &str = "--color";
const JSON: &str = "--json";
const HELP: &str = "--help";
const VERSION: &str = "--version";

/// Colors, or none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Color {
    /// Where somebody reads it.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// What the arguments of `pi-lcm` come to.
pub enum ParsedArgs {
    /// A text: help, the version, completions.
    Text(String),
    /// A command.
    Run(Box<Invocation>),
}

/// A command with all that was said to it.
pub struct Invocation {
    entry: &'static CliCommand,
    /// The project's folder.
    pub project: Option<PathBuf>,
    /// A database instead.
    pub database: Option<PathBuf>,
    /// The session's id or its beginning.
    pub session: Option<String>,
    /// The answer is wanted as JSON.
    pub as_json: bool,
    /// In colors?
    pub color: Color,
    rest: Rest,
}

pub use read::read;

impl Invocation {
    /// What it needs of the history.
    #[must_use]
    pub fn access(&self) -> Access {
        let is_mending = self.entry.name == doctor::COMMAND.name && self.rest.contains("--fix");
        if is_mending { Access::Changes } else { self.entry.access }
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'static str {
        self.entry.name
    }

    /// Answers.
    ///
    /// # Errors
    /// What the user should read.
    pub async fn answer(&self, asked: CommandContext<'_>) -> Result<Answer> {
        let mut rest = self.rest.clone();
        // Who names no session means all of them.
        if self.entry.name == "grep" && self.session.is_none() {
            rest = rest.and(search::PROJECT);
        }
        (self.entry.command.answer)(&CommandContext { rest, ..asked }).await
    }

    /// What the exit code says of an answer.
    #[must_use]
    pub fn code(&self, answer: &Value) -> i32 {
        let is_empty = |key: &str| answer[key].as_array().is_some_and(Vec::is_empty);
        let is_sound = |report: &Value| report["sound"] == true;
        match self.entry.name {
            "grep" if is_empty("hits") => NOTHING,
            "sessions" if is_empty("sessions") => NOTHING,
            "doctor" if !is_sound(answer) && !is_sound(&answer["report"]) => NOTHING,
            "import" if !is_empty("failed") || !answer["stoppedAfter"].is_null() => FAILED,
            "import" if answer["files"] == 0 => NOTHING,
            _ => FOUND,
        }
    }

    /// Is it about a session? What is about the database alone is answered also where no session can be read.
    #[must_use]
    pub fn is_of_session(&self) -> bool {
        self.session.is_some() || !matches!(self.entry.name, "doctor" | "import" | "backup")
    }

    /// Does the answer repeat what was said in a session?
    #[must_use]
    pub fn quotes(&self) -> bool {
        matches!(self.entry.name, "grep" | "show" | "tree" | "sessions")
    }
}

/// A sentence of ours that names commands as they are typed in Pi, for a shell.
#[must_use]
pub fn in_a_shell(sentence: &str) -> String {
    static NAMED: LazyLock<Option<Regex>> =
        LazyLock::new(|| Regex::new(r"(^|[\s(])/lcm (help )?(search|[a-z]+)\b").ok());
    let Some(named) = &*NAMED else { return sentence.to_owned() };
    let renamed = |found: &regex::Captures<'_>| {
        let name = if &found[3] == search::COMMAND.name { "grep" } else { &found[3] };
        let is_ours = COMMANDS.iter().any(|command| command.name == name);
        match (is_ours, found.get(2)) {
            (false, _) => found[0].to_owned(),
            (true, Some(_)) => format!("{}pi-lcm {name} --help", &found[1]),
            (true, None) => format!("{}pi-lcm {name}", &found[1]),
        }
    };
    let sentence = named.replace_all(sentence, renamed);
    sentence.replace("lcm_grep and lcm_describe show ids", "pi-lcm grep and pi-lcm tree show ids")
}

#[cfg(test)]
mod tests {
    use super::in_a_shell;

    #[test]
    fn a_sentence_names_commands_as_a_shell_knows_them() {
        for (in_pi, entry) in [
            ("/lcm search takes the words", "pi-lcm grep takes the words"),
            ("it is so; /lcm help export tells more", "it is so; pi-lcm export --help tells more"),
            ("/a/lcm import and (/lcm import)", "/a/lcm import and (pi-lcm import)"),
            ("/lcm settings maxDepth=4", "/lcm settings maxDepth=4"),
        ] {
            assert_eq!(in_a_shell(in_pi), entry);
        }
    }
}
