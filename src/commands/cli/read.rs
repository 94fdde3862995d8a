//! Arguments as a shell hands them over, made into a command.

use std::path::Path;

use super::{
    COLOR, COMMANDS, COMMON, CliCommand, Color, DATABASE, HELP, Invocation, JSON, PROJECT, ParsedArgs,
    SESSION, Takes, VERSION, completions, help,
};
use crate::commands::args;
use crate::commands::rest::{Given, Rest};
use crate::error::{Error, Result};
use crate::text::one_line;

/// An option that is known here, and whether it takes a value.
type Known = (&'static str, bool);

/// What was read so far.
#[derive(Default)]
struct Reading {
    entry: Option<&'static CliCommand>,
    options: Vec<(&'static str, String)>,
    words: Vec<String>,
    wants_completions: bool,
    /// No word is an option any more.
    has_ended: bool,
}

/// Reads the arguments of `pi-lcm`, given in the folder `here`.
///
/// # Errors
/// For what is unknown or missing, with what would be right.
pub fn read(arguments: &[String], here: &Path) -> Result<ParsedArgs> {
    let mut reading = Reading::default();
    let mut left = arguments.iter();
    while let Some(argument) = left.next() {
        let mut next = || left.next().cloned();
        match argument.strip_prefix("--") {
            Some("") if !reading.has_ended => reading.has_ended = true,
            Some(_) if !reading.has_ended => reading.long(argument, &mut next)?,
            _ if !reading.has_ended && argument.len() > 1 && argument.starts_with('-') => {
                reading.short(argument, &mut next)?;
            }
            _ => reading.word(argument)?,
        }
    }
    reading.wish(here)
}

impl CliCommand {
    /// Its own options and those of all commands.
    pub(super) fn options(&self) -> impl Iterator<Item = Known> {
        let flags = self.flags().map(|(name, _)| (name, false));
        flags.chain(self.valued.iter().map(|option| (option.name, true))).chain(common())
    }

    /// Those that take no value, each with a line.
    pub(super) fn flags(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let kept = self.command.arguments.iter().filter(|(name, _)| !self.without.contains(name));
        kept.chain(self.more).copied()
    }
}

fn common() -> impl Iterator<Item = Known> {
    COMMON.iter().map(|option| (option.name, true)).chain([JSON, HELP, VERSION].map(|name| (name, false)))
}

impl Reading {
    fn known(&self) -> Vec<Known> {
        self.entry.map_or_else(|| common().collect(), |entry| entry.options().collect())
    }

    fn called(&self) -> String {
        self.entry.map_or_else(|| "pi-lcm".to_owned(), |entry| format!("pi-lcm {}", entry.name))
    }

    fn word(&mut self, word: &str) -> Result<()> {
        if self.entry.is_some() || self.wants_completions {
            self.words.push(word.to_owned());
            return Ok(());
        }
        match word {
            "help" => self.options.push((HELP, String::new())),
            "completions" => self.wants_completions = true,
            _ => self.entry = Some(command(word)?),
        }
        Ok(())
    }

    /// `--name`, `--name=value`, `--name value`.
    fn long(&mut self, argument: &str, next: &mut dyn FnMut() -> Option<String>) -> Result<()> {
        let (name, value) = match argument.split_once('=') {
            Some((name, value)) => (name, Some(value.to_owned())),
            None => (argument, None),
        };
        let Some((name, takes_value)) = self.known().into_iter().find(|(known, _)| *known == name) else {
            return Err(self.unknown(name));
        };
        self.add(name, takes_value, value, next)
    }

    /// `-i`, `-ie`, `-n5`, `-n 5`.
    fn short(&mut self, argument: &str, next: &mut dyn FnMut() -> Option<String>) -> Result<()> {
        let mut letters = argument.trim_start_matches('-').chars();
        while let Some(letter) = letters.next() {
            let own = self.entry.map_or(&[][..], |entry| entry.short);
            let all = own.iter().chain(&[('h', HELP), ('V', VERSION)]);
            let name = all.copied().find(|(known, _)| *known == letter).map(|(_, name)| name);
            let Some(name) = name else { return Err(self.unknown(argument)) };
            let takes_value = self.known().contains(&(name, true));
            let rest = letters.as_str().strip_prefix('=').unwrap_or(letters.as_str());
            let value = (takes_value && !rest.is_empty()).then(|| rest.to_owned());
            self.add(name, takes_value, value, next)?;
            if takes_value {
                break;
            }
        }
        Ok(())
    }

    fn add(
        &mut self,
        name: &'static str,
        takes_value: bool,
        value: Option<String>,
        next: &mut dyn FnMut() -> Option<String>,
    ) -> Result<()> {
        let value = match (takes_value, value) {
            (false, None) => String::new(),
            (false, Some(_)) => return Err(Error::invalid(format!("{name} takes no value"))),
            (true, value) => {
                let value = value.or_else(next).filter(|value| !value.is_empty());
                value.ok_or_else(|| Error::invalid(format!("{name} takes a value, and none is given")))?
            }
        };
        self.options.push((name, value));
        Ok(())
    }

    fn unknown(&self, name: &str) -> Error {
        let known = self.known();
        let nearest = args::nearest(name, known.iter().map(|(name, _)| *name));
        let meant = nearest.map(|nearest| format!(": did you mean {nearest}?")).unwrap_or_default();
        let called = self.called();
        Error::invalid(format!("{called} knows no {}{meant} ({called} --help tells all)", one_line(name, 40)))
    }

    fn wish(mut self, here: &Path) -> Result<ParsedArgs> {
        let has = |name| self.options.iter().any(|(known, _)| *known == name);
        if has(VERSION) {
            return Ok(ParsedArgs::Text(env!("CARGO_PKG_VERSION").to_owned()));
        }
        if self.wants_completions {
            let shell = self.words.first().map_or("", String::as_str);
            return completions::of(shell).map(ParsedArgs::Text);
        }
        let (wants_help, as_json) = (has(HELP), has(JSON));
        let entry = match (self.entry, wants_help) {
            (None, true) => return Ok(ParsedArgs::Text(help::all())),
            (None, false) => {
                return Err(Error::invalid(format!(
                    "pi-lcm takes a command: {} (pi-lcm --help tells of each)",
                    names()
                )));
            }
            (Some(entry), true) => return Ok(ParsedArgs::Text(help::of(entry))),
            (Some(entry), false) => entry,
        };
        let mut take = |name: &str| {
            let last = self.options.iter().rfind(|(known, _)| *known == name).map(|(_, value)| value.clone());
            self.options.retain(|(known, _)| *known != name);
            last
        };
        let place = |path: String| here.join(args::from_home(&path));
        let (project, database) = (take(PROJECT).map(place), take(DATABASE).map(place));
        if project.is_some() && database.is_some() {
            return Err(Error::invalid(format!(
                "{PROJECT} and {DATABASE} exclude each other: leave one of them out"
            )));
        }
        let session = take(SESSION).filter(|session| session != "last");
        let color = take(COLOR).map(|when| color(&when)).transpose()?.unwrap_or_default();
        take(JSON);
        let words = entry.takes.words(entry, self.words, here)?;
        let rest = Rest::of(Given { options: self.options, words });
        Ok(ParsedArgs::Run(Box::new(Invocation { entry, project, database, session, as_json, color, rest })))
    }
}

impl Takes {
    /// Sees to it that it is as much as a command takes. Paths are made whole: where they begin is the shell's folder.
    fn words(self, entry: &CliCommand, mut words: Vec<String>, here: &Path) -> Result<Vec<String>> {
        let most = match self {
            Self::Nothing => 0,
            Self::Id | Self::Path { .. } => 1,
            Self::Words => usize::MAX,
        };
        let called = format!("pi-lcm {}", entry.name);
        if let Some(word) = words.get(most) {
            let takes = if most == 0 { "nothing beside its options" } else { entry.form };
            return Err(Error::invalid(format!(
                "{called} takes {takes}, so {} is too much ({called} --help tells all)",
                one_line(word, 40)
            )));
        }
        if matches!(self, Self::Id | Self::Words) && words.is_empty() {
            return Err(Error::invalid(format!("{called} takes {} ({called} --help tells all)", entry.form)));
        }
        if let Self::Path { or_here } = self {
            let path = words.pop().or_else(|| or_here.then(String::new));
            if path.as_deref() == Some("-") {
                return Err(Error::invalid(format!(
                    "{called} takes the path of a file: ./- is one, - is none"
                )));
            }
            words.extend(path.map(|path| here.join(path).to_string_lossy().into_owned()));
        }
        Ok(words)
    }
}

fn color(when: &str) -> Result<Color> {
    match when {
        "auto" => Ok(Color::Auto),
        "always" => Ok(Color::Always),
        "never" => Ok(Color::Never),
        _ => Err(Error::invalid(format!(
            "{COLOR} is not {}: it takes always, never, auto",
            one_line(when, 40)
        ))),
    }
}

fn command(name: &str) -> Result<&'static CliCommand> {
    let known = COMMANDS.iter().find(|command| command.name == name);
    known.ok_or_else(|| {
        if let Some(inside) = super::super::COMMANDS.iter().find(|command| command.name == name) {
            return Error::invalid(format!(
                "there is no pi-lcm {0}: /lcm {0} is for a session that is open in Pi (pi-lcm --help lists what there is here)",
                inside.name
            ));
        }
        let nearest = args::nearest(name, COMMANDS.iter().map(|command| command.name)).unwrap_or_default();
        let name = one_line(name, 40);
        Error::invalid(format!(
            "there is no pi-lcm {name}: did you mean pi-lcm {nearest}? (pi-lcm --help lists them all)"
        ))
    })
}

fn names() -> String {
    COMMANDS.iter().map(|command| command.name).collect::<Vec<_>>().join(", ")
}
