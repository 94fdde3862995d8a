//! Explains SQLite's failures to the user: what happened to which file, and what helps.

use std::path::Path;

use rusqlite::{ErrorCode, ffi};

use lcm_model::error::Error;

/// What SQLite reports where it can't lock a file, or not map the one that it shares with other processes.
const LOCKLESS: [i32; 6] = [
    ffi::SQLITE_IOERR_LOCK,
    ffi::SQLITE_IOERR_UNLOCK,
    ffi::SQLITE_IOERR_RDLOCK,
    ffi::SQLITE_IOERR_CHECKRESERVEDLOCK,
    ffi::SQLITE_IOERR_SHMLOCK,
    ffi::SQLITE_IOERR_SHMMAP,
];

/// The same failure as a sentence with a remedy, unless SQLite's own words suffice.
pub(crate) fn explained(error: Error, path: &Path) -> Error {
    let Some(cause) = cause(&error) else { return error };
    if is_damage(cause) {
        return damaged(path, cause.to_string());
    }
    if is_lockless(cause) {
        return error.saying(lockless(path));
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
        // See `untrusted`.
        Some(ErrorCode::OperationInterrupted) => {
            format!("reading {path} was stopped: it takes longer than an intact history of its size could")
        }
        Some(ErrorCode::SystemIoFailure) => {
            format!("the disk can't store {path} (check that it is connected, intact and not full)")
        }
        None if matches!(cause, rusqlite::Error::QueryReturnedNoRows) => {
            format!("{path} lacks a row that others refer to (/lcm doctor --rebuild mends it)")
        }
        _ => return error,
    };
    error.saying(sentence)
}

/// Whether a file can't be locked, or not be shared with other processes.
pub(super) fn is_lockless(error: &rusqlite::Error) -> bool {
    LOCKLESS.map(Some).contains(&error.sqlite_error().map(|error| error.extended_code))
}

/// The message for a file that can't be locked, or not be shared with other processes.
pub(super) fn lockless(path: &Path) -> String {
    format!(
        "the file system of {} has no file locks or no shared memory, as some network disks (set dbDir to a folder on a local disk)",
        path.display()
    )
}

/// The same for a file that is being opened. A damaged file is skipped, and so is one with tables that no engine makes.
pub(crate) fn explained_at_opening(error: Error, path: &Path) -> Error {
    let strange = [ErrorCode::Unknown, ErrorCode::ConstraintViolation].map(Some);
    match cause(&error) {
        Some(cause) if is_damage(cause) || strange.contains(&cause.sqlite_error_code()) => {
            Error::damaged(said(path), cause.to_string())
        }
        _ => explained(error, path),
    }
}

/// The error for a damaged file that is in use.
pub(super) fn damaged(path: &Path, cause: String) -> Error {
    Error::damaged(format!("{} (/lcm doctor --rebuild mends it)", said(path)), cause)
}

/// The common text for a damaged file.
pub(super) fn said(path: &Path) -> String {
    format!("{} is damaged", path.display())
}

/// Whether the work timed out waiting for another program's lock.
pub(crate) fn is_busy(error: &Error) -> bool {
    cause(error).and_then(rusqlite::Error::sqlite_error_code) == Some(ErrorCode::DatabaseBusy)
}

/// Whether the file can't be written or the disk is full. It may still be readable.
pub(crate) fn is_unwritable(error: &Error) -> bool {
    cause(error).is_some_and(|error| is_out_of_reach(error) || is_of_the_disk(error))
}

/// Whether permissions are lacking.
pub(super) fn is_out_of_reach(error: &rusqlite::Error) -> bool {
    use ErrorCode::{CannotOpen, PermissionDenied, ReadOnly};
    matches!(error.sqlite_error_code(), Some(CannotOpen | ReadOnly | PermissionDenied))
}

/// Whether the disk is full or fails.
pub(super) fn is_of_the_disk(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DiskFull | ErrorCode::SystemIoFailure))
}

fn is_damage(cause: &rusqlite::Error) -> bool {
    matches!(cause.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

fn cause(error: &Error) -> Option<&rusqlite::Error> {
    std::error::Error::source(error)?.downcast_ref()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_row_has_a_remedy() {
        let missing = Error::storing("failed to read", rusqlite::Error::QueryReturnedNoRows);
        let explained = explained(missing, Path::new("project.db")).to_string();
        assert!(
            explained
                .contains("project.db lacks a row that others refer to (/lcm doctor --rebuild mends it)"),
            "{explained}"
        );
    }
}
