//! Fuzzes session files.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::{LazyLock, mpsc};

use tokio::runtime::{Builder, Runtime};

use super::Handover;
use super::file::SessionFile;
use lcm_model::Content;
use lcm_model::error::{Error, Result};
use lcm_model::ids::ConversationId;
use lcm_store::{Batch, Store, Totals};

static STORE: LazyLock<Result<Store>> = LazyLock::new(|| Store::open(None, "project", "/project"));
static RUNTIME: LazyLock<std::io::Result<Runtime>> = LazyLock::new(|| Builder::new_current_thread().build());

/// Imports `bytes` as a session file, with the first byte as the version in its header. Checks that each
/// message is stored byte for byte, and that a second import changes nothing.
#[expect(clippy::unwrap_used, reason = "a fuzz target panics on a broken invariant")]
pub fn sessions(bytes: &[u8]) {
    let Some((version, lines)) = bytes.split_first() else { return };
    let header = match version % 4 {
        0 => String::new(),
        version => format!("{{\"type\":\"session\",\"id\":\"s\",\"version\":{version}}}\n"),
    };
    let path = std::env::temp_dir().join(format!("lcm-fuzzing-{}-session.jsonl", std::process::id()));
    fs::write(&path, [header.as_bytes(), lines].concat()).unwrap();
    let (once, again) = (slices(&path), slices(&path));
    fs::remove_file(&path).unwrap();
    let (Ok(once), Ok(again)) = (once, again) else { return };
    let said = messages(&once);
    let ids: Vec<String> = said.keys().cloned().collect();
    let (stored, first, second) = undone(move |batch| {
        let conversation = batch.messages().conversation_row("s", None, None, 0)?;
        let first = stored_in(batch, conversation, once)?;
        let shown = |id: &String| {
            batch.messages().shown_by(conversation, id)?.map(|row| batch.messages().json_of(row)).transpose()
        };
        let stored =
            ids.into_iter().map(|id| Ok((id.clone(), shown(&id)?))).collect::<Result<HashMap<_, _>>>()?;
        Ok((stored, first, stored_in(batch, conversation, again)?))
    })
    .unwrap();
    assert_eq!(stored, said);
    assert_eq!(first, second, "a second import changed something");
}

fn slices(path: &Path) -> Result<Vec<Handover>> {
    let mut file = SessionFile::open(path)?;
    std::iter::from_fn(|| file.slice().transpose()).collect()
}

/// The message of each entry whose id is unique.
fn messages(slices: &[Handover]) -> HashMap<String, Option<String>> {
    let mut said: HashMap<String, Option<String>> = HashMap::new();
    let mut twice = Vec::new();
    for entry in slices.iter().flat_map(|slice| &slice.entries) {
        let json = if let Content::Message(json) = &entry.content { Some(json.clone()) } else { None };
        twice.extend(said.insert(entry.id.clone(), json).map(|_| entry.id.clone()));
    }
    said.retain(|id, json| json.is_some() && !twice.contains(id));
    said
}

fn stored_in(batch: &Batch<'_>, conversation: ConversationId, slices: Vec<Handover>) -> Result<Totals> {
    for slice in slices {
        slice.prepare().store(batch, conversation)?;
    }
    batch.summaries().totals(conversation)
}

/// Runs `work` in a transaction that is rolled back.
#[expect(clippy::unwrap_used, reason = "as above")]
fn undone<T: Send + 'static>(work: impl FnOnce(&Batch<'_>) -> Result<T> + Send + 'static) -> Result<T> {
    let (send, receive) = mpsc::channel();
    let done = STORE.as_ref().unwrap().write(move |batch| {
        let _ = send.send(work(batch));
        Err::<(), _>(Error::cancelled())
    });
    let _ = RUNTIME.as_ref().unwrap().block_on(done);
    receive.recv().unwrap()
}
