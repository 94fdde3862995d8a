//! `/lcm help`: lists the sub-commands, or explains one with all its forms.

use serde_json::{Value, json};

use super::style::hanging;
use super::{Answer, COMMANDS, Command, CommandContext};
use lcm_model::error::{Error, Result};
use lcm_model::text::{nearest, one_line};
use lcm_store::Store;

pub(super) const COMMAND: Command = Command {
    name: "help",
    help: "the commands, and where the history is stored",
    usage: &[("help", "lists the commands"), ("help NAME", "explains one command, like /lcm NAME --help")],
    arguments: &[],
    is_long: false,
    answer: |asked| Box::pin(async { answer(asked) }),
};

/// The command of this name.
///
/// # Errors
/// When there is none; suggests a similar name.
pub(crate) fn command(name: &str) -> Result<&'static Command> {
    let known = COMMANDS.iter().find(|command| command.name == name);
    known.ok_or_else(|| {
        // What it is called in a shell.
        let is_grep = name == "grep";
        let meant =
            nearest(name, COMMANDS.iter().map(|command| command.name)).or(is_grep.then_some("search"));
        let meant = meant.map(|name| format!(": did you mean /lcm {name}?")).unwrap_or_default();
        Error::invalid(format!("there is no /lcm {}{meant} (/lcm help lists all)", one_line(name, 40)))
    })
}

/// The answer to `/lcm <command> --help`.
pub(super) fn of(command: &Command) -> Answer {
    let Command { name, help, usage, .. } = command;
    let forms: String = usage.iter().map(|(line, help)| format!("\n  /lcm {line}\n      {help}")).collect();
    let text = format!("/lcm {name}: {help}\n{forms}\n\nWith --json the answer is JSON.");
    let form = |(line, help): &(&str, &str)| json!({"line": format!("/lcm {line}"), "help": help});
    let usage: Value = usage.iter().map(form).collect();
    Answer::new(text, json!({"name": name, "help": help, "usage": usage}))
}

fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    if let Some(name) = asked.rest.text.split_whitespace().next() {
        return Ok(of(command(name)?));
    }
    let (database, place) = database(asked.store());
    let line =
        |it: &Command| format!("/lcm {:<9} {}\n", it.name, hanging(it.help, 15, asked.request.columns));
    let lines: String = COMMANDS.iter().map(line).collect();
    let text = format!(
        "{lines}\nMore about a command: /lcm help NAME. Every command answers as JSON with --json.\n\
         Every message of this project is stored in {place}"
    );
    let commands: Value = COMMANDS.iter().map(|it| json!({"name": it.name, "help": it.help})).collect();
    Ok(Answer::new(text, json!({"commands": commands, "database": database})))
}

/// The database's path, `None` in memory; and where the history is kept, as the end of a sentence.
pub(super) fn database(store: &Store) -> (Option<String>, String) {
    let path = store.place().map(|path| path.display().to_string());
    (path.clone(), path.unwrap_or_else(|| "memory only: nothing of this session is saved".into()))
}
