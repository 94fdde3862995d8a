//! Resolves a short id to what it names: in this session first, then in the project.

use super::Scope;
use lcm_model::error::{Error, Result};
use lcm_model::ids::{ConversationId, Handle, HandleKind, MessageId, SummaryId};
use lcm_store::View;

/// What an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeId {
    Message(MessageId),
    Summary(SummaryId),
}

/// What `id` names, seen from `scope`.
///
/// # Errors
/// When it names nothing, with `remedy` after the sentence, or several things.
pub fn resolve(view: &View<'_>, scope: &Scope, id: &str, remedy: &str) -> Result<NodeId> {
    let handle = Handle::parse(id)?;
    let noun = if handle.kind == HandleKind::Message { "message" } else { "summary" };
    for conversation in [Some(scope.conversation), None] {
        let found = candidates(view, &handle, conversation)?;
        match found.as_slice() {
            [] => {}
            [target] => return Ok(*target),
            _ => {
                return Err(Error::invalid(format!(
                    "{handle} matches more than one {noun}: add digits, ids have ten"
                )));
            }
        }
    }
    let why =
        if view.messages().has_purged()? { " (a purge removes ids, and changes later ones)" } else { "" };
    Err(Error::invalid(format!("there is no {noun} {handle} in this project{why}: {remedy}")))
}

fn candidates(view: &View<'_>, handle: &Handle, conversation: Option<ConversationId>) -> Result<Vec<NodeId>> {
    Ok(match handle.kind {
        HandleKind::Message => {
            view.messages().messages_like(handle, conversation)?.into_iter().map(NodeId::Message).collect()
        }
        HandleKind::Summary => {
            view.summaries().summaries_like(handle, conversation)?.into_iter().map(NodeId::Summary).collect()
        }
    })
}
