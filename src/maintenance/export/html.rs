//! A page that shows history without Pi and without a network: the viewer's template filled with data.
//!
//! The data is in `<script type="application/json">` elements, which browsers do not run, before the viewer's
//! own script. Each contains at most [`BLOCK`] and is written as soon as it is full. `docs/viewer.md`
//! describes their contents.

use std::cmp::Reverse;
use std::collections::HashSet;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::{Exported, Exporter, Output, each_entry, file_name, in_folder, lines_of, sessions};
use lcm_ingest::export::header;
use lcm_ingest::viewer::SessionOutline;
use lcm_model::error::{Error, Result};
use lcm_model::files;
use lcm_model::ids::MessageId;
use lcm_model::text::{local_minute, now};
use lcm_store::tasks::go_on;
use lcm_store::{StoredSession, View};

/// The placeholder for the data, which the template contains once.
const PLACE: &str = "<!--lcm:data-->";
/// The largest viewer template, in bytes.
const TEMPLATE: u64 = 64 << 20;
/// The data format; a viewer reads only its own.
const FORMAT: u32 = 1;
/// The most entries or summaries of an element, and the bytes after which it is full.
const BLOCK: (usize, usize) = (500, 4 << 20);

pub(super) fn write(of: &Exporter, view: &View<'_>, path: PathBuf) -> Result<Exported> {
    let (head, tail) = template(of.viewer_template.as_deref())?;
    let mut sessions = sessions(of, view)?;
    let open = of.scope.conversation;
    let name = match of.all {
        // No session has this name.
        true => format!("pi-{}_all_sessions.html", &local_minute(now())[..10]),
        false => file_name(&sessions[0], "html"),
    };
    let mut output = Output::create(&in_folder(path, &name)?, of.force)?;
    output.push(&head)?;
    // The open session first, then the newest.
    sessions.sort_by_key(|session| (session.id != open, Reverse((session.started_at, session.id))));
    let about = json!({
        "format": FORMAT, "version": env!("CARGO_PKG_VERSION"), "exportedAt": now(), "cwd": of.home.cwd,
        "sessions": sessions.len()
    });
    output.push(&element("about", None, &about.to_string()))?;
    let (mut messages, mut seen) = (0, HashSet::new());
    for (number, session) in sessions.iter().enumerate() {
        messages += write_session(of, view, number, session, &mut seen, &mut output)?;
    }
    output.push(&tail)?;
    let mut written = Exported { format: "html", ..Exported::default() };
    written.add(of, output, messages)?;
    Ok(written)
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

fn write_session(
    of: &Exporter,
    view: &View<'_>,
    number: usize,
    session: &StoredSession,
    seen: &mut HashSet<MessageId>,
    output: &mut Output,
) -> Result<usize> {
    let mut lines = lines_of(of, view, session)?;
    let leaf = match session.id == of.scope.conversation {
        true => of.scope.leaf.clone(),
        false => view.messages().last_entry(session.id)?,
    };
    let outline = SessionOutline::of(view, session.id, leaf.as_deref())?;
    let header: Value = serde_json::from_str(&header(session, &of.home.cwd, &lines)).unwrap_or_default();
    let facts =
        json!({"id": session.session_id, "header": header, "leaf": leaf, "branches": outline.branches});
    output.push(&element("session", Some(number), &facts.to_string()))?;
    let mut blocks = Blocks { output, number, kind: "summaries", items: Vec::new(), bytes: 0 };
    for id in &outline.summaries {
        go_on(&of.cancel)?;
        outline.summary(view, *id)?.map_or(Ok(()), |summary| blocks.push(summary))?;
    }
    blocks.flush()?;
    blocks.kind = "entries";
    let messages = each_entry(of, view, session.id, &mut lines, seen, |entry, line| {
        blocks.push(outline.entry(entry, &line)?)
    })?;
    blocks.flush().map(|()| messages)
}

/// Collects what an element contains until it is full.
struct Blocks<'o> {
    output: &'o mut Output,
    number: usize,
    kind: &'static str,
    items: Vec<String>,
    bytes: usize,
}

impl Blocks<'_> {
    fn push(&mut self, item: String) -> Result<()> {
        self.bytes += item.len();
        self.items.push(item);
        if self.items.len() >= BLOCK.0 || self.bytes >= BLOCK.1 { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<()> {
        let items = std::mem::take(&mut self.items);
        self.bytes = 0;
        if items.is_empty() {
            return Ok(());
        }
        self.output.push(&element(self.kind, Some(self.number), &format!("[{}]", items.join(","))))
    }
}

/// An element that contains `json` and that no text in it can close.
fn element(kind: &str, session: Option<usize>, json: &str) -> String {
    let session = session.map(|number| format!(" data-session=\"{number}\"")).unwrap_or_default();
    // Characters that could be markup, or end a line of script, occur only in strings.
    let json = json.replace('<', "\\u003c").replace('\u{2028}', "\\u2028").replace('\u{2029}', "\\u2029");
    format!("<script type=\"application/json\" data-kind=\"{kind}\"{session}>{json}</script>\n")
}
