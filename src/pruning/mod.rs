//! Keeping the live context lean: what of older turns gives way to short stubs, when, and how a stub reads.
//!
//! A *turn* is a user's message up to the next one; the newest is never touched. How full the context is makes its *zone*: green,
//! yellow, red. In yellow, bulky results of tools give way; in red smaller ones too, and, if that is wished, whole turns, oldest
//! first, until the context is below yellow.
//!
//! A provider's cache goes by the prompt's beginning, so all of it happens in batches that free something worth breaking the
//! cache for, and what was pruned stays as it is. Stubs stand in Pi's session; the store goes on to see what they stand for.

mod plan;
mod stub;

use serde::{Deserialize, Serialize};

use crate::config::{Pruning, Settings};
use crate::dag::{MessageKind, Visible};
use crate::error::Result;
use crate::model::Message;
use crate::store::View;

pub use plan::{Draft, Plan, plan};

/// A batch frees at least this share of the window: 1/n.
const LEAST_SHARE: usize = 10;
/// Results of so many tokens are bulky, in yellow and in red.
const BULKY: (usize, usize) = (800, 250);

/// A context, as Pi tells of it.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Live {
    /// The entry the branch ends with.
    pub leaf_id: String,
    /// The first entry that the last compaction of the branch left raw; absent where there is none.
    pub shown_from: Option<String>,
    /// Tokens of the context as Pi counts them; absent while Pi does not know.
    pub context_tokens: Option<usize>,
    /// The model's context window in tokens.
    pub context_window: Option<usize>,
    /// The session's model, as `provider/id`.
    pub model: Option<String>,
    /// Entries that somebody else is about to edit: they are left alone.
    #[serde(default)]
    pub edited: Vec<String>,
}

/// How full a context is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Zone {
    /// Nothing is pruned.
    Green,
    /// Bulky results of tools give way.
    Yellow,
    /// Smaller ones, and whole turns, give way too.
    Red,
}

impl Zone {
    /// In a word.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Green => "green",
            Self::Yellow => "yellow",
            Self::Red => "red",
        }
    }
}

/// What is pruned of a model's context, and when; all in tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What may be pruned at all.
    pub mode: Pruning,
    /// Where yellow begins, if anywhere.
    pub yellow: Option<usize>,
    /// Where red begins, if anywhere.
    pub red: Option<usize>,
    /// What a batch frees at least.
    pub least: usize,
}

impl Limits {
    /// As the settings want it for `model`, as `provider/id`, whose window holds `window` tokens.
    #[must_use]
    pub fn of(settings: &Settings, model: Option<&str>, window: usize) -> Self {
        Self {
            mode: settings.pruning,
            yellow: settings.prune_yellow.tokens(model, window),
            red: settings.prune_red.tokens(model, window),
            least: (window / LEAST_SHARE).max(1),
        }
    }

    /// The zone of a context of so many tokens.
    #[must_use]
    pub fn zone(&self, tokens: usize) -> Zone {
        let is_in = |begin: Option<usize>| begin.is_some_and(|begin| tokens >= begin);
        match (is_in(self.red), is_in(self.yellow)) {
            (true, _) => Zone::Red,
            (_, true) => Zone::Yellow,
            _ => Zone::Green,
        }
    }

    /// May anything be pruned of a context of so many tokens, going by the sizes of its messages alone?
    #[must_use]
    pub fn may_free(&self, tokens: usize, context: &[Visible]) -> bool {
        let zone = self.zone(tokens);
        if self.mode == Pruning::Off || zone == Zone::Green {
            return false;
        }
        let newest = context.iter().rposition(|message| message.seen.role == "user").unwrap_or_default();
        let counts = |message: &&Visible| self.takes_turns(zone) || message.seen.role == "toolResult";
        context[..newest].iter().filter(counts).map(Visible::shown_tokens).sum::<usize>() >= self.least
    }

    fn takes_turns(&self, zone: Zone) -> bool {
        self.mode == Pruning::Turns && zone == Zone::Red
    }
}

/// A message of the context, read.
#[derive(Clone, Debug)]
pub struct Piece {
    /// Pi's id of its entry.
    pub entry_id: String,
    /// Its short id.
    pub handle: String,
    /// What it says.
    pub message: Message,
    /// Estimated tokens of it, whole.
    pub tokens: usize,
    /// Where it was pruned, the estimated tokens of what stands in its place.
    pub pruned: Option<usize>,
    /// Somebody else has edited it.
    pub is_edited: bool,
}

impl Piece {
    /// The messages of a context.
    ///
    /// # Errors
    /// When the store can't be read.
    pub fn read_all(view: &View<'_>, context: &[Visible]) -> Result<Vec<Self>> {
        let read = |visible: &Visible| {
            Ok(Self {
                entry_id: visible.entry_id.clone(),
                handle: visible.original.message_handle(),
                message: Message::parse(&view.json_of(visible.seen.id)?),
                tokens: visible.seen.tokens,
                pruned: visible.pruned,
                is_edited: visible.seen.kind == MessageKind::Edited,
            })
        };
        context.iter().map(read).collect()
    }

    fn shown_tokens(&self) -> usize {
        self.pruned.unwrap_or(self.tokens)
    }
}
