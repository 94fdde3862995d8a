//! One history on several machines.
//!
//! A message is named by the hash of itself and all before it, and storing one twice changes nothing. So two histories
//! merge as the union of two sets, and a machine only has to see what the others have. Each appends immutable packs to
//! a folder of its own at a target, which is a folder or a bucket, and reads the packs of the others once. There is no
//! server, no lock and no list of contents, and the order of packs depends on no clock.
//!
//! Packs come from anyone who can write to the target. They only add messages and summaries, as an import does; a purge
//! is the exception, because it has to travel: see docs/sync.md.

mod encryption;
mod machine;
mod pack;
mod project;
mod receive;
mod s3;
mod send;
mod target;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::sync::Mutex;

use serde::Serialize;
use tokio_util::sync::CancellationToken;

use encryption::Key;
pub use encryption::check as check_recipients;
use lcm_ingest::import::Home;
use lcm_model::error::{Error, Result};
use lcm_model::locks::lock;
use lcm_store::{Batch, Store, View, real_path};
use machine::ThisMachine;
use pack::PackName;
use target::Target;

/// How far back a bucket is listed: two processes of one machine may send at once, the later number first.
const OVERLAP: i64 = 100;

/// Digits of a machine's id that name it to people.
const NAMED: usize = 8;

/// Packs, with the key that did not open one.
type Packs = HashMap<String, Option<String>>;

/// What to sync, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The target: a folder, or `s3://BUCKET/PREFIX`.
    pub target: String,
    /// The project's name there; empty: its git remote.
    pub project: String,
    /// Whether that name was given for this sync alone.
    pub is_named: bool,
    /// What other machines call this one; empty: `user@host`.
    pub label: String,
    /// Whether to mask secrets in what is sent.
    pub redacts: bool,
    /// Whom to encrypt it to, besides this machine; empty: it is not encrypted, and not sent where others encrypt, unless
    /// this is `none`.
    pub recipients: Vec<String>,
    /// Whether to remove all messages that were purged elsewhere, and [`UNASKED`] more unasked from then on.
    pub confirms_purges: bool,
}

/// The most messages that all syncs remove, because they were purged on another machine, until the user confirms it:
/// anyone who can write to the target could purge everything.
pub const UNASKED: usize = 100;

/// How far a sync is.
#[derive(Debug, Default)]
pub struct Progress(Mutex<(usize, usize)>);

impl Progress {
    fn set(&self, done: usize, packs: usize) {
        *lock(&self.0) = (done, packs);
    }

    /// Packs that were read, of how many.
    pub fn packs(&self) -> (usize, usize) {
        *lock(&self.0)
    }
}

/// What was sent or received.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Amount {
    pub packs: usize,
    /// Sessions that are new here.
    pub sessions: usize,
    /// Messages; of those received the new ones.
    pub messages: usize,
    /// Summaries, likewise.
    pub summaries: usize,
    pub bytes: usize,
}

/// A pack that is not read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Refused {
    pub pack: String,
    pub reason: String,
}

/// The outcome of a sync.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Report {
    pub sent: Amount,
    pub received: Amount,
    /// Messages that were purged elsewhere, and are removed here now.
    pub purged: usize,
    /// The same if they are too many to be removed unasked: they stay until the user confirms.
    pub unconfirmed: usize,
    /// Own packs that were written again, without what was purged or for other recipients.
    pub rewritten: usize,
    /// Packs that are not encrypted to this machine.
    pub closed: Vec<Closed>,
    /// Own packs that its key does not open: it was another one.
    pub lost: usize,
    /// Whether nothing is sent, as packs there are encrypted, and this machine has no recipients.
    pub withheld: bool,
    /// Whether what is sent is masked, but something that was sent before is not.
    pub unmasked: bool,
    /// Packs that build on one that is not there yet.
    pub waiting: usize,
    pub refused: Vec<Refused>,
    /// What the other machines that have sent packs are called.
    pub others: Vec<String>,
    /// The target.
    pub target: String,
    /// The project's name there.
    pub project: String,
    /// This machine's key, if something is encrypted.
    pub key: Option<String>,
    /// Who can read what is sent, this machine included; 0: everyone.
    pub recipients: usize,
}

/// Packs of a machine that are not encrypted to this one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Closed {
    /// Its label if that is known, else the beginning of its id.
    pub machine: String,
    pub packs: usize,
    /// Whether there were none before.
    pub is_new: bool,
}

/// A running sync.
struct Run<'a> {
    home: &'a Home,
    /// The target and the project, as the store knows them.
    place: String,
    target: Target,
    machine: ThisMachine,
    options: &'a Options,
    progress: &'a Progress,
    cancel: &'a CancellationToken,
}

impl Run<'_> {
    fn store(&self) -> &Store {
        &self.home.store
    }

    /// Writes what is true of this target. Another process may sync with another one meanwhile: then this sync ends.
    async fn write<T: Send + 'static>(
        &self,
        work: impl FnOnce(&Batch<'_>) -> Result<T> + Send + 'static,
    ) -> Result<T> {
        let place = self.place.clone();
        let write = move |batch: &Batch<'_>| match batch.synced().is_about(&place)? {
            true => work(batch),
            false => Err(Error::cancelled()),
        };
        self.store().write(write).await
    }
}

/// Sends what the target lacks and receives what this history lacks. It may be stopped at any time; the next one goes on.
///
/// # Errors
/// When the target can't be used, the project has no name, or the store fails. What was sent or received stays.
pub async fn sync(
    home: &Home,
    options: &Options,
    progress: &Progress,
    cancel: &CancellationToken,
) -> Result<Report> {
    if home.store.place().is_none() {
        return Err(Error::invalid(
            "this session's history is in memory only: start Pi without --no-session to sync the project's",
        ));
    }
    let project = project::folder(&options.project, &home.cwd, home.identity);
    let is_folder = !options.target.contains("://");
    let name = if is_folder { real_path(Path::new(&options.target)) } else { options.target.clone() };
    let target = Target::of(&name, project.as_deref().unwrap_or_default());
    let (project, target) = match (project, target) {
        // Both in one message, or the second would only follow the remedy of the first.
        (Err(project), Err(target)) => {
            let both = format!("{target}; and {project}");
            return Err(project.saying(both));
        }
        (project, target) => (project?, target?),
    };
    let machine = ThisMachine::of(&home.db_dir, &options.label, &options.recipients)?;
    let recipients = machine.recipients.len();
    let place = format!("{name} {project}");
    let run = Run { home, place, target, machine, options, progress, cancel };
    let report = tokio::select! {
        biased;
        // A server may never answer.
        () = cancel.cancelled() => Err(Error::cancelled()),
        report = exchange(&run) => report,
    };
    let report = report?;
    let is_encrypted = recipients > 0 || !report.closed.is_empty();
    let key = is_encrypted.then(|| key(&home.db_dir)).transpose()?;
    Ok(Report { target: name, project, key, recipients, ..report })
}

/// The key of the machine with this folder of databases, for the recipients of others.
///
/// # Errors
/// When the file with it can't be read or written.
pub fn key(db_dir: &Path) -> Result<String> {
    Key::of(db_dir).map(|key| key.recipient())
}

async fn exchange(run: &Run<'_>) -> Result<Report> {
    let (store, place) = (run.store(), run.place.clone());
    let confirms = run.options.confirms_purges;
    let name = Some(run.options.project.clone()).filter(|_| run.options.is_named);
    let begin = move |batch: &Batch<'_>| {
        batch.synced().begin(&place)?;
        batch.synced().note_name(name.as_deref())?;
        if confirms { batch.synced().note_unasked(0) } else { Ok(()) }
    };
    store.write(begin).await?;
    // Before the target is listed: another session may be sending.
    let look = |view: &View<'_>| {
        let synced = view.synced();
        Ok((synced.packs()?, synced.is_complete()?, synced.machines()?))
    };
    let (packs, is_complete, machines) = store.read(look).await?;
    let mut known = known(run, packs)?;
    let read = machines.into_iter().filter(|_| is_complete).map(|machine| (machine.id, machine.number));
    let read: HashMap<String, i64> = read.collect();
    let mut listed = run.target.list(&read).await?;
    let own = known.keys().filter_map(|name| PackName::parse(name));
    let own: BTreeSet<i64> =
        own.filter(|name| name.machine == run.machine.id).map(|name| name.number).collect();
    let newest = own.last().copied().unwrap_or(0);
    if lacks(run, &listed, &own, if read.is_empty() { 0 } else { newest - OVERLAP }) {
        // A new disk, or something has removed old files: everything that no pack has is sent again.
        run.write(|batch| batch.synced().reset()).await?;
        known.clear();
        listed = run.target.list(&HashMap::new()).await?;
    }
    run.target.sweep(&run.machine.id).await?;
    if run.target.lists_all(&read) {
        forget_replaced(run, &listed, &mut known).await?;
    }
    let mut report = Report::default();
    let mut new = receive::receive(run, &listed, &known, &mut report).await?;
    let recipients = run.machine.recipients.join(" ");
    if !store.read(move |view| view.synced().is_compared(&recipients)).await? {
        listed = run.target.list(&HashMap::new()).await?;
        send::rewrite(run, &listed, &mut new, &mut report).await?;
    }
    (report.closed, report.lost) = closed(run, &listed, &known, &new).await?;
    let numbers = listed.iter().filter(|name| name.machine == run.machine.id).map(|name| name.number);
    // The others list what is new by number.
    let number = numbers.chain([newest]).max().unwrap_or(0) + 1;
    // By mistake, or by a process that has read the settings before they were changed.
    report.withheld = run.machine.recipients.is_empty()
        && !run.machine.is_plain
        && store.read(|view| view.synced().is_encrypted()).await?;
    if !report.withheld {
        send::send(run, number, &mut report).await?;
    }
    report.unmasked = run.options.redacts && store.read(|view| view.synced().is_unmasked()).await?;
    let is_complete = report.waiting == 0
        && report.refused.is_empty()
        && report.unconfirmed == 0
        && report.closed.is_empty()
        && report.lost == 0;
    run.write(move |batch| batch.synced().note_complete(is_complete)).await?;
    let machines = store.read(|view| view.synced().machines()).await?;
    let others = machines.iter().filter(|machine| machine.id != run.machine.id);
    let others = others.map(|machine| machine.name(&machines)).collect();
    store.checkpoint().await?;
    Ok(Report { others, ..report })
}

/// The packs that need not be read. The key that did not open one may have been replaced.
fn known(run: &Run<'_>, mut packs: Packs) -> Result<Packs> {
    if packs.values().any(Option::is_some) {
        let key = Some(key(&run.machine.db_dir)?);
        packs.retain(|_, closed_to| closed_to.is_none() || *closed_to == key);
    }
    Ok(packs)
}

/// Forgets others' packs that are gone: the name of one that was written again after a purge has a hash of what was purged.
async fn forget_replaced(run: &Run<'_>, listed: &[PackName], known: &mut Packs) -> Result<()> {
    let there: HashSet<String> = listed.iter().map(ToString::to_string).collect();
    let is_others = |name: &str| PackName::parse(name).is_some_and(|name| name.machine != run.machine.id);
    let gone: Vec<String> =
        known.keys().filter(|name| !there.contains(*name) && is_others(name)).cloned().collect();
    if gone.is_empty() {
        return Ok(());
    }
    known.retain(|name, _| !gone.contains(name));
    run.write(move |batch| gone.iter().try_for_each(|name| batch.synced().remove_pack(name))).await
}

/// The packs at the target that are not encrypted to this machine, some of them `new`, and how many are its own.
async fn closed(
    run: &Run<'_>,
    listed: &[PackName],
    known: &Packs,
    new: &HashSet<String>,
) -> Result<(Vec<Closed>, usize)> {
    let mut closed: BTreeMap<&str, Closed> = BTreeMap::new();
    for name in listed {
        let (machine, name) = (name.machine.as_str(), name.to_string());
        let is_new = new.contains(&name);
        if is_new || known.get(&name).is_some_and(Option::is_some) {
            let all = || Closed { machine: machine[..NAMED].to_owned(), packs: 0, is_new: true };
            let all = closed.entry(machine).or_insert_with(all);
            all.packs += 1;
            all.is_new &= is_new;
        }
    }
    let own = closed.remove(run.machine.id.as_str()).map_or(0, |own| own.packs);
    if !closed.is_empty() {
        let machines = run.store().read(|view| view.synced().machines()).await?;
        for machine in &machines {
            if let Some(all) = closed.get_mut(machine.id.as_str()) {
                all.machine = machine.name(&machines);
            }
        }
    }
    Ok((closed.into_values().collect(), own))
}

/// Whether a pack of this machine from the number `from` on is not at the target any more.
fn lacks(run: &Run<'_>, listed: &[PackName], own: &BTreeSet<i64>, from: i64) -> bool {
    let there: HashSet<i64> =
        listed.iter().filter(|name| name.machine == run.machine.id).map(|name| name.number).collect();
    own.range(from..).any(|number| !there.contains(number))
}
