//! How far token estimates are off for a model, learned from the usage its provider reports for known
//! prompts.
//!
//! A ratio is real tokens per estimated token. After the first reports it moves slowly, and it stays within bounds,
//! so that one odd report changes little. It is stored with the project.

use std::collections::{BTreeMap, HashMap};
use std::sync::Mutex;

use crate::llm::{Answer, Reply};
use lcm_model::dag::Visible;
use lcm_model::error::Result;
use lcm_model::locks::lock;
use lcm_model::policy::{float, whole};
use lcm_model::{Usage, read_json};
use lcm_store::{Store, View};

/// How far a ratio may be from 1.
const BOUNDS: (f64, f64) = (0.6, 2.0);
/// A ratio outside these is not about our prompt: one that the server cut or extended, or an uncounted cache.
const PLAUSIBLE: (f64, f64) = (0.6, 3.0);
/// The weight of a new report compared to all earlier ones: of the first ones, and of those after them.
const WEIGHTS: (f64, f64) = (0.5, 0.2);
/// How many are the first.
const FIRST: u32 = 6;
/// Below this many tokens, what providers add themselves weighs too much.
const ENOUGH: usize = 500;
/// The least growth of a session, in tokens, that is meaningful, and the number of messages examined for it.
const GROWTH: usize = 2_000;
const LOOKED_AT: usize = 200;

/// The learned ratio per model and the number of reports it is from, by `provider/model`.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Ratios(BTreeMap<String, (f64, u32)>);

impl Ratios {
    pub(super) async fn read(store: &Store) -> Result<Self> {
        store.read(|view| view.summaries().token_ratios().map(Self)).await
    }

    /// Converts `real` tokens to estimated ones, by the first of `models` with a known ratio.
    pub(super) fn estimated<'a>(&self, real: usize, models: impl IntoIterator<Item = &'a str>) -> usize {
        let known = models.into_iter().find_map(|model| self.0.get(model));
        let ratio = known.map_or(1.0, |(ratio, _)| ratio.clamp(BOUNDS.0, BOUNDS.1));
        // An unknown window counts as unlimited.
        if real == usize::MAX { real } else { whole((float(real) / ratio).round()) }
    }

    fn learn(&mut self, seen: &Seen) {
        let ratio = float(seen.real) / float(seen.estimated.max(1));
        if ratio < PLAUSIBLE.0 || ratio > PLAUSIBLE.1 {
            return;
        }
        let (known, reports) = self.0.entry(seen.model.clone()).or_insert((1.0, 0));
        let weight = if *reports < FIRST { WEIGHTS.0 } else { WEIGHTS.1 };
        *known = (*known + weight * (ratio - *known)).clamp(BOUNDS.0, BOUNDS.1);
        *reports = reports.saturating_add(1);
    }

    pub(super) fn by_model(&self) -> HashMap<String, f64> {
        let bounded =
            |(model, (ratio, _)): (&String, &(f64, u32))| (model.clone(), ratio.clamp(BOUNDS.0, BOUNDS.1));
        self.0.iter().map(bounded).collect()
    }
}

/// The real and the estimated tokens of a call, or of a part of the session.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    model: String,
    estimated: usize,
    real: usize,
}

/// What the models reported, until it is stored.
#[derive(Default)]
pub(super) struct Measured(Mutex<Vec<Seen>>);

impl Measured {
    /// Stores what was learned since the last time, and `session`. Failing to write it does no harm.
    pub(super) async fn keep(&self, store: &Store, session: Option<Seen>) {
        let mut seen = std::mem::take(&mut *lock(&self.0));
        seen.extend(session);
        if seen.is_empty() {
            return;
        }
        let learn = store.write(move |batch| {
            let before = Ratios(batch.summaries().token_ratios()?);
            let mut ratios = before.clone();
            seen.iter().for_each(|seen| ratios.learn(seen));
            if ratios == before { Ok(()) } else { batch.summaries().set_token_ratios(&ratios.0) }
        });
        drop(learn.await);
    }

    /// Records the answer to a prompt of `estimated` tokens.
    pub(super) fn note(&self, estimated: usize, answer: &Answer) {
        let Ok(Reply { model: Some(model), usage: Some(usage), .. }) = answer else { return };
        let real = Usage::of(usage).prompt();
        if real > 0 && estimated >= ENOUGH {
            lock(&self.0).push(Seen { model: model.clone(), estimated, real });
        }
    }
}

/// Compares the growth of the session model's prompt between two of its answers with our estimate. `visible`
/// are messages of one unbroken context.
pub(super) fn of_session(view: &View<'_>, visible: &[Visible]) -> Result<Option<Seen>> {
    let recent = &visible[visible.len().saturating_sub(LOOKED_AT)..];
    let mut last: Option<(String, usize)> = None;
    let mut estimated = 0;
    for message in recent.iter().rev() {
        if last.is_some() {
            estimated += message.seen.tokens;
        }
        if message.seen.role != "assistant" || (last.is_some() && estimated < GROWTH) {
            continue;
        }
        let Some((model, real)) = reported(&view.messages().message(message.seen.id)?.json) else { continue };
        match &last {
            None => last = Some((model, real)),
            Some((same, later)) if *same == model => {
                return Ok(later.checked_sub(real).map(|real| Seen { model, estimated, real }));
            }
            Some(_) => return Ok(None),
        }
    }
    Ok(None)
}

/// The model of an assistant message, and the tokens of its prompt.
fn reported(json: &str) -> Option<(String, usize)> {
    let message = read_json(json).ok()?;
    let (provider, model) = (message["provider"].as_str()?, message["model"].as_str()?);
    let prompt = Usage::of(&message["usage"]).prompt();
    (prompt > 0).then(|| (format!("{provider}/{model}"), prompt))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use lcm_model::Message;
    use lcm_model::dag::{BranchMessage, MessageKind};
    use lcm_model::ids::Hash;
    use lcm_store::{Batch, NewMessage, Prepared};

    fn seen(real: usize) -> Seen {
        Seen { model: "p/m".into(), estimated: 1_000, real }
    }

    #[test]
    fn a_ratio_follows_the_first_reports_fast_and_later_ones_slowly_within_its_bounds() {
        let mut ratios = Ratios::default();
        assert_eq!(ratios.estimated(8_000, ["p/m"]), 8_000);
        (0..6).for_each(|_| ratios.learn(&seen(1_500)));
        // Off by 1 % now; with the later weight by 9 %.
        assert_eq!(ratios.estimated(15_000, ["p/m"]), 10_052);
        let slowly = ratios.clone();
        ratios.learn(&seen(900));
        let moved = ratios.0["p/m"].0 - slowly.0["p/m"].0;
        assert!((-0.13..-0.11).contains(&moved), "{moved}");
        (0..50).for_each(|_| ratios.learn(&seen(1_500)));
        assert_eq!(ratios.estimated(15_000, ["other/one", "p/m"]), 10_000);
        assert_eq!(ratios.estimated(15_000, ["other/one"]), 15_000);
        (0..50).for_each(|_| ratios.learn(&seen(2_900)));
        assert_eq!(ratios.estimated(15_000, ["p/m"]), 7_500);
        let before = ratios.clone();
        for nonsense in [0, 10, 100_000] {
            ratios.learn(&seen(nonsense));
        }
        assert_eq!(ratios, before);
        assert_eq!(ratios.estimated(usize::MAX, ["p/m"]), usize::MAX);
    }

    /// An answer of a model whose prompt took this many tokens.
    fn answer(model: &str, input: u64) -> String {
        json!({"role": "assistant", "provider": "p", "model": model, "usage": {"input": input, "cacheRead": 1_000}})
            .to_string()
    }

    /// What is learned from a session with these messages, each with its estimated tokens.
    async fn of_messages(messages: &[(String, usize)]) -> Option<Seen> {
        let store = Store::open(None, "project", "/project").unwrap();
        let messages = messages.to_vec();
        let write = move |batch: &Batch<'_>| {
            let mut visible = Vec::new();
            for (index, (json, tokens)) in messages.iter().enumerate() {
                let message = Message::parse(json);
                let lineage = Hash::ROOT.child(&index.to_string());
                let new = NewMessage {
                    lineage,
                    parent: None,
                    height: 0,
                    kind: MessageKind::Conversation,
                    role: &message.role,
                    tool: None,
                    tokens: *tokens,
                    timestamp: 0,
                    json,
                    searchable: "",
                    prepared: &Prepared::of(json, ""),
                };
                let seen = BranchMessage {
                    id: batch.messages().add_message(&new)?,
                    hash: lineage,
                    kind: MessageKind::Conversation,
                    role: message.role.as_str().to_owned(),
                    tokens: *tokens,
                    timestamp: 0,
                };
                let entry_id = index.to_string();
                visible.push(Visible { index, entry_id, id: seen.id, seen, original: lineage });
            }
            of_session(batch, &visible)
        };
        store.write(write).await.unwrap()
    }

    #[tokio::test]
    async fn a_session_shows_the_growth_of_its_prompt_between_two_answers() {
        let user = |tokens| (r#"{"role":"user","content":"go on"}"#.to_owned(), tokens);
        let growing =
            [user(700), (answer("m", 1_000), 400), user(2_500), (answer("m", 5_500), 300), user(900)];
        // The second prompt also contains the first answer and the request after it, and is 4,500 tokens
        // longer.
        let grown = Seen { model: "p/m".into(), estimated: 2_900, real: 4_500 };
        assert_eq!(of_messages(&growing).await, Some(grown.clone()));
        // Answers that are too close are skipped.
        let near =
            [&growing[..2], &[user(2_000), (answer("m", 5_000), 0)], &[user(500), (answer("m", 5_500), 300)]]
                .concat();
        assert_eq!(of_messages(&near).await, Some(grown));

        let other = [(answer("other", 1_000), 400), user(2_500), (answer("m", 5_500), 300)];
        let little = [(answer("m", 1_000), 400), user(500), (answer("m", 5_500), 300)];
        let shrunk = [(answer("m", 9_000), 400), user(2_500), (answer("m", 5_500), 300)];
        let silent = [
            (r#"{"role":"assistant","content":[]}"#.to_owned(), 400),
            user(2_500),
            (answer("m", 5_500), 300),
        ];
        for nothing in [&other[..], &little, &shrunk, &silent, &growing[..1], &[]] {
            assert_eq!(of_messages(nothing).await, None, "{nothing:?}");
        }
    }
}
