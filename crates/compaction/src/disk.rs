//! Whether a file changed on disk since the agent saw it.
//!
//! What the agent knows of the contents is derived from the messages that show it: a whole read or write and
//! the edits after it, or otherwise only pieces. This needs no records, and is correct on each branch of a
//! session.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde_json::Value;

use lcm_model::facts::{read_lines, tidy};
use lcm_model::{Message, Role, files};

/// The largest file that is compared, in bytes.
const LARGEST: u64 = 1_000_000;

/// How a file changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FileChange {
    /// Its contents changed.
    Changed,
    /// It was deleted.
    Deleted,
}

impl FileChange {
    /// What follows the file's name.
    pub const fn how(self) -> &'static str {
        match self {
            Self::Changed => "",
            Self::Deleted => ", deleted",
        }
    }
}

/// What the agent knows of a file's contents.
enum KnownContent {
    Whole(String),
    Pieces(Vec<String>),
}

/// Returns how the file at `path` changed since `messages` showed it, where `whole` says whether the first of
/// them shows all of it. `None` if it is unchanged or can't be compared: outside `project`, not a regular
/// file, binary before, or larger than 1 MB.
pub fn change<'m>(
    project: &Path,
    path: &str,
    messages: impl IntoIterator<Item = &'m Message>,
    whole: bool,
) -> Option<FileChange> {
    let known = known(project, path, messages, whole)?;
    let content = match content(project, path) {
        Ok(_) if known.is_binary() => return None,
        Ok(content) => content,
        Err(change) => return change,
    };
    let is_same = match known {
        KnownContent::Whole(text) => text == content,
        // A piece at the end of the file may have an extra line break.
        KnownContent::Pieces(pieces) => {
            pieces.iter().all(|piece| content.contains(piece.trim_end_matches('\n')))
        }
    };
    (!is_same).then_some(FileChange::Changed)
}

fn known<'m>(
    project: &Path,
    path: &str,
    messages: impl IntoIterator<Item = &'m Message>,
    whole: bool,
) -> Option<KnownContent> {
    let mut known = KnownContent::Pieces(Vec::new());
    for (at, message) in messages.into_iter().enumerate() {
        let is_script = !message.nested.is_empty();
        if message.role == Role::ToolResult && !is_script {
            let text = normal(&message.text());
            let (lines, is_all) = read_lines(&text);
            known = match known {
                _ if at == 0 && whole && is_all => KnownContent::Whole(lines.to_owned()),
                known if lines.is_empty() => known,
                KnownContent::Whole(text) if text.contains(lines) => KnownContent::Whole(text),
                KnownContent::Whole(_) => KnownContent::Pieces(vec![lines.to_owned()]),
                KnownContent::Pieces(pieces) => {
                    KnownContent::Pieces([pieces, vec![lines.to_owned()]].concat())
                }
            };
            continue;
        }
        let is_it = |arguments: &Value| {
            arguments["path"].as_str().is_some_and(|named| within(project, &tidy(named)) == path)
        };
        // A script's reads show nothing here.
        let is_known = |name: &str| !is_script || name == "write" || name == "edit";
        let calls = message.calls().filter(|(name, arguments)| is_known(name) && is_it(arguments));
        let calls: Vec<_> = calls.collect();
        // Which of several calls succeeded is known of a script's alone.
        if calls.is_empty() || (calls.len() > 1 && !is_script) {
            return None;
        }
        for (name, arguments) in calls {
            known = known.after(name, arguments)?;
        }
    }
    let is_nothing = matches!(&known, KnownContent::Pieces(pieces) if pieces.is_empty());
    (!is_nothing).then_some(known)
}

impl KnownContent {
    /// Whether any of it is no text, as far as the tools show that.
    fn is_binary(&self) -> bool {
        let pieces = match self {
            Self::Whole(text) => std::slice::from_ref(text),
            Self::Pieces(pieces) => pieces,
        };
        pieces.iter().any(|piece| piece.contains(['\0', char::REPLACEMENT_CHARACTER]))
    }

    /// What is known after a write or edit; `None` if an edit does not apply.
    fn after(self, tool: &str, arguments: &Value) -> Option<Self> {
        let text = |value: &Value, key: &str| value[key].as_str().map(normal_part);
        if tool == "write" {
            return arguments["content"].as_str().map(|content| Self::Whole(normal(content)));
        }
        // Pi accepts one edit, a list of edits, or a list in a string.
        let listed = match &arguments["edits"] {
            Value::String(json) => serde_json::from_str(json).unwrap_or_default(),
            other => other.clone(),
        };
        let edits = match &listed {
            Value::Array(edits) => edits.as_slice(),
            Value::Object(_) => std::slice::from_ref(&listed),
            _ => std::slice::from_ref(arguments),
        };
        let edits = edits.iter().map(|edit| Some((text(edit, "oldText")?, text(edit, "newText")?)));
        let edits = edits.collect::<Option<Vec<_>>>()?;
        let Self::Whole(whole) = self else {
            // Pieces seen before may have been edited at their edges.
            return Some(Self::Pieces(
                edits.into_iter().map(|(_, new)| new).filter(|new| !new.is_empty()).collect(),
            ));
        };
        // Pi matches every edit against the text before all of them. Blank lines at its end are no longer
        // known.
        let whole = whole + "\n";
        let place = |(old, new): (String, String)| whole.find(&old).map(|at| (at, at + old.len(), new));
        let mut places = edits.into_iter().map(place).collect::<Option<Vec<_>>>()?;
        places.sort_by_key(|(start, ..)| *start);
        if places.windows(2).any(|pair| pair[0].1 > pair[1].0) {
            return None;
        }
        let mut edited = whole.clone();
        for (start, end, new) in places.into_iter().rev() {
            edited.replace_range(start..end, &new);
        }
        Some(Self::Whole(normal(&edited)))
    }
}

/// `path`, relative to the project's folder if it is inside.
pub fn within(project: &Path, path: &str) -> String {
    let inside =
        Path::new(path).strip_prefix(project).ok().and_then(Path::to_str).filter(|rest| !rest.is_empty());
    inside.unwrap_or(path).to_owned()
}

/// The text of a file, with marks in place of what is no text, as the tools show it. Otherwise whether it was deleted.
fn content(project: &Path, path: &str) -> Result<String, Option<FileChange>> {
    // Pi expands it to the user's home.
    if path.starts_with('~') {
        return Err(None);
    }
    let named: PathBuf = project.join(path);
    let is_inside = |real: &Path| project.canonicalize().is_ok_and(|project| real.starts_with(project));
    let real = match named.canonicalize() {
        Ok(real) => real,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // It was in the project if the nearest existing folder is.
            let folder = named.ancestors().skip(1).find_map(|folder| folder.canonicalize().ok());
            let was_inside = folder.is_some_and(|folder| is_inside(&folder));
            return Err(was_inside.then_some(FileChange::Deleted));
        }
        Err(_) => return Err(None),
    };
    if !is_inside(&real) {
        return Err(None);
    }
    // A device or a pipe must not be opened.
    let bytes = files::read(&real, LARGEST).map_err(|_| None)?;
    Ok(normal(&String::from_utf8_lossy(&bytes)))
}

/// Text as the tools show it: without a byte order mark, with Unix line breaks, without blank lines at the
/// end.
fn normal(text: &str) -> String {
    normal_part(text.trim_start_matches('\u{feff}')).trim_end_matches('\n').to_owned()
}

/// The same for a part of a text.
fn normal_part(text: &str) -> String {
    text.replace("\r\n", "\n")
}

#[cfg(test)]
mod tests {
    use std::fs;

    use serde_json::json;

    use super::*;

    fn call(name: &str, arguments: &Value) -> Message {
        let call = json!({"type": "toolCall", "id": "c", "name": name, "arguments": arguments});
        Message::parse(&json!({"role": "assistant", "content": [call]}).to_string())
    }

    fn read(text: &str) -> Message {
        Message::parse(&json!({"role": "toolResult", "toolName": "read", "content": text}).to_string())
    }

    #[test]
    fn reads_writes_and_edits_are_compared_with_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(dir.path().join("a.rs"), text).unwrap();
        let edit = |old: &str, new: &str| {
            call("edit", &json!({"path": "a.rs", "edits": [{"oldText": old, "newText": new}]}))
        };
        let change = |messages: &[Message], whole| change(dir.path(), "a.rs", messages, whole);
        assert_eq!(change(&[read("one")], true), Some(FileChange::Deleted));
        write("one\ntwo\n");
        assert_eq!(change(&[read("one\ntwo\n")], true), None);
        assert_eq!(change(&[read("one\ntwo")], true), None);
        assert_eq!(change(&[read("one")], true), Some(FileChange::Changed));
        let part = "one\n\n[1 more lines in file. Use offset=2 to continue.]";
        assert_eq!(change(&[read(part)], false), None);
        assert_eq!(change(&[read(part), edit("one", "uno")], false), Some(FileChange::Changed));
        write("uno\r\ntwo\r\n");
        assert_eq!(change(&[read(part), edit("one", "uno")], false), None);
        assert_eq!(change(&[read("one\ntwo\n"), edit("one", "uno")], true), None);
        let written = call("write", &json!({"path": "a.rs", "content": "three\n"}));
        assert_eq!(change(std::slice::from_ref(&written), true), Some(FileChange::Changed));
        write("three\n");
        assert_eq!(change(std::slice::from_ref(&written), true), None);
        assert_eq!(change(&[], true), None);
        write("one\nthree\n");
        assert_eq!(change(&[read("one\ntwo\n"), edit("two\n", "three\n")], true), None);
        assert_eq!(change(&[read(part), edit("two\n", "three\n")], false), None);
        // Edits in one call apply to the text before all of them; of two calls in one message, it is unknown
        // which failed.
        let swapped =
            json!([{"oldText": "first", "newText": "second"}, {"oldText": "second", "newText": "first"}]);
        let swapped = call("edit", &json!({"path": "./a.rs", "edits": swapped}));
        write("second\nfirst\n");
        assert_eq!(change(&[read("first\nsecond\n"), swapped], true), None);
        let call = json!({"type": "toolCall", "id": "c", "name": "edit", "arguments": {"path": "a.rs", "oldText": "x", "newText": "y"}});
        let twice = Message::parse(&json!({"role": "assistant", "content": [call, call]}).to_string());
        assert_eq!(change(&[written, twice], true), None);
        let long = "[Line 1 is 58.6KB, exceeds 50.0KB limit. Use bash: sed -n '1p' a.rs | head -c 51200]";
        assert_eq!(change(&[read(long)], false), None);
        // A shown part may have been edited at its edge.
        assert_eq!(change(&[read(part), edit("one\nt", "second\nfi")], false), None);
    }

    #[test]
    fn what_scripts_write_is_compared_with_the_disk() {
        let dir = tempfile::tempdir().unwrap();
        let write = |text: &str| fs::write(dir.path().join("a.rs"), text).unwrap();
        let script = |calls: Value| {
            let result = json!({"role": "toolResult", "toolName": "codemode", "content": "done", "nestedCalls": {"calls": calls}});
            Message::parse(&result.to_string())
        };
        let edit = |old: &str, new: &str, status: &str| json!({"name": "edit", "status": status, "arguments": {"path": "a.rs", "oldText": old, "newText": new}});
        let change = |messages: &[Message]| change(dir.path(), "a.rs", messages, true);
        let edits = script(json!([
            {"name": "read", "status": "ok", "arguments": {"path": "a.rs"}},
            edit("one", "two", "ok"), edit("two", "three", "ok"), edit("three", "four", "error"),
            {"name": "edit", "status": "ok", "argumentsBytes": 9_000},
        ]));
        write("three\n");
        assert_eq!(change(&[read("one\n"), edits.clone()]), None);
        write("four\n");
        assert_eq!(change(&[read("one\n"), edits]), Some(FileChange::Changed));
        let written =
            json!({"name": "write", "status": "ok", "arguments": {"path": "./a.rs", "content": "five\n"}});
        assert_eq!(change(&[script(json!([written]))]), Some(FileChange::Changed));
        write("five\n");
        assert_eq!(change(&[script(json!([written]))]), None);
    }

    #[test]
    fn a_binary_file_has_changed_if_it_was_text_and_a_large_one_is_not_compared() {
        let dir = tempfile::tempdir().unwrap();
        let change = |content: &[u8], seen: &str, whole| {
            fs::write(dir.path().join("a"), content).unwrap();
            change(dir.path(), "a", &[read(seen)], whole)
        };
        for binary in [b"a\0b".as_slice(), b"caf\xe9 au lait"] {
            assert_eq!(change(binary, "seen", true), Some(FileChange::Changed));
            assert_eq!(change(binary, "a", false), None, "what was shown is there");
            let shown = String::from_utf8_lossy(binary);
            assert_eq!(change(binary, &format!("{shown}!"), true), None, "it was binary before");
        }
        let large = vec![b'x'; 1_000_001];
        assert_eq!(change(&large, "seen", true), None);
        assert_eq!(change(&large[1..], "seen", true), Some(FileChange::Changed));
    }

    #[cfg(unix)]
    #[test]
    fn outside_and_special_files_are_skipped_and_inner_links_followed() {
        let outside = tempfile::tempdir().unwrap();
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        fs::write(outside.path().join("secret"), "other").unwrap();
        fs::write(at("real"), "text").unwrap();
        std::os::unix::fs::symlink(outside.path().join("secret"), at("out")).unwrap();
        std::os::unix::fs::symlink(at("real"), at("in")).unwrap();
        std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        let change = |path: &str| change(dir.path(), path, &[read("seen")], true);
        let absolute = outside.path().join("secret").display().to_string();
        for path in [absolute.as_str(), "~/gone", "../gone", "out", "socket", "."] {
            assert_eq!(change(path), None, "{path}");
        }
        assert_eq!(change("in"), Some(FileChange::Changed));
        assert_eq!(change("no/such/folder"), Some(FileChange::Deleted));
    }
}
