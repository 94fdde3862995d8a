//! What a client says, on its way to rmcp. What serde_json refuses rmcp passes over in silence, and the client waits for ever: a
//! model that cuts an emoji in half is enough. Such lines are mended as everywhere else in this house.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use crate::model::read_json;

/// Bytes of a line that are looked at; rmcp takes none that is longer.
const MOST: u64 = 16 << 20;

/// Hands lines on until there are no more, or nobody takes them.
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

/// The line as serde_json reads it, where it does not yet and can be made to.
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
    async fn what_can_be_read_stays_as_it_is_and_what_can_be_mended_is() {
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
