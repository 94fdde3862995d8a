//! Shows a message with its neighbors on one page, and divides the page so that long ones leave room for the
//! others.

use super::{Asked, Budget, HEADER, Image, Place, Slice, images, read_message};
use crate::error::{Error, Result};
use crate::ids::MessageId;
use crate::recall::MessageCard;
use crate::tokens;

/// Maximum number of messages on each side.
const MOST: usize = 20;
/// Tokens of the line that says how to continue a truncated message.
const GOING_ON: usize = 40;
/// The fewest tokens worth showing of a neighbor.
const WORTH_SHOWING: usize = 30;
/// The smallest page: with less, not even the nearest neighbors could be shown.
const LEAST_ROOM: usize = 400;
/// A text longer than this many bytes gets all available room, without counting its tokens.
const LONG: usize = 48_000;

/// A message among its neighbors.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighborhood {
    /// Where it is, seen from the current branch.
    pub place: Place,
    /// The messages, oldest first.
    pub messages: Vec<Neighbor>,
    /// Whether there are more before the first.
    pub has_earlier: bool,
    /// Whether there are more after the last.
    pub has_later: bool,
    /// The images of the requested message.
    pub images: Vec<Image>,
}

/// One of the messages.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Neighbor {
    /// Its header.
    pub card: MessageCard,
    /// Its text or the beginning of it.
    pub slice: Slice,
    /// Whether it is the requested one.
    pub is_asked: bool,
}

impl Asked<'_> {
    pub(super) fn around(&self, id: MessageId) -> Result<Neighborhood> {
        let Self { view, sight, request } = self;
        let room = self.budget_tokens().max(LEAST_ROOM);
        let each = request.around.min(MOST).min(room / (2 * (HEADER + GOING_ON + WORTH_SHOWING)));
        let mut found = sight.around(id, each + 1)?;
        let (has_earlier, has_later) = (found.before.len() > each, found.after.len() > each);
        let before = found.before.split_off(usize::from(has_earlier));
        found.after.truncate(each);
        let mut read = Vec::new();
        for message in before.iter().chain([&id]).chain(&found.after) {
            read.push(read_message(view, *message, request.raw)?);
        }
        let asked = before.len();
        let wants: Vec<usize> = read.iter().map(|(.., text)| want(text, room)).collect();
        let shares = shares(&wants, asked, room.saturating_sub(read.len() * (HEADER + GOING_ON)));
        let images = if request.raw { Vec::new() } else { images(read[asked].1.clone()) };
        let mut messages = Vec::new();
        for (at, ((card, _, text), share)) in read.into_iter().zip(shares).enumerate() {
            let slice = Budget::part(share.max(1)).take(&text, 0);
            let slice = slice.ok_or_else(|| Error::store("a fresh page has no room"))?;
            messages.push(Neighbor { card, slice, is_asked: at == asked });
        }
        Ok(Neighborhood { place: sight.place(id)?, messages, has_earlier, has_later, images })
    }
}

fn want(text: &str, room: usize) -> usize {
    if text.len() > LONG { room } else { tokens::estimate(text).min(room) }
}

/// Divides `room`. The requested message gets up to half, plus what the others leave. Those that need less
/// than an equal share get what they need.
fn shares(wants: &[usize], asked: usize, room: usize) -> Vec<usize> {
    let first = wants[asked].min(room / 2);
    let mut shares = vec![0; wants.len()];
    let mut left = room - first;
    let mut others: Vec<usize> = (0..wants.len()).filter(|at| *at != asked).collect();
    others.sort_by_key(|at| wants[*at]);
    for (done, at) in others.iter().enumerate() {
        shares[*at] = wants[*at].min(left / (others.len() - done));
        left -= shares[*at];
    }
    shares[asked] = wants[asked].min(first + left);
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_messages_fit_and_the_rest_is_divided_evenly() {
        assert_eq!(shares(&[10, 20, 30], 1, 100), [10, 20, 30]);
        assert_eq!(shares(&[900, 20, 900], 1, 100), [40, 20, 40]);
        assert_eq!(shares(&[900, 900, 10], 1, 100), [40, 50, 10]);
        assert_eq!(shares(&[5, 900, 5], 1, 100), [5, 90, 5]);
        assert_eq!(shares(&[900], 0, 100), [100]);
        assert_eq!(shares(&[900, 900], 0, 0), [0, 0]);
    }
}
