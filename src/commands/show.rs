//! `/lcm show ID`: shows a message or a summary in full, with its details.

use serde::Serialize;
use serde_json::json;

use super::sessions::of_session;
use super::{Answer, Command, CommandContext, json_text};
use lcm_model::Role;
use lcm_model::error::{Error, Result};
use lcm_model::ids::{Handle, HandleKind};
use lcm_model::text::{count, grouped, in_line, local_span, timestamp, zoned_minute};
use lcm_recall::describe::{
    MessageLine, MessagePortrait, Portrait, SummaryPortrait, SummarySources, portrait,
};
use lcm_recall::grep::Location;
use lcm_recall::{Image, MessageCard, NodeId, SummaryCard, resolve, whole};
use lcm_store::View;

const RAW: &str = "--raw";

pub(crate) const COMMAND: Command = Command {
    name: "show",
    help: "a message or a summary in full, by its id",
    usage: &[
        ("show ID", "shows the message m-… or the summary s-… in full, with the summaries that cover it"),
        ("show ID --raw", "only JSON: a message as Pi wrote it, or a summary with its details"),
    ],
    arguments: &[(RAW, "only JSON, of a message as it is stored")],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    let id = asked.rest.only()?.to_owned();
    if id.is_empty() || id.contains(char::is_whitespace) {
        return Err(Error::invalid(
            "/lcm show needs one id, m-… or s-…: /lcm search WORDS and /lcm tree show ids",
        ));
    }
    let (scope, is_raw) = (asked.scope.clone(), asked.rest.has(RAW));
    let read = move |view: &View<'_>| {
        let (target, is_kept) = match resolve(view, &scope, &id, "/lcm search and /lcm tree show ids") {
            Ok(target) => (target, false),
            Err(error) => (kept(view, &id)?.ok_or(error)?, true),
        };
        let (text, images) = whole(view, target, is_raw)?;
        Ok(match portrait(view, &scope, target)? {
            Portrait::Message(portrait) => {
                let answer = message(portrait, is_kept, &text, images);
                if is_raw { Answer { text, ..answer } } else { answer }
            }
            Portrait::Summary(portrait) => {
                let answer = summary(portrait, &text);
                // It is stored as text alone.
                if is_raw { Answer { text: json_text(&answer.answer), ..answer } } else { answer }
            }
        })
    };
    asked.store().read(read).await
}

/// The message with that id, if it is kept from the model: no tool shows it, but its user may read it.
fn kept(view: &View<'_>, id: &str) -> Result<Option<NodeId>> {
    let handle = Handle::parse(id)?;
    let found = match handle.kind {
        HandleKind::Message => view.upkeep().purgeable_like(&handle)?,
        HandleKind::Summary => Vec::new(),
    };
    Ok(if let [message] = found.as_slice() { Some(NodeId::Message(*message)) } else { None })
}

fn message(portrait: MessagePortrait, is_kept: bool, text: &str, images: Vec<Image>) -> Answer {
    let MessagePortrait { line, bytes, tokens, position, place, session, above, .. } = portrait;
    let MessageCard { handle, role, tool, agent, timestamp: at, .. } = line.card;
    let by = agent.map(|agent| format!("{agent} ")).unwrap_or_default();
    let of_tool = tool
        .as_ref()
        .filter(|_| role == Role::ToolResult.as_str())
        .map(|tool| format!(" of {}", in_line(tool)))
        .unwrap_or_default();
    let place = match (position, &session) {
        (Some((at, of)), _) => format!("message {} of {} on this branch", grouped(at + 1), grouped(of)),
        (None, Some(session)) if place == Location::OtherSessionBranch => {
            format!("on an abandoned branch of session {}", of_session(session))
        }
        (None, Some(session)) => format!("in session {}", of_session(session)),
        (None, None) if place != Location::Here => "on another branch".to_owned(),
        (None, None) if is_kept => "on this branch".to_owned(),
        (None, None) => "on this branch, changed or hidden by an edit".to_owned(),
    };
    let kept = if is_kept { ", kept from the model" } else { "" };
    let (mut pictures, mut image_list) = (String::new(), Vec::new());
    for Image { mime_type, data } in images {
        let size = grouped(data.len());
        pictures += &format!("picture: {}, {size} characters of base64\n", in_line(&mime_type));
        image_list.push(json!({"mimeType": mime_type, "base64": data.len()}));
    }
    let above: Vec<Named> = above.iter().map(Named::of).collect();
    let out = format!(
        "{handle} · {by}{}{of_tool} · {} · {place}{kept}\n{} bytes, about {} tokens\n{}{pictures}\n{text}",
        in_line(&role),
        zoned_minute(at),
        grouped(bytes),
        grouped(tokens),
        list("summarized in", &above)
    );
    let json = json!({
        "kind": "message", "id": handle, "role": role, "tool": tool, "agent": agent, "time": timestamp(at),
        "position": position.map(|(at, _)| at + 1), "session": session.map(|session| session.id), "bytes": bytes, "tokens": tokens, "summaries": above,
        "images": image_list, "text": text,
    });
    Answer::new(out, json)
}

fn summary(portrait: SummaryPortrait, text: &str) -> Answer {
    let SummaryPortrait { card, created_at, holds, is_replaced, session, above, below, .. } = portrait;
    let above: Vec<Named> = above.iter().map(Named::of).collect();
    let below: Vec<Named> = match below {
        SummarySources::Summaries(children) => children.iter().map(Named::of).collect(),
        SummarySources::Messages(lines) => {
            let named = |line: MessageLine| Named {
                about: format!("{}: {}", in_line(&line.card.role), line.headline),
                id: line.card.handle,
            };
            lines.into_iter().map(named).collect()
        }
    };
    let SummaryCard { handle, depth, degraded, messages, from_time, to_time, tokens, model, .. } = card;
    let made = match &model {
        Some(model) => format!("by {}", in_line(model)),
        None => "without a model".to_owned(),
    };
    let place = match &session {
        Some(session) => format!("in session {}", of_session(session)),
        None if is_replaced => {
            "part of this branch, replaced by a longer summary from the next fold on".to_owned()
        }
        None if holds => "part of this branch".to_owned(),
        None => "not part of this branch".to_owned(),
    };
    let out = format!(
        "{handle} · D{depth}{} · {} · {}\nmade {made}, about {} tokens, {place}\n\n{text}\n\n{}{}",
        if degraded { " degraded" } else { "" },
        count(messages, "message"),
        local_span(from_time, to_time),
        grouped(tokens),
        list("condensed into", &above),
        list("made from", &below)
    );
    let json = json!({
        "kind": "summary", "id": handle, "depth": depth, "degraded": degraded, "messages": messages,
        "from": timestamp(from_time), "to": timestamp(to_time), "tokens": tokens, "model": model,
        "created": timestamp(created_at), "onBranch": holds, "session": session.map(|session| session.id), "condensedInto": above, "madeFrom": below,
        "text": text,
    });
    Answer::new(out.trim_end().to_owned(), json)
}

/// A reference to another message or summary.
#[derive(Serialize)]
struct Named {
    id: String,
    about: String,
}

impl Named {
    fn of(card: &SummaryCard) -> Self {
        let degraded = if card.degraded { "!" } else { "" };
        Self { id: card.handle.clone(), about: format!("D{}{degraded} {}", card.depth, card.title) }
    }
}

fn list(what: &str, named: &[Named]) -> String {
    let lines: String = named.iter().map(|Named { id, about }| format!("  {id} {about}\n")).collect();
    if named.is_empty() { lines } else { format!("{what}:\n{lines}") }
}
