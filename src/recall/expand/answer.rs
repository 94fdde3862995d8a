//! The request and the answer of an expansion.

use schemars::JsonSchema;
use serde::Deserialize;

use super::{Inside, Neighborhood};
use crate::recall::grep::Place;
use crate::recall::page::Slice;
use crate::recall::{MessageCard, SummaryCard};

/// What to expand, and how: the arguments of `lcm_expand`, whose schema has these comments.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
pub struct Request {
    /// A summary (s-…) or a message (m-…); any unique prefix.
    #[serde(rename = "summary_id")]
    pub id: String,
    /// Messages before and after it, at most 20.
    #[serde(default)]
    pub around: usize,
    #[serde(default)]
    pub turn: bool,
    /// Only the lines with these words.
    pub query: Option<String>,
    /// E.g. 100-180.
    pub lines: Option<String>,
    /// Levels below a summary to open. Default: 1.
    #[serde(default)]
    pub depth: u32,
    /// Per page. Default: 4000, at most 8000.
    #[serde(default)]
    pub max_tokens: usize,
    /// From the page before.
    pub cursor: Option<String>,
    /// The stored JSON.
    #[serde(default)]
    pub raw: bool,
}

/// A page of an answer.
#[derive(Clone, Debug, PartialEq)]
pub enum Expansion {
    /// A message.
    Message(MessagePage),
    /// A summary and its sources, or a turn, from the user's message to the next one.
    Sections(SectionsPage),
    /// A message with its neighbors.
    Around(Neighborhood),
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

/// A page of an opened summary or a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionsPage {
    /// The requested summary, or the requested message of the turn.
    pub handle: String,
    pub of: Opened,
    /// Where its messages are relative to the current branch.
    pub place: Place,
    /// The contents of this page.
    pub sections: Vec<Section>,
    /// How to continue; `None` on the last page.
    pub left: Option<Left>,
}

/// What the sections of a page belong to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opened {
    Summary {
        /// The number of opened levels.
        depth: u32,
        /// Whether there are more levels below.
        deeper: bool,
    },
    Turn {
        messages: usize,
    },
}

/// One part of an opened summary or a turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Section {
    /// A summary's text.
    Summary(SummaryCard, Slice),
    /// The sources of a condensed summary, in order.
    Children(String, Vec<SummaryCard>),
    /// A message; if it begins here, with the images that fit.
    Message {
        card: MessageCard,
        slice: Slice,
        images: Vec<Image>,
        /// The number of those that don't fit; only the message's own page shows them.
        images_left: usize,
    },
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
