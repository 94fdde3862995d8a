//! `/lcm sessions`: lists the sessions of this project, one line each.

use serde::Serialize;
use serde_json::json;

use super::style::{Ink, Style, fit};
use super::{Answer, Command, CommandContext};
use lcm_model::error::Result;
use lcm_model::ids::ConversationId;
use lcm_model::text::{count, local_minute, local_span, one_line, timestamp};
use lcm_recall::SessionName;
use lcm_store::{SessionFacts, StoredSession, View};

pub(crate) const COMMAND: Command = Command {
    name: "sessions",
    help: "the sessions of this project, the latest of Pi's first",
    usage: &[("sessions", "lists id, times, messages and first request of each")],
    arguments: &[],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

/// Characters of the first request.
const HEADLINE: usize = 120;
/// Characters of an id: all of one made by Pi or another agent, but any file can name a longer one.
const ID: usize = 120;

/// A session.
#[derive(Serialize)]
pub(super) struct SessionLine {
    id: String,
    file: Option<String>,
    /// The file of the session it was forked from.
    parent: Option<String>,
    messages: usize,
    from: String,
    to: String,
    /// The user's first request.
    about: String,
    /// What the machine is called that it came from, if another one.
    #[serde(skip_serializing_if = "Option::is_none")]
    machine: Option<String>,
    /// Whether it is the open session; in a shell, the one that questions are about.
    current: bool,
    #[serde(skip)]
    span: String,
}

/// What a hit says of its session: `ID, 2026-11-20 10:12 (Fix the login timeout)`.
pub(super) fn of_session(session: &SessionName) -> String {
    format!("{}, {}{}", one_line(&session.id, ID), local_minute(session.from_time), session.details())
}

/// In a shell, where none is open, a line with the session that an answer is about.
pub(super) async fn heading(asked: &CommandContext<'_>) -> Result<String> {
    let id = asked.scope.conversation;
    if !asked.manner.is_shell || id == ConversationId::NONE {
        return Ok(String::new());
    }
    asked.store().read(move |view| Ok(of_session(&SessionName::of(view, id)?) + "\n")).await
}

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    asked.rest.none()?;
    let current = asked.scope.conversation;
    let all = move |view: &View<'_>| {
        let ids = view.messages().other_sessions(ConversationId::NONE, i32::MAX as usize)?;
        ids.into_iter().map(|id| session(view, id, id == current)).collect::<Result<Vec<_>>>()
    };
    let sessions = asked.store().read(all).await?;
    Ok(Answer::new(render(&sessions, asked.request.columns, asked.manner), json!({"sessions": sessions})))
}

pub(super) fn session(view: &View<'_>, id: ConversationId, current: bool) -> Result<SessionLine> {
    let SessionFacts { session_id, messages, from_time, to_time, first_request } =
        view.messages().session_facts(id)?;
    let StoredSession { file, parent, .. } = view.messages().sessions(Some(id))?.pop().unwrap_or_default();
    let request = first_request.map(|request| view.messages().parsed(request)).transpose()?;
    let about = request.map(|mut request| request.take_searchable()).unwrap_or_default();
    Ok(SessionLine {
        id: session_id,
        file,
        parent,
        messages,
        from: timestamp(from_time),
        to: timestamp(to_time),
        about: one_line(&about, HEADLINE),
        machine: view.synced().origin(id).unwrap_or_default(),
        current,
        span: local_span(from_time, to_time),
    })
}

fn render(sessions: &[SessionLine], columns: Option<usize>, manner: Style) -> String {
    let mut out = String::new();
    let ids: Vec<String> = sessions.iter().map(|session| one_line(&session.id, ID)).collect();
    let width = ids.iter().map(|id| id.chars().count()).max().unwrap_or_default();
    let cut = |line: String| columns.map_or_else(|| line.clone(), |columns| fit(&line, columns));
    for (id, SessionLine { span, messages, about, machine, parent, current, .. }) in ids.iter().zip(sessions)
    {
        let on = machine.as_ref().map(|label| format!("on {}: ", one_line(label, ID))).unwrap_or_default();
        let size = format!("{}, {span}", count(*messages, "message"));
        let is_wide = columns.is_some_and(|columns| width + 2 + size.chars().count() > columns);
        let line = if is_wide {
            cut(id.clone()) + "\n" + &cut(format!("    {size}"))
        } else {
            format!("{id:width$}  {size}")
        };
        let line = line.replacen(id.as_str(), &manner.paint(Ink::Id, id), 1);
        let open = if *current && !manner.is_shell { "(this one) " } else { "" };
        // It begins as its origin does.
        let fork = if parent.is_some() { "(a fork) " } else { "" };
        let about = if about.is_empty() { "(no request)" } else { about };
        out += &format!("{line}\n{}\n", cut(format!("    {open}{fork}{on}{about}")));
    }
    out + &count(sessions.len(), "session")
}
