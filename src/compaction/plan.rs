//! Where the leaf pass cuts: uncovered messages into chunks, without a thought of models or disks.

use crate::dag::{Piece, Span, Visible};

/// Most tokens of one tool result that the summariser is shown; the rest is cut out of its middle.
pub(super) const SHOWN_OUTPUT: usize = 900;
/// Bytes that are about as much.
pub(super) const SHOWN_OUTPUT_BYTES: usize = 3_000;

/// A chunk closes before a user's message once it is this full: a new request begins a new subject.
const FULL_ENOUGH: f64 = 0.6;
/// A last chunk smaller than this share of a whole one joins the one before it.
const TOO_SMALL: f64 = 0.25;

/// The stretches of a frontier that no summary covers.
pub(super) fn gaps(frontier: &[Piece]) -> Vec<Span> {
    let mut gaps: Vec<Span> = Vec::new();
    for piece in frontier {
        let Piece::Message(at) = piece else { continue };
        match gaps.last_mut() {
            Some(gap) if gap.end == *at => gap.end += 1,
            _ => gaps.push(*at..at + 1),
        }
    }
    gaps
}

/// Cuts `gap` into chunks of about `budget` tokens, as the summariser sees them. A call and its results stay together
/// unless they alone are more than a chunk.
pub(super) fn chunks(visible: &[Visible], gap: Span, budget: usize) -> Vec<Span> {
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
        let full = sum + shown_tokens(message) > budget && at > start;
        let cut = match (new_subject, full, last_cut) {
            (true, ..) => Some(at),
            (_, true, Some(cut)) => Some(cut),
            // One call with results beyond a whole chunk: cut between the results.
            (_, true, None) if sum > budget => Some(at),
            _ => None,
        };
        match cut {
            Some(cut) => {
                chunks.push(start..cut);
                (start, at, sum, last_cut) = (cut, cut, 0, None);
            }
            None => {
                sum += shown_tokens(message);
                at += 1;
            }
        }
    }
    if start < gap.end {
        chunks.push(start..gap.end);
    }
    merge_small_end(visible, chunks, budget)
}

fn merge_small_end(visible: &[Visible], mut chunks: Vec<Span>, budget: usize) -> Vec<Span> {
    if let [.., before, last] = chunks.as_mut_slice()
        && !at_least(tokens(&visible[last.clone()]), budget, TOO_SMALL)
    {
        before.end = last.end;
        chunks.pop();
    }
    chunks
}

/// Is the last chunk smaller than a whole one by far enough to wait for more?
pub(super) fn is_remainder(visible: &[Visible], chunk: &Span, budget: usize) -> bool {
    !at_least(tokens(&visible[chunk.clone()]), budget, FULL_ENOUGH)
}

fn at_least(sum: usize, budget: usize, share: f64) -> bool {
    #[expect(clippy::cast_precision_loss, reason = "token counts are far below 2^52")]
    let full_enough = sum as f64 >= budget as f64 * share;
    full_enough
}

fn tokens(messages: &[Visible]) -> usize {
    messages.iter().map(shown_tokens).sum()
}

/// Tokens of a message as the summariser sees it, long output shortened.
fn shown_tokens(message: &Visible) -> usize {
    let most = if message.seen.role == "toolResult" { SHOWN_OUTPUT } else { SHOWN_OUTPUT * 4 };
    message.seen.tokens.min(most)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dag::{BranchMessage, MessageKind};
    use crate::ids::{Hash, MessageId};

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
            original: Hash::ROOT,
        };
        plan.iter().enumerate().map(message).collect()
    }

    fn lengths(plan: &[(&str, usize)], budget: usize) -> Vec<usize> {
        let visible = messages(plan);
        let chunks = chunks(&visible, 0..visible.len(), budget);
        assert_eq!(chunks.first().unwrap().start, 0);
        assert_eq!(chunks.last().unwrap().end, visible.len());
        assert!(chunks.windows(2).all(|pair| pair[0].end == pair[1].start));
        chunks.into_iter().map(|chunk| chunk.len()).collect()
    }

    #[test]
    fn a_new_request_begins_a_new_chunk_once_the_old_one_is_full_enough() {
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
    fn a_small_end_joins_the_chunk_before_it() {
        let plan = [vec![("assistant", 100); 10], vec![("user", 5)]].concat();
        assert_eq!(lengths(&plan, 500), [5, 6]);
    }

    #[test]
    fn gaps_are_the_runs_of_uncovered_messages() {
        use crate::ids::SummaryId;
        let frontier =
            [Piece::Message(0), Piece::Message(1), Piece::Summary(SummaryId(1), 2..5), Piece::Message(5)];
        assert_eq!(gaps(&frontier), [0..2, 5..6]);
    }
}
