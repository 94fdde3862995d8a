//! Messages and summaries as resources: `lcm://m-1a2b3c4d5e`, `lcm://s-8b2c01d4e7`. A resource contains the
//! answer of `lcm_expand`.

use rmcp::model::{Resource, ResourceContents, ResourceTemplate};
use serde_json::json;

use crate::tools::{self, Block};
use lcm_model::error::{Error, Result};
use lcm_model::text::one_line;
use lcm_recall::Scope;
use lcm_recall::describe::{Item, end, overview};
use lcm_store::Store;

const SCHEME: &str = "lcm://";
const TEXT: &str = "text/plain";

/// The summaries of the last session's branch, and its newest messages.
pub(super) async fn list(store: &Store, scope: &Scope) -> Result<Vec<Resource>> {
    let scope = scope.clone();
    store
        .read(move |view| {
            let summaries = overview(view, &scope)?.frontier.into_iter().filter_map(|item| match item {
                Item::Summary(card, _) => {
                    Some(resource(&card.handle, &card.title, tools::summary_line(&card)))
                }
                Item::Messages { .. } => None,
            });
            let mut listed: Vec<Resource> = summaries.collect();
            let newest = end(view, &scope, true)?.messages;
            listed.extend(
                newest
                    .iter()
                    .map(|line| resource(&line.card.handle, &line.headline, tools::message_line(&line.card))),
            );
            Ok(listed)
        })
        .await
}

fn resource(handle: &str, title: &str, description: String) -> Resource {
    Resource::new(format!("{SCHEME}{handle}"), handle)
        .with_title(title)
        .with_description(description)
        .with_mime_type(TEXT)
}

/// The addresses of all others.
pub(super) fn templates() -> Vec<ResourceTemplate> {
    [("m", "message", "A message, word for word"), ("s", "summary", "A summary, with what it was made from")]
        .into_iter()
        .map(|(kind, name, description)| {
            ResourceTemplate::new(format!("{SCHEME}{kind}-{{hash}}"), name)
                .with_description(format!("{description}; {}.", tools::IDS))
                .with_mime_type(TEXT)
        })
        .collect()
}

/// The tool call that returns a resource's contents.
///
/// # Errors
/// When it is not an address of ours.
pub(super) fn call(uri: &str) -> Result<(&'static str, String)> {
    let Some(id) = uri.strip_prefix(SCHEME).filter(|id| !id.is_empty()) else {
        let uri = one_line(uri, 60);
        return Err(Error::invalid(format!("there is no resource `{uri}`: lcm://m-1a2b3c4d5e would be one")));
    };
    Ok((tools::EXPAND, json!({"summary_id": id}).to_string()))
}

/// A block of an answer as part of the resource `uri`.
pub(super) fn contents(block: Block, uri: &str) -> Option<ResourceContents> {
    match block {
        Block::Text(text) => Some(ResourceContents::text(text, uri)),
        Block::Image(image) => Some(ResourceContents::blob(image.data, uri).with_mime_type(image.mime_type)),
        Block::Data(_) => None,
    }
}
