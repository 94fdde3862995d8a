//! `/lcm backup`: a copy of the history, and where it lies.

use std::fmt;
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Answer, Command, CommandContext, args};
use crate::error::{Error, Result};
use crate::store::{BackupFacts, Place, backup_name};
use crate::text::{count, grouped, megabytes};

const NAME: &str = "backup";

pub(crate) const COMMAND: Command = Command {
    name: NAME,
    help: "copy the history of this project into one file, and check the copy",
    usage: &[
        ("backup", "beside the database, with the date in its name"),
        ("backup PATH", "into a new file of that name, or into a folder; nothing is ever overwritten"),
    ],
    arguments: &[],
    is_long: true,
    answer: |asked| Box::pin(back_up(asked)),
};

/// A backup that was made.
#[derive(Serialize)]
struct BackedUp {
    path: PathBuf,
    bytes: u64,
    messages: usize,
    sessions: usize,
    summaries: usize,
    #[serde(skip)]
    database: PathBuf,
}

async fn back_up(asked: &CommandContext<'_>) -> Result<Answer> {
    let Place::File(database) = asked.store().place() else {
        return Err(Error::invalid("this session's history is in memory only: there is nothing to copy"));
    };
    let (_, path) = args::options(NAME, &asked.rest, &[])?;
    let path = place(database, Path::new(&asked.home.cwd), &path);
    if path.symlink_metadata().is_ok() {
        return Err(Error::invalid(format!(
            "{} already exists and is not overwritten: choose another name",
            path.display()
        )));
    }
    let written = path.clone();
    let facts = asked.store().read(move |view| view.back_up_and_verify(&written)).await?;
    let noted = path.clone();
    if asked.store().is_apart() {
        // Nothing is written to a database that lies elsewhere.
        let dir = |path: &Path| path.canonicalize().ok();
        if database.parent().and_then(dir) == dir(&asked.home.db_dir) {
            asked.store().note_backup_apart(&noted);
        }
    } else {
        asked.store().write(move |batch| batch.note_backup(&noted)).await?;
    }
    let BackupFacts { bytes, messages, sessions, summaries } = facts;
    Ok(Answer::of(&BackedUp { path, bytes, messages, sessions, summaries, database: database.clone() }))
}

/// Where the copy is to lie.
fn place(database: &Path, cwd: &Path, asked: &str) -> PathBuf {
    let default = backup_name(database);
    if asked.is_empty() {
        return default;
    }
    let path = cwd.join(args::path(asked));
    match default.file_name() {
        Some(name) if path.is_dir() => path.join(name),
        _ => path,
    }
}

impl fmt::Display for BackedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The history was copied to {}: {}, {} messages of {}, {}. The copy was read and is whole.\n\
             To go back to it, quit Pi and put it in place of {}; or take single sessions out of it with /lcm import and its path.",
            self.path.display(),
            megabytes(self.bytes),
            grouped(self.messages),
            count(self.sessions, "session"),
            count(self.summaries, "summary"),
            self.database.display()
        )
    }
}
