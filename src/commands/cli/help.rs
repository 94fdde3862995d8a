//! What `--help` says, made from the tables of commands and options.

use super::super::columns::hanging;
use super::{COMMANDS, COMMON, CliCommand, HELP, JSON, VERSION};

/// Columns of a line.
const WIDTH: usize = 80;
/// Columns of a name before what it means.
const NAMES: usize = 22;

/// Of all commands.
pub(super) fn all() -> String {
    let commands = COMMANDS.iter().map(|command| (command.name.to_owned(), command.line()));
    format!(
        "pi-lcm: the lossless history of Pi's sessions, entry Pi\n\n\
         Usage: pi-lcm COMMAND [OPTIONS] …\n\n\
         Commands:\n{}\n\
         Options of every command:\n{}\n\
         Exit code: 0 found, or all is well; 1 nothing found, or doctor found something\n\
         wrong; 2 an error.\n\n\
         pi-lcm COMMAND --help tells more; pi-lcm completions SHELL prints completions\n\
         for bash, zsh or fish.",
        rows(commands),
        rows(common())
    )
}

/// Of one.
pub(super) fn of(entry: &CliCommand) -> String {
    let CliCommand { name, form, valued, short, .. } = entry;
    let form = if form.is_empty() { String::new() } else { format!(" {form}") };
    let letter = |option: &str| short.iter().find(|(_, name)| *name == option).map(|(letter, _)| *letter);
    let named = |option: &str, value: &str| match letter(option) {
        Some(letter) => format!("-{letter}, {option}{value}"),
        None => format!("{option}{value}"),
    };
    let flags = entry.flags().map(|(option, help)| (named(option, ""), help));
    let valued = valued.iter().map(|option| (named(option.name, &format!(" {}", option.value)), option.help));
    let own: Vec<_> = flags.chain(valued).collect();
    let own = if own.is_empty() { String::new() } else { format!("Options:\n{}\n", rows(own.into_iter())) };
    let all = rows(common());
    let title = hanging(&format!("pi-lcm {name}: {}", entry.line()), 0, Some(WIDTH));
    format!(
        "{title}\n\nUsage: pi-lcm {name} [OPTIONS]{form}\n\n{own}Options of every command:\n{}",
        all.trim_end()
    )
}

impl CliCommand {
    /// What it does.
    pub(super) fn line(&self) -> &'static str {
        self.help.unwrap_or(self.command.help)
    }
}

fn common() -> impl Iterator<Item = (String, &'static str)> {
    let valued = COMMON.iter().map(|option| (format!("{} {}", option.name, option.value), option.help));
    valued.chain([
        (JSON.to_owned(), "the answer as JSON"),
        (format!("-h, {HELP}"), "this"),
        (format!("-V, {VERSION}"), "the version"),
    ])
}

fn rows(rows: impl Iterator<Item = (String, &'static str)>) -> String {
    let row = |(name, help): (String, &str)| {
        let help = hanging(help, NAMES + 3, Some(WIDTH));
        if name.len() > NAMES {
            return format!("  {name}\n{}{help}\n", " ".repeat(NAMES + 3));
        }
        format!("  {name:<NAMES$} {help}\n")
    };
    rows.map(row).collect()
}
