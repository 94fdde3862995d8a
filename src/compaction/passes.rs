//! The two passes that make nodes: messages into a leaf summary, summaries into a condensed one. Each node is written in
//! one transaction with its edges, as soon as it is there; what an abort leaves behind is whole.

use std::fmt::Write as _;
use std::sync::Arc;

use super::extract;
use super::plan::Cut;
use super::prompts::{self, Material};
use super::quotes;
use super::redact::{redacted, redacted_message};
use super::summarizer::{Summarizer, Written};
use crate::dag::{Sources, Visible};
use crate::error::Result;
use crate::ids::Hash;
use crate::model::{Message, Quote, State, SummaryRecord};
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
/// Messages right before a chunk that it is told about.
pub(super) const BEFORE: usize = 3;
/// Characters of each of them.
const BEFORE_CHARS: usize = 240;

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
    /// The newest chunks' summaries aim at so many percent of what others do.
    pub recent_boost: usize,
    /// Are secrets masked?
    pub redact: bool,
}

impl Pass {
    /// A leaf summary of `chunk`; `before` are messages that come before it, `recent` says that it is one of the newest, and
    /// `otherwise` what if no model answers.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn leaf(
        &self,
        chunk: Vec<Visible>,
        before: Vec<Visible>,
        recent: bool,
        otherwise: Else,
    ) -> Result<()> {
        let _turn = self.summarizer.turn().await?;
        let before = self.messages(before).await?;
        let messages = self.messages(chunk.clone()).await?;
        let orientation: Vec<String> = (before.into_iter())
            .map(|(_, message)| self.shown(message))
            .map(|message| format!("{}: {}", message.role.as_str(), message.headline(BEFORE_CHARS)))
            .collect();
        let history = self.written_out(&messages);
        let material = Material {
            depth: 0,
            history: &history,
            before: &orientation.join("\n"),
            instructions: self.instructions.as_deref(),
        };
        let source_tokens = chunk.iter().map(|visible| visible.seen.tokens).sum();
        let boost = if recent { self.recent_boost } else { 100 };
        let target = self.target(LEAF_TARGET * boost / 100, source_tokens);
        let extract = |cap| {
            let messages: Vec<Message> = messages.iter().map(|(_, message)| message.clone()).collect();
            extract::of_messages(&messages, cap)
        };
        let mut written = if source_tokens <= LITTLE {
            Written { text: extract(source_tokens), state: State::Ok, model: None, usage: None }
        } else {
            self.summarizer.summarise(&material, source_tokens, target, extract).await?
        };
        if written.state == State::Degraded && otherwise == Else::Nothing {
            return Ok(());
        }
        let said: Vec<&Message> = messages.iter().map(|(_, message)| message).collect();
        let quotes = if source_tokens <= LITTLE || written.state == State::Degraded {
            quotes::of_messages(&said)
        } else {
            let (text, claimed) = quotes::taken_off(&written.text);
            written.text = text;
            quotes::proven(claimed, &said)
        };
        let hashes: Vec<Hash> = chunk.iter().map(|visible| visible.seen.hash).collect();
        let ids = chunk.iter().map(|visible| visible.seen.id).collect();
        self.store_node(0, written, quotes, &hashes, Sources::Messages(ids)).await
    }

    /// A condensed summary of `sources`, which follow each other; `otherwise` says what if no model answers.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn condensed(&self, sources: Vec<StoredSummary>, otherwise: Else) -> Result<()> {
        let _turn = self.summarizer.turn().await?;
        let depth = 1 + sources.iter().map(|source| source.depth).max().unwrap_or_default();
        let history = self.summaries_written_out(&sources);
        let material =
            Material { depth, history: &history, before: "", instructions: self.instructions.as_deref() };
        let quoted = sources.iter().flat_map(|source| &source.quotes);
        let quoted: usize = quoted.map(|quote| tokens::estimate(&quote.text)).sum();
        let source_tokens = sources.iter().map(|source| source.tokens).sum::<usize>() + quoted;
        let target = self.target(CONDENSED_TARGET, source_tokens);
        let texts: Vec<String> = sources.iter().map(|source| source.text.clone()).collect();
        let mut written = if source_tokens <= SCRAPS {
            Written { text: texts.join("\n"), state: State::Ok, model: None, usage: None }
        } else {
            let extract = |cap| extract::of_summaries(&texts, cap);
            self.summarizer.summarise(&material, source_tokens, target, extract).await?
        };
        if written.state == State::Degraded && otherwise == Else::Nothing {
            return Ok(());
        }
        let (text, claimed) = quotes::taken_off(&written.text);
        written.text = text;
        let quotes =
            quotes::carried(&claimed, sources.iter().flat_map(|source| source.quotes.clone()).collect());
        let hashes: Vec<Hash> = sources.iter().map(|source| source.hash).collect();
        let ids = sources.iter().map(|source| source.id).collect();
        self.store_node(depth, written, quotes, &hashes, Sources::Summaries(ids)).await
    }

    /// What of `summaries`, which stand for the whole session so far, bears on what the person typed after `/compact`.
    /// None where nothing was typed or no model would say.
    ///
    /// # Errors
    /// Only when cancelled.
    pub(super) async fn focus(&self, summaries: &[StoredSummary], tokens: usize) -> Result<Option<String>> {
        let Some(instructions) = &self.instructions else { return Ok(None) };
        let prompt = prompts::focus(&self.summaries_written_out(summaries), instructions, tokens);
        self.summarizer.ask_once(prompt, tokens).await
    }

    /// Summaries as the summariser reads them, with what they quote.
    fn summaries_written_out(&self, summaries: &[StoredSummary]) -> String {
        let mut out = String::new();
        for source in summaries {
            let span = text::time_span(source.from_time, source.to_time);
            let _ = writeln!(
                out,
                "[{} D{} {span}, {}]\n{}",
                source.hash.summary_handle(),
                source.depth,
                text::count(source.messages, "message"),
                source.text
            );
            for (at, quote) in source.quotes.iter().enumerate() {
                let heading = if at == 0 { "Quotes:\n" } else { "" };
                let _ = writeln!(out, "{heading}{}: \"{}\"", quote.kind.as_str(), quote.text);
            }
            out.push('\n');
        }
        out.truncate(out.trim_end().len());
        if self.redact { redacted(&out) } else { out }
    }

    /// A message as the summariser may see it.
    fn shown(&self, message: Message) -> Message {
        if self.redact { redacted_message(message) } else { message }
    }

    /// The chunk as the summariser reads it.
    fn written_out(&self, messages: &[(Visible, Message)]) -> String {
        let mut out = String::new();
        for (visible, message) in messages {
            let handle = visible.original.message_handle();
            let tool = message.tool.as_deref().map(|tool| format!(" {tool}")).unwrap_or_default();
            // Masked before it is shortened: half a key looks like none.
            let shown = self.shown(message.clone()).for_summary(self.cut.shown_bytes(&visible.seen), &handle);
            let time = text::minute(visible.seen.timestamp);
            let cut_off = if message.cut_off { ", stopped or failed half way" } else { "" };
            let _ = writeln!(out, "[{handle} {}{tool} {time}{cut_off}]\n{shown}\n", message.role.as_str());
        }
        out.truncate(out.trim_end().len());
        out
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
        quotes: Vec<Quote>,
        hashes: &[Hash],
        sources: Sources,
    ) -> Result<()> {
        let summary = NewSummary {
            hash: SummaryRecord::identity(
                depth,
                written.state,
                prompts::VERSION,
                &written.text,
                &quotes,
                hashes,
            ),
            depth,
            tokens: tokens::estimate(&written.text),
            text: written.text,
            state: written.state,
            model: written.model,
            prompt_version: prompts::VERSION,
            usage: written.usage.map(|usage| usage.to_string()),
            created_at: text::now(),
            quotes,
            sources,
        };
        self.store.write(move |batch| batch.add_summary(&summary).map(drop)).await
    }
}
