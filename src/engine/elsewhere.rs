//! Finds this project's history under another setting: after a change of `projectIdentity` it must not seem
//! lost.

use std::path::PathBuf;

use crate::config::ProjectIdentity;
use crate::error::Result;
use crate::ingest::import::Home;
use crate::store::{History, Place, Store, history_before};
use crate::sync::aside;
use crate::text;

/// A message, shown once, about the project's history before `projectIdentity` changed.
pub(super) async fn notice(store: &Store, home: &Home) -> Result<Option<String>> {
    let Home { cwd, identity, db_dir, .. } = home.clone();
    if matches!(store.place(), Place::Memory) {
        return Ok(None);
    }
    let folder = PathBuf::from(&cwd);
    let before = aside(move || Ok(history_before(&db_dir, &folder, identity))).await?;
    let (folder, other) = (cwd.clone(), before.as_ref().map(|before| before.project.clone()));
    let (is_member, is_known) =
        store.read(move |view| view.database().knows_folder(&folder, other.as_deref())).await?;
    let joins = (identity == ProjectIdentity::Git && !is_member).then_some(cwd);
    let Some(History { path, project }) = before.filter(|_| !is_known) else {
        if joins.is_some() {
            store
                .post(move |batch| batch.database().note_folder(joins.as_deref(), None, text::now()), drop)?;
        }
        return Ok(None);
    };
    let joining = project.clone();
    store.post(
        move |batch| batch.database().note_folder(joins.as_deref(), Some(&joining), text::now()),
        drop,
    )?;
    Ok(Some(format!(
        "with projectIdentity = {}, this project's history is another than before: that of {project} lies in {}, and \
         /lcm import --history-of {project} brings it here",
        identity.as_str(),
        path.display()
    )))
}
