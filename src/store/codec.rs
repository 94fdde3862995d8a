//! How a message's JSON lies in its row: plain, or zstd where that pays.

use crate::error::{Error, Result};

/// Below this many bytes a frame's header eats the gain.
const WORTH_TRYING: usize = 200;
/// Level 3 costs tens of microseconds for a usual message; higher levels win little.
const LEVEL: i32 = 3;

const PLAIN: i64 = 0;
const ZSTD: i64 = 1;

/// The bytes to store and the code that tells how to read them.
pub(super) fn encode(json: &str) -> (Vec<u8>, i64) {
    if json.len() >= WORTH_TRYING
        && let Ok(packed) = zstd::bulk::compress(json.as_bytes(), LEVEL)
        && packed.len() < json.len()
    {
        return (packed, ZSTD);
    }
    (json.as_bytes().to_vec(), PLAIN)
}

/// The JSON of `length` bytes that was stored.
pub(super) fn decode(stored: Vec<u8>, codec: i64, length: i64) -> Result<String> {
    let bytes = match codec {
        PLAIN => stored,
        ZSTD => zstd::bulk::decompress(&stored, usize::try_from(length).unwrap_or_default())
            .map_err(|error| Error::storing("a stored message cannot be unpacked", error))?,
        other => return Err(Error::store(format!("a stored message has the unknown coding {other}"))),
    };
    String::from_utf8(bytes).map_err(|error| Error::storing("a stored message is not UTF-8", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_json_comes_back_byte_for_byte() {
        for json in ["", "{}", &"x".repeat(10_000), &"é\u{0}\u{1f600}".repeat(500)] {
            let (stored, codec) = encode(json);
            assert!(stored.len() <= json.len());
            assert_eq!(decode(stored, codec, i64::try_from(json.len()).unwrap()).unwrap(), json);
        }
    }
}
