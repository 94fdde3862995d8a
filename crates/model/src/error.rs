//! The one error type: a message that names the operand, and a code that callers can branch on.
//!
//! Messages are lower case, without a full stop, and ready for `: cause` to follow. Mistakes of a user or a
//! model ([`Code::Invalid`]) get a message for them: what is wrong and what would be right.

use std::fmt;

/// The result type of the engine's functions.
pub type Result<T> = std::result::Result<T, Error>;

/// What another crate reported.
type Cause = Box<dyn std::error::Error + Send + Sync>;

/// The kind of failure: all that a caller may branch on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// Invalid input; the message says what would be valid.
    Invalid,
    /// A project that other machines can't know by a name.
    Unnamed,
    /// Stopped on request.
    Cancelled,
    /// The file belongs to another program.
    Foreign,
    /// The database file has another format than this version's.
    Format,
    /// The database file can't be read any more, or not completely.
    Damaged,
    /// The disk, the database or its content is at fault.
    Store,
    /// What this builds on is not stored because an earlier write failed. Report that write's error, not this
    /// one.
    Gap,
    /// The engine was closed before the call.
    Closed,
}

impl Code {
    /// The code as scripts see it.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Invalid => "LCM_INVALID",
            Self::Unnamed => "LCM_UNNAMED",
            Self::Cancelled => "LCM_CANCELLED",
            Self::Foreign => "LCM_FOREIGN",
            Self::Format => "LCM_FORMAT",
            Self::Damaged => "LCM_DAMAGED",
            Self::Store => "LCM_STORE",
            Self::Gap => "LCM_GAP",
            Self::Closed => "LCM_CLOSED",
        }
    }
}

/// A failure with its code, its message, and its cause if another crate reported one.
#[derive(Debug)]
pub struct Error {
    code: Code,
    message: String,
    source: Option<Cause>,
}

impl Error {
    /// Invalid input.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self { code: Code::Invalid, message: message.into(), source: None }
    }

    /// A project without a name for other machines.
    pub fn unnamed(message: impl Into<String>) -> Self {
        Self { code: Code::Unnamed, message: message.into(), source: None }
    }

    /// Another program's file: of a database, we must not write to it.
    pub fn foreign(message: impl Into<String>) -> Self {
        Self { code: Code::Foreign, message: message.into(), source: None }
    }

    /// A database of another format, which this version can't read.
    pub fn format(message: impl Into<String>) -> Self {
        Self { code: Code::Format, message: message.into(), source: None }
    }

    /// A database that can't be read any more, or not completely.
    pub fn damaged(message: impl Into<String>, source: impl Into<Cause>) -> Self {
        Self { code: Code::Damaged, message: message.into(), source: Some(source.into()) }
    }

    /// Invalid stored data.
    pub fn store(message: impl Into<String>) -> Self {
        Self { code: Code::Store, message: message.into(), source: None }
    }

    /// Something that can't be stored before what it builds on.
    pub fn gap(message: impl Into<String>) -> Self {
        Self { code: Code::Gap, message: message.into(), source: None }
    }

    /// A failure of the disk or the database while doing what `message` says.
    pub fn storing(message: impl Into<String>, source: impl Into<Cause>) -> Self {
        Self { code: Code::Store, message: message.into(), source: Some(source.into()) }
    }

    /// The caller asked to stop.
    pub fn cancelled() -> Self {
        Self { code: Code::Cancelled, message: "cancelled".into(), source: None }
    }

    /// The engine is closed.
    pub fn closed() -> Self {
        Self { code: Code::Closed, message: "the history store is closed".into(), source: None }
    }

    /// The same failure with another message.
    pub fn saying(self, message: impl Into<String>) -> Self {
        Self { message: message.into(), ..self }
    }

    /// Returns the cause without our message, or the message if there is no cause.
    pub fn cause(&self) -> String {
        self.source.as_ref().map_or_else(|| self.message.clone(), ToString::to_string)
    }

    /// The kind of failure.
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
