//! Complete calls to local servers that behave in various ways.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;

use super::{facts, glm, haiku, keyed, question, with};
use crate::llm::direct::{Direct, direct};
use crate::llm::{Answer, Failure, Kind, ModelRequest};

/// How a server answers a request.
#[derive(Clone)]
enum Act {
    /// Sends this and closes.
    Say(String),
    /// Sends this and then nothing, without closing.
    Stall(String),
    /// Announces this many bytes and keeps sending until the client stops.
    Flood(usize),
}

struct Server {
    url: String,
    /// The received requests, heads and bodies.
    requests: mpsc::UnboundedReceiver<String>,
    connections: Arc<AtomicUsize>,
}

async fn server(act: Act) -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::unbounded_channel();
    let connections = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&connections);
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            counter.fetch_add(1, Ordering::Relaxed);
            tokio::spawn(serve(stream, act.clone(), sender.clone()));
        }
    });
    Server { url, requests, connections }
}

async fn serve(mut stream: TcpStream, act: Act, requests: mpsc::UnboundedSender<String>) {
    requests.send(read_request(&mut stream).await).ok();
    match act {
        Act::Say(answer) => stream.write_all(answer.as_bytes()).await.unwrap(),
        Act::Stall(start) => {
            stream.write_all(start.as_bytes()).await.unwrap();
            // Until the client gives up.
            stream.read_to_end(&mut Vec::new()).await.ok();
        }
        Act::Flood(bytes) => {
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {bytes}\r\n\r\n");
            stream.write_all(head.as_bytes()).await.unwrap();
            let chunk = vec![b' '; 64 * 1024];
            while stream.write_all(&chunk).await.is_ok() {}
        }
    }
}

async fn read_request(stream: &mut TcpStream) -> String {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            if body.len() >= length.unwrap_or_default() {
                return text;
            }
        }
        let count = stream.read(&mut chunk).await.unwrap();
        assert!(count > 0, "the request ended early: {text}");
        bytes.extend_from_slice(&chunk[..count]);
    }
}

fn answer(status: &str, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\nconnection: close\r\n\r\n{body}", body.len())
}

/// A model of each wire format at the server.
fn lines(server: &Server) -> [Direct; 2] {
    let at = |model: Value| {
        direct(&facts(keyed(with(model, json!({"provider": "own", "baseUrl": server.url}))))).unwrap()
    };
    [at(glm()), at(haiku())]
}

async fn asked(act: Act, request: ModelRequest) -> Answer {
    let server = server(act).await;
    let [line, _] = lines(&server);
    line.ask(&request).await
}

async fn failure(status: &str, headers: &str, body: &str) -> Failure {
    asked(Act::Say(answer(status, headers, body)), question()).await.unwrap_err()
}

#[tokio::test]
async fn a_question_is_sent_and_its_answer_read() {
    let whole = json!({"choices": [{"message": {"content": "It did."}, "finish_reason": "stop"}], "usage": {"prompt_tokens": 5}});
    let mut server = server(Act::Say(answer("200 OK", "", &whole.to_string()))).await;
    let [line, _] = lines(&server);
    let reply = line.ask(&question()).await.unwrap();
    assert_eq!((reply.text.as_str(), reply.model.as_deref()), ("It did.", Some("own/zai-glm-4.7")));
    let request = server.requests.recv().await.unwrap();
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("POST /chat/completions HTTP/1.1\r\n"), "{head}");
    assert!(head.contains("authorization: Bearer sk-a1b2c3d4e5f6g7h8"), "{head}");
    assert_eq!(serde_json::from_str::<Value>(body).unwrap(), line.body(&question()));
}

#[tokio::test]
async fn the_other_wire_format_has_its_own_path_and_key() {
    let whole = json!({"content": [{"type": "text", "text": "It did."}], "stop_reason": "end_turn", "usage": {"input_tokens": 5}});
    let mut server = server(Act::Say(answer("200 OK", "", &whole.to_string()))).await;
    let [_, line] = lines(&server);
    assert_eq!(line.ask(&question()).await.unwrap().usage.unwrap()["input"], 5);
    let request = server.requests.recv().await.unwrap();
    assert!(request.starts_with("POST /v1/messages HTTP/1.1\r\n"), "{request}");
    assert!(
        request.contains("x-api-key: sk-a1b2c3d4e5f6g7h8\r\n")
            && request.contains("anthropic-version: 2023-06-01\r\n")
    );
    assert!(!request.contains("authorization"));
}

#[tokio::test]
async fn a_wrong_key_is_reported_and_not_repeated() {
    let said = r#"{"error":{"message":"Incorrect API key provided: sk-a1b2c3d4e5f6g7h8.","code":"invalid_api_key"}}"#;
    let failed = failure("401 Unauthorized", "", said).await;
    let expected = Failure {
        status: Some(401),
        ..Failure::of(Kind::Rejected, "401: Incorrect API key provided: [key].")
    };
    assert_eq!(failed, expected);
}

#[tokio::test]
async fn a_busy_provider_says_when_to_retry() {
    let said = r#"{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}"#;
    let failed = failure("429 Too Many Requests", "retry-after: 7\r\n", said).await;
    assert_eq!((failed.reason.as_str(), failed.answered()), ("429: slow down", false));
    assert_eq!((failed.status, failed.retry_after_ms), (Some(429), Some(7_000)));
    let failed = failure("529 Overloaded", "", r#"{"error":{"message":"Overloaded"}}"#).await;
    assert_eq!(
        (failed.reason.as_str(), failed.status, failed.retry_after_ms),
        ("529: Overloaded", Some(529), None)
    );
}

#[tokio::test]
async fn error_messages_come_in_all_forms() {
    let cases = [
        (r#"{"error":"no such model"}"#, "404: no such model"),
        (r#"{"message":"no such path"}"#, "404: no such path"),
        (r#"{"detail":"not here"}"#, "404: not here"),
        ("not found", "404: not found"),
        ("<html><body>nginx</body></html>", "404: no reason given"),
        ("", "404: no reason given"),
    ];
    for (said, reason) in cases {
        assert_eq!(failure("404 Not Found", "", said).await.reason, reason);
    }
    let long = failure("500 Oh", "", &"ä".repeat(10_000)).await.reason;
    assert_eq!(long.chars().count(), "500: ".len() + 500);
}

#[tokio::test]
async fn a_success_status_is_not_yet_an_answer() {
    for (said, reason) in [
        ("{\"choices\": [", "its answer is not JSON"),
        ("[]", "its answer is not JSON"),
        (r#"{"error":{"message":"upstream"}}"#, "upstream"),
        ("{}", "the answer is incomplete"),
    ] {
        let failed = failure("200 OK", "", said).await;
        assert_eq!((failed.reason.as_str(), failed.answered(), failed.status), (reason, false, Some(200)));
    }
    let cut = json!({"choices": [{"message": {"content": "half"}, "finish_reason": "length"}]});
    let failed = failure("200 OK", "", &cut.to_string()).await;
    assert!(failed.answered() && failed.usage.is_some());
}

#[tokio::test]
async fn a_redirect_is_not_followed() {
    let elsewhere = server(Act::Say(answer("200 OK", "", "{}"))).await;
    let location = format!("location: {}/chat/completions\r\n", elsewhere.url);
    for status in ["302 Found", "307 Temporary Redirect"] {
        let failed = failure(status, &location, "").await;
        let expected = format!("{}: it redirects to another address, which never gets the key", &status[..3]);
        assert!(failed.reason == expected && failed.status == status[..3].parse().ok(), "{failed:?}");
    }
    assert_eq!(elsewhere.connections.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn an_endless_answer_is_cut_off() {
    let failed = asked(Act::Flood(1 << 30), question()).await.unwrap_err();
    assert_eq!((failed.reason.as_str(), failed.status), ("its answer is larger than 16 MB", Some(200)));
}

#[tokio::test]
async fn a_broken_connection_is_not_an_answer() {
    for start in [
        "",
        "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"choices\"",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n{\"a",
    ] {
        let failed = asked(Act::Say(start.into()), question()).await.unwrap_err();
        assert!(failed.reason.starts_with("the connection broke: "), "{}", failed.reason);
        assert_eq!((failed.answered(), failed.status), (false, None), "{start}");
    }
}

#[tokio::test]
async fn an_unreachable_server_is_reported() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let line = direct(&facts(keyed(with(glm(), json!({"baseUrl": url, "provider": "own"}))))).unwrap();
    let failed = line.ask(&question()).await.unwrap_err();
    assert!(failed.reason.starts_with("it can't be reached: "), "{}", failed.reason);
}

#[tokio::test]
async fn the_time_limit_covers_the_whole_call() {
    for start in ["", "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{\"choices\""] {
        let failed = asked(Act::Stall(start.into()), ModelRequest { timeout_ms: 100, ..question() })
            .await
            .unwrap_err();
        assert_eq!(
            (failed.reason.as_str(), failed.answered(), failed.status),
            ("no answer within 0.1 s", false, None)
        );
    }
}

#[tokio::test]
async fn a_dropped_call_hangs_up() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let line = direct(&facts(keyed(with(glm(), json!({"baseUrl": url, "provider": "own"}))))).unwrap();
    let call = tokio::spawn(async move { line.ask(&question()).await });
    let (mut stream, _) = listener.accept().await.unwrap();
    read_request(&mut stream).await;
    call.abort();
    // The end of the stream, or a reset: in either case the client is gone.
    assert!(matches!(stream.read(&mut [0; 1]).await, Ok(0) | Err(_)));
}
