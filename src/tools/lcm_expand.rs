//! `lcm_expand`: a message whole, a summary with what it was made from; page by page.

use std::fmt::Write as _;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::parameters::{self, read, schema};
use super::{Block, lines};
use crate::error::Result;
use crate::recall::expand::{
    DEFAULT_TOKENS, Expansion, Left, MessagePage, Request, Section, SummaryPage, expand,
};
use crate::recall::{Scope, Slice};
use crate::store::Store;
use crate::text::count;

pub(super) const NAME: &str = "lcm_expand";

/// What a call says.
#[derive(Debug, Deserialize, JsonSchema)]
struct Parameters {
    /// Id of a summary (s-…) or a message (m-…); any unique prefix.
    summary_id: String,
    /// Tokens per page, at most 8000. Default: 4000.
    #[serde(default, deserialize_with = "parameters::count")]
    max_tokens: Option<usize>,
    /// Where to go on, as the page before said.
    #[serde(default, deserialize_with = "parameters::word")]
    cursor: Option<String>,
    /// Messages as their exact stored JSON.
    #[serde(default, deserialize_with = "parameters::flag")]
    raw: bool,
    /// Of a message only these lines, e.g. 100-180.
    #[serde(default, deserialize_with = "parameters::word")]
    lines: Option<String>,
    /// Levels below a summary to open. Default: 1, what it was made from.
    #[serde(default, deserialize_with = "parameters::count")]
    depth: Option<usize>,
}

pub(super) fn spec() -> Value {
    json!({
        "name": NAME,
        "label": "Expand history",
        "description": "Bring back the original: a message word for word, or a summary with what it was made from. \
            Long ones come in pages that leave nothing out; each page says how to get the next.",
        "promptSnippet": "Bring back a compacted message word for word, or what a summary was made from",
        "parameters": schema::<Parameters>(),
    })
}

pub(super) async fn answer(store: &Store, scope: &Scope, arguments: &str) -> Result<Vec<Block>> {
    let parameters: Parameters = read(NAME, arguments)?;
    let request = Request {
        id: parameters.summary_id,
        max_tokens: parameters.max_tokens.unwrap_or(DEFAULT_TOKENS),
        cursor: parameters.cursor,
        raw: parameters.raw,
        depth: parameters.depth.map_or(1, |depth| u32::try_from(depth).unwrap_or(u32::MAX)),
        lines: parameters.lines,
    };
    let scope = scope.clone();
    store
        .read(move |view| {
            Ok(match expand(view, &scope, &request)? {
                Expansion::Message(page) => message(page, &request),
                Expansion::Summary(page) => vec![Block::Text(summary(&page, request.raw))],
            })
        })
        .await
}

fn message(page: MessagePage, request: &Request) -> Vec<Block> {
    let (range, total) = (&page.slice.range, page.bytes);
    let mut out =
        format!("{} · {total} bytes · bytes {}–{}\n", lines::message(&page.card), range.start, range.end);
    push_content(&mut out, &page.slice.text);
    let _ = match page.slice.left() {
        0 if request.lines.is_some() => write!(out, "End of these lines of {}.", page.card.handle),
        0 => write!(out, "End of {}.", page.card.handle),
        left => {
            let next = next_call(
                &page.card.handle,
                &range.end.to_string(),
                request.raw,
                1,
                request.lines.as_deref(),
            );
            write!(out, "{left} bytes left: {next}")
        }
    };
    let image =
        |image: crate::recall::expand::Image| Block::Image { data: image.data, mime_type: image.mime_type };
    [Block::Text(out)].into_iter().chain(page.images.into_iter().map(image)).collect()
}

fn summary(page: &SummaryPage, raw: bool) -> String {
    let mut out = String::new();
    for section in &page.sections {
        match section {
            Section::Summary(card, slice) => {
                let model = card.model.as_ref().map(|model| format!(" · {model}")).unwrap_or_default();
                push_section(&mut out, &(lines::summary(card) + &model), slice);
            }
            Section::Children(parent, children) => {
                let heading = format!("{parent} was made from {}", count(children.len(), "summary"));
                out.push_str(&lines::list(&heading, children.iter().map(lines::titled)));
                out.push('\n');
            }
            Section::Message(card, slice) => push_section(&mut out, &lines::message(card), slice),
        }
        out.push('\n');
    }
    match &page.left {
        Some(left) => {
            let next = next_call(&page.handle, &left.cursor, raw, page.depth, None);
            let _ = write!(out, "{} left: {next}", what_is_left(left));
        }
        None => out.push_str(&end(page)),
    }
    out
}

fn push_section(out: &mut String, heading: &str, slice: &Slice) {
    let Slice { range, total, .. } = slice;
    let _ = write!(out, "{heading} · {total} bytes");
    if range.len() < *total {
        let _ = write!(out, " · bytes {}–{}", range.start, range.end);
    }
    out.push('\n');
    push_content(out, &slice.text);
}

/// The text byte for byte, with nothing on its lines but itself.
fn push_content(out: &mut String, text: &str) {
    let _ = writeln!(out, "<content>\n{text}\n</content>");
}

fn what_is_left(left: &Left) -> String {
    let counts = [(left.bytes, "byte"), (left.summaries, "summary"), (left.messages, "message")];
    let some: Vec<String> =
        counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(n, noun)).collect();
    // A list of children alone.
    if some.is_empty() { "A list of summaries".into() } else { some.join(", ") }
}

fn end(page: &SummaryPage) -> String {
    let SummaryPage { handle, depth, .. } = page;
    match page.deeper {
        false => format!("End of {handle}."),
        true => format!(
            "End of {handle} at depth {depth}. Further down: lcm_expand on the id of a summary under it, or with \
             \"depth\":{}.",
            depth + 1
        ),
    }
}

fn next_call(id: &str, cursor: &str, raw: bool, depth: u32, lines: Option<&str>) -> String {
    let mut arguments = Map::new();
    arguments.insert("summary_id".into(), id.into());
    arguments.insert("cursor".into(), cursor.into());
    if raw {
        arguments.insert("raw".into(), true.into());
    }
    if depth != 1 {
        arguments.insert("depth".into(), depth.into());
    }
    if let Some(lines) = lines {
        arguments.insert("lines".into(), lines.into());
    }
    format!("{NAME} {}", Value::Object(arguments))
}
