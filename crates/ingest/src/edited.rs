//! Session files that were edited since they were stored.
//!
//! What Pi shows on a branch is what must be summarized and shown. So the stored entries that the file shows otherwise make way,
//! with all below them, for those of the file: they get other ids, stay as a branch of their own, and are found as before.

use std::collections::HashSet;
use std::path::Path;

use tokio_util::sync::CancellationToken;

use super::file::SessionFile;
use super::import::differing;
use lcm_model::error::Result;
use lcm_model::ids::{ConversationId, Hash};
use lcm_model::{Content, Entry};
use lcm_store::View;

/// The entries of a session that its file shows with another message or below another entry. In a file whose ids are not unique,
/// what Pi shows is not known.
pub(super) fn edited(
    view: &View<'_>,
    conversation: ConversationId,
    session: &str,
    path: &Path,
    cancel: &CancellationToken,
) -> Result<Vec<String>> {
    let (mut edited, mut all) = (Vec::new(), HashSet::new());
    let mut file = SessionFile::open(path)?.until(cancel);
    if file.header.id != session {
        return Ok(edited);
    }
    while let Some(slice) = file.slice()? {
        for entry in slice.entries {
            if !all.insert(entry.id.clone()) {
                return Ok(Vec::new());
            }
            let is_root = slice.orphans.contains(&entry.id);
            if is_edited(view, conversation, &entry, is_root)? {
                // The parent that the file lacks goes too, or the entry would be stored below it again.
                edited.extend(entry.parent.filter(|_| is_root));
                edited.push(entry.id);
            }
        }
    }
    Ok(edited)
}

/// Whether an entry of the file is stored below another one than there.
pub(super) fn is_in_pieces(
    view: &View<'_>,
    conversation: ConversationId,
    path: &Path,
    cancel: &CancellationToken,
) -> Result<bool> {
    let mut file = SessionFile::open(path)?.until(cancel);
    while let Some(slice) = file.slice()? {
        for entry in slice.entries {
            if is_elsewhere(view, conversation, &entry, slice.orphans.contains(&entry.id))? == Some(true) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Whether a stored entry has another message, or another parent. A purged message is what it is.
fn is_edited(view: &View<'_>, conversation: ConversationId, entry: &Entry, is_root: bool) -> Result<bool> {
    let Some(is_elsewhere) = is_elsewhere(view, conversation, entry, is_root)? else { return Ok(false) };
    let Content::Message(json) = &entry.content else { return Ok(is_elsewhere) };
    let said = (entry.id.clone(), Hash::plain(json.as_bytes()));
    if is_elsewhere || differing(view, conversation, &[said])? == 0 {
        return Ok(is_elsewhere);
    }
    let stored = view.messages().version(conversation, &entry.id)?;
    let stored = stored.map(|version| view.messages().json_of(version.message)).transpose()?;
    Ok(!stored.is_some_and(|stored| masks(&stored, json)))
}

/// Whether `stored` is the message `json` with secrets masked, as a sync brings it: `[masked]` or `[masked: aws key]` stands
/// for any text.
fn masks(stored: &str, json: &str) -> bool {
    let mut pieces = stored.split("[masked");
    let Some(mut rest) = pieces.next().and_then(|first| json.strip_prefix(first)) else { return false };
    let pieces: Option<Vec<&str>> = pieces.map(|piece| Some(piece.split_once(']')?.1)).collect();
    let Some((last, pieces)) = pieces.as_ref().and_then(|pieces| pieces.split_last()) else { return false };
    for piece in pieces.iter().copied() {
        let Some(at) = rest.find(piece) else { return false };
        rest = &rest[at + piece.len()..];
    }
    rest.ends_with(last)
}

/// Whether an entry is stored below another one; `None` if it is not stored.
fn is_elsewhere(
    view: &View<'_>,
    conversation: ConversationId,
    entry: &Entry,
    is_root: bool,
) -> Result<Option<bool>> {
    let Some(above) = view.messages().above_entry(conversation, &entry.id)? else { return Ok(None) };
    let parent = entry.parent.as_deref().filter(|_| !is_root);
    let is_below = match (parent, above.as_deref()) {
        (Some(parent), Some(above)) => above
            .strip_prefix(parent)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphanumeric() || c == '-')),
        (parent, above) => parent == above,
    };
    Ok(Some(!is_below))
}
