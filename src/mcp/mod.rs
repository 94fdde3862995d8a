//! The tools for other agents: a read-only Model Context Protocol server on stdin and stdout.
//!
//! [`crate::tools`] defines the tools' arguments and answers, exactly as in Pi; this module translates them
//! to MCP. Each question opens the history, so that an answer is never older than the store, and nothing
//! stays open in between.
//!
//! rmcp logs through `tracing`, to which nothing subscribes: stdout carries only the protocol, and stderr
//! nothing.

mod input;
mod roots;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult,
    ErrorCode, ErrorData, Implementation, ListToolsResult, PaginatedRequestParams, ServerCapabilities,
    ServerConfig, Tool, ToolAnnotations,
};
use rmcp::service::{NotificationContext, RequestContext, RoleServer, ServerInitializeError};
use rmcp::{ServerHandler, ServiceExt};
use serde_json::Value;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::tools::{self, Block};
use lcm_model::error::{Error, Result};
use lcm_recall::Scope;
use lcm_store::Store;
use roots::Roots;

/// A request's context, and MCP's answer to it.
type McpContext = RequestContext<RoleServer>;
type McpResult<T> = std::result::Result<T, ErrorData>;

/// The server's description for a client's model, and what it says instead where questions are about one session.
const INSTRUCTIONS: &str = include_str!("instructions.md");
const OF_SESSION: [(&str, &str); 2] = [
    ("lcm_grep searches all sessions", "lcm_grep searches one of them, and the others if it has nothing"),
    ("the session that was used last", "that session"),
];
/// Bytes of input that may wait to be read.
const PIPE: usize = 1 << 16;
/// How `lcm_grep` describes itself and its session where it searches the project by default.
const OF_PROJECT: &str = "Search everything ever said in this project, in all its sessions: requests, replies, tool \
    calls and output. Start here: the snippets often are the answer; else lcm_expand an id.";
const WHICH_SESSION: &str = "project (default), this (the one used last) or a session's id.";
/// Calls answered at once; others wait. Each opens the history, with threads and a cache of its own.
const AT_ONCE: usize = 4;
/// How long running work may take once the client is gone.
const GRACE: Duration = Duration::from_millis(500);

/// The histories that a server answers from.
pub trait Histories: Send + Sync + 'static {
    /// Whether the history is that of a folder that the client works in.
    fn follow_roots(&self) -> bool;

    /// Whether questions are about one session, chosen when the server was started. Otherwise a search covers the
    /// project: the client's session is none of these.
    fn is_of_session(&self) -> bool;

    /// Opens the history of the first of `roots`, the folders that the client works in, that has one; without
    /// any, that of the folder in which the server was started. Work on it stops when `cancel` is raised.
    ///
    /// # Errors
    /// When there is none, or it can't be read; the message is for the client's model.
    fn open(
        &self,
        roots: &[PathBuf],
        cancel: &CancellationToken,
    ) -> impl Future<Output = Result<(Store, Scope)>> + Send;

    /// An error of the history with what mends it.
    fn with_remedy(&self, error: Error) -> Error;
}

/// Serves one client on stdin and stdout until it disconnects or `cancel` is raised.
///
/// # Errors
/// When the first input is not MCP, or the answer to it can't be written.
pub async fn serve(histories: impl Histories, cancel: CancellationToken) -> Result<()> {
    let (stdin, stdout) = rmcp::transport::stdio_pipes();
    serve_on(stdin, stdout, histories, cancel).await
}

async fn serve_on(
    input: impl AsyncRead + Send + Unpin + 'static,
    output: impl AsyncWrite + Send + Unpin + 'static,
    histories: impl Histories,
    cancel: CancellationToken,
) -> Result<()> {
    let (lines, relayed) = tokio::io::simplex(PIPE);
    let relay = tokio::spawn(input::relay(input, relayed));
    let server = Server {
        tools: tools(histories.is_of_session()),
        roots: Roots::default(),
        histories,
        slots: Semaphore::new(AT_ONCE),
    };
    let running = match server.serve_with_ct((lines, output), cancel).await {
        Ok(running) => running,
        Err(ServerInitializeError::ConnectionClosed(_) | ServerInitializeError::Cancelled) => return Ok(()),
        Err(ServerInitializeError::ExpectedInitializeRequest(_)) => {
            return Err(Error::invalid(
                "mcp speaks the Model Context Protocol, and what came on stdin does not begin with a request of it",
            ));
        }
        Err(error) => return Err(Error::storing("the MCP client can't be answered", error)),
    };
    // Requests from before the end of input are answered, within limits: rmcp itself would wait for seconds.
    let in_time = async {
        let _ = relay.await;
        tokio::time::sleep(GRACE).await;
    };
    tokio::select! {
        _ = running.waiting() => {}
        () = in_time => {}
    }
    Ok(())
}

struct Server<H> {
    tools: Vec<Tool>,
    roots: Roots,
    histories: H,
    slots: Semaphore,
}

fn instructions(is_of_session: bool) -> String {
    let all = INSTRUCTIONS.trim_ascii_end().to_owned();
    let of_session = OF_SESSION.iter().filter(|_| is_of_session);
    of_session.fold(all, |text, (of_all, of_one)| text.replace(of_all, of_one))
}

/// The tools of [`tools::specs`]; notes exist only in Pi's sessions.
fn tools(is_of_session: bool) -> Vec<Tool> {
    let Value::Array(mut specs) = tools::specs(false) else { return Vec::new() };
    for spec in specs.iter_mut().filter(|spec| !is_of_session && spec["name"] == tools::GREP) {
        spec["description"] = OF_PROJECT.into();
        spec["parameters"]["properties"]["session"]["description"] = WHICH_SESSION.into();
        spec["parameters"]["properties"]["agent"]["description"] = "Only what it said.".into();
    }
    specs.iter().map(tool).collect()
}

fn tool(spec: &Value) -> Tool {
    let text = |key: &str| spec[key].as_str().unwrap_or_default().to_owned();
    let (name, title, description) = (text("name"), text("label"), text("description"));
    let schema = |key: &str| spec[key].as_object().cloned().map(Arc::new);
    let (parameters, output) = (schema("parameters").unwrap_or_default(), schema("outputSchema"));
    let hints = ToolAnnotations::new().read_only(true).destructive(false).idempotent(true).open_world(false);
    let mut tool = Tool::new(name, description, parameters).with_title(title).with_annotations(hints);
    tool.output_schema = output;
    tool
}

impl<H: Histories> Server<H> {
    async fn answer(&self, name: &str, arguments: &str, context: &McpContext) -> Result<Vec<Block>> {
        let _slot = self.slots.acquire().await.ok();
        let roots = if self.histories.follow_roots() { self.roots.of(context).await } else { Vec::new() };
        let (store, scope) = self.histories.open(&roots, &context.ct).await?;
        let answer = tools::call(&store, &scope, name, arguments, None, &context.ct).await;
        store.close().await;
        answer
    }
}

/// An answer in MCP's format. Some clients show their model the data in place of the text.
fn result(blocks: Vec<Block>) -> CallToolResult {
    let (mut contents, mut structured) = (Vec::new(), None);
    for block in blocks {
        match block {
            Block::Text(text) => contents.push(ContentBlock::text(text)),
            Block::Image(image) => contents.push(ContentBlock::image(image.data, image.mime_type)),
            Block::Data(data) => structured = Some(data),
        }
    }
    let mut result = CallToolResult::success(contents);
    result.structured_content = structured;
    result
}

impl<H: Histories> ServerHandler for Server<H> {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder().enable_tools().build();
        let own = Implementation::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION"));
        ServerConfig::new(capabilities)
            .with_server_info(own.with_title("History of Pi's sessions"))
            .with_instructions(instructions(self.histories.is_of_session()))
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: McpContext,
    ) -> McpResult<ListToolsResult> {
        Ok(ListToolsResult::with_all_items(self.tools.clone()))
    }

    async fn call_tool(
        &self,
        asked: CallToolRequestParams,
        context: McpContext,
    ) -> McpResult<CallToolResponse> {
        if !self.tools.iter().any(|tool| tool.name == asked.name) {
            return Err(ErrorData::invalid_params(tools::unknown(&asked.name).to_string(), None));
        }
        let mut arguments = asked.arguments.unwrap_or_default();
        if asked.name == tools::GREP && arguments.contains_key("query") && !self.histories.is_of_session() {
            arguments.entry("session").or_insert_with(|| "project".into());
        }
        let arguments = Value::Object(arguments).to_string();
        // A failure is for the model, as in Pi, so that it can correct its call.
        let answer = match self.answer(&asked.name, &arguments, &context).await {
            Ok(blocks) => result(blocks),
            Err(error) => {
                CallToolResult::error(vec![ContentBlock::text(self.histories.with_remedy(error).to_string())])
            }
        };
        Ok(answer.into())
    }

    /// Also receives requests that rmcp can't parse.
    async fn on_custom_request(&self, asked: CustomRequest, _: McpContext) -> McpResult<CustomResult> {
        Err(match asked.method.as_str() {
            "tools/call" => ErrorData::invalid_params(
                "a call needs a name, and its arguments must be a JSON object",
                None,
            ),
            _ => ErrorData::new(ErrorCode::METHOD_NOT_FOUND, asked.method, None),
        })
    }

    async fn on_roots_list_changed(&self, _: NotificationContext<RoleServer>) {
        self.roots.forget().await;
    }
}
