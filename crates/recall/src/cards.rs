//! How answers name messages and summaries: short id, time, and what is needed to choose one.

use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, SummaryId};
use lcm_model::text::one_line;
use lcm_model::{State, agent_of, searchable, title};
use lcm_store::{SessionFacts, StoredMessage, StoredSummary, View};

/// Lengths of a session id's prefix to try, from the one that is unique in most projects.
const SESSION_PREFIXES: [usize; 3] = [8, 13, 18];

/// The header of a message or a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Card {
    Message(MessageCard),
    Summary(SummaryCard),
}

impl Card {
    /// The message, if it is one.
    pub fn message(&self) -> Option<&MessageCard> {
        match self {
            Self::Message(card) => Some(card),
            Self::Summary(_) => None,
        }
    }

    /// Its short id.
    pub fn handle(&self) -> &str {
        match self {
            Self::Message(card) => &card.handle,
            Self::Summary(card) => &card.handle,
        }
    }
}

/// What a session is called.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionName {
    pub conversation: ConversationId,
    /// Pi's id.
    pub id: String,
    /// The beginning of it that no other session's id has.
    pub short: String,
    /// What the user asked first, on one line.
    pub about: String,
    /// The time of its first message, in ms since the epoch.
    pub from_time: i64,
    /// The label of the machine that it came from, if it is another one.
    pub origin: Option<String>,
}

impl SessionName {
    /// Characters of the first request.
    const ABOUT: usize = 50;

    /// ` on ann@laptop (Fix the login timeout)`: where it is from, if elsewhere, and what it is about.
    pub fn details(&self) -> String {
        let origin = self.origin.as_ref().map(|label| format!(" on {}", one_line(label, Self::ABOUT)));
        let about = (!self.about.is_empty()).then(|| format!(" ({})", self.about));
        [origin, about].into_iter().flatten().collect()
    }

    pub fn of(view: &View<'_>, conversation: ConversationId) -> Result<Self> {
        let SessionFacts { session_id: id, from_time, first_request, .. } =
            view.messages().session_facts(conversation)?;
        let first = first_request.map(|request| view.messages().json_of(request)).transpose()?;
        let about = first.map(|json| one_line(&searchable(&json), Self::ABOUT)).unwrap_or_default();
        // A search is not worth losing for this.
        let origin = view.synced().origin(conversation).unwrap_or_default();
        let short = name_of(view, &id)?;
        Ok(Self { conversation, short, id, about, from_time, origin })
    }
}

/// The header of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageCard {
    /// Its short id.
    pub handle: String,
    /// Who speaks, as Pi names roles.
    pub role: String,
    /// The agent that wrote it, if not Pi.
    pub agent: Option<&'static str>,
    /// The tool, if it is a tool result.
    pub tool: Option<String>,
    /// In ms since the epoch.
    pub timestamp: i64,
    /// By this, messages of one conversation are in order.
    pub sequence: i64,
}

impl MessageCard {
    pub(super) fn of(message: &StoredMessage) -> Self {
        Self {
            handle: message.lineage.message_handle(),
            role: message.role.clone(),
            agent: agent_of(&message.json),
            tool: message.tool.clone(),
            timestamp: message.timestamp,
            sequence: message.height,
        }
    }
}

/// The header of a summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SummaryCard {
    /// Its short id.
    pub handle: String,
    /// 0 for a leaf.
    pub depth: u32,
    /// Whether it was made without a model.
    pub degraded: bool,
    /// The number of messages in its span.
    pub messages: usize,
    /// Time of the first of them, in ms.
    pub from_time: i64,
    /// Time of the last of them, in ms.
    pub to_time: i64,
    /// Estimated tokens of its text.
    pub tokens: usize,
    /// `provider/model`; `None` for an extract.
    pub model: Option<String>,
    /// Its topic.
    pub title: String,
}

impl SummaryCard {
    pub fn of(summary: &StoredSummary) -> Self {
        Self {
            handle: summary.hash.summary_handle(),
            depth: summary.depth,
            degraded: summary.state == State::Degraded,
            messages: summary.messages,
            from_time: summary.from_time,
            to_time: summary.to_time,
            tokens: summary.tokens,
            model: summary.model.clone(),
            title: title(&summary.text),
        }
    }

    pub(super) fn read(view: &View<'_>, id: SummaryId) -> Result<Self> {
        Ok(Self::of(&view.summaries().summary(id)?))
    }

    pub fn read_all(view: &View<'_>, ids: &[SummaryId]) -> Result<Vec<Self>> {
        ids.iter().map(|id| Self::read(view, *id)).collect()
    }
}

/// A prefix of a session's id that no other session has.
pub fn name_of(view: &View<'_>, session_id: &str) -> Result<String> {
    let agent = session_id.find(':').map_or(0, |colon| colon + 1);
    for prefix in SESSION_PREFIXES.iter().filter_map(|length| session_id.get(..agent + *length)) {
        if view.index().conversations_like(prefix)?.len() == 1 {
            return Ok(prefix.to_owned());
        }
    }
    Ok(session_id.to_owned())
}
