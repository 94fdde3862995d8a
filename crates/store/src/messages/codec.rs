//! Encodes a message's JSON in its row: plain, or zstd if that is smaller. Very long ones stay plain, so that no
//! row unpacks to more than [`MOST_PACKED`] bytes: a small database from elsewhere could otherwise fill all memory.
//!
//! Most messages are a kilobyte or less, too short for a compressor to learn from. Their common parts are in
//! a dictionary that ships with the engine. A shipped dictionary never changes.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::sync::LazyLock;
use std::thread::LocalKey;

use zstd::bulk::{Compressor, Decompressor};
use zstd::dict::{DecoderDictionary, EncoderDictionary};
use zstd::stream::read::Decoder;
use zstd::zstd_safe::{CParameter, MAGICNUMBER};

use lcm_model::error::{Error, Result};

/// Made by `examples/dictionary.rs` from this project's own texts.
const DICTIONARY: &[u8] = include_bytes!("messages.dictionary");
/// Compression gains nothing below this many bytes.
const WORTH_TRYING: usize = 48;
/// Higher levels cost more than they save: see docs/storage.md.
const LEVEL: i32 = 7;
/// For what is not worth [`LEVEL`]: a quarter of the time, a twentieth more bytes.
const QUICK_LEVEL: i32 = 2;
/// The longest text that is packed: a line of another agent's log as long as an import reads, as the text and as the record.
pub(crate) const MOST_PACKED: usize = 512_000_000;

const PLAIN: i64 = 0;
const ZSTD: i64 = 1;
/// A random number in place of a purged message.
pub(crate) const PURGED: i64 = -1;

static ENCODER: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, LEVEL));
static QUICK_ENCODER: LazyLock<EncoderDictionary<'static>> =
    LazyLock::new(|| EncoderDictionary::copy(DICTIONARY, QUICK_LEVEL));
static DECODER: LazyLock<DecoderDictionary<'static>> = LazyLock::new(|| DecoderDictionary::copy(DICTIONARY));

thread_local! {
    // Creating a context costs more than compressing one message.
    static COMPRESSOR: Packer = RefCell::new(compressor(&ENCODER));
    static QUICK_COMPRESSOR: Packer = RefCell::new(compressor(&QUICK_ENCODER));
    static DECOMPRESSOR: RefCell<io::Result<Decompressor<'static>>> =
        RefCell::new(Decompressor::with_prepared_dictionary(&DECODER));
}

type Packer = RefCell<io::Result<Compressor<'static>>>;

fn compressor(encoder: &'static EncoderDictionary<'static>) -> io::Result<Compressor<'static>> {
    let mut compressor = Compressor::with_prepared_dictionary(encoder)?;
    // The row already says which dictionary it is and how long the text is.
    compressor.set_parameter(CParameter::DictIdFlag(false))?;
    compressor.set_parameter(CParameter::ContentSizeFlag(false))?;
    Ok(compressor)
}

/// The most memory for reading a packed file, as a power of two: it may come from elsewhere.
const WINDOW: u32 = 24;

/// Reads a file, which may be packed as a whole.
pub fn reading(file: File, buffer: usize) -> io::Result<Box<dyn BufRead + Send>> {
    let mut plain = BufReader::with_capacity(buffer, file);
    if !plain.fill_buf()?.starts_with(&MAGICNUMBER.to_le_bytes()) {
        return Ok(Box::new(plain));
    }
    let mut unpacked = Decoder::with_buffer(plain)?;
    unpacked.window_log_max(WINDOW)?;
    Ok(Box::new(BufReader::with_capacity(buffer, unpacked)))
}

/// The bytes to store, `None` for the text itself, and the code to decode them.
pub(crate) fn encode(json: &str) -> (Option<Vec<u8>>, i64) {
    encode_with(&COMPRESSOR, json)
}

/// The same at [`QUICK_LEVEL`].
pub(crate) fn encode_quickly(json: &str) -> (Option<Vec<u8>>, i64) {
    encode_with(&QUICK_COMPRESSOR, json)
}

fn encode_with(packer: &'static LocalKey<Packer>, json: &str) -> (Option<Vec<u8>>, i64) {
    let pack = || packer.with_borrow_mut(|packer| packer.as_mut().ok()?.compress(json.as_bytes()).ok());
    match (WORTH_TRYING..=MOST_PACKED).contains(&json.len()).then(pack).flatten() {
        Some(packed) if packed.len() < json.len() => (Some(packed), ZSTD),
        _ => (None, PLAIN),
    }
}

/// Text with a header for decoding it: one byte for its codec, four for its length.
pub(crate) fn seal(text: &str) -> Vec<u8> {
    let (packed, codec) = encode(text);
    let length = u32::try_from(text.len()).unwrap_or(u32::MAX);
    let mut sealed = vec![codec as u8];
    sealed.extend(length.to_le_bytes());
    sealed.extend_from_slice(packed.as_deref().unwrap_or(text.as_bytes()));
    sealed
}

/// The inverse of [`seal`].
pub fn unseal(sealed: &[u8]) -> Result<String> {
    let Some(([head, length @ ..], packed)) = sealed.split_first_chunk::<5>() else {
        return Err(Error::store("a stored message is cut off"));
    };
    decode(packed, i64::from(*head), i64::from(u32::from_le_bytes(*length)))
}

/// Decodes stored JSON of `length` bytes.
pub(crate) fn decode<'s>(stored: impl Into<Cow<'s, [u8]>>, codec: i64, length: i64) -> Result<String> {
    decoded(stored.into(), codec, length).and_then(text)
}

/// The bytes of stored JSON.
pub(crate) fn decoded(stored: Cow<'_, [u8]>, codec: i64, length: i64) -> Result<Vec<u8>> {
    let bytes = match codec {
        PLAIN => Ok(stored.into_owned()),
        ZSTD => {
            let length = usize::try_from(length).ok().filter(|length| *length <= MOST_PACKED);
            let length = length.ok_or_else(|| Error::store("a stored message has an impossible length"))?;
            DECOMPRESSOR.with_borrow_mut(|decompressor| match decompressor {
                Ok(decompressor) => decompressor.decompress(&stored, length),
                Err(error) => Err(io::Error::other(error.to_string())),
            })
        }
        PURGED => return Err(Error::store("a message that was purged has no text")),
        other => return Err(Error::store(format!("a stored message has the unknown coding {other}"))),
    };
    bytes.map_err(|error| Error::storing("a stored message cannot be unpacked", error))
}

pub(crate) fn text(bytes: Vec<u8>) -> Result<String> {
    String::from_utf8(bytes).map_err(|error| Error::storing("a stored message is not UTF-8", error))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn samples() -> Vec<String> {
        let message =
            r#"{"role":"user","content":[{"type":"text","text":"go on"}],"timestamp":1763629920000}"#;
        vec![
            String::new(),
            "{}".into(),
            message.into(),
            "x".repeat(10_000),
            "é\u{0}\u{1f600}".repeat(500),
            message.repeat(5_000),
        ]
    }

    #[test]
    fn json_round_trips_byte_for_byte() {
        for json in samples() {
            for (packed, codec) in [encode(&json), encode_quickly(&json)] {
                let stored = packed.unwrap_or_else(|| json.clone().into_bytes());
                assert!(stored.len() <= json.len());
                assert_eq!(decode(stored, codec, i64::try_from(json.len()).unwrap()).unwrap(), json);
            }
            assert_eq!(unseal(&seal(&json)).unwrap(), json);
        }
        assert!(unseal(b"1234").is_err());
    }

    #[test]
    fn a_row_from_elsewhere_unpacks_to_a_bounded_size_and_a_longer_text_stays_plain() {
        let length = |text: &str| i64::try_from(text.len()).unwrap();
        // Memory that is never written takes none.
        let longer = String::from_utf8(vec![0; MOST_PACKED + 1]).unwrap();
        assert_eq!(encode_quickly(&longer), (None, PLAIN));
        let bomb = zstd::bulk::compress(&longer.as_bytes()[..1 << 20], 3).unwrap();
        assert!(bomb.len() * 1000 < 1 << 20);
        assert!(decode(&bomb, ZSTD, length(&longer)).is_err() && decode(&bomb, ZSTD, 1 << 19).is_err());
    }

    #[test]
    fn the_dictionary_has_not_changed() {
        let hash = lcm_model::ids::Hash::plain(DICTIONARY);
        assert_eq!(hash.to_string(), "3cd3017342b8e4e80f39a8c6228297584c8f20f72b0ff260a8a759f79031392c");
    }

    #[test]
    fn a_short_message_gains_from_the_dictionary() {
        let json = &samples()[2];
        assert!(encode(json).0.is_some_and(|packed| packed.len() * 2 < json.len()));
    }

    #[test]
    fn damaged_data_is_an_error() {
        let json = &samples()[5];
        let (stored, codec) = encode(json);
        let stored = stored.unwrap();
        let length = i64::try_from(json.len()).unwrap();
        assert!(decode(stored[..stored.len() / 2].to_vec(), codec, length).is_err());
        assert!(decode(stored.clone(), codec, length / 2).is_err());
        assert!(decode(stored.clone(), 9, length).is_err());
        for impossible in [-1, 1 << 40, i64::MAX] {
            assert!(decode(stored.clone(), codec, impossible).is_err());
        }
    }
}
