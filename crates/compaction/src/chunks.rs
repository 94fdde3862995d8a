//! Divides messages into the chunks of leaf summaries, without models or disks.

use lcm_model::config::Settings;
use lcm_model::dag::{BranchMessage, Span, Visible};
use lcm_model::policy::float;

/// A chunk takes at most this share of the model's window: 1/n. Instructions and the answer need room too.
const WINDOW_SHARE: usize = 2;

/// The most tokens shown to the summarizer of one tool result, of whose middle only lines about errors stay,
/// and about as many bytes. Pi shows its summarizer as much, so that a summary of ours costs about the same.
const SHOWN: (usize, usize) = (500, 2_000);
/// The same for a result so large that its ends say little about it.
const GLIMPSE: (usize, usize) = (240, 800);

/// A chunk ends before a user's message once it is this full: a new request starts a new topic.
const FULL_ENOUGH: f64 = 0.6;
/// A last chunk of fewer tokens, as the summarizer sees them, may wait for more: it stays raw meanwhile, several times as
/// long, and each request pays for it.
const REMAINDER: usize = 2_200;
/// A last chunk smaller than this share of a full one joins the one before.
const TOO_SMALL: f64 = 0.25;

/// How messages are divided and shortened for the summarizer.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cut {
    /// Tokens of a chunk, as the summarizer sees them.
    pub budget: usize,
    /// Of a message with more tokens, only a glimpse is shown.
    pub large: usize,
}

impl Cut {
    /// From the settings, for a model with this window, in tokens.
    pub(super) fn of(settings: &Settings, window: Option<usize>) -> Self {
        let most = window.unwrap_or(usize::MAX) / WINDOW_SHARE;
        Self { budget: settings.leaf_chunk_tokens.min(most), large: settings.large_file_threshold_tokens }
    }

    pub(super) fn chunks(self, visible: &[Visible], spans: Vec<Span>) -> Vec<Span> {
        spans.into_iter().flat_map(|span| self.divided(visible, span)).collect()
    }

    /// Divides `gap` into chunks of about the budget. A call and its results stay together unless they exceed
    /// a chunk.
    fn divided(self, visible: &[Visible], gap: Span) -> Vec<Span> {
        let budget = self.budget;
        let mut chunks: Vec<Span> = Vec::new();
        let mut start = gap.start;
        let mut sum = 0;
        let mut last_cut = None;
        let mut at = gap.start;
        while at < gap.end {
            let message = &visible[at];
            let may_cut = at > start && message.seen.role != "toolResult";
            if may_cut {
                last_cut = Some(at);
            }
            let new_subject = may_cut && message.seen.role == "user" && at_least(sum, budget, FULL_ENOUGH);
            let full = sum + self.shown_tokens(&message.seen) > budget && at > start;
            let cut = match (new_subject, full, last_cut) {
                (true, ..) => Some(at),
                (_, true, Some(cut)) => Some(cut),
                // One call with results larger than a chunk: cut between the results.
                (_, true, None) if sum > budget => Some(at),
                _ => None,
            };
            match cut {
                Some(cut) => {
                    chunks.push(start..cut);
                    (start, at, sum, last_cut) = (cut, cut, 0, None);
                }
                None => {
                    sum += self.shown_tokens(&message.seen);
                    at += 1;
                }
            }
        }
        if start < gap.end {
            chunks.push(start..gap.end);
        }
        if let [.., before, last] = chunks.as_mut_slice()
            && !at_least(self.tokens(&visible[last.clone()]), self.budget, TOO_SMALL)
        {
            before.end = last.end;
            chunks.pop();
        }
        chunks
    }

    /// Whether the last chunk is so small that it may wait for more.
    pub(super) fn is_remainder(self, visible: &[Visible], chunk: &Span) -> bool {
        self.tokens(&visible[chunk.clone()]) < self.budget.min(REMAINDER)
    }

    fn tokens(self, messages: &[Visible]) -> usize {
        messages.iter().map(|message| self.shown_tokens(&message.seen)).sum()
    }

    /// Tokens of a message as the summarizer sees it, with long output shortened.
    pub(super) fn shown_tokens(self, seen: &BranchMessage) -> usize {
        let most = self.shown(seen).0;
        // Users paste whole files, so their messages are kept longer than tool output.
        seen.tokens.min(if seen.role == "toolResult" { most } else { most * 4 })
    }

    /// The most tokens, and about the bytes, of a tool result that the summarizer sees.
    pub(super) fn shown(self, seen: &BranchMessage) -> (usize, usize) {
        if seen.tokens > self.large { GLIMPSE } else { SHOWN }
    }
}

fn at_least(sum: usize, budget: usize, share: f64) -> bool {
    float(sum) >= float(budget) * share
}

#[cfg(test)]
mod tests {
    use super::*;
    use lcm_model::dag::MessageKind;
    use lcm_model::ids::{Hash, MessageId};

    fn messages(plan: &[(&str, usize)]) -> Vec<Visible> {
        let message = |(at, (role, tokens)): (usize, &(&str, usize))| Visible {
            index: at,
            entry_id: format!("e{at}"),
            seen: BranchMessage {
                id: MessageId(i64::try_from(at).unwrap()),
                hash: Hash::ROOT,
                kind: MessageKind::Conversation,
                role: (*role).to_owned(),
                tokens: *tokens,
                timestamp: 0,
            },
            id: MessageId(i64::try_from(at).unwrap()),
            original: Hash::ROOT,
        };
        plan.iter().enumerate().map(message).collect()
    }

    fn lengths(plan: &[(&str, usize)], budget: usize) -> Vec<usize> {
        let visible = messages(plan);
        let chunks = Cut { budget, large: 25_000 }.divided(&visible, 0..visible.len());
        assert_eq!(chunks.first().unwrap().start, 0);
        assert_eq!(chunks.last().unwrap().end, visible.len());
        assert!(chunks.windows(2).all(|pair| pair[0].end == pair[1].start));
        chunks.into_iter().map(|chunk| chunk.len()).collect()
    }

    #[test]
    fn a_new_request_starts_a_chunk_once_the_last_is_full_enough() {
        let turn = [("user", 100), ("assistant", 100)];
        assert_eq!(lengths(&turn.repeat(6), 500), [4, 4, 4]);
    }

    #[test]
    fn a_call_stays_with_its_results_unless_they_alone_are_too_much() {
        let calls = [("assistant", 200), ("toolResult", 200), ("toolResult", 200)];
        assert_eq!(lengths(&calls.repeat(3), 700), [3, 3, 3]);
        let flood = [vec![("assistant", 10)], vec![("toolResult", 800); 6]].concat();
        let cut = lengths(&flood, 1_000);
        assert!(cut.len() > 1 && cut.iter().all(|length| *length <= 4), "{cut:?}");
    }

    #[test]
    fn only_a_glimpse_of_a_very_large_output_is_shown() {
        let cut = Cut { budget: 1_000, large: 5_000 };
        let seen = |role, tokens| messages(&[(role, tokens)]).remove(0).seen;
        assert_eq!(cut.shown_tokens(&seen("toolResult", 5_000)), SHOWN.0);
        assert_eq!(cut.shown_tokens(&seen("toolResult", 5_001)), GLIMPSE.0);
        assert_eq!(cut.shown_tokens(&seen("user", 5_001)), GLIMPSE.0 * 4);
        assert_eq!(cut.shown(&seen("toolResult", 5_001)), GLIMPSE);
        assert_eq!(cut.shown_tokens(&seen("toolResult", 10)), 10);
    }

    #[test]
    fn a_small_last_chunk_joins_the_one_before() {
        let plan = [vec![("assistant", 100); 10], vec![("user", 5)]].concat();
        assert_eq!(lengths(&plan, 500), [5, 6]);
    }
}
