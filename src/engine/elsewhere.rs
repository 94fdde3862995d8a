//! Finds this project's history under another setting: after a change of `projectIdentity` it must not seem
//! lost.

use std::path::PathBuf;

use lcm_ingest::import::Home;
use lcm_model::config::ProjectIdentity;
use lcm_model::error::Result;
use lcm_model::text;
use lcm_store::tasks::blocking;
use lcm_store::{History, Place, Store, history_before};

/// A message, shown once, about the project's history before `projectIdentity` changed.
pub(super) async fn notice(store: &Store, home: &Home) -> Result<Option<String>> {
    let Home { cwd, identity, db_dir, .. } = home.clone();
    if matches!(store.place(), Place::Memory) {
        return Ok(None);
    }
    let folder = PathBuf::from(&cwd);
    let before = blocking(move || Ok(history_before(&db_dir, &folder, identity))).await?;
    let (folder, other) = (cwd.clone(), before.as_ref().map(|before| before.project.clone()));
    let (is_member, is_known) =
        store.read(move |view| view.database().knows_folder(&folder, other.as_deref())).await?;
    let joins = (identity == ProjectIdentity::Git && !is_member).then_some(cwd);
    let news = before.filter(|_| !is_known);
    let other = news.as_ref().map(|before| before.project.clone());
    if joins.is_some() || other.is_some() {
        store.post(
            move |batch| batch.database().note_folder(joins.as_deref(), other.as_deref(), text::now()),
            drop,
        )?;
    }
    Ok(news.map(|History { path, project }| {
        format!(
            "with projectIdentity = {}, this project's history is another than before: that of {project} lies in {}, and \
             /lcm import {project} brings it here",
            if identity == ProjectIdentity::Git { "git" } else { "cwd" },
            path.display()
        )
    }))
}
