//! Repairs: makes a backup, rebuilds everything that follows from the messages, then checks again.

use std::collections::HashSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::report::{Check, Remedy, Report};
use super::sessions::{Doubts, Stored};
use super::{Doctor, Findings};
use crate::error::{Error, Result};
use crate::ids::{ConversationId, EntryId, MessageId};
use crate::ingest::file::SessionFile;
use crate::ingest::{restore_carried, restore_lost};
use crate::store::{Batch, Place, Text, backup_name};

/// The outcome of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to repair; nothing was written.
    Sound(Report),
    /// Nothing that can be repaired in place; nothing was written.
    Helpless(Report),
    /// SQLite reports the file as damaged, so it must not be written any more.
    Damaged(Report),
    /// Something was repaired.
    Mended(Box<Mended>),
}

/// What was repaired.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mended {
    pub before: Report,
    pub backup: PathBuf,
    /// What was done: how often, and what.
    pub done: Vec<(usize, &'static str)>,
    pub after: Report,
}

pub(super) async fn fix(doctor: &Doctor) -> Result<Outcome> {
    let Place::File(database) = doctor.store.place() else {
        return Err(Error::invalid("this session's history is in memory only: there is nothing to repair"));
    };
    let (mut before, found) = doctor.examine().await?;
    if before.is_sound() {
        return Ok(Outcome::Sound(before));
    }
    if found.file_is_damaged {
        return Ok(Outcome::Damaged(before));
    }
    if !before.calls_for(Remedy::Fix) {
        return Ok(Outcome::Helpless(before));
    }
    let backup = backup_name(database);
    let (path, cancel) = (backup.clone(), doctor.cancel.clone());
    doctor.store.read(move |view| view.upkeep().back_up(&path, &cancel)).await?;
    if found.derived_is_damaged
        && let Err(error) = doctor.remake_derived().await
    {
        let _ = std::fs::remove_file(&backup);
        before.checks[0].unfinished = Some(error.to_string());
        return Ok(Outcome::Damaged(before));
    }
    let done = doctor.mend(found).await.map_err(|error| {
        Error::storing(
            format!(
                "the repair stopped before its end; a copy of the database as it was: {}",
                backup.display()
            ),
            error,
        )
    })?;
    let (after, _) = doctor.examine().await?;
    Ok(Outcome::Mended(Box::new(Mended { before, backup, done, after })))
}

impl Doctor {
    async fn remake_derived(&self) -> Result<()> {
        self.store.write(|batch| batch.upkeep().remake_derived()).await?;
        self.store.vacuum().await.map(drop)
    }

    async fn mend(&self, found: Findings) -> Result<Vec<(usize, &'static str)>> {
        let Findings {
            derived_is_damaged,
            reindex,
            loose_ends,
            facts,
            heads,
            miscounted,
            doomed,
            index_is_broken,
            files,
            lacking,
            damaged,
            whole,
            ..
        } = found;
        let mut done = Vec::new();
        let mut did = |n: usize, what| {
            if n > 0 {
                done.push((n, what));
            }
        };
        did(usize::from(derived_is_damaged), "counts and index of unusual messages rebuilt");
        did(usize::from(reindex), "SQLite index rebuilt");
        did(facts.len(), "message with corrected role, tool, tokens or time");
        did(heads.len(), "entry with corrected last message");
        did(usize::from(miscounted), "messages counted again");
        let (dropped, summaries) = (doomed.len(), !doomed.is_empty() || loose_ends);
        // Before the fold, which relies on the recorded last messages.
        self.store
            .write(move |batch| {
                if reindex {
                    batch.upkeep().reindex()?;
                }
                if index_is_broken {
                    batch.upkeep().clear_indexes()?;
                }
                facts.iter().try_for_each(|(message, facts)| batch.upkeep().set_facts(*message, facts))?;
                batch.upkeep().set_heads(&heads)?;
                if miscounted {
                    batch.messages().forget_counts()?;
                }
                batch.upkeep().drop_summaries(&doomed)?;
                if loose_ends {
                    batch.upkeep().drop_loose_ends()?;
                }
                Ok(())
            })
            .await?;
        let mut put_back = 0;
        for (conversation, path) in files.iter().filter(|(conversation, _)| whole.contains(conversation)) {
            put_back += self.put_back(*conversation, path, &damaged).await?;
        }
        did(put_back, "text restored from a session file");
        did(dropped, "summary removed, with those condensed from it");
        did(usize::from(loose_ends), "edges without a summary removed");
        let count = async || {
            self.store.read(|view| Ok((view.upkeep().horizon()?, view.upkeep().summary_rows()?.len()))).await
        };
        let (before, summaries_before) = count().await?;
        let mut hung = 0;
        for (conversation, path) in files {
            // Session files also contain summaries.
            if lacking.contains(&conversation) || dropped > 0 || loose_ends {
                hung += self.store_again(conversation, &path).await?;
            }
        }
        let (after, summaries_after) = count().await?;
        did(after.messages - before.messages, "message stored again from session files");
        did(hung, "entry reattached to its parent");
        did(summaries_after - summaries_before, "summary restored from session files");
        let remake = move |batch: &Batch<'_>| {
            if index_is_broken || summaries {
                batch.upkeep().rebuild_summary_index()?;
            }
            if index_is_broken {
                batch.upkeep().rebuild_message_index()?;
            }
            Ok(())
        };
        self.store.write(remake).await?;
        did(usize::from(index_is_broken), "full-text index rebuilt");
        self.store.checkpoint().await?;
        Ok(done)
    }

    /// What is stored of a session, compared with its file.
    async fn compared(&self, conversation: ConversationId, path: &Path, doubts: Doubts) -> Result<Stored> {
        let entries =
            self.store.read(move |view| view.upkeep().audit_entries(conversation, EntryId(i64::MAX))).await?;
        let path = path.to_owned();
        blocking(move || {
            let mut reading = SessionFile::open(&path)?;
            let mut stored = Stored::new(&reading.header().id, entries, doubts);
            while let Some(slice) = reading.slice()? {
                stored.compare(&slice, &mut Check::new(""));
            }
            Ok(stored)
        })
        .await?
    }

    /// Restores the texts of damaged messages from a session file. Returns how many.
    async fn put_back(
        &self,
        conversation: ConversationId,
        path: &Path,
        damaged: &Arc<HashSet<MessageId>>,
    ) -> Result<usize> {
        let doubts = Doubts { damaged: Arc::clone(damaged), ..Doubts::default() };
        let mut texts = self.compared(conversation, path, doubts).await?.texts;
        // A replacement is applied to its original, which must be restored first.
        texts.sort_by_key(|(_, text)| matches!(text, Text::Replaced(_)));
        let put_back = move |batch: &Batch<'_>| {
            texts.iter().try_fold(0, |n, (message, text)| {
                Ok(n + usize::from(batch.upkeep().put_back(*message, text)?))
            })
        };
        self.store.write(put_back).await
    }

    /// Folds a session file in, and reattaches entries whose parent was lost. Returns how many.
    async fn store_again(&self, conversation: ConversationId, path: &Path) -> Result<usize> {
        self.fold_in(conversation, path).await?;
        let torn = self.compared(conversation, path, Doubts::default()).await?.torn;
        let hung = torn.len();
        if hung > 0 {
            let hang = move |batch: &Batch<'_>| {
                torn.iter().try_for_each(|(entry, parent)| batch.upkeep().set_parent(*entry, *parent))
            };
            self.store.write(hang).await?;
            // Summaries of a disconnected branch find their messages only now.
            self.fold_in(conversation, path).await?;
        }
        Ok(hung)
    }

    /// Stores what is missing from a session file.
    async fn fold_in(&self, conversation: ConversationId, path: &Path) -> Result<()> {
        let path = path.to_owned();
        let mut reading = blocking(move || SessionFile::open(&path)).await??;
        loop {
            let (read, slice) = blocking(move || {
                let slice = reading.slice();
                (reading, slice)
            })
            .await?;
            reading = read;
            let Some(handover) = slice? else { return Ok(()) };
            let fold = move |batch: &Batch<'_>| {
                // Before the fold, which relies on the lost messages.
                restore_lost(batch, conversation, &handover)?;
                let handover = handover.prepare().fold(batch, conversation)?;
                restore_carried(batch, conversation, &handover)
            };
            self.store.write(fold).await?;
        }
    }
}

/// Runs `work` on a thread that may wait for the disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T> {
    tokio::task::spawn_blocking(work)
        .await
        .map_err(|error| Error::storing("a bug in the engine stopped the repair", error))
}
