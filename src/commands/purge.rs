//! `/lcm purge`: what is removed for good, once the user has agreed, and where it still stands.

use std::collections::BTreeSet;
use std::fmt::{self, Write as _};
use std::path::{Path, PathBuf};

use serde::Serialize;

use super::{Answer, Command, CommandContext, Confirm};
use crate::dag::Step;
use crate::error::{Error, Result};
use crate::ids::{Handle, HandleKind};
use crate::recall::Scope;
use crate::store::{Place, Purge, PurgePlan, View};
use crate::text::{count, grouped, in_line, minute, one_line, parse_iso, time_span, timestamp};

/// What says that nobody need be asked.
pub(super) const AGREED: &str = "--yes";

/// Names in a row that are told.
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
    /// Answers of our tools that repeat them.
    answers: usize,
    /// Our accounts of branches that were left, with summaries of them.
    accounts: usize,
    summaries: usize,
    /// ms.
    #[serde(serialize_with = "iso")]
    from: Option<i64>,
    #[serde(serialize_with = "iso")]
    to: Option<i64>,
    sessions: Vec<String>,
    /// Is nothing left of it in the file and its log? Known when it is done.
    complete: Option<bool>,
    /// Why that could not be seen to.
    why: Option<String>,
    still: Still,
}

/// Where it still stands.
#[derive(Default, Serialize)]
#[serde(rename_all = "camelCase")]
struct Still {
    /// Pi holds it in the context of the session that is open.
    in_this_session: bool,
    session_files: Vec<PathBuf>,
    /// Backups, and databases that were passed over for the one in use.
    backups: Vec<PathBuf>,
    /// Messages of Pi's that tell of a branch that was left.
    branch_summaries: Vec<String>,
    /// Messages with short ids that are none any more.
    old_ids: Vec<String>,
    /// Notes of this branch that stay: they may tell of it.
    notes: Vec<u32>,
}

async fn run(asked: &CommandContext<'_>) -> Result<Answer> {
    let words: Vec<&str> = asked.rest.split_whitespace().collect();
    let agreed = words.contains(&AGREED);
    let words: Vec<&str> = words.into_iter().filter(|word| *word != AGREED).collect();
    let (scope, what) = (asked.scope.clone(), words.join(" "));
    let (wish, database) = (what.clone(), asked.store().place().clone());
    let (open, place) = (scope.clone(), database.clone());
    let look = move |view: &View<'_>| {
        let purge = read(view, &open, &wish)?;
        let plan = view.purge_plan(purge)?;
        let still = still(view, &open, &plan, &place)?;
        Ok((purge, plan, still))
    };
    let (purge, plan, first) = asked.store().read(look).await?;
    if plan.messages.is_empty() {
        return Err(Error::invalid(format!("there is nothing to remove: no message is stored for {what}")));
    }
    let mut purged = Purged::of(what, &plan, first);
    if !agreed {
        let confirm = Confirm {
            title: format!("Permanently remove {}?", count(purged.messages, "message")),
            message: purged.to_string(),
            line: format!("purge {} --yes", purged.what),
        };
        return Ok(Answer::of(&purged).asking(confirm));
    }
    let plan = asked.store().write(move |batch| batch.purge(purge)).await?;
    // What stays may be called otherwise by now.
    let found = plan.clone();
    let still = asked.store().read(move |view| still(view, &scope, &found, &database)).await;
    purged = Purged::of(purged.what, &plan, still.unwrap_or(purged.still));
    purged.done = true;
    let vacuumed = asked.store().vacuum().await;
    purged.complete = Some(*vacuumed.as_ref().unwrap_or(&false));
    purged.why = vacuumed.err().map(|error| error.to_string());
    Ok(Answer::of(&purged))
}

/// A time as all commands tell it, in UTC.
fn iso<S: serde::Serializer>(ms: &Option<i64>, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    ms.map(timestamp).serialize(serializer)
}

/// What `wish` means, asked from `scope`.
fn read(view: &View<'_>, scope: &Scope, wish: &str) -> Result<Purge> {
    let unclear = |why: String| Error::invalid(format!("{why}; see /lcm help purge"));
    if let Some(date) = wish.strip_prefix("before ") {
        let time = ["", "Z", ":00Z", "T00:00:00Z"].iter().find_map(|end| parse_iso(&format!("{date}{end}")));
        return time.map(Purge::Before).ok_or_else(|| {
            unclear(format!(
                "{} is neither a day such as 2026-11-20 nor a time such as 2026-11-20T09:30Z",
                one_line(date, 40)
            ))
        });
    }
    if wish.is_empty() || wish == "before" || wish.contains(' ') {
        return Err(unclear("/lcm purge needs a message's id, a session's id, or before and a day".into()));
    }
    if let Ok(handle) = Handle::parse(wish) {
        if handle.kind == HandleKind::Summary {
            return Err(unclear(format!(
                "{handle} is a summary: it is removed with the messages it was made from"
            )));
        }
        return match view.purgeable_like(&handle)?.as_slice() {
            [message] => Ok(Purge::Message(*message)),
            [] => Err(unclear(format!("there is no message {handle}"))),
            _ => Err(unclear(format!("{handle} matches more than one message: add digits"))),
        };
    }
    if let Some(message) = view.purgeable_at(scope.conversation, wish)? {
        return Ok(Purge::Message(message));
    }
    match view.sessions_like(wish)?.as_slice() {
        [session] => Ok(Purge::Session(*session)),
        [] => Err(unclear(format!("there is no session and no message {}", one_line(wish, 40)))),
        _ => Err(unclear(format!("several sessions begin with {}: add digits", one_line(wish, 40)))),
    }
}

/// Where what is removed stands beside the store, as far as that can be known.
fn still(view: &View<'_>, scope: &Scope, plan: &PurgePlan, database: &Place) -> Result<Still> {
    let mut still = Still::default();
    if let Some(leaf) = &scope.leaf {
        let notes = view.notes_without(scope.conversation, leaf, &plan.messages)?;
        still.notes = notes.list().iter().map(|note| note.number).collect();
        let branch = view.branch(scope.conversation, leaf)?;
        still.in_this_session = branch.iter().any(|entry| match &entry.step {
            Step::Message(message) => plan.messages.contains(&message.id),
            _ => false,
        });
    }
    let mut branches = BTreeSet::new();
    for session in &plan.sessions {
        still.session_files.extend(session.file.as_ref().map(PathBuf::from).filter(|file| file.exists()));
        for (id, hash) in view.branch_summaries(session.conversation)? {
            if !plan.messages.contains(&id) {
                branches.insert(hash.message_handle());
            }
        }
    }
    still.branch_summaries = branches.into_iter().collect();
    for message in &plan.naming {
        still.old_ids.push(view.message(*message)?.lineage.message_handle());
    }
    still.backups = view.backups()?.into_iter().filter(|path| path.exists()).collect();
    if let Place::File(database) = database {
        for path in beside(database) {
            if !still.backups.contains(&path) {
                still.backups.push(path);
            }
        }
    }
    Ok(still)
}

/// Databases of the project that were passed over for the one in use, and backups of any of them, the doctor's among them.
fn beside(database: &Path) -> Vec<PathBuf> {
    let own = database.file_name().unwrap_or_default().to_string_lossy();
    let project = project_of(&own).unwrap_or(&own);
    let files = database.parent().and_then(|dir| dir.read_dir().ok()).into_iter().flatten().flatten();
    let mut found: Vec<PathBuf> = files
        .filter(|file| {
            let file = file.file_name();
            let file = file.to_string_lossy();
            let is_log = file.strip_suffix("-wal").is_some_and(|of| of == own);
            let holds = [".db", ".db-wal", ".bak"].iter().any(|ending| file.ends_with(ending));
            holds && !is_log && file != own && project_of(&file) == Some(project)
        })
        .map(|file| file.path())
        .collect();
    found.sort();
    found
}

/// The project's name in that of a database or a backup, without the number of the second such file or a later.
fn project_of(file: &str) -> Option<&str> {
    let (name, _) = file.split_once(".db")?;
    match name.rsplit_once('-') {
        Some((project, number)) if !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()) => {
            Some(project)
        }
        _ => Some(name),
    }
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

/// The first few, and how many more.
fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let named = names[..names.len() - more].join(", ");
    if more == 0 { named } else { format!("{named} and {} more", grouped(more)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_passed_over_for_the_file_in_use_is_found_with_its_backups() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            "abc.db",
            "abc.db-wal",
            "abc.db-shm",
            "abc.db.20261120T091200000Z.bak",
            "abc-2.db",
            "abc-2.db-wal",
            "abc-2.db.20261120T091200000Z.bak",
            "abc-3.db",
            "abcd.db",
            "abcd-2.db.20261120T091200000Z.bak",
            "notes.bak",
        ];
        for file in files {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let found = |database: &str| -> Vec<String> {
            let found = beside(&dir.path().join(database));
            found.iter().map(|path| path.file_name().unwrap().to_string_lossy().into_owned()).collect()
        };
        let copies = ["abc-2.db.20261120T091200000Z.bak", "abc-3.db"];
        let first = ["abc.db", "abc.db-wal", "abc.db.20261120T091200000Z.bak"];
        assert_eq!(found("abc-2.db"), [copies.as_slice(), &first].concat());
        assert_eq!(
            found("abc.db"),
            ["abc-2.db", "abc-2.db-wal", copies[0], copies[1], "abc.db.20261120T091200000Z.bak"]
        );
    }
}
