//! Identifiers: row ids internally, lineages across stores, short ids for the model.
//!
//! A message's identity is its *lineage*, as with a commit in git: the hash of its parent's lineage and its
//! own JSON. So equal prefixes of two sessions share their rows, and two equal messages in a row are two
//! rows.

use std::borrow::Cow;
use std::fmt;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use sha2::{Digest as _, Sha256};

use crate::error::{Error, Result};

/// Pi's name among the agents.
pub const PI: &str = "pi";
/// Other agents whose sessions can be stored, as named in commands and in their sessions' ids.
pub const AGENTS: [&str; 4] = ["claude-code", CODEX, "gemini", OPENCODE];
/// The one that copies a session into a side chain.
pub const CODEX: &str = "codex";
/// The one whose forks copy messages that it may rewrite.
pub const OPENCODE: &str = "opencode";

/// Digits of a hash shown to the model, which may send back any unique prefix.
const SHORT: usize = 10;

macro_rules! row_ids {
    ($($(#[$doc:meta])* $name:ident)*) => {$(
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub i64);
    )*};
}

row_ids!(
    /// A row of `conversations`: one Pi session.
    ConversationId
    /// A row of `entries`: one entry of one session's tree.
    EntryId
    /// A row of `messages`: one lineage, or one edited version of a message.
    MessageId
    /// A row of `summaries`: one node of the DAG.
    SummaryId
);

impl ConversationId {
    /// The row of a session that is not stored.
    pub const NONE: Self = Self(0);
}

/// A random number that replaces a purged message's text.
pub type Nonce = [u8; 32];

/// A SHA-256 value that names a message or a summary, the same in every store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The parent of a conversation's first message.
    pub const ROOT: Self = Self([0; 32]);

    /// The hash of `parts`, each preceded by its length so that no two lists of parts collide.
    pub fn of<'a>(parts: impl IntoIterator<Item = &'a [u8]>) -> Self {
        let mut hasher = Sha256::new();
        for part in parts {
            hasher.update((part.len() as u64).to_le_bytes());
            hasher.update(part);
        }
        Self(hasher.finalize().into())
    }

    /// The plain SHA-256 of `bytes`.
    pub fn plain(bytes: &[u8]) -> Self {
        Self(Sha256::digest(bytes).into())
    }

    /// The same of the bytes of `pieces`, one after the other.
    pub fn of_all(pieces: &[impl AsRef<[u8]>]) -> Self {
        let mut hasher = Sha256::new();
        pieces.iter().for_each(|piece| hasher.update(piece));
        Self(hasher.finalize().into())
    }

    /// The lineage of the message `json` below the message of this lineage: `sha256(self ‖ sha256(json))`.
    pub fn child(&self, json: &str) -> Self {
        self.child_of(&Self::plain(json.as_bytes()))
    }

    /// The same for a message of which only the plain hash is known.
    pub fn child_of(&self, digest: &Self) -> Self {
        Self::of_all(&[self.0, digest.0])
    }

    /// The identity of this message as a context edit shows it; it is not part of any lineage.
    pub fn edited(&self, replacement: &str) -> Self {
        Self::of([b"context_edit".as_slice(), &self.0, replacement.as_bytes()])
    }

    /// The lineage of what remains of a purged message below this one. It contains nothing of the text.
    pub fn purged(&self, nonce: &Nonce) -> Self {
        Self::of([b"purged".as_slice(), &self.0, nonce])
    }

    /// The short id of the message with this hash: `m-` and ten digits.
    pub fn message_handle(&self) -> String {
        format!("m-{}", self.short())
    }

    /// The short id of the summary with this hash: `s-` and ten digits.
    pub fn summary_handle(&self) -> String {
        format!("s-{}", self.short())
    }

    /// The hash that `digits` write, all 64 of them.
    pub fn parse(digits: &str) -> Option<Self> {
        let is_whole = digits.len() == 64 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        let mut bytes = [0; 32];
        for (at, byte) in bytes.iter_mut().enumerate().filter(|_| is_whole) {
            *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
        }
        is_whole.then_some(Self(bytes))
    }

    fn short(&self) -> String {
        self.to_string()[..SHORT].to_owned()
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl Serialize for Hash {
    fn serialize<S: Serializer>(&self, to: S) -> std::result::Result<S::Ok, S::Error> {
        to.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Hash {
    fn deserialize<D: Deserializer<'de>>(from: D) -> std::result::Result<Self, D::Error> {
        let digits = Cow::<str>::deserialize(from)?;
        Self::parse(&digits).ok_or_else(|| D::Error::custom("no 64 hexadecimal digits"))
    }
}

/// What a short id names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandleKind {
    /// `m-…`
    Message,
    /// `s-…`
    Summary,
}

/// A short id as a model writes it: a kind and a prefix of the hash.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handle {
    /// What it names.
    pub kind: HandleKind,
    digits: String,
}

impl Handle {
    /// Parses `m-1a2b…` or `s-1a2b…`, in any case, with stray brackets, quotes or spaces around it.
    ///
    /// # Errors
    /// [`crate::error::Code::Invalid`], showing what an id looks like.
    pub fn parse(text: &str) -> Result<Self> {
        let name = text.trim_matches(|c: char| !c.is_ascii_alphanumeric()).to_ascii_lowercase();
        let wrong = || {
            Error::invalid(format!(
                "`{}` is not an id: ids look like m-1a2b3c4d5e (message) or s-1a2b3c4d5e (summary)",
                crate::text::one_line(text, 60)
            ))
        };
        let (kind, digits) = match name.split_at_checked(2) {
            Some(("m-", digits)) => (HandleKind::Message, digits),
            Some(("s-", digits)) => (HandleKind::Summary, digits),
            _ => return Err(wrong()),
        };
        let hexadecimal = digits.bytes().all(|b| b.is_ascii_hexdigit());
        if digits.is_empty() || digits.len() > 64 || !hexadecimal {
            return Err(wrong());
        }
        Ok(Self { kind, digits: digits.to_owned() })
    }

    /// The lowest and the highest hash with this prefix, for a range query over the stored blobs.
    pub fn range(&self) -> (Hash, Hash) {
        let bound = |fill: char| {
            let digits = self.digits.chars().chain(std::iter::repeat(fill)).take(64).collect::<String>();
            // 64 hexadecimal digits always are a hash; if they were not, the range would be empty.
            Hash::parse(&digits).unwrap_or(Hash([0; 32]))
        };
        (bound('0'), bound('f'))
    }
}

impl fmt::Display for Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.kind {
            HandleKind::Message => 'm',
            HandleKind::Summary => 's',
        };
        write!(f, "{prefix}-{}", self.digits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_messages_in_a_row_have_different_lineages() {
        let first = Hash::ROOT.child("{}");
        assert_ne!(first, first.child("{}"));
        assert_eq!(first, Hash::ROOT.child("{}"));
    }

    #[test]
    fn the_range_of_a_prefix_has_all_hashes_beginning_with_it() {
        let (low, high) = Handle::parse("s-8b2").unwrap().range();
        assert!(low.to_string().starts_with("8b2000"), "{low}");
        assert!(high.to_string().starts_with("8b2fff"), "{high}");
    }

    #[test]
    fn an_id_is_read_leniently_and_an_invalid_one_refused_with_an_example() {
        let handle = Handle::parse(" [m-8B2C01] ").unwrap();
        assert_eq!((handle.kind, handle.to_string().as_str()), (HandleKind::Message, "m-8b2c01"));
        for text in ["", "m-", "x-12", "m-xyz", "12345", "m-é"] {
            let message = Handle::parse(text).unwrap_err().to_string();
            assert!(message.contains("ids look like m-1a2b3c4d5e"), "{text}: {message}");
        }
    }
}
