//! Orientation: describes the session, one of its two ends, or one message or summary.

use std::collections::HashSet;

use schemars::JsonSchema;
use serde::Deserialize;

use super::grep::Location;
use super::resolve::NodeId;
use super::visibility::Visibility;
use super::{MessageCard, Scope, SessionName, SummaryCard};
use lcm_model::dag::{Piece, Sources};
use lcm_model::error::Result;
use lcm_model::facts::Facts;
use lcm_model::ids::{MessageId, SummaryId};
use lcm_model::{Files, Message, Quote};
use lcm_store::branch::Cover;
use lcm_store::{DepthCount, Shown, Totals, View};

/// Messages shown at an end of the history.
const AT_AN_END: usize = 15;
/// Requests shown beyond those messages.
const REQUESTS_AT_AN_END: usize = 10;
/// Leaf summaries shown at an end.
const LEAVES_AT_AN_END: usize = 3;
/// Characters of a message's headline.
pub const HEADLINE: usize = 120;
/// Maximum number of summaries listed above one.
const MOST_ABOVE: usize = 20;

/// The part of the history to describe.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Section {
    /// Everything, as counts and summaries.
    #[default]
    Overview,
    /// The newest messages.
    Recent,
    /// The oldest messages.
    Earliest,
    /// One message or summary.
    ById,
}

/// The history in numbers, and the current branch divided by its summaries.
pub struct Overview {
    /// Counts of this session.
    pub totals: Totals,
    /// Its summaries by depth.
    pub depths: Vec<DepthCount>,
    /// The number of the project's sessions of which anything is left.
    pub sessions: usize,
    /// The number of messages in all of them.
    pub project_messages: usize,
    /// The number of visible messages on the branch.
    pub visible: usize,
    /// Times of the first and the last visible message, in ms.
    pub times: Option<(i64, i64)>,
    /// The frontier, oldest first, with everything under it.
    pub frontier: Vec<Item>,
    /// Summaries of these that no compaction carries yet.
    pub ready: usize,
}

/// The estimated tokens of a branch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BranchTokens {
    /// Those of its visible messages.
    pub visible: usize,
    /// Those of the frontier: its summaries and the messages they leave uncovered.
    pub frontier: usize,
}

/// A part of the history.
pub enum Item {
    /// A summary and the summaries it was condensed from.
    Summary(SummaryCard, Vec<Self>),
    /// Consecutive messages without a summary.
    Messages {
        /// Their number.
        count: usize,
        /// Short id of the first.
        first: String,
        /// Short id of the last.
        last: String,
    },
}

/// One end of the branch.
pub struct End {
    /// Its messages, oldest first.
    pub messages: Vec<MessageLine>,
    /// The user's nearest messages beyond them, oldest first.
    pub requests: Vec<MessageLine>,
    /// The leaf summaries nearest to the end, oldest first.
    pub leaves: Vec<SummaryCard>,
    /// The number of visible messages on the branch.
    pub visible: usize,
}

/// A message in one line.
pub struct MessageLine {
    /// Its header.
    pub card: MessageCard,
    /// Its beginning.
    pub headline: String,
    /// The leaf summary over it.
    pub leaf: Option<String>,
}

/// One message or summary with everything known about it.
pub enum Portrait {
    /// A summary.
    Summary(SummaryPortrait),
    /// A message.
    Message(MessagePortrait),
}

/// A summary with its lineage.
pub struct SummaryPortrait {
    /// Its header.
    pub card: SummaryCard,
    /// When it was made, in ms.
    pub created_at: i64,
    /// Whether it is valid on the current branch.
    pub holds: bool,
    /// Whether a longer one that is valid there replaces it, from the next fold on.
    pub is_replaced: bool,
    /// Its session, if that is another one.
    pub session: Option<SessionName>,
    /// The summaries condensed from it, nearest first.
    pub above: Vec<SummaryCard>,
    /// Its sources.
    pub below: SummarySources,
    /// Verbatim quotes from its messages.
    pub quotes: Vec<Quote>,
    /// Files that its messages touched.
    pub files: Files,
}

/// The sources of a summary.
pub enum SummarySources {
    /// Summaries, in order.
    Summaries(Vec<SummaryCard>),
    /// Messages, in order.
    Messages(Vec<MessageLine>),
}

/// A message with its position and its summaries.
pub struct MessagePortrait {
    /// Its header and beginning.
    pub line: MessageLine,
    /// The size of its text in bytes.
    pub bytes: usize,
    /// The size of its stored JSON in bytes.
    pub json_bytes: usize,
    /// Estimated tokens.
    pub tokens: usize,
    /// Its position and the number of visible messages on the branch; `None` if it is elsewhere or an edit
    /// hid it.
    pub position: Option<(usize, usize)>,
    /// Where it is, seen from the current branch.
    pub place: Location,
    /// Its session, if that is another one.
    pub session: Option<SessionName>,
    /// The summaries over it, from the leaf summary up.
    pub above: Vec<SummaryCard>,
    /// Files that it touched.
    pub files: Files,
}

/// The whole history, seen from `scope`.
///
/// # Errors
/// When the store can't be read; so for all functions here.
pub fn overview(view: &View<'_>, scope: &Scope) -> Result<Overview> {
    let branch = Cover::read(view, scope.conversation, scope.leaf.as_deref())?;
    let stored = |at: Option<&Shown>| at.map(|message| view.messages().message(message.seen)).transpose();
    let handle = |at: usize| -> Result<String> {
        Ok(view.messages().message(branch.visible[at].original)?.lineage.message_handle())
    };
    let mut frontier = Vec::new();
    let are_messages =
        |one: &Piece, next: &Piece| matches!((one, next), (Piece::Message(_), Piece::Message(_)));
    for run in branch.frontier.chunk_by(are_messages) {
        match run[0] {
            Piece::Summary(id, _) => frontier.push(item(view, &branch, id)?),
            Piece::Message(first) => {
                let (count, last) = (run.len(), first + run.len() - 1);
                frontier.push(Item::Messages { count, first: handle(first)?, last: handle(last)? });
            }
        }
    }
    let times = stored(branch.visible.first())?.zip(stored(branch.visible.last())?);
    let depths = view.summaries().depths(scope.conversation)?;
    let uncarried = view.summaries().uncarried(scope.conversation)?;
    Ok(Overview {
        totals: Totals::of(view.messages().said_in(scope.conversation)?, &depths),
        depths,
        sessions: view.messages().conversations()?,
        project_messages: view.messages().project_messages()?,
        visible: branch.visible.len(),
        times: times.map(|(first, last)| (first.timestamp, last.timestamp)),
        frontier,
        ready: uncarried.into_iter().filter(|id| branch.forest.uses(*id)).count(),
    })
}

/// The tokens of the branch of `scope`; costs its length.
pub fn branch_tokens(view: &View<'_>, scope: &Scope) -> Result<BranchTokens> {
    let branch = Cover::read(view, scope.conversation, scope.leaf.as_deref())?;
    let tokens: Vec<usize> = (branch.visible.iter())
        .map(|message| view.messages().tokens_of(message.seen))
        .collect::<Result<_>>()?;
    let mut frontier = 0;
    for piece in &branch.frontier {
        frontier += match piece {
            Piece::Summary(id, _) => view.summaries().summary(*id)?.tokens,
            Piece::Message(at) => tokens[*at],
        };
    }
    Ok(BranchTokens { visible: tokens.iter().sum(), frontier })
}

/// The newest or the oldest messages of the branch.
pub fn end(view: &View<'_>, scope: &Scope, is_newest: bool) -> Result<End> {
    let branch = Cover::read(view, scope.conversation, scope.leaf.as_deref())?;
    let visible = branch.visible.len();
    let start = if is_newest { visible.saturating_sub(AT_AN_END) } else { 0 };
    let messages = start..visible.min(start + AT_AN_END);
    let beyond = if is_newest { 0..start } else { messages.end..visible };
    let requests: Vec<usize> = beyond.filter(|at| branch.visible[*at].is_request).collect();
    let line = |at: usize| line(view, &branch, branch.visible[at].seen);
    let leaves = branch.leaves();
    let (requests, leaves) =
        (nearest(&requests, REQUESTS_AT_AN_END, is_newest), nearest(&leaves, LEAVES_AT_AN_END, is_newest));
    Ok(End {
        messages: messages.map(line).collect::<Result<_>>()?,
        requests: requests.iter().map(|at| line(*at)).collect::<Result<_>>()?,
        leaves: SummaryCard::read_all(view, leaves)?,
        visible,
    })
}

/// The last of `list`, or the first.
fn nearest<T>(list: &[T], most: usize, is_newest: bool) -> &[T] {
    if is_newest { &list[list.len().saturating_sub(most)..] } else { &list[..list.len().min(most)] }
}

/// A message or a summary, seen from `scope`.
pub fn portrait(view: &View<'_>, scope: &Scope, target: NodeId) -> Result<Portrait> {
    let sight = Visibility::new(view, scope)?;
    match target {
        NodeId::Summary(id) => summary(view, &sight, id).map(Portrait::Summary),
        NodeId::Message(id) => message(view, &sight, id).map(Portrait::Message),
    }
}

fn item(view: &View<'_>, branch: &Cover, id: SummaryId) -> Result<Item> {
    let children = match branch.forest.node(id).map(|node| &node.sources) {
        Some(Sources::Summaries(children)) => children.as_slice(),
        _ => &[],
    };
    let children = children.iter().map(|child| item(view, branch, *child)).collect::<Result<_>>()?;
    Ok(Item::Summary(SummaryCard::read(view, id)?, children))
}

fn line(view: &View<'_>, branch: &Cover, id: MessageId) -> Result<MessageLine> {
    let id = view.messages().original(id)?;
    let stored = view.messages().message(id)?;
    let leaf = branch.leaf_over(id).map(|leaf| view.summaries().summary(leaf)).transpose()?;
    Ok(MessageLine {
        card: MessageCard::of(&stored),
        headline: Message::parse(&stored.json).headline(HEADLINE),
        leaf: leaf.map(|leaf| leaf.hash.summary_handle()),
    })
}

fn summary(view: &View<'_>, sight: &Visibility<'_>, id: SummaryId) -> Result<SummaryPortrait> {
    let (stored, branch) = (view.summaries().summary(id)?, sight.branch()?);
    let holds = branch.forest.span(id).is_some();
    let below = match view.summaries().sources(id)? {
        Sources::Summaries(children) => SummarySources::Summaries(SummaryCard::read_all(view, &children)?),
        Sources::Messages(messages) => SummarySources::Messages(
            messages.iter().map(|id| line(view, branch, *id)).collect::<Result<_>>()?,
        ),
    };
    Ok(SummaryPortrait {
        card: SummaryCard::of(&stored),
        created_at: stored.created_at,
        holds,
        is_replaced: holds && !branch.forest.uses(id),
        session: other_session(view, sight, view.messages().original(view.summaries().span(id)?.last)?)?,
        above: above(view, branch, vec![id], holds)?,
        below,
        quotes: stored.summary.quotes,
        files: files_under(view, id)?,
    })
}

fn message(view: &View<'_>, sight: &Visibility<'_>, id: MessageId) -> Result<MessagePortrait> {
    let stored = view.messages().message(id)?;
    let read = Message::parse(&stored.json);
    let branch = sight.branch()?;
    let position = branch.position(id).map(|at| (at, branch.visible.len()));
    let place = sight.place(id)?;
    Ok(MessagePortrait {
        line: line(view, branch, id)?,
        bytes: read.readable().len(),
        json_bytes: stored.json.len(),
        tokens: stored.tokens,
        position,
        place,
        session: other_session(view, sight, id)?,
        above: over(view, branch, id)?,
        files: read.files(),
    })
}

/// The session of a message, if that is another one.
fn other_session(view: &View<'_>, sight: &Visibility<'_>, id: MessageId) -> Result<Option<SessionName>> {
    match (sight.place(id)?, view.messages().sessions_of(id)?.iter().min()) {
        (Location::OtherSession | Location::OtherSessionBranch, Some(session)) => {
            SessionName::of(view, *session).map(Some)
        }
        _ => Ok(None),
    }
}

/// The summaries over a message, from its leaf summary up.
fn over(view: &View<'_>, branch: &Cover, id: MessageId) -> Result<Vec<SummaryCard>> {
    if let Some(position) = branch.position(id) {
        return SummaryCard::read_all(view, &branch.lineage_over(position));
    }
    let leaves = view.summaries().leaves_over(id)?;
    let mut cards = SummaryCard::read_all(view, &leaves)?;
    cards.extend(above(view, branch, leaves, false)?);
    Ok(cards)
}

/// The summaries condensed from `roots`, nearest first; with `holding`, only those valid on the branch.
fn above(view: &View<'_>, branch: &Cover, roots: Vec<SummaryId>, holding: bool) -> Result<Vec<SummaryCard>> {
    let mut seen: HashSet<SummaryId> = roots.iter().copied().collect();
    let mut level = roots;
    let mut cards = Vec::new();
    while !level.is_empty() && cards.len() < MOST_ABOVE {
        let mut next = Vec::new();
        for id in level {
            for parent in view.summaries().parents(id)? {
                let wanted = !holding || branch.forest.span(parent).is_some();
                if wanted && seen.insert(parent) {
                    cards.push(SummaryCard::read(view, parent)?);
                    next.push(parent);
                }
            }
        }
        level = next;
    }
    Ok(cards)
}

/// The files that the messages under a summary touched.
fn files_under(view: &View<'_>, root: SummaryId) -> Result<Files> {
    let mut files = Files::default();
    let mut waiting = vec![root];
    while let Some(id) = waiting.pop() {
        match view.summaries().sources(id)? {
            Sources::Summaries(children) => waiting.extend(children),
            Sources::Messages(messages) => {
                let read = |message| view.messages().parsed(view.messages().original(message)?);
                let messages = messages.into_iter().map(read).collect::<Result<Vec<_>>>()?;
                files.extend(Facts::of(messages.iter().enumerate()).touched());
            }
        }
    }
    Ok(files)
}
