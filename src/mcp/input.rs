//! Relays a client's messages to rmcp. rmcp silently skips what serde_json rejects, such as a lone surrogate
//! from a model that cuts an emoji in half, and the client would wait forever. Such lines are repaired here,
//! by the same rules as elsewhere. A last line gets its end, and a batch, which only revision 2025-03-26 has,
//! becomes a line for each message: each request is answered on its own.

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt, BufReader};

use lcm_model::read_json;

/// The most bytes of a line; rmcp accepts none longer.
const MOST: u64 = 16 << 20;

/// Relays lines until there are no more, or the receiver is gone.
pub(super) async fn relay(from: impl AsyncRead + Unpin, mut to: impl AsyncWrite + Unpin) {
    let mut from = BufReader::new(from);
    let mut line = Vec::new();
    while let Ok(read @ 1..) = (&mut from).take(MOST).read_until(b'\n', &mut line).await {
        if !line.ends_with(b"\n") && (read as u64) < MOST {
            line.push(b'\n');
        }
        if to.write_all(mended(&line).as_deref().unwrap_or(&line)).await.is_err() {
            break;
        }
        line.clear();
    }
    let _ = to.shutdown().await;
}

/// The messages of the line in a form that serde_json accepts, if the line itself is no such message.
fn mended(line: &[u8]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(line).ok().filter(|text| text.ends_with('\n'))?;
    let parsed = serde_json::from_str(text);
    let is_valid = parsed.is_ok();
    let messages = match parsed.or_else(|_| read_json(text)).ok()? {
        Value::Array(batch) if !batch.is_empty() => batch,
        _ if is_valid => return None,
        message => vec![message],
    };
    Some(messages.iter().map(|message| format!("{message}\n")).collect::<String>().into_bytes())
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
            ("{\"id\": 2}", "{\"id\": 2}\n"),
            ("[{\"id\": 1}, {\"x\":\"\\ud83d\"}]\n[]\n", "{\"id\":1}\n{\"x\":\"\u{fffd}\"}\n[]\n"),
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
