//! `/lcm show ID`: shows a message or a summary in full, with its details.

use std::fmt;

use serde::Serialize;

use super::{Answer, Command, CommandContext, args};
use crate::error::{Error, Result};
use crate::recall::describe::{Below, MessagePortrait, Portrait, SummaryPortrait, by_id};
use crate::recall::expand::whole;
use crate::recall::{Scope, SummaryCard};
use crate::store::View;
use crate::text::{count, grouped, in_line, minute, time_span, timestamp};

const NAME: &str = "show";
const RAW: &str = "--raw";

pub(crate) const COMMAND: Command = Command {
    name: NAME,
    help: "a message or a summary in full, by its id",
    usage: &[
        ("show ID", "shows the message m-… or the summary s-… in full, with the summaries that cover it"),
        ("show ID --raw", "a message as stored: Pi's JSON"),
    ],
    arguments: &[(RAW, "the stored JSON")],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

/// A message. Tokens are estimates.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    kind: &'static str,
    id: String,
    role: String,
    tool: Option<String>,
    time: String,
    /// Its position on this branch, from 1; `None` elsewhere.
    position: Option<usize>,
    bytes: usize,
    tokens: usize,
    /// The summaries over it, from the leaf summary up.
    summaries: Vec<Named>,
    images: Vec<Image>,
    text: String,
    #[serde(skip)]
    minute: String,
    #[serde(skip)]
    of: usize,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Image {
    mime_type: String,
    /// Characters of its base64 text.
    base64: usize,
}

/// A summary. Tokens are estimates.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Summary {
    kind: &'static str,
    id: String,
    depth: u32,
    degraded: bool,
    messages: usize,
    from: String,
    to: String,
    tokens: usize,
    /// `None` if no model wrote it.
    model: Option<String>,
    created: String,
    on_branch: bool,
    /// The summaries condensed from it, nearest first.
    condensed_into: Vec<Named>,
    /// Its sources, in order.
    made_from: Vec<Named>,
    text: String,
    #[serde(skip)]
    span: String,
}

/// A reference to another message or summary.
#[derive(Serialize)]
struct Named {
    id: String,
    about: String,
}

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    let (options, id) = args::options(NAME, &asked.rest, &[RAW])?;
    if id.is_empty() || id.contains(char::is_whitespace) {
        return Err(Error::invalid(
            "/lcm show needs one id, m-… or s-…: /lcm search WORDS and /lcm tree show ids",
        ));
    }
    let (scope, is_raw) = (asked.scope.clone(), !options.is_empty());
    asked
        .store()
        .read(move |view| {
            Ok(match by_id(view, &scope, &id)? {
                Portrait::Message(portrait) => Answer::of(&message(view, &scope, portrait, is_raw)?),
                Portrait::Summary(portrait) => Answer::of(&summary(view, &scope, portrait)?),
            })
        })
        .await
}

fn message(view: &View<'_>, scope: &Scope, portrait: MessagePortrait, raw: bool) -> Result<Message> {
    let MessagePortrait { line, bytes, tokens, position, above, .. } = portrait;
    let card = line.card;
    let (text, images) = whole(view, scope, &card.handle, raw)?;
    let image =
        |image: crate::recall::expand::Image| Image { mime_type: image.mime_type, base64: image.data.len() };
    Ok(Message {
        kind: "message",
        id: card.handle,
        role: card.role,
        tool: card.tool,
        time: timestamp(card.timestamp),
        minute: minute(card.timestamp),
        position: position.map(|(at, _)| at + 1),
        of: position.map_or(0, |(_, of)| of),
        bytes,
        tokens,
        summaries: above.iter().map(Named::of).collect(),
        images: images.into_iter().map(image).collect(),
        text,
    })
}

fn summary(view: &View<'_>, scope: &Scope, portrait: SummaryPortrait) -> Result<Summary> {
    let SummaryPortrait { card, created_at, holds, above, below, .. } = portrait;
    let (text, _) = whole(view, scope, &card.handle, false)?;
    let made_from = match below {
        Below::Summaries(children) => children.iter().map(Named::of).collect(),
        Below::Messages(lines) => {
            let named = |line: crate::recall::describe::MessageLine| Named {
                about: format!("{}: {}", in_line(&line.card.role), line.headline),
                id: line.card.handle,
            };
            lines.into_iter().map(named).collect()
        }
    };
    Ok(Summary {
        kind: "summary",
        depth: card.depth,
        degraded: card.degraded,
        messages: card.messages,
        from: timestamp(card.from_time),
        to: timestamp(card.to_time),
        span: time_span(card.from_time, card.to_time),
        tokens: card.tokens,
        model: card.model,
        created: timestamp(created_at),
        on_branch: holds,
        condensed_into: above.iter().map(Named::of).collect(),
        made_from,
        text,
        id: card.handle,
    })
}

impl Named {
    fn of(card: &SummaryCard) -> Self {
        let degraded = if card.degraded { "!" } else { "" };
        Self { id: card.handle.clone(), about: format!("D{}{degraded} {}", card.depth, card.title) }
    }
}

impl fmt::Display for Message {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, role, minute, position, of, bytes, tokens, .. } = self;
        let tool = self.tool.as_ref().map(|tool| format!(" of {}", in_line(tool))).unwrap_or_default();
        let role = in_line(role);
        let place = match position {
            Some(at) => format!("message {at} of {of} on this branch"),
            None => "not on this branch".to_owned(),
        };
        writeln!(f, "{id} · {role}{tool} · {minute} UTC · {place}")?;
        writeln!(f, "{} bytes, about {} tokens", grouped(*bytes), grouped(*tokens))?;
        list(f, "summarized in", &self.summaries)?;
        for Image { mime_type, base64 } in &self.images {
            writeln!(f, "picture: {}, {} characters of base64", in_line(mime_type), grouped(*base64))?;
        }
        write!(f, "\n{}", self.text)
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { id, depth, messages, span, tokens, .. } = self;
        let degraded = if self.degraded { " degraded" } else { "" };
        writeln!(f, "{id} · D{depth}{degraded} · {} · {span} UTC", count(*messages, "message"))?;
        let made = match &self.model {
            Some(model) => format!("by {}", in_line(model)),
            None => "without a model".to_owned(),
        };
        let place = if self.on_branch { "covers this branch" } else { "covers nothing on this branch" };
        writeln!(f, "made {made}, about {} tokens, {place}", grouped(*tokens))?;
        list(f, "condensed into", &self.condensed_into)?;
        list(f, "made from", &self.made_from)?;
        write!(f, "\n{}", self.text)
    }
}

fn list(f: &mut fmt::Formatter<'_>, what: &str, named: &[Named]) -> fmt::Result {
    if !named.is_empty() {
        writeln!(f, "{what}:")?;
    }
    named.iter().try_for_each(|Named { id, about }| writeln!(f, "  {id} {about}"))
}
