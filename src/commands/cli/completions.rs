//! Completions for shells, made from the tables of commands and options.

use std::fmt::Write as _;

use super::{COMMANDS, COMMON, CliCommand, JSON, Takes};
use crate::commands::args::Valued;
use crate::error::{Error, Result};
use crate::text::one_line;

/// The script for a shell.
///
/// # Errors
/// When there is none for it.
pub(super) fn of(shell: &str) -> Result<String> {
    match shell {
        "bash" => Ok(bash()),
        "zsh" => Ok(zsh()),
        "fish" => Ok(fish()),
        "" => Err(Error::invalid("pi-lcm completions takes the shell: bash, zsh or fish")),
        _ => Err(Error::invalid(format!(
            "there are no completions for {}: there are those for bash, zsh and fish",
            one_line(shell, 40)
        ))),
    }
}

/// The options of a command, each with a line and what is known of its value.
fn options(entry: &CliCommand) -> Vec<(&'static str, Option<&'static Valued>, &'static str)> {
    let flags = entry.flags().map(|(name, help)| (name, None, help));
    let valued = entry.valued.iter().chain(&COMMON).map(|option| (option.name, Some(option), option.help));
    flags.chain(valued).chain([(JSON, None, "the answer as JSON"), ("--help", None, "help")]).collect()
}

/// Every option whose value is one of some words, once.
fn chosen() -> Vec<&'static Valued> {
    let mut found: Vec<&Valued> = Vec::new();
    for option in COMMANDS.iter().flat_map(|command| command.valued).chain(&COMMON) {
        if !option.choices.is_empty() && found.iter().all(|known| known.name != option.name) {
            found.push(option);
        }
    }
    found
}

fn names() -> String {
    COMMANDS.iter().map(|command| command.name).collect::<Vec<_>>().join(" ")
}

fn takes_path(entry: &CliCommand) -> bool {
    matches!(entry.takes, Takes::Path { .. })
}

fn bash() -> String {
    let mut cases = String::new();
    for command in COMMANDS {
        let words: Vec<&str> = options(command).into_iter().map(|(name, ..)| name).collect();
        let files = if takes_path(command) { " files=1" } else { "" };
        let _ = writeln!(cases, "    {}) words=\"{}\"{files} ;;", command.name, words.join(" "));
    }
    let choices: String = chosen().iter().fold(String::new(), |mut lines, option| {
        let words = option.choices.join(" ");
        let _ = writeln!(
            lines,
            "  {}) COMPREPLY=($(compgen -W \"{words}\" -- \"$current\")); return ;;",
            option.name
        );
        lines
    });
    include_str!("completions.bash")
        .replace("@NAMES@", &names())
        .replace("@CASES@\n", &cases)
        .replace("@CHOICES@\n", &choices)
}

fn zsh() -> String {
    let mut commands = String::new();
    let mut cases = String::new();
    let plain = |text: &str| text.replace('\'', "'\\''").replace(['[', ']'], "").replace(':', "\\:");
    for command in COMMANDS {
        let _ = writeln!(commands, "    '{}:{}'", command.name, plain(command.line()));
        let _ = writeln!(cases, "    {})\n      _arguments \\", command.name);
        for (name, value, help) in options(command) {
            let value =
                value.map(|option| format!(":{}:{}", option.value, action(option))).unwrap_or_default();
            let _ = writeln!(cases, "        '{name}[{}]{value}' \\", plain(help));
        }
        let rest = if takes_path(command) { "_files" } else { "" };
        let _ = writeln!(cases, "        '*:{}:{rest}' ;;", command.name);
    }
    include_str!("completions.zsh").replace("@COMMANDS@\n", &commands).replace("@CASES@\n", &cases)
}

/// How zsh completes an option's value.
fn action(option: &Valued) -> String {
    match option.name {
        super::PROJECT => "_directories".into(),
        super::DATABASE => "_files".into(),
        _ if !option.choices.is_empty() => format!("({})", option.choices.join(" ")),
        _ => " ".into(),
    }
}

fn fish() -> String {
    let mut out = String::from(
        "# Completions of pi-lcm for fish: pi-lcm completions fish | source\ncomplete -c pi-lcm -f\n",
    );
    let plain = |text: &str| text.replace('\\', "\\\\").replace('\'', "\\'");
    for command in COMMANDS {
        let (name, help) = (command.name, plain(command.line()));
        let _ = writeln!(out, "complete -c pi-lcm -n __fish_use_subcommand -a {name} -d '{help}'");
        let seen = format!("complete -c pi-lcm -n '__fish_seen_subcommand_from {name}'");
        for (option, value, help) in options(command) {
            let value = match (option, value) {
                (super::PROJECT | super::DATABASE, _) => " -r -F".into(),
                (_, Some(value)) if !value.choices.is_empty() => {
                    format!(" -x -a '{}'", value.choices.join(" "))
                }
                (_, Some(_)) => " -x".into(),
                (_, None) => String::new(),
            };
            let _ = writeln!(out, "{seen} -l {}{value} -d '{}'", option.trim_start_matches('-'), plain(help));
        }
        if takes_path(command) {
            let _ = writeln!(out, "{seen} -F");
        }
    }
    out.trim_end().to_owned()
}
