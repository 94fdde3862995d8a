//! Drill-down: a message whole, or a summary with what it was made from, in pages that leave no byte out.
//!
//! A summary opens into *sections*, breadth first: its text, its children by name, their texts, … the messages of the
//! leaf summaries last. A cursor names a section and a byte in it, so a page reads only what it shows. The sections of
//! a smaller depth are the first sections of a greater one.

use std::ops::Range;

use super::page::{Budget, Slice};
use super::resolve::{Target, resolve};
use super::{MessageCard, Scope, SummaryCard};
use crate::dag::Sources;
use crate::error::{Error, Result};
use crate::ids::{MessageId, SummaryId};
use crate::model::{Message, Part};
use crate::store::View;
use crate::text;

/// Tokens of one page where the request does not say.
pub const DEFAULT_TOKENS: usize = 4_000;
/// Tokens of one page at most.
pub const MOST_TOKENS: usize = 8_000;
/// Tokens of one page at least: a smaller one would be all headers.
const FEWEST_TOKENS: usize = 200;
/// What the first header and the closing line take of them.
const FRAME: usize = 100;
/// What one child's line in a list costs, about.
const LINE: usize = 45;
/// Levels that can be opened at once.
const DEEPEST: u32 = 10;

/// What is to be expanded, and how.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Id of a summary or a message, or a prefix of it.
    pub id: String,
    /// Tokens of the answer; brought into bounds.
    pub max_tokens: usize,
    /// Where to go on, as the page before said.
    pub cursor: Option<String>,
    /// The stored JSON of messages instead of their text.
    pub raw: bool,
    /// Levels below a summary to open; brought into bounds.
    pub depth: u32,
    /// Of a message's text only these lines, `100-180` or `100`, from 1; a page begins there, and the cursor goes on in them.
    pub lines: Option<String>,
}

/// A page of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Expansion {
    /// Of a message.
    Message(MessagePage),
    /// Of a summary and what it was made from.
    Summary(SummaryPage),
}

/// A page of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePage {
    /// Which message.
    pub card: MessageCard,
    /// Bytes of its whole text.
    pub bytes: usize,
    /// The page; where lines were asked for, of the text up to their end.
    pub slice: Slice,
    /// Its pictures, with the first page.
    pub images: Vec<Image>,
}

/// A picture as it was stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// `image/png` and the like.
    pub mime_type: String,
    /// Base64.
    pub data: String,
}

/// A page of an opened summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryPage {
    /// The summary that was asked for.
    pub handle: String,
    /// The levels that are opened.
    pub depth: u32,
    /// There are more levels below.
    pub deeper: bool,
    /// What this page shows.
    pub sections: Vec<Section>,
    /// How to go on; `None` on the last page.
    pub left: Option<Left>,
}

/// One piece of an opened summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// A summary's text.
    Summary(SummaryCard, Slice),
    /// What a condensed summary was made from, in order.
    Children(String, Vec<SummaryCard>),
    /// A message of a leaf summary.
    Message(MessageCard, Slice),
}

/// What the pages to come hold.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Bytes of the section that the page broke off in.
    pub bytes: usize,
    /// Summaries yet to be opened.
    pub summaries: usize,
    /// Messages yet to be shown.
    pub messages: usize,
    /// Where the next page begins.
    pub cursor: String,
}

/// A section before it is read.
#[derive(Clone, Copy)]
enum Heading {
    Summary(SummaryId),
    Children(SummaryId),
    Message(MessageId),
}

/// Answers `request`, asked from `scope`.
///
/// # Errors
/// [`crate::error::Code::Invalid`] for an id that names nothing or several things, and for a cursor that no page gave.
pub fn expand(view: &View<'_>, scope: &Scope, request: &Request) -> Result<Expansion> {
    match resolve(view, scope, &request.id)? {
        Target::Message(id) => message_page(view, id, request).map(Expansion::Message),
        Target::Summary(id) => summary_page(view, id, request).map(Expansion::Summary),
    }
}

fn message_page(view: &View<'_>, id: MessageId, request: &Request) -> Result<MessagePage> {
    let (card, message, text) = read_message(view, id, request.raw)?;
    let wanted = match &request.lines {
        Some(lines) => bytes_of_lines(&text, lines)?,
        None => 0..text.len(),
    };
    let from = match &request.cursor {
        Some(cursor) => cursor.trim().parse().map_err(|_| foreign_cursor(request))?,
        None => wanted.start,
    };
    if from < wanted.start || from > wanted.end {
        return Err(foreign_cursor(request));
    }
    let slice = slice(&text[..wanted.end], from, &mut budget(request), request)?;
    let slice = slice.ok_or_else(|| foreign_cursor(request))?;
    let images = if from == 0 && !request.raw { images(message) } else { Vec::new() };
    Ok(MessagePage { card, bytes: text.len(), slice, images })
}

/// Where the lines `from-to` of `text` stand; lines behind its end are left out.
fn bytes_of_lines(text: &str, lines: &str) -> Result<Range<usize>> {
    let wrong =
        |what: String| Error::invalid(format!("{what}: write the first and the last line, such as 100-180"));
    let shown = text::one_line(lines, 40);
    let (first, last) = lines.split_once(['-', '–']).unwrap_or((lines, lines));
    let number = |written: &str| written.trim().parse::<usize>().ok();
    let (Some(first), Some(last)) = (number(first), number(last)) else {
        return Err(wrong(format!("lines `{shown}` are no lines")));
    };
    if first == 0 || last < first {
        return Err(wrong(format!("lines `{shown}` are none, the first is 1")));
    }
    let mut ends = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).enumerate();
    let mut start = None;
    let mut all = 0;
    for (line, at) in ends.by_ref() {
        // The end of the text is no line.
        if at == text.len() && line > 0 {
            break;
        }
        all = line + 1;
        if line + 1 == first {
            start = Some(at);
        }
        if line == last {
            return Ok(start.unwrap_or(at)..at);
        }
    }
    match start {
        Some(start) => Ok(start..text.len()),
        None => Err(wrong(format!("lines `{shown}` are behind the end, there are {all}"))),
    }
}

fn summary_page(view: &View<'_>, id: SummaryId, request: &Request) -> Result<SummaryPage> {
    let depth = request.depth.clamp(1, DEEPEST);
    let headings = headings(view, id, depth)?;
    let (mut at, mut from) = match &request.cursor {
        Some(cursor) => section_and_byte(cursor).ok_or_else(|| foreign_cursor(request))?,
        None => (0, 0),
    };
    if at >= headings.len() {
        return Err(foreign_cursor(request));
    }
    let mut budget = budget(request);
    let mut sections = Vec::new();
    let mut broken_off = 0;
    while let (Some(heading), 0) = (headings.get(at), broken_off) {
        let Some(section) = read_section(view, *heading, from, &mut budget, request)? else { break };
        (at, from, broken_off) = match section.slice() {
            Some(slice) if slice.left() > 0 => (at, slice.range.end, slice.left()),
            _ => (at + 1, 0, 0),
        };
        sections.push(section);
    }
    let left = left(&headings[at..], from, broken_off, at);
    let root = view.summary(id)?;
    Ok(SummaryPage { handle: root.hash.summary_handle(), depth, deeper: root.depth >= depth, sections, left })
}

/// What `rest` holds, of whose first section `bytes` are still to come.
fn left(rest: &[Heading], from: usize, bytes: usize, at: usize) -> Option<Left> {
    let behind = if bytes > 0 { rest.get(1..)? } else { rest };
    let count = |wanted: fn(&Heading) -> bool| behind.iter().filter(|heading| wanted(heading)).count();
    (!rest.is_empty()).then(|| Left {
        bytes,
        summaries: count(|heading| matches!(heading, Heading::Summary(_))),
        messages: count(|heading| matches!(heading, Heading::Message(_))),
        cursor: format!("{at}:{from}"),
    })
}

/// The sections of a summary opened `depth` levels down.
fn headings(view: &View<'_>, root: SummaryId, depth: u32) -> Result<Vec<Heading>> {
    let mut headings = vec![Heading::Summary(root)];
    let mut level = vec![root];
    let mut messages = Vec::new();
    for below in 0..=depth {
        let mut next = Vec::new();
        for id in &level {
            match view.edges(*id)?.sources {
                Sources::Summaries(children) => {
                    headings.push(Heading::Children(*id));
                    next.extend(children);
                }
                Sources::Messages(sources) if below < depth => {
                    messages.extend(sources.into_iter().map(Heading::Message));
                }
                Sources::Messages(_) => {}
            }
        }
        if below == depth {
            break;
        }
        headings.extend(next.iter().copied().map(Heading::Summary));
        level = next;
    }
    headings.extend(messages);
    Ok(headings)
}

/// Reads a section from the byte `from` on, as far as the budget goes; `None` where it is not worth beginning.
fn read_section(
    view: &View<'_>,
    heading: Heading,
    from: usize,
    budget: &mut Budget,
    request: &Request,
) -> Result<Option<Section>> {
    match heading {
        Heading::Summary(id) => {
            let summary = view.summary(id)?;
            let slice = slice(&summary.text, from, budget, request)?;
            Ok(slice.map(|slice| Section::Summary(SummaryCard::of(&summary), slice)))
        }
        Heading::Children(id) => {
            let Sources::Summaries(children) = view.edges(id)?.sources else { return Ok(None) };
            if !budget.take_whole(children.len() * LINE) {
                return Ok(None);
            }
            let handle = view.summary(id)?.hash.summary_handle();
            Ok(Some(Section::Children(handle, SummaryCard::read_all(view, &children)?)))
        }
        Heading::Message(id) => {
            let (card, _, text) = read_message(view, id, request.raw)?;
            Ok(slice(&text, from, budget, request)?.map(|slice| Section::Message(card, slice)))
        }
    }
}

/// A message as it was said, with the text that is paged.
fn read_message(view: &View<'_>, id: MessageId, raw: bool) -> Result<(MessageCard, Message, String)> {
    let stored = view.message(view.original(id)?)?;
    let card = MessageCard::of(&stored);
    let message = Message::parse(&stored.json);
    let text = if raw { stored.json } else { message.readable() };
    Ok((card, message, text))
}

fn slice(text: &str, from: usize, budget: &mut Budget, request: &Request) -> Result<Option<Slice>> {
    let begins = from == 0 || (from < text.len() && text.is_char_boundary(from));
    if begins { Ok(budget.take(text, from)) } else { Err(foreign_cursor(request)) }
}

fn images(message: Message) -> Vec<Image> {
    let image = |part| match part {
        Part::Image { mime_type, data } => Some(Image { mime_type, data }),
        _ => None,
    };
    message.parts.into_iter().filter_map(image).collect()
}

fn budget(request: &Request) -> Budget {
    Budget::new(request.max_tokens.clamp(FEWEST_TOKENS, MOST_TOKENS) - FRAME)
}

fn section_and_byte(cursor: &str) -> Option<(usize, usize)> {
    let (section, byte) = cursor.trim().split_once(':')?;
    Some((section.parse().ok()?, byte.parse().ok()?))
}

fn foreign_cursor(request: &Request) -> Error {
    Error::invalid(format!(
        "the cursor `{}` belongs to no page of {}: leave it out to start at the beginning",
        text::one_line(request.cursor.as_deref().unwrap_or_default(), 40),
        request.id.trim()
    ))
}

impl Section {
    /// The text of the section, where it has one.
    #[must_use]
    pub fn slice(&self) -> Option<&Slice> {
        match self {
            Self::Summary(_, slice) | Self::Message(_, slice) => Some(slice),
            Self::Children(..) => None,
        }
    }
}
