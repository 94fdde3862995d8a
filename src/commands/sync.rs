//! `/lcm sync`: shares the project's history with other machines, also in the background.

use std::time::Duration;

use serde_json::{json, to_value};
use tokio::sync::Mutex;
use tokio_util::sync::CancellationToken;

use super::{Answer, Command, CommandContext};
use lcm_ingest::import::Home;
use lcm_model::config::{Settings, at_home};
use lcm_model::error::{Code, Error, Result};
use lcm_model::text::{count, grouped, megabytes, one_line};
use lcm_sync::{Amount, Options, Progress, Report, UNASKED, key, sync};

pub(crate) const REDACT: &str = "--redact";
const PURGE: &str = "--purge";
const KEY: &str = "--key";
/// The project's name at the target.
pub(crate) const NAME: &str = "--name";
/// How long the end of a session waits for a sync.
const PATIENCE: Duration = Duration::from_secs(5);
/// How many packs that can't be read are named.
const NAMED: usize = 3;

pub(crate) const COMMAND: Command = Command {
    name: "sync",
    help: "share this project's history with your other machines",
    usage: &[
        ("sync TARGET", "by way of a folder that they see too, or of s3://BUCKET/PREFIX"),
        ("sync", "by way of the target in the setting syncTarget"),
        ("sync TARGET --name NAME", "with the project named NAME there, as by the setting syncProject"),
        ("sync TARGET --redact", "with keys and passwords masked in what is sent"),
        ("sync --purge", "removes what was purged on another machine, however much it is"),
        ("sync --key", "shows this machine's key, for the setting syncRecipients"),
    ],
    arguments: &[
        (REDACT, "mask keys and passwords in what is sent"),
        (PURGE, "remove what was purged on another machine, however much it is"),
        (KEY, "show this machine's key, for the setting syncRecipients"),
    ],
    is_long: true,
    answer: |asked| Box::pin(asked.syncer.answer(asked)),
};

/// The syncs of an open session, one at a time.
#[derive(Debug, Default)]
pub struct Syncer {
    turn: Mutex<()>,
    progress: Progress,
    /// Stops the running sync and all later ones.
    closing: CancellationToken,
}

impl Syncer {
    async fn answer(&self, asked: &CommandContext<'_>) -> Result<Answer> {
        if asked.rest.has(KEY) {
            let key = key(&asked.home.db_dir)?;
            return Ok(Answer::new(key.clone(), json!({"key": key})));
        }
        let options = options(asked)?;
        let Ok(_turn) = self.turn.try_lock() else {
            let (done, of) = self.progress.packs();
            let text = format!("A sync is running ({} of {}).", grouped(done), count(of, "pack"));
            return Ok(Answer::sentence(text));
        };
        let report = sync(asked.home, &options, &self.progress, &asked.cancel).await?;
        let name = |name| format!("{NAME} {name} ");
        let name = asked.rest.value(NAME).map(name).unwrap_or_default();
        Ok(Answer::new(render(&report, &name), to_value(&report).unwrap_or_default()))
    }

    /// Syncs with the target in the settings, if there is one and the project has a name there.
    ///
    /// # Errors
    /// A message for the user.
    pub async fn in_background(&self, home: &Home, settings: &Settings) -> Result<()> {
        self.automatic(home, settings, &self.closing).await
    }

    /// Stops the sync in the background, and syncs once more, for some seconds at most.
    pub async fn close(&self, home: &Home, settings: &Settings) {
        self.closing.cancel();
        let cancel = CancellationToken::new();
        // What could not be sent is sent at the next start.
        let _ = tokio::time::timeout(PATIENCE, self.automatic(home, settings, &cancel)).await;
        cancel.cancel();
    }

    async fn automatic(&self, home: &Home, settings: &Settings, cancel: &CancellationToken) -> Result<()> {
        if settings.sync_target.is_empty() {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        match sync(home, &by_settings(settings), &self.progress, cancel).await {
            // A folder without a remote is of this machine only, and so is a session without a file.
            Err(error) if matches!(error.code(), Code::Cancelled | Code::Closed | Code::Unnamed) => Ok(()),
            outcome => {
                let report = outcome?;
                // Once per machine: it may be meant so.
                let closed = report.closed.iter().any(|closed| closed.is_new).then(|| unopened(&report));
                let said =
                    [unconfirmed_purge(report.unconfirmed, ""), withheld(&report), lost(&report), closed];
                let said: Vec<String> = said.into_iter().flatten().collect();
                if said.is_empty() { Ok(()) } else { Err(Error::invalid(said.join(" "))) }
            }
        }
    }
}

fn by_settings(settings: &Settings) -> Options {
    Options {
        target: settings.sync_target.clone(),
        project: settings.sync_project.clone(),
        is_named: false,
        label: settings.sync_label.clone(),
        redacts: settings.sync_redact,
        recipients: settings.sync_recipients.clone(),
        confirms_purges: false,
    }
}

fn options(asked: &CommandContext<'_>) -> Result<Options> {
    asked.request.sources.check()?;
    let mut options = by_settings(asked.settings);
    let named = asked.rest.only()?.trim();
    if let Some(path) = asked.rest.path()?.filter(|_| !named.is_empty()) {
        let is_path = !named.contains("://");
        let path = at_home(&path.to_string_lossy(), asked.home.cwd.as_ref()).unwrap_or(path);
        options.target = if is_path { path.to_string_lossy().into_owned() } else { named.to_owned() };
    }
    if options.target.is_empty() {
        return Err(Error::invalid(
            "/lcm sync needs a target: a folder that your machines share, or s3://BUCKET/PREFIX; the setting syncTarget names one for good",
        ));
    }
    options.redacts |= asked.rest.has(REDACT);
    options.confirms_purges = asked.rest.has(PURGE);
    if let Some(name) = asked.rest.value(NAME) {
        name.clone_into(&mut options.project);
        options.is_named = true;
    }
    Ok(options)
}

/// The answer; `name` is how the project was named, as an option.
fn render(report: &Report, name: &str) -> String {
    let Report { sent, received, purged, unconfirmed, rewritten, waiting, refused, others, .. } = report;
    let Report { target, project, .. } = report;
    let mut out = format!("Sent {}; received {}", amount(sent), amount(received));
    if received.sessions > 0 {
        out += &format!(" of {}", count(received.sessions, "new session"));
    }
    let with = match (others.is_empty(), report.closed.is_empty()) {
        (true, true) => "none yet".to_owned(),
        (true, false) => "none that can be read here".to_owned(),
        (false, _) => one_line(&others.join(", "), 200),
    };
    out += &format!(".\nOther machines with {project} at {target}: {with}.");
    if *purged > 0 {
        out += &format!(
            "\n{} purged on another machine {} removed here, but not from Pi's session files.",
            count(*purged, "message"),
            were(*purged)
        );
    }
    let said = [unconfirmed_purge(*unconfirmed, &format!("{target} {name}")), withheld(report), lost(report)];
    out.extend(said.into_iter().flatten().map(|said| format!("\n{said}")));
    if !report.closed.is_empty() {
        out += &format!("\n{}", unopened(report));
    } else if let Some(key) = &report.key {
        let others = match report.recipients.saturating_sub(1) {
            0 => "alone".into(),
            others => format!("and {}", count(others, "other key")),
        };
        out += &format!("\nEncrypted to this machine's key, {key}, {others}.");
    }
    if report.unmasked {
        out += "\nWhat this machine sent before without masks stays so there. To mask that too, remove this machine's folder there, named as in machine-id, and sync as now: all is sent again.";
    }
    if *rewritten > 0 {
        out += &format!(
            "\n{} {} written again without what was purged{}.",
            count(*rewritten, "pack"),
            were(*rewritten),
            if report.recipients > 0 { ", or for other recipients" } else { "" }
        );
    }
    if *waiting > 0 {
        out += &format!(
            "\n{} {} on packs that are not there yet: the next sync reads them.",
            count(*waiting, "pack"),
            if *waiting == 1 { "builds" } else { "build" }
        );
    }
    for refused in refused.iter().take(NAMED) {
        out += &format!("\nNot read: {}: {}", refused.pack, refused.reason);
    }
    if refused.len() > NAMED {
        out += &format!("\nand {} more", grouped(refused.len() - NAMED));
    }
    out
}

/// Names the packs that are not encrypted to this machine, and the remedy.
fn unopened(report: &Report) -> String {
    let (packs, all) = (report.closed.iter().map(|closed| closed.packs).sum(), report.closed.len());
    let machines: Vec<&str> =
        report.closed.iter().map(|closed| closed.machine.as_str()).take(NAMED).collect();
    let more = if all > NAMED { format!(" and {} more", grouped(all - NAMED)) } else { String::new() };
    format!(
        "{} of {}{more} {} encrypted, but not to this machine: add its key, {}, to syncRecipients there, and sync there.",
        count(packs, "pack"),
        one_line(&machines.join(", "), 200),
        if packs == 1 { "is" } else { "are" },
        report.key.as_deref().unwrap_or_default(),
    )
}

/// Says that nothing was sent, and how it is.
fn withheld(report: &Report) -> Option<String> {
    report.withheld.then(|| {
        "Nothing was sent: packs there are encrypted, but syncRecipients has no keys here. Add your machines', which sync --key prints, or \"none\" to send unencrypted packs.".into()
    })
}

/// Names a key that is gone, and the remedies.
fn lost(report: &Report) -> Option<String> {
    (report.lost > 0).then(|| {
        format!(
            "{} of this machine {} encrypted to a machine-key that is gone: put it back, or remove this machine's folder there, named as in machine-id, and sync: all is sent again.",
            count(report.lost, "pack"),
            if report.lost == 1 { "is" } else { "are" }
        )
    })
}

/// Asks for what a sync does not do by itself.
fn unconfirmed_purge(messages: usize, target: &str) -> Option<String> {
    (messages > 0).then(|| {
        format!(
            "{} purged on another machine {} still here: /lcm sync {target}{PURGE} removes more than {UNASKED} in all.",
            count(messages, "message"),
            if messages == 1 { "is" } else { "are" }
        )
    })
}

fn were(number: usize) -> &'static str {
    if number == 1 { "was" } else { "were" }
}

/// `1,234 messages and 12 summaries (0.4 MB)`
fn amount(amount: &Amount) -> String {
    let Amount { messages, summaries, bytes, .. } = amount;
    let mut out = count(*messages, "message");
    if *summaries > 0 {
        out += &format!(" and {}", count(*summaries, "summary"));
    }
    if *bytes > 1_000 {
        out += &format!(" ({})", megabytes(*bytes as u64));
    }
    out
}
