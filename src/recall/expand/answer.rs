//! The request and the answer of an expansion.

use super::{Inside, Neighborhood};
use crate::recall::grep::Place;
use crate::recall::page::Slice;
use crate::recall::{MessageCard, SummaryCard};

/// What to expand, and how.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    /// The id of a summary or a message, or a prefix of it.
    pub id: String,
    /// Tokens of the answer; clamped.
    pub max_tokens: usize,
    /// Where to continue, from the previous page.
    pub cursor: Option<String>,
    /// The stored JSON of messages instead of their text.
    pub raw: bool,
    /// Levels below a summary to open; clamped.
    pub depth: u32,
    /// Only these lines of a message's text, `100-180` or `100`, from 1. A page starts there, and the cursor
    /// continues within them.
    pub lines: Option<String>,
    /// Messages to show on each side of a message; 0 for none; clamped.
    pub around: usize,
    /// Whether to show the message's whole turn.
    pub turn: bool,
    /// Only the lines that match these words.
    pub query: Option<String>,
}

/// A page of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Expansion {
    /// A message.
    Message(MessagePage),
    /// A summary and its sources.
    Summary(SummaryPage),
    /// A message with its neighbors.
    Around(Neighborhood),
    /// A turn, from the user's message to the next one.
    Turn(TurnPage),
    /// The matches in a message or a summary.
    Inside(Inside),
}

/// A page of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessagePage {
    /// Its header.
    pub card: MessageCard,
    /// Where it is relative to the current branch.
    pub place: Place,
    /// The size of its whole text in bytes.
    pub bytes: usize,
    /// The page. If lines were requested, its total ends with them.
    pub slice: Slice,
    /// Its images, on the first page.
    pub images: Vec<Image>,
}

/// A stored image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The type, such as `image/png`.
    pub mime_type: String,
    /// Base64.
    pub data: String,
}

/// A page of an opened summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryPage {
    /// The requested summary.
    pub handle: String,
    /// Where its messages are relative to the current branch.
    pub place: Place,
    /// The number of opened levels.
    pub depth: u32,
    /// Whether there are more levels below.
    pub deeper: bool,
    /// The contents of this page.
    pub sections: Vec<Section>,
    /// How to continue; `None` on the last page.
    pub left: Option<Left>,
}

/// A page of a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TurnPage {
    /// The requested message.
    pub handle: String,
    /// The number of the turn's messages.
    pub messages: usize,
    /// The contents of this page.
    pub sections: Vec<Section>,
    /// How to continue; `None` on the last page.
    pub left: Option<Left>,
}

/// One part of an opened summary or a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// A summary's text.
    Summary(SummaryCard, Slice),
    /// The sources of a condensed summary, in order.
    Children(String, Vec<SummaryCard>),
    /// A message; if it begins here, with the images that fit.
    Message(MessageCard, Slice, Pictures),
}

/// The images of a message that begins on a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pictures {
    /// Those that fit.
    pub shown: Vec<Image>,
    /// The number of those that don't fit; only the message's own page shows them.
    pub left: usize,
}

/// The contents of later pages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// Bytes left of the section in which the page ended.
    pub bytes: usize,
    /// The number of summaries left to open.
    pub summaries: usize,
    /// The number of messages left to show.
    pub messages: usize,
    /// The start of the next page.
    pub cursor: String,
}
