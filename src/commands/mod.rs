//! `/lcm …`: what a person asks about the history, answered in plain text.

pub mod compact;
mod doctor;
pub mod import;
pub mod size;
mod tree;

use crate::error::Result;
use crate::recall::Scope;
use crate::recall::describe::{Overview, overview};
use crate::store::{Place, Store};
use crate::text::{count, grouped, megabytes, one_line};

/// A sub-command of `/lcm`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Command {
    /// What to type.
    pub name: &'static str,
    /// What it does, in a line.
    pub help: &'static str,
}

const COMMANDS: &[Command] = &[
    Command { name: "help", help: "what /lcm can do, and where the history lies" },
    Command { name: "stats", help: "messages, summaries, sizes" },
    Command { name: "tree", help: "the summaries of this branch, and what each stands for" },
    Command { name: "compact", help: compact::HELP },
    Command { name: "doctor", help: doctor::HELP },
    Command { name: "import", help: import::HELP },
];

/// The sub-commands, for help and completion.
#[must_use]
pub fn list() -> &'static [Command] {
    COMMANDS
}

/// Answers `/lcm <line>`, asked from `scope`. `compact` is Pi's to run, and `import` has an answer of its own
/// ([`import::Importer`]): here they are only listed.
///
/// # Errors
/// When the store can't be read.
pub async fn run(store: &Store, scope: &Scope, line: &str) -> Result<String> {
    match line.split_whitespace().next().unwrap_or("help") {
        "help" => Ok(help(store)),
        "stats" => {
            let overview = look(store, scope).await?;
            let sizes = size::parts(store).await?;
            Ok(stats(&overview, store.bytes().await?, &sizes, store.place()))
        }
        "tree" => Ok(tree::render(&look(store, scope).await?)),
        "doctor" => {
            let rest = line.trim_start().strip_prefix("doctor").unwrap_or_default();
            doctor::run(store, scope.conversation, rest).await
        }
        "import" => Ok(import::USAGE.into()),
        "compact" => Ok("Pi runs /lcm compact; this session has nothing to run it with.".into()),
        other => Ok(format!("There is no /lcm {}.\n{}", one_line(other, 40), commands())),
    }
}

async fn look(store: &Store, scope: &Scope) -> Result<Overview> {
    let scope = scope.clone();
    store.read(move |view| overview(view, &scope)).await
}

fn help(store: &Store) -> String {
    format!("{}\n\nEvery message of this project is kept in {}", commands(), lies_in(store.place()))
}

fn commands() -> String {
    let lines = COMMANDS.iter().map(|command| format!("/lcm {:<8} {}", command.name, command.help));
    lines.collect::<Vec<_>>().join("\n")
}

fn stats(overview: &Overview, bytes: u64, sizes: &str, place: &Place) -> String {
    let row = |name: &str, value: String| format!("{name:<15} {value}\n");
    let Overview { totals, .. } = overview;
    let mut out = row(
        "This session",
        format!("{}, {} on this branch", count(totals.messages, "message"), overview.visible),
    );
    out += &row(
        "This project",
        format!("{}, {}", count(overview.project_messages, "message"), count(overview.sessions, "session")),
    );
    out += &row("Summaries", summaries(overview));
    out += &row(
        "This branch",
        match overview.depths.is_empty() {
            true => format!("about {} tokens", grouped(overview.visible_tokens)),
            false => format!(
                "about {} tokens, {} with its summaries in place of what they stand for",
                grouped(overview.visible_tokens),
                grouped(overview.frontier_tokens)
            ),
        },
    );
    out += &row("Database", format!("{}, {}", megabytes(bytes), lies_in(place)));
    out += &row("", sizes.to_owned());
    out.truncate(out.trim_end().len());
    out
}

/// `24 D0, 6 D1, 1 D2; 2 degraded`
fn summaries(overview: &Overview) -> String {
    let depths = overview.depths.iter().map(|depth| format!("{} D{}", depth.summaries, depth.depth));
    let depths: Vec<String> = depths.collect();
    match depths.is_empty() {
        true => "none yet".into(),
        false if overview.totals.degraded == 0 => depths.join(", "),
        false => format!("{}; {} degraded", depths.join(", "), overview.totals.degraded),
    }
}

fn lies_in(place: &Place) -> String {
    match place {
        Place::Memory => "memory only: this session leaves no trace".into(),
        Place::File(path) => path.display().to_string(),
    }
}
