//! The history of an MCP server: the one named on its command line, or that of a folder its client works in.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::arguments::{Access, History};
use super::{CliRequest, open, scope};
use crate::error::Result;
use crate::mcp::Histories;
use crate::recall::Scope;
use crate::store::Store;

/// The command line that started a server.
pub(super) struct Served {
    pub(super) line: CliRequest,
    pub(super) history: History,
}

impl Histories for Served {
    fn follow_roots(&self) -> bool {
        self.history.project.is_none() && self.history.database.is_none()
    }

    async fn open(&self, roots: &[PathBuf], cancel: &CancellationToken) -> Result<(Store, Scope)> {
        let Self { line, history } = self;
        let (first, others) = roots
            .split_first()
            .map_or((history.folder(&line.cwd), [].as_slice()), |(first, others)| (first.as_path(), others));
        let mut opened = open(line, history, Access::Reads, first, cancel).await;
        for folder in others {
            if opened.is_err() {
                // If none has a history, the error is about the first.
                opened = open(line, history, Access::Reads, folder, cancel).await.or(opened);
            }
        }
        let store = opened?.home.store;
        let scope = scope(&store, history.session.clone()).await?;
        // The current request is in the client, not in the session: all its messages are past.
        Ok((store, Scope { newer_request: true, ..scope }))
    }
}
