//! The arguments of `pi-lcm`, defined once: clap generates help, completions and error messages from this.
//! What commands do is in `commands/`; this file defines how a shell calls them, and the exit codes.

use std::path::{Path, PathBuf};

use clap::builder::{NonEmptyStringValueParser, PossibleValuesParser};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint};
use clap_complete::Shell;
use serde_json::Value;

use crate::commands::{
    self, Rest, args, backup, doctor, export, import, search, sessions, show, simulate, stats, sync, tree,
};
use args::DATABASE;
use lcm_model::error::{Code, Error, Result};
use lcm_model::ids::AGENTS;
use lcm_model::text::one_line;
use lcm_recall::grep::{COUNTED_BY, ROLES, WRITERS};

/// Something was found, or all is well.
pub const FOUND: i32 = 0;
/// Nothing was found; for `doctor`, something is wrong.
pub const NOTHING: i32 = 1;
/// An error; one sentence on stderr says why.
pub const FAILED: i32 = 2;

const NAME: &str = "pi-lcm";
const GREP: &str = "grep";
const COMPLETIONS: &str = "completions";
const SERVER: &str = "mcp";
/// A command's positional arguments.
const WORDS: &str = "words";
/// Uses of `grep`, which searches other sessions than in Pi.
const GREP_FORMS: [(&str, &str); 4] = [
    ("grep retry budget --role user --after 3d", "the best matches among the user's messages of three days"),
    ("grep -e 'E[0-9]{4}' --limit 5", "the newest matches of a regular expression"),
    ("grep deadlock --count day", "how many messages of each day say so, with the first and the last"),
    ("grep deadlock --json | jq -r '.hits[].id'", "the ids of the matches, for scripts"),
];
/// Uses of the program.
const USES: [(&str, &str); 3] = [
    ("import", "stores this project's sessions"),
    ("grep '\"connection refused\"'", "finds where it was said, word for word"),
    ("show m-1a2b3c4d5e", "shows a match in full"),
];
const SERVER_FORMS: [(&str, &str); 2] = [
    ("mcp", "what an agent's settings name as the command: claude mcp add lcm -- pi-lcm mcp"),
    ("mcp --project ~/shop", "serves that project, wherever the agent works"),
];
const COMPLETION_FORMS: [(&str, &str); 2] = [
    ("completions bash", "for this shell: source <(pi-lcm completions bash)"),
    ("completions fish", "for every shell: write it to ~/.config/fish/completions/pi-lcm.fish"),
];
/// What makes the words of `grep` a pattern.
const REGEX_FLAGS: [&str; 4] = ["-e", "-ie", "-ei", "--regex"];
const PROJECT: &str = "--project";
const SESSION: &str = "--session";
const COLOR: &str = "--color";
pub(super) const JSON: &str = "--json";
/// Columns of help.
const WIDTH: usize = 80;
/// The most characters of an error message, which repeats user input.
const COMPLAINT: usize = 300;

/// How a command uses the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// Needs none.
    Nothing,
    /// Reads the history.
    Reads,
    /// Changes existing data.
    Changes,
    /// Adds to the history, and creates it if needed.
    Adds,
}

/// The parsed arguments.
pub(super) enum ParsedArgs {
    /// A text to print: help, the version, completions.
    Text(String),
    /// A command.
    Run(Invocation),
    /// The MCP server.
    Serve(ChosenHistory),
}

/// The chosen history.
pub(super) struct ChosenHistory {
    pub project: Option<PathBuf>,
    /// A database, instead of a project.
    pub database: Option<PathBuf>,
    /// The session's id or a prefix of it.
    pub session: Option<String>,
}

/// A command with its arguments.
pub(super) struct Invocation {
    /// Its name in a shell.
    pub name: String,
    /// The command of `/lcm` that answers.
    pub command: &'static commands::Command,
    /// The history it is about.
    pub history: ChosenHistory,
    /// Whether to answer as JSON.
    pub as_json: bool,
    /// Whether to use colors; `None` if a terminal decides.
    pub color: Option<bool>,
    /// The command's own arguments.
    pub rest: Rest,
}

/// The program's definition.
pub(super) fn program() -> Command {
    Command::new(NAME)
        .about("pi-lcm: search, check and export the stored history of Pi's sessions")
        .version(env!("CARGO_PKG_VERSION"))
        .propagate_version(true)
        .disable_help_subcommand(true)
        .args_override_self(true)
        .term_width(WIDTH)
        .after_help(format!(
            "{}\n\nExit codes: 0 success; 1 nothing found, or doctor found a problem; 2 error.",
            examples(&USES)
        ))
        .args(common().map(|option| option.global(true).help_heading("General options")))
        .subcommands(commands())
        .subcommand(
            Command::new(SERVER)
                .about("serve other agents over MCP on stdin and stdout")
                .after_help(examples(&SERVER_FORMS)),
        )
        .subcommand(
            Command::new(COMPLETIONS)
                .about("print completions for a shell")
                .arg(chosen(positional("bash|zsh|fish", "the shell"), ["bash", "zsh", "fish"]).required(true))
                .after_help(examples(&COMPLETION_FORMS)),
        )
}

/// The options of every command.
fn common() -> [Arg; 5] {
    [
        valued(PROJECT, "FOLDER", "the project's folder; default: the current folder")
            .value_hint(ValueHint::DirPath),
        valued(DATABASE, "FILE", "a database or backup to read instead").value_hint(ValueHint::FilePath),
        valued(SESSION, "ID", "the start of a session's id; default: the last one"),
        chosen(
            valued(COLOR, "WHEN", "whether to use colors; auto: on a terminal"),
            ["always", "never", "auto"],
        ),
        flag(JSON, "print JSON"),
    ]
}

/// Every command, in the order in which help lists them.
fn commands() -> [Command; 11] {
    let path = || positional("PATH", "a file or a folder").value_parser(path).value_hint(ValueHint::AnyPath);
    let words = positional("WORDS", "words to search for").num_args(1..).required(true);
    [
        of(&stats::COMMAND, &[])
            .arg(flag(stats::FULL, "include figures that need the whole history to be read")),
        of(&sessions::COMMAND, &[]),
        of(&search::COMMAND, &[search::PROJECT, search::MORE])
            .name(GREP)
            .alias(search::COMMAND.name)
            .about("search all sessions of the project, or one with --session")
            .after_help(examples(&GREP_FORMS))
            .args(filters())
            .mut_arg("--regex", |option| option.short('e'))
            .mut_arg("--ignore-case", |option| option.short('i'))
            .arg(words),
        of(&show::COMMAND, &[])
            .arg(positional("ID", "id of a message (m-…) or summary (s-…)").required(true)),
        of(&tree::COMMAND, &[]),
        of(&export::COMMAND, &[])
            .about("write a branch as Markdown, a web page or a session file")
            .arg(chosen(
                valued(args::FROM, "AGENT", "another agent's sessions, as files with its records"),
                AGENTS,
            ))
            .arg(path()),
        of(&doctor::COMMAND, &[]),
        of(&simulate::COMMAND, &[simulate::MODEL])
            .arg(valued(simulate::MODEL, "NAME", "the model whose prices count; default: the session's own"))
            .arg(path().num_args(0..)),
        of(&import::COMMAND, &["--stop"])
            .about("store this project's older sessions, those in PATH or another agent's")
            .arg(chosen(valued(args::FROM, "AGENT", "another agent's sessions"), import::AGENT_NAMES))
            .arg(path()),
        of(&backup::COMMAND, &[]).arg(path()),
        of(&sync::COMMAND, &[])
            .arg(valued(sync::NAME, "NAME", "the project's name there; default: its git remote's address"))
            .arg(
                positional("TARGET", "a folder, or s3://BUCKET/PREFIX; default: the setting syncTarget")
                    .value_hint(ValueHint::DirPath),
            ),
    ]
}

/// The options of `grep` with a value: all of [`search::VALUED`] but the session, which every command has.
fn filters() -> [Arg; 9] {
    [
        valued(search::LIMIT, "N", "maximum number of matches; default: 20").short('n'),
        chosen(valued(search::ROLE, "ROLE", "only messages with this role"), ROLES).ignore_case(true),
        valued(search::TOOL, "TOOL", "only results of this tool, such as bash"),
        chosen(valued(search::AGENT, "AGENT", "only this agent's messages"), WRITERS),
        valued(search::FILE, "FILE", "only messages that name this file"),
        valued(
            search::AFTER,
            "TIME",
            "only from this time on: 2026-11-20, 2026-11-20T09:30, 2h, 3d, yesterday",
        ),
        valued(search::BEFORE, "TIME", "only up to this time"),
        chosen(valued(search::SORT, "ORDER", "order of the results"), ["relevance", "recent", "oldest"]),
        chosen(valued(search::COUNT, "BY", "exact totals by this, instead of results"), COUNTED_BY),
    ]
}

/// A command of `/lcm` with those of its options that make sense outside Pi.
fn of(command: &'static commands::Command, without: &[&str]) -> Command {
    let kept = command.arguments.iter().filter(|(name, _)| !without.contains(name));
    let args: Vec<Arg> = kept.map(|(name, help)| flag(name, help)).collect();
    let is_kept = |line: &str| !without.iter().any(|option| line.contains(option));
    let forms: Vec<_> = command.usage.iter().filter(|(line, _)| is_kept(line)).copied().collect();
    Command::new(command.name).about(command.help).args(args).after_help(examples(&forms))
}

/// Uses of a command, as written in a shell.
fn examples(forms: &[(&str, &str)]) -> String {
    let forms = forms.iter().map(|(line, help)| {
        let help = help.replace("/lcm ", "pi-lcm ");
        format!("\n  {NAME} {line}\n      {help}")
    });
    format!("Examples:{}", forms.collect::<String>())
}

fn option(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name.trim_start_matches('-')).help(help)
}

fn flag(name: &'static str, help: &'static str) -> Arg {
    option(name, help).action(ArgAction::SetTrue)
}

fn valued(name: &'static str, value: &'static str, help: &'static str) -> Arg {
    let option = option(name, help).value_name(value).value_hint(ValueHint::Other);
    option.value_parser(NonEmptyStringValueParser::new())
}

fn positional(value: &'static str, help: &'static str) -> Arg {
    Arg::new(WORDS).value_name(value).help(help).value_hint(ValueHint::Other)
}

fn chosen<const N: usize>(option: Arg, choices: [&'static str; N]) -> Arg {
    option.value_parser(PossibleValuesParser::new(choices))
}

fn path(text: &str) -> std::result::Result<String, &'static str> {
    if text == "-" { Err("it takes a path; for a file named -, write ./-") } else { Ok(text.to_owned()) }
}

/// Parses the arguments of `pi-lcm`, run in the folder `here`.
///
/// # Errors
/// For unknown or missing arguments, with a hint.
pub(super) fn read(arguments: &[String], here: &Path) -> Result<ParsedArgs> {
    let arguments = arguments.iter().map(String::as_str);
    let named: Vec<&str> = match arguments.clone().next() {
        Some("help") => [NAME].into_iter().chain(arguments.skip(1)).chain(["--help"]).collect(),
        _ => [NAME].into_iter().chain(arguments).collect(),
    };
    let named = pattern_last(named)?;
    match program().try_get_matches_from(named) {
        Ok(matches) => match matches.subcommand() {
            Some((COMPLETIONS, matches)) => completions(matches).map(ParsedArgs::Text),
            Some((SERVER, matches)) => ChosenHistory::of(matches, here).map(ParsedArgs::Serve),
            Some((name, matches)) => invocation(name, matches, here).map(ParsedArgs::Run),
            None => Ok(ParsedArgs::Text(program().render_help().to_string().trim_end().to_owned())),
        },
        Err(error) => match error.kind() {
            ErrorKind::DisplayHelp => Ok(ParsedArgs::Text(error.to_string().trim_end().to_owned())),
            ErrorKind::DisplayVersion => Ok(ParsedArgs::Text(env!("CARGO_PKG_VERSION").to_owned())),
            _ => Err(complaint(&error)),
        },
    }
}

/// `grep -e PATTERN` with the pattern behind a `--`, because it may begin with a hyphen, as in grep.
fn pattern_last(mut arguments: Vec<&str>) -> Result<Vec<&str>> {
    let known: Vec<String> = program()
        .find_subcommand(GREP)
        .into_iter()
        .flat_map(Command::get_arguments)
        .chain(&common())
        .flat_map(|arg| {
            let short = arg.get_short().map(|name| format!("-{name}"));
            short.into_iter().chain(arg.get_long().map(|name| format!("--{name}")))
        })
        .collect();
    let is_known = |argument: &str| known.iter().any(|name| argument.split('=').next() == Some(name));
    let is_flag = |argument: &&str| REGEX_FLAGS.contains(argument);
    let end = arguments.iter().position(|argument| *argument == "--").unwrap_or(arguments.len());
    if arguments[..end].iter().filter(|argument| is_flag(argument)).count() > 1 {
        return Err(Error::invalid("-e is given more than once: grep -e 'ONE|OTHER' finds either"));
    }
    let at = arguments[..end].iter().position(is_flag).map(|flag| flag + 1).filter(|at| *at < end);
    if let Some(at) = at.filter(|at| arguments[*at].starts_with('-') && !is_known(arguments[*at])) {
        let pattern = arguments.remove(at);
        if end == arguments.len() + 1 {
            arguments.push("--");
        }
        arguments.push(pattern);
    }
    Ok(arguments)
}

/// Converts clap's error to a sentence.
fn complaint(error: &clap::Error) -> Error {
    if let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand)
        && let Ok(inside) = commands::command(name)
    {
        return Error::invalid(format!(
            "there is no pi-lcm {0}: /lcm {0} works only inside Pi (--help lists the commands here)",
            inside.name
        ));
    }
    let text = error.to_string();
    let parts = text.trim_start_matches("error: ").split("\n\n").map(str::trim);
    // Hardly anyone means a word that begins with a hyphen.
    let parts = parts.filter(|part| !part.starts_with("tip: to pass"));
    let said: Vec<&str> =
        parts.take_while(|part| !part.starts_with("Usage:") && !part.starts_with("For more")).collect();
    let all = if said.iter().any(|part| part.contains("<WORDS>")) {
        "; -e . matches every message with text"
    } else {
        ""
    };
    Error::invalid(format!("{}{all} (see --help)", one_line(&said.join("; "), COMPLAINT)))
}

/// The completion script for a shell.
fn completions(matches: &ArgMatches) -> Result<String> {
    let shell = value(matches, WORDS).unwrap_or_default().parse::<Shell>().map_err(Error::invalid)?;
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut program(), NAME, &mut script);
    let script = String::from_utf8_lossy(&script);
    // In bash, placeholders from help would be offered as words, and options where a file is expected; and
    // clap_complete 4.6 takes the hyphen in our name for the end of a command.
    let unwanted = [
        (" [PATH]", ""),
        (" <WORDS>...", ""),
        (" <ID>", ""),
        (r#"compgen -W "${opts}""#, r#"compgen -X "${cur:+=}${cur:--*}" -W "${opts}""#),
        ("pi__subcmd__lcm", "pi__lcm"),
    ];
    Ok(unwanted.iter().fold(script.into_owned(), |text, (from, to)| text.replace(from, to)))
}

fn value(matches: &ArgMatches, name: &str) -> Option<String> {
    matches.try_get_one::<String>(name).ok().flatten().cloned()
}

fn invocation(name: &str, matches: &ArgMatches, here: &Path) -> Result<Invocation> {
    let command = commands::command(if name == GREP { search::COMMAND.name } else { name })?;
    let history = ChosenHistory::of(matches, here)?;
    let is_set = |name: &&'static str| matches!(matches.try_get_one::<bool>(name), Ok(Some(true)));
    let of_all = match name {
        "backup" | "doctor" | "import" | "sync" => Some(name),
        "export" if matches.contains_id(args::FROM) => Some("export --from"),
        "export" if is_set(&export::ALL) => Some("export --all"),
        _ => None,
    };
    if let Some(name) = of_all.filter(|_| matches.contains_id(SESSION)) {
        return Err(Error::invalid(format!("{name} takes no {SESSION}: it is about all sessions")));
    }
    let own = command.arguments.iter().map(|(name, _)| *name);
    let mut options: Vec<(&'static str, String)> =
        own.chain([stats::FULL]).filter(is_set).map(|name| (name, String::new())).collect();
    // Without a session, all of them are meant.
    if name == GREP && history.session.is_none() {
        options.push((search::PROJECT, String::new()));
    }
    options.extend(history.database.iter().map(|path| (DATABASE, path.display().to_string())));
    if name == simulate::COMMAND.name && matches.contains_id(SESSION) {
        options.push((simulate::SESSION, String::new()));
    }
    let valued = args::valued(command.name).iter();
    options.extend(valued.filter_map(|name| Some((*name, value(matches, name)?))));
    let words = matches.try_get_many::<String>(WORDS).ok().flatten().unwrap_or_default().cloned();
    let mut words: Vec<String> = words.collect();
    // Make paths absolute: relative ones start at the shell's folder.
    match name {
        "export" if words.is_empty() => words.push(here.join("").to_string_lossy().into_owned()),
        "export" | "import" | "backup" | "simulate" | "sync" => {
            let paths = words.iter_mut().filter(|path| !path.contains("://"));
            paths.for_each(|path| *path = here.join(args::from_home(path)).to_string_lossy().into_owned());
        }
        _ => {}
    }
    Ok(Invocation {
        name: name.to_owned(),
        command,
        history,
        as_json: is_set(&JSON),
        color: value(matches, COLOR).filter(|when| when != "auto").map(|when| when == "always"),
        rest: Rest::split(command, options, words),
    })
}

impl ChosenHistory {
    fn of(matches: &ArgMatches, here: &Path) -> Result<Self> {
        let place = |option| value(matches, option).map(|path| here.join(args::from_home(&path)));
        let (project, database) = (place(PROJECT), place(DATABASE));
        // clap does not notice a conflict between options before and after the command.
        if project.is_some() && database.is_some() {
            return Err(Error::invalid("--project and --db exclude each other: leave one of them out"));
        }
        let session = value(matches, SESSION).filter(|session| session != "last");
        Ok(Self { project, database, session })
    }

    /// The project's folder: the given one, or the shell's.
    pub fn folder<'a>(&'a self, here: &'a Path) -> &'a Path {
        self.project.as_deref().unwrap_or(here)
    }

    /// A named database is not rebuilt, as it may be a copy or another machine's: an import reads it.
    pub fn with_remedy(&self, error: Error) -> Error {
        match &self.database {
            Some(file)
                if matches!(error.code(), Code::Damaged | Code::Foreign)
                    || error.to_string().contains(doctor::REBUILD) =>
            {
                let path = file.display();
                let is_text = || std::fs::read(file).is_ok_and(|bytes| String::from_utf8(bytes).is_ok());
                let or_damaged = match error.code() == Code::Foreign || is_text() {
                    true => String::new(),
                    false => {
                        format!(", or is damaged (pi-lcm import {path}, in a project, adds what can be read)")
                    }
                };
                error.saying(format!("{path} is not a database of this extension{or_damaged}"))
            }
            _ => error,
        }
    }
}

impl Invocation {
    /// How it uses the history.
    pub fn access(&self) -> Access {
        match self.name.as_str() {
            "import" | "sync" => Access::Adds,
            // Session files are enough, unless the history names them.
            "simulate" if !self.rest.has(simulate::SESSION) && self.history.database.is_none() => {
                Access::Nothing
            }
            "doctor" if self.rest.has(doctor::REBUILD) => Access::Changes,
            _ => Access::Reads,
        }
    }

    /// The exit code for an answer.
    pub fn code(&self, answer: &Value) -> i32 {
        let is_empty = |key: &str| answer[key].as_array().is_some_and(Vec::is_empty);
        let has = |key: &str| answer[key].is_array() && !is_empty(key);
        let has_failed = has("failed")
            || ["brokenLines", "unreadableRows", "missingBytes"]
                .iter()
                .any(|lost| answer[lost].as_u64() > Some(0));
        match self.name.as_str() {
            GREP if is_empty("hits") || has("unknown") || answer["total"] == 0 => NOTHING,
            "sessions" if is_empty("sessions") => NOTHING,
            "doctor" if answer["sound"] == false => NOTHING,
            "sync" if answer["withheld"] == true || has("refused") => FAILED,
            "import" if has_failed || !answer["stoppedAfter"].is_null() => FAILED,
            "import" if answer["files"] == 0 => NOTHING,
            _ => FOUND,
        }
    }

    /// Whether it is about a session. Commands about the database alone also work if no session can be read.
    pub fn is_of_session(&self) -> bool {
        self.history.session.is_some()
            || !matches!(self.name.as_str(), "doctor" | "import" | "backup" | "simulate" | "sync")
    }

    /// Whether the answer quotes messages of a session.
    pub fn quotes(&self) -> bool {
        matches!(self.name.as_str(), GREP | "show" | "tree" | "sessions")
    }
}
