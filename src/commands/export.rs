//! `/lcm export`: parses format and target, and says what was written.

use std::ffi::OsStr;
use std::path::Path;

use super::args::FROM;
use super::{Answer, Command, CommandContext};
use crate::maintenance::export::{Exporter, Format};
use lcm_ingest::foreign::agent;
use lcm_model::error::{Error, Result};
use lcm_model::ids::AGENTS;
use lcm_model::text::{count, grouped, megabytes};

const MARKDOWN: &str = "--md";
const SESSION: &str = "--jsonl";
const VIEWER: &str = "--html";
pub(crate) const ALL: &str = "--all";
const FORCE: &str = "--force";

pub(crate) const COMMAND: Command = Command {
    name: "export",
    help: "this branch as Markdown; --html: as a web page; --jsonl: as a session file",
    usage: &[
        ("export [PATH]", "this branch as Markdown: every message, including compacted ones"),
        ("export --md [PATH]", "the same; without a format, PATH.jsonl and PATH.html are these formats"),
        (
            "export --jsonl [PATH]",
            "this session with all its branches, as a session file for Pi and /lcm import",
        ),
        ("export --jsonl --all [FOLDER]", "every session of this project, one file each"),
        (
            "export --html [PATH]",
            "this session with all its branches as a web page: timeline, summaries, what the model saw, cost",
        ),
        ("export --html --all [PATH]", "every session of this project in one web page"),
        (
            "export --from codex [FOLDER]",
            "another agent's sessions (claude-code, codex, gemini or opencode), as files with that agent's records",
        ),
        ("export … --force", "overwrites existing files"),
    ],
    arguments: &[
        (MARKDOWN, "this branch as Markdown"),
        (SESSION, "this session as a session file for Pi"),
        (VIEWER, "this session as a web page"),
        (ALL, "every session of this project"),
        (FORCE, "overwrite existing files"),
    ],
    is_long: true,
    answer: |asked| Box::pin(answer(asked)),
};

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    let rest = &asked.rest;
    let agent = rest.value(FROM).map(agent).transpose()?;
    let path = rest.path()?.unwrap_or_default();
    let has = |option| rest.has(option);
    // Without a format, the file's name tells.
    let is_named = ![MARKDOWN, SESSION, VIEWER].iter().any(|option| rest.has(option)) && agent.is_none();
    let ends = |end| is_named && path.extension().is_some_and(|ending| ending == end);
    let (is_log, is_page) = (has(SESSION) || ends("jsonl"), has(VIEWER) || ends("html"));
    let is_other =
        |end: &OsStr| !["md", "markdown", "txt", "jsonl", "html"].iter().any(|known| end == *known);
    if is_named && path.extension().is_some_and(is_other) && !Path::new(&asked.home.cwd).join(&path).is_dir()
    {
        return Err(Error::invalid(format!(
            "no format has the ending of {}: choose .md, .jsonl or .html, or name the format, as in {MARKDOWN}",
            path.display()
        )));
    }
    let format = match (has(MARKDOWN), is_log, is_page, agent) {
        (false, false, false, Some(agent)) => Format::Log(agent.name),
        (false, true, false, None) => Format::SessionFile,
        (false, false, true, None) => Format::Page,
        (_, false, false, None) if has(ALL) => {
            return Err(Error::invalid("/lcm export --all needs --jsonl or --html"));
        }
        (_, false, false, None) => Format::Markdown,
        _ => return Err(Error::invalid("/lcm export takes only one of --md, --jsonl, --html and --from")),
    };
    let exporter = Exporter {
        home: asked.home.clone(),
        scope: asked.scope.clone(),
        viewer_template: asked.request.viewer_template.clone(),
        cancel: asked.cancel.clone(),
        all: has(ALL),
        force: has(FORCE),
    };
    let path = Path::new(&asked.home.cwd).join(path);
    let made = exporter.export(format, path).await?;
    let private = match made.private {
        0 => String::new(),
        private => format!(" (and {} kept from the model)", grouped(private)),
    };
    let (messages, size) = (count(made.messages, "message") + &private, megabytes(made.bytes));
    let mut text = match made.files.as_slice() {
        [file] => format!("{messages} written to {}, {size}", file.display()),
        files => {
            let named: String = files.iter().map(|file| format!("\n  {}", file.display())).collect();
            let each = if agent.is_some() { "log" } else { "session" };
            format!("{messages} of {} written, {size}{named}", count(files.len(), each))
        }
    };
    if agent.is_some_and(|agent| agent.name == AGENTS[3]) {
        text += "\nThese are for reading, as OpenCode's records do not say what they are: /lcm export --jsonl --all writes files for \
                 /lcm import";
    }
    if made.textless_compactions > 0 {
        text += &format!(
            "\n{} without the text that the model saw: Pi sends all messages of such a file until it is compacted again",
            count(made.textless_compactions, "compaction")
        );
    }
    match made.only_for_import {
        0 => {}
        1 => text += "\n1 file is another agent's session, for /lcm import only: Pi can't open it",
        n => {
            text +=
                &format!("\n{n} files are other agents' sessions, for /lcm import only: Pi can't open them");
        }
    }
    Ok(Answer::new(text, made))
}
