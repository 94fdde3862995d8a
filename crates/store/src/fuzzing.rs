//! Rows of an untrusted database: compressed texts with any codec and length.

use super::messages::codec::{decode, encode, encode_quickly, seal, unseal};
use super::summaries::extras::Extras;

/// Decodes `bytes` as a message's row and as a summary's extra column, and encodes the text in them: each
/// must round-trip.
#[expect(clippy::unwrap_used, reason = "a fuzz target panics on a broken invariant")]
pub fn rows(bytes: &[u8]) {
    let Some(([codec, length @ ..], packed)) = bytes.split_first_chunk::<5>() else { return };
    // From the code for purged messages to the first unknown one.
    let (codec, length) = (i64::from(codec % 5) - 1, i64::from(i32::from_le_bytes(*length)));
    if let Ok(text) = decode(packed.to_vec(), codec, length) {
        assert!(codec == 0 || i64::try_from(text.len()).unwrap() <= length, "it is longer than its row says");
        assert_eq!(decode(packed, codec, length).unwrap(), text);
    }
    if let Ok(text) = unseal(bytes) {
        assert_eq!(unseal(&seal(&text)).unwrap(), text);
    }
    let extras = Extras::from_sql(Some(bytes.to_vec()));
    assert_eq!(Extras::from_sql(extras.to_sql()).to_sql(), extras.to_sql());
    let text = String::from_utf8_lossy(packed);
    for (packed, codec) in [encode(&text), encode_quickly(&text)] {
        let stored = packed.unwrap_or_else(|| text.as_bytes().to_vec());
        assert_eq!(decode(stored, codec, i64::try_from(text.len()).unwrap()).unwrap(), text);
    }
    // A summary's extra data is compressed JSON, which random inputs rarely are.
    let extras = Extras::from_sql(Some(seal(&text)));
    assert_eq!(Extras::from_sql(extras.to_sql()).to_sql(), extras.to_sql());
}
