//! How answers name messages and summaries.

use lcm_model::frames::{begin_with_id, opening};
use lcm_model::text::{count, minute, one_line, time_span};
use lcm_recall::grep::{Location, Snippet};
use lcm_recall::{MessageCard, SessionName, SummaryCard};

/// Characters of a name.
const NAME: usize = 60;

/// `m-1a2b3c4d5e · toolResult read · 2026-11-20 09:12 UTC`
pub fn message(card: &MessageCard) -> String {
    format!("{} · {} · {} UTC", card.handle, speaker(card), minute(card.timestamp))
}

/// `m-1a2b3c4d5e · toolResult read · 3h ago`
pub(super) fn hit(card: &MessageCard, now: i64) -> String {
    let ago = match lcm_model::text::age(card.timestamp, now).as_str() {
        "now" => "now".to_owned(),
        age => format!("{age} ago"),
    };
    format!("{} · {ago}", undated(card))
}

/// `m-1a2b3c4d5e · toolResult read`, where a heading tells when
pub(super) fn undated(card: &MessageCard) -> String {
    format!("{} · {}", card.handle, speaker(card))
}

/// `toolResult read`, or for another agent `codex toolResult shell`
fn speaker(card: &MessageCard) -> String {
    let tool = card.tool.as_ref().map(|tool| format!(" {}", name(tool))).unwrap_or_default();
    let agent = card.agent.map(|agent| format!("{agent} ")).unwrap_or_default();
    agent + &name(&card.role) + &tool
}

/// A name from outside, of a role, a tool, a model or a session: kept on one line, and not mistaken for an
/// id.
pub(super) fn name(name: &str) -> String {
    let name = one_line(name, NAME);
    if begin_with_id(&opening(&name)) { format!("\\{name}") } else { name }
}

/// `s-8b2c01d4e7 · D1 · 2026-11-20 09:12–10:40 UTC · 78 messages`
pub fn summary(card: &SummaryCard) -> String {
    let degraded = if card.degraded { " · degraded" } else { "" };
    format!(
        "{} · D{} · {} UTC · {}{degraded}",
        card.handle,
        card.depth,
        time_span(card.from_time, card.to_time),
        count(card.messages, "message")
    )
}

/// The same with the title.
pub(super) fn titled(card: &SummaryCard) -> String {
    format!("{}: {}", summary(card), card.title)
}

/// `019c2f4e, 2026-11-20 09:12 UTC (Fix the login timeout)`
pub(super) fn session(session: &SessionName) -> String {
    format!("{}, {} UTC{}", name(&session.short), minute(session.from_time), session.details())
}

/// A list of things, or `none`.
pub(super) fn list(heading: &str, lines: impl IntoIterator<Item = String>) -> String {
    let lines: Vec<String> = lines.into_iter().map(|line| format!("- {line}")).collect();
    if lines.is_empty() { format!("{heading}: none") } else { format!("{heading}:\n{}", lines.join("\n")) }
}

/// Where it is, if not on the current branch.
pub(super) fn place(place: Location) -> &'static str {
    match place {
        Location::Here => "",
        Location::OtherBranch => " · on another branch",
        Location::OtherSession => " · in another session",
        Location::OtherSessionBranch => " · on an abandoned branch of another session",
    }
}

/// A match as a model sees it.
pub fn in_marks(found: &str) -> String {
    format!("«{found}»")
}

/// The snippet with its matches highlighted.
pub fn marked(snippet: &Snippet, highlight: impl Fn(&str) -> String) -> String {
    let mut out = String::from(if snippet.cut_before { "…" } else { "" });
    let mut at = 0;
    for mark in &snippet.marks {
        out += &snippet.text[at..mark.start];
        out += &highlight(&snippet.text[mark.clone()]);
        at = mark.end;
    }
    out.push_str(&snippet.text[at..]);
    out.push_str(if snippet.cut_after { "…" } else { "" });
    out
}
