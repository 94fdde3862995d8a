//! What only an in-process server shows: a call is cancelled.

use serde_json::json;
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf, duplex, split,
};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::JoinHandle;

use super::*;

/// A history that opens only once it is no longer wanted.
struct Endless(UnboundedSender<&'static str>);

impl Histories for Endless {
    fn is_of_session(&self) -> bool {
        true
    }

    fn follow_roots(&self) -> bool {
        false
    }

    async fn open(&self, _: &[PathBuf], cancel: &CancellationToken) -> Result<(Store, Scope)> {
        self.0.send("began").unwrap();
        cancel.cancelled().await;
        self.0.send("stopped").unwrap();
        Err(Error::cancelled())
    }

    fn with_remedy(&self, error: Error) -> Error {
        error
    }
}

struct Client {
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    out: WriteHalf<DuplexStream>,
}

impl Client {
    async fn say(&mut self, message: Value) {
        self.out.write_all(format!("{message}\n").as_bytes()).await.unwrap();
    }

    async fn hear(&mut self) -> Value {
        serde_json::from_str(&self.lines.next_line().await.unwrap().unwrap()).unwrap()
    }

    /// Calls a tool, as the request `id`.
    async fn call(&mut self, id: u32) {
        let params = json!({"name": "lcm_grep", "arguments": {"query": "x"}});
        self.say(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})).await;
    }
}

async fn a_client(events: UnboundedSender<&'static str>) -> (Client, JoinHandle<Result<()>>) {
    let (ours, theirs) = duplex(1 << 16);
    let (input, output) = split(ours);
    let served = tokio::spawn(serve_on(input, output, Endless(events), CancellationToken::new()));
    let (input, out) = split(theirs);
    let mut client = Client { lines: BufReader::new(input).lines(), out };
    let own = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}});
    client.say(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": own})).await;
    assert_eq!(client.hear().await["result"]["protocolVersion"], "2025-06-18");
    (client, served)
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_call_stops() {
    let (events, mut heard) = unbounded_channel();
    let (mut client, _served) = a_client(events).await;
    client.call(1).await;
    assert_eq!(heard.recv().await, Some("began"));
    client
        .say(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}))
        .await;
    assert_eq!(heard.recv().await, Some("stopped"));
    // Nothing more comes for it.
    client.say(json!({"jsonrpc": "2.0", "id": 2, "method": "ping"})).await;
    assert_eq!(client.hear().await["id"], 2);
}

#[tokio::test(start_paused = true)]
async fn a_server_ends_with_its_client_despite_running_calls() {
    let (events, mut heard) = unbounded_channel();
    let (mut client, served) = a_client(events).await;
    client.call(1).await;
    assert_eq!(heard.recv().await, Some("began"));
    client.out.shutdown().await.unwrap();
    served.await.unwrap().unwrap();
    assert_eq!(heard.recv().await, Some("stopped"));
}
