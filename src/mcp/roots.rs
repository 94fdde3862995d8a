//! The folders that a client works in, which MCP calls its roots.

#![expect(deprecated, reason = "the newest revision has removed roots, but today's clients use them")]

use std::path::PathBuf;
use std::time::Duration;

use reqwest::Url;
use rmcp::model::{ClientResult, ListRootsRequest, ServerRequest};
use rmcp::service::{PeerRequestOptions, RequestContext, RoleServer};
use tokio::sync::Mutex;

/// How long a client may take to list them, which needs no user.
const PATIENCE: Duration = Duration::from_secs(2);

/// The client's roots, cached until it reports a change.
#[derive(Default)]
pub(super) struct Roots(Mutex<Option<Vec<PathBuf>>>);

impl Roots {
    /// The client's roots, requested once; none if the client has none or does not answer.
    pub(super) async fn of(&self, context: &RequestContext<RoleServer>) -> Vec<PathBuf> {
        if context.client_capabilities().is_none_or(|client| client.roots.is_none()) {
            return Vec::new();
        }
        let mut known = self.0.lock().await;
        if let Some(roots) = &*known {
            return roots.clone();
        }
        known.insert(ask(context).await.unwrap_or_default()).clone()
    }

    /// Requests them again next time.
    pub(super) async fn forget(&self) {
        *self.0.lock().await = None;
    }
}

async fn ask(context: &RequestContext<RoleServer>) -> Option<Vec<PathBuf>> {
    let request = ServerRequest::ListRootsRequest(ListRootsRequest::default());
    let options = PeerRequestOptions::with_timeout(PATIENCE);
    let asked = context.peer.send_request_with_option(request, options).await.ok()?;
    let ClientResult::ListRootsResult(answer) = asked.await_response().await.ok()? else { return None };
    Some(answer.roots.iter().filter_map(|root| folder(&root.uri)).collect())
}

/// The folder of a `file:///…` address; `None` for any other.
fn folder(uri: &str) -> Option<PathBuf> {
    Url::parse(uri).ok().filter(|uri| uri.scheme() == "file")?.to_file_path().ok()
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn a_root_is_the_folder_of_a_file_address() {
        for (uri, named) in [
            ("file:///home/me/a%20b", Some("/home/me/a b")),
            ("file:///home/me/%D0%B6/", Some("/home/me/ж/")),
            ("file://localhost/srv", Some("/srv")),
            ("file://elsewhere/srv", None),
            ("https://example.com/srv", None),
            ("/home/me", None),
            ("", None),
        ] {
            assert_eq!(folder(uri), named.map(PathBuf::from), "{uri}");
        }
    }
}
