//! `/lcm notes`: shows and changes the notes in every block.
//!
//! A change becomes a message that Pi adds to the session. So it belongs to the branch, like the model's own
//! changes, and the model sees it with the next request, not only after a compaction.

use serde_json::json;

use super::{Answer, Command, CommandContext, Confirm, SessionMessage, args, purge};
use crate::tools::stored_notes;
use lcm_model::error::{Error, Result};
use lcm_model::text::{count, grouped, one_line};
use lcm_model::{Change, MOST_TOKENS, NOTE_TOOL, Notes};

const NAME: &str = "notes";

pub(super) const COMMAND: Command = Command {
    name: NAME,
    help: "the notes in every block: list, add, set, remove",
    usage: &[
        ("notes", "the notes of this branch, each with its number and who wrote it"),
        ("notes add TEXT", "adds a note; the model sees it in its next request"),
        ("notes set N TEXT", "replaces the text of note N, also one of the model's"),
        ("notes remove N", "removes note N"),
        ("notes clear", "removes all notes; asks first"),
        ("notes clear --yes", "without asking; required where Pi can't ask"),
    ],
    arguments: &[
        ("add", "add a note"),
        ("set", "replace the text of a note"),
        ("remove", "remove a note"),
        ("clear", "remove all notes"),
    ],
    is_long: true,
    answer: |asked| Box::pin(run(asked)),
};

async fn run(asked: &CommandContext<'_>) -> Result<Answer> {
    if !asked.settings.notes {
        return Err(Error::invalid(
            "notes are off: /lcm settings notes=true turns them on, with the tool lcm_note",
        ));
    }
    let notes = stored_notes(asked.store(), asked.scope).await?;
    match read(&asked.rest.text)? {
        None => Ok(listed(None, &notes)),
        Some((Change::Clear, _)) if notes.list().is_empty() => Err(Error::invalid("there are no notes")),
        Some((Change::Clear, false)) => {
            let many = count(notes.list().len(), "note");
            let confirm = Confirm {
                title: format!("Remove {many}?"),
                message: format!("{}\nThis can't be undone.", listed(None, &notes).text),
                line: "notes clear --yes".into(),
            };
            let asking = format!("This would remove {many}. To do it: /lcm notes clear --yes");
            Ok(Answer { confirm: Some(confirm), ..listed(Some(&asking), &notes) })
        }
        Some((change, _)) => changed(notes, change),
    }
}

/// The requested change, if any, and whether the user has already agreed.
fn read(rest: &str) -> Result<Option<(Change, bool)>> {
    let unclear = |why: &str| Error::invalid(format!("{why}; see /lcm help notes"));
    let (action, rest) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let numbered = |rest: &str| {
        let (number, text) = rest.trim().split_once(char::is_whitespace).unwrap_or((rest.trim(), ""));
        match number.parse() {
            Ok(number) => Ok((number, text.trim().to_owned())),
            Err(_) => Err(unclear(&format!(
                "/lcm notes {action} takes the number of a note, not {}",
                if number.is_empty() { "nothing".into() } else { one_line(number, 40) }
            ))),
        }
    };
    let asked = match action {
        "" => return Ok(None),
        "add" => (Change::add(args::behind_options(rest.trim())), true),
        "set" => {
            let (number, text) = numbered(rest)?;
            (Change::Replace { number, text: Change::line(&text) }, true)
        }
        "remove" => match numbered(rest)? {
            (number, more) if more.is_empty() => (Change::Remove { number }, true),
            _ => return Err(unclear("/lcm notes remove takes one number")),
        },
        "clear" => match rest.split_whitespace().find(|word| *word != purge::AGREED) {
            None => (Change::Clear, !rest.trim().is_empty()),
            Some(word) => return Err(args::foreign(NAME, word, &[purge::AGREED])),
        },
        other => {
            let other = one_line(other, 40);
            return Err(unclear(&format!("/lcm notes takes add, set, remove or clear, not {other}")));
        }
    };
    Ok(Some(asked))
}

fn changed(mut notes: Notes, change: Change) -> Result<Answer> {
    let number = notes.apply(&change, true)?;
    let (verb, done, text) = match &change {
        Change::Add { text, .. } => ("added", "is kept", Some(text)),
        Change::Replace { text, .. } | Change::Edit { text, .. } => ("changed", "was changed", Some(text)),
        Change::Remove { .. } => ("removed", "was removed", None),
        Change::Clear => ("removed", "were removed", None),
    };
    let which = if number > 0 { format!("note {number}") } else { "all notes".into() };
    let said = text.map(|text| format!(": \"{text}\"")).unwrap_or_default();
    let entry = SessionMessage {
        custom_type: NOTE_TOOL,
        content: format!("[The user {verb} {which}{said}]"),
        details: change.numbered(Some(number.into())).details(),
    };
    let done = format!("{}{} {done}.", which[..1].to_uppercase(), &which[1..]);
    Ok(Answer { entry: Some(entry), ..listed(Some(&done), &notes) })
}

/// What was done, and the notes after it.
fn listed(done: Option<&str>, notes: &Notes) -> Answer {
    let (tokens, list) = (notes.tokens(), notes.list());
    let mut text = done.map(|done| format!("{done}\n")).unwrap_or_default();
    for note in list {
        let whose = if note.by_user { " (yours)" } else { "" };
        text += &format!("{}{whose}. {}\n", note.number, note.text);
    }
    text += &match list.len() {
        0 => "No notes on this branch. Add one with /lcm notes add TEXT; the model uses lcm_note.".to_owned(),
        n => format!("{}, {} of {} tokens.", count(n, "note"), grouped(tokens), grouped(MOST_TOKENS)),
    };
    Answer::new(text, json!({"done": done, "notes": list, "tokens": tokens, "mostTokens": MOST_TOKENS}))
}
