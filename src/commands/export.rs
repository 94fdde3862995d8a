//! `/lcm export`: the history as files that others can read, written entry by entry and never over another file unasked.

use std::fmt;
use std::fs::{self, File, OpenOptions};
use std::io::{BufWriter, ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Answer, Asked, Command, args};
use crate::dag::MessageKind;
use crate::error::{Error, Result};
use crate::ids::{ConversationId, EntryId};
use crate::ingest::export::{Lines, header, line};
use crate::model::{Message, Part, Role};
use crate::store::{ExportedSession, Store, View};
use crate::text::{count, grouped, megabytes, minute, now};

const NAME: &str = "export";
const MARKDOWN: &str = "--md";
const SESSION: &str = "--jsonl";
const ALL: &str = "--all";
const FORCE: &str = "--force";

pub(super) const COMMAND: Command = Command {
    name: NAME,
    help: "this branch as Markdown; --jsonl: sessions as Pi's own files",
    usage: &[
        ("export [PATH]", "this branch as Markdown: every message of it, also what was compacted"),
        ("export --md [PATH]", "the same"),
        (
            "export --jsonl [PATH]",
            "this session with all its branches, as a session file that Pi and /lcm import read",
        ),
        ("export --jsonl --all [FOLDER]", "every session of this project, a file each"),
        ("export … --force", "the same over files that are there already"),
    ],
    arguments: &[
        (MARKDOWN, "this branch as Markdown"),
        (SESSION, "this session as a session file of Pi's"),
        (ALL, "every session of this project"),
        (FORCE, "over a file that is there"),
    ],
    is_long: true,
    answer: |asked| Box::pin(answer(asked)),
};

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

async fn answer(asked: &Asked<'_>) -> Result<Answer> {
    let (options, path) = args::options(NAME, &asked.rest, &[MARKDOWN, SESSION, ALL, FORCE])?;
    let has = |option| options.contains(&option);
    let path = Path::new(&asked.home.cwd).join(args::path(&path));
    let force = has(FORCE);
    let store = asked.store();
    match (has(MARKDOWN), has(SESSION), has(ALL)) {
        (true, true, _) => Err(Error::invalid("/lcm export writes --md or --jsonl, not both at once")),
        (_, false, true) => Err(Error::invalid("/lcm export --all writes session files: add --jsonl")),
        (_, true, all) => {
            let only = (!all).then_some(asked.scope.conversation);
            let sessions = store.read(move |view| view.exported_sessions(only)).await?;
            if sessions.is_empty() {
                return Err(Error::invalid(NOTHING));
            }
            if all {
                if path.is_file() {
                    return Err(Error::invalid(format!(
                        "{} is a file: --all takes a folder, for a file each",
                        path.display()
                    )));
                }
                fs::create_dir_all(&path).map_err(|error| unwritable(&path, &error))?;
            }
            let mut written = Written { format: "jsonl", files: Vec::new(), messages: 0, bytes: 0 };
            for session in sessions {
                let target = in_folder(path.clone(), &file_name(&session, "jsonl"));
                let output = Output::create(&target, force)?;
                write_session(store, &asked.home.cwd, session, output, &mut written).await?;
            }
            Ok(Answer::of(&written))
        }
        (_, false, false) => {
            let conversation = asked.scope.conversation;
            let sessions = store.read(move |view| view.exported_sessions(Some(conversation))).await?;
            let Some(session) = sessions.into_iter().next() else {
                return Err(Error::invalid(NOTHING));
            };
            let output = Output::create(&in_folder(path, &file_name(&session, "md")), force)?;
            let leaf = asked.scope.leaf.clone();
            Ok(Answer::of(&write_branch(store, &asked.home.cwd, session, leaf, output).await?))
        }
    }
}

/// What a file is called if the user does not say.
fn file_name(session: &ExportedSession, ending: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '_' };
    let id: String = session.session_id.chars().map(plain).collect();
    let day = minute(session.started_at)[..10].to_owned();
    format!("pi-{day}_{id}.{ending}")
}

fn in_folder(path: PathBuf, name: &str) -> PathBuf {
    if path.is_dir() { path.join(name) } else { path }
}

fn unwritable(path: &Path, error: &std::io::Error) -> Error {
    match error.kind() {
        ErrorKind::AlreadyExists => Error::invalid(format!(
            "{} is there already: name another file, or add {FORCE} to write over it",
            path.display()
        )),
        _ => Error::invalid(format!("{} can't be written: {error}", path.display())),
    }
}

/// A file that is being written, gone again if it is not finished. What is to take another's place is written beside it.
struct Output {
    writer: BufWriter<File>,
    /// Where it is written.
    at: PathBuf,
    target: PathBuf,
    bytes: u64,
    is_done: bool,
}

impl Output {
    fn create(target: &Path, force: bool) -> Result<Self> {
        // A link stays one: what it leads to is replaced.
        let target = &fs::canonicalize(target).unwrap_or_else(|_| target.to_owned());
        if fs::metadata(target).is_ok_and(|there| !there.is_file()) {
            return Err(Error::invalid(format!("{} is no file: name another", target.display())));
        }
        let at = match force {
            true => target.with_added_extension(format!("{}.part", std::process::id())),
            false => target.to_owned(),
        };
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&at).map_err(|error| unwritable(&at, &error))?;
        let writer = BufWriter::new(file);
        Ok(Self { writer, at, target: target.to_owned(), bytes: 0, is_done: false })
    }

    fn push(&mut self, text: &str) -> Result<()> {
        self.bytes += text.len() as u64;
        self.writer.write_all(text.as_bytes()).map_err(|error| unwritable(&self.at, &error))
    }

    fn finish(mut self) -> Result<(PathBuf, u64)> {
        let done = self.writer.flush().and_then(|()| self.writer.get_ref().sync_all());
        let moved = done
            .and_then(|()| if self.at == self.target { Ok(()) } else { fs::rename(&self.at, &self.target) });
        moved.map_err(|error| unwritable(&self.target, &error))?;
        self.is_done = true;
        Ok((self.target.clone(), self.bytes))
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        if !self.is_done {
            // There is nothing better to be done about it.
            let _ = fs::remove_file(&self.at);
        }
    }
}

async fn write_session(
    store: &Store,
    cwd: &str,
    session: ExportedSession,
    mut output: Output,
    written: &mut Written,
) -> Result<()> {
    let conversation = session.id;
    let file = session.file.clone();
    let read = move |view: &View<'_>| {
        // What was purged may stand in the file still, also in what was made of it.
        let is_purged = view.has_purged(conversation)?;
        Ok(Lines::of(file.as_deref().map(Path::new).filter(|_| !is_purged)))
    };
    let mut lines = store.read(read).await?;
    output.push(&(header(&session, cwd, &lines) + "\n"))?;
    let mut after = EntryId(0);
    let mut messages = 0;
    loop {
        let state = (output, lines, messages);
        let read = move |view: &View<'_>| {
            let (mut output, mut lines, mut messages) = state;
            let entries = view.exported_entries(conversation, after, SLICE)?;
            for entry in &entries {
                output.push(&(line(view, conversation, entry, &mut lines)? + "\n"))?;
                messages += usize::from(entry.is_said);
            }
            Ok((output, lines, messages, entries.last().map(|entry| entry.row)))
        };
        let last;
        (output, lines, messages, last) = store.read(read).await?;
        match last {
            Some(last) => after = last,
            None => break,
        }
    }
    let (file, bytes) = output.finish()?;
    written.files.push(file);
    written.messages += messages;
    written.bytes += bytes;
    Ok(())
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
        (Role::BranchSummary, _) => "Account of another branch".to_owned(),
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
