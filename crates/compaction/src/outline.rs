//! One extract of many chunks, for a history so long that no more of it could be shown until a model answers.
//!
//! It is divided into equal parts, with one line each: the user's first request there, or what the agent did.
//! The user's rules and files are collected from everything, as in any summary. Tool output is not read,
//! because there is no room to describe it.

use lcm_model::dag::Visible;
use lcm_model::error::Result;
use lcm_model::facts::Facts;
use lcm_model::ids::MessageId;
use lcm_model::{FILE_TOOLS, Message, SCRIPT_TOOL, text, tokens};
use lcm_store::View;

/// Approximate tokens of a line: a shorter one would say nothing.
const LINE: usize = 20;
/// The most characters of a token.
const TOKEN: usize = 5;

/// The outline of `stretch` in at most `cap` tokens, and the facts of its messages.
pub(super) fn outline(view: &View<'_>, stretch: &[Visible], cap: usize) -> Result<(String, Facts)> {
    let mut text = format!("Outline of {}", text::count(stretch.len(), "message"));
    let room = cap.saturating_sub(tokens::estimate(&text));
    let part = stretch.len().div_ceil((room / LINE).max(1)).max(1);
    let subjects: Vec<MessageId> = stretch.chunks(part).filter_map(subject).collect();
    let is_subject = |visible: &Visible| subjects.contains(&visible.seen.id);
    let others = without_files(view, stretch)?;
    let described: Vec<(usize, &Visible)> = (stretch.iter().enumerate().zip(others))
        .filter(|((_, visible), is_other)| is_subject(visible) || !is_other)
        .map(|(described, _)| described)
        .collect();
    let ids: Vec<MessageId> = described.iter().map(|(_, visible)| visible.seen.id).collect();
    let (mut read, mut facts) = (Vec::new(), Facts::default());
    let (mut described, mut lines) = (described.into_iter(), Vec::new());
    view.messages().each_json(&ids, |json| {
        let Some((at, visible)) = described.next() else { return Ok(()) };
        let is_subject = is_subject(visible);
        let is_of_calls = matches!(visible.seen.role.as_str(), "assistant" | "toolResult");
        if is_of_calls && !is_subject && !Message::may_name_files(json) {
            return Ok(());
        }
        let message = Message::parse(json);
        // Only the results of scripts are read.
        facts.list(at, &message.files());
        if is_subject {
            lines.extend(within(&message, room / subjects.len()));
        }
        read.push((at, message));
        Ok(())
    })?;
    lines.dedup();
    for line in lines {
        text.push_str("\n- ");
        text.push_str(&line);
    }
    facts.join(&Facts::of(read.iter().map(|(at, message)| (*at, message))), 0);
    Ok((text, facts))
}

/// The message that best describes a part.
fn subject(part: &[Visible]) -> Option<MessageId> {
    let first = |role: &str| part.iter().find(|visible| visible.seen.role == role);
    let subject = first("user").or_else(|| first("assistant")).or(part.first());
    subject.map(|visible| visible.seen.id)
}

/// Which messages of `stretch` are neither the user's nor mention a file: tool output, except of scripts, and
/// calls whose results are all from tools that do not handle files.
fn without_files(view: &View<'_>, stretch: &[Visible]) -> Result<Vec<bool>> {
    let ids = || stretch.iter().map(|visible| visible.seen.id);
    let (Some(first), Some(last)) = (ids().min(), ids().max()) else { return Ok(Vec::new()) };
    let named = view.messages().results_of(&FILE_TOOLS, first, last)?;
    let scripts = view.messages().results_of(&[SCRIPT_TOOL], first, last)?;
    let is_result = |visible: &Visible| visible.seen.role == "toolResult";
    let is_without = |(at, visible): (usize, &Visible)| match visible.seen.role.as_str() {
        "toolResult" => !scripts.contains(&visible.seen.id),
        "bashExecution" => true,
        "assistant" => {
            let mut results = stretch[at + 1..].iter().take_while(|next| is_result(next)).peekable();
            results.peek().is_some() && results.all(|result| !named.contains(&result.seen.id))
        }
        _ => false,
    };
    Ok(stretch.iter().enumerate().map(is_without).collect())
}

/// As much of a message's headline as fits into `share` tokens with the list mark; `None` if nothing does.
fn within(message: &Message, share: usize) -> Option<String> {
    let mut width = share * TOKEN;
    while width > 0 {
        let line = message.headline(width);
        if tokens::estimate(&line) + 2 <= share {
            return Some(line).filter(|line| !line.is_empty());
        }
        width = width * 3 / 4;
    }
    None
}
