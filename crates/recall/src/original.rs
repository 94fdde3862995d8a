//! Messages and summaries as they are stored, whole.

use std::borrow::Cow;

use super::{MessageCard, NodeId};
use lcm_model::error::Result;
use lcm_model::ids::MessageId;
use lcm_model::{Message, Part, original_of};
use lcm_store::View;

/// A stored image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// The type, such as `image/png`.
    pub mime_type: String,
    /// Base64.
    pub data: String,
}

/// A message in the original.
pub struct Original {
    pub card: MessageCard,
    /// Its text, or its stored JSON.
    pub text: String,
    /// Its images; none with the JSON, which contains them.
    pub images: Vec<Image>,
    /// Whether it is output of our own tools.
    pub is_echo: bool,
}

impl Original {
    /// Reads a message: its text, or with `raw` its JSON.
    pub fn read(view: &View<'_>, id: MessageId, raw: bool) -> Result<Self> {
        let stored = view.messages().message(view.messages().original(id)?)?;
        let (card, message) = (MessageCard::of(&stored), Message::parse(&stored.json));
        let is_echo = message.is_recall_echo();
        if raw {
            let text = match original_of(&stored.json).map(Cow::into_owned) {
                None => view.upkeep().record_with(stored.id)?.unwrap_or(stored.json),
                Some(record) => record,
            };
            return Ok(Self { card, text, images: Vec::new(), is_echo });
        }
        let text = message.readable();
        let image = |part| match part {
            Part::Image { mime_type, data } => Some(Image { mime_type, data }),
            _ => None,
        };
        Ok(Self { card, text, images: message.parts.into_iter().filter_map(image).collect(), is_echo })
    }
}

/// A whole message or summary, whatever its size: its text, or with `raw` a message's stored JSON, and its
/// images.
pub fn whole(view: &View<'_>, target: NodeId, raw: bool) -> Result<(String, Vec<Image>)> {
    match target {
        NodeId::Message(id) => Original::read(view, id, raw).map(|message| (message.text, message.images)),
        NodeId::Summary(id) => Ok((view.summaries().summary(id)?.summary.text, Vec::new())),
    }
}
