//! A session's folding: what its requests have cost, whether to fold now, and what folds have brought.
//!
//! A turn takes the same time in a session of any length: it needs the sizes that the provider has reported, no look
//! at the history.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::alone::{Alone, AnsweredRequest, Threshold};
use super::{Cost, Growth, Moment, Prices, Terms, Window, float, tail};
use crate::Usage;
use crate::config::{Context, PiCompaction, Settings};

/// How many folds are kept for display, and how long a file counts as read before.
const KEPT: usize = 5;
/// The summaries of a fold are written when so few requests are missing to the fold point.
const SOON: usize = 3;
/// By how much the fold point rises when look-ups have twice eaten what a fold saved.
const RAISE: f64 = 1.5;

/// A context, as Pi describes it. Sizes are in tokens.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Live {
    /// Its size as Pi counts it; absent if Pi does not know.
    pub context_tokens: Option<usize>,
    /// The model's window.
    pub context_window: Option<usize>,
    /// The session's model as `provider/id`.
    pub model: Option<String>,
    /// The block on the branch, if requested.
    pub block: Option<String>,
    /// The first entry that the branch's last compaction left raw, if there is one.
    pub shown_from: Option<String>,
    /// Prices of the model's tokens.
    pub cost: Cost,
    /// The prompt size above which the model's prices rise, if they do.
    pub tier: Option<usize>,
    /// Prices of the model that writes summaries; `None` if it is the session's own, asked within the session.
    pub summarizer: Option<Cost>,
    /// System prompt and tools.
    pub prompt_tokens: Option<usize>,
    /// This extension's tools within that.
    pub own_tokens: usize,
    /// Whether the model can look up what is folded.
    pub can_recall: bool,
}

/// A turn that has ended.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Turn {
    /// Its context, with its results.
    pub live: Live,
    /// The usage that the provider reported for its request.
    pub usage: Value,
    /// Estimated tokens of the thinking in its answer.
    pub thinking: usize,
    /// Estimated tokens of its results, and of those that answer look-ups in the history.
    pub results: usize,
    pub lookups: usize,
    /// Estimated tokens of the messages that came since the answer before: a prompt, for one.
    pub said: usize,
    /// Files that it read, each with the estimated tokens of the result.
    pub reads: Vec<(String, usize)>,
    /// Reasoning blocks of earlier answers that the provider has dropped from its request.
    pub dropped: usize,
    /// Whether the request continues the one before.
    pub goes_on: bool,
    /// Whether the run has ended.
    pub is_prompt: bool,
    /// Whether the answer was cut short.
    pub is_cut: bool,
    /// Whether the model's thinking is bound to what stands before it.
    pub is_bound: bool,
}

/// What to do at the end of a turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Due {
    /// Fold now.
    pub fold: bool,
    /// Write summaries ahead of a fold or of Pi's compaction.
    pub prepare: bool,
    /// The answer was cut short: fold without it, and let the model answer again.
    pub retry: bool,
}

/// A fold, and what it has brought. Sizes are in tokens, costs in millionths of the prices' unit.
#[derive(Clone, Copy, Debug, Default)]
pub struct Receipt {
    /// The number of requests answered before it.
    pub request: usize,
    /// The context before and after it; 0 until the next request.
    pub before: usize,
    pub after: usize,
    /// What it cost: what was written again, and summaries since the fold before.
    pub cost: f64,
    /// What it has saved since.
    pub saved: f64,
    /// What look-ups in the history and files that were read again have cost since.
    pub lookups: f64,
}

/// The session's folding so far: for the decisions, and for `/lcm context`.
#[derive(Clone, Debug, Default)]
pub struct Folding {
    /// The session's bill.
    pub bill: Alone,
    /// The last folds, oldest first.
    pub receipts: Vec<Receipt>,
    /// Reasoning blocks that the provider has dropped.
    pub dropped: usize,
    /// Whether the provider reports how much of a prompt came from its cache.
    pub reports_cache: bool,
    /// How much of what the last request did not read was not written to the cache either.
    unwritten: f64,
    growth: Growth,
    /// Whether the last fold still has an effect.
    is_fold_open: bool,
    /// The last context, with the answer and its results, and the last prompt.
    context: usize,
    prompt: usize,
    /// The cost of summaries since the last fold.
    summaries: f64,
    /// Each file that was read within the last few folds, with the number of folds before that.
    read: HashMap<String, usize>,
    folds: usize,
    /// How many folds in a row have been eaten by look-ups.
    eaten: usize,
    raised: f64,
    /// Whether the next fold is so near that its summaries are written, up to the tail.
    pub is_fold_near: bool,
    /// Whether a fold was due but lacked summaries: it comes as soon as they are there, also within a run.
    pub is_overdue: bool,
    /// Whether only a fold leaves room for an answer: then extracts do if no model answers.
    pub is_full: bool,
    /// Whether the last answer is left out, and the next one a second attempt.
    pub is_retry: bool,
    /// Whether the user has asked for a fold, wherever the fold point is.
    pub is_asked: bool,
    summarizer: Option<Prices>,
    /// The window that Pi's settings were last held against.
    window: Option<usize>,
    /// What the user should know about them.
    notice: Option<String>,
}

impl Live {
    /// The model's window, and what comes before the conversation.
    pub const fn window(&self) -> Window {
        Window { tokens: self.context_window, prompt: self.prompt_tokens }
    }
}

impl Folding {
    /// The terms of the fold point.
    pub fn terms(&self, live: &Live, settings: &Settings) -> Terms {
        let prices = self.prices(live);
        let pi = settings.pi.with(live.model.as_deref());
        // What the last fold has left is better known than what a fold may leave.
        let window = live.window();
        let most = window.prompt() + settings.largest_block(window) + tail(window);
        let left = self.receipts.last().map(|fold| fold.after).filter(|left| *left > 0);
        Terms {
            base: left.unwrap_or(most),
            growth: self.growth,
            prices,
            summarizer: live.summarizer.map_or_else(|| prices.in_session(), Prices::of),
            fixed: (settings.fold_at > 0).then_some(settings.fold_at),
            raised: self.raised.max(1.0),
            tier: live.tier,
            threshold: pi.threshold(live.context_window).filter(|_| pi.misfit(window).is_none()),
            window,
        }
    }

    /// Records a turn that has ended, and decides what to do.
    pub fn turn(&mut self, turn: &Turn, settings: &Settings) -> Due {
        let pi = settings.pi.with(turn.live.model.as_deref());
        self.add(turn, &pi);
        if self.window != turn.live.context_window {
            self.window = turn.live.context_window;
            self.notice = pi.misfit(turn.live.window()).or(self.notice.take());
        }
        let tokens = self.context;
        let terms = self.terms(&turn.live, settings);
        self.summarizer = Some(terms.summarizer);
        let may_fold = settings.context == Context::Lean && settings.background && turn.live.can_recall;
        let is_asked = self.is_asked && turn.live.can_recall;
        let point = terms.point().filter(|_| may_fold);
        // A fold comes before Pi's compaction.
        let is_near = settings.background && point.is_none() && pi.is_near(tokens, turn.live.context_window);
        let soon = tokens + SOON * terms.growth_per_request();
        let is_full = may_fold && terms.is_full(tokens, turn.is_cut);
        self.is_full = is_full && terms.threshold.is_none();
        self.is_fold_near = is_asked || self.is_full || point.is_some_and(|point| soon > point);
        self.is_overdue &= turn.goes_on && may_fold;
        let moment = Moment { tokens, is_prompt: turn.is_prompt || self.is_overdue, is_bound: turn.is_bound };
        let due = is_asked || self.is_full || may_fold && terms.is_due(moment);
        // After a fold, Pi does not ask again by itself.
        let is_cut = is_full && turn.is_cut;
        let fold = due && (self.is_full || !(is_cut && self.is_retry));
        self.is_retry = fold && is_cut && !self.is_retry;
        Due { fold, prepare: is_near || self.is_fold_near, retry: self.is_retry }
    }

    /// What the user should know about Pi's settings, once.
    pub const fn take_notice(&mut self) -> Option<String> {
        self.notice.take()
    }

    /// Whether summaries are needed now, as for a compaction: what no model summarizes is extracted. One that fails would
    /// hold up every fold.
    pub const fn is_needed(&self) -> bool {
        self.is_full || self.is_asked || self.is_overdue
    }

    /// Folds at the end of the next turn by which the summaries are there.
    pub const fn ask(&mut self) {
        self.is_asked = true;
        self.is_fold_near = true;
    }

    /// The model's prices. A catalog may have one for writing where the provider reports no writes: then new tokens
    /// cost as much as others.
    fn prices(&self, live: &Live) -> Prices {
        let prices = Prices::of(live.cost);
        Prices { write: prices.write + (prices.input - prices.write) * self.unwritten, ..prices }
    }

    /// Adds the request of a turn.
    fn add(&mut self, turn: &Turn, pi: &PiCompaction) {
        let usage = Usage::of(&turn.usage);
        if usage.input + usage.cache_write > 0 {
            self.unwritten = float(usage.input) / float(usage.input + usage.cache_write);
        }
        let prices = self.prices(&turn.live);
        let known = turn.live.context_tokens.unwrap_or_default();
        // A provider may report nothing, or impossible numbers.
        let window = turn.live.context_window.unwrap_or(usize::MAX);
        let (output, results, said) =
            (usage.output.min(window), turn.results.min(window), turn.said.min(window));
        let prompt = match usage.prompt() {
            0 => known.saturating_sub(output),
            prompt => prompt.min(window),
        };
        self.reports_cache |= usage.cache_read + usage.cache_write > 0;
        let is_first = self.prompt == 0 || !turn.goes_on;
        // On another branch, or after Pi's compaction, the last fold has no more effect.
        self.is_fold_open &= !is_first;
        let is_folded = self.is_fold_open && self.receipts.last().is_some_and(|fold| fold.after == 0);
        // After a fold, what is new is what stood behind the last answer, and what was said since.
        let grown = if is_folded {
            self.context - self.prompt.min(self.context) + said
        } else {
            prompt.saturating_sub(self.prompt)
        };
        let grown = if is_first { prompt } else { grown.min(prompt) };
        let read = if self.reports_cache { usage.cache_read.min(prompt) } else { prompt - grown };
        let is_cold = !is_folded && self.reports_cache && read < self.prompt / 2;
        let bound = if turn.is_bound { turn.thinking.min(output) } else { 0 };
        let own = turn.live.own_tokens;
        let request = AnsweredRequest { prompt, read, output, bound, results, grown, own, is_first, is_cold };
        let (live, kept) = (turn.live.window(), pi.keep_recent_tokens);
        let threshold = Threshold { at: pi.compacts_from(live), kept, prompt: live.prompt() };
        self.bill.add(request, prices, threshold);
        let reread = self.reread(&turn.reads);
        if let Some(fold) = self.receipts.last_mut().filter(|_| self.is_fold_open) {
            if fold.after == 0 {
                // A fold leaves at least something, even if the estimate says otherwise.
                fold.after = prompt.saturating_sub(said).max(1);
                fold.cost += (prices.write - prices.read) * float((prompt - read).saturating_sub(grown));
            }
            fold.saved += prices.read * float(fold.before.saturating_sub(fold.after));
            fold.lookups += prices.write * float(turn.lookups + reread);
        }
        for (file, _) in &turn.reads {
            self.read.insert(file.clone(), self.folds);
        }
        let context = prompt + output + results;
        if !is_first && !is_folded {
            self.growth.add(context.saturating_sub(self.context), turn.thinking);
        }
        (self.prompt, self.context) = (prompt, context);
        self.dropped += turn.dropped;
    }

    /// Tokens of files that the model had read before the last fold.
    fn reread(&self, reads: &[(String, usize)]) -> usize {
        let is_again = |file: &String| self.read.get(file).is_some_and(|folds| *folds < self.folds);
        reads.iter().filter(|(file, _)| is_again(file)).map(|(_, tokens)| tokens).sum()
    }

    /// Records a fold, and returns a message for the user, if any. If look-ups have eaten what the last two have saved, the point rises.
    pub fn folded(&mut self) -> Option<String> {
        let mut notice = None;
        let is_eaten = self.receipts.last().is_some_and(|fold| fold.lookups > fold.saved);
        self.eaten = if is_eaten { self.eaten + 1 } else { 0 };
        if self.eaten == 2 {
            self.eaten = 0;
            self.raised = self.raised.max(1.0) * RAISE;
            let why = "looking up again what was folded has cost more than two folds in a row have saved";
            notice = Some(format!("{why}, so this session folds later from now on (/lcm context)"));
        }
        if self.receipts.len() == KEPT {
            self.receipts.remove(0);
        }
        let (request, before, cost) = (self.bill.requests, self.context, std::mem::take(&mut self.summaries));
        self.receipts.push(Receipt { request, before, cost, ..Receipt::default() });
        self.folds += 1;
        self.read.retain(|_, folds| *folds + KEPT >= self.folds);
        self.is_overdue = false;
        self.is_asked = false;
        self.is_fold_open = true;
        notice
    }

    /// Adds what model calls for summaries used, in Pi's format: their cost or, if not reported, their tokens at
    /// the prices of the model expected to write them.
    pub fn pay(&mut self, usage: &Value) {
        let usage = Usage::of(usage);
        let Prices { input, output, .. } = self.summarizer.unwrap_or_else(|| Prices::of(Cost::default()));
        let cost = match usage.dollars {
            dollars if dollars > 0.0 => dollars * 1_000_000.0,
            _ => input * float(usage.prompt()) + output * float(usage.output),
        };
        self.summaries += cost;
        self.bill.paid += cost;
    }
}
