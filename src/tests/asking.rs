//! A stored session with summaries, and questions about it: the fixture of the recall tests.

use std::ops::Range;
use std::path::PathBuf;

use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::support::{Session, TestStore, ask_in};
use crate::commands::Answer;
use crate::tools::{self, Block};
use lcm_ingest::import::Home;
use lcm_model::config::ProjectIdentity;
use lcm_model::dag::{Sources, visible};
use lcm_model::ids::{Hash, SummaryId};
use lcm_model::tokens;
use lcm_model::{Quote, State, Summary};
use lcm_recall::Scope;
use lcm_store::{NewSummary, PreparedText, Store};

pub struct Asking {
    pub store: TestStore,
    pub scope: Scope,
    /// The model that wrote the summaries.
    pub model: String,
}

impl Asking {
    /// Stores `session`; questions come from its leaf.
    pub async fn about(session: &Session) -> Self {
        let store = TestStore::new();
        let conversation = store.ingest("one", session).await;
        let scope = Scope::at(conversation, Some(session.leaf().to_owned()));
        Self { store, scope, model: "scripted/model".into() }
    }

    /// Stores another session of the project.
    pub async fn with_session(self, session_id: &str, session: &Session) -> Self {
        self.store.ingest(session_id, session).await;
        self
    }

    /// The same, asked from another leaf of the session.
    pub fn from(&self, leaf: &str) -> Scope {
        Scope { leaf: Some(leaf.to_owned()), ..self.scope.clone() }
    }

    /// A leaf summary of the visible messages at these positions.
    pub async fn leaf(&self, positions: Range<usize>, text: &str) -> SummaryId {
        self.quoting(positions, text, Vec::new()).await
    }

    /// The same with quotes.
    pub async fn quoting(&self, positions: Range<usize>, text: &str, quotes: Vec<Quote>) -> SummaryId {
        let (scope, text) = (self.scope.clone(), text.to_owned());
        let read = self.store.store.read(move |view| {
            let branch = visible(&view.messages().branch(scope.conversation, &scope.leaf.unwrap())?);
            Ok(branch[positions].iter().map(|message| (message.seen.id, message.seen.hash)).unzip())
        });
        let (ids, hashes): (Vec<_>, Vec<_>) = read.await.unwrap();
        self.add(0, text, Sources::Messages(ids), hashes, quotes).await
    }

    /// A summary of summaries.
    pub async fn condensed(&self, depth: u32, sources: &[SummaryId], text: &str) -> SummaryId {
        let (ids, text) = (sources.to_vec(), text.to_owned());
        let hashes = self.store.store.read({
            let ids = ids.clone();
            move |view| ids.iter().map(|id| Ok(view.summaries().summary(*id)?.hash)).collect()
        });
        let hashes: Vec<Hash> = hashes.await.unwrap();
        self.add(depth, text, Sources::Summaries(ids), hashes, Vec::new()).await
    }

    async fn add(
        &self,
        depth: u32,
        text: String,
        sources: Sources,
        hashes: Vec<Hash>,
        quotes: Vec<Quote>,
    ) -> SummaryId {
        let state = if text.starts_with("Extract") { State::Degraded } else { State::Ok };
        let mut summary = Summary {
            hash: Hash::ROOT,
            depth,
            tokens: tokens::estimate(&text),
            text,
            state,
            model: (state == State::Ok).then(|| self.model.clone()),
            prompt_version: 1,
            usage: Some(json!({"input": 90, "output": 10})),
            created_at: 1_763_700_000_000,
            quotes,
        };
        summary.hash = summary.identity(&hashes);
        let prepared = PreparedText::of(&summary.text);
        let summary = NewSummary { summary, sources, prepared };
        self.store
            .store
            .write(move |batch| batch.summaries().add_summary(&summary, None, false))
            .await
            .unwrap()
    }

    /// The short id of a summary.
    pub async fn name(&self, id: SummaryId) -> String {
        self.store
            .store
            .read(move |view| Ok(view.summaries().summary(id)?.hash.summary_handle()))
            .await
            .unwrap()
    }

    /// The short id of the visible message at a position.
    pub async fn message(&self, position: usize) -> String {
        let scope = self.scope.clone();
        let read = self.store.store.read(move |view| {
            let branch = visible(&view.messages().branch(scope.conversation, &scope.leaf.unwrap())?);
            Ok(branch[position].original.message_handle())
        });
        read.await.unwrap()
    }

    pub async fn blocks(&self, tool: &str, arguments: Value) -> lcm_model::error::Result<Vec<Block>> {
        let (arguments, cancel) = (arguments.to_string(), CancellationToken::new());
        tools::call(&self.store.store, &self.scope, tool, &arguments, None, &cancel).await
    }

    /// The text of a tool's answer.
    pub async fn tool(&self, tool: &str, arguments: Value) -> String {
        match self.blocks(tool, arguments).await.unwrap().remove(0) {
            Block::Text(text) => text,
            other => panic!("{other:?}"),
        }
    }

    pub async fn grep(&self, arguments: Value) -> String {
        self.tool("lcm_grep", arguments).await
    }

    /// The answer, with fixed fence names.
    pub async fn expand(&self, arguments: Value) -> String {
        unnamed(&self.tool("lcm_expand", arguments).await)
    }

    pub async fn describe(&self, arguments: Value) -> String {
        self.tool("lcm_describe", arguments).await
    }

    /// The error message of a refused call.
    pub async fn refusal(&self, tool: &str, arguments: Value) -> String {
        self.blocks(tool, arguments).await.unwrap_err().to_string()
    }

    pub async fn command(&self, line: &str) -> String {
        ask(&self.store.store, &self.scope, line).await.unwrap().text
    }

    /// The same on a screen with this many columns.
    pub async fn command_within(&self, columns: usize, line: &str) -> String {
        ask_within(Some(columns), &self.store.store, &self.scope, line).await.unwrap().text
    }

    /// The same as data.
    pub async fn json(&self, line: &str) -> Value {
        let answer = ask(&self.store.store, &self.scope, &format!("{line} --json")).await.unwrap();
        assert_eq!(serde_json::from_str::<Value>(&answer.text).unwrap(), answer.answer);
        answer.answer
    }
}

/// Answers `/lcm <line>` from `store`.
pub async fn ask(store: &Store, scope: &Scope, line: &str) -> lcm_model::error::Result<Answer> {
    ask_within(None, store, scope, line).await
}

async fn ask_within(
    columns: Option<usize>,
    store: &Store,
    scope: &Scope,
    line: &str,
) -> lcm_model::error::Result<Answer> {
    let nowhere = PathBuf::from("/nowhere");
    let home = Home {
        store: store.clone(),
        cwd: "/project".into(),
        identity: ProjectIdentity::Cwd,
        db_dir: nowhere.clone(),
        session_id: "one".into(),
    };
    ask_in(&home, &nowhere, scope, columns, line).await
}

/// An answer of `lcm_expand` without its random parts.
pub fn unnamed(answer: &str) -> String {
    let fence = answer.lines().find(|line| line.starts_with("<content-")).unwrap_or("<content>");
    answer.replace(fence.trim_matches(['<', '>']), "content")
}

/// The text between the content marks of a page, and the arguments of the next call, if there is one.
pub fn page(answer: &str) -> (&str, Option<Value>) {
    let (_, rest) = answer.split_once("\n<content>\n").unwrap();
    let (content, last) = rest.rsplit_once("\n</content>\n").unwrap();
    let next =
        last.split_once(": lcm_expand ").map(|(_, arguments)| serde_json::from_str(arguments).unwrap());
    (content, next)
}

/// A session with messages of every kind.
pub fn work() -> Session {
    Session::new()
        .user("Please fix the login timeout. The staging port is 8443, never use 8080.")
        .tool(
            "read",
            json!({"path": "src/auth/session_store.ts"}),
            "export function getUserName(id) {}\nconst MAX_RETRIES = 5;",
        )
        .tool(
            "bash",
            json!({"command": "npm test"}),
            "Error: ECONNREFUSED 127.0.0.1:5432\n  at Socket.<anonymous> (net.js:1)",
        )
        .assistant(
            "The connection was refused because postgres was not running; I restarted the compactions.",
        )
        .user("昨天的构建失败了，请检查部署脚本。用podman发布了apiGateway端。")
        .assistant("Deployed. See docs/deploy.md for HTTPServer settings.")
        .user("What about the cache?")
        .assistant("The weather is fine.")
        .user("Go on.")
}

/// The roles of a search's results, in order.
pub fn roles(answer: &str) -> Vec<&str> {
    answer
        .lines()
        .filter(|line| line.starts_with("m-"))
        .map(|line| line.split(" · ").nth(1).unwrap())
        .collect()
}

/// A search's first result.
pub fn first(answer: &str) -> &str {
    let is_hit = |line: &&str| line.starts_with("m-") || line.starts_with("s-");
    answer.lines().find(is_hit).unwrap_or(answer)
}

/// A search's answer without ages.
pub fn ageless(answer: &str) -> String {
    regex::Regex::new(r"\d+[dhm] ago").unwrap().replace_all(answer, "long ago").into_owned()
}

/// Where the next page of an answer begins.
pub fn cursor(answer: &str) -> Option<String> {
    answer.split_once("\"cursor\":\"").map(|(_, rest)| rest.split('"').next().unwrap().to_owned())
}

/// The same arguments with another value.
pub fn with(arguments: &Value, key: &str, value: impl Into<Value>) -> Value {
    let mut arguments = arguments.clone();
    arguments[key] = value.into();
    arguments
}
