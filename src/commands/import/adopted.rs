//! The final report of `/lcm import --history-of`.

use std::fmt;

use crate::ingest::adopt::Adopted;
use crate::text::{count, grouped};

impl fmt::Display for Adopted {
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
