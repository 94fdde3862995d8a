//! The two passes that make nodes: messages into a leaf summary, summaries into a condensed one. Each node is written in
//! one transaction with its edges, as soon as it is there; what an abort leaves behind is whole.

use std::fmt::Write as _;
use std::sync::Arc;

use super::extract;
use super::plan::Cut;
use super::prompts::{self, Material};
use super::summarizer::{Summarizer, Written};
use crate::dag::{Sources, Visible};
use crate::error::Result;
use crate::ids::Hash;
use crate::model::{Message, State, SummaryRecord};
use crate::store::{NewSummary, Store, StoredSummary};
use crate::{text, tokens};

/// What a leaf summary aims at, in tokens, and the share of its source it must not pass.
const LEAF_TARGET: usize = 600;
/// The same for a condensed one; deeper ones stand for more.
const CONDENSED_TARGET: usize = 900;
/// No summary aims at more than this share of what it stands for: 1/n.
const SHRINK: usize = 3;
/// So little is its own summary: there is nothing for a model to leave out. In tokens.
const LITTLE: usize = 150;
/// Summaries of so little together are joined: a share of that would be no sentence. In tokens.
const SCRAPS: usize = 60;
/// Messages before a chunk that it is told about, and characters of each.
const ORIENTATION: (usize, usize) = (3, 160);

/// What becomes of a summary that no model wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Else {
    /// It is not made: what it would stand for says more, or nobody waits for it.
    Nothing,
    /// The extract it is: the block has no room for its sources.
    Extract,
}

/// What both passes work with.
#[derive(Clone)]
pub(super) struct Pass {
    pub store: Store,
    pub summarizer: Arc<Summarizer>,
    pub instructions: Option<String>,
    /// How long output is shortened for the summariser.
    pub cut: Cut,
    /// Most tokens one summary may aim at, so that a few of them fit the block.
    pub most_tokens: usize,
}

impl Pass {
    /// A leaf summary of `chunk`; `before` are messages that come before it, and `otherwise` says what if no model answers.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn leaf(
        &self,
        chunk: Vec<Visible>,
        before: Vec<Visible>,
        otherwise: Else,
    ) -> Result<()> {
        let _turn = self.summarizer.turn().await?;
        let skip = before.len().saturating_sub(ORIENTATION.0);
        let before = self.messages(before[skip..].to_vec()).await?;
        let messages = self.messages(chunk.clone()).await?;
        let orientation: Vec<String> = (before.iter())
            .map(|(_, message)| format!("{}: {}", message.role.as_str(), message.headline(ORIENTATION.1)))
            .collect();
        let history = written_out(&messages, self.cut);
        let material = Material {
            depth: 0,
            history: &history,
            before: &orientation.join("\n"),
            instructions: self.instructions.as_deref(),
        };
        let source_tokens = chunk.iter().map(|visible| visible.seen.tokens).sum();
        let target = self.target(LEAF_TARGET, source_tokens);
        let extract = |cap| {
            let messages: Vec<Message> = messages.iter().map(|(_, message)| message.clone()).collect();
            extract::of_messages(&messages, cap)
        };
        let written = if source_tokens <= LITTLE {
            Written { text: extract(source_tokens), state: State::Ok, model: None, usage: None }
        } else {
            self.summarizer.summarise(&material, source_tokens, target, extract).await?
        };
        if written.state == State::Degraded && otherwise == Else::Nothing {
            return Ok(());
        }
        let hashes: Vec<Hash> = chunk.iter().map(|visible| visible.seen.hash).collect();
        let ids = chunk.iter().map(|visible| visible.seen.id).collect();
        self.store_node(0, written, &hashes, Sources::Messages(ids)).await
    }

    /// A condensed summary of `sources`, which follow each other; `otherwise` says what if no model answers.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn condensed(&self, sources: Vec<StoredSummary>, otherwise: Else) -> Result<()> {
        let _turn = self.summarizer.turn().await?;
        let depth = 1 + sources.iter().map(|source| source.depth).max().unwrap_or_default();
        let mut history = String::new();
        for source in &sources {
            let span = text::time_span(source.from_time, source.to_time);
            let _ = writeln!(
                history,
                "[{} D{} {span}, {}]\n{}\n",
                source.hash.summary_handle(),
                source.depth,
                text::count(source.messages, "message"),
                source.text
            );
        }
        let material = Material {
            depth,
            history: history.trim_end(),
            before: "",
            instructions: self.instructions.as_deref(),
        };
        let source_tokens = sources.iter().map(|source| source.tokens).sum();
        let target = self.target(CONDENSED_TARGET, source_tokens);
        let texts: Vec<String> = sources.iter().map(|source| source.text.clone()).collect();
        let written = if source_tokens <= SCRAPS {
            Written { text: texts.join("\n"), state: State::Ok, model: None, usage: None }
        } else {
            let extract = |cap| extract::of_summaries(&texts, cap);
            self.summarizer.summarise(&material, source_tokens, target, extract).await?
        };
        if written.state == State::Degraded && otherwise == Else::Nothing {
            return Ok(());
        }
        let hashes: Vec<Hash> = sources.iter().map(|source| source.hash).collect();
        let ids = sources.iter().map(|source| source.id).collect();
        self.store_node(depth, written, &hashes, Sources::Summaries(ids)).await
    }

    fn target(&self, nominal: usize, source_tokens: usize) -> usize {
        nominal.min(self.most_tokens).min(source_tokens / SHRINK).max(16)
    }

    async fn messages(&self, chunk: Vec<Visible>) -> Result<Vec<(Visible, Message)>> {
        let read = self.store.read(move |view| {
            let read = |visible: Visible| {
                let message = Message::parse(&view.message(visible.seen.id)?.json);
                Ok((visible, message))
            };
            chunk.into_iter().map(read).collect::<Result<Vec<_>>>()
        });
        read.await
    }

    async fn store_node(
        &self,
        depth: u32,
        written: Written,
        hashes: &[Hash],
        sources: Sources,
    ) -> Result<()> {
        let summary = NewSummary {
            hash: SummaryRecord::identity(depth, written.state, prompts::VERSION, &written.text, hashes),
            depth,
            tokens: tokens::estimate(&written.text),
            text: written.text,
            state: written.state,
            model: written.model,
            prompt_version: prompts::VERSION,
            usage: written.usage.map(|usage| usage.to_string()),
            created_at: text::now(),
            sources,
        };
        self.store.write(move |batch| batch.add_summary(&summary).map(drop)).await
    }
}

/// The chunk as the summariser reads it.
fn written_out(messages: &[(Visible, Message)], cut: Cut) -> String {
    let mut out = String::new();
    for (visible, message) in messages {
        let handle = visible.original.message_handle();
        let tool = message.tool.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
        let _ = writeln!(
            out,
            "[{handle} {}{tool} {}]\n{}\n",
            message.role.as_str(),
            text::minute(visible.seen.timestamp),
            message.for_summary(cut.shown_bytes(&visible.seen), &handle)
        );
    }
    out.truncate(out.trim_end().len());
    out
}
