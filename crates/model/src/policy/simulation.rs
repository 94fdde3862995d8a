//! What a recorded session would have cost with Pi alone, with Pi tuned, and with this extension.
//!
//! The session's own growth, answers and pauses are replayed through the policy that decides in a real session. Nothing
//! is sent.

use serde_json::json;

use super::alone::{Alone, AnsweredRequest, Threshold};
use super::{Folding, Live, Prices, Turn, Window, float, tail, whole};
use crate::config::Settings;

/// This extension's tools and its addition to the system prompt, in tokens.
const OWN: usize = 1_050;
/// What a block has besides summaries.
const FRAME: usize = 600;
/// The length of summaries by that of their source, and the instructions for a summary.
const SHORTENED: f64 = 0.06;
const INSTRUCTIONS: usize = 1_000;
/// How far estimates of tokens may be corrected by what the provider has counted.
const CORRECTION: std::ops::RangeInclusive<f64> = 0.5..=2.5;
/// Pi with settings that suit a large window: what it keeps, and where it compacts.
const TUNED: (usize, usize) = (6_000, 40_000);

/// An answered request of a recorded session. Sizes are in tokens.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordedRequest {
    /// What the provider has counted: the prompt, and the answer.
    pub prompt: usize,
    pub output: usize,
    /// Estimates: the thinking in the answer, the results of its calls, the part of those that a summarizer is shown,
    /// and what was said since the answer before.
    pub thinking: usize,
    pub results: usize,
    pub shown: usize,
    pub said: usize,
    /// Whether the run ended with this answer.
    pub is_prompt: bool,
    /// Whether the provider had forgotten the request before.
    pub is_cold: bool,
    /// Whether the context was compacted since.
    pub is_compacted: bool,
}

/// What a session would cost in three ways. Costs are in millionths of the prices' unit.
#[derive(Clone, Debug, Default)]
pub struct Simulated {
    pub requests: usize,
    /// Pi alone, and Pi tuned.
    pub alone: Alone,
    pub tuned: Alone,
    /// With this extension.
    pub ours: f64,
    pub folds: usize,
    /// The sizes of the requests with Pi alone and with this extension.
    pub sizes: Vec<(usize, usize)>,
}

/// Replays a session with the model, prices and window of `live`.
pub fn simulate(recorded: &[RecordedRequest], live: &Live, is_bound: bool, settings: &Settings) -> Simulated {
    let pi = settings.pi.with(live.model.as_deref());
    let factor = correction(recorded);
    let corrected = |tokens: usize| whole(float(tokens) * factor);
    let Some(first) = recorded.first() else { return Simulated::default() };
    let rest = first.prompt.checked_sub(corrected(first.said)).filter(|rest| *rest > 0);
    let system = rest.unwrap_or_else(|| live.window().prompt());
    let threshold = pi.threshold(live.context_window);
    let window = Window { prompt: Some(system), ..live.window() };
    let in_pi = Threshold { at: pi.compacts_from(window), kept: pi.keep_recent_tokens, prompt: system };
    let (kept, most) = TUNED;
    let tuned = Threshold { at: Some(threshold.map_or(most, |at| at.min(most))), kept, prompt: system };
    let prices = Prices::of(live.cost);
    let live = Live { prompt_tokens: Some(system + OWN), own_tokens: OWN, can_recall: true, ..live.clone() };
    let mut out = Simulated::default();
    let mut folding = Folding::default();
    // The context now, what is cached of it, what a summarizer would be shown of it, and the block's summaries.
    let (mut context, mut cached, mut shown, mut summaries) = (0, 0, 0, 0);
    // The last answer and its results.
    let mut last = 0;
    for (at, request) in recorded.iter().enumerate() {
        let RecordedRequest { output, is_prompt, is_cold, .. } = *request;
        let (said, results) = (corrected(request.said), corrected(request.results));
        let is_first = at == 0;
        let prompt = if is_first { system + OWN + said } else { context + said };
        let read = if is_cold { 0 } else { cached };
        let bound = if is_bound { request.thinking.min(output) } else { 0 };
        let grown = if is_first { prompt } else { (last + said).min(prompt) };
        let own =
            AnsweredRequest { prompt, read: 0, output, bound, results, grown, own: OWN, is_first, is_cold };
        out.alone.add(AnsweredRequest { read, ..own }, prices, in_pi);
        out.tuned.add(AnsweredRequest { read, ..own }, prices, tuned);
        out.sizes.push((out.alone.context(), prompt));
        context = prompt + output + results;
        let turn = Turn {
            live: Live { context_tokens: Some(context), ..live.clone() },
            usage: json!({"cacheRead": read, "cacheWrite": prompt - read, "output": output}),
            thinking: request.thinking,
            results,
            said,
            goes_on: !is_first,
            is_prompt,
            is_bound,
            ..Turn::default()
        };
        let due = folding.turn(&turn, settings);
        last = output + results;
        shown += said + output + corrected(request.shown);
        cached = prompt;
        let left = tail(live.window()).min(context);
        if due.fold && context > system + OWN + FRAME + left {
            let source = shown.saturating_sub(left) + INSTRUCTIONS;
            let text = whole(float(source) * SHORTENED);
            folding.pay(&json!({"input": source, "output": text}));
            folding.folded();
            summaries += text;
            let block = (FRAME + summaries).min(settings.largest_block(live.window()).max(FRAME));
            (context, cached, shown) = (system + OWN + block + left, system + OWN, left);
            out.folds += 1;
        }
    }
    out.requests = recorded.len();
    out.ours = folding.bill.paid;
    out
}

/// By how much the provider counts more tokens than the estimates.
fn correction(recorded: &[RecordedRequest]) -> f64 {
    let (mut counted, mut estimated) = (0.0, 0.0);
    for pair in recorded.windows(2) {
        let [before, after] = pair else { continue };
        let new = after.prompt.checked_sub(before.prompt + before.output).filter(|_| !after.is_compacted);
        if let Some(new) = new {
            counted += float(new);
            estimated += float(before.results + after.said);
        }
    }
    if estimated > 0.0 { (counted / estimated).clamp(*CORRECTION.start(), *CORRECTION.end()) } else { 1.0 }
}
