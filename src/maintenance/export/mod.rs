//! Exports the history as files for other programs, entry by entry. It never overwrites a file unasked.

mod calls;
mod html;
mod output;

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use super::in_folder;
use calls::PurgedCalls;
use lcm_ingest::export::{LinePositions, header, line, supplement};
use lcm_ingest::foreign::SIDE_CHAINS;
use lcm_ingest::import::Home;
use lcm_model::dag::{BranchMessage, MessageKind, Step};
use lcm_model::error::{Error, Result};
use lcm_model::files::{self, folder::folder_of};
use lcm_model::ids::{AGENTS, CODEX, ConversationId, EntryId, Hash, MessageId};
use lcm_model::text::{grouped, local_minute, now, zoned_minute};
use lcm_model::{Content, Entry, Message, Part, Role, agent_of_session, original_of, parse_one};
use lcm_recall::Scope;
use lcm_store::tasks::go_on;
use lcm_store::{ExportedEntry, Shows, StoredSession, View};
use output::{Output, unwritable};

/// Characters of a session's id in a file name; Pi's have 36.
const LONGEST: usize = 64;
/// Entries read at a time.
const SLICE: usize = 500;

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
pub struct Exporter {
    pub home: Home,
    pub scope: Scope,
    /// The page's template, if installed.
    pub viewer_template: Option<PathBuf>,
    /// Stops the export; an unfinished file is removed.
    pub cancel: CancellationToken,
    /// Whether to export every session of the project.
    pub all: bool,
    /// Whether to overwrite existing files.
    pub force: bool,
}

/// The result.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Exported {
    /// `md`, `jsonl`, `html` or `log`.
    pub format: &'static str,
    pub files: Vec<PathBuf>,
    pub messages: usize,
    /// How many more a branch's Markdown has, which are kept from the model.
    pub private: usize,
    pub bytes: u64,
    /// How many of the session files are of other agents: an import reads them, but Pi does not open them.
    pub only_for_import: usize,
    /// How many compactions in session files are without their text: Pi sends all messages before them.
    pub textless_compactions: usize,
}

impl Exporter {
    /// Writes to `path`, or into it if it is a folder.
    ///
    /// # Errors
    /// When there is nothing to export, the file exists, or the disk or the store fails. No partial file is
    /// left.
    pub async fn export(self, format: Format, path: PathBuf) -> Result<Exported> {
        let store = self.home.store.clone();
        let write = move |view: &View<'_>| match format {
            Format::Markdown => write_branch(&self, view, path),
            Format::SessionFile => write_sessions(&self, view, &path),
            Format::Page => html::write(&self, view, path),
            Format::Log(agent) => write_logs(&self, view, agent, &path),
        };
        store.read(write).await
    }
}

impl Exported {
    /// Closes a file with so many messages, unless the export is to stop: then it is removed.
    fn add(&mut self, of: &Exporter, output: Output, messages: usize) -> Result<()> {
        go_on(&of.cancel)?;
        let (file, bytes) = output.finish()?;
        self.files.push(file);
        self.messages += messages;
        self.bytes += bytes;
        Ok(())
    }
}

/// This session or all, those of which anything is left; at least one. Each began with its first message, which the store may have seen later.
fn sessions(of: &Exporter, view: &View<'_>) -> Result<Vec<StoredSession>> {
    let only = (!of.all).then_some(of.scope.conversation);
    let mut sessions = Vec::new();
    for session in view.messages().sessions(only)? {
        if view.messages().is_left(session.id)? {
            sessions.push(session);
        }
    }
    for session in &mut sessions {
        let first = view.messages().session_facts(session.id).map_or(0, |facts| facts.from_time);
        session.started_at = if first > 0 { first } else { session.started_at };
    }
    if sessions.is_empty() {
        let others = !of.all && view.messages().conversations()? > 0;
        let where_else =
            if others { " of this session; --jsonl --all and --html --all take the others" } else { " here" };
        Err(Error::invalid(format!("there is nothing to export: no message is stored{where_else}")))
    } else {
        Ok(sessions)
    }
}

fn write_sessions(of: &Exporter, view: &View<'_>, path: &Path) -> Result<Exported> {
    let sessions = sessions(of, view)?;
    if of.all {
        make_folder(path, "--all")?;
    }
    let (mut written, mut seen) = (Exported { format: "jsonl", ..Exported::default() }, HashSet::new());
    for session in sessions {
        let mut output =
            Output::create(&in_folder(path.to_owned(), file_name(&session, "jsonl"))?, of.force)?;
        let mut lines = lines_of(of, view, &session)?;
        output.push(&(header(&session, &of.home.cwd, &lines) + "\n"))?;
        let is_purged = !view.messages().purged_in(session.id)?.is_empty();
        let calls = if is_purged { PurgedCalls::of(of, view, session.id)? } else { PurgedCalls::default() };
        let push = |entry: &_, line: String| output.push(&(calls.line(entry).unwrap_or(line) + "\n"));
        let messages = each_entry(of, view, session.id, &mut lines, &mut seen, push)?;
        if let Some(line) = supplement(view, session.id)? {
            output.push(&(line + "\n"))?;
        }
        written.add(of, output, messages)?;
        written.textless_compactions += lines.textless;
        written.only_for_import += usize::from(agent_of_session(&session.session_id).is_some());
    }
    Ok(written)
}

/// Makes the folder that `option` needs for one file per session.
fn make_folder(path: &Path, option: &str) -> Result<()> {
    if let Some(file) = path.ancestors().find(|path| path.is_file()) {
        let file = file.display();
        return Err(Error::invalid(format!(
            "{file} is a file: {option} needs a folder, for one file per session"
        )));
    }
    // No folder is made behind another user's link either.
    if let Some(there) = path.ancestors().find(|there| there.is_dir()) {
        folder_of(&there.join("file"), false)?;
    }
    files::make_private_dir(path).map_err(|error| unwritable(path, &error))
}

/// Takes the records of another agent out of the lines that carry them.
fn write_logs(of: &Exporter, view: &View<'_>, agent: &'static str, path: &Path) -> Result<Exported> {
    let mut sessions = view.messages().sessions(None)?;
    sessions.retain(|session| agent_of_session(&session.session_id) == Some(agent));
    if sessions.is_empty() {
        let how = format!("/lcm import --from {agent} adds them");
        return Err(Error::invalid(format!("this project has no sessions of {agent}: {how}")));
    }
    make_folder(path, "--from")?;
    let mut written = Exported { format: "log", ..Exported::default() };
    for session in sessions {
        let mut logs: BTreeMap<PathBuf, Vec<ExportedEntry>> = BTreeMap::new();
        each_row(of, view, session.id, |entry| {
            logs.entry(path.join(log_name(&session.session_id, &entry.id))).or_default().push(entry);
            Ok(())
        })?;
        for (log, entries) in logs {
            make_folder(log.parent().unwrap_or(path), "--from")?;
            let mut output = Output::create(&log, of.force)?;
            for entry in &entries {
                go_on(&of.cancel)?;
                let line = line(view, session.id, entry, &mut LinePositions::default())?;
                let Ok(Entry { content: Content::Message(json), .. }) = parse_one(&line) else { continue };
                original_of(&json).map_or(Ok(()), |record| output.push(&(record.into_owned() + "\n")))?;
            }
            written.add(of, output, entries.iter().filter(|entry| entry.is_said).count())?;
        }
    }
    Ok(written)
}

/// The file for the log that an entry is from. An import takes the entries' ids from the names: those of the session, and of the
/// side chain or the further log, if it has one of its own.
fn log_name(session: &str, entry: &str) -> PathBuf {
    let (agent, session) = session.split_once(':').unwrap_or_default();
    let name = |id: &str| match id.len() <= LONGEST && id.split('_').all(|part| name_of(part) == part) {
        true => id.to_owned(),
        false => name_of(id),
    };
    // Claude Code has other side chains in the session's log.
    let has_log = |(side, _): &(&str, &str)| agent != AGENTS[0] || side.starts_with("agent-");
    let (folder, own, record) = match entry.split_once(':').filter(has_log) {
        Some((side, record)) => (Path::new(SIDE_CHAINS).join(name(session)), name(side), record),
        None => (PathBuf::new(), name(session), entry),
    };
    match record.split_once('.').filter(|_| agent == CODEX) {
        Some((log, _)) => folder.join(format!("rollout-{own}_{}.log", name(log))),
        None => folder.join(own + ".log"),
    }
}

/// The default file name, which differs for any two sessions, whatever their ids and the disk.
fn file_name(session: &StoredSession, ending: &str) -> String {
    let day = &local_minute(session.started_at)[..10];
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

/// The lines of a session's own file, as far as they match the store.
fn lines_of(of: &Exporter, view: &View<'_>, session: &StoredSession) -> Result<LinePositions> {
    // The file may still contain purged text, and text derived from it.
    let is_purged = !view.messages().purged_in(session.id)?.is_empty();
    let lines = LinePositions::of(session.file.as_deref().map(Path::new).filter(|_| !is_purged), &of.cancel);
    go_on(&of.cancel).map(|()| lines)
}

/// Passes each entry of a session with its line to `take`, parents before children. Returns how many messages are not in `seen`, to
/// which they are added: sessions may share them.
fn each_entry(
    of: &Exporter,
    view: &View<'_>,
    conversation: ConversationId,
    lines: &mut LinePositions,
    seen: &mut HashSet<MessageId>,
    mut take: impl FnMut(&ExportedEntry, String) -> Result<()>,
) -> Result<usize> {
    let mut messages = 0;
    each_row(of, view, conversation, |entry| {
        if let (true, Shows::Message(id)) = (entry.is_said, &entry.shows) {
            messages += usize::from(seen.insert(*id));
        }
        take(&entry, line(view, conversation, &entry, lines)?)
    })?;
    Ok(messages)
}

/// Passes each entry of a session to `take`, parents before children.
fn each_row(
    of: &Exporter,
    view: &View<'_>,
    conversation: ConversationId,
    mut take: impl FnMut(ExportedEntry) -> Result<()>,
) -> Result<()> {
    let mut after = EntryId(0);
    loop {
        let entries = view.messages().exported_entries(conversation, after, SLICE)?;
        let Some(last) = entries.last() else { return Ok(()) };
        after = last.row;
        for entry in entries {
            go_on(&of.cancel)?;
            take(entry)?;
        }
    }
}

fn write_branch(of: &Exporter, view: &View<'_>, path: PathBuf) -> Result<Exported> {
    let session = sessions(of, view)?.remove(0);
    let mut output = Output::create(&in_folder(path, file_name(&session, "md"))?, of.force)?;
    let branch = of.scope.leaf.as_deref().map(|leaf| view.messages().branch(session.id, leaf)).transpose()?;
    let (cwd, time) = (&of.home.cwd, zoned_minute(now()));
    output.push(&format!("# Session {}\n\n{cwd}, exported {time}\n", session.session_id))?;
    let mut written = Exported { format: "md", ..Exported::default() };
    let mut messages = 0;
    for entry in branch.unwrap_or_default() {
        go_on(&of.cancel)?;
        let Step::Message(BranchMessage { id, kind, .. }) = entry.step else { continue };
        if kind == MessageKind::Purged {
            continue;
        }
        let stored = view.messages().message(id)?;
        let message = Message::parse(&stored.json);
        // Pi's own system messages are not part of the conversation.
        if message.role == Role::System {
            continue;
        }
        messages += 1;
        written.private += usize::from(kind == MessageKind::Private);
        let heading = heading(&message, messages, stored.timestamp, &stored.lineage.message_handle());
        output.push(&format!("\n## {heading}\n\n{}", body(&message)))?;
    }
    written.add(of, output, messages - written.private)?;
    Ok(written)
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
    format!("{number}. {who}{failed} · {} · {handle}", zoned_minute(time))
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
    let failure = message.failure.iter().map(|why| format!("Failed: {why}\n"));
    parts.chain(failure).collect::<Vec<_>>().join("\n")
}

/// `text` between fences longer than any run of backticks in it.
fn fenced(language: &str, text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    format!("{fence}{language}\n{}\n{fence}\n", text.trim_end_matches('\n'))
}
