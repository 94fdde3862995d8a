//! `/lcm backup`: copies the history, and says where the copy is.

use super::{Answer, Command, CommandContext};
use crate::maintenance::backup::back_up;
use lcm_model::error::Result;
use lcm_model::text::{count, grouped, megabytes};

pub(crate) const COMMAND: Command = Command {
    name: "backup",
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
    let path = asked.rest.path()?;
    let made = back_up(asked.home, path.as_deref(), &asked.cancel).await?;
    let text = format!(
        "The history was copied to {}: {}, {} messages of {}, {}. The copy was read and is whole.\n\
         To go back to it, quit Pi, move {} and its -wal and -shm files away, and put it in their place; or bring its sessions in \
         with /lcm import and its path.",
        made.path.display(),
        megabytes(made.facts.bytes),
        grouped(made.facts.messages),
        count(made.facts.sessions, "session"),
        count(made.facts.summaries, "summary"),
        made.database.display()
    );
    Ok(Answer::new(text, made))
}
