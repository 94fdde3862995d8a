//! `/lcm purge`: removes data for good once the user agrees, and says where it remains.

use std::collections::BTreeSet;

use serde_json::json;

use super::args::behind_options;
use super::{Answer, Command, CommandContext, Confirm};
use crate::maintenance::purge::{Still, Wish, find, remove};
use lcm_model::error::{Error, Result};
use lcm_model::ids::MessageId;
use lcm_model::text::{count, folded, grouped, in_line, local_minute, local_span, one_line, timestamp};
use lcm_recall::describe::{MessagePortrait, Portrait, SummaryPortrait, portrait};
use lcm_recall::{MessageCard, NodeId};
use lcm_store::{PurgePlan, View};

/// Skips the question to the user.
pub(super) const AGREED: &str = "--yes";
/// Purges by text instead of by name.
const TEXT: &str = "--text";

/// How many names are listed.
const NAMED: usize = 5;
/// Characters of a message to be removed.
const FIRST_WORDS: usize = 40;

pub(super) const COMMAND: Command = Command {
    name: "purge",
    help: "permanently remove a message, a text, a session, or all before a date; asks first",
    usage: &[
        (
            "purge m-1a2b3c4d5e",
            "a message and every summary made from it; Pi's id of its entry in this session works too",
        ),
        ("purge SESSION", "all messages of a session, by Pi's session id or its first eight characters"),
        ("purge before 2026-11-20", "all messages before a day or time (your time zone)"),
        (
            "purge --text \"…\"",
            "everything that contains this text, in any case, also where search does not look: arguments, thinking, details, notes, summaries",
        ),
        ("purge … --yes", "without asking; required where Pi can't ask"),
    ],
    arguments: &[
        ("before", "all messages before a day"),
        (TEXT, "everything that contains a text"),
        (AGREED, "without asking"),
    ],
    is_long: true,
    answer: |asked| Box::pin(run(asked)),
};

async fn run(asked: &CommandContext<'_>) -> Result<Answer> {
    let (wish, what) = wish(asked)?;
    let found = find(asked.store(), asked.scope, &wish, asked.request.live.shown_from.clone()).await?;
    if !asked.rest.has(AGREED) {
        let mut answer = answer(&what, &found.plan, &found.still, None);
        let end = answer.text.find('\n').unwrap_or(answer.text.len());
        answer.text.insert_str(end, &beginnings(asked, &found.plan).await?);
        answer.text += "\nThis can't be undone.";
        // The text may look like options.
        let line = match wish {
            Wish::Named(_) => format!("purge {what} {AGREED}"),
            Wish::Text(text) => format!("purge {TEXT} {AGREED} -- \"{text}\""),
        };
        let confirm =
            Confirm { title: question(&found.plan), message: answer.text.clone(), line: line.clone() };
        answer.text += &format!(" /lcm {line} removes it.");
        return Ok(Answer { confirm: Some(confirm), ..answer });
    }
    let (plan, still, complete) = remove(asked.store(), found).await?;
    Ok(answer(&what, &plan, &still, Some(complete)))
}

/// What to purge, and the same in words.
///
/// # Errors
/// When something stands behind a quoted text, such as an option that there is not: nothing would hold both.
fn wish(asked: &CommandContext<'_>) -> Result<(Wish, String)> {
    if !asked.rest.has(TEXT) {
        let what = folded(&asked.rest.text);
        return Ok((Wish::Named(what.clone()), what));
    }
    let written = asked.rest.text.trim();
    let text = behind_options(written);
    // A shell takes either.
    let quoted = ['"', '\''].into_iter().find_map(|mark| text.strip_prefix(mark)?.rsplit_once(mark));
    let before = text.split(' ').next().filter(|_| text == written);
    let behind = quoted.map_or(text, |(_, behind)| behind).split(' ').next_back();
    if let Some(option) = [before, behind].into_iter().flatten().find(|word| word.starts_with("--")) {
        return Err(Error::invalid(format!(
            "/lcm purge has no option {}: it shows what goes before it asks; put quotation marks around a text that has it",
            one_line(option, 40)
        )));
    }
    let inner = match quoted {
        Some((inner, "")) => inner,
        Some((_, behind)) => {
            return Err(Error::invalid(format!(
                "/lcm purge {TEXT} takes one text, and {} stands behind its last quotation mark: put all of the text between \
                 quotation marks, or leave them out",
                one_line(behind, 40)
            )));
        }
        None => text,
    };
    Ok((Wish::Text(inner.to_owned()), format!("{TEXT} \"{inner}\"")))
}

/// The first of what a plan removes: messages with id, role, time and first words, and summaries.
async fn beginnings(asked: &CommandContext<'_>, plan: &PurgePlan) -> Result<String> {
    let asked_for = &(&plan.messages - &plan.repeating) - &plan.ignored;
    let messages = |ids: &BTreeSet<MessageId>| ids.iter().take(NAMED).copied().map(NodeId::Message).collect();
    let summaries = plan.summaries.iter().take(NAMED).copied().map(NodeId::Summary).collect();
    let kinds: [(Vec<NodeId>, usize, &str); 3] = [
        (messages(&asked_for), removed_messages(plan), ""),
        (messages(&plan.repeating), plan.repeating.len(), " (repeats or mentions it)"),
        (summaries, plan.summaries.len(), ""),
    ];
    let scope = asked.scope.clone();
    let read = move |view: &View<'_>| {
        let mut lines = String::new();
        for (first, all, why) in kinds {
            let more = all.saturating_sub(first.len());
            for node in first {
                lines += &match portrait(view, &scope, node)? {
                    Portrait::Message(MessagePortrait { line, .. }) => {
                        let MessageCard { handle, role, timestamp, .. } = line.card;
                        let words = one_line(&line.headline, FIRST_WORDS);
                        format!("\n  {handle} {} {}: {words}{why}", in_line(&role), local_minute(timestamp))
                    }
                    Portrait::Summary(SummaryPortrait { card, .. }) => {
                        format!("\n  {} summary: {}", card.handle, one_line(&card.title, FIRST_WORDS))
                    }
                };
            }
            if more > 0 {
                lines += &format!("\n  and {} more", grouped(more));
            }
        }
        Ok(lines)
    };
    asked.store().read(read).await
}

/// Asks about all that a plan removes.
fn question(plan: &PurgePlan) -> String {
    let messages = count(plan.messages.len(), "message");
    match plan.summaries.len() {
        0 => format!("Permanently remove {messages}?"),
        n => format!("Permanently remove {messages} and {}?", count(n, "derived summary")),
    }
}

/// How many messages a plan removes, besides those that only repeat or summarize them.
fn removed_messages(plan: &PurgePlan) -> usize {
    plan.messages.len() - plan.ignored.len() - plan.repeating.len()
}

/// What of `what` would be removed, or was: `complete` says whether nothing is left in the file and its log,
/// or why that could not be ensured.
fn answer(what: &str, plan: &PurgePlan, still: &Still, complete: Option<Result<bool>>) -> Answer {
    let PurgePlan { ignored, repeating, summaries, times, sessions, .. } = plan;
    let messages = removed_messages(plan);
    let sessions: Vec<String> = sessions.iter().map(|session| session.session_id.clone()).collect();
    let time = match *times {
        Some((from, to)) if from == to => format!(" of {}", local_minute(from)),
        Some((from, to)) => format!(" of {}", local_span(from, to)),
        None => String::new(),
    };
    let mut removed = vec![count(messages, "message") + &time];
    for (n, noun, what) in [
        (ignored.len(), "message", " that search ignores"),
        (
            repeating.len(),
            "message",
            if messages == 1 { " repeating or mentioning it" } else { " repeating or mentioning them" },
        ),
        (summaries.len(), "derived summary", ""),
    ] {
        if n > 0 {
            removed.push(count(n, noun) + what);
        }
    }
    if let [_, .., last] = removed.as_mut_slice() {
        last.insert_str(0, "and ");
    }
    if !plan.lists.is_empty() {
        removed.push(count(plan.lists.len(), "list") + " of files");
    }
    let removed = removed.join(", ");
    let verb = if complete.is_some() { "Permanently removed" } else { "This would permanently remove" };
    let mut text = format!("{verb}: {removed}.");
    if plan.notes > 0 {
        text += &format!(" This includes {} of notes (see /lcm notes).", count(plan.notes, "change"));
    }
    if !plan.places.is_empty() {
        let places = plan.places.iter().map(|(place, n)| format!("{place} ({})", grouped(*n)));
        text += &format!(
            " The text {} in: {}.",
            if complete.is_some() { "was" } else { "is" },
            places.collect::<Vec<_>>().join(", ")
        );
    }
    if sessions.len() > 1 {
        let (n, names) = (count(sessions.len(), "session"), in_line(&listed(&sessions)));
        text += &format!(" This is in {n}, and is removed from each: {names}.");
    }
    let (done, is_complete) = (complete.is_some(), complete.as_ref().map(|done| matches!(done, Ok(true))));
    let why = complete.and_then(Result::err).map(|error| error.to_string());
    text += &match is_complete {
        Some(true) => {
            let but = match still.agents.is_empty() {
                true => ", unless another message repeats it",
                false => {
                    ", unless another message repeats it, or another agent's record in another form, such as a file that one call reads and another edits"
                }
            };
            format!(
                "\nThe database and its log contain nothing of it{but}. Messages after it, if any, have new short ids (m-…, s-…)."
            )
        }
        Some(false) => format!(
            "\nIncomplete: {}; its pages and its log may still contain it. The end of this session or the next start finishes the removal.",
            why.as_deref().unwrap_or("another process reads the database")
        ),
        None => String::new(),
    };
    text += &remains(still, done);
    let json = json!({
        "what": what, "done": done, "messages": messages, "ignored": ignored.len(),
        "places": plan.places, "lists": plan.lists.len(), "notes": plan.notes, "repeating": repeating.len(), "summaries": summaries.len(),
        "from": times.map(|(from, _)| timestamp(from)), "to": times.map(|(_, to)| timestamp(to)),
        "sessions": sessions, "complete": is_complete, "why": why, "still": still,
    });
    Answer::new(text, json)
}

/// Where it remains.
fn remains(still: &Still, done: bool) -> String {
    // The user may want to delete each of these files.
    let paths = |paths: &[String]| {
        let paths: Vec<_> = paths.iter().map(|path| in_line(path)).collect();
        paths.join(", ")
    };
    let notes: Vec<String> = still.notes.iter().map(u32::to_string).collect();
    let agents: Vec<&str> = still.agents.iter().copied().collect();
    let named = [
        ("Pi's session files, which only you can delete", paths(&still.session_files)),
        (
            "the sync target and on other machines, if it was sent, until you sync here and then there",
            still.synced.iter().map(|target| format!("/lcm sync {}", in_line(target))).collect(),
        ),
        ("the logs of other agents, if they still exist", agents.join(", ")),
        ("backups and unused databases, if written since it was said", paths(&still.backups)),
        ("Pi's summaries of other branches, which may mention it", listed(&still.branch_summaries)),
        ("messages and summaries with a long string of it", listed(&still.also)),
        ("settings and logs, which only you can change", paths(&still.files)),
        ("notes of this branch, which may mention it (see /lcm notes)", listed(&notes)),
        (
            "messages that name its id or a later message's: by an id, a guess of its text can be checked",
            listed(&still.old_ids),
        ),
    ];
    let named = named.iter().filter(|(_, names)| !names.is_empty());
    let mut lines: Vec<String> = named.map(|(what, names)| format!("{what}: {names}")).collect();
    if still.in_block {
        lines.insert(
            0,
            "the block of the open session, which may mention it until the next compaction".into(),
        );
    }
    if still.in_this_session {
        lines.insert(
            0,
            "the open session: Pi sends it, or what mentions it, to the model until a compaction summarizes it; \
             the newest messages stay, so only /new is sure to begin without it"
                .into(),
        );
    }
    let is = if done { "is still" } else { "would still be" };
    if lines.is_empty() { String::new() } else { format!("\nIt {is} in\n- {}", lines.join("\n- ")) }
}

/// The first few names, and how many more there are.
fn listed(names: &[String]) -> String {
    let more = names.len().saturating_sub(NAMED);
    let named = names[..names.len() - more].join(", ");
    if more == 0 { named } else { format!("{named} and {} more", grouped(more)) }
}
