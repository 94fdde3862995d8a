//! What an MCP server answers from: the history that the shell's line names, or that of a folder its client works in.

use std::path::PathBuf;

use tokio_util::sync::CancellationToken;

use super::cli::{Line, open, scope};
use crate::commands::cli::Invocation;
use crate::error::Result;
use crate::mcp::Histories;
use crate::recall::Scope;
use crate::store::Store;

/// The line of a shell that a server was started with.
pub(super) struct Served {
    pub(super) line: Line,
    pub(super) invocation: Invocation,
}

impl Histories for Served {
    fn follow_roots(&self) -> bool {
        self.invocation.project.is_none() && self.invocation.database.is_none()
    }

    async fn open(&self, roots: &[PathBuf], cancel: &CancellationToken) -> Result<(Store, Scope)> {
        let Self { line, invocation } = self;
        let own = invocation.project.as_ref().unwrap_or(&line.cwd);
        let (first, others) = roots.split_first().unwrap_or((own, &[]));
        let mut opened = open(line, invocation, first, cancel).await;
        for folder in others {
            if opened.is_err() {
                // Where none has a history, the first is the one to tell of.
                opened = open(line, invocation, folder, cancel).await.or(opened);
            }
        }
        let store = opened?.home.store;
        let scope = scope(&store, invocation.session.clone()).await?;
        // The request that is being worked on is the client's: all that was said in the session is past.
        Ok((store, Scope { newer_request: true, ..scope }))
    }
}
