//! `/lcm export`: the history as files that others can read, written entry by entry and never over another file unasked.

mod html;
mod output;

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Answer, Command, CommandContext, args};
use crate::dag::MessageKind;
use crate::error::{Error, Result};
use crate::files;
use crate::ids::{ConversationId, EntryId, Hash};
use crate::ingest::export::{Lines, header, line, supplement};
use crate::model::{Message, Part, Role};
use crate::store::{ExportedEntry, ExportedSession, Store, View};
use crate::text::{count, grouped, megabytes, minute, now};
use output::{Output, unwritable};

const NAME: &str = "export";
const MARKDOWN: &str = "--md";
const SESSION: &str = "--jsonl";
const VIEWER: &str = "--html";
const ALL: &str = "--all";
const FORCE: &str = "--force";

pub(crate) const COMMAND: Command = Command {
    name: NAME,
    help: "this branch as Markdown; --html: as a web page; --jsonl: as a session file",
    usage: &[
        ("export [PATH]", "this branch as Markdown: every message, including compacted ones"),
        ("export --md [PATH]", "the same"),
        (
            "export --jsonl [PATH]",
            "this session with all its branches, as a session file for Pi and /lcm import",
        ),
        ("export --jsonl --all [FOLDER]", "every session of this project, one file each"),
        (
            "export --html [PATH]",
            "this session with all its branches as a web page: timeline, summaries, what the model saw, cost",
        ),
        ("export --html --all [PATH]", "every session of this project in one web page"),
        ("export … --force", "overwrites existing files"),
    ],
    arguments: &[
        (MARKDOWN, "this branch as Markdown"),
        (SESSION, "this session as a session file for Pi"),
        (VIEWER, "this session as a web page"),
        (ALL, "every session of this project"),
        (FORCE, "overwrite existing files"),
    ],
    is_long: true,
    answer: |asked| Box::pin(answer(asked)),
};

/// Characters of a session's id in a file's name; Pi's have 36.
const LONGEST: usize = 64;
/// Entries that are written between two looks at the store.
const SLICE: usize = 500;

/// What was written.
#[derive(Serialize)]
struct Written {
    format: &'static str,
    files: Vec<PathBuf>,
    messages: usize,
    bytes: u64,
}

/// What to say of a session without an entry.
const NOTHING: &str = "this session has nothing to export yet";

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    let (options, path) = args::options(NAME, &asked.rest, &[MARKDOWN, SESSION, VIEWER, ALL, FORCE])?;
    let has = |option| options.contains(&option);
    let path = Path::new(&asked.home.cwd).join(args::path(&path));
    let (all, force) = (has(ALL), has(FORCE));
    match (has(MARKDOWN), has(SESSION), has(VIEWER)) {
        (false, true, false) => write_sessions(asked, path, all, force).await,
        (false, false, true) => html::write(asked, path, all, force).await,
        (_, false, false) if all => Err(Error::invalid("/lcm export --all needs --jsonl or --html")),
        (_, false, false) => {
            let session = sessions(asked, false).await?.remove(0);
            let output = Output::create(&in_folder(path, &file_name(&session, "md")), force)?;
            let leaf = asked.scope.leaf.clone();
            Ok(Answer::of(&write_branch(asked.store(), &asked.home.cwd, session, leaf, output).await?))
        }
        _ => Err(Error::invalid("/lcm export takes only one of --md, --jsonl and --html")),
    }
}

/// This session, or all of them; one at least.
async fn sessions(asked: &CommandContext<'_>, all: bool) -> Result<Vec<ExportedSession>> {
    let only = (!all).then_some(asked.scope.conversation);
    let sessions = asked.store().read(move |view| view.exported_sessions(only)).await?;
    if sessions.is_empty() {
        return Err(Error::invalid(NOTHING));
    }
    Ok(sessions)
}

async fn write_sessions(asked: &CommandContext<'_>, path: PathBuf, all: bool, force: bool) -> Result<Answer> {
    let sessions = sessions(asked, all).await?;
    if all {
        if path.is_file() {
            let message =
                format!("{} is a file: --all needs a folder, for one file per session", path.display());
            return Err(Error::invalid(message));
        }
        files::make_private_dir(&path).map_err(|error| unwritable(&path, &error))?;
    }
    let mut written = Written { format: "jsonl", files: Vec::new(), messages: 0, bytes: 0 };
    for session in sessions {
        let target = in_folder(path.clone(), &file_name(&session, "jsonl"));
        // First, since it may take long: nothing is there yet that would be left behind.
        let lines = lines_of(asked.store(), &session).await?;
        let output = Output::create(&target, force)?;
        write_session(asked, session, lines, output, &mut written).await?;
    }
    Ok(Answer::of(&written))
}

/// What a file is called if the user does not say: no two sessions' are called the same, whatever their ids and the disk.
fn file_name(session: &ExportedSession, ending: &str) -> String {
    let day = &minute(session.started_at)[..10];
    format!("pi-{day}_{}.{ending}", name_of(&session.session_id))
}

/// An id as part of a file's name: itself where it is made of what any disk tells apart, as Pi's are; otherwise what is like it, and a hash.
fn name_of(id: &str) -> String {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if id.len() <= LONGEST && id.chars().all(is_plain) {
        return id.to_owned();
    }
    let like = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let begins: String = id.chars().take(LONGEST).map(like).collect();
    format!("{begins}_{}", &Hash::plain(id.as_bytes()).to_string()[..16])
}

fn in_folder(path: PathBuf, name: &str) -> PathBuf {
    if path.is_dir() { path.join(name) } else { path }
}

async fn write_session(
    asked: &CommandContext<'_>,
    session: ExportedSession,
    lines: Lines,
    mut output: Output,
    written: &mut Written,
) -> Result<()> {
    let (store, conversation) = (asked.store(), session.id);
    output.push(&(header(&session, &asked.home.cwd, &lines) + "\n"))?;
    let last = EntryId(i64::MAX);
    let (mut output, messages) = write_entries(asked, conversation, last, lines, output).await?;
    if let Some(line) = store.read(move |view| supplement(view, conversation)).await? {
        output.push(&(line + "\n"))?;
    }
    let (file, bytes) = output.finish()?;
    written.files.push(file);
    written.messages += messages;
    written.bytes += bytes;
    Ok(())
}

/// The lines of a session's own file, where they say what the store says.
async fn lines_of(store: &Store, session: &ExportedSession) -> Result<Lines> {
    let (conversation, file) = (session.id, session.file.clone());
    let read = move |view: &View<'_>| {
        // What was purged may stand in the file still, also in what was made of it.
        let is_purged = view.has_purged(conversation)?;
        Ok(Lines::of(file.as_deref().map(Path::new).filter(|_| !is_purged)))
    };
    store.read(read).await
}

/// What takes the lines of entries, one after the other.
trait Take: Send + 'static {
    fn take(&mut self, entry: &ExportedEntry, line: String) -> Result<()>;
}

impl Take for Output {
    fn take(&mut self, _entry: &ExportedEntry, line: String) -> Result<()> {
        self.push(&(line + "\n"))
    }
}

/// Gives `taker` the line of each entry up to `last`, parents before children, and counts what was said.
async fn write_entries<T: Take>(
    asked: &CommandContext<'_>,
    conversation: ConversationId,
    last: EntryId,
    mut lines: Lines,
    mut taker: T,
) -> Result<(T, usize)> {
    let mut after = EntryId(0);
    let mut messages = 0;
    loop {
        if asked.cancel.is_cancelled() {
            return Err(Error::cancelled());
        }
        let state = (taker, lines, messages);
        let read = move |view: &View<'_>| {
            let (mut taker, mut lines, mut messages) = state;
            let mut entries = view.exported_entries(conversation, after, SLICE)?;
            entries.retain(|entry| entry.row <= last);
            for entry in &entries {
                taker.take(entry, line(view, conversation, entry, &mut lines)?)?;
                messages += usize::from(entry.is_said);
            }
            Ok((taker, lines, messages, entries.last().map(|entry| entry.row)))
        };
        let reached;
        (taker, lines, messages, reached) = asked.store().read(read).await?;
        match reached {
            Some(reached) => after = reached,
            None => return Ok((taker, messages)),
        }
    }
}

async fn write_branch(
    store: &Store,
    cwd: &str,
    session: ExportedSession,
    leaf: Option<String>,
    mut output: Output,
) -> Result<Written> {
    let conversation: ConversationId = session.id;
    let branch = match leaf {
        Some(leaf) => store.read(move |view| view.branch(conversation, &leaf)).await?,
        None => Vec::new(),
    };
    let said: Vec<_> = (branch.into_iter())
        .filter_map(|entry| match entry.step {
            crate::dag::Step::Message(message) if message.kind != MessageKind::Purged => Some(message.id),
            _ => None,
        })
        .collect();
    output.push(&format!("# Session {}\n\n{cwd}, exported {} UTC\n", session.session_id, minute(now())))?;
    let mut messages = 0;
    for slice in said.chunks(SLICE) {
        let (slice, state) = (slice.to_vec(), (output, messages));
        let read = move |view: &View<'_>| {
            let (mut output, mut messages) = state;
            for id in slice {
                let stored = view.message(id)?;
                let message = Message::parse(&stored.json);
                // What Pi tells a model of itself was not said.
                if message.role == Role::System {
                    continue;
                }
                messages += 1;
                let heading = heading(&message, messages, stored.timestamp, &stored.lineage.message_handle());
                output.push(&format!("\n## {heading}\n\n{}", body(&message)))?;
            }
            Ok((output, messages))
        };
        (output, messages) = store.read(read).await?;
    }
    let (file, bytes) = output.finish()?;
    Ok(Written { format: "md", files: vec![file], messages, bytes })
}

fn heading(message: &Message, number: usize, time: i64, handle: &str) -> String {
    let who = match (&message.role, &message.tool) {
        (Role::User, _) => "User".to_owned(),
        (Role::Assistant, _) => "Assistant".to_owned(),
        (Role::ToolResult, Some(tool)) => format!("Result of {tool}"),
        (Role::ToolResult, None) => "Result".to_owned(),
        (Role::Bash, _) => "Shell".to_owned(),
        (Role::BranchSummary, _) => "Summary of another branch".to_owned(),
        (role, _) => role.as_str().to_owned(),
    };
    let failed = if message.is_error { ", failed" } else { "" };
    format!("{number}. {who}{failed} · {} UTC · {handle}", minute(time))
}

fn body(message: &Message) -> String {
    let is_output = matches!(message.role, Role::ToolResult | Role::Bash);
    let parts = message.parts.iter().map(|part| match part {
        Part::Text(text) if is_output => fenced("", text),
        Part::Text(text) => format!("{}\n", text.trim_end_matches('\n')),
        Part::Thinking(text) => {
            format!("<details><summary>Thinking</summary>\n\n{}\n</details>\n", fenced("", text))
        }
        Part::ToolCall { name, arguments, .. } => {
            let arguments = serde_json::to_string_pretty(arguments).unwrap_or_default();
            format!("Calls `{name}`:\n\n{}", fenced("json", &arguments))
        }
        Part::Image { mime_type, data } => {
            format!("[picture: {mime_type}, {} characters of base64]\n", grouped(data.len()))
        }
    });
    parts.collect::<Vec<_>>().join("\n")
}

/// `text` between fences that are longer than any run of backticks in it.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let messages = count(self.messages, "message");
        let size = megabytes(self.bytes);
        match self.files.as_slice() {
            [file] => write!(f, "{messages} written to {}, {size}", file.display()),
            files => {
                write!(f, "{messages} of {} written, {size}", count(files.len(), "session"))?;
                files.iter().try_for_each(|file| write!(f, "\n  {}", file.display()))
            }
        }
    }
}
