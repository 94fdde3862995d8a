//! Short turns of a talk are read together: the answer stands beside the question, and neither repeats the
//! words of the other.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use super::Search;
use super::rerank::{Lens, Weighed};
use lcm_model::error::Result;
use lcm_model::ids::MessageId;
use lcm_model::searchable;

/// The most bytes of turns that are read as one, about a passage.
const TOGETHER: usize = 700;
/// The share of the score of the turns read with a message that it gets, by their distance.
const FROM_TURN: [f64; 3] = [0.3, 0.25, 0.125];
/// The share of the better neighbor's score, if they are too long to be read as one.
const FROM_NEIGHBOR: f64 = 0.3;
/// The bonus if the message, with the turns around it, has all words of the query.
const COVERS: f64 = 1.0;

/// What is known of a message beside a candidate.
struct TalkTurn {
    is_talk: bool,
    length: usize,
    /// How well it has each word of the query.
    has: Vec<f64>,
}

/// Adds to each message's score what the messages beside it say.
pub(super) fn read_together(search: &Search<'_>, lens: &Lens<'_>, weighed: &mut [Weighed]) -> Result<()> {
    let scores: HashMap<MessageId, f64> = weighed.iter().map(|one| (one.message, one.score)).collect();
    let mut turns = HashMap::new();
    for one in weighed {
        let (mut has, mut from_turns, mut from_neighbor) = (one.has.clone(), 0.0, 0.0_f64);
        for step in [-1, 1] {
            let (mut at, mut length) = (one.message, one.length);
            for (distance, share) in FROM_TURN.iter().enumerate() {
                let Some(next) = search.neighbor(at, step)? else { break };
                let score = scores.get(&next).copied().unwrap_or_default();
                let together = one.is_talk && length <= TOGETHER && {
                    let turn = turn(search, lens, &mut turns, next)?;
                    length += turn.length;
                    let fits = turn.is_talk && length <= TOGETHER;
                    if fits {
                        has.iter_mut().zip(&turn.has).for_each(|(has, also)| *has = has.max(*also));
                    }
                    fits
                };
                if !together {
                    let neighbor = if distance == 0 { FROM_NEIGHBOR * score } else { 0.0 };
                    from_neighbor = from_neighbor.max(neighbor);
                    break;
                }
                from_turns += share * score;
                at = next;
            }
        }
        one.score += from_turns + from_neighbor;
        one.score *= 1.0 + COVERS * lens.share(&has).powf(1.5);
    }
    Ok(())
}

fn turn<'a>(
    search: &Search<'_>,
    lens: &Lens<'_>,
    turns: &'a mut HashMap<MessageId, TalkTurn>,
    id: MessageId,
) -> Result<&'a TalkTurn> {
    match turns.entry(id) {
        Entry::Occupied(known) => Ok(known.into_mut()),
        Entry::Vacant(unknown) => {
            let stored = search.view.messages().message(id)?;
            let text = searchable(&stored.json);
            let is_talk = is_talk(&stored.role);
            let has = if is_talk && text.len() <= TOGETHER { lens.has(&text) } else { Vec::new() };
            Ok(unknown.insert(TalkTurn { is_talk, length: text.len(), has }))
        }
    }
}

/// Whether the user or the model says it.
pub(super) fn is_talk(role: &str) -> bool {
    matches!(role, "user" | "assistant")
}
