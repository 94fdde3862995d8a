//! Repairs: makes a backup, rebuilds everything that follows from the messages, then checks again.

use std::collections::HashSet;
use std::path::PathBuf;
use std::sync::Arc;

use super::report::{Check, Remedy, Report};
use super::sessions::{Doubts, Stored};
use super::{Compared, Doctor, Findings};
use crate::error::{Error, Result};
use crate::ids::MessageId;
use crate::ingest::file::SessionFile;
use crate::ingest::restore_lost;
use crate::store::{Batch, Place, Text, View, backup_name};

/// The outcome of a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing to repair; nothing was written.
    Sound(Report),
    /// Nothing that can be repaired in place, or SQLite reports the file as damaged, so that it must not be written
    /// any more; nothing was written.
    Helpless(Report),
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
    if found.file_is_damaged || !before.calls_for(Remedy::Fix) {
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
        return Ok(Outcome::Helpless(before));
    }
    let done = doctor.mend(found).await.map_err(|error| {
        let copy = backup.display();
        Error::storing(
            format!("the repair stopped before its end; a copy of the database as it was: {copy}"),
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
        let mut done = Vec::new();
        let mut did = |n: usize, what| {
            if n > 0 {
                done.push((n, what));
            }
        };
        did(usize::from(found.derived_is_damaged), "counts and indexes of messages rebuilt");
        did(usize::from(found.reindex), "SQLite index rebuilt");
        did(found.facts.len(), "message with corrected role, tool, tokens or time");
        did(found.heads.len(), "entry with corrected last message");
        did(usize::from(found.miscounted), "messages counted again");
        let (dropped, summaries) = (found.doomed.len(), !found.doomed.is_empty() || found.loose_ends);
        // Before the fold, which relies on the recorded last messages.
        self.store
            .write(move |batch| {
                if found.reindex {
                    batch.upkeep().reindex()?;
                }
                if found.index_is_broken {
                    batch.upkeep().clear_indexes()?;
                }
                for (message, facts) in &found.facts {
                    batch.upkeep().set_facts(*message, facts)?;
                }
                batch.upkeep().set_heads(&found.heads)?;
                if found.miscounted {
                    batch.messages().forget_counts()?;
                }
                batch.upkeep().drop_summaries(&found.doomed)?;
                if found.loose_ends {
                    batch.upkeep().drop_loose_ends()?;
                }
                Ok(())
            })
            .await?;
        did(self.put_back(&found.files, found.damaged).await?, "text restored from a session file");
        did(dropped, "summary removed, with those condensed from it");
        did(usize::from(found.loose_ends), "edges without a summary removed");
        let count = async || {
            self.store
                .read(|view| Ok((view.upkeep().message_rows()?, view.upkeep().summary_rows()?.len())))
                .await
        };
        let (messages_before, summaries_before) = count().await?;
        let mut hung = 0;
        for file in found.files {
            // Session files also contain summaries.
            if file.lacks || dropped > 0 || found.loose_ends {
                hung += self.store_again(file).await?;
            }
        }
        let (messages_after, summaries_after) = count().await?;
        did(messages_after - messages_before, "message stored again from session files");
        did(hung, "entry reattached to its parent");
        did(summaries_after - summaries_before, "summary restored from session files");
        let remake = move |batch: &Batch<'_>| {
            if found.index_is_broken || summaries {
                batch.upkeep().rebuild_summary_index()?;
            }
            if found.index_is_broken {
                batch.upkeep().rebuild_message_index()?;
            }
            Ok(())
        };
        self.store.write(remake).await?;
        did(usize::from(found.index_is_broken), "full-text index rebuilt");
        self.store.checkpoint().await?;
        Ok(done)
    }

    /// Restores the texts of damaged messages from session files. Returns how many.
    async fn put_back(&self, files: &[Compared], damaged: Arc<HashSet<MessageId>>) -> Result<usize> {
        let files: Vec<Compared> = files.iter().filter(|file| file.is_whole).cloned().collect();
        let doubts = Doubts { damaged, ..Doubts::default() };
        let read = move |view: &View<'_>| {
            files.iter().map(|file| Ok(compared(view, file, &doubts)?.texts)).collect::<Result<Vec<_>>>()
        };
        let mut texts = self.store.read(read).await?.concat();
        // A replacement is applied to its original, which must be restored first.
        texts.sort_by_key(|(_, text)| matches!(text, Text::Replaced(_)));
        let put_back = move |batch: &Batch<'_>| {
            let put_back = |(message, text): &_| Ok(usize::from(batch.upkeep().put_back(*message, text)?));
            texts.iter().map(put_back).sum()
        };
        self.store.write(put_back).await
    }

    /// Folds a session file in, and reattaches entries whose parent was lost. Returns how many.
    async fn store_again(&self, file: Compared) -> Result<usize> {
        self.fold_in(&file).await?;
        let again = file.clone();
        let read = move |view: &View<'_>| Ok(compared(view, &again, &Doubts::default())?.torn);
        let torn = self.store.read(read).await?;
        let hung = torn.len();
        if hung > 0 {
            let hang = move |batch: &Batch<'_>| {
                torn.iter().try_for_each(|(entry, parent)| batch.upkeep().set_parent(*entry, *parent))
            };
            self.store.write(hang).await?;
            // Summaries of a disconnected branch find their messages only now.
            self.fold_in(&file).await?;
        }
        Ok(hung)
    }

    /// Stores what is missing from a session file, slice by slice.
    async fn fold_in(&self, file: &Compared) -> Result<()> {
        let (conversation, path) = (file.conversation, file.path.clone());
        let mut reading = Some(self.store.read(move |_| SessionFile::open(&path)).await?);
        while let Some(mut file) = reading {
            let fold = move |batch: &Batch<'_>| {
                let Some(handover) = file.slice()? else { return Ok(None) };
                // Before the fold, which relies on the lost messages.
                restore_lost(batch, conversation, &handover)?;
                let handover = handover.prepare();
                handover.fold(batch, conversation)?;
                handover.restore_carried(batch, conversation).map(|()| Some(file))
            };
            reading = self.store.write(fold).await?;
        }
        Ok(())
    }
}

/// What is stored of a session, compared with its file.
fn compared(view: &View<'_>, file: &Compared, doubts: &Doubts) -> Result<Stored> {
    let entries = view.upkeep().audit_entries(file.conversation)?;
    let mut reading = SessionFile::open(&file.path)?;
    let mut stored = Stored::new(&reading.header.id, entries, doubts.clone());
    while let Some(slice) = reading.slice()? {
        stored.compare(&slice, &mut Check::new(""));
    }
    Ok(stored)
}
