//! `/lcm sessions`: lists the sessions of this project, one line each.

use std::fmt;

use serde::Serialize;

use super::columns::fit;
use super::style::{Ink, Style};
use super::{Answer, Command, CommandContext, args};
use crate::error::Result;
use crate::ids::ConversationId;
use crate::model::Message;
use crate::recall::Scope;
use crate::store::{SessionFacts, View};
use crate::text::{count, grouped, one_line, time_span, timestamp};

const NAME: &str = "sessions";

pub(crate) const COMMAND: Command = Command {
    name: NAME,
    help: "the sessions of this project, most recent first",
    usage: &[("sessions", "lists id, times, messages and first request of each")],
    arguments: &[],
    is_long: false,
    answer: |asked| Box::pin(answer(asked)),
};

/// Characters of the first request.
const HEADLINE: usize = 120;
/// Characters of an id: all of one made by Pi or another agent, but any file can name a longer one.
const ID: usize = 120;

#[derive(Serialize)]
struct Listed {
    sessions: Vec<Session>,
    #[serde(skip)]
    columns: Option<usize>,
    #[serde(skip)]
    manner: Style,
}

/// A session.
#[derive(Serialize)]
struct Session {
    id: String,
    file: Option<String>,
    messages: usize,
    from: String,
    to: String,
    /// The user's first request.
    about: String,
    /// Whether it is the open session; in a shell, the one that questions are about.
    current: bool,
    #[serde(skip)]
    span: String,
}

async fn answer(asked: &CommandContext<'_>) -> Result<Answer> {
    args::none(NAME, &asked.rest)?;
    let scope = asked.scope.clone();
    let sessions = asked.store().read(move |view| all(view, &scope)).await?;
    Ok(Answer::of(&Listed { sessions, columns: asked.columns, manner: asked.manner }))
}

fn all(view: &View<'_>, scope: &Scope) -> Result<Vec<Session>> {
    // No session has this row.
    let ids = view.messages().other_sessions(ConversationId(0), i32::MAX as usize)?;
    ids.into_iter().map(|id| session(view, id, id == scope.conversation)).collect()
}

fn session(view: &View<'_>, id: ConversationId, current: bool) -> Result<Session> {
    let SessionFacts { session_id, messages, from_time, to_time, first_request } =
        view.messages().session_facts(id)?;
    let file = view.messages().sessions(Some(id))?.into_iter().find_map(|session| session.file);
    let about = match first_request {
        Some(request) => Message::parse(&view.messages().message(request)?.json).searchable(),
        None => String::new(),
    };
    Ok(Session {
        id: session_id,
        file,
        messages,
        from: timestamp(from_time),
        to: timestamp(to_time),
        about: one_line(&about, HEADLINE),
        current,
        span: time_span(from_time, to_time),
    })
}

impl fmt::Display for Listed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sessions, columns, manner } = self;
        let ids: Vec<String> = sessions.iter().map(|session| one_line(&session.id, ID)).collect();
        let width = ids.iter().map(|id| id.chars().count()).max().unwrap_or_default();
        for (id, Session { span, messages, about, .. }) in ids.iter().zip(sessions) {
            let counted = format!("{} message{}", grouped(*messages), if *messages == 1 { "" } else { "s" });
            let line = format!("{id:width$}  {span}  {counted}");
            let request = format!("    {about}");
            let cut = |line: &str| columns.map_or_else(|| line.to_owned(), |columns| fit(line, columns));
            let line = cut(&line).replacen(id.as_str(), &manner.paint(Ink::Id, id), 1);
            writeln!(f, "{line}\n{}", cut(&request))?;
        }
        write!(f, "{}", count(sessions.len(), "session"))
    }
}
