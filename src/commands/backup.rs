//! `/lcm backup`: copies the history, and says where the copy is.

use std::fmt;

use super::{Answer, Command, CommandContext, args};
use crate::error::Result;
use crate::text::{count, grouped, megabytes};
use crate::upkeep::backup::{BackedUp, back_up};

const NAME: &str = "backup";

pub(crate) const COMMAND: Command = Command {
    name: NAME,
    help: "copy the history of this project into one file, and check the copy",
    usage: &[
        ("backup", "next to the database, with the date in its name"),
        ("backup PATH", "into a new file of that name, or into a folder; nothing is ever overwritten"),
    ],
    arguments: &[],
    is_long: true,
    answer: |asked| Box::pin(run(asked)),
};

async fn run(asked: &CommandContext<'_>) -> Result<Answer> {
    let (_, path) = args::options(NAME, &asked.rest, &[])?;
    let path = (!path.is_empty()).then(|| args::path(&path));
    Ok(Answer::of(&back_up(asked.home, path.as_deref(), &asked.cancel).await?))
}

impl fmt::Display for BackedUp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "The history was copied to {}: {}, {} messages of {}, {}. The copy was read and is whole.\n\
             To go back to it, quit Pi and put it in place of {}; or take single sessions out of it with /lcm import and its path.",
            self.path.display(),
            megabytes(self.facts.bytes),
            grouped(self.facts.messages),
            count(self.facts.sessions, "session"),
            count(self.facts.summaries, "summary"),
            self.database.display()
        )
    }
}
