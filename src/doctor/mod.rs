//! Checks whether everything is stored correctly, and repairs what can be repaired.
//!
//! Whatever can be recomputed is checked: a message's text and position by its lineage, the recorded last
//! messages by the tree, a summary by its hash, a branch's cover by the edges, the index by the texts, and
//! everything by the session files that still exist. The store is checked in one view, so what is added
//! meanwhile is left to the next check; each session file is compared with a view of its own, because it grows.
//!
//! A repair rebuilds what follows from the messages. A message itself is changed only if it is wrong and a
//! session file has the exact text that its hash proves.

mod branches;
mod entries;
mod file;
mod index;
mod mend;
mod messages;
mod report;
mod sessions;
mod summaries;

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::error::Result;
use crate::ids::{ConversationId, EntryId, MessageId, SummaryId};
use crate::ingest::file::SessionFile;
use crate::store::{Facts, Store, StoredSession, View};
use crate::sync::go_on;

pub use mend::{Mended, Outcome};
pub use report::{Check, Finding, Remedy, Report};

/// The checks of one store.
pub struct Doctor {
    pub store: Store,
    /// The open session, which may be ahead of the store.
    pub open: ConversationId,
    /// Stops a check, and the backup before a repair.
    pub cancel: CancellationToken,
}

/// What a repair needs to know beyond the report.
#[derive(Debug, Default)]
struct Findings {
    /// SQLite reports the file as damaged.
    file_is_damaged: bool,
    /// What follows from the other tables can't be read.
    derived_is_damaged: bool,
    /// SQLite's own indexes don't match the tables.
    reindex: bool,
    /// A full-text index is wrong.
    index_is_broken: bool,
    /// There are edges and carried records of missing summaries.
    loose_ends: bool,
    /// Messages whose recorded facts don't follow from their text, with the right ones.
    facts: Vec<(MessageId, Facts)>,
    /// Entries with the wrong last message, and the right one.
    heads: Vec<(EntryId, Option<MessageId>)>,
    /// Recorded counts are wrong.
    miscounted: bool,
    /// Entries whose parent is missing.
    torn: HashSet<EntryId>,
    /// Sessions whose tree has a cycle.
    circles: HashSet<ConversationId>,
    /// Broken summaries and those condensed from them.
    doomed: Vec<SummaryId>,
    /// Messages with the wrong text.
    damaged: Arc<HashSet<MessageId>>,
    /// Renditions whose identity only the session file could prove, and a purge has changed.
    unproven: Arc<HashSet<MessageId>>,
    /// Session files that exist.
    files: Vec<Compared>,
}

/// A session file that was compared with the store.
#[derive(Clone, Debug)]
struct Compared {
    conversation: ConversationId,
    path: PathBuf,
    /// Whether it has what the store lacks.
    lacks: bool,
    /// Whether it has the text of a message that is damaged in the store.
    is_whole: bool,
}

impl Doctor {
    /// Checks everything.
    ///
    /// # Errors
    /// When the check is cancelled, or the store is closed. What can't be read is in the report.
    pub async fn check(&self) -> Result<Report> {
        Ok(self.examine().await?.0)
    }

    /// Makes a backup, repairs what can be repaired, and checks again.
    ///
    /// # Errors
    /// As [`Doctor::check`]; when the backup can't be made, before anything is changed; when the store can't
    /// be written.
    pub async fn fix(&self) -> Result<Outcome> {
        mend::fix(self).await
    }

    async fn examine(&self) -> Result<(Report, Findings)> {
        let cancel = self.cancel.clone();
        let look = move |view: &View<'_>| {
            let seen = examine(view, &cancel);
            go_on(&cancel).map(|()| seen)
        };
        let (mut report, mut found, conversations) = self.store.read(look).await?;
        if let [_, messages, entries, ..] = report.checks.as_mut_slice() {
            let (files, compared) = self.sessions(&conversations, &found).await?;
            if compared.iter().any(|file| file.is_whole) {
                messages.can_be_fixed(&messages::NOT_ITS_TEXT);
            }
            if compared.iter().any(|file| file.lacks) {
                entries.can_be_fixed(&[entries::TORN]);
            }
            found.files = compared;
            report.checks.push(files);
        }
        Ok((report, found))
    }

    async fn sessions(
        &self,
        conversations: &[StoredSession],
        found: &Findings,
    ) -> Result<(Check, Vec<Compared>)> {
        let mut check = Check::new("Session files");
        check.saw(0, "file");
        let (mut gone, mut compared) = (0, Vec::new());
        let heads = Arc::new(found.heads.iter().map(|(entry, _)| *entry).collect());
        let (damaged, unproven) = (Arc::clone(&found.damaged), Arc::clone(&found.unproven));
        let doubts = sessions::Doubts { damaged, unproven, heads };
        for conversation in conversations {
            let Some(path) = conversation.file.as_ref().map(PathBuf::from) else { continue };
            if !path.exists() {
                gone += 1;
                continue;
            }
            let (is_open, doubts) = (conversation.id == self.open, doubts.clone());
            let (conversation, cancel) = (conversation.clone(), self.cancel.clone());
            let compare = move |view: &View<'_>| {
                let mut file = None;
                check.run(|check| {
                    file = hold_against(view, &conversation, path, doubts, is_open, &cancel, check)?;
                    Ok(())
                });
                Ok((check, file))
            };
            let file;
            (check, file) = self.store.read(compare).await?;
            go_on(&self.cancel)?;
            compared.extend(file);
        }
        if gone > 0 {
            check.notes.push(format!("{} no longer there", crate::text::count(gone, "file")));
        }
        Ok((check, compared))
    }
}

/// All checks but that of the session files; what can't be read ends only the check that needs it. Stops, with
/// any result, once `cancel` is raised.
fn examine(view: &View<'_>, cancel: &CancellationToken) -> (Report, Findings, Vec<StoredSession>) {
    let [mut file, mut index] = ["Database", "Index"].map(Check::new);
    let mut found = Findings::default();
    file.run(|check| file::check(view, check, &mut index, &mut found));
    let mut begun = None;
    file.run(|_| {
        begun = Some((view.upkeep().message_rows()?, view.messages().sessions(None)?));
        Ok(())
    });
    found.file_is_damaged |= file.unfinished.is_some();
    let Some((number, conversations)) = begun else {
        // The other checks have nothing to start from.
        return (Report { checks: vec![file] }, found, Vec::new());
    };
    let mut walk = messages::Walk::new(number, index);
    walk.all(view, cancel);
    let messages::Walk { check: messages, mut index, tombstones, damaged, unchanged, purged, facts, .. } =
        walk;
    found.damaged = Arc::new(damaged);
    found.unproven = Arc::new(if purged > 0 { unchanged } else { HashSet::new() });
    found.facts = facts;
    let [mut entries, mut summaries, mut branches] = ["Entries", "Summaries", "Branches"].map(Check::new);
    entries.saw(conversations.len(), "session");
    entries.run(|check| entries::counts(view, None, check, &mut found));
    for conversation in conversations.iter().take_while(|_| !cancel.is_cancelled()) {
        entries.run(|check| entries::check(view, conversation, check, &mut found));
    }
    summaries.run(|check| summaries::check(view, &tombstones, check, &mut found));
    // A tree with a cycle has no branches to walk.
    let walkable = conversations.iter().filter(|one| !found.circles.contains(&one.id));
    branches.run(|check| branches::check(view, walkable, cancel, check));
    index.run(|check| index::check(view, check));
    found.index_is_broken |= index.findings.iter().any(|finding| finding.remedy == Remedy::Fix);
    (Report { checks: vec![file, messages, entries, summaries, branches, index] }, found, conversations)
}

/// Compares a session with its file; `None` if that is not a session, or a different one.
fn hold_against(
    view: &View<'_>,
    conversation: &StoredSession,
    path: PathBuf,
    doubts: sessions::Doubts,
    is_open: bool,
    cancel: &CancellationToken,
    check: &mut Check,
) -> Result<Option<Compared>> {
    let stored = view.upkeep().audit_entries(conversation.id)?;
    let mut stored = sessions::Stored::new(&conversation.session_id, stored, doubts);
    let mut is_whole = false;
    let mut compare = || -> Result<bool> {
        let mut file = SessionFile::open(&path)?.until(cancel);
        if file.header.id != conversation.session_id {
            return Ok(false);
        }
        check.saw(1, "file");
        while let Some(slice) = file.slice()? {
            stored.compare(&slice, check);
            is_whole |= !std::mem::take(&mut stored.texts).is_empty();
        }
        Ok(true)
    };
    let outcome = compare();
    // What was found stays true if the rest can't be read.
    stored.end(is_open, check);
    match outcome {
        Ok(true) => {
            let (conversation, lacks) = (conversation.id, stored.lacks);
            return Ok(Some(Compared { conversation, path, lacks, is_whole }));
        }
        Ok(false) => check.notes.push(format!("{} belongs to another session now", path.display())),
        Err(error) => check.notes.push(format!("{} was not read to its end: {error}", path.display())),
    }
    Ok(None)
}
