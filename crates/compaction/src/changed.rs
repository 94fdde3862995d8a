//! Finds files that changed on disk since the agent saw them, when a session is resumed.

use std::sync::Arc;

use super::disk::FileChange;
use super::standing::changes;
use lcm_model::dag::Visible;
use lcm_model::error::Result;
use lcm_model::facts::Facts;
use lcm_model::ids::ConversationId;
use lcm_model::text::one_line;
use lcm_store::branch::Memory;
use lcm_store::{Store, View};

/// The number of newest messages that are read to find files.
const MOST_READ: usize = 1_000;
/// The most files to list, and characters of each.
const NAMED: usize = 20;
const PATH: usize = 200;

/// Returns a message for the model about files that changed since the branch that ends at `leaf` showed them;
/// `None` if nothing changed.
///
/// # Errors
/// When the store can't be read, or has no such branch.
pub async fn changed(
    store: &Store,
    memory: &Arc<Memory>,
    conversation: ConversationId,
    leaf: &str,
) -> Result<Option<String>> {
    let (memory, leaf) = (Arc::clone(memory), leaf.to_owned());
    let read = move |view: &View<'_>| {
        let Some(folder) = memory.folder.as_deref() else { return Ok(Vec::new()) };
        let known = memory.read(view, conversation, &leaf)?;
        let visible = known.visible();
        let newest = visible.iter().enumerate().skip(visible.len().saturating_sub(MOST_READ));
        let has_files = |message: &Visible| matches!(message.seen.role.as_str(), "assistant" | "toolResult");
        let read = newest
            .filter(|(_, message)| has_files(message))
            .map(|(at, message)| Ok((at, view.messages().parsed(message.seen.id)?)));
        let read = read.collect::<Result<Vec<_>>>()?;
        let facts = Facts::without_statements(read.iter().map(|(at, message)| (*at, message)));
        changes(view, visible, &facts, folder)
    };
    let changes = store.read(read).await?;
    if changes.is_empty() {
        return Ok(None);
    }
    let line = |(path, change, handle): &(String, FileChange, String)| {
        format!("- {}{} (last seen in {handle})", one_line(path, PATH), change.how())
    };
    let lines: Vec<String> = changes.iter().take(NAMED).map(line).collect();
    let more = match changes.len().saturating_sub(NAMED) {
        0 => String::new(),
        more => format!("\n- and {more} more"),
    };
    Ok(Some(format!(
        "Note of pi-lossless-context, not of the user: these files changed on disk since you last saw them. Read them again before you \
         rely on them:\n{}{more}",
        lines.join("\n")
    )))
}
