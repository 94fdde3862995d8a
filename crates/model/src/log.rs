//! The debug log, next to the database: what the engine did, in counts, times and names.
//!
//! Keys and conversation text must never get in. So a field takes a number or a name, and a name is reduced
//! to the characters of identifiers: no sentence can be written.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::text;

/// At this size, in bytes, a log is renamed to `<name>.1`, replacing the previous one.
const ROTATE_BYTES: u64 = 1024 * 1024;
/// Longest name, in characters.
const NAME: usize = 80;

/// A log, or none: then an event costs one pointer check.
#[derive(Clone, Debug, Default)]
pub struct Log {
    file: Option<Arc<LogTarget>>,
}

#[derive(Debug)]
struct LogTarget {
    path: PathBuf,
    is_on: AtomicBool,
}

/// The value of a field.
pub enum Field<'a> {
    /// A count.
    Count(usize),
    /// A duration, in ms.
    Took(Duration),
    /// The name of a tool, a model or a code.
    Name(&'a str),
}

impl Log {
    /// A log at `path`, created with the first event.
    pub fn at(path: PathBuf) -> Self {
        Self { file: Some(Arc::new(LogTarget { path, is_on: AtomicBool::new(true) })) }
    }

    /// Turns logging on or off, for all handles of this log.
    pub fn switch(&self, is_on: bool) {
        if let Some(file) = &self.file {
            file.is_on.store(is_on, Ordering::Relaxed);
        }
    }

    /// Logs an event. Failures are ignored: a log must not disturb the work.
    pub fn event(&self, what: &'static str, fields: &[(&'static str, Field<'_>)]) {
        let is_on = |file: &&LogTarget| file.is_on.load(Ordering::Relaxed);
        let Some(LogTarget { path, .. }) = self.file.as_deref().filter(is_on) else { return };
        let mut line = format!("{} {} {what}", text::timestamp(text::now()), std::process::id());
        for (name, value) in fields {
            let _ = match value {
                Field::Count(count) => write!(line, " {name}={count}"),
                Field::Took(time) => write!(line, " {name}={}ms", time.as_millis()),
                Field::Name(value) => write!(line, " {name}={}", identifier(value)),
            };
        }
        line.push('\n');
        let _ = append(path, &line);
    }
}

/// Opens the file for each line: several processes write to it, and any of them may rename it.
fn append(path: &PathBuf, line: &str) -> std::io::Result<()> {
    if fs::metadata(path).is_ok_and(|file| file.len() >= ROTATE_BYTES) {
        fs::rename(path, path.with_added_extension("1"))?;
    }
    let mut options = OpenOptions::new();
    options.create(true).append(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)?.write_all(line.as_bytes())
}

fn identifier(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || "._:/@+-".contains(c) { c } else { '_' };
    name.chars().take(NAME).map(plain).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn log_lines_hold_counts_times_and_names_but_no_sentences() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let log = Log::at(path.clone());
        let took = Duration::from_millis(12);
        log.event(
            "call",
            &[("model", Field::Name("a/b c\n\"d\"")), ("took", Field::Took(took)), ("n", Field::Count(3))],
        );
        let text = fs::read_to_string(&path).unwrap();
        let (_, event) = text.split_once(&format!(" {} ", std::process::id())).unwrap();
        assert_eq!(event, "call model=a/b_c__d_ took=12ms n=3\n");
    }

    #[test]
    fn only_one_old_log_is_kept() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("a.log");
        let log = Log::at(path.clone());
        for _ in 0..2 {
            fs::write(&path, vec![b'x'; usize::try_from(ROTATE_BYTES).unwrap()]).unwrap();
            log.event("one", &[]);
        }
        assert!(fs::metadata(&path).unwrap().len() < 100);
        assert_eq!(fs::metadata(dir.path().join("a.log.1")).unwrap().len(), ROTATE_BYTES);
        assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 2);
    }

    #[test]
    fn a_missing_or_unwritable_log_is_ignored() {
        Log::default().event("nothing", &[]);
        Log::at("/nowhere/at/all.log".into()).event("nothing", &[]);
    }
}
