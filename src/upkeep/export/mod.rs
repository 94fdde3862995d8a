//! Exports the history as files for other programs, entry by entry. It never overwrites a file unasked.

mod html;
mod output;

use std::path::{Path, PathBuf};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use crate::dag::MessageKind;
use crate::error::{Error, Result};
use crate::files::{self, folder::folder_of};
use crate::ids::{ConversationId, EntryId, Hash};
use crate::ingest::export::{Lines, header, line, supplement};
use crate::ingest::import::Home;
use crate::model::{Content, Message, Part, Role, agent_of_session, original_of, parse_one};
use crate::recall::Scope;
use crate::store::{ExportedEntry, ExportedSession, Store, View};
use crate::text::{grouped, minute, now};
use output::{Output, unwritable};

/// Characters of a session's id in a file name; Pi's have 36.
const LONGEST: usize = 64;
/// Entries written per read of the store.
const SLICE: usize = 500;

/// The error for a session without entries.
const NOTHING: &str = "this session has nothing to export yet";

/// The output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// The session's branch as Markdown.
    Markdown,
    /// Sessions with all their branches, each as a session file for Pi.
    SessionFile,
    /// Sessions with all their branches as one web page.
    Page,
    /// Every session of another agent, each as the records that the agent wrote.
    Log(&'static str),
}

/// The history to export, and how.
pub struct Exporter<'a> {
    pub home: &'a Home,
    pub scope: &'a Scope,
    /// The page's template, if installed.
    pub viewer_template: Option<&'a Path>,
    /// Stops the export; an unfinished file is removed.
    pub cancel: &'a CancellationToken,
    /// Whether to export every session of the project.
    pub all: bool,
    /// Whether to overwrite existing files.
    pub force: bool,
}

/// The result.
#[derive(Debug, Serialize)]
pub struct Exported {
    /// `md`, `jsonl`, `html` or `log`.
    pub format: &'static str,
    pub files: Vec<PathBuf>,
    pub messages: usize,
    pub bytes: u64,
}

impl Exporter<'_> {
    /// Writes to `path`, or into it if it is a folder.
    ///
    /// # Errors
    /// When there is nothing to export, the file exists, or the disk or the store fails. No partial file is
    /// left.
    pub async fn export(&self, format: Format, path: PathBuf) -> Result<Exported> {
        match format {
            Format::Markdown => write_branch(self, path).await,
            Format::SessionFile => write_sessions(self, path).await,
            Format::Page => html::write(self, path).await,
            Format::Log(agent) => write_logs(self, agent, path).await,
        }
    }

    fn store(&self) -> &Store {
        &self.home.store
    }

    /// Closes a file, unless the export is to stop: then it is removed.
    fn finish(&self, output: Output) -> Result<(PathBuf, u64)> {
        check(self.cancel)?;
        output.finish()
    }
}

fn check(cancel: &CancellationToken) -> Result<()> {
    if cancel.is_cancelled() { Err(Error::cancelled()) } else { Ok(()) }
}

/// This session, or all of them; at least one.
async fn sessions(of: &Exporter<'_>) -> Result<Vec<ExportedSession>> {
    let only = (!of.all).then_some(of.scope.conversation);
    let sessions = of.store().read(move |view| view.messages().exported_sessions(only)).await?;
    if sessions.is_empty() {
        return Err(Error::invalid(NOTHING));
    }
    Ok(sessions)
}

async fn write_sessions(of: &Exporter<'_>, path: PathBuf) -> Result<Exported> {
    let sessions = sessions(of).await?;
    if of.all {
        make_folder(&path, "--all")?;
    }
    let mut written = Exported { format: "jsonl", files: Vec::new(), messages: 0, bytes: 0 };
    for session in sessions {
        let target = in_folder(path.clone(), &file_name(&session, "jsonl"));
        let lines = lines_of(of, &session).await?;
        let output = Output::create(&target, of.force)?;
        write_session(of, session, lines, output, &mut written).await?;
    }
    Ok(written)
}

/// Makes the folder that `option` needs for one file per session.
fn make_folder(path: &Path, option: &str) -> Result<()> {
    if path.is_file() {
        let path = path.display();
        return Err(Error::invalid(format!(
            "{path} is a file: {option} needs a folder, for one file per session"
        )));
    }
    // No folder is made behind another user's link either.
    if let Some(there) = path.ancestors().find(|there| there.is_dir()) {
        folder_of(&there.join("file"), false)?;
    }
    files::make_private_dir(path).map_err(|error| unwritable(path, &error))
}

async fn write_logs(of: &Exporter<'_>, agent: &'static str, path: PathBuf) -> Result<Exported> {
    let sessions = of.store().read(move |view| view.messages().exported_sessions(None)).await?;
    let sessions: Vec<_> =
        sessions.into_iter().filter(|session| agent_of_session(&session.session_id) == Some(agent)).collect();
    if sessions.is_empty() {
        let how = format!("/lcm import --from {agent} adds them");
        return Err(Error::invalid(format!("this project has no sessions of {agent}: {how}")));
    }
    make_folder(&path, "--from")?;
    let mut written = Exported { format: "log", files: Vec::new(), messages: 0, bytes: 0 };
    for session in sessions {
        let records = Records(Output::create(&path.join(file_name(&session, "log")), of.force)?);
        let (Records(output), messages) =
            write_entries(of, session.id, EntryId(i64::MAX), Lines::default(), records).await?;
        let (file, bytes) = of.finish(output)?;
        written.files.push(file);
        written.messages += messages;
        written.bytes += bytes;
    }
    Ok(written)
}

/// The default file name, which differs for any two sessions, whatever their ids and the disk.
fn file_name(session: &ExportedSession, ending: &str) -> String {
    let day = &minute(session.started_at)[..10];
    format!("pi-{day}_{}.{ending}", name_of(&session.session_id))
}

/// An id as part of a file name: itself if it consists of characters that every disk distinguishes, as Pi's
/// do; otherwise a similar text and a hash.
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
    of: &Exporter<'_>,
    session: ExportedSession,
    lines: Lines,
    mut output: Output,
    written: &mut Exported,
) -> Result<()> {
    let (store, conversation) = (of.store(), session.id);
    output.push(&(header(&session, &of.home.cwd, &lines) + "\n"))?;
    let last = EntryId(i64::MAX);
    let (mut output, messages) = write_entries(of, conversation, last, lines, output).await?;
    if let Some(line) = store.read(move |view| supplement(view, conversation)).await? {
        output.push(&(line + "\n"))?;
    }
    let (file, bytes) = of.finish(output)?;
    written.files.push(file);
    written.messages += messages;
    written.bytes += bytes;
    Ok(())
}

/// The lines of a session's own file, as far as they match the store.
async fn lines_of(of: &Exporter<'_>, session: &ExportedSession) -> Result<Lines> {
    let (conversation, file, cancel) = (session.id, session.file.clone(), of.cancel.clone());
    let read = move |view: &View<'_>| {
        // The file may still contain purged text, and text derived from it.
        let is_purged = view.messages().has_purged(conversation)?;
        let lines = Lines::of(file.as_deref().map(Path::new).filter(|_| !is_purged), &cancel);
        check(&cancel).map(|()| lines)
    };
    of.store().read(read).await
}

/// Receives the lines of entries, one after the other.
trait Take: Send + 'static {
    fn take(&mut self, entry: &ExportedEntry, line: String) -> Result<()>;
}

impl Take for Output {
    fn take(&mut self, _entry: &ExportedEntry, line: String) -> Result<()> {
        self.push(&(line + "\n"))
    }
}

/// Takes the records of another agent out of the lines that carry them.
struct Records(Output);

impl Take for Records {
    fn take(&mut self, _entry: &ExportedEntry, line: String) -> Result<()> {
        match parse_one(&line).map(|entry| entry.content) {
            Ok(Content::Message(json)) => {
                original_of(&json).map_or(Ok(()), |record| self.0.push(&(record.into_owned() + "\n")))
            }
            _ => Ok(()),
        }
    }
}

/// Passes the line of each entry up to `last` to `taker`, parents before children, and counts messages.
async fn write_entries<T: Take>(
    of: &Exporter<'_>,
    conversation: ConversationId,
    last: EntryId,
    mut lines: Lines,
    mut taker: T,
) -> Result<(T, usize)> {
    let mut after = EntryId(0);
    let mut messages = 0;
    loop {
        let (state, cancel) = ((taker, lines, messages), of.cancel.clone());
        let read = move |view: &View<'_>| {
            let (mut taker, mut lines, mut messages) = state;
            let mut entries = view.messages().exported_entries(conversation, after, SLICE)?;
            entries.retain(|entry| entry.row <= last);
            for entry in &entries {
                check(&cancel)?;
                taker.take(entry, line(view, conversation, entry, &mut lines)?)?;
                messages += usize::from(entry.is_said);
            }
            Ok((taker, lines, messages, entries.last().map(|entry| entry.row)))
        };
        let reached;
        (taker, lines, messages, reached) = of.store().read(read).await?;
        match reached {
            Some(reached) => after = reached,
            None => return Ok((taker, messages)),
        }
    }
}

async fn write_branch(of: &Exporter<'_>, path: PathBuf) -> Result<Exported> {
    let session = sessions(of).await?.remove(0);
    let mut output = Output::create(&in_folder(path, &file_name(&session, "md")), of.force)?;
    let (store, cwd, conversation) = (of.store(), &of.home.cwd, session.id);
    let branch = match of.scope.leaf.clone() {
        Some(leaf) => store.read(move |view| view.messages().branch(conversation, &leaf)).await?,
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
        let (slice, state, cancel) = (slice.to_vec(), (output, messages), of.cancel.clone());
        let read = move |view: &View<'_>| {
            let (mut output, mut messages) = state;
            for id in slice {
                check(&cancel)?;
                let stored = view.messages().message(id)?;
                let message = Message::parse(&stored.json);
                // Pi's own system messages are not part of the conversation.
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
    let (file, bytes) = of.finish(output)?;
    Ok(Exported { format: "md", files: vec![file], messages, bytes })
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

/// `text` between fences longer than any run of backticks in it.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}
