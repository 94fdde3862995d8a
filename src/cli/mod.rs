//! The history outside Pi: answers a shell command from a project's store or any database. No session is
//! opened, reading commands write nothing, and a Pi working in the project is not disturbed.

mod arguments;

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

use regex::Regex;
use serde::{Deserialize, Serialize};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::commands::import::Importer;
use crate::commands::search::more_hits;
use crate::commands::sync::Syncer;
use crate::commands::{CommandContext, CommandRequest, Doing, Style, json_text};
use crate::mcp::{self, Histories};
use arguments::{Access, ChosenHistory, Invocation, ParsedArgs, read};
pub use arguments::{FAILED, FOUND};
use lcm_ingest::import::{Folders, Home};
use lcm_model::config::{self, ProjectIdentity, SettingSources, Settings};
use lcm_model::error::{Code, Error, Result};
use lcm_model::ids::ConversationId;
use lcm_model::text::legible;
use lcm_recall::Scope;
use lcm_recall::grep::session;
use lcm_store::tasks::blocking;
use lcm_store::{ReadOnly, Store, places, project_of, real_path};

/// A shell command and its context.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CliRequest {
    /// Everything after the program's name.
    arguments: Vec<String>,
    /// The shell's folder.
    cwd: PathBuf,
    /// Where Pi keeps its settings and sessions.
    agent_dir: PathBuf,
    /// The relevant environment variables: `LCM_*`, `PI_*`, `NO_COLOR`, `FORCE_COLOR`, `TERM`.
    environment: HashMap<String, String>,
    /// The terminal's width; `None` without a terminal.
    columns: Option<usize>,
    /// The viewer's template, if the package includes it.
    viewer_template: Option<PathBuf>,
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct CliReply {
    /// For stdout, without the final line break.
    pub output: String,
    /// For stderr, likewise.
    pub complaint: String,
    /// The exit code: [`FOUND`], [`NOTHING`] or [`FAILED`].
    pub code: i32,
}

/// A shell user's access, with a way to stop long work.
#[derive(Default)]
pub struct Cli {
    cancel: CancellationToken,
    importer: Importer,
    syncer: Syncer,
}

/// A scope without a session: none has this row.
const NO_SESSION: Scope = Scope::at(ConversationId::NONE, None);

/// What was opened for a command.
struct OpenedHistory {
    home: Home,
    settings: Settings,
    request: CommandRequest,
}

impl Cli {
    /// Answers a command. `request` is JSON: `arguments`, `cwd`, `agentDir`, `environment`, and if any
    /// `viewerTemplate` and `columns` of the terminal.
    ///
    /// # Errors
    /// When it is not such JSON.
    pub async fn run(&self, request: &str) -> Result<CliReply> {
        let line: CliRequest = serde_json::from_str(request)
            .map_err(|error| Error::invalid(format!("the command is malformed: {error}")))?;
        let as_json = line.arguments.iter().any(|argument| argument == arguments::JSON);
        let reply = match read(&line.arguments, &line.cwd) {
            Ok(ParsedArgs::Text(text)) => Ok(CliReply { output: text, ..CliReply::default() }),
            Ok(ParsedArgs::Serve(history)) => return Ok(self.serve(line, history).await),
            Ok(ParsedArgs::Run(invocation)) => {
                let answered = self.answer(&line, &invocation).await;
                answered.map_err(|error| invocation.history.with_remedy(error))
            }
            Err(error) => Err(error),
        };
        Ok(reply.unwrap_or_else(|error| complaint(&error, as_json)))
    }

    /// Stops running work. A partly written file is removed; imported data stays.
    pub async fn stop(&self) {
        self.cancel.cancel();
        self.importer.close().await;
    }

    /// The progress of a running import.
    pub fn import_progress(&self) -> Option<String> {
        self.importer.progress().map(|words| words.replacen("LCM", "pi-lcm", 1))
    }

    /// Serves an MCP client until it disconnects. Stdout belongs to the client, even on failure.
    async fn serve(&self, line: CliRequest, history: ChosenHistory) -> CliReply {
        // A client lists a server that starts as one that works.
        if let Some(missing) = history.project.iter().chain(&history.database).find(|path| !path.exists()) {
            return complaint(&Error::invalid(format!("there is no {}", missing.display())), false);
        }
        let served = mcp::serve(Served { line, history }, self.cancel.clone()).await;
        served.err().map(|error| complaint(&error, false)).unwrap_or_default()
    }

    async fn answer(&self, line: &CliRequest, invocation: &Invocation) -> Result<CliReply> {
        let history = &invocation.history;
        let folder = history.folder(&line.cwd);
        let opened = line.open(history, invocation.access(), folder, &self.cancel).await?;
        let manner = manner(line, invocation);
        let answered = async {
            let OpenedHistory { home, settings, request } = &opened;
            let scope = match scope(&home.store, history.session.clone()).await {
                Err(_) if !invocation.is_of_session() => NO_SESSION,
                scope => scope?,
            };
            let asked = CommandContext {
                request,
                home,
                scope: &scope,
                settings,
                importer: &self.importer,
                syncer: &self.syncer,
                doing: &Doing { background: "unknown", ..Doing::default() },
                manner,
                cancel: self.cancel.clone(),
                rest: invocation.rest.clone(),
            };
            (invocation.command.answer)(&asked).await
        }
        .await;
        opened.home.store.close().await;
        let answer = answered?;
        let (code, is_grep) = (invocation.code(&answer.answer), invocation.name == "grep");
        let words = if invocation.quotes() { answer.text } else { in_a_shell(&answer.text) };
        let (output, more) = match () {
            () if invocation.as_json => (json_text(&answer.answer), String::new()),
            // Scripts get only hits.
            () if is_grep && code != FOUND => (String::new(), in_a_shell(&words)),
            // A pipe gets only hits, so stderr says if these are not all.
            () if is_grep && !manner.is_terminal && answer.answer["isCut"] == true => {
                let more = answer.answer["more"].as_u64().and_then(|more| usize::try_from(more).ok());
                (manner.shown(words), more_hits(more, false))
            }
            () => (manner.shown(words), String::new()),
        };
        // The doctor's answer has it.
        let notice = opened.home.store.notice().filter(|_| invocation.name != "doctor").unwrap_or_default();
        let complaint = [in_a_shell(notice), more].join("\n").trim().to_owned();
        Ok(CliReply { output, complaint: legible(&complaint).into_owned(), code })
    }
}

/// The command line that started an MCP server. It answers from the history that the line names, or that of a
/// folder its client works in.
struct Served {
    line: CliRequest,
    history: ChosenHistory,
}

impl Histories for Served {
    fn is_of_session(&self) -> bool {
        self.history.session.is_some()
    }

    fn follow_roots(&self) -> bool {
        self.history.project.is_none() && self.history.database.is_none()
    }

    async fn open(&self, roots: &[PathBuf], cancel: &CancellationToken) -> Result<(Store, Scope)> {
        let Self { line, history } = self;
        let (first, others) = roots
            .split_first()
            .map_or((history.folder(&line.cwd), [].as_slice()), |(first, others)| (first.as_path(), others));
        let mut opened = line.open(history, Access::Reads, first, cancel).await;
        for folder in others {
            if opened.is_err() {
                // If none has a history, the error is about the first.
                opened = line.open(history, Access::Reads, folder, cancel).await.or(opened);
            }
        }
        let store = opened?.home.store;
        let scope = scope(&store, history.session.clone()).await?;
        // The current request is in the client, not in the session: all its messages are past.
        Ok((store, Scope { newer_request: true, ..scope }))
    }

    fn with_remedy(&self, error: Error) -> Error {
        self.history.with_remedy(error)
    }
}

fn complaint(error: &Error, as_json: bool) -> CliReply {
    let sentence = in_a_shell(&error.to_string());
    let output = match as_json {
        true => json_text(&json!({"error": {"code": error.code().as_str(), "message": sentence}})),
        false => String::new(),
    };
    // The program is named once.
    let sentence = sentence.strip_prefix("pi-lcm ").unwrap_or(&sentence);
    CliReply { output, complaint: legible(&format!("pi-lcm: {sentence}")).into_owned(), code: FAILED }
}

/// Colors are for terminals, unless configured otherwise: <https://no-color.org>.
fn manner(line: &CliRequest, invocation: &Invocation) -> Style {
    let is_set = |name: &str| line.environment.get(name).is_some_and(|value| !value.is_empty());
    let is_terminal = line.columns.is_some();
    let is_dumb = line.environment.get("TERM").is_some_and(|terminal| terminal == "dumb");
    let has_colors = invocation.color.unwrap_or(is_terminal && !is_set("NO_COLOR") && !is_dumb);
    Style { is_shell: true, is_terminal, has_colors }
}

impl CliRequest {
    /// Opens the given database, or the history of `folder`.
    async fn open(
        &self,
        history: &ChosenHistory,
        access: Access,
        folder: &Path,
        cancel: &CancellationToken,
    ) -> Result<OpenedHistory> {
        // Pi names a project's sessions after the real folder, without the prefix that Windows adds.
        let folder = real_path(folder);
        let plain = folder.strip_prefix(r"\\?\").filter(|path| !path.starts_with("UNC"));
        let folder = Path::new(plain.unwrap_or(&folder));
        if access == Access::Nothing {
            let store = Store::of_project(None, "")?;
            return Ok(self.opened(store, self.settings(folder), folder));
        }
        if let Some(database) = history.database.clone() {
            if access != Access::Reads {
                let remedy = "use --project with the project's folder instead";
                return Err(Error::invalid(format!("--db is read-only: {remedy}")));
            }
            let cancel = cancel.clone();
            let named = move || Store::read_only_at(Path::new(&real_path(&database)), &cancel);
            let ReadOnly { store, project } = blocking(named).await?;
            let folder = PathBuf::from(project);
            return Ok(self.opened(store, self.settings(&folder), &folder));
        }
        let (sources, settings) = self.settings(folder);
        let project = project_of(folder, settings.project_identity);
        let (dir, wanted) = (settings.db_dir.clone(), project.clone());
        let found = match blocking(move || Store::read_only(&dir, &wanted)).await {
            Ok(Some(opened)) if is_empty(&opened.store, &settings.db_dir, &project).await => {
                opened.store.close().await;
                Ok(None)
            }
            found => found,
        };
        let store = match (access, found) {
            (Access::Reads, Ok(Some(opened))) => opened.store,
            (Access::Reads, Err(error)) => return Err(error),
            // A rebuild mends the damage.
            (Access::Changes, Err(error)) if error.code() != Code::Damaged => return Err(error),
            (Access::Reads | Access::Changes, Ok(None)) => return Err(nothing_of(folder, &settings)),
            (_, found) => {
                if let Ok(Some(opened)) = found {
                    opened.store.close().await;
                }
                if !folder.is_dir() {
                    return Err(no_folder(folder));
                }
                let dir = settings.db_dir.clone();
                blocking(move || Store::of_project(Some(&dir), &project)).await?
            }
        };
        Ok(self.opened(store, (sources, settings), folder))
    }

    fn opened(
        &self,
        store: Store,
        (sources, settings): (SettingSources, Settings),
        folder: &Path,
    ) -> OpenedHistory {
        let home = Home {
            store,
            cwd: real_path(folder),
            identity: settings.project_identity,
            db_dir: settings.db_dir.clone(),
            session_id: String::new(),
        };
        let (session_dir, all_sessions) = config::session_folders(&sources, &self.environment);
        let request = CommandRequest {
            folders: Folders { session_dir, all_sessions, home: None },
            sources,
            columns: self.columns,
            viewer_template: self.viewer_template.clone(),
            ..CommandRequest::default()
        };
        OpenedHistory { home, settings, request }
    }

    /// Pi's settings for a folder.
    fn settings(&self, folder: &Path) -> (SettingSources, Settings) {
        let own = self.environment.iter().filter(|(name, _)| name.starts_with("LCM_"));
        let sources = SettingSources {
            agent_dir: self.agent_dir.clone(),
            cwd: folder.to_owned(),
            project_trusted: config::is_trusted(&self.agent_dir, folder),
            // No Pi is running, so nothing is forecast.
            environment: own.map(|(name, value)| (name.clone(), value.clone())).collect(),
        };
        let settings = config::load(&sources).settings;
        (sources, settings)
    }
}

/// Whether a project has only a database without sessions, which a command that found nothing has made.
async fn is_empty(store: &Store, dir: &Path, project: &str) -> bool {
    let sessions = store.read(|view| view.messages().session_ids()).await;
    // Another file may be damaged.
    sessions.is_ok_and(|sessions| sessions.is_empty())
        && places(dir, project).iter().filter(|path| path.exists()).count() == 1
}

/// The error for a project without a history, with a suggestion.
fn nothing_of(folder: &Path, settings: &Settings) -> Error {
    let dir = &settings.db_dir;
    let has_one = |folder: &&Path| {
        let project = project_of(folder, ProjectIdentity::Cwd);
        places(dir, &project).iter().any(|path| path.exists())
    };
    let remedy = match folder.ancestors().skip(1).find(has_one) {
        Some(above) => format!("{} has one: --project {}", above.display(), above.display()),
        None if !folder.is_dir() => return no_folder(folder),
        None => {
            "choose another folder with --project or a database with --db, or create one with pi-lcm import"
                .into()
        }
    };
    Error::invalid(format!("{} has no history in {}; {remedy}", folder.display(), dir.display()))
}

fn no_folder(folder: &Path) -> Error {
    Error::invalid(format!("there is no folder {}: choose another with --project", folder.display()))
}

/// The requested session, by default the one used last, at the end of its last branch.
async fn scope(store: &Store, wanted: Option<String>) -> Result<Scope> {
    store
        .read(move |view| {
            let conversation = match &wanted {
                Some(id) => session(view, id, ": pi-lcm sessions lists them")?,
                None => match view.messages().other_sessions(ConversationId::NONE, 1)?.first() {
                    Some(last) => *last,
                    // An import that added nothing creates such a database.
                    None => return Ok(Scope::at(ConversationId::NONE, None)),
                },
            };
            let scope = Scope::at(conversation, view.messages().last_entry(conversation)?);
            Ok(Scope { is_outside: wanted.is_none(), ..scope })
        })
        .await
}

/// Rewrites the `/lcm` commands in a sentence for a shell.
fn in_a_shell(sentence: &str) -> String {
    static NAMED: LazyLock<Option<Regex>> = LazyLock::new(|| {
        let program = arguments::program();
        let names: Vec<&str> = program.get_subcommands().map(clap::Command::get_name).collect();
        Regex::new(&format!(r"(^|[\s(])/lcm (help )?(search|{})\b", names.join("|"))).ok()
    });
    let Some(named) = &*NAMED else { return sentence.to_owned() };
    let renamed = |found: &regex::Captures<'_>| {
        let name = if &found[3] == "search" { "grep" } else { &found[3] };
        let help = if found.get(2).is_some() { " --help" } else { "" };
        format!("{}pi-lcm {name}{help}", &found[1])
    };
    named.replace_all(sentence, renamed).into_owned()
}

#[cfg(test)]
mod tests {
    use super::in_a_shell;

    #[test]
    fn sentences_use_the_shells_names_of_commands() {
        for (in_pi, outside) in [
            ("/lcm search needs words", "pi-lcm grep needs words"),
            ("it is so; see /lcm help export", "it is so; see pi-lcm export --help"),
            ("/a/lcm import and (/lcm import)", "/a/lcm import and (pi-lcm import)"),
            ("/lcm settings maxDepth=4", "/lcm settings maxDepth=4"),
        ] {
            assert_eq!(in_a_shell(in_pi), outside);
        }
    }
}
