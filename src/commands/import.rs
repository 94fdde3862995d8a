//! `/lcm import`: parses what to import, and reports progress and result.

use std::sync::Mutex;
use std::sync::atomic::Ordering;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::args::{self, FROM};
use super::{Answer, Command, Rest};
use lcm_ingest::foreign::{Agent, agent, all_agents};
use lcm_ingest::import::{
    Folders, Home, LINE, LongLine, Progress, Report, Source, Unreadable, agents_left_out, import, import_new,
    older_sessions,
};
use lcm_model::error::{Error, Result};
use lcm_model::ids::AGENTS;
use lcm_model::locks::{OnDrop, lock};
use lcm_model::text::{count, grouped, megabytes, one_line};

/// How many unreadable files are named.
const NAMED: usize = 3;

pub(crate) const COMMAND: Command = Command {
    name: "import",
    help: "add this project's older sessions; PATH, --all, --from: others",
    usage: &[
        ("import", "adds this project's older sessions"),
        (
            "import PATH",
            "adds a session file, those in a folder, the readable part of a moved database, or the history of a folder that was \
             moved here or became part of this project",
        ),
        ("import --all", "adds the sessions of every project, each to its own project's history"),
        (
            "import --from codex",
            "adds another agent's sessions: claude-code, codex, gemini or opencode; with PATH or --all as above",
        ),
        ("import --from all", "adds those of all other agents"),
        ("import --stop", "stops; the same command continues"),
    ],
    arguments: &[(ALL, "every project's sessions"), (STOP, "stop the running import")],
    is_long: true,
    answer: |asked| Box::pin(asked.importer.answer(asked.home, &asked.request.folders, &asked.rest)),
};

/// The options of `/lcm import`.
const OPTIONS: [&str; 3] = [ALL, STOP, FROM];
const ALL: &str = "--all";
const STOP: &str = "--stop";
/// Its value for all of them.
const EACH: &str = "all";
/// The values of `--from`.
pub(crate) const AGENT_NAMES: [&str; 5] = {
    let [one, two, three, four] = AGENTS;
    [one, two, three, four, EACH]
};

/// The imports of an open session, one at a time.
#[derive(Debug, Default)]
pub struct Importer {
    /// Held by a command that imports. It waits for [`Importer::also_read`], but not for another command.
    command: tokio::sync::Mutex<()>,
    /// Held by a running import.
    turn: tokio::sync::Mutex<()>,
    pub(super) progress: Progress,
    /// Stops the running import, if there is one.
    cancel: Mutex<Option<CancellationToken>>,
    /// Stops the running import and all later ones.
    closing: CancellationToken,
}

impl Importer {
    /// Answers when everything is done.
    ///
    /// # Errors
    /// A message for the user.
    pub(crate) async fn answer(&self, home: &Home, folders: &Folders, rest: &Rest) -> Result<Answer> {
        let Some(source) = read(rest)? else {
            return Ok(Answer::sentence(match &*lock(&self.cancel) {
                Some(cancel) => {
                    cancel.cancel();
                    "The import is stopping."
                }
                None => "No import is running.",
            }));
        };
        let Ok(_command) = self.command.try_lock() else { return Ok(self.under_way()) };
        let (cancel, _running) = self.begin().await;
        let report = import(home, folders, &source, &self.progress, &cancel).await?;
        let mut text = render(&report, &source, folders, &home.cwd);
        if matches!(source, Source::Project) {
            let agents = agents_left_out(home, folders, &cancel).await.unwrap_or_default();
            let from = agents.first().filter(|_| agents.len() == 1).map_or(EACH, |agent| agent.name);
            if !agents.is_empty() {
                text += &format!(
                    "\nThere are logs of {} about this project: /lcm import --from {from} adds them.",
                    titles(&agents, "and")
                );
            }
        }
        Ok(Answer::new(text, as_json(&report)))
    }

    /// Imports what `agents` have written about this project since this was done last.
    ///
    /// # Errors
    /// For an agent that is none, and when the store fails.
    pub async fn also_read(&self, home: &Home, folders: &Folders, agents: &[String]) -> Result<()> {
        let agents: Vec<_> = agents.iter().map(|name| agent(name)).collect::<Result<_>>()?;
        let (cancel, _running) = self.begin().await;
        let mut outcome = Ok(());
        for agent in agents {
            outcome = outcome.and(import_new(home, folders, agent, &self.progress, &cancel).await);
        }
        outcome
    }

    fn under_way(&self) -> Answer {
        Answer::sentence(format!("An import is running ({}). /lcm import --stop stops it.", self.words()))
    }

    /// Waits until no other import runs, and begins one that this token stops, until the guard is dropped.
    async fn begin(&self) -> (CancellationToken, OnDrop<impl FnMut()>) {
        let (turn, cancel) = (self.turn.lock().await, self.closing.child_token());
        *lock(&self.cancel) = Some(cancel.clone());
        let end = move || {
            let _until_then = &turn;
            *lock(&self.cancel) = None;
        };
        (cancel, OnDrop(end))
    }

    /// The progress of the import for the footer; `None` if none is running.
    pub fn progress(&self) -> Option<String> {
        lock(&self.cancel).is_some().then(|| format!("LCM: importing, {}", self.words()))
    }

    /// Stops a running import, waits until it has ended, and allows no more.
    pub async fn close(&self) {
        self.closing.cancel();
        drop(self.turn.lock().await);
    }

    fn words(&self) -> String {
        let Progress { files, done, messages } = &self.progress;
        let [files, done, messages] = [files, done, messages].map(|number| number.load(Ordering::Relaxed));
        format!("{done} of {}, {} new", count(files, "session"), count(messages, "message"))
    }
}

/// A message about sessions of this project that are not stored; `None` if there are none.
pub async fn offer(home: &Home, folders: &Folders) -> Result<Option<String>> {
    let sessions = older_sessions(home, folders).await?;
    let them = if sessions == 1 { "it" } else { "them" };
    Ok((sessions > 0).then(|| {
        format!("LCM: this project has {}. /lcm import adds {them}.", count(sessions, "older session"))
    }))
}

/// The agent with this name, or all other agents.
fn agents(name: &str) -> Result<Vec<&'static Agent>> {
    if name == EACH { Ok(all_agents()) } else { Ok(vec![agent(name)?]) }
}

/// What to import; `None` to stop.
fn read(rest: &Rest) -> Result<Option<Source>> {
    let given: Vec<&str> = OPTIONS.into_iter().filter(|option| rest.has(option)).collect();
    let path = rest.path();
    match (given.as_slice(), rest.text.as_str()) {
        ([flags @ .., FROM], _) if flags.iter().all(|flag| *flag == ALL) => {
            let (agents, path) = (agents(rest.value(FROM).unwrap_or_default())?, path?);
            if agents.len() > 1 && path.is_some() {
                return Err(Error::invalid("--from all takes no path: name the agent whose logs are there"));
            }
            let everything = !flags.is_empty();
            Ok(Some(Source::Agents { agents, path, everything, since: None }))
        }
        ([], "") => Ok(Some(Source::Project)),
        ([ALL], "") => Ok(Some(Source::Everything)),
        ([STOP], "") => Ok(None),
        ([], text) if !text.starts_with("--") => Ok(Some(Source::Path(args::path(text)))),
        ([], text) => Err(args::foreign(COMMAND.name, text, &OPTIONS)),
        ([option, others @ ..], text) => {
            let other = one_line(others.first().unwrap_or(&text), 40);
            Err(Error::invalid(format!("/lcm import {option} takes no {other}; see /lcm help import")))
        }
    }
}

fn as_json(report: &Report) -> Value {
    let failed = |file: &Unreadable| json!({"name": file.name, "reason": file.reason});
    json!({
        "files": report.files, "sessions": report.sessions, "projects": report.projects,
        "newMessages": report.new, "knownMessages": report.known, "purgedMessages": report.purged, "summaries": report.summaries, "silentSessions": report.silent,
        "brokenLines": report.broken, "brokenIn": report.broken_in.iter().map(|(name, lines)| json!({"name": name, "lines": lines})).collect::<Value>(),
        "tooLongLines": report.too_long.iter().map(|LongLine { file, number, bytes }| json!({"name": file, "line": number, "bytes": bytes})).collect::<Value>(),
        "unfinishedLines": report.unfinished, "unreadableRows": report.lost, "missingBytes": report.missing, "recoveredMessages": report.recovered, "unknownRecords": report.unknown,
        "differingEntries": report.differing, "sessionsInPieces": report.in_pieces, "failed": report.failed.iter().map(failed).collect::<Value>(),
        "stoppedAfter": report.stopped,
    })
}

/// `Claude Code, Codex and OpenCode`
fn titles(agents: &[&Agent], joined: &str) -> String {
    let titles: Vec<&str> = agents.iter().map(|agent| agent.title).collect();
    match titles.as_slice() {
        [others @ .., last] if !others.is_empty() => format!("{} {joined} {last}", others.join(", ")),
        titles => titles.concat(),
    }
}

/// The answer if there is nothing to import.
fn nothing_in(source: &Source, folders: &Folders, cwd: &str) -> String {
    let what = match source {
        Source::Path(path) => {
            format!("session files of Pi in {}; another agent's need --from", path.display())
        }
        Source::Rebuild(..) => "sessions".to_owned(),
        Source::Project => {
            let mut places = folders.of_project(cwd);
            if places.is_empty() {
                places.push(folders.session_dir.clone());
            }
            let places: Vec<String> = places.iter().map(|place| place.display().to_string()).collect();
            format!("older sessions of this project in {}", places.join(" or "))
        }
        Source::Agents { agents, path, everything, .. } => {
            let place = match path {
                Some(path) => format!(" in {}", path.display()),
                None if *everything => String::new(),
                None => " about this project".to_owned(),
            };
            format!("sessions of {}{place}", titles(agents, "or"))
        }
        Source::Everything => format!("older sessions in {}", folders.all_sessions.display()),
    };
    format!("There are no {what}.")
}

fn render(report: &Report, source: &Source, folders: &Folders, cwd: &str) -> String {
    let Report { files, stopped, failed, .. } = report;
    if *files == 0 && stopped.is_none() {
        return nothing_in(source, folders, cwd);
    }
    let of = match source {
        Source::Everything | Source::Agents { everything: true, .. } => {
            format!(" of {}", count(report.projects, "project"))
        }
        _ => String::new(),
    };
    let reason = |file: &Unreadable| format!("{}: {}", one_line(&file.name, 80), file.reason);
    let (sessions, new) = (count(report.sessions, "session"), count(report.new, "message"));
    let mut out = format!("{sessions}{of}: {new} new, {} known already", grouped(report.known));
    for (n, noun, what) in [
        (
            report.purged,
            "message",
            if report.purged == 1 { "stays purged" } else { "stay purged" }.to_owned(),
        ),
        (report.silent, "session", "without messages left out".to_owned()),
        (report.broken, "broken line", format!("({})", broken_in(&report.broken_in))),
        (report.unfinished, "unfinished last line", "left for the next import".to_owned()),
        (report.in_pieces, "session", "in pieces: /lcm doctor --rebuild joins them".to_owned()),
        (report.lost, "unreadable row", "or more left out".to_owned()),
        (failed.len(), "file", format!("could not be read ({})", few(failed.iter().map(reason)))),
    ] {
        if n > 0 {
            out += &format!(", {} {what}", count(n, noun));
        }
    }
    if report.missing > 0 {
        out += &format!(", {} of the file cut off or overwritten", megabytes(report.missing));
    }
    if report.summaries > 0 {
        out += &format!(", {}", count(report.summaries, "summary"));
    }
    match report.recovered {
        0 => {}
        1 => out += "; 1 message, whose session can't be read, is in a session named recovered",
        n => {
            out += &format!(
                "; {} messages, whose session can't be read, are in a session named recovered",
                grouped(n)
            );
        }
    }
    match report.unknown {
        0 => {}
        1 => out += "; 1 record of an unknown kind is stored, but not searched",
        n => out += &format!("; {} records of unknown kinds are stored, but not searched", grouped(n)),
    }
    match report.differing {
        0 => {}
        1 => out += "; 1 entry differs from what is stored: the stored one stays",
        n => out += &format!("; {} entries differ from what is stored: the stored ones stay", grouped(n)),
    }
    if let Some(done) = stopped {
        out += &format!("; stopped after {done} of {}: the same command continues", count(*files, "file"));
    }
    for LongLine { file, number, bytes } in report.too_long.iter().take(NAMED) {
        out += &format!(
            "\nLine {} of {} has {}, and only lines of up to {} are read: shorten it in a copy, and import that.",
            grouped(*number),
            one_line(file, 80),
            megabytes(*bytes),
            megabytes(LINE as u64)
        );
    }
    out
}

/// Names the first files with broken lines.
fn broken_in(files: &[(String, Vec<usize>)]) -> String {
    let named = files.iter().map(|(name, lines)| {
        let name = one_line(name, 80);
        let numbers: Vec<String> = lines.iter().take(NAMED).map(|line| grouped(*line)).collect();
        let more = if lines.len() > NAMED { ", …" } else { "" };
        match numbers.as_slice() {
            [] => name,
            [one] => format!("{name}: line {one}"),
            numbers => format!("{name}: lines {}{more}", numbers.join(", ")),
        }
    });
    few(named)
}

/// The first files, and how many more there are.
fn few(files: impl ExactSizeIterator<Item = String>) -> String {
    let more = files.len().saturating_sub(NAMED);
    let more = (more > 0).then(|| format!("and {} more", grouped(more)));
    files.take(NAMED).chain(more).collect::<Vec<_>>().join("; ")
}
