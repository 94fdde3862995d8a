//! Relays a client's messages to rmcp. rmcp silently skips what serde_json rejects, such as a lone surrogate
//! from a model that cuts an emoji in half, and the client would wait forever. Such lines are repaired here,
//! by the same rules as elsewhere.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use crate::model::read_json;

/// The most bytes of a line; rmcp accepts none longer.
const MOST: u64 = 16 << 20;

/// Relays lines until there are no more, or the receiver is gone.
pub(super) async fn relay(from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while let Ok(1..) = (&mut from).take(MOST).read_until(b'\n', &mut line).await {
        if to.write_all(mended(&line).as_deref().unwrap_or(&line)).await.is_err() {
            break;
        }
        line.clear();
    }
    let _ = to.shutdown().await;
}

/// The line in a form that serde_json accepts; `None` if it already does, or never can.
fn mended(line: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(line).ok().filter(|text| text.ends_with('\n'))?;
    if serde_json::from_str::<Value>(text).is_ok() {
        return None;
    }
    Some(format!("{}\n", read_json(text).ok()?).into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn valid_lines_stay_as_they_are_and_repairable_lines_are_repaired() {
        let deep = format!("{{\"id\":1,\"x\":{}{}}}\n", "[".repeat(500), "]".repeat(500));
        for (said, heard) in [
            ("{\"id\": 1.50}\r\n", "{\"id\": 1.50}\r\n"),
            ("{\"x\":\"\\ud83d\\ude00\"}\n", "{\"x\":\"\\ud83d\\ude00\"}\n"),
            ("{\"x\": \"\\ud83d\"}\n", "{\"x\":\"\u{fffd}\"}\n"),
            ("nothing\n\n{\n", "nothing\n\n{\n"),
            ("{\"x\":\"\\ud83d\"}", "{\"x\":\"\\ud83d\"}"),
        ] {
            let mut out = Vec::new();
            relay(said.as_bytes(), &mut out).await;
            assert_eq!(String::from_utf8(out).unwrap(), heard);
        }
        let mut out = Vec::new();
        relay(deep.as_bytes(), &mut out).await;
        assert_eq!(serde_json::from_slice::<Value>(&out).unwrap()["id"], 1);
    }
}
