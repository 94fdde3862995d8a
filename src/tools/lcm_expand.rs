//! `lcm_expand`: a whole message, or a summary with its sources, page by page, or only a requested part of
//! them.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};
use tokio_util::sync::CancellationToken;

use super::parameters::{read, schema};
use super::{Block, lines};
use crate::error::Result;
use crate::frames::{Fence, Tags};
use crate::recall::expand::{
    Excerpt, Expansion, Image, Inside, Left, MessagePage, Neighborhood, Opened, Request, Section,
    SectionsPage, expand,
};
use crate::recall::grep::Place;
use crate::recall::{Card, Scope, Slice};
use crate::store::View;
use crate::text::{self, count};

/// The tool's name.
pub const NAME: &str = "lcm_expand";

/// Lines before and after a match in the suggested call.
const AROUND_A_LINE: usize = 20;

/// The name of the fence around a text, before its random part, and what resembles it in a text.
const CONTENT: &str = "content";
const LOOK_ALIKES: Tags = Tags { closing: &[CONTENT], both: &["content-"] };
/// Random digits in its name. They are few because every text pays for them twice; no fenced text contains
/// the name.
const DIGITS: usize = 4;

pub(super) fn spec() -> Value {
    json!({
        "name": NAME,
        "label": "Expand history",
        "description": "Bring back the original: a message word for word, with its neighbors, some of its lines or what matches; \
            or what a summary was made from. Long ones come in pages.",
        "parameters": schema::<Request>(),
    })
}

pub(super) fn answer(
    view: &View<'_>,
    scope: &Scope,
    arguments: &str,
    cancel: &CancellationToken,
) -> Result<Vec<Block>> {
    let request: Request = read(NAME, arguments)?;
    let kept = Kept::of(&request);
    let expansion = expand(view, scope, &request, cancel)?;
    let fence = Fence::around(CONTENT, DIGITS, &expansion.texts());
    Ok(match expansion {
        Expansion::Message(page) => message(page, &request, &kept, &fence),
        Expansion::Sections(page) => sections(page, &kept, &fence),
        Expansion::Around(page) => neighborhood(page, &request, &kept, &fence),
        Expansion::Inside(page) => vec![Block::Text(inside(&page, &request, &kept))],
    })
}

/// The arguments besides the id, which the next call repeats.
struct Kept(Map<String, Value>);

impl Kept {
    fn of(request: &Request) -> Self {
        let Request { raw, turn, lines, query, max_tokens, .. } = request;
        let depth = Some(request.depth).filter(|depth| *depth > 1);
        let all = json!({
            "raw": raw, "turn": turn, "depth": depth, "lines": lines, "query": query, "max_tokens": max_tokens,
        });
        let mut kept = all.as_object().cloned().unwrap_or_default();
        kept.retain(|_, value| !value.is_null() && *value != false && *value != 0);
        Self(kept)
    }

    /// The call for `id` that continues at `cursor`.
    fn next(&self, id: &str, cursor: &str) -> String {
        let mut arguments = json!({"summary_id": id, "cursor": cursor});
        if let Value::Object(arguments) = &mut arguments {
            arguments.extend(self.0.clone());
        }
        call(&arguments)
    }
}

fn call(arguments: &Value) -> String {
    format!("{NAME} {arguments}")
}

fn message(page: MessagePage, request: &Request, kept: &Kept, fence: &Fence) -> Vec<Block> {
    let (range, total, handle) = (&page.slice.range, page.bytes, &page.card.handle);
    let mut out = format!(
        "{}{} · {total} bytes · bytes {}–{}",
        lines::message(&page.card),
        lines::place(page.place),
        range.start,
        range.end
    );
    push_content(&mut out, &page.slice.text, fence);
    let _ = match page.slice.left() {
        0 if request.lines.is_some() => write!(out, "End of these lines of {handle}."),
        0 => write!(out, "End of {handle}."),
        left => write!(out, "{left} bytes left: {}", kept.next(handle, &range.end.to_string())),
    };
    with_images(out, page.images)
}

fn with_images(text: String, images: Vec<Image>) -> Vec<Block> {
    [Block::Text(text)].into_iter().chain(images.into_iter().map(Block::Image)).collect()
}

fn sections(page: SectionsPage, kept: &Kept, fence: &Fence) -> Vec<Block> {
    let SectionsPage { handle, of, mut place, sections, left } = page;
    let (mut out, mut images) = (String::new(), Vec::new());
    if let Opened::Turn { messages } = of {
        let _ = writeln!(out, "The turn of {handle}, {}\n", count(messages, "message"));
    }
    for section in sections {
        // Stated once: everything under a summary has the same place.
        let place = lines::place(std::mem::replace(&mut place, Place::Here));
        match section {
            Section::Summary(card, slice) => {
                let model = card.model.as_ref().map(|model| format!(" · {}", lines::name(model)));
                let heading = lines::summary(&card) + &model.unwrap_or_default() + place;
                push_section(&mut out, &heading, &slice, fence);
            }
            Section::Children(parent, children) => {
                let heading = format!("{parent}{place} was made from {}", count(children.len(), "summary"));
                out += &lines::list(&heading, children.iter().map(lines::titled));
                out.push('\n');
            }
            Section::Message { card, slice, images: shown, images_left } => {
                push_section(&mut out, &(lines::message(&card) + place), &slice, fence);
                if images_left > 0 {
                    let (left, next) =
                        (count(images_left, "picture"), call(&json!({"summary_id": card.handle})));
                    let _ = writeln!(out, "{left} of it had no room here: {next}");
                }
                images.extend(shown);
            }
        }
        out.push('\n');
    }
    out += &match left {
        Some(left) => format!("{} left: {}", what_is_left(&left), kept.next(&handle, &left.cursor)),
        None => end(&handle, of),
    };
    with_images(out, images)
}

fn push_section(out: &mut String, heading: &str, slice: &Slice, fence: &Fence) {
    let Slice { range, total, .. } = slice;
    let _ = write!(out, "{heading} · {total} bytes");
    if range.len() < *total {
        let _ = write!(out, " · bytes {}–{}", range.start, range.end);
    }
    push_content(out, &slice.text, fence);
}

/// The text byte for byte, alone on its lines. If it contains a lookalike of the fence, the heading says
/// where it ends.
fn push_content(out: &mut String, text: &str, fence: &Fence) {
    if LOOK_ALIKES.are_in(text) {
        let _ = write!(out, " · up to </{fence}>");
    }
    let _ = writeln!(out, "\n{}", fence.enclose(text));
}

fn what_is_left(left: &Left) -> String {
    let counts = [(left.bytes, "byte"), (left.summaries, "summary"), (left.messages, "message")];
    let some: Vec<String> =
        counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(n, noun)).collect();
    // Only a list of children.
    if some.is_empty() { "A list of summaries".into() } else { some.join(", ") }
}

fn end(handle: &str, of: Opened) -> String {
    match of {
        Opened::Turn { .. } => format!("End of the turn of {handle}."),
        Opened::Summary { deeper: false, .. } => format!("End of {handle}."),
        Opened::Summary { depth, deeper: true } => format!(
            "End of {handle} at depth {depth}. Further down: lcm_expand on the id of a summary under it, or with \
             \"depth\":{}.",
            depth + 1
        ),
    }
}

fn neighborhood(page: Neighborhood, request: &Request, kept: &Kept, fence: &Fence) -> Vec<Block> {
    let mut out = String::new();
    for message in &page.messages {
        let asked = if message.is_asked { " · asked for" } else { "" };
        let place = if message.is_asked { lines::place(page.place) } else { "" };
        push_section(&mut out, &(lines::message(&message.card) + asked + place), &message.slice, fence);
        out.push('\n');
    }
    for message in page.messages.iter().filter(|message| message.slice.left() > 0) {
        let (handle, slice) = (&message.card.handle, &message.slice);
        let next = kept.next(handle, &slice.range.end.to_string());
        let _ = writeln!(out, "{} left of {handle}: {next}", count(slice.left(), "byte"));
    }
    let ends = [
        ("before", page.messages.first(), page.has_earlier),
        ("after", page.messages.last(), page.has_later),
    ];
    let ends = ends.into_iter().filter_map(|(side, end, has_more)| {
        let handle = &end?.card.handle;
        let more = || call(&json!({"summary_id": handle, "around": request.around}));
        Some(match has_more {
            true => format!("More {side}: {}", more()),
            false => format!("Nothing was said {side} {handle}."),
        })
    });
    out.push_str(&ends.collect::<Vec<_>>().join("\n"));
    with_images(out, page.images)
}

fn inside(page: &Inside, request: &Request, kept: &Kept) -> String {
    let Inside { handle, matching, .. } = page;
    let query = text::one_line(request.query.as_deref().unwrap_or_default(), 80);
    let looked = match page.messages {
        1 => String::new(),
        n => format!(" and {} under it", count(n, "message")),
    };
    let beyond = match page.passed_over {
        0 => String::new(),
        n => format!(
            " The last {} were not looked through: look inside a summary under it.",
            count(n, "message")
        ),
    };
    if page.excerpts.is_empty() {
        return format!(
            "No line of {handle}{looked} has `{query}`.{beyond} lcm_grep searches the whole history."
        );
    }
    let mut out = String::new();
    let mut place = page.place;
    for excerpt in &page.excerpts {
        // Stated once: everything under a summary has the same place.
        push_excerpt(&mut out, excerpt, std::mem::replace(&mut place, Place::Here));
    }
    let shown: usize =
        page.excerpts.iter().flat_map(|excerpt| &excerpt.lines).filter(|line| line.matches).count();
    let _ = write!(
        out,
        "{shown} of {} of {handle}{looked} that have `{query}`.{beyond}",
        count(*matching, "line")
    );
    if let Some((left, cursor)) = &page.left {
        let _ = write!(out, " {left} left: {}", kept.next(handle, cursor));
    }
    if let Some(further) = further(&page.excerpts) {
        let _ = write!(out, "\nMore of one: {further}");
    }
    out
}

fn push_excerpt(out: &mut String, excerpt: &Excerpt, place: Place) {
    let name = match &excerpt.of {
        Card::Message(card) => lines::message(card),
        Card::Summary(card) => lines::summary(card),
    };
    let _ = writeln!(out, "{name}{} · {}:", lines::place(place), count(excerpt.total, "line"));
    for line in &excerpt.lines {
        let sign = if line.matches { ':' } else { '-' };
        let _ = writeln!(out, "{}{sign} {}", line.number, lines::marked(&line.snippet, lines::in_marks));
    }
}

/// The call for the lines around the first match.
fn further(excerpts: &[Excerpt]) -> Option<String> {
    let message = excerpts.iter().find_map(|excerpt| {
        Some((excerpt.of.message()?, excerpt.lines.iter().find(|line| line.matches)?.number))
    });
    let (card, line) = message?;
    let lines = format!("{}-{}", line.saturating_sub(AROUND_A_LINE).max(1), line + AROUND_A_LINE);
    Some(call(&json!({"summary_id": card.handle, "lines": lines})))
}
