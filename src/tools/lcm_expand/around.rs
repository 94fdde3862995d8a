//! Shows a message with its neighbors on one page, and divides the page so that long ones leave room for the
//! others.

use serde_json::json;

use super::{Block, Budget, Expansion, HEADER, Original, Page, call, lines};
use lcm_model::error::{Error, Result};
use lcm_model::ids::MessageId;
use lcm_model::text::count;
use lcm_model::tokens;

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

impl Expansion<'_> {
    pub(super) fn around(&self, id: MessageId) -> Result<Vec<Block>> {
        let room = self.budget_tokens().max(LEAST_ROOM);
        let asked_for = self.request.around;
        let each = asked_for.min(MOST).min(room / (2 * (HEADER + GOING_ON + WORTH_SHOWING)));
        let mut found = self.sight.around(id, each + 1)?;
        let (has_earlier, has_later) = (found.before.len() > each, found.after.len() > each);
        let before = found.before.split_off(usize::from(has_earlier));
        found.after.truncate(each);
        let mut read = Vec::new();
        for message in before.iter().chain([&id]).chain(&found.after) {
            read.push(Original::read(self.view, *message, self.request.raw)?);
        }
        let asked = before.len();
        let want = |text: &str| if text.len() > LONG { room } else { tokens::estimate(text).min(room) };
        let wants: Vec<usize> = read.iter().map(|message| want(&message.text)).collect();
        let shares = shares(&wants, asked, room.saturating_sub(read.len() * (HEADER + GOING_ON)));
        let ends = [("before", 0, has_earlier), ("after", read.len() - 1, has_later)].map(
            |(side, end, has_more)| {
                let handle = &read[end].card.handle;
                match has_more {
                    true => {
                        format!("More {side}: {}", call(&json!({"summary_id": handle, "around": asked_for})))
                    }
                    false => format!("Nothing was said {side} {handle}."),
                }
            },
        );
        let (mut page, mut rests) = (Page::default(), Vec::new());
        for (at, (message, share)) in read.into_iter().zip(shares).enumerate() {
            let slice = Budget::part(share.max(1)).take(&message.text, 0);
            let slice = slice.ok_or_else(|| Error::store("a fresh page has no room"))?;
            if slice.left() > 0 {
                let (left, handle) = (count(slice.left(), "byte"), &message.card.handle);
                let next = self.next(handle, &slice.range.end.to_string());
                rests.push(format!("{left} left of {handle}: {next}\n"));
            }
            let mut heading = lines::message(&message.card);
            if at == asked {
                heading = heading + " · asked for" + lines::place(self.sight.place(id)?);
                page.images = message.images;
            }
            page.quote_part(&heading, slice);
            page.say("\n");
        }
        page.say(rests.concat() + &ends.join("\n"));
        Ok(page.finish())
    }
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
