//! The one error type: what went wrong, named with its operand, and a code a caller can branch on.
//!
//! Messages are lower case, without a full stop, and end where the next `: cause` would begin. What a user or a
//! model did wrong ([`Code::Invalid`]) is written for them: what is wrong and what would be right.

use std::fmt;

/// What the engine's functions return.
pub type Result<T> = std::result::Result<T, Error>;

/// What kind of failure it was; everything a caller may decide upon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Input that cannot be right; the message says what would be.
    Invalid,
    /// Stopped on request.
    Cancelled,
    /// The database file belongs to another program.
    Foreign,
    /// The database file was written by a newer version of this program.
    Newer,
    /// The database file can't be read any more, or not all of it.
    Damaged,
    /// The disk, the database or its content failed us.
    Store,
    /// What this builds upon is not stored, because an earlier write failed; that one is to be told of, not this.
    Gap,
    /// The engine was closed before the call.
    Closed,
}

impl Code {
    /// The code as scripts see it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "LCM_INVALID",
            Self::Cancelled => "LCM_CANCELLED",
            Self::Foreign => "LCM_FOREIGN",
            Self::Newer => "LCM_NEWER",
            Self::Damaged => "LCM_DAMAGED",
            Self::Store => "LCM_STORE",
            Self::Gap => "LCM_GAP",
            Self::Closed => "LCM_CLOSED",
        }
    }
}

/// A failure with its code, its sentence, and its cause if another crate gave one.
#[derive(Debug)]
pub struct Error {
    code: Code,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Input that cannot be right.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: Code::Invalid, message: message.into(), source: None }
    }

    /// A database that is not ours to write.
    pub fn foreign(message: impl Into<String>) -> Self {
        Self { code: Code::Foreign, message: message.into(), source: None }
    }

    /// A database that a later version of this program made, which this one can't understand.
    pub fn newer(message: impl Into<String>) -> Self {
        Self { code: Code::Newer, message: message.into(), source: None }
    }

    /// A database that can't be read any more, or not all of it.
    pub fn damaged(
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { code: Code::Damaged, message: message.into(), source: Some(source.into()) }
    }

    /// A stored thing that is not as it must be.
    pub fn store(message: impl Into<String>) -> Self {
        Self { code: Code::Store, message: message.into(), source: None }
    }

    /// Something that cannot be stored before what it builds upon.
    pub fn gap(message: impl Into<String>) -> Self {
        Self { code: Code::Gap, message: message.into(), source: None }
    }

    /// A failure of disk or database while doing what `message` says.
    pub fn storing(
        message: impl Into<String>,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        Self { code: Code::Store, message: message.into(), source: Some(source.into()) }
    }

    /// The caller asked to stop.
    #[must_use]
    pub fn cancelled() -> Self {
        Self { code: Code::Cancelled, message: "cancelled".into(), source: None }
    }

    /// The engine is closed.
    #[must_use]
    pub fn closed() -> Self {
        Self { code: Code::Closed, message: "the history store is closed".into(), source: None }
    }

    /// What is behind it, without the sentence made of that; the sentence where nothing is.
    #[must_use]
    pub fn cause(&self) -> String {
        self.source.as_ref().map_or_else(|| self.message.clone(), ToString::to_string)
    }

    /// What kind of failure it is.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)?;
        match &self.source {
            Some(source) => write!(f, ": {source}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}
