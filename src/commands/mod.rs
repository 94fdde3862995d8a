//! `/lcm …`: what a person asks about the history, answered in plain text or as JSON.
//!
//! A sub-command is a file with a [`Command`] and a row in [`COMMANDS`]; help and completion are made from there. It answers
//! with one value, which says itself in words (`Display`) and as JSON (`Serialize`).

pub(crate) mod args;
pub(crate) mod backup;
mod columns;
mod compact;
mod context;
pub(crate) mod doctor;
pub(crate) mod export;
mod help;
pub mod import;
mod notes;
mod purge;
pub mod rest;
pub(crate) mod search;
pub(crate) mod sessions;
pub mod settings;
pub(crate) mod show;
pub mod size;
mod spent;
pub(crate) mod stats;
mod style;
pub(crate) mod tree;

use std::fmt::Display;
use std::path::Path;
use std::pin::Pin;

use serde::Serialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::config::{Settings, Sources};
use crate::error::{Error, Result};
use crate::ingest::import::{Folders, Home};
use crate::policy::{Decided, Ledger};
use crate::pruning::Live;
use crate::recall::Scope;
use crate::recall::describe::{Overview, overview};
use crate::store::Store;
use crate::text;
use args::Words;
pub(crate) use help::command;
use import::Importer;
use rest::Rest;
pub use style::Style;

/// A sub-command of `/lcm`.
#[derive(Clone, Copy)]
pub struct Command {
    /// What to type.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
    /// The forms it takes, each with what that form does; `/lcm` is left out, `--json` understood.
    pub usage: &'static [(&'static str, &'static str)],
    /// What may be completed behind its name, each with a line.
    pub arguments: &'static [(&'static str, &'static str)],
    /// It may take long: nobody should have to wait for it before something else is typed.
    pub is_long: bool,
    /// Answers what is asked.
    pub answer: for<'a> fn(&'a CommandContext<'a>) -> Answering<'a>,
}

/// An answer on its way.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer>> + Send + 'a>>;

/// Every sub-command, in the order in which help lists them.
const COMMANDS: &[Command] = &[
    help::COMMAND,
    stats::COMMAND,
    sessions::COMMAND,
    tree::COMMAND,
    search::COMMAND,
    show::COMMAND,
    notes::COMMAND,
    compact::COMMAND,
    context::COMMAND,
    doctor::COMMAND,
    import::COMMAND,
    export::COMMAND,
    backup::COMMAND,
    purge::COMMAND,
    settings::COMMAND,
];

/// Who asks, and what is asked.
pub struct CommandContext<'a> {
    /// The project and its store.
    pub home: &'a Home,
    /// Where Pi keeps its sessions.
    pub folders: &'a Folders,
    /// The session and its branch.
    pub scope: &'a Scope,
    /// The settings that hold.
    pub settings: &'a Settings,
    /// Of the open session.
    pub importer: &'a Importer,
    /// Where the settings come from.
    pub sources: &'a Sources,
    /// What is under way in the session.
    pub doing: &'a Doing,
    /// Columns of the screen, where there is one.
    pub columns: Option<usize>,
    /// The window of the session's model, in tokens, where it is known.
    pub window: Option<usize>,
    /// What the viewer is written from, where the package has it.
    pub viewer_template: Option<&'a Path>,
    /// The context as it is, as far as Pi knows.
    pub live: &'a Live,
    /// In Pi, or in a shell.
    pub manner: Style,
    /// Stops what takes long.
    pub cancel: CancellationToken,
    /// Everything behind the command's name, `--json` left out.
    pub rest: Rest,
}

/// What is under way in a session.
#[derive(Clone, Debug, Default)]
pub struct Doing {
    /// What was decided last about the context, oldest first.
    pub decided: Vec<Decided>,
    /// What the session has cost since it was opened.
    pub ledger: Ledger,
    /// The provider tells what of a prompt came out of its cache.
    pub tells_cache: bool,
    /// Work ahead of a compaction: `off`, `idle`, `working`, or `resting` after a failure.
    pub background: &'static str,
    /// How far the compaction is.
    pub compaction: Option<String>,
    /// How far the import is.
    pub import: Option<String>,
}

impl CommandContext<'_> {
    fn store(&self) -> &Store {
        &self.home.store
    }

    async fn overview(&self) -> Result<Overview> {
        let scope = self.scope.clone();
        self.store().read(move |view| overview(view, &scope)).await
    }
}

/// What a command answers.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Answer {
    /// In words, or as JSON where that was asked for.
    pub text: String,
    /// As data.
    pub answer: Value,
    /// What the user is to agree to first. Nothing was done yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirm>,
    /// What Pi is to put into the session, for the model to read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub told: Option<SessionMessage>,
}

/// A message of ours, as Pi's `sendMessage` takes it.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionMessage {
    /// What it is.
    pub custom_type: &'static str,
    /// What the model reads.
    pub content: String,
    /// What the session file keeps beside it.
    pub details: Value,
}

/// A question to the user, for a command that can't be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Confirm {
    /// The question.
    pub title: String,
    /// What would be done.
    pub message: String,
    /// What to run once the user agrees, without `/lcm`.
    pub line: String,
}

impl Answer {
    /// An answer that says itself in words and as JSON.
    pub fn of<T: Display + Serialize>(answer: &T) -> Self {
        Self {
            text: answer.to_string(),
            answer: serde_json::to_value(answer).unwrap_or_default(),
            confirm: None,
            told: None,
        }
    }

    /// The same, with something for the model to read.
    #[must_use]
    pub fn telling(self, told: SessionMessage) -> Self {
        Self { told: Some(told), ..self }
    }

    /// The same, with a question.
    #[must_use]
    pub fn asking(self, confirm: Confirm) -> Self {
        Self { confirm: Some(confirm), ..self }
    }
}

/// An answer that is a sentence and nothing else; as JSON `{"message"}`.
#[derive(Serialize)]
struct Sentence {
    message: String,
}

impl Sentence {
    fn answer(message: impl Into<String>) -> Answer {
        Answer::of(&Self { message: message.into() })
    }
}

impl Display for Sentence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.message)
    }
}

/// The sub-commands, for help and completion.
#[must_use]
pub fn list() -> &'static [Command] {
    COMMANDS
}

/// The sub-commands as a host needs them, an array of `{name, help, arguments: [{value, help}], long}`.
#[must_use]
pub fn specs() -> Value {
    let argument = |(value, help): &(&str, &str)| json!({"value": value, "help": help});
    let spec = |command: &Command| {
        let arguments: Value = command.arguments.iter().map(argument).collect();
        json!({"name": command.name, "help": command.help, "arguments": arguments, "long": command.is_long})
    };
    COMMANDS.iter().map(spec).collect()
}

/// Does this line remove something that was stored?
#[must_use]
pub fn removes(line: &str) -> bool {
    let words = Words::of(line);
    words.name == purge::COMMAND.name && words.rest.split_whitespace().any(|word| word == purge::AGREED)
}

/// Answers `/lcm <line>`. With `--json` a failure is an answer too, `{"error": {code, message}}`.
///
/// # Errors
/// What the user should read.
pub async fn run(asked: CommandContext<'_>, line: &str) -> Result<Answer> {
    let words = Words::of(line);
    let answered = answer(asked, &words).await;
    as_asked(&words, answered)
}

/// JSON as it is written out: whoever reads it, a terminal among them, gets the same data.
#[must_use]
pub fn json_text(value: &Value) -> String {
    text::legible_json(&serde_json::to_string_pretty(value).unwrap_or_default())
}

/// An answer, or a failure, in words or as JSON.
fn as_asked(words: &Words, answered: Result<Answer>) -> Result<Answer> {
    if !words.as_json {
        return answered;
    }
    let mut answer = answered.unwrap_or_else(|error| failure(&error));
    answer.text = json_text(&answer.answer);
    Ok(answer)
}

async fn answer(asked: CommandContext<'_>, words: &Words) -> Result<Answer> {
    let command = command(&words.name)?;
    if words.wants_help {
        return Ok(help::of(command));
    }
    (command.answer)(&CommandContext { rest: words.rest.clone().into(), ..asked }).await
}

fn failure(error: &Error) -> Answer {
    let (code, message) = (error.code().as_str(), error.to_string());
    Answer {
        text: String::new(),
        answer: json!({"error": {"code": code, "message": message}}),
        confirm: None,
        told: None,
    }
}
