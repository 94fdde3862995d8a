//! `/lcm doctor`: says what was checked and what is wrong; with `--rebuild`, makes a sound database of what can be read.

use serde_json::{Value, json};

use super::args::DATABASE;
use super::{Answer, Command, CommandContext};
use crate::doctor::{Check, Finding, Rebuilt, check, rebuild};
use lcm_model::error::Result;
use lcm_model::text::{count, grouped, megabytes, one_line};

pub(crate) const REBUILD: &str = "--rebuild";

pub(crate) const COMMAND: Command = Command {
    name: "doctor",
    help: "check the stored history; --rebuild makes another from all that can be read",
    usage: &[
        ("doctor", "checks everything that is stored and changes nothing"),
        (
            "doctor --rebuild",
            "makes a new database from all that can be read in the old one and in the sessions' files; the old file stays",
        ),
    ],
    arguments: &[(REBUILD, "make a new database from all that can be read")],
    is_long: true,
    answer: |asked| Box::pin(answer(asked)),
};

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    asked.rest.none()?;
    if asked.rest.has(REBUILD) {
        let rebuilt =
            rebuild(asked.home, &asked.request.folders, &asked.importer.progress, &asked.cancel).await?;
        return Ok(Answer::new(rendered(&rebuilt), rebuilt));
    }
    let store = asked.store();
    // A shell has none open: its scope is the last one.
    let open = (!asked.manner.is_shell).then_some(asked.scope.conversation);
    let mut checks = check(store, open, &asked.request.folders.session_dir, &asked.cancel).await?;
    if let (Some(file), Some(notice)) = (checks.first_mut(), store.notice()) {
        // Another file of this project is not in use, and was not checked.
        if notice.contains(REBUILD) {
            file.unfinished.get_or_insert(notice.to_owned());
        } else {
            file.notes.push(notice.to_owned());
        }
    }
    let is_sound = checks.iter().all(Check::is_sound);
    let advice = match (is_sound, asked.rest.value(DATABASE)) {
        (true, _) => "Everything is in order.",
        (false, Some(path)) => &format!("In a project, /lcm import {path} adds all that can be read in it."),
        (false, None) => {
            "/lcm doctor --rebuild makes a new database from all that can be read in this one and in the sessions' files. \
             This file stays."
        }
    };
    let shown: Vec<String> = checks.iter().map(lines).collect();
    let json = json!({"sound": is_sound, "checks": checks.iter().map(as_json).collect::<Value>()});
    Ok(Answer::new(format!("{}\n\n{advice}", shown.join("\n")), json))
}

fn as_json(check: &Check) -> Value {
    let seen: Value = check.seen.iter().map(|(n, noun)| json!({"count": n, "what": noun})).collect();
    json!({
        "name": check.name, "sound": check.is_sound(), "seen": seen, "findings": check.findings, "notes": check.notes,
        "unfinished": check.unfinished
    })
}

fn rendered(rebuilt: &Rebuilt) -> String {
    let Rebuilt { database, sessions, messages, summaries, lost, missing, filled, kept, backup } = rebuilt;
    let mut out = format!(
        "{} was rebuilt: {}, {}, {}.",
        database.display(),
        count(*sessions, "session"),
        count(*messages, "message"),
        count(*summaries, "summary")
    );
    if *lost > 0 {
        out += &format!(" At least {} could not be read.", count(*lost, "row"));
    }
    if *missing > 0 {
        out += &format!(
            " {} of the old file were cut off or overwritten: what no session file has of them is lost.",
            megabytes(*missing)
        );
    }
    if *filled > 0 {
        let (came, them) = if *filled == 1 { ("comes", "it") } else { ("come", "one of them") };
        out += &format!(
            " {} {came} from session files. If you had purged {them}, purge it again: the damage may have taken the purge too.",
            count(*filled, "message")
        );
    }
    if *messages == 0 {
        let backup = backup.as_ref().map_or_else(|| "BACKUP".to_owned(), |path| path.display().to_string());
        out += &format!(" No message could be read: /lcm import {backup} brings a backup back.");
    }
    for path in kept {
        out += &format!("\nThe old file remains: {}", path.display());
    }
    out
}

/// `Messages       ok     467 messages`, with a line for each problem.
fn lines(check: &Check) -> String {
    let verdict = if check.is_sound() { "ok" } else { "WRONG" };
    let seen = check.seen.iter().map(|(n, noun)| match *noun {
        "format" => format!("format {n}"),
        noun => many(*n, noun),
    });
    let seen: Vec<String> = seen.chain(check.notes.iter().cloned()).collect();
    let mut out = format!("{:<14} {verdict:<6} {}", check.name, seen.join(", "));
    out.truncate(out.trim_end().len());
    for finding in &check.findings {
        out += &format!("\n  {}", found(finding));
    }
    if let Some(why) = &check.unfinished {
        out += &format!("\n  this check did not finish: {why}");
    }
    out
}

/// `3× the text's length does not match the recorded one: m-1a2b3c4d5e, m-…, m-…`
fn found(finding: &Finding) -> String {
    let Finding { what, count, named, .. } = finding;
    let named: Vec<String> = named.iter().map(|name| one_line(name, 120)).collect();
    let more = if *count > named.len() { ", …" } else { "" };
    format!("{}× {what}: {}{more}", grouped(*count), named.join(", "))
}

/// `8,431 messages of other sessions`: only the first word has a plural.
fn many(n: usize, noun: &str) -> String {
    let (first, rest) = noun.split_at(noun.find(' ').unwrap_or(noun.len()));
    count(n, first) + rest
}
