//! What a purge removes for good, and where it remains outside the store.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use serde::Serialize;

use lcm_model::dag::{BranchEntry, Step};
use lcm_model::error::{Error, Result};
use lcm_model::ids::{Handle, HandleKind};
use lcm_model::text::{one_line, parse_local};
use lcm_model::{Needles, agent_of_session};
use lcm_recall::Scope;
use lcm_recall::grep::session;
use lcm_store::{Purge, PurgePlan, Store, View};

/// Where it remains.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Still {
    /// In the context of Pi's open session.
    pub in_this_session: bool,
    /// Possibly in the block that replaces it there.
    pub in_block: bool,
    /// In Pi's session files.
    pub session_files: Vec<String>,
    /// At this sync target, and on the machines that read it.
    pub synced: Option<String>,
    /// In the logs of these agents.
    pub agents: BTreeSet<&'static str>,
    /// In backups, and in databases that were skipped for the one in use.
    pub backups: Vec<String>,
    /// In Pi's summaries of abandoned branches.
    pub branch_summaries: Vec<String>,
    /// In messages with short ids that no longer exist.
    pub old_ids: Vec<String>,
    /// Possibly in the remaining notes of this branch.
    pub notes: Vec<u32>,
    /// A long string of it, such as a key, in other messages and summaries.
    pub also: Vec<String>,
    /// A requested text in these settings and logs of ours.
    pub files: Vec<String>,
}

/// What the user asks to remove.
#[derive(Clone, Debug)]
pub enum Wish {
    /// A message, a session, or `before` and a day.
    Named(String),
    /// Whatever holds this text.
    Text(String),
}

/// The fewest characters of a session's id that name it.
const BEGINNING: usize = 8;
/// The fewest bytes of a text to purge: a word of Chinese has two characters, of three bytes each.
const SHORTEST: usize = 4;

/// What a purge would remove.
pub struct PurgePreview {
    asked: Asked,
    pub plan: PurgePlan,
    /// Where it remains.
    pub still: Still,
}

/// What to remove, and what tells where it remains.
struct Asked {
    purge: Purge,
    /// What else would tell of it.
    needles: Needles,
    /// Where the user asks.
    scope: Scope,
    /// The first entry of the open session that Pi shows raw, if not all.
    shown_from: Option<String>,
    database: Option<PathBuf>,
}

/// Resolves `wish`, seen from `scope`, where Pi shows what is `shown_from` an entry on raw. Changes nothing.
///
/// # Errors
/// When it means nothing or more than one thing, when nothing is stored for it, or the store can't be
/// read.
pub async fn find(
    store: &Store,
    scope: &Scope,
    wish: &Wish,
    shown_from: Option<String>,
) -> Result<PurgePreview> {
    let (scope, wish, database) = (scope.clone(), wish.clone(), store.place().map(Path::to_owned));
    let look = move |view: &View<'_>| {
        let purge = resolve(view, &scope, &wish)?;
        let plan = view.upkeep().purge_plan(&purge)?;
        let needles = match &purge {
            Purge::Text(text) => Needles::of([text.clone()]),
            Purge::Message(message) => view.upkeep().long_strings(&BTreeSet::from([*message])),
            Purge::Session(_) | Purge::Before(_) | Purge::Elsewhere(_) => Needles::of([]),
        };
        let asked = Asked { purge, needles, scope, shown_from, database };
        let still = asked.still(view, &plan)?;
        if plan.is_empty() {
            let what = match wish {
                Wish::Text(text) => format!("nothing stored holds the text \"{}\"", one_line(&text, 60)),
                Wish::Named(what) => format!("no message is stored from {what}"),
            };
            return Err(Error::invalid(format!("there is nothing to remove: {what}")));
        }
        Ok(PurgePreview { asked, plan, still })
    };
    store.read(look).await
}

/// Removes what was found, for good. Returns what was removed, where it remains, and whether nothing is left in the file
/// and its log; an error says why that could not be ensured.
///
/// # Errors
/// When the store can't be written; nothing is removed then.
pub async fn remove(store: &Store, found: PurgePreview) -> Result<(PurgePlan, Still, Result<bool>)> {
    let PurgePreview { asked, still: before, .. } = found;
    let purge = asked.purge.clone();
    let plan = store.write(move |batch| batch.upkeep().purge(&purge)).await?;
    // Remaining messages may have other ids now.
    let removed = plan.clone();
    let still = store.read(move |view| asked.still(view, &removed)).await;
    let complete = store.vacuum().await;
    Ok((plan, still.unwrap_or(before), complete))
}

/// Resolves `wish`, seen from `scope`.
fn resolve(view: &View<'_>, scope: &Scope, wish: &Wish) -> Result<Purge> {
    let unclear = |why: String| Error::invalid(format!("{why}; see /lcm help purge"));
    let wish = match wish {
        Wish::Named(wish) => wish.as_str(),
        Wish::Text(text) if text.trim().len() < SHORTEST => {
            return Err(unclear(format!("--text needs at least {SHORTEST} characters, or 2 as in Chinese")));
        }
        Wish::Text(text) => return Ok(Purge::Text(text.clone())),
    };
    if let Some(date) = wish.strip_prefix("before ") {
        return parse_local(date).map(Purge::Before).ok_or_else(|| {
            unclear(format!(
                "{} is neither a day such as 2026-11-20 nor a time such as 2026-11-20T09:30",
                one_line(date, 40)
            ))
        });
    }
    if let Some(option) = wish.split(' ').find(|word| word.starts_with("--")) {
        return Err(unclear(format!(
            "/lcm purge has no option {}: it shows what goes before it asks",
            one_line(option, 40)
        )));
    }
    if wish.is_empty() || wish == "before" || wish.contains(' ') {
        return Err(unclear("/lcm purge needs the id of a message or a session, `before` and a day, or --text and a text; /lcm search and \
             /lcm sessions show ids"
                .into()));
    }
    if let Ok(handle) = Handle::parse(wish) {
        if handle.kind == HandleKind::Summary {
            return Err(unclear(format!(
                "{handle} is a summary: it is removed with the messages it was made from"
            )));
        }
        return match view.upkeep().purgeable_like(&handle)?.as_slice() {
            [message] => Ok(Purge::Message(*message)),
            [] => Err(unclear(format!("there is no message {handle}: a purge also removes the id"))),
            _ => Err(unclear(format!("{handle} matches more than one message: add digits"))),
        };
    }
    if let Some(message) = view.upkeep().purgeable_at(scope.conversation, wish)? {
        return Ok(Purge::Message(message));
    }
    if view.messages().version(scope.conversation, wish)?.is_some_and(|entry| entry.is_purged) {
        return Err(Error::invalid(format!("the message of {wish} is purged already")));
    }
    let mut sessions = view.index().conversations_like(wish)?;
    // A very short beginning may be a typo.
    if wish.len() < BEGINNING && !sessions.is_empty() {
        let Some(session) = view.messages().conversation(wish)? else {
            return Err(unclear(format!(
                "a purge needs at least {BEGINNING} characters of a session's id, not only {wish}"
            )));
        };
        sessions = vec![session];
    }
    match sessions.as_slice() {
        [session] => Ok(Purge::Session(*session)),
        [] => Err(unclear(format!("there is no session and no message {}", one_line(wish, 40)))),
        _ => session(view, wish, "").map(Purge::Session),
    }
}

impl Asked {
    /// Where the removed text remains, as far as known.
    fn still(&self, view: &View<'_>, plan: &PurgePlan) -> Result<Still> {
        let Self { purge, needles, scope, shown_from, database } = self;
        let (also, synced) = (view.upkeep().also_holding(needles, plan)?, view.synced().target()?);
        let mut still = Still { also, synced, ..Still::default() };
        if let (Purge::Text(_), Some(database)) = (purge, database) {
            still.files = telling_files(database, needles);
        }
        if let Some(leaf) = &scope.leaf {
            // Those that hold a text are removed with it.
            if !matches!(purge, Purge::Text(_)) {
                let notes = view.messages().notes_without(scope.conversation, leaf, &plan.messages)?;
                still.notes = notes.list().iter().map(|note| note.number).collect();
            }
            let branch = view.messages().branch(scope.conversation, leaf)?;
            let raw = branch
                .iter()
                .position(|entry| Some(entry.entry_id.as_str()) == shown_from.as_deref())
                .unwrap_or(0);
            let is_purged = |entry: &BranchEntry| matches!(&entry.step, Step::Message(message) if plan.messages.contains(&message.id));
            still.in_this_session = branch[raw..].iter().any(is_purged);
            still.in_block = branch[..raw].iter().any(is_purged);
        }
        let mut branches = BTreeSet::new();
        for session in &plan.sessions {
            still.agents.extend(agent_of_session(&session.session_id));
            still.session_files.extend(session.file.clone().filter(|file| Path::new(file).exists()));
            for (id, hash) in view.upkeep().branch_summaries(session.id)? {
                if !plan.messages.contains(&id) {
                    branches.insert(hash.message_handle());
                }
            }
        }
        still.branch_summaries = branches.into_iter().collect();
        for message in &plan.naming {
            still.old_ids.push(view.messages().message(*message)?.lineage.message_handle());
        }
        let backups: Vec<PathBuf> =
            view.upkeep().backups()?.into_iter().filter(|path| path.exists()).collect();
        let others = database.as_deref().map(other_files).unwrap_or_default();
        let others = others.iter().filter(|path| !backups.contains(path));
        // A file's name need not be valid Unicode.
        still.backups = backups.iter().chain(others).map(|path| path.display().to_string()).collect();
        Ok(still)
    }
}

/// Our settings and logs that hold a text: the files beside the database that are none themselves, and Pi's settings above.
fn telling_files(database: &Path, needles: &Needles) -> Vec<String> {
    let beside = database.parent().into_iter().flat_map(|dir| [Some(dir), dir.parent()]).flatten();
    let files = beside.flat_map(|dir| dir.read_dir().ok()).flatten().flatten().map(|file| file.path());
    let is_text = |path: &PathBuf| {
        path.extension()
            .is_some_and(|ending| ["json", "jsonl", "log", "md"].iter().any(|text| ending == *text))
    };
    let holds = |path: &PathBuf| {
        std::fs::read(path).is_ok_and(|bytes| needles.are_in(&String::from_utf8_lossy(&bytes)))
    };
    let mut found: Vec<String> =
        files.filter(is_text).filter(holds).map(|path| path.display().to_string()).collect();
    found.sort();
    found
}

/// Databases of the project that were skipped for the one in use, and all their backups, including the
/// doctor's.
pub fn other_files(database: &Path) -> Vec<PathBuf> {
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

/// The project's name in the file name of a database or a backup, without the number of further such files.
fn project_of(file: &str) -> Option<&str> {
    let (name, _) = file.split_once(".db")?;
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    let numbered = name.rsplit_once('-').filter(|(_, number)| is_number(number));
    Some(numbered.map_or(name, |(project, _)| project))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn skipped_databases_are_found_with_their_backups() {
        let dir = tempfile::tempdir().unwrap();
        let files = [
            "abc.db", "abc.db-wal", "abc.db-shm", "abc.db.20261120T091200000Z.bak", "abc-2.db",
            "abc-2.db-wal", "abc-2.db.20261120T091200000Z.bak", "abc-3.db", "abcd.db",
            "abcd-2.db.20261120T091200000Z.bak", "notes.bak",
        ];
        for file in files {
            std::fs::write(dir.path().join(file), "").unwrap();
        }
        let found = |database: &str| -> Vec<String> {
            let found = other_files(&dir.path().join(database));
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
