//! `/lcm purge`: removes data for good once the user agrees, and says where it remains.

use std::fmt::{self, Write as _};
use std::path::PathBuf;

use serde::Serialize;

use super::{Answer, Command, CommandContext, Confirm, args};
use crate::error::Result;
use crate::store::PurgePlan;
use crate::text::{count, grouped, in_line, minute, time_span, timestamp};
use crate::upkeep::purge::{Removed, Still, find, remove};

/// Skips the question to the user.
pub(super) const AGREED: &str = "--yes";

/// How many names are listed.
const NAMED: usize = 5;

pub(super) const COMMAND: Command = Command {
    name: "purge",
    help: "permanently remove a message, a session, or all before a date; asks first",
    usage: &[
        (
            "purge m-1a2b3c4d5e",
            "a message and every summary made from it; Pi's id of its entry in this session works too",
        ),
        ("purge SESSION", "all messages of a session, by Pi's session id or its first eight characters"),
        ("purge before 2026-11-20", "all messages before a day or time (UTC)"),
        ("purge … --yes", "without asking; required where Pi can't ask"),
    ],
    arguments: &[("before", "all messages before a day"), (AGREED, "without asking")],
    is_long: true,
    answer: |asked| Box::pin(run(asked)),
};

/// What would be removed, or was.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Purged {
    /// What the user asked for.
    what: String,
    done: bool,
    messages: usize,
    /// Our tools' answers that repeat them.
    answers: usize,
    /// Our summaries of abandoned branches that carry summaries of them.
    accounts: usize,
    summaries: usize,
    /// In ms.
    #[serde(serialize_with = "iso")]
    from: Option<i64>,
    #[serde(serialize_with = "iso")]
    to: Option<i64>,
    sessions: Vec<String>,
    /// Whether nothing is left in the file and its log. Known afterwards.
    complete: Option<bool>,
    /// Why that could not be ensured.
    why: Option<String>,
    still: Still,
}

async fn run(asked: &CommandContext<'_>) -> Result<Answer> {
    let (agreed, what) = args::take(&asked.rest, &[AGREED]);
    let what = what.split_whitespace().collect::<Vec<_>>().join(" ");
    let found = find(asked.store(), asked.scope, &what).await?;
    if agreed.is_empty() {
        let purged = Purged::of(what, &found.plan, found.still);
        let confirm = Confirm {
            title: format!("Permanently remove {}?", count(purged.messages, "message")),
            message: purged.to_string(),
            line: format!("purge {} --yes", purged.what),
        };
        return Ok(Answer::of(&purged).asking(confirm));
    }
    let Removed { plan, still, complete } = remove(asked.store(), asked.scope, found).await?;
    let mut purged = Purged::of(what, &plan, still);
    purged.done = true;
    purged.complete = Some(*complete.as_ref().unwrap_or(&false));
    purged.why = complete.err().map(|error| error.to_string());
    Ok(Answer::of(&purged))
}

/// A time in the format of all commands, in UTC.
fn iso<S: serde::Serializer>(ms: &Option<i64>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    ms.map(timestamp).serialize(serializer)
}

impl Purged {
    fn of(what: String, plan: &PurgePlan, still: Still) -> Self {
        Self {
            what,
            done: false,
            messages: plan.messages.len() - plan.answers.len() - plan.accounts.len(),
            answers: plan.answers.len(),
            accounts: plan.accounts.len(),
            summaries: plan.summaries.len(),
            from: plan.times.map(|(from, _)| from),
            to: plan.times.map(|(_, to)| to),
            sessions: plan.sessions.iter().map(|session| session.session_id.clone()).collect(),
            complete: None,
            why: None,
            still,
        }
    }
}

impl fmt::Display for Purged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let time = match (self.from, self.to) {
            (Some(from), Some(to)) if from == to => format!(" of {}", minute(from)),
            (Some(from), Some(to)) => format!(" of {}", time_span(from, to)),
            _ => String::new(),
        };
        let (messages, summaries) = (grouped(self.messages), count(self.summaries, "summary"));
        let noun = if self.messages == 1 { "message" } else { "messages" };
        let mut removed = format!("{messages} {noun}{time}");
        if self.answers > 0 {
            let _ = write!(removed, ", {} that mention them", count(self.answers, "tool result"));
        }
        if self.accounts > 0 {
            let _ =
                write!(removed, ", {} that contain such summaries", count(self.accounts, "branch summary"));
        }
        let _ = write!(removed, ", and {summaries} based on them");
        match self.done {
            true => write!(f, "Permanently removed: {removed}.")?,
            false => write!(f, "This would permanently remove: {removed}.")?,
        }
        if self.sessions.len() > 1 {
            write!(
                f,
                " They are in {} and are removed from each: {}.",
                count(self.sessions.len(), "session"),
                in_line(&listed(&self.sessions))
            )?;
        }
        match self.complete {
            Some(true) => f.write_str("\nThe database and its log contain nothing of it. Short ids (m-…, s-…) of later messages have changed.")?,
            Some(false) => {
                let why = self.why.as_deref().unwrap_or("another process reads the database");
                write!(
                    f,
                    "\nIncomplete: {why}; its pages and its log may still contain it. The end of this session or the next start finishes the removal."
                )?;
            }
            None => {}
        }
        self.still.fmt(f)?;
        if !self.done {
            f.write_str("\nThis can't be undone. /lcm purge ")?;
            write!(f, "{} --yes removes it.", self.what)?;
        }
        Ok(())
    }
}

impl fmt::Display for Still {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paths = |paths: &[PathBuf]| -> Vec<String> {
            paths.iter().map(|path| in_line(&path.display().to_string())).collect()
        };
        let mut lines = Vec::new();
        if self.in_this_session {
            lines.push("the open session: Pi keeps sending it to the model until it is compacted".to_owned());
        }
        if !self.session_files.is_empty() {
            lines.push(format!(
                "Pi's session files, which only you can delete: {}",
                listed(&paths(&self.session_files))
            ));
        }
        if !self.backups.is_empty() {
            lines.push(format!("backups and unused databases: {}", listed(&paths(&self.backups))));
        }
        if !self.branch_summaries.is_empty() {
            lines.push(format!(
                "Pi's summaries of other branches, which may mention it: {}",
                listed(&self.branch_summaries)
            ));
        }
        if !self.notes.is_empty() {
            let numbers: Vec<String> = self.notes.iter().map(u32::to_string).collect();
            lines.push(format!(
                "notes of this branch, which may mention it (see /lcm notes): {}",
                listed(&numbers)
            ));
        }
        if !self.old_ids.is_empty() {
            lines.push(format!(
                "messages with an old short id of it or of later messages, which could confirm a guess: {}",
                listed(&self.old_ids)
            ));
        }
        if !lines.is_empty() {
            write!(f, "\nIt is still in\n- {}", lines.join("\n- "))?;
        }
        Ok(())
    }
}

/// The first few names, and how many more there are.
fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let named = names[..names.len() - more].join(", ");
    if more == 0 { named } else { format!("{named} and {} more", grouped(more)) }
}
