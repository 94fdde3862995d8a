//! `/lcm help`: lists the sub-commands, or explains one with all its forms.

use std::fmt;

use serde::Serialize;

use super::{Answer, COMMANDS, Command, CommandContext, args};
use crate::error::{Error, Result};
use crate::store::Place;
use crate::text::one_line;

pub(super) const COMMAND: Command = Command {
    name: "help",
    help: "the commands, and where the history is stored",
    usage: &[("help", "lists the commands"), ("help NAME", "explains one command, like /lcm NAME --help")],
    arguments: &[],
    is_long: false,
    answer: |asked| Box::pin(async { answer(asked) }),
};

/// All commands.
#[derive(Serialize)]
struct Listed {
    commands: Vec<CommandSummary>,
    /// The database; `None` for a session in memory.
    database: Option<String>,
    #[serde(skip)]
    place: String,
}

#[derive(Serialize)]
struct CommandSummary {
    name: &'static str,
    help: &'static str,
}

/// One command.
#[derive(Serialize)]
struct CommandHelp {
    name: &'static str,
    help: &'static str,
    usage: Vec<UsageForm>,
}

#[derive(Serialize)]
struct UsageForm {
    line: String,
    help: &'static str,
}

/// The command of this name.
///
/// # Errors
/// When there is none; suggests the most similar name.
pub(crate) fn command(name: &str) -> Result<&'static Command> {
    let known = COMMANDS.iter().find(|command| command.name == name);
    known.ok_or_else(|| {
        let nearest = args::nearest(name, COMMANDS.iter().map(|command| command.name));
        let meant = nearest.map(|name| format!("did you mean /lcm {name}? ")).unwrap_or_default();
        Error::invalid(format!("there is no /lcm {}: {meant}(/lcm help lists all)", one_line(name, 40)))
    })
}

/// The answer to `/lcm <command> --help`.
pub(super) fn of(command: &Command) -> Answer {
    let form = |(line, help): &(&str, &'static str)| UsageForm { line: format!("/lcm {line}"), help };
    Answer::of(&CommandHelp {
        name: command.name,
        help: command.help,
        usage: command.usage.iter().map(form).collect(),
    })
}

fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    if let Some(name) = asked.rest.split_whitespace().next() {
        return Ok(of(command(name)?));
    }
    let database = match asked.store().place() {
        Place::Memory => None,
        Place::File(path) => Some(path.display().to_string()),
    };
    Ok(Answer::of(&Listed {
        commands: COMMANDS
            .iter()
            .map(|command| CommandSummary { name: command.name, help: command.help })
            .collect(),
        database,
        place: lies_in(asked.store().place()),
    }))
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for CommandSummary { name, help } in &self.commands {
            writeln!(f, "/lcm {name:<8} {help}")?;
        }
        writeln!(f, "\nMore about a command: /lcm help NAME. Every command answers as JSON with --json.")?;
        write!(f, "Every message of this project is stored in {}", self.place)
    }
}

impl fmt::Display for CommandHelp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "/lcm {}: {}", self.name, self.help)?;
        for UsageForm { line, help } in &self.usage {
            write!(f, "\n  {line}\n      {help}")?;
        }
        write!(f, "\n\nWith --json the answer is JSON.")
    }
}

/// Where the history is kept, as the end of a sentence.
pub(super) fn lies_in(place: &Place) -> String {
    match place {
        Place::Memory => "memory only: nothing of this session is saved".into(),
        Place::File(path) => path.display().to_string(),
    }
}
