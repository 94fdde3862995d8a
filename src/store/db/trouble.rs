//! Explains SQLite's failures to the user: what happened to which file, and what helps.

use std::fmt;
use std::path::Path;

use rusqlite::ErrorCode;

use crate::error::Error;

/// The same failure as a sentence with a remedy, unless SQLite's own words suffice.
pub(in crate::store) fn explained(error: Error, path: &Path) -> Error {
    let Some(cause) = cause(&error) else { return error };
    if is_damage(cause) {
        return Error::damaged(format!("{} (see /lcm doctor)", said(path)), cause.to_string());
    }
    let path = path.display();
    let sentence = match cause.sqlite_error_code() {
        Some(ErrorCode::DiskFull) => format!("no space left for {path} (free some on its disk)"),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("another program locks {path} (wait for it, or quit it)")
        }
        Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied | ErrorCode::CannotOpen) => {
            format!("{path} can't be written (make it writable, or set dbDir to another folder)")
        }
        // See `strange`.
        Some(ErrorCode::OperationInterrupted) => {
            format!("reading {path} was stopped: it takes longer than an intact history of its size could")
        }
        Some(ErrorCode::SystemIoFailure) => {
            format!("the disk can't store {path} (check that it is connected, intact and not full)")
        }
        None if matches!(cause, rusqlite::Error::QueryReturnedNoRows) => {
            format!("{path} lacks a row that others refer to (see /lcm doctor)")
        }
        _ => return error,
    };
    Error::storing(sentence, SqliteCause { code: cause.sqlite_error_code(), words: cause.to_string() })
}

/// SQLite's own words, without the sentence in front of them.
#[derive(Debug)]
struct SqliteCause {
    code: Option<ErrorCode>,
    words: String,
}

impl fmt::Display for SqliteCause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for SqliteCause {}

/// The same for a file that is being opened. A damaged file is skipped, and the doctor will not check it.
pub(in crate::store) fn explained_at_opening(error: Error, path: &Path) -> Error {
    match cause(&error) {
        Some(cause) if is_damage(cause) => Error::damaged(said(path), cause.to_string()),
        _ => explained(error, path),
    }
}

/// The common text for a damaged file.
fn said(path: &Path) -> String {
    format!("{} is damaged", path.display())
}

/// Whether the work timed out waiting for another program's lock.
pub(in crate::store) fn is_busy(error: &Error) -> bool {
    cause(error).and_then(rusqlite::Error::sqlite_error_code) == Some(ErrorCode::DatabaseBusy)
}

/// Whether the error was [`explained`] and means that the file can't be written or the disk is full. It may
/// still be readable.
pub(in crate::store) fn is_unwritable(error: &Error) -> bool {
    let said = std::error::Error::source(error).and_then(|source| source.downcast_ref::<SqliteCause>());
    matches!(
        said.and_then(|said| said.code),
        Some(
            ErrorCode::ReadOnly
                | ErrorCode::PermissionDenied
                | ErrorCode::CannotOpen
                | ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
        )
    )
}

fn is_damage(cause: &rusqlite::Error) -> bool {
    matches!(cause.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

fn cause(error: &Error) -> Option<&rusqlite::Error> {
    let mut next = std::error::Error::source(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_row_has_a_remedy() {
        let missing = Error::storing("failed to read", rusqlite::Error::QueryReturnedNoRows);
        let explained = explained(missing, Path::new("project.db")).to_string();
        assert!(
            explained.contains("project.db lacks a row that others refer to (see /lcm doctor)"),
            "{explained}"
        );
    }
}
