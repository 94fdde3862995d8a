//! `lcm_expand`: a whole message, or a summary with its sources, in pages that omit no byte, or only a
//! requested part of them.
//!
//! A summary opens into *sections*, breadth first: its text, the list of its children, their texts, and so
//! on; the messages of the leaf summaries come last. A cursor names a section and a byte in it, so that a
//! page reads only what it shows. The sections at a smaller depth are a prefix of those at a greater one.
//!
//! It can also show a message with its neighbors on the branch ([`around`]), or only the matching lines of a
//! message or a whole summary ([`inside`]).

mod around;
mod inside;
mod page;
mod ranges;

use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::parameters::{read, schema};
use super::{Block, IDS, lines};
use lcm_model::dag::Sources;
use lcm_model::error::{Error, Result};
use lcm_model::frames::{Fence, Tags};
use lcm_model::ids::{MessageId, SummaryId};
use lcm_model::text::{count, one_line};
use lcm_model::tokens;
use lcm_recall::grep::Location;
use lcm_recall::{Image, NodeId, Original, Scope, SummaryCard, Visibility, resolve};
use lcm_store::{Shown, View};
use page::{Budget, HEADER, Slice};

/// The tool's name.
pub const NAME: &str = "lcm_expand";

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

/// The name of the fence around a text, before its random part, and what resembles it in a text.
const CONTENT: &str = "content";
const LOOK_ALIKES: Tags = Tags { closing: &[CONTENT], both: &["content-"] };
/// Random digits in its name. They are few because every text pays for them twice; no fenced text contains
/// the name.
const DIGITS: usize = 4;

/// The arguments of a call.
#[derive(Debug, Deserialize, JsonSchema)]
struct ExpandParameters {
    /// A summary (s-…) or a message (m-…); any unique prefix.
    #[serde(rename = "summary_id")]
    id: String,
    /// Messages before and after it, at most 20.
    #[serde(default)]
    around: usize,
    #[serde(default)]
    turn: bool,
    /// Only the lines with these words.
    query: Option<String>,
    /// E.g. 100-180.
    lines: Option<String>,
    /// Levels below a summary to open. Default: 1.
    #[serde(default)]
    depth: u32,
    /// Per page. Default: 4000, at most 8000.
    #[serde(default)]
    max_tokens: usize,
    /// From the page before.
    cursor: Option<String>,
    /// The stored JSON.
    #[serde(default)]
    raw: bool,
}

/// A call with everything needed to answer it.
struct Expansion<'a> {
    view: &'a View<'a>,
    sight: Visibility<'a>,
    request: ExpandParameters,
}

/// A section that is not read yet.
#[derive(Clone, Copy)]
enum Heading {
    Summary(SummaryId),
    Children(SummaryId),
    Message(MessageId),
}

pub(super) fn spec() -> Value {
    json!({
        "name": NAME,
        "label": "Expand history",
        "description": "Bring back the original: a message word for word, with its neighbors, some of its lines or what matches; \
            or what a summary was made from. Long ones come in pages.",
        "parameters": schema::<ExpandParameters>(),
    })
}

pub(super) fn answer(
    view: &View<'_>,
    scope: &Scope,
    arguments: &str,
    cancel: &CancellationToken,
) -> Result<Vec<Block>> {
    let request: ExpandParameters = read(NAME, arguments)?;
    contradictions(&request)?;
    let target = resolve(view, scope, &request.id, IDS)?;
    let asked = Expansion { view, sight: Visibility::new(view, scope)?, request };
    match target {
        _ if asked.request.query.is_some() => asked.inside(target, cancel),
        NodeId::Message(id) if asked.request.around > 0 => asked.around(id),
        NodeId::Message(id) if asked.request.turn => asked.turn(id),
        NodeId::Message(id) => asked.message(id),
        NodeId::Summary(id) => {
            only_of_messages(&asked.request)?;
            asked.summary(id)
        }
    }
}

/// Rejects options that exclude each other.
fn contradictions(request: &ExpandParameters) -> Result<()> {
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

fn only_of_messages(request: &ExpandParameters) -> Result<()> {
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

/// An answer in the making. What is quoted is fenced when all of it is known.
#[derive(Default)]
struct Page {
    /// Words of ours, each with a text that follows it.
    pieces: Vec<(String, Option<String>)>,
    images: Vec<Image>,
}

impl Page {
    fn say(&mut self, words: impl Into<String>) {
        self.pieces.push((words.into(), None));
    }

    /// Adds a text below a heading.
    fn quote(&mut self, heading: String, text: String) {
        self.pieces.push((heading, Some(text)));
    }

    /// The same, where the heading does not tell the size yet.
    fn quote_part(&mut self, heading: &str, Slice { text, range, total }: Slice) {
        let part = match range.len() < total {
            true => format!(" · bytes {}–{}", range.start, range.end),
            false => String::new(),
        };
        self.quote(format!("{heading} · {total} bytes{part}"), text);
    }

    fn finish(self) -> Vec<Block> {
        let texts: Vec<&str> = self.pieces.iter().filter_map(|(_, text)| text.as_deref()).collect();
        let fence = Fence::around(CONTENT, DIGITS, &texts);
        let mut out = String::new();
        for (words, text) in &self.pieces {
            out += words;
            let Some(text) = text else { continue };
            // If it contains a lookalike of the fence, the heading says where it ends.
            if LOOK_ALIKES.are_in(text) {
                out += &format!(" · up to </{fence}>");
            }
            out += &format!("\n{}\n", fence.enclose(text));
        }
        [Block::Text(out)].into_iter().chain(self.images.into_iter().map(Block::Image)).collect()
    }
}

impl Expansion<'_> {
    fn message(&self, id: MessageId) -> Result<Vec<Block>> {
        let Original { card, text, images, .. } = Original::read(self.view, id, self.request.raw)?;
        let wanted = match &self.request.lines {
            Some(lines) => ranges::bytes_of(&text, lines)?,
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
        let (left, end, handle) = (slice.left(), slice.range.end, &card.handle);
        let (name, place) = (lines::message(&card), lines::place(self.sight.place(id)?));
        let mut page = Page::default();
        page.quote(format!("{name}{place} · {} bytes · bytes {from}–{end}", text.len()), slice.text);
        page.say(match left {
            0 if self.request.lines.is_some() => format!("End of these lines of {handle}."),
            0 => format!("End of {handle}."),
            left => format!("{left} bytes left: {}", self.next(handle, &end.to_string())),
        });
        page.images = if from == 0 { images } else { Vec::new() };
        Ok(page.finish())
    }

    fn summary(&self, id: SummaryId) -> Result<Vec<Block>> {
        let depth = self.request.depth.clamp(1, DEEPEST);
        let (root, place) = (self.view.summaries().summary(id)?, self.sight.place_of_summary(id)?);
        let handle = root.hash.summary_handle();
        let end = match root.depth >= depth {
            false => format!("End of {handle}."),
            true => format!(
                "End of {handle} at depth {depth}. Further down: lcm_expand on the id of a summary under it, or with \
                 \"depth\":{}.",
                depth + 1
            ),
        };
        self.sections(Page::default(), &headings(self.view, id, depth)?, &handle, place, end)
    }

    fn turn(&self, id: MessageId) -> Result<Vec<Block>> {
        let branch = self.sight.branch()?;
        let (visible, asked) = (&branch.visible, self.view.messages().original(id)?);
        let handle = self.view.messages().message(asked)?.lineage.message_handle();
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
        let mut page = Page::default();
        page.say(format!("The turn of {handle}, {}\n\n", count(turn.len(), "message")));
        self.sections(page, &turn, &handle, Location::Here, format!("End of the turn of {handle}."))
    }

    /// Adds a page of `headings`, which belong to `handle`, and what is left after it, or the `end`.
    fn sections(
        &self,
        mut page: Page,
        headings: &[Heading],
        handle: &str,
        mut place: Location,
        end: String,
    ) -> Result<Vec<Block>> {
        let (mut at, mut from) = match &self.request.cursor {
            Some(cursor) => section_and_byte(cursor).ok_or_else(|| self.foreign_cursor())?,
            None => (0, 0),
        };
        if at >= headings.len() {
            return Err(self.foreign_cursor());
        }
        let mut budget = self.budget();
        let mut broken_off = 0;
        while let (Some(heading), 0) = (headings.get(at), broken_off) {
            // Stated once: everything under a summary has the same place.
            let place = lines::place(std::mem::replace(&mut place, Location::Here));
            let Some((end, left)) = self.section(&mut page, *heading, from, &mut budget, place)? else {
                break;
            };
            page.say("\n");
            (at, from, broken_off) = if left > 0 { (at, end, left) } else { (at + 1, 0, 0) };
        }
        page.say(match left(&headings[at..], broken_off) {
            Some(left) => format!("{left} left: {}", self.next(handle, &format!("{at}:{from}"))),
            None => end,
        });
        Ok(page.finish())
    }

    /// Adds a section from byte `from` as far as the budget allows. Returns where that ends, and how many bytes
    /// are left; `None` if too little room is left to begin it.
    fn section(
        &self,
        page: &mut Page,
        heading: Heading,
        from: usize,
        budget: &mut Budget,
        place: &str,
    ) -> Result<Option<(usize, usize)>> {
        let summaries = self.view.summaries();
        match heading {
            Heading::Summary(id) => {
                let summary = summaries.summary(id)?;
                let Some(slice) = self.slice(&summary.text, from, budget)? else { return Ok(None) };
                let (end, card) = ((slice.range.end, slice.left()), SummaryCard::of(&summary));
                let model = card.model.as_ref().map(|model| format!(" · {}", lines::name(model)));
                page.quote_part(&(lines::summary(&card) + &model.unwrap_or_default() + place), slice);
                Ok(Some(end))
            }
            Heading::Children(id) => {
                let Sources::Summaries(children) = summaries.sources(id)? else { return Ok(None) };
                if !budget.take_whole(children.len() * LINE) {
                    return Ok(None);
                }
                let parent = summaries.summary(id)?.hash.summary_handle();
                let children = SummaryCard::read_all(self.view, &children)?;
                let heading = format!("{parent}{place} was made from {}", count(children.len(), "summary"));
                page.say(lines::list(&heading, children.iter().map(lines::titled)) + "\n");
                Ok(Some((0, 0)))
            }
            Heading::Message(id) => {
                let Original { card, text, mut images, .. } =
                    Original::read(self.view, id, self.request.raw)?;
                let Some(slice) = self.slice(&text, from, budget)? else { return Ok(None) };
                let end = (slice.range.end, slice.left());
                page.quote_part(&(lines::message(&card) + place), slice);
                if from > 0 {
                    return Ok(Some(end));
                }
                let fitting = images.iter().take_while(|_| budget.take_whole(tokens::IMAGE)).count();
                if fitting < images.len() {
                    // Only the message's own page shows them.
                    let (left, own) =
                        (count(images.len() - fitting, "picture"), json!({"summary_id": card.handle}));
                    page.say(format!("{left} of it had no room here: {}\n", call(&own)));
                }
                images.truncate(fitting);
                page.images.extend(images);
                Ok(Some(end))
            }
        }
    }

    /// The call for `id` that continues at `cursor`. It repeats the other arguments.
    fn next(&self, id: &str, cursor: &str) -> String {
        let ExpandParameters { raw, turn, lines, query, max_tokens, .. } = &self.request;
        let depth = Some(self.request.depth).filter(|depth| *depth > 1);
        let mut arguments = json!({
            "summary_id": id, "cursor": cursor, "raw": raw, "turn": turn, "depth": depth, "lines": lines,
            "query": query, "max_tokens": max_tokens,
        });
        if let Value::Object(arguments) = &mut arguments {
            arguments.retain(|_, value| !value.is_null() && *value != false && *value != 0);
        }
        call(&arguments)
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
            one_line(self.request.cursor.as_deref().unwrap_or_default(), 40),
            self.request.id.trim()
        ))
    }
}

/// What `rest` contains, with `bytes` left of its first section; `None` if nothing.
fn left(rest: &[Heading], bytes: usize) -> Option<String> {
    let behind = if bytes > 0 { rest.get(1..)? } else { rest };
    let number = |wanted: fn(&Heading) -> bool| behind.iter().filter(|heading| wanted(heading)).count();
    let counts = [
        (bytes, "byte"),
        (number(|heading| matches!(heading, Heading::Summary(_))), "summary"),
        (number(|heading| matches!(heading, Heading::Message(_))), "message"),
    ];
    let some: Vec<String> =
        counts.into_iter().filter(|(n, _)| *n > 0).map(|(n, noun)| count(n, noun)).collect();
    // Only a list of children.
    let some = if some.is_empty() { "A list of summaries".to_owned() } else { some.join(", ") };
    (!rest.is_empty()).then_some(some)
}

/// The sections of a summary opened `depth` levels deep.
fn headings(view: &View<'_>, root: SummaryId, depth: u32) -> Result<Vec<Heading>> {
    let mut headings = vec![Heading::Summary(root)];
    let mut level = vec![root];
    let mut messages = Vec::new();
    for below in 0..=depth {
        let mut next = Vec::new();
        for id in &level {
            match view.summaries().sources(*id)? {
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

fn section_and_byte(cursor: &str) -> Option<(usize, usize)> {
    let (section, byte) = cursor.trim().split_once(':')?;
    Some((section.parse().ok()?, byte.parse().ok()?))
}

fn call(arguments: &Value) -> String {
    format!("{NAME} {arguments}")
}
