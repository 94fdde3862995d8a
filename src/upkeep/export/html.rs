//! A page that shows history without Pi and without a network: the viewer's template filled with data.
//!
//! The data is in `<script type="application/json">` elements, which browsers do not run, before the viewer's
//! own script. Each contains at most [`BLOCK`] entries and is written as soon as it is full. `docs/viewer.md`
//! describes their contents.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{
    Exported, Exporter, Output, Take, check, file_name, in_folder, lines_of, sessions, write_entries,
};
use crate::error::{Error, Result};
use crate::files;
use crate::ingest::export::header;
use crate::ingest::viewer::Outline;
use crate::store::{ExportedEntry, ExportedSession, View};
use crate::text::now;

/// The placeholder for the data, which the template contains once.
const PLACE: &str = "<!--lcm:data-->";
/// The largest viewer template, in bytes.
const TEMPLATE: u64 = 64 << 20;
/// The data format; a viewer reads only its own.
const FORMAT: u32 = 1;
/// The most entries of an element, and the bytes after which it is full.
const BLOCK: (usize, usize) = (500, 4 << 20);

pub(super) async fn write(of: &Exporter<'_>, path: PathBuf) -> Result<Exported> {
    let (head, tail) = template(of.viewer_template)?;
    let mut sessions = sessions(of).await?;
    let open = of.scope.conversation;
    let name = sessions.iter().find(|session| session.id == open).unwrap_or(&sessions[0]);
    let target = in_folder(path, &file_name(name, "html"));
    let mut output = Output::create(&target, of.force)?;
    output.push(&head)?;
    // The open session first, then the newest.
    sessions.sort_by_key(|session| (session.id != open, std::cmp::Reverse(session.id)));
    let about = json!({
        "format": FORMAT, "version": env!("CARGO_PKG_VERSION"), "exportedAt": now(), "cwd": of.home.cwd,
        "leaf": of.scope.leaf, "sessions": sessions.len()
    });
    output.push(&element("about", None, &about.to_string()))?;
    let mut messages = 0;
    for (number, session) in sessions.into_iter().enumerate() {
        let said;
        (output, said) = write_session(of, number, session, output).await?;
        messages += said;
    }
    output.push(&tail)?;
    let (file, bytes) = of.finish(output)?;
    Ok(Exported { format: "html", files: vec![file], messages, bytes })
}

/// The text before the data and after it.
fn template(path: Option<&Path>) -> Result<(String, String)> {
    let Some(path) = path else {
        return Err(Error::invalid(
            "/lcm export --html needs the package pi-lossless-context-viewer, which is not installed: install \
             pi-lossless-context again with optional packages enabled, or run `npm run build` in its sources",
        ));
    };
    let remedy = "reinstall pi-lossless-context, or run `npm run build` in its sources";
    let text = files::read_text(path, TEMPLATE).map_err(|error| {
        Error::invalid(format!("the viewer's template {} can't be read ({error}): {remedy}", path.display()))
    })?;
    match text.split_once(PLACE) {
        Some((head, tail)) if !tail.contains(PLACE) => Ok((head.to_owned(), tail.to_owned())),
        _ => Err(Error::invalid(format!("{} is not the viewer's template: {remedy}", path.display()))),
    }
}

async fn write_session(
    of: &Exporter<'_>,
    number: usize,
    session: ExportedSession,
    mut output: Output,
) -> Result<(Output, usize)> {
    let (store, conversation) = (of.store(), session.id);
    let lines = lines_of(of, &session).await?;
    let open = of.scope.leaf.clone().filter(|_| conversation == of.scope.conversation);
    let cancel = of.cancel.clone();
    let read = move |view: &View<'_>| {
        let outline = Outline::of(view, conversation, open.as_deref())?;
        let mut summaries = Vec::new();
        for id in &outline.summaries {
            check(&cancel)?;
            summaries.extend(outline.summary(view, *id)?);
        }
        Ok((outline, summaries))
    };
    let (outline, summaries) = store.read(read).await?;
    let header: Value = serde_json::from_str(&header(&session, &of.home.cwd, &lines)).unwrap_or_default();
    let facts = json!({"id": session.session_id, "header": header, "branches": outline.branches});
    output.push(&element("session", Some(number), &facts.to_string()))?;
    for block in summaries.chunks(BLOCK.0) {
        output.push(&element("summaries", Some(number), &format!("[{}]", block.join(","))))?;
    }
    let last = outline.last;
    let blocks = Blocks { output, outline, number, entries: Vec::new(), bytes: 0 };
    let (blocks, messages) = write_entries(of, conversation, last, lines, blocks).await?;
    Ok((blocks.finish()?, messages))
}

/// Collects entries until an element is full.
struct Blocks {
    output: Output,
    outline: Outline,
    number: usize,
    entries: Vec<String>,
    bytes: usize,
}

impl Take for Blocks {
    fn take(&mut self, entry: &ExportedEntry, line: String) -> Result<()> {
        let entry = self.outline.entry(entry, &line)?;
        self.bytes += entry.len();
        self.entries.push(entry);
        if self.entries.len() >= BLOCK.0 || self.bytes >= BLOCK.1 { self.flush() } else { Ok(()) }
    }
}

impl Blocks {
    fn flush(&mut self) -> Result<()> {
        let entries = std::mem::take(&mut self.entries);
        self.bytes = 0;
        if entries.is_empty() {
            return Ok(());
        }
        self.output.push(&element("entries", Some(self.number), &format!("[{}]", entries.join(","))))
    }

    fn finish(mut self) -> Result<Output> {
        self.flush()?;
        Ok(self.output)
    }
}

/// An element that contains `json` and that no text in it can close.
fn element(kind: &str, session: Option<usize>, json: &str) -> String {
    let session = session.map(|number| format!(" data-session=\"{number}\"")).unwrap_or_default();
    format!("<script type=\"application/json\" data-kind=\"{kind}\"{session}>{}</script>\n", escaped(json))
}

/// JSON without anything that could be markup or end a line of script. Such characters occur only in strings.
fn escaped(json: &str) -> String {
    json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029")
}
