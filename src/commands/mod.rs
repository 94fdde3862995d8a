//! `/lcm …`: commands about the history, answered in plain text or as JSON.
//!
//! A sub-command is a file with a [`Command`] and a row in [`COMMANDS`], from which help and completion are
//! generated. Its answer has a text form and a JSON form.

pub(crate) mod args;
pub(crate) mod backup;
mod compact;
mod context;
pub(crate) mod doctor;
pub(crate) mod export;
mod help;
pub mod import;
mod notes;
mod purge;
mod redo;
pub(crate) mod search;
pub(crate) mod sessions;
pub mod settings;
pub(crate) mod show;
pub(crate) mod simulate;
mod spent;
pub(crate) mod stats;
mod style;
mod summarizer;
pub mod sync;
pub(crate) mod tree;

use std::path::PathBuf;
use std::pin::Pin;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use args::CommandLine;
pub use args::Rest;
pub(crate) use help::command;
use import::Importer;
use lcm_ingest::import::{Folders, Home};
use lcm_model::config::{DEFINITIONS, SettingSources, Settings};
use lcm_model::error::{Error, Result};
use lcm_model::policy::{Folding, Live};
use lcm_model::text::{self, count, one_line};
use lcm_recall::Scope;
use lcm_recall::describe::{BranchTokens, Overview, branch_tokens, overview};
use lcm_store::Store;
pub use style::Style;
pub use summarizer::Summarizer;
use sync::Syncer;

/// A sub-command of `/lcm`.
#[derive(Clone, Copy)]
pub struct Command {
    /// What to type.
    pub name: &'static str,
    /// A one-line description.
    pub help: &'static str,
    /// Its forms, each with a description; `/lcm` is left out, `--json` implied.
    pub usage: &'static [(&'static str, &'static str)],
    /// Completions after its name, each with a description.
    pub arguments: &'static [(&'static str, &'static str)],
    /// Whether it may take long, so that the user should be able to type meanwhile.
    pub is_long: bool,
    /// Answers a request.
    pub answer: for<'a> fn(&'a CommandContext<'a>) -> Answering<'a>,
}

/// A pending answer.
pub type Answering<'a> = Pin<Box<dyn Future<Output = Result<Answer>> + Send + 'a>>;

/// Every sub-command, in the order in which help lists them.
pub(crate) const COMMANDS: &[Command] = &[
    help::COMMAND,
    stats::COMMAND,
    sessions::COMMAND,
    tree::COMMAND,
    search::COMMAND,
    show::COMMAND,
    notes::COMMAND,
    compact::COMMAND,
    redo::COMMAND,
    context::COMMAND,
    simulate::COMMAND,
    doctor::COMMAND,
    import::COMMAND,
    export::COMMAND,
    backup::COMMAND,
    sync::COMMAND,
    purge::COMMAND,
    settings::COMMAND,
];

/// A line of `/lcm`, and what the host knows.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CommandRequest {
    /// The text after `/lcm`.
    pub line: String,
    /// The last entry of the branch.
    pub leaf_id: Option<String>,
    /// Where Pi keeps its sessions.
    pub folders: Folders,
    pub sources: SettingSources,
    /// Columns of the screen, if there is one.
    pub columns: Option<usize>,
    /// The viewer's template, if the package includes it.
    pub viewer_template: Option<PathBuf>,
    /// The current context, as far as Pi knows.
    pub live: Live,
    /// The models that write summaries, in the order in which they are asked, as far as Pi knows.
    pub summarizers: Vec<Summarizer>,
}

/// A request and its context.
pub struct CommandContext<'a> {
    pub request: &'a CommandRequest,
    pub home: &'a Home,
    pub scope: &'a Scope,
    pub settings: &'a Settings,
    pub importer: &'a Importer,
    pub syncer: &'a Syncer,
    pub doing: &'a Doing,
    /// Whether in Pi or in a shell.
    pub manner: Style,
    pub cancel: CancellationToken,
    /// The text after the command's name, without `--json`.
    pub rest: Rest,
}

/// A session's running work.
#[derive(Clone, Debug, Default)]
pub struct Doing {
    /// The session's folds so far.
    pub folding: Folding,
    /// Work ahead of a compaction: `off`, `idle`, `working`, or `resting` after a failure.
    pub background: &'static str,
    /// How long it rests yet, and why.
    pub pause: Option<(Duration, String)>,
    pub compaction: Option<String>,
    pub import: Option<String>,
}

impl Doing {
    /// `paused for 2 minutes: provider/model: 400 no such model`
    fn pause_in_words(&self) -> Option<String> {
        let (left, why) = self.pause.as_ref()?;
        let minutes = usize::try_from(left.as_secs().div_ceil(60)).unwrap_or(usize::MAX);
        Some(format!("paused for {}: {}", count(minutes, "minute"), one_line(why, 160)))
    }
}

impl CommandContext<'_> {
    fn store(&self) -> &Store {
        &self.home.store
    }

    async fn overview(&self) -> Result<(Overview, BranchTokens)> {
        let scope = self.scope.clone();
        self.store().read(move |view| Ok((overview(view, &scope)?, branch_tokens(view, &scope)?))).await
    }
}

/// A command's answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Answer {
    /// As text, or as JSON if requested.
    pub text: String,
    pub answer: Value,
    /// What the user must agree to first. Nothing was done yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub confirm: Option<Confirm>,
    /// A message for Pi to add to the session, for the model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub entry: Option<SessionMessage>,
}

/// A message of ours for Pi's `sendMessage`.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionMessage {
    pub custom_type: &'static str,
    pub content: String,
    /// Data that the session file stores with it.
    pub details: Value,
}

/// A question to the user, before a command that can't be undone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Confirm {
    pub title: String,
    /// What would be done.
    pub message: String,
    /// What to run once the user agrees, without `/lcm`.
    pub line: String,
}

impl Answer {
    /// An answer with a text and a JSON form.
    fn new(text: String, answer: impl Serialize) -> Self {
        let answer = serde_json::to_value(answer).unwrap_or_default();
        Self { text, answer, ..Self::default() }
    }

    /// An answer that is just a sentence; `{"message"}` as JSON.
    fn sentence(message: impl Into<String>) -> Self {
        let message = message.into();
        Self::new(message.clone(), json!({"message": message}))
    }
}

/// The sub-commands for a host, an array of `{name, help, arguments: [{value, help}], long}`.
pub fn specs() -> Value {
    let argument = |(value, help): (&str, &str)| json!({"value": value, "help": help});
    let spec = |command: &Command| {
        let settings = DEFINITIONS.iter().filter(|_| command.name == settings::COMMAND.name);
        let settings = settings.map(|setting| (setting.key, setting.help));
        let arguments: Value = settings.chain(command.arguments.iter().copied()).map(argument).collect();
        json!({"name": command.name, "help": command.help, "arguments": arguments, "long": command.is_long})
    };
    COMMANDS.iter().map(spec).collect()
}

/// Whether this line removes stored data.
pub fn removes(line: &str) -> bool {
    let words = CommandLine::of(line);
    words.name == purge::COMMAND.name && words.rest.split_whitespace().any(|word| word == purge::AGREED)
}

/// Answers a line. With `--json` a failure is an answer too, `{"error": {code, message}}`.
///
/// # Errors
/// A message for the user.
pub async fn run(asked: CommandContext<'_>) -> Result<Answer> {
    let words = CommandLine::of(&asked.request.line);
    let answered = answer(asked, &words).await;
    as_asked(&words, answered)
}

/// Formats JSON for output: a terminal gets the same data as any other reader.
pub fn json_text(value: &Value) -> String {
    text::legible_json(&serde_json::to_string_pretty(value).unwrap_or_default())
}

/// An answer or a failure, as text or JSON.
fn as_asked(words: &CommandLine, answered: Result<Answer>) -> Result<Answer> {
    if !words.as_json {
        return answered;
    }
    let mut answer = answered.unwrap_or_else(|error| Answer::new(String::new(), failure(&error)));
    answer.text = json_text(&answer.answer);
    Ok(answer)
}

async fn answer(asked: CommandContext<'_>, words: &CommandLine) -> Result<Answer> {
    let command = command(&words.name)?;
    if words.wants_help {
        return Ok(help::of(command));
    }
    (command.answer)(&CommandContext { rest: Rest::typed(command, &words.rest)?, ..asked }).await
}

/// A failure as JSON.
pub fn failure(error: &Error) -> Value {
    json!({"error": {"code": error.code().as_str(), "message": error.to_string()}})
}
