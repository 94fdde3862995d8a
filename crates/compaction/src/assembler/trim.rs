//! What is cut from a block that is too large, and in which order.

use super::super::branch::HISTORY;
use super::{Block, Ids, Layout, REQUEST};
use lcm_model::{text, tokens};

/// The newest leaf summary is shown whole up to this share of the budget: 1/n.
const NEWEST: usize = 4;
/// Bytes to keep of each text before lines of other sections are cut.
const EXCERPT: usize = 600;
/// One of the newest changed files is listed for each so many tokens of the budget.
const A_FILE: usize = 400;
/// The least bytes of each text, before ids become a range.
const GLIMPSE: usize = 200;

/// How many lines of a section are shown.
type Lines = fn(&mut Layout) -> &mut usize;

impl Block<'_> {
    /// Cuts parts of `layout` in order until it fits.
    pub(super) fn give_way(&self, layout: &mut Layout) {
        for ids in [Ids::Titled, Ids::TitledRecent, Ids::BareDeep] {
            layout.ids = ids;
            if self.has_room_for(layout) {
                return;
            }
        }
        if self.shorten_older(layout) {
            return;
        }
        // The newest changed files stay until the decisions are gone.
        let files = self.budget / A_FILE;
        let sections: [(Lines, usize); 4] = [
            (|layout| &mut layout.requests, 0),
            (|layout| &mut layout.files, files),
            (|layout| &mut layout.decisions, 0),
            (|layout| &mut layout.files, 0),
        ];
        for (lines, least) in sections {
            let all = *lines(layout);
            let least = least.min(all);
            *lines(layout) = least;
            let with = |n: usize| {
                let mut layout = layout.clone();
                *lines(&mut layout) = least + n;
                layout
            };
            if let Some(most) = largest(all - least, |n| self.has_room_for(&with(n))) {
                *layout = with(most);
                return;
            }
        }
        layout.ids = Ids::Bare;
        if self.has_room_for(layout) {
            return;
        }
        let texts = self.texts().texts;
        let whole = Layout { texts, ..layout.clone() };
        let with = |request: usize, state: usize, constraints: usize| {
            let request = self.request(request);
            let mut layout = Layout { request, state, constraints, ..whole.clone() };
            self.shorten(&mut layout);
            layout
        };
        for (request, state) in [(REQUEST, whole.state), (12, 1), (6, 0)] {
            *layout = with(request, state, whole.constraints);
            if self.has_room_for(layout) {
                return;
            }
        }
        // The newest come first, and the very newest never goes.
        let others = whole.constraints.saturating_sub(1);
        let most = largest(others, |others| self.has_room_for(&with(6, 0, 1 + others)));
        *layout = with(6, 0, whole.constraints.min(1 + most.unwrap_or_default()));
    }

    /// Shows more of a long request under way, as far as there is room.
    pub(super) fn fill(&self, layout: &mut Layout) {
        let is_current = self.title == HISTORY
            && self.standing.request.as_ref().is_some_and(|request| !request.is_answered);
        let with = |share: usize| Layout { request: self.request(share), ..layout.clone() };
        if is_current && let Some(share) = largest(100, |share| self.has_room_for(&with(share))) {
            *layout = with(share);
        }
    }

    /// Cuts all texts except the newest leaf's to the same length, but not below [`EXCERPT`]. Returns whether
    /// everything fits then.
    fn shorten_older(&self, layout: &mut Layout) -> bool {
        let newest = self.newest_leaf();
        let with = |most: usize| self.cut(layout, |at| if Some(at) == newest { usize::MAX } else { most });
        let longest = layout.texts.iter().map(String::len).max().unwrap_or_default();
        let most = largest(longest.saturating_sub(EXCERPT), |more| self.has_room_for(&with(EXCERPT + more)));
        *layout = with(EXCERPT + most.unwrap_or_default());
        most.is_some()
    }

    fn newest_leaf(&self) -> Option<usize> {
        self.frontier.iter().rposition(|shown| shown.stored.depth == 0)
    }

    /// The last resort: truncates texts, which then say where the rest is.
    fn shorten(&self, layout: &mut Layout) {
        let whole = layout.clone();
        let newest = self.newest_leaf();
        let kept = newest.map_or(0, |at| within(&whole.texts[at], self.budget / NEWEST).len());
        // First only the newest leaf, then all others along with it, then the oldest become a range.
        let cut = |most: usize, others: usize| {
            self.cut(&whole, |at| if Some(at) == newest { kept.max(most) } else { others })
        };
        let newest_only = |most: usize| cut(most, usize::MAX);
        let others = |most: usize| cut(most, most);
        let longest =
            whole.texts.iter().map(String::len).chain([whole.focus.len()]).max().unwrap_or_default();
        if let Some(most) = largest(longest, |most| self.has_room_for(&newest_only(most))) {
            *layout = newest_only(most);
        } else if let Some(more) = largest(longest, |more| self.has_room_for(&others(GLIMPSE + more))) {
            *layout = others(GLIMPSE + more);
        } else if self.frontier.len() < 3 {
            *layout = others(0);
        } else {
            let run = |run: usize, most: usize| Layout { run, ..self.cut(&whole, |_| most) };
            let count = self.frontier.len();
            let shown = largest(count - 2, |shown| self.has_room_for(&run(count - shown, GLIMPSE)));
            let first = count - shown.unwrap_or_default();
            *layout =
                run(first, largest(longest, |most| self.has_room_for(&run(first, most))).unwrap_or_default());
        }
    }

    /// `whole` with each text cut to this many bytes.
    fn cut(&self, whole: &Layout, most: impl Fn(usize) -> usize) -> Layout {
        let shorten = |(at, text): (usize, &String)| match text.len() > most(at) {
            true => {
                let kept = text::cut_at_line(text, most(at)).trim_end();
                format!("{kept} … (rest: lcm_expand {})", self.frontier[at].stored.hash.summary_handle())
            }
            false => text.clone(),
        };
        let longest = (0..whole.texts.len()).map(&most).min().unwrap_or_default();
        Layout {
            texts: whole.texts.iter().enumerate().map(shorten).collect(),
            focus: text::cut_at_line(&whole.focus, longest).trim_end().to_owned(),
            ..whole.clone()
        }
    }
}

/// The longest prefix of `text` of at most `most` tokens, ending at a line break if one is near.
pub(super) fn within(text: &str, most: usize) -> &str {
    let cut = |bytes: usize| text::cut_at_line(text, bytes).trim_end();
    cut(largest(text.len(), |bytes| tokens::estimate(cut(bytes)) <= most).unwrap_or_default())
}

/// The largest number up to `most` that fits, provided that all smaller ones fit too; `None` if not even 0
/// does.
pub(super) fn largest(most: usize, fits: impl Fn(usize) -> bool) -> Option<usize> {
    if fits(most) {
        return Some(most);
    }
    let (mut low, mut high) = (fits(0).then_some(0)?, most);
    while low + 1 < high {
        let middle = usize::midpoint(low, high);
        match fits(middle) {
            true => low = middle,
            false => high = middle,
        }
    }
    Some(low)
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, HashSet};

    use super::super::super::standing::UserRequest;
    use super::super::ShownSummary;
    use super::super::Standing;
    use super::super::tests::{block, frontier, standing};
    use super::*;

    /// Budgets from one that is tried to the next.
    const STEP: usize = 25;

    /// A block with content in every section.
    fn full(frontier: &[ShownSummary<'_>], standing: &Standing, budget: usize) -> String {
        Block { focus: Some("Of what was asked: all is well."), ..block(frontier, standing, budget) }.render()
    }

    #[test]
    fn each_part_is_gone_before_the_next_is_cut() {
        let text = "a line about the work that was done\n".repeat(24);
        let newest = text.repeat(2);
        let frontier = frontier(&[(&text, 2), (&text, 1), (&text, 0), (&newest, 0)]);
        let standing = standing(4);
        let stage_at = |budget: usize| {
            let block = full(&frontier, &standing, budget);
            assert!(tokens::estimate(&block) <= budget);
            assert!(block.contains("covers 20 messages, none missing"));
            let count = |what: &str| block.matches(what).count();
            let cut = count("(rest:");
            let stage = match () {
                () if count("messages): ") == 4 => 0,
                () if count("(D") == 4 => 1,
                () if count("(D") == 2 && cut == 0 => 2,
                () if count("write module") == 4 => 3,
                () if count(".rs (m-") == 4 => 4,
                () if count("- We keep") == 4 => 5,
                () if count("(D") == 2 => 6,
                () if count("[s-") == 4 && cut < 4 => 7,
                () => 8,
            };
            assert!(
                stage > 7 || (count("rule: ") == 4 && block.contains("skip blank lines")),
                "{budget}: {block}"
            );
            stage
        };
        // Every budget where the stage changes, otherwise one of many.
        let mut stages = BTreeMap::new();
        let mut before = 0;
        for budget in (600..3_400).rev().step_by(STEP) {
            let stage = stage_at(budget);
            if stage != before {
                stages.extend((budget + 1..budget + STEP).map(|between| (between, stage_at(between))));
            }
            stages.insert(budget, stage);
            before = stage;
        }
        let stages: Vec<(usize, u32)> = stages.into_iter().rev().collect();
        for two in stages.windows(2) {
            assert!(two[0].1 <= two[1].1, "{two:?}");
        }
        assert_eq!(stages.iter().map(|(_, stage)| stage).collect::<HashSet<_>>().len(), 9);
    }

    #[test]
    fn the_users_words_are_the_last_to_go_and_the_newest_the_very_last() {
        let long = "many words about the work that was done here. ".repeat(100);
        let frontier = frontier(&[(long.as_str(), 1), (&long, 0), (&long, 0), (&long, 0)]);
        let rule = |n: usize| format!("- rule: \"number {n} {}\"", "はいつも守ること。".repeat(40));
        let state = vec!["State: the lexer is being written, and its tests too".repeat(4); 8];
        let standing = Standing { state, constraints: (0..30).rev().map(rule).collect(), ..standing(0) };
        for budget in (500..2_000).step_by(50) {
            let text = full(&frontier, &standing, budget);
            let rules: Vec<&str> = text.lines().filter(|line| line.starts_with("- rule")).collect();
            assert!(rules.first().is_some_and(|rule| rule.contains("number 29 ")), "{budget}: {text}");
            assert!(tokens::estimate(&text) <= budget, "{budget}: {text}");
        }
    }

    #[test]
    fn a_request_under_way_has_the_room_that_is_left() {
        let frontier = frontier(&[("Some work", 0)]);
        let shown = |bytes: usize, is_answered: bool| {
            let text = "a wish. ".repeat(bytes / 8);
            let request = UserRequest { handle: "m-0123456789".into(), text, is_answered };
            let standing = Standing { request: Some(request), ..standing(4) };
            let text = block(&frontier, &standing, 4_000).render();
            assert!(tokens::estimate(&text) <= 4_000, "{text}");
            text.matches("a wish. ").count() * 8
        };
        assert_eq!(shown(8_000, false), 8_000);
        assert!((9_000..16_000).contains(&shown(60_000, false)));
        assert!(shown(8_000, true) < 5_400, "an answered request takes no more than its share");
    }

    #[test]
    fn the_newest_leaf_keeps_a_quarter_of_the_budget_when_others_are_truncated() {
        let long = "many words about the work that was done here. ".repeat(200);
        let frontier = frontier(&[(long.as_str(), 0); 6]);
        let text = block(&frontier, &Standing::default(), 2_000).render();
        let newest = text.split(&format!("[{}] ", frontier[5].stored.hash.summary_handle())).nth(1).unwrap();
        let newest = tokens::estimate(newest.split(" … (rest:").next().unwrap());
        assert!((480..=520).contains(&newest), "{newest}");
    }

    #[test]
    fn hundreds_of_summaries_fit_any_budget_with_the_oldest_as_one_range() {
        let messages = |summaries: usize| text::count(summaries * 5, "message");
        for (count, budget) in [(90, 500), (90, 1_000), (300, 4_000), (3, 500), (2, 500), (1, 500)] {
            let long = "many words about the work that was done here. ".repeat(100);
            let texts: Vec<(&str, u32)> =
                (0..count).map(|n| (long.as_str(), u32::from(n < count / 2))).collect();
            let frontier = frontier(&texts);
            let text = full(&frontier, &standing(count), budget);
            assert!(tokens::estimate(&text) <= budget, "{count} in {budget}: {text}");
            assert!(text.contains(&format!("covers {}, none missing", messages(count))));
            let (_, ids) = text.split_once("### Summary IDs for Drill-Down\n").unwrap();
            let lines: Vec<&str> = ids.lines().collect();
            let (run, shown) = match lines[0].contains("in a row") {
                true => (count - (lines.len() - 1), &lines[1..]),
                false => (0, &lines[..]),
            };
            let newest: Vec<String> = frontier[run..]
                .iter()
                .map(|shown| format!("- {}", shown.stored.hash.summary_handle()))
                .collect();
            assert_eq!(shown, newest);
            if run > 0 {
                let [first, last] = [0, run - 1].map(|at| frontier[at].stored.hash.summary_handle());
                let start = format!("- {first} … {last} ({run} summaries in a row, {}", messages(run));
                assert!(lines[0].starts_with(&start), "{}", lines[0]);
            }
            assert_eq!(run > 0, count > 2, "{count} in {budget}");
        }
    }
}
