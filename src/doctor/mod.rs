//! Checks by hashes whether everything is stored correctly, and rebuilds a store that is not.
//!
//! A message's identity hashes its text and everything above it, and a summary's its text and its sources: so each row
//! proves itself. SQLite checks its own file. The store is checked in one view, so what is added meanwhile is left to the
//! next check. A session's file that differs is only noted: whoever edits it does not damage what is stored.

mod rebuild;
mod report;

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use tokio_util::sync::CancellationToken;

use lcm_ingest::differing;
use lcm_ingest::file::SessionFile;
use lcm_model::dag::MessageKind;
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, Hash};
use lcm_model::{Content, Entry, agent_of, replacements, text};
use lcm_store::tasks::go_on;
use lcm_store::{AuditedMessage, Store, StoredSession, View};

pub use rebuild::{Rebuilt, rebuild};
pub use report::{Check, Finding};

/// What is wrong with an entry, in the order of [`lcm_store::Upkeep::misplaced_entries`].
const MISPLACED: [&str; 5] = [
    "its message is missing",
    "it comes before its parent",
    "its message's parent differs from the message above it",
    "the recorded last message at or above is wrong",
    "it edits an entry that does not show the replaced message",
];

/// Checks a store, in which the session `open` may lag behind, and the files of sessions, of which the project's are in
/// `session_dir`.
///
/// # Errors
/// When the check is cancelled, or the store is closed. What can't be read is in the checks.
pub async fn check(
    store: &Store,
    open: Option<ConversationId>,
    session_dir: &Path,
    cancel: &CancellationToken,
) -> Result<Vec<Check>> {
    let stop = cancel.clone();
    let look = move |view: &View<'_>| {
        let checks = stored(view, &stop);
        let sessions = view.messages().sessions(None).unwrap_or_default();
        go_on(&stop).map(|()| (checks, sessions))
    };
    let (mut checks, sessions) = store.read(look).await?;
    if checks.len() == 1 {
        return Ok(checks);
    }
    let mut notes = Vec::new();
    let (mut gone, mut read, mut entries) = (0, 0, 0);
    // Each file in a view of its own: they grow.
    for session in sessions {
        let Some(path) = session.file.as_ref().map(PathBuf::from) else { continue };
        if !path.exists() {
            gone += 1;
            continue;
        }
        let (is_open, stop) = (Some(session.id) == open, cancel.clone());
        // An import without a path does not look elsewhere.
        let import = match path.parent() == Some(session_dir) {
            true => "/lcm import".to_owned(),
            false => format!("/lcm import {}", path.display()),
        };
        let compare = move |view: &View<'_>| Ok(compared(view, &session, &path, is_open, &import, &stop));
        let (seen, note) = store.read(compare).await?;
        go_on(cancel)?;
        read += usize::from(seen.is_some());
        entries += seen.unwrap_or_default();
        notes.extend(note);
    }
    if gone > 0 {
        notes.push(format!("{} no longer there", text::count(gone, "file")));
    }
    let seen = vec![(read, "file"), (entries, "entry")];
    checks.push(Check { name: "Session files", seen, notes, ..Check::default() });
    Ok(checks)
}

/// All checks of what is stored. Stops, with any result, once `cancel` is raised.
fn stored(view: &View<'_>, cancel: &CancellationToken) -> Vec<Check> {
    let file = Check::of("Database", |check| {
        check.saw(usize::try_from(view.upkeep().format()?).unwrap_or_default(), "format");
        for line in view.upkeep().integrity()? {
            check.find("SQLite says", || line);
        }
        for (table, row, into) in view.upkeep().dangling()? {
            let row = row.map(|row| format!(" {row}")).unwrap_or_default();
            check.find("a row refers to a lost row", || format!("{table}{row} to {into}"));
        }
        Ok(())
    });
    if file.unfinished.is_some() {
        // Nothing can be read.
        return vec![file];
    }
    let messages = Check::of("Messages", |check| {
        check.saw(0, "message");
        view.upkeep().audit_messages(|message| {
            go_on(cancel)?;
            // As everywhere, what Pi itself wrote, a changed version and a purged message are no messages.
            let noun = match message.kind {
                MessageKind::Conversation | MessageKind::Private => "message",
                MessageKind::System => "record that search ignores",
                MessageKind::Edited => "version of edited messages",
                MessageKind::Purged => "message purged",
            };
            check.saw(1, noun);
            if let Some(what) = wrong(view, &message) {
                let row = || format!("row {}", message.id.0);
                check.find(what, || message.lineage.map_or_else(row, |hash| hash.message_handle()));
            }
            Ok(())
        })?;
        Ok(())
    });
    let entries = Check::of("Entries", |check| {
        check.saw(view.messages().conversations()?, "session");
        check.saw(view.upkeep().count_entries()?, "entry");
        for (entry, session, what) in view.upkeep().misplaced_entries()? {
            check.find(MISPLACED[what], || format!("{entry} of session {}", session.unwrap_or_default()));
        }
        let sessions = view.messages().sessions(None)?;
        let all = sessions.into_iter().map(|session| (Some(session.id), session.session_id));
        for (session, name) in all.chain([(None, "the project".to_owned())]) {
            go_on(cancel)?;
            if !view.messages().is_counted_right(session)? {
                check.find("the recorded number of messages is wrong", || name);
            }
        }
        Ok(())
    });
    let summaries = Check::of("Summaries", |check| {
        let rows = view.upkeep().summary_rows()?;
        check.saw(rows.len(), "summary");
        let misspanned: HashSet<_> = view.upkeep().misspanned_summaries()?.into_iter().collect();
        for id in rows {
            go_on(cancel)?;
            let name = || format!("row {}", id.0);
            let Ok(summary) = view.summaries().summary(id) else {
                check.find("its text can't be unpacked", name);
                continue;
            };
            let sources = view.summaries().sources(id)?;
            let hashes = view.summaries().identities(&sources).unwrap_or_default();
            check.saw(hashes.len(), "edge");
            if hashes.is_empty() || summary.identity(&hashes) != summary.hash {
                check.find("its hash does not match text and sources", || summary.hash.summary_handle());
            } else if misspanned.contains(&id) {
                check.find("the recorded span does not match its sources", || summary.hash.summary_handle());
            }
        }
        Ok(())
    });
    let index = Check::of("Index", |check| {
        let [passages, summaries] = view.upkeep().indexed()?;
        for ((has, should_have), noun) in [(passages, "passage"), (summaries, "summary")] {
            check.saw(has, noun);
            if has != should_have {
                check.find("the index is not complete", || text::count(should_have, noun));
            }
        }
        view.upkeep().rank_all()
    });
    let mut checks = vec![file, messages, entries, summaries, index];
    checks.extend(shared(view));
    checks
}

/// Which machines share the history, and which of them have not confirmed a purge; `None` without a sync.
fn shared(view: &View<'_>) -> Option<Check> {
    let target = view.synced().target().ok()??;
    let machines = view.synced().machines().ok()?;
    Some(Check::of("Machines", |check| {
        check.saw(machines.len(), "machine");
        if machines.is_empty() {
            // A rebuild keeps where, but not what was sent.
            check.notes.push(format!("what they have is not known: /lcm sync {target} asks them"));
            return Ok(());
        }
        let purged = view.synced().purged()?;
        // What is encrypted to others alone may be what they have purged.
        let is_open = view.synced().packs()?.values().all(Option::is_none);
        for machine in machines.iter().filter(|machine| is_open && machine.purged > purged) {
            let name = text::one_line(&machine.name(&machines), 60);
            check
                .notes
                .push(format!("{name} has purged what is still here: /lcm sync {target} tells how much"));
        }
        let behind: Vec<_> = machines.iter().filter(|machine| machine.purged < purged).collect();
        if behind.len() == machines.len() {
            check.notes.push(format!("the last purge was not sent yet: /lcm sync {target} sends it"));
            return Ok(());
        }
        for machine in behind {
            let name = text::one_line(&machine.name(&machines), 60);
            check.notes.push(format!("{name} has not confirmed the last purge yet"));
        }
        Ok(())
    }))
}

/// What is wrong with a message: it must have its original text and position, which its identity hashes.
fn wrong(view: &View<'_>, message: &AuditedMessage) -> Option<&'static str> {
    let above = match (message.parent, message.above) {
        (None, _) => Hash::ROOT,
        (Some(_), Some(above)) => above,
        (Some(_), None) => return Some("the parent message is missing"),
    };
    if message.kind == MessageKind::Purged {
        let proven = message.nonce.map(|nonce| above.purged(&nonce));
        let is_right = proven.is_some() && proven == message.lineage && message.bytes == 0;
        return (!is_right).then_some("it was purged, but its position is wrong");
    }
    let Ok(json) = &message.json else { return Some("the text can't be unpacked") };
    let is_right = match (message.kind, message.parent) {
        (MessageKind::Edited, Some(original)) => {
            let original = view.messages().json_of(original).ok();
            original.is_some_and(|original| {
                original == *json
                    || replacements(&original, json)
                        .iter()
                        .any(|edit| Some(above.edited(edit)) == message.lineage)
            })
        }
        (MessageKind::Edited, None) => false,
        _ => Some(above.child(json)) == message.lineage,
    };
    let is_as_long = usize::try_from(message.bytes) == Ok(json.len());
    (!is_right || !is_as_long).then_some("the hash does not match text and position")
}

/// The number of entries in a session's file, if it is one of that session, and what the user should know about it.
fn compared(
    view: &View<'_>,
    session: &StoredSession,
    path: &Path,
    is_open: bool,
    import: &str,
    cancel: &CancellationToken,
) -> (Option<usize>, Option<String>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let (mut seen, mut lacking, mut others, mut moved, mut is_old) = (0, 0, 0, 0, false);
    // Pi gives the entries of its old files new ids: their messages are shown already, under others.
    let (mut renamed, mut marks, mut lineages) = (false, 0, HashMap::new());
    let mut compare = || -> Result<bool> {
        let mut file = SessionFile::open(path)?.until(cancel);
        if file.header.id != session.session_id {
            return Ok(false);
        }
        let messages = view.messages();
        while let Some(slice) = file.slice()? {
            for Entry { id, parent, content, .. } in slice.entries {
                seen += 1;
                is_old |= id.starts_with("v1-");
                let is_in_it = parent.as_ref().is_none_or(|parent| lineages.contains_key(parent));
                let stored = messages.above_entry(session.id, &id)?;
                moved += usize::from(is_in_it && stored.is_some_and(|stored| stored != parent));
                let above = parent.and_then(|id| lineages.get(&id).copied()).unwrap_or(Hash::ROOT);
                let Content::Message(json) = content else {
                    marks += usize::from(messages.entry_row(session.id, &id)?.is_none());
                    lineages.insert(id, above);
                    continue;
                };
                let digest = Hash::plain(json.as_bytes());
                let lineage = above.child_of(&digest);
                lineages.insert(id.clone(), lineage);
                if messages.entry_row(session.id, &id)?.is_some() {
                    let is_own = agent_of(&json).is_none();
                    others += if is_own { differing(view, session.id, &[(id, digest)])? } else { 0 };
                } else if let Some(message) = messages.message_by_lineage(lineage)?
                    && !messages.shown_as(session.id, message)?.is_empty()
                {
                    renamed = true;
                } else {
                    lacking += 1;
                }
            }
        }
        lacking += if renamed { 0 } else { marks };
        Ok(true)
    };
    let compared = compare();
    let stored = view.upkeep().entries_of(session.id, is_old).unwrap_or_default();
    let note = match compared {
        Ok(false) => return (None, Some(format!("{name} belongs to another session now"))),
        Err(error) => return (None, Some(format!("{name} was not read to its end: {error}"))),
        Ok(true) if is_open && lacking > 0 => Some(format!("{lacking} of the open session not stored yet")),
        // A line above could not be read when they were stored.
        Ok(true) if moved > 0 => {
            let more = match lacking {
                0 => String::new(),
                n => format!(", and {} not stored", text::count(n, "entry")),
            };
            let them = if moved + lacking == 1 { "it" } else { "them" };
            Some(format!(
                "{name} has {} stored below another one than there{more}: /lcm doctor --rebuild puts {them} in place",
                text::count(moved, "entry")
            ))
        }
        Ok(true) if lacking > 0 => {
            Some(format!("{name} has {} ({import} adds them)", text::count(lacking, "more entry")))
        }
        Ok(true) if others > 0 => Some(format!("{name} has another text in {others}: what is stored stays")),
        Ok(true) if seen < stored => Some(format!("{name} lacks {}: what is stored stays", stored - seen)),
        Ok(true) => None,
    };
    (Some(seen), note)
}
