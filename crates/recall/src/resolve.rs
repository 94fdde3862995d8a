//! Resolves a short id to what it names: in this session first, then in the project.

use super::Scope;
use lcm_model::error::{Error, Result};
use lcm_model::ids::{ConversationId, Handle, HandleKind, MessageId, SummaryId};
use lcm_store::View;
use lcm_store::branch::Cover;

/// What an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeId {
    Message(MessageId),
    Summary(SummaryId),
}

/// What `id` names, seen from `scope`. If it is ambiguous in the session, the one on the current branch is
/// meant.
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
                let meant = if conversation.is_some() { on_branch(view, scope, &handle)? } else { None };
                return meant.ok_or_else(|| {
                    Error::invalid(format!("{handle} matches more than one {noun}: add digits, ids have ten"))
                });
            }
        }
    }
    Err(Error::invalid(format!("there is no {noun} {handle} in this project: {remedy}")))
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

/// The one thing on the current branch with this id, if there is exactly one.
fn on_branch(view: &View<'_>, scope: &Scope, handle: &Handle) -> Result<Option<NodeId>> {
    let branch = Cover::read(view, scope.conversation, scope.leaf.as_deref())?;
    let (low, high) = handle.range();
    let mut found = Vec::new();
    match handle.kind {
        HandleKind::Message => {
            let messages = view.messages().messages_between(low, high)?;
            let on_branch = messages.into_iter().filter(|message| branch.position(*message).is_some());
            found.extend(on_branch.map(NodeId::Message));
        }
        HandleKind::Summary => {
            for id in branch.forest.holding() {
                if (low..=high).contains(&view.summaries().summary(id)?.hash) {
                    found.push(NodeId::Summary(id));
                }
            }
        }
    }
    Ok(match found.as_slice() {
        [target] => Some(*target),
        _ => None,
    })
}
