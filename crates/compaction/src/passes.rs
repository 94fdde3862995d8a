//! The two passes that make nodes: messages into a leaf summary, summaries into a condensed one. Each node is
//! stored with its edges as soon as it is ready, so an abort leaves only complete ones.

use std::fmt::Write as _;
use std::sync::Arc;

use super::chunks::Cut;
use super::outline::outline;
use super::prompts::{self, HEADER, PromptMaterial, Stretch};
use super::redact::{masked, redacted_message};
use super::summarizer::{self, Summarizer, Written};
use super::{extract, gate, state};
use lcm_model::dag::{Sources, Visible};
use lcm_model::error::Result;
use lcm_model::facts::Facts;
use lcm_model::ids::Hash;
use lcm_model::text::{self, legible};
use lcm_model::{Message, Quote, Role, State, Summary, quotes, tokens};
use lcm_store::{NewSummary, PreparedText, Store, StoredSummary, View};

/// The target size of a leaf summary, in tokens.
const LEAF_TARGET: usize = 600;
/// The same for one of the newest leaf summaries.
const RECENT_TARGET: usize = LEAF_TARGET * 3 / 2;
/// The same for a condensed summary; deeper ones cover more.
const CONDENSED_TARGET: usize = 900;
/// The same for an outline of many chunks.
pub(super) const OUTLINE_TARGET: usize = 300;
/// A summary's target is at most this share of its source: 1/n.
const SHRINK: usize = 3;
/// A source of at most this many tokens is its own summary: a model could not shorten it.
const LITTLE: usize = 150;
/// Summaries of at most this many tokens in total are joined: a share of that would not be a sentence.
const SCRAPS: usize = 60;
/// Characters of a role and of a tool.
const NAME: usize = 60;
/// Messages directly before a chunk that are included as context.
pub(super) const BEFORE: usize = 3;
/// Characters of each of them.
const BEFORE_CHARS: usize = 240;
/// How many messages at either end of a chunk identify its place in the session's conversation.
const ENDS: usize = 2;

/// What happens if no model writes a summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Fallback {
    /// No summary is made: its sources say more, or nothing needs it now.
    Nothing,
    /// An extract: the block has no room for its sources.
    Extract,
    /// An extract too, unless the models were given up: then the existing extract of a longer range stays.
    Finer,
}

/// The source of a summary.
pub(super) enum Material {
    /// Of a leaf summary.
    Messages(Chunk),
    /// A condensed summary of these consecutive ones, by the model that the user named for it.
    Summaries(Vec<StoredSummary>, Option<String>),
}

/// Consecutive messages.
pub(super) struct Chunk {
    pub messages: Vec<Visible>,
    /// Its position among the visible messages.
    pub place: usize,
    /// Preceding messages, for context.
    pub before: Vec<Visible>,
    /// Whether it is one of the newest.
    pub recent: bool,
    /// The model that the user named for it.
    pub by: Option<String>,
}

/// A finished summary, to be stored.
pub(super) struct Made {
    pub summary: NewSummary,
    /// The facts of its messages, for a leaf summary.
    pub facts: Option<Facts>,
}

/// What both passes need.
#[derive(Clone)]
pub(super) struct Pass {
    pub store: Store,
    pub summarizer: Arc<Summarizer>,
    /// The user's instructions for every summary made now.
    pub instructions: Option<String>,
    /// The part of them that was typed after `/compact`.
    pub typed: Option<String>,
    /// How long output is shortened for the summarizer.
    pub cut: Cut,
    /// The largest target of a summary, so that several fit the block.
    pub most_tokens: usize,
    pub redact: bool,
}

impl Pass {
    /// The summary of `sources`; `otherwise` applies if no model answers.
    ///
    /// # Errors
    /// When cancelled, or the store fails.
    pub(super) async fn summary(&self, sources: Material, otherwise: Fallback) -> Result<Option<Made>> {
        if sources.tokens() <= sources.little() {
            return Ok(self.extracts(vec![(sources, otherwise)], 1).await?.pop());
        }
        match sources {
            Material::Messages(chunk) => self.leaf(chunk, otherwise).await,
            Material::Summaries(sources, by) => self.condensed(sources, by.as_deref(), otherwise).await,
        }
    }

    /// Makes a summary of `sources` without a model; `None` if `otherwise` asks for nothing.
    fn without_model(
        &self,
        view: &View<'_>,
        sources: &Material,
        otherwise: Fallback,
    ) -> Result<Option<Made>> {
        let size = sources.tokens();
        if otherwise != Fallback::Extract && size > sources.little() {
            return Ok(None);
        }
        match sources {
            Material::Messages(Chunk { messages: chunk, recent, .. }) => {
                let read = |visible: &Visible| view.messages().parsed(visible.seen.id);
                let messages = chunk.iter().map(read).collect::<Result<Vec<_>>>()?;
                let messages: Vec<&Message> = messages.iter().collect();
                let (cap, state) = match size <= LITTLE {
                    true => (size, State::Ok),
                    false => (summarizer::cap(self.leaf_target(*recent, size), size), State::Degraded),
                };
                let written = Written::without_model(extract::of_messages(&messages, cap), state);
                let facts = Facts::of(messages.iter().copied().enumerate());
                Ok(Some(leaf_of(chunk, written, Vec::new(), facts)))
            }
            Material::Summaries(sources, _) => {
                let texts: Vec<&str> = sources.iter().map(|source| source.text.as_str()).collect();
                let written = if size <= SCRAPS {
                    Written::without_model(texts.join("\n"), State::Ok)
                } else {
                    let cap = summarizer::cap(self.target(CONDENSED_TARGET, size), size);
                    Written::without_model(extract::of_summaries(&texts, cap), State::Degraded)
                };
                Ok(Some(node_of_summaries(sources, written)))
            }
        }
    }

    /// Makes summaries without a model in one read of the store: an extract of each, or one for every
    /// `together` consecutive chunks.
    pub(super) async fn extracts(
        &self,
        all: Vec<(Material, Fallback)>,
        together: usize,
    ) -> Result<Vec<Made>> {
        let pass = self.clone();
        let make = move |view: &View<'_>| {
            let mut made = Vec::new();
            let runs = all.chunk_by(follow);
            for some in runs.flat_map(|run| run.chunks(together.max(1))) {
                match some {
                    [(sources, otherwise)] => made.extend(pass.without_model(view, sources, *otherwise)?),
                    several => made.push(pass.outline(view, several)?),
                }
            }
            Ok(made)
        };
        self.store.read(make).await
    }

    /// One leaf summary of consecutive chunks.
    fn outline(&self, view: &View<'_>, several: &[(Material, Fallback)]) -> Result<Made> {
        let chunk = |(sources, _): &(Material, Fallback)| match sources {
            Material::Messages(chunk) => chunk.messages.clone(),
            Material::Summaries(..) => Vec::new(),
        };
        let stretch: Vec<Visible> = several.iter().flat_map(chunk).collect();
        let size = tokens_of(&stretch);
        let cap = summarizer::cap(self.target(OUTLINE_TARGET, size), size);
        let (text, facts) = outline(view, &stretch, cap)?;
        Ok(leaf_of(&stretch, Written::without_model(text, State::Degraded), Vec::new(), facts))
    }

    /// A leaf summary of a chunk.
    async fn leaf(&self, chunk: Chunk, otherwise: Fallback) -> Result<Option<Made>> {
        let Chunk { messages: chunk, before, recent, by, .. } = chunk;
        let before = self.messages(before).await?;
        let messages = self.messages(chunk.clone()).await?;
        let said: Vec<&Message> = messages.iter().map(|(_, message)| message).collect();
        let size = tokens_of(&chunk);
        let orientation: Vec<String> = (before.into_iter())
            .map(|(_, message)| self.shown(message))
            .map(|message| format!("{}: {}", name(message.role.as_str()), message.headline(BEFORE_CHARS)))
            .collect();
        let history = self.written_out(&messages);
        let stretch = self.stretch(&messages);
        let question = PromptMaterial {
            depth: 0,
            history: &history,
            before: &orientation.join("\n"),
            instructions: self.instructions.as_deref(),
            stretch: stretch.as_ref(),
            by: by.as_deref(),
        };
        let target = self.leaf_target(recent, size);
        let extract = |cap| extract::of_messages(&said, cap);
        let mut written = self.summarizer.summarize(&question, size, target, extract).await?;
        let quotes = match (written.state, otherwise) {
            (State::Degraded, Fallback::Nothing) => return Ok(None),
            (State::Degraded, Fallback::Finer) if self.summarizer.has_given_up() => return Ok(None),
            (State::Degraded, Fallback::Extract | Fallback::Finer) => Vec::new(),
            (State::Ok, _) => {
                let (text, claimed) = self.gated(&written.text, &messages);
                written.text = text;
                quotes::proven(claimed.unwrap_or_default(), &said)
            }
        };
        Ok(Some(leaf_of(&chunk, written, quotes, Facts::of(said.iter().copied().enumerate()))))
    }

    /// A condensed summary of the consecutive `sources`.
    async fn condensed(
        &self,
        sources: Vec<StoredSummary>,
        by: Option<&str>,
        otherwise: Fallback,
    ) -> Result<Option<Made>> {
        let size = tokens_of_summaries(&sources);
        let texts: Vec<&str> = sources.iter().map(|source| source.text.as_str()).collect();
        let history = self.summaries_written_out(&sources);
        let (depth, instructions) = (depth_above(&sources), self.instructions.as_deref());
        let question =
            PromptMaterial { depth, history: &history, before: "", instructions, stretch: None, by };
        let extract = |cap| extract::of_summaries(&texts, cap);
        let target = self.target(CONDENSED_TARGET, size);
        let written = self.summarizer.summarize(&question, size, target, extract).await?;
        let is_made = written.state == State::Ok || otherwise == Fallback::Extract;
        Ok(is_made.then(|| node_of_summaries(&sources, written)))
    }

    /// What `summaries`, which cover the whole session so far, contain about the instructions typed after
    /// `/compact`. `None` if nothing was typed or no model answers.
    ///
    /// # Errors
    /// Only when cancelled.
    pub(super) async fn focus(&self, summaries: &[StoredSummary], tokens: usize) -> Result<Option<String>> {
        let Some(instructions) = &self.typed else { return Ok(None) };
        let summaries = self.summaries_written_out(summaries);
        let prompt = prompts::focus(&self.summarizer.guidance, &summaries, instructions, tokens);
        self.summarizer.ask_once(prompt, tokens).await
    }

    /// Summaries as the summarizer's input, with their quotes.
    fn summaries_written_out(&self, summaries: &[StoredSummary]) -> String {
        // Each by itself: a key without an end would hide the next ones.
        let masked = |text: &str| masked(text, self.redact);
        let mut out = String::new();
        for (at, source) in summaries.iter().enumerate() {
            // The state of the work is useful only in the last one.
            let is_last = at + 1 == summaries.len();
            let text = if is_last { source.text.clone() } else { state::split(&source.text).0 };
            let text = masked(&legible(&text));
            let span = text::time_span(source.from_time, source.to_time);
            let _ = writeln!(
                out,
                "{HEADER}{} D{} {span}, {}]\n{text}",
                source.hash.summary_handle(),
                source.depth,
                text::count(source.messages, "message"),
            );
            for (at, quote) in source.quotes.iter().enumerate() {
                let heading = if at == 0 { "Quotes:\n" } else { "" };
                let words = masked(&text::in_line(&quote.text));
                let _ = writeln!(out, "{heading}{}: \"{words}\"", quote.kind.as_str());
            }
            out.push('\n');
        }
        out.truncate(out.trim_end().len());
        out
    }

    /// The message as the summarizer may see it.
    fn shown(&self, message: Message) -> Message {
        if self.redact { redacted_message(message) } else { message }
    }

    /// Takes a summary's quotes off, and appends the exact details it has lost in a last line.
    fn gated(&self, text: &str, messages: &[(Visible, Message)]) -> (String, Option<Vec<Quote>>) {
        let shown: Vec<Message> = messages.iter().map(|(_, message)| self.shown(message.clone())).collect();
        let (text, claimed) = quotes::taken_off(text);
        // Within the session, the model sees what would be masked for a summarizer.
        let text = masked(&text, self.redact);
        (gate::added(&gate::details(&shown), text), claimed)
    }

    /// The chunk's place in the session's conversation.
    fn stretch(&self, messages: &[(Visible, Message)]) -> Option<Stretch> {
        let ((first, _), (last, _)) = (messages.first()?, messages.last()?);
        // Many results are alike.
        let spoken: Vec<String> = (messages.iter().filter(|(_, message)| message.role != Role::ToolResult))
            .map(|(_, message)| {
                let role = message.role.as_str();
                format!("{role}: {}", self.shown(message.clone()).headline(BEFORE_CHARS))
            })
            .collect();
        let start = spoken.iter().take(ENDS).cloned().collect::<Vec<_>>().join("\n");
        let end = spoken[spoken.len().saturating_sub(ENDS)..].join("\n");
        let ends =
            format!("It begins with:\n{start}\n\nIt ends with these, and the results of their calls:\n{end}");
        Some(Stretch { first: first.entry_id.clone(), last: last.entry_id.clone(), ends })
    }

    /// The chunk as the summarizer's input.
    fn written_out(&self, messages: &[(Visible, Message)]) -> String {
        let mut out = String::new();
        for (visible, message) in messages {
            let handle = visible.original.message_handle();
            let tool = message.tool.as_deref().map(|tool| format!(" {}", name(tool))).unwrap_or_default();
            // Mask before shortening: half a key is not recognized.
            let shown = self.shown(message.clone()).for_summary(self.cut.shown(&visible.seen).1, &handle);
            let (role, shown) = (name(message.role.as_str()), legible(&shown));
            let time = text::minute(visible.seen.timestamp);
            let cut_off = if message.cut_off { ", stopped or failed half way" } else { "" };
            let _ = writeln!(out, "{HEADER}{handle} {role}{tool} {time}{cut_off}]\n{shown}\n");
        }
        out.truncate(out.trim_end().len());
        out
    }

    fn leaf_target(&self, recent: bool, source_tokens: usize) -> usize {
        self.target(if recent { RECENT_TARGET } else { LEAF_TARGET }, source_tokens)
    }

    fn target(&self, nominal: usize, source_tokens: usize) -> usize {
        nominal.min(self.most_tokens).min(source_tokens / SHRINK).max(16)
    }

    async fn messages(&self, chunk: Vec<Visible>) -> Result<Vec<(Visible, Message)>> {
        let read = move |view: &View<'_>| {
            let read = |visible: Visible| {
                let message = view.messages().parsed(visible.seen.id)?;
                Ok((visible, message))
            };
            chunk.into_iter().map(read).collect()
        };
        self.store.read(read).await
    }
}

/// A role or a tool, made safe for a header.
fn name(name: &str) -> String {
    text::one_line(name, NAME).replace(['[', ']'], "")
}

/// The stored form of a leaf summary of `chunk`.
fn leaf_of(chunk: &[Visible], written: Written, quotes: Vec<Quote>, facts: Facts) -> Made {
    let hashes: Vec<Hash> = chunk.iter().map(|visible| visible.seen.hash).collect();
    let ids = chunk.iter().map(|visible| visible.seen.id).collect();
    Made { summary: node(0, written, quotes, &hashes, Sources::Messages(ids)), facts: Some(facts) }
}

/// The stored form of a condensed summary of `sources`.
fn node_of_summaries(sources: &[StoredSummary], mut written: Written) -> Made {
    let (text, claimed) = quotes::taken_off(&written.text);
    written.text = text;
    let quotes = quotes::carried(
        claimed.as_deref(),
        sources.iter().flat_map(|source| source.quotes.clone()).collect(),
    );
    let hashes: Vec<Hash> = sources.iter().map(|source| source.hash).collect();
    let ids = sources.iter().map(|source| source.id).collect();
    let summary = node(depth_above(sources), written, quotes, &hashes, Sources::Summaries(ids));
    Made { summary, facts: None }
}

fn node(depth: u32, written: Written, quotes: Vec<Quote>, hashes: &[Hash], sources: Sources) -> NewSummary {
    let Written { text, state, model, usage } = written;
    let prepared = match state {
        State::Ok => PreparedText::of(&text),
        State::Degraded => PreparedText::at_once(&text),
    };
    let mut summary = Summary {
        hash: Hash::ROOT,
        depth,
        tokens: tokens::estimate(&text),
        text,
        state,
        model,
        prompt_version: prompts::VERSION,
        usage,
        created_at: text::now(),
        quotes,
    };
    summary.hash = summary.identity(hashes);
    NewSummary { summary, sources, prepared }
}

fn depth_above(sources: &[StoredSummary]) -> u32 {
    1 + sources.iter().map(|source| source.depth).max().unwrap_or_default()
}

pub(super) fn tokens_of(chunk: &[Visible]) -> usize {
    chunk.iter().map(|visible| visible.seen.tokens).sum()
}

fn tokens_of_summaries(sources: &[StoredSummary]) -> usize {
    let quoted = sources.iter().flat_map(|source| &source.quotes);
    let quoted: usize = quoted.map(|quote| tokens::estimate(&quote.text)).sum();
    sources.iter().map(|source| source.tokens).sum::<usize>() + quoted
}

/// Whether the chunk `next` starts where `one` ends, and both need an extract.
fn follow(one: &(Material, Fallback), next: &(Material, Fallback)) -> bool {
    match (one, next) {
        ((Material::Messages(one), Fallback::Extract), (Material::Messages(next), Fallback::Extract)) => {
            one.place + one.messages.len() == next.place
        }
        _ => false,
    }
}

impl Material {
    fn tokens(&self) -> usize {
        match self {
            Self::Messages(chunk) => tokens_of(&chunk.messages),
            Self::Summaries(sources, _) => tokens_of_summaries(sources),
        }
    }

    /// At most this many tokens are their own summary.
    fn little(&self) -> usize {
        match self {
            Self::Messages(_) => LITTLE,
            Self::Summaries(..) => SCRAPS,
        }
    }
}
