//! Groups what was found by session, the best session first.

use super::Search;
use super::matches::{MatchedNode, RankedMatch, WEAK};
use lcm_model::error::Result;
use lcm_model::ids::ConversationId;

/// Messages shown of the best sessions; of the others, one.
const SHOWN: [usize; 2] = [3, 2];
/// The weight of each further message in its session's score, relative to the one before.
const FURTHER: f64 = 0.5;

/// A session with its matching messages.
struct Group {
    session: ConversationId,
    score: f64,
    /// The weight of the next message's score.
    share: f64,
    best: Vec<RankedMatch>,
}

/// The best session first, each with its best messages, fewer for worse sessions. Each further message counts
/// less in a session's score, so that many weak ones don't outweigh one good one.
pub(super) fn by_session(search: &Search<'_>, candidates: Vec<RankedMatch>) -> Result<Vec<RankedMatch>> {
    let mut groups: Vec<Group> = Vec::new();
    for candidate in candidates {
        let MatchedNode::Message(message, _) = candidate.target else { continue };
        let Some(session) = search.session_of(message)? else { continue };
        let at = groups.iter().position(|group| group.session == session).unwrap_or_else(|| {
            groups.push(Group { session, score: 0.0, share: 1.0, best: Vec::new() });
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.score += group.share * candidate.score;
        group.share *= FURTHER;
        let least = group.best.first().map_or(0.0, |best| best.score * WEAK);
        if candidate.score >= least {
            group.best.push(candidate);
        }
    }
    groups.sort_by(|one, other| other.score.total_cmp(&one.score));
    let shown = SHOWN.into_iter().chain(std::iter::repeat(1));
    Ok(groups.into_iter().zip(shown).flat_map(|(group, shown)| group.best.into_iter().take(shown)).collect())
}
