//! `/lcm doctor`: says what was checked, what is wrong, and what to do about it.

use serde_json::{Value, json};

use super::{Answer, Command, CommandContext};
use crate::doctor::{Check, Doctor, Finding, Mended, Outcome, Remedy, Report};
use crate::error::Result;
use crate::store::Place;
use crate::text::{grouped, grouped_count, one_line};

pub(crate) const FIX: &str = "--fix";

pub(crate) const COMMAND: Command = Command {
    name: "doctor",
    help: "check the stored history; --fix repairs it, after a backup",
    usage: &[
        ("doctor", "checks everything that is stored and changes nothing"),
        ("doctor --fix", "repairs what it can, after a backup"),
    ],
    arguments: &[(FIX, "repair what it can, after a backup")],
    is_long: true,
    answer: |asked| Box::pin(answer(asked)),
};

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    let store = asked.store();
    let doctor =
        Doctor { store: store.clone(), open: asked.scope.conversation, cancel: asked.cancel.clone() };
    asked.rest.none()?;
    if asked.rest.has(FIX) {
        let outcome = doctor.fix().await?;
        return Ok(Answer::new(render_outcome(&outcome, store.place()), outcome_as_json(&outcome)));
    }
    let report = doctor.check().await?;
    let text = format!("{}\n\n{}", render(&report), advice(&report, store.place()));
    Ok(Answer::new(text, as_json(&report)))
}

fn as_json(report: &Report) -> Value {
    let finding =
        |Finding { what, count, named, .. }: &Finding| json!({"what": what, "count": count, "named": named});
    let check = |check: &Check| {
        let seen: Value = check.seen.iter().map(|(n, noun)| json!({"count": n, "what": noun})).collect();
        let findings: Value = check.findings.iter().map(finding).collect();
        json!({
            "name": check.name, "sound": check.is_sound(), "seen": seen, "findings": findings, "notes": check.notes,
            "unfinished": check.unfinished
        })
    };
    json!({"sound": report.is_sound(), "checks": report.checks.iter().map(check).collect::<Value>()})
}

fn outcome_as_json(outcome: &Outcome) -> Value {
    match outcome {
        Outcome::Sound(report) | Outcome::Helpless(report) => {
            json!({"mended": false, "report": as_json(report)})
        }
        Outcome::Mended(mended) => {
            let Mended { before, backup, done, after } = &**mended;
            let done: Value = done.iter().map(|(n, what)| json!({"count": n, "what": what})).collect();
            json!({
                "mended": true, "before": as_json(before), "backup": backup.display().to_string(), "done": done,
                "report": as_json(after)
            })
        }
    }
}

fn render_outcome(outcome: &Outcome, place: &Place) -> String {
    match outcome {
        Outcome::Sound(report) => format!("{}\n\nThere is nothing to repair.", render(report)),
        Outcome::Helpless(report) => {
            format!("{}\n\nNothing was changed. {}", render(report), other_ways(report, place).join("\n"))
        }
        Outcome::Mended(mended) => {
            let Mended { before, backup, done, after } = &**mended;
            let done: Vec<String> =
                done.iter().map(|(n, what)| format!("  {}× {what}", grouped(*n))).collect();
            format!(
                "Before\n{}\n\nA copy of the database as it was: {}\n\nDone\n{}\n\nAfter\n{}\n\n{}",
                render(before),
                backup.display(),
                done.join("\n"),
                render(after),
                advice(after, place)
            )
        }
    }
}

fn render(report: &Report) -> String {
    report.checks.iter().map(lines).collect::<Vec<_>>().join("\n")
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

fn advice(report: &Report, place: &Place) -> String {
    if report.is_sound() {
        return "Everything is in order.".into();
    }
    let mut advice = Vec::new();
    if report.calls_for(Remedy::Fix) {
        advice.push("/lcm doctor --fix repairs what it can, after a backup.".to_owned());
    }
    advice.extend(other_ways(report, place));
    advice.join("\n")
}

/// Remedies other than a repair in place.
fn other_ways(report: &Report, place: &Place) -> Vec<String> {
    let mut advice = Vec::new();
    let unfinished = report.checks.iter().any(|check| check.unfinished.is_some());
    if let (true, Place::File(path)) = (unfinished || report.calls_for(Remedy::Rebuild), place) {
        advice.push(format!(
            "Problems of the file or the tree, and texts that are in no session file, can't be repaired in place. To rebuild \
             the history from Pi's session files: quit Pi, move {} away (with its -wal and -shm), start Pi in this \
             session, and run /lcm import for the older ones; summaries are restored too. For sessions whose files are \
             gone, run /lcm import with the path of the old database.",
            path.display()
        ));
    }
    if report.calls_for(Remedy::None) {
        advice.push("A branch that is not covered is a bug: please report it. No messages are lost.".into());
    }
    advice
}

/// `8,431 messages of other sessions`: only the first word has a plural.
fn many(n: usize, noun: &str) -> String {
    let (first, rest) = noun.split_at(noun.find(' ').unwrap_or(noun.len()));
    grouped_count(n, first) + rest
}
