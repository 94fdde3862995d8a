//! Checks whether everything is stored correctly, and repairs what can be repaired.
//!
//! Whatever can be recomputed is checked: a message's text and position by its lineage, the recorded last
//! messages by the tree, a summary by its hash, a branch's cover by the edges, the index by the texts, and
//! everything by the session files that still exist. The store is read in slices, so that nothing else has to
//! wait; what is added meanwhile is left to the next check.
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
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_util::sync::CancellationToken;

use crate::error::{Code, Error, Result};
use crate::ids::{ConversationId, EntryId, MessageId, SummaryId};
use crate::ingest::file::SessionFile;
use crate::store::{AuditedConversation, Facts, Horizon, Store, View};

pub use mend::{Mended, Outcome};
pub use report::{Check, Finding, Remedy, Report};

/// The checks of one store.
pub struct Doctor {
    pub store: Store,
    /// The open session, which may be ahead of the store.
    pub open: ConversationId,
    /// Stops the backup before a repair.
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
    /// Sessions whose files have the right text of one of them.
    whole: HashSet<ConversationId>,
    /// Session files that exist.
    files: Vec<(ConversationId, PathBuf)>,
    /// Sessions whose files have what the store lacks.
    lacking: HashSet<ConversationId>,
}

impl Doctor {
    /// Checks everything.
    ///
    /// # Errors
    /// When the store is closed, which ends a running check. What can't be read is in the report.
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
        let begun = self
            .store
            .read(|view| Ok((view.upkeep().horizon()?, view.upkeep().audited_conversations()?)))
            .await;
        let (mut file, index, mut found) = self.file().await?;
        let (horizon, conversations) = match begun {
            Ok(begun) => begun,
            // The other checks have nothing to start from.
            Err(error) if error.code() != Code::Closed => {
                file.unfinished.get_or_insert(error.cause());
                found.file_is_damaged = true;
                return Ok((Report { checks: vec![file] }, found));
            }
            Err(error) => return Err(error),
        };
        let mut walk = messages::Walk::new(horizon, index);
        let mut more = true;
        while more {
            (walk, more) = self
                .step(walk, |view, walk| walk.slice(view), |walk, why| walk.check.unfinished = Some(why))
                .await?;
        }
        let messages::Walk {
            check: mut messages, index, tombstones, damaged, unchanged, purged, facts, ..
        } = walk;
        found.damaged = Arc::new(damaged);
        found.unproven = Arc::new(if purged > 0 { unchanged } else { HashSet::new() });
        found.facts = facts;
        let (mut entries, found) = self.entries(&conversations, horizon, found).await?;
        let (summaries, found) = self
            .part(Check::new("Summaries"), found, move |view, check, found| {
                summaries::check(view, &horizon, &tombstones, check, found)
            })
            .await?;
        let branches = self.branches(&conversations, horizon, &found).await?;
        let (index, mut found) = self.part(index, found, |view, check, _| index::check(view, check)).await?;
        let heals = |check: &Check| check.findings.iter().any(|finding| finding.remedy == Remedy::Fix);
        found.index_is_broken |= heals(&index);
        let (files, found) = self.sessions(&conversations, found).await?;
        if !found.whole.is_empty() {
            messages::can_be_put_back(&mut messages);
        }
        if !found.lacking.is_empty() {
            entries::can_be_hung(&mut entries);
        }
        Ok((Report { checks: vec![file, messages, entries, summaries, branches, index, files] }, found))
    }

    async fn file(&self) -> Result<(Check, Check, Findings)> {
        let checks = (Check::new("Database"), Check::new("Index"), Findings::default());
        let (checks, _) = self
            .step(
                checks,
                |view, (file, index, found)| file::check(view, file, index, found).map(|()| true),
                |(file, _, found), why| {
                    file.unfinished = Some(why);
                    found.file_is_damaged = true;
                },
            )
            .await?;
        Ok(checks)
    }

    async fn entries(
        &self,
        conversations: &[AuditedConversation],
        horizon: Horizon,
        mut found: Findings,
    ) -> Result<(Check, Findings)> {
        let mut check = Check::new("Entries");
        check.saw(conversations.len(), "session");
        let of_project =
            |view: &View<'_>, check: &mut _, found: &mut _| entries::counts(view, None, check, found);
        (check, found) = self.part(check, found, of_project).await?;
        for conversation in conversations {
            let conversation = conversation.clone();
            (check, found) = self
                .part(check, found, move |view, check, found| {
                    entries::check(view, &conversation, &horizon, check, found)
                })
                .await?;
        }
        Ok((check, found))
    }

    async fn branches(
        &self,
        conversations: &[AuditedConversation],
        horizon: Horizon,
        found: &Findings,
    ) -> Result<Check> {
        let mut state = (Check::new("Branches"), branches::Known::default());
        let lasts = match self.store.read(|view| view.summaries().last_messages()).await {
            Ok(lasts) => Arc::new(lasts),
            Err(error) => {
                state.0.unfinished = Some(error.cause());
                return Ok(state.0);
            }
        };
        // A tree with a cycle has no branches to walk.
        for conversation in conversations.iter().filter(|one| !found.circles.contains(&one.id)) {
            let (id, lasts) = (conversation.id, Arc::clone(&lasts));
            let read = move |view: &View<'_>| {
                let tree = view.messages().tree(id, horizon.entry)?;
                let deciding = tree.deciding(&lasts);
                Ok((tree, deciding))
            };
            let (tree, deciding) = match self.store.read(read).await {
                Ok((tree, deciding)) => (Arc::new(tree), deciding),
                Err(error) => {
                    state.0.unfinished = Some(error.cause());
                    continue;
                }
            };
            for end in tree.ends() {
                let at = deciding.get(end).copied();
                if let Some(at) = at.filter(|at| !state.1.has(*at)) {
                    let tree = Arc::clone(&tree);
                    let look = move |view: &View<'_>, (_, known): &mut (Check, branches::Known)| {
                        known.read(view, &tree, at).map(|()| true)
                    };
                    (state, _) =
                        self.step(state, look, |(check, _), why| check.unfinished = Some(why)).await?;
                }
                let (check, known) = &mut state;
                known.report(&tree, *end, at, &conversation.session_id, check);
            }
        }
        Ok(state.0)
    }

    async fn sessions(
        &self,
        conversations: &[AuditedConversation],
        mut found: Findings,
    ) -> Result<(Check, Findings)> {
        let mut check = Check::new("Session files");
        check.saw(0, "file");
        let mut gone = 0;
        let heads = Arc::new(found.heads.iter().map(|(entry, _)| *entry).collect());
        let (damaged, unproven) = (Arc::clone(&found.damaged), Arc::clone(&found.unproven));
        let doubts = sessions::Doubts { damaged, unproven, heads };
        for conversation in conversations {
            let Some(path) = conversation.file.as_ref().map(PathBuf::from) else { continue };
            let (is_open, id) = (conversation.id == self.open, conversation.id);
            let (session, opened) = (conversation.session_id.clone(), path.clone());
            let stored =
                match self.store.read(move |view| view.upkeep().audit_entries(id, EntryId(i64::MAX))).await {
                    Ok(stored) => stored,
                    Err(error) => {
                        check.unfinished = Some(error.cause());
                        continue;
                    }
                };
            let doubts = doubts.clone();
            let looked = tokio::task::spawn_blocking(move || {
                let stored = sessions::Stored::new(&session, stored, doubts);
                hold_against(&opened, stored, is_open, check)
            });
            let (looked, outcome) =
                looked.await.map_err(|error| Error::storing("a bug stopped a check", error))?;
            check = looked;
            match outcome {
                Held::Gone => gone += 1,
                Held::Other => {}
                Held::Compared { lacks, is_whole } => {
                    found.files.push((conversation.id, path));
                    if lacks {
                        found.lacking.insert(conversation.id);
                    }
                    if is_whole {
                        found.whole.insert(conversation.id);
                    }
                }
            }
        }
        if gone > 0 {
            check.notes.push(format!("{} no longer there", crate::text::count(gone, "file")));
        }
        Ok((check, found))
    }

    /// Runs one check in one view.
    async fn part(
        &self,
        check: Check,
        found: Findings,
        work: impl FnOnce(&View<'_>, &mut Check, &mut Findings) -> Result<()> + Send + 'static,
    ) -> Result<(Check, Findings)> {
        let look =
            |view: &View<'_>, (check, found): &mut (Check, Findings)| work(view, check, found).map(|()| true);
        let failed = |(check, _): &mut (Check, Findings), why| check.unfinished = Some(why);
        Ok(self.step((check, found), look, failed).await?.0)
    }

    /// Runs work over `state` in one view; what can't be read ends this check only.
    async fn step<S: Send + 'static>(
        &self,
        mut state: S,
        work: impl FnOnce(&View<'_>, &mut S) -> Result<bool> + Send + 'static,
        failed: impl FnOnce(&mut S, String) + Send + 'static,
    ) -> Result<(S, bool)> {
        let look = move |view: &View<'_>| {
            let more = work(view, &mut state).unwrap_or_else(|error| {
                failed(&mut state, error.to_string());
                false
            });
            Ok((state, more))
        };
        self.store.read(look).await
    }
}

/// The outcome of comparing a session file.
enum Held {
    /// The file no longer exists.
    Gone,
    /// The file is not a session, or a different one.
    Other,
    /// The file was compared.
    Compared {
        /// Whether it has what the store lacks.
        lacks: bool,
        /// Whether it has the text of a message that is damaged in the store.
        is_whole: bool,
    },
}

fn hold_against(path: &Path, mut stored: sessions::Stored, is_open: bool, mut check: Check) -> (Check, Held) {
    if !path.exists() {
        return (check, Held::Gone);
    }
    let mut compare = || -> Result<Option<(bool, bool)>> {
        let mut file = SessionFile::open(path)?;
        if file.header().id != stored.session() {
            return Ok(None);
        }
        check.saw(1, "file");
        let mut is_whole = false;
        while let Some(slice) = file.slice()? {
            stored.compare(&slice, &mut check);
            is_whole |= !std::mem::take(&mut stored.texts).is_empty();
        }
        stored.end(is_open, &mut check);
        Ok(Some((stored.lacks, is_whole)))
    };
    let held = match compare() {
        Ok(Some((lacks, is_whole))) => Held::Compared { lacks, is_whole },
        Ok(None) => {
            check.notes.push(format!("{} belongs to another session now", path.display()));
            Held::Other
        }
        Err(error) => {
            check.notes.push(format!("{} was skipped: {error}", path.display()));
            Held::Other
        }
    };
    (check, held)
}
