//! Reads a history without a session: a project's, or any database file. Reading neither writes to a file nor
//! creates one.

use std::path::{Path, PathBuf};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode};
use tokio_util::sync::CancellationToken;

use super::connection::{self, Opened, open_alone, open_unchanged, project_in};
use super::opening::set_aside;
use super::project::name_of;
use super::trouble::{is_of_the_disk, is_out_of_reach};
use super::worker::in_transaction;
use super::{schema, trouble, untrusted};

use crate::Store;
use lcm_model::error::{Code, Error, Result};
use lcm_model::files;

/// A history opened for reading.
pub struct ReadOnly {
    pub store: Store,
    pub project: String,
}

impl Store {
    /// Opens the history of the project `wanted`, as [`crate::project_of`] names it, in the folder `dir`, for
    /// reading. Returns `None` if there is none.
    ///
    /// # Errors
    /// When files exist, but none can be read.
    pub fn read_only(dir: &Path, wanted: &str) -> Result<Option<ReadOnly>> {
        files::check_own(dir)?;
        let mut passed: Option<(Error, PathBuf)> = None;
        // The last one is in use.
        for path in places(dir, wanted).into_iter().rev().filter(|path| path.is_file()) {
            connection::check_own(&path)?;
            match look(&path, open) {
                Ok((connection, project)) if project == wanted => {
                    let before = places(dir, wanted).into_iter().take_while(|other| *other != path);
                    let set_aside =
                        || before.filter(|other| other.is_file()).find_map(|other| set_aside(&other, wanted));
                    let why = passed.map(|(why, _)| why).or_else(set_aside);
                    let notice = why.and_then(|why| notice(&why, &path));
                    let opened = Opened { connection, place: Some(path), notice };
                    return Ok(Some(ReadOnly { store: Self::of_reader(opened, Box::new(open)), project }));
                }
                Ok(_) => {}
                Err(why) => passed = passed.or(Some((why, path))),
            }
        }
        match passed {
            Some((why, path)) if why.code() == Code::Damaged => Err(trouble::damaged(&path, why.cause())),
            Some((why, _)) => Err(why),
            None => Ok(None),
        }
    }

    /// Opens any of our databases for reading, wherever it is and whoever made it, until `cancel` is raised.
    ///
    /// # Errors
    /// When it is not a database of ours, when it has another format, or when it can't be read.
    pub fn read_only_at(path: &Path, cancel: &CancellationToken) -> Result<ReadOnly> {
        if !path.exists() {
            return Err(Error::invalid(format!("there is no {}", path.display())));
        }
        if path.is_dir() {
            let path = path.display();
            return Err(Error::invalid(format!("{path} is a folder, and no database: name a file in it")));
        }
        if !path.is_file() {
            return Err(Error::invalid(format!("{} is neither a file nor a database", path.display())));
        }
        let cancel = cancel.clone();
        let opens = move |path: &Path| untrusted::open(path, &cancel).and_then(looked_into);
        let (connection, project) = look(path, &opens)?;
        let opened = Opened { connection, place: Some(path.to_owned()), notice: None };
        Ok(ReadOnly { store: Self::of_reader(opened, Box::new(opens)), project })
    }

    /// Records in this read-only database where a backup was written, if that is possible.
    pub fn note_backup_apart(&self, backup: &Path) {
        let Some(path) = self.place() else { return };
        if let Ok(mut connection) = connection::open_patiently(path) {
            let _ = in_transaction(&mut connection, |batch| batch.upkeep().note_backup(backup));
        }
    }
}

/// What to tell the user about a file that was skipped in favor of `path`.
fn notice(why: &Error, path: &Path) -> Option<String> {
    let joins = if why.code() == Code::Damaged { ". /lcm doctor --rebuild joins both" } else { "" };
    (why.code() != Code::Foreign).then(|| format!("{why}; showing {} instead{joins}", path.display()))
}

/// The paths at which a project's database may be, the first ones first. The last that exists is in use.
pub fn places(dir: &Path, project: &str) -> Vec<PathBuf> {
    connection::names(dir, &name_of(project)).collect()
}

/// Opens the database of a project for reading, until it can be written. `None` if it can't be read either.
pub(crate) fn open_to_wait(dir: &Path, project: &str) -> Option<Opened> {
    places(dir, project).into_iter().rev().filter(|path| path.is_file()).find_map(|path| {
        connection::check_own(&path).ok()?;
        let (connection, found) = look(&path, open).ok()?;
        (found == project).then(|| Opened { connection, place: Some(path), notice: None })
    })
}

/// Opens a database of ours and returns its project.
pub(super) fn look(
    path: &Path,
    opens: impl Fn(&Path) -> rusqlite::Result<Connection>,
) -> Result<(Connection, String)> {
    let failed = |error: rusqlite::Error| {
        let error = Error::storing(format!("{} can't be read", path.display()), error);
        trouble::explained_at_opening(error, path)
    };
    let connection = opens(path).map_err(|error| foreign_or(path, error, failed))?;
    let version = schema::format(&connection).map_err(failed)?;
    if version != schema::FORMAT {
        return Err(connection::other_format(path, version));
    }
    if !schema::is_ours(&connection).map_err(failed)? {
        return Err(foreign_or(path, rusqlite::Error::InvalidQuery, failed));
    }
    let project = project_in(&connection).map_err(failed)?.unwrap_or_default();
    Ok((connection, project))
}

/// A read connection that leaves everything as it found it.
pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    // An empty log may belong to another connection of this process.
    let had_log = connection::with_ending(path, "-wal").metadata().is_ok_and(|log| log.len() > 0);
    let opened = connection::reading(path).and_then(|connection| {
        // Otherwise the last connection to close would merge the log of a killed session into the database.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, had_log)?;
        looked_into(connection)
    });
    match opened {
        // Also when there is no room for SQLite's auxiliary files.
        // A log is read with locks.
        Err(error) if had_log && trouble::is_lockless(&error) => Err(error),
        Err(error) if is_out_of_reach(&error) || is_of_the_disk(&error) => {
            let opened = open_unchanged(path).and_then(looked_into);
            // An attempt to write may have left an empty log.
            if had_log { opened } else { opened.or_else(|_| looked_into(open_alone(path)?)) }
        }
        opened => opened,
    }
}

/// Checks that this is our database before anything else is queried.
fn looked_into(connection: Connection) -> rusqlite::Result<Connection> {
    let mark = connection::mark(&connection)?;
    let _: i64 = connection.query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get(0))?;
    if mark != connection::APPLICATION_ID {
        return Err(rusqlite::Error::InvalidQuery);
    }
    connection::that_looks(connection)
}

fn foreign_or(path: &Path, error: rusqlite::Error, failed: impl Fn(rusqlite::Error) -> Error) -> Error {
    match error {
        rusqlite::Error::InvalidQuery if path.metadata().is_ok_and(|file| file.len() == 0) => {
            Error::damaged(trouble::said(path), "it is empty")
        }
        rusqlite::Error::InvalidQuery => Error::foreign(format!(
            "{} belongs to another program, or another program has changed it (move it away; /lcm import with its path adds what can be read)",
            path.display()
        )),
        error if error.sqlite_error_code() == Some(ErrorCode::NotADatabase) => {
            Error::damaged(format!("{} is not a database, or is damaged", path.display()), error)
        }
        error if is_out_of_reach(&error) => Error::storing(
            format!("{} can't be read (check its permissions)", path.display()),
            error.to_string(),
        ),
        error => failed(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::OldStore;

    /// A database of ours, modified by these statements.
    fn crafted(path: &Path, statements: &str) {
        let mut old = Connection::open(path).unwrap();
        old.pragma_update(None, "application_id", connection::APPLICATION_ID).unwrap();
        schema::create(&mut old).unwrap();
        old.execute_batch("INSERT INTO _metadata VALUES ('cwd', '/project')").unwrap();
        old.execute_batch(statements).unwrap();
        old.close().unwrap();
    }

    #[test]
    fn code_inside_a_database_is_never_run() {
        let dir = tempfile::tempdir().unwrap();
        let endless =
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT count(*) FROM n";
        let crafts = [
            format!("ALTER TABLE claims RENAME TO gone; CREATE VIEW claims AS {endless}"),
            format!("CREATE VIEW more AS {endless}"),
            format!("CREATE TRIGGER evil AFTER INSERT ON _metadata BEGIN SELECT ({endless}); END"),
            "DROP TRIGGER messages_changed; CREATE TRIGGER messages_changed AFTER INSERT ON messages BEGIN SELECT 1; END".into(),
            "CREATE VIRTUAL TABLE more USING fts5 (x)".into(),
            "CREATE INDEX more ON conversations (zeroblob(900000000))".into(),
            "CREATE INDEX more ON conversations (session_id) WHERE session_id LIKE '%a%a%a%a%'".into(),
            "CREATE TABLE more (x, y AS (zeroblob(900000000)))".into(),
        ];
        for (at, craft) in crafts.iter().enumerate() {
            let path = dir.path().join(format!("{at}.db"));
            crafted(&path, craft);
            let before = std::fs::read(&path).unwrap();
            let why = Store::read_only_at(&path, &CancellationToken::new()).err().unwrap().to_string();
            let expected =
                format!("{} belongs to another program, or another program has changed it", path.display());
            assert!(why.starts_with(&expected), "{craft}: {why}");
            // An import runs nothing, and reads the rows that are there.
            let old = OldStore::open(&path, &path, &CancellationToken::new()).unwrap();
            assert_eq!(old.facts().unwrap().len(), 1, "{craft}");
            assert!(std::fs::read(&path).unwrap() == before);
        }
        // What database tools leave behind is harmless.
        let harmless = ["", "ANALYZE", "CREATE TABLE more (x); CREATE INDEX other ON entries (entry_id)"];
        for (at, craft) in harmless.iter().enumerate() {
            let plain = dir.path().join(format!("plain-{at}.db"));
            crafted(&plain, craft);
            assert!(Store::read_only_at(&plain, &CancellationToken::new()).is_ok(), "{craft}");
        }
        // Even without this check, reading runs no code in the file.
        let seen = open_unchanged(&dir.path().join("1.db")).unwrap();
        assert!(seen.query_row("SELECT * FROM more", [], |_| Ok(())).is_err());
    }

    #[test]
    fn rows_with_huge_ids_are_found_without_counting_up_to_them() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("wide.db");
        let row = |id: i64, name: &str| {
            format!("INSERT INTO conversations VALUES ({id}, '{name}', NULL, NULL, 0, 0);")
        };
        crafted(&path, &[row(3, "a"), row(1 << 62, "b"), row(i64::MAX, "c")].concat());
        let sessions = OldStore::open(&path, &path, &CancellationToken::new()).unwrap().sessions().unwrap();
        let names: Vec<&str> = sessions.iter().map(|session| session.session_id.as_str()).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_pipe_or_a_device_is_not_a_database() {
        let dir = tempfile::tempdir().unwrap();
        let pipe = dir.path().join("pipe.db");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for path in [pipe.as_path(), Path::new("/dev/zero")] {
            let why = Store::read_only_at(path, &CancellationToken::new()).err().unwrap().to_string();
            assert_eq!(why, format!("{} is neither a file nor a database", path.display()));
            assert_eq!(
                OldStore::open(path, dir.path(), &CancellationToken::new()).err().unwrap().to_string(),
                "it is not a regular file"
            );
        }
    }
}
