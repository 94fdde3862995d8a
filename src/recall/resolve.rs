//! Resolves a short id to what it names: in this session first, then in the project.

use super::Scope;
use crate::branch::Cover;
use crate::error::{Error, Result};
use crate::ids::{Handle, HandleKind, MessageId, SummaryId};
use crate::store::View;

/// What an id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Target {
    Message(MessageId),
    Summary(SummaryId),
}

/// What `id` names, seen from `scope`. If it is ambiguous in the session, the one on the current branch is
/// meant.
pub(super) fn resolve(view: &View<'_>, scope: &Scope, id: &str) -> Result<Target> {
    let handle = Handle::parse(id)?;
    for conversation in [Some(scope.conversation), None] {
        let found = candidates(view, &handle, conversation)?;
        match found.as_slice() {
            [] => {}
            [target] => return Ok(*target),
            _ if conversation.is_some() => {
                return on_branch(view, scope, &handle)?.ok_or_else(|| ambiguous(&handle));
            }
            _ => return Err(ambiguous(&handle)),
        }
    }
    Err(unknown(&handle))
}

fn candidates(
    view: &View<'_>,
    handle: &Handle,
    conversation: Option<crate::ids::ConversationId>,
) -> Result<Vec<Target>> {
    Ok(match handle.kind {
        HandleKind::Message => {
            view.messages().messages_like(handle, conversation)?.into_iter().map(Target::Message).collect()
        }
        HandleKind::Summary => {
            view.summaries().summaries_like(handle, conversation)?.into_iter().map(Target::Summary).collect()
        }
    })
}

/// The one thing on the current branch with this id, if there is exactly one.
fn on_branch(view: &View<'_>, scope: &Scope, handle: &Handle) -> Result<Option<Target>> {
    let branch = Cover::read(view, scope.conversation, scope.leaf.as_deref())?;
    let (low, high) = handle.range();
    let mut found = Vec::new();
    match handle.kind {
        HandleKind::Message => {
            let messages = view.messages().messages_between(low, high)?;
            let on_branch = messages.into_iter().filter(|message| branch.position(*message).is_some());
            found.extend(on_branch.map(Target::Message));
        }
        HandleKind::Summary => {
            for id in branch.forest.holding() {
                if (low..=high).contains(&view.summaries().summary(id)?.hash) {
                    found.push(Target::Summary(id));
                }
            }
        }
    }
    Ok(match found.as_slice() {
        [target] => Some(*target),
        _ => None,
    })
}

fn noun(handle: &Handle) -> &'static str {
    match handle.kind {
        HandleKind::Message => "message",
        HandleKind::Summary => "summary",
    }
}

fn ambiguous(handle: &Handle) -> Error {
    Error::invalid(format!("{handle} matches more than one {}: add digits, ids have ten", noun(handle)))
}

fn unknown(handle: &Handle) -> Error {
    Error::invalid(format!(
        "there is no {} {handle} in this project: lcm_grep and lcm_describe show ids",
        noun(handle)
    ))
}
