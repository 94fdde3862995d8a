//! The debug log: what the engine did, in counts, times and names, beside the database.
//!
//! Neither keys nor anything that was said may get in. So a field takes a number or a name, and a name is cut down to what
//! identifiers are made of: there is no way to write a sentence.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::text;

/// A log of this many bytes is set aside as `<name>.1`, in place of the one before.
const ROTATE_BYTES: u64 = 1024 * 1024;
/// Longest name, in characters.
const NAME: usize = 80;

/// A log, or none: then every event costs a look at an empty pointer.
#[derive(Clone, Debug, Default)]
pub struct Log {
    file: Option<Arc<Target>>,
}

#[derive(Debug)]
struct Target {
    path: PathBuf,
    is_on: AtomicBool,
}

/// What an event may tell.
#[derive(Clone, Copy, Debug)]
pub enum Field<'a> {
    /// How many.
    Count(usize),
    /// How long, in ms.
    Took(Duration),
    /// What a tool, a model, a code is called.
    Name(&'a str),
}

impl Log {
    /// A log at `path`, made with the first event.
    #[must_use]
    pub fn at(path: PathBuf) -> Self {
        Self { file: Some(Arc::new(Target { path, is_on: AtomicBool::new(true) })) }
    }

    /// Whether events are written down from here on, by all handles of this log.
    pub fn switch(&self, is_on: bool) {
        if let Some(file) = &self.file {
            file.is_on.store(is_on, Ordering::Relaxed);
        }
    }

    /// Writes an event down. A log that can't be written is no reason to disturb anyone.
    pub fn event(&self, what: &'static str, fields: &[(&'static str, Field<'_>)]) {
        let Some(Target { path, .. }) =
            self.file.as_deref().filter(|file| file.is_on.load(Ordering::Relaxed))
        else {
            return;
        };
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

/// Opened for each line: several processes write into it, and any of them may set it aside.
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
    fn lines_tell_counts_times_and_names_and_never_sentences() {
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
    fn a_full_log_is_set_aside_once() {
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
    fn without_a_place_or_with_a_hopeless_one_nothing_happens() {
        Log::default().event("nothing", &[]);
        Log::at("/nowhere/at/all.log".into()).event("nothing", &[]);
    }
}
