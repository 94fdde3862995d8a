//! Drill-down: a whole message, or a summary with its sources, in pages that omit no byte.
//!
//! A summary opens into *sections*, breadth first: its text, the list of its children, their texts, and so
//! on; the messages of the leaf summaries come last. A cursor names a section and a byte in it, so that a
//! page reads only what it shows. The sections at a smaller depth are a prefix of those at a greater one.
//!
//! It can also show a message with its neighbors on the branch ([`around`]), or only the matching lines of a
//! message or a whole summary ([`inside`]).

mod answer;
mod around;
mod inside;
mod lines;

use std::borrow::Cow;
use tokio_util::sync::CancellationToken;

use super::grep::Place;
use super::page::{Budget, HEADER, Slice};
use super::resolve::{Target, resolve};
use super::visibility::Visibility;
use super::{MessageCard, Scope, SummaryCard};
use crate::dag::Sources;
use crate::error::{Error, Result};
use crate::ids::{MessageId, SummaryId};
use crate::model::{Message, Part, original_of};
use crate::store::{Shown, View};
use crate::{text, tokens};

pub use answer::{Expansion, Image, Left, MessagePage, Opened, Request, Section, SectionsPage};
pub use around::Neighborhood;
pub use inside::{Excerpt, Inside};

/// Tokens per page by default.
const DEFAULT_TOKENS: usize = 4_000;
/// The most tokens per page.
const MOST_TOKENS: usize = 8_000;
/// The fewest tokens per page: a smaller one would be all headers.
const FEWEST_TOKENS: usize = 200;
/// Tokens for the first header and the closing line.
const FRAME: usize = 100;
/// Approximate tokens of a child's line in a list.
const LINE: usize = 45;
/// The most levels that can be opened at once.
const DEEPEST: u32 = 10;

/// A request with everything needed to answer it.
struct Asked<'a> {
    view: &'a View<'a>,
    sight: Visibility<'a>,
    request: &'a Request,
}

/// A section that is not read yet.
#[derive(Clone, Copy)]
enum Heading {
    Summary(SummaryId),
    Children(SummaryId),
    Message(MessageId),
}

/// Answers `request`, seen from `scope`.
///
/// # Errors
/// [`crate::error::Code::Invalid`] for an id that names nothing or several things, for a cursor from no page
/// of this request, and for options that exclude each other; [`crate::error::Code::Cancelled`] when `cancel`
/// was raised.
pub fn expand(
    view: &View<'_>,
    scope: &Scope,
    request: &Request,
    cancel: &CancellationToken,
) -> Result<Expansion> {
    contradictions(request)?;
    let target = resolve(view, scope, &request.id)?;
    let asked = Asked { view, sight: Visibility::new(view, scope)?, request };
    match target {
        _ if request.query.is_some() => asked.inside(target, cancel).map(Expansion::Inside),
        Target::Message(id) if request.around > 0 => asked.around(id).map(Expansion::Around),
        Target::Message(id) if request.turn => asked.turn_page(id).map(Expansion::Sections),
        Target::Message(id) => asked.message_page(id).map(Expansion::Message),
        Target::Summary(id) => {
            only_of_messages(request)?;
            asked.summary_page(id).map(Expansion::Sections)
        }
    }
}

/// A whole message or summary, whatever its size: its text, or with `raw` a message's stored JSON, and its
/// images.
///
/// # Errors
/// As [`expand`] for the id.
pub fn whole(view: &View<'_>, scope: &Scope, id: &str, raw: bool) -> Result<(String, Vec<Image>)> {
    match resolve(view, scope, id)? {
        Target::Message(id) => {
            let (_, message, text) = read_message(view, id, raw)?;
            Ok((text, if raw { Vec::new() } else { images(message) }))
        }
        Target::Summary(id) => Ok((view.summaries().summary(id)?.text, Vec::new())),
    }
}

/// Rejects options that exclude each other.
fn contradictions(request: &Request) -> Result<()> {
    let asked = [
        ("around", request.around > 0),
        ("turn", request.turn),
        ("query", request.query.is_some()),
        ("lines", request.lines.is_some()),
    ];
    let mut asked = asked.into_iter().filter(|(_, is_asked)| *is_asked).map(|(name, _)| name);
    if let (Some(one), Some(other)) = (asked.next(), asked.next()) {
        return Err(Error::invalid(format!("{one} and {other} exclude each other: remove one of them")));
    }
    if request.raw && request.query.is_some() {
        return Err(Error::invalid(
            "raw and query exclude each other: JSON has one line, remove one of them",
        ));
    }
    if request.around > 0 && request.cursor.is_some() {
        return Err(Error::invalid("around comes in one page: use either it or the cursor"));
    }
    Ok(())
}

fn only_of_messages(request: &Request) -> Result<()> {
    let id = request.id.trim();
    let without = format!("leave it out to see the messages of {id}");
    let (what, remedy) = match request {
        _ if request.lines.is_some() => {
            ("lines are", "look inside it with query, or take the id of one of its messages".to_owned())
        }
        _ if request.turn => ("turn is", without),
        _ if request.around > 0 => ("around is", format!("{without}, and take the id of one")),
        _ => return Ok(()),
    };
    Err(Error::invalid(format!("{what} of a message and {id} is a summary: {remedy}")))
}

impl Asked<'_> {
    fn message_page(&self, id: MessageId) -> Result<MessagePage> {
        let (card, message, text) = read_message(self.view, id, self.request.raw)?;
        let wanted = match &self.request.lines {
            Some(lines) => lines::bytes_of(&text, lines)?,
            None => 0..text.len(),
        };
        let from = match &self.request.cursor {
            Some(cursor) => cursor.trim().parse().map_err(|_| self.foreign_cursor())?,
            None => wanted.start,
        };
        if from < wanted.start || from > wanted.end {
            return Err(self.foreign_cursor());
        }
        let slice = self.slice(&text[..wanted.end], from, &mut self.budget())?;
        let slice = slice.ok_or_else(|| self.foreign_cursor())?;
        let images = if from == 0 && !self.request.raw { images(message) } else { Vec::new() };
        Ok(MessagePage { card, place: self.sight.place(id)?, bytes: text.len(), slice, images })
    }

    fn summary_page(&self, id: SummaryId) -> Result<SectionsPage> {
        let depth = self.request.depth.clamp(1, DEEPEST);
        let (sections, left) = self.sections(&headings(self.view, id, depth)?)?;
        let root = self.view.summaries().summary(id)?;
        let (handle, place) = (root.hash.summary_handle(), self.sight.place_of_summary(id)?);
        let of = Opened::Summary { depth, deeper: root.depth >= depth };
        Ok(SectionsPage { handle, of, place, sections, left })
    }

    fn turn_page(&self, id: MessageId) -> Result<SectionsPage> {
        let branch = self.sight.branch()?;
        let (visible, asked) = (&branch.visible, self.view.messages().original(id)?);
        let hash = self.view.messages().message(asked)?.lineage;
        let at = branch.position(asked).ok_or_else(|| {
            let id = self.request.id.trim();
            Error::invalid(format!(
                "{id} was not said on this branch: leave turn out, or ask with around instead"
            ))
        })?;
        let is_request = |message: &Shown| message.is_request;
        let start = visible[..=at].iter().rposition(is_request).unwrap_or_default();
        let rest = &visible[at + 1..];
        let end = rest.iter().position(is_request).map_or(visible.len(), |next| at + 1 + next);
        let turn: Vec<Heading> =
            visible[start..end].iter().map(|message| Heading::Message(message.seen)).collect();
        let (sections, left) = self.sections(&turn)?;
        let of = Opened::Turn { messages: turn.len() };
        Ok(SectionsPage { handle: hash.message_handle(), of, place: Place::Here, sections, left })
    }

    /// A page of `headings`, and what is left after it.
    fn sections(&self, headings: &[Heading]) -> Result<(Vec<Section>, Option<Left>)> {
        let (mut at, mut from) = match &self.request.cursor {
            Some(cursor) => section_and_byte(cursor).ok_or_else(|| self.foreign_cursor())?,
            None => (0, 0),
        };
        if at >= headings.len() {
            return Err(self.foreign_cursor());
        }
        let mut budget = self.budget();
        let mut sections = Vec::new();
        let mut broken_off = 0;
        while let (Some(heading), 0) = (headings.get(at), broken_off) {
            let Some(section) = self.read_section(*heading, from, &mut budget)? else { break };
            (at, from, broken_off) = match section.slice() {
                Some(slice) if slice.left() > 0 => (at, slice.range.end, slice.left()),
                _ => (at + 1, 0, 0),
            };
            sections.push(section);
        }
        Ok((sections, left(&headings[at..], from, broken_off, at)))
    }

    /// Reads a section from byte `from` as far as the budget allows; `None` if too little room is left to
    /// begin it.
    fn read_section(&self, heading: Heading, from: usize, budget: &mut Budget) -> Result<Option<Section>> {
        let (view, raw) = (self.view, self.request.raw);
        match heading {
            Heading::Summary(id) => {
                let summary = view.summaries().summary(id)?;
                let slice = self.slice(&summary.text, from, budget)?;
                Ok(slice.map(|slice| Section::Summary(SummaryCard::of(&summary), slice)))
            }
            Heading::Children(id) => {
                let Sources::Summaries(children) = view.summaries().edges(id)?.sources else {
                    return Ok(None);
                };
                if !budget.take_whole(children.len() * LINE) {
                    return Ok(None);
                }
                let handle = view.summaries().summary(id)?.hash.summary_handle();
                Ok(Some(Section::Children(handle, SummaryCard::read_all(view, &children)?)))
            }
            Heading::Message(id) => {
                let (card, message, text) = read_message(view, id, raw)?;
                let Some(slice) = self.slice(&text, from, budget)? else { return Ok(None) };
                let mut images = if from == 0 && !raw { images(message) } else { Vec::new() };
                let all = images.len();
                images.truncate(images.iter().take_while(|_| budget.take_whole(tokens::IMAGE)).count());
                let images_left = all - images.len();
                Ok(Some(Section::Message { card, slice, images, images_left }))
            }
        }
    }

    fn slice(&self, text: &str, from: usize, budget: &mut Budget) -> Result<Option<Slice>> {
        let begins = from == 0 || (from < text.len() && text.is_char_boundary(from));
        if begins { Ok(budget.take(text, from)) } else { Err(self.foreign_cursor()) }
    }

    fn budget(&self) -> Budget {
        Budget::new(self.budget_tokens())
    }

    /// Tokens of a page without its frame.
    fn budget_tokens(&self) -> usize {
        let wanted = self.request.max_tokens;
        let wanted = if wanted == 0 { DEFAULT_TOKENS } else { wanted };
        wanted.clamp(FEWEST_TOKENS, MOST_TOKENS) - FRAME
    }

    fn foreign_cursor(&self) -> Error {
        Error::invalid(format!(
            "the cursor `{}` belongs to no page of {}: leave it out to start at the beginning",
            text::one_line(self.request.cursor.as_deref().unwrap_or_default(), 40),
            self.request.id.trim()
        ))
    }
}

/// The contents of `rest`, with `bytes` left of its first section.
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

/// The sections of a summary opened `depth` levels deep.
fn headings(view: &View<'_>, root: SummaryId, depth: u32) -> Result<Vec<Heading>> {
    let mut headings = vec![Heading::Summary(root)];
    let mut level = vec![root];
    let mut messages = Vec::new();
    for below in 0..=depth {
        let mut next = Vec::new();
        for id in &level {
            match view.summaries().edges(*id)?.sources {
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

/// The original of a message, with the text to be divided into pages.
fn read_message(view: &View<'_>, id: MessageId, raw: bool) -> Result<(MessageCard, Message, String)> {
    let stored = view.messages().message(view.messages().original(id)?)?;
    let card = MessageCard::of(&stored);
    let message = Message::parse(&stored.json);
    let text = match raw {
        true => original_of(&stored.json).map(Cow::into_owned).unwrap_or(stored.json),
        false => message.readable(),
    };
    Ok((card, message, text))
}

fn images(message: Message) -> Vec<Image> {
    let image = |part| match part {
        Part::Image { mime_type, data } => Some(Image { mime_type, data }),
        _ => None,
    };
    message.parts.into_iter().filter_map(image).collect()
}

fn section_and_byte(cursor: &str) -> Option<(usize, usize)> {
    let (section, byte) = cursor.trim().split_once(':')?;
    Some((section.parse().ok()?, byte.parse().ok()?))
}

impl Expansion {
    /// The original texts that are shown.
    #[must_use]
    pub fn texts(&self) -> Vec<&str> {
        let slices: Vec<&Slice> = match self {
            Self::Message(page) => vec![&page.slice],
            Self::Sections(page) => page.sections.iter().filter_map(Section::slice).collect(),
            Self::Around(page) => page.messages.iter().map(|message| &message.slice).collect(),
            Self::Inside(_) => Vec::new(),
        };
        slices.into_iter().map(|slice| slice.text.as_str()).collect()
    }
}

impl Section {
    /// The section's text, if it has one.
    #[must_use]
    pub fn slice(&self) -> Option<&Slice> {
        match self {
            Self::Summary(_, slice) | Self::Message { slice, .. } => Some(slice),
            Self::Children(..) => None,
        }
    }
}
