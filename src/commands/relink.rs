//! `/lcm relink`: the history of a folder that was moved becomes this project's.

use std::fmt;
use std::path::PathBuf;

use serde::Serialize;

use super::{Answer, Command, CommandContext, args};
use crate::error::{Error, Result};
use crate::ingest::relink::Relinked;
use crate::text::{count, grouped};

pub(super) const COMMAND: Command = Command {
    name: "relink",
    help: "add the history of a folder that was moved here, or became part of this project",
    usage: &[(
        "relink OLD-FOLDER",
        "adds the sessions and summaries of that folder's history; the old database stays",
    )],
    arguments: &[],
    is_long: true,
    answer: |asked| Box::pin(run(asked)),
};

/// What was taken over.
#[derive(Serialize)]
struct TakenOver {
    project: String,
    sessions: usize,
    messages: usize,
    new: usize,
    summaries: usize,
    /// Rows that could not be read.
    lost: usize,
    /// Messages that are not here in the same form.
    lacking: usize,
    stopped: bool,
    databases: Vec<PathBuf>,
}

async fn run(asked: &CommandContext<'_>) -> Result<Answer> {
    if asked.rest.is_empty() {
        return Err(Error::invalid(
            "/lcm relink needs the folder whose history to add; see /lcm help relink",
        ));
    }
    let old = args::path(&asked.rest);
    match asked.importer.relink(asked.home, asked.folders, &old).await? {
        Ok(relinked) => Ok(Answer::of(&TakenOver::of(relinked))),
        Err(under_way) => Ok(under_way),
    }
}

impl TakenOver {
    fn of(relinked: Relinked) -> Self {
        let Relinked { project, databases, reports, summaries, lacking } = relinked;
        let sum = |of: fn(&crate::ingest::import::Report) -> usize| reports.iter().map(of).sum::<usize>();
        Self {
            project,
            sessions: sum(|report| report.sessions),
            messages: sum(|report| report.new + report.known),
            new: sum(|report| report.new),
            summaries,
            lost: sum(|report| report.lost),
            lacking,
            stopped: reports.iter().any(|report| report.stopped.is_some()),
            databases,
        }
    }
}

impl fmt::Display for TakenOver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.stopped {
            return f.write_str("Stopped; the same command continues. The old history was not changed.");
        }
        let messages = grouped(self.messages);
        write!(
            f,
            "The history of {} is now part of this project's: {}, {messages} messages ({} new), {}.",
            self.project,
            count(self.sessions, "session"),
            grouped(self.new),
            count(self.summaries, "summary")
        )?;
        if self.lost > 0 {
            write!(f, " {} of the old database could not be read.", count(self.lost, "row"))?;
        }
        if self.lacking > 0 {
            write!(
                f,
                " {} exist here in another form or were purged here; they were not added.",
                count(self.lacking, "message")
            )?;
        }
        for database in &self.databases {
            write!(f, "\nThe old database remains as a backup: {}", database.display())?;
        }
        Ok(())
    }
}
