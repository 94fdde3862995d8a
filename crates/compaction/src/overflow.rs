//! Handles a request that the provider rejected as too long: reads the window's size from the error message,
//! and computes how much may stay raw.
//!
//! Pi retries once. For that retry to succeed, this leaves room for errors of the estimate and for the
//! answer.

use super::branch::Branch;
use super::passes::tokens_of;
use lcm_model::{Pattern, pattern};

/// The part of the window to use, in percent; the rest is for the answer and for errors of the estimate.
const USED: usize = 80;
/// The size of the next request, in percent of the one that was too long, if the limit is unknown.
const SHRUNK: usize = 60;
/// A provider counts at most this many times our estimate.
const MOST_TIMES: usize = 4;

/// How providers word their limit.
static LIMITS: [Pattern; 5] = [
    pattern!(r"(?i)maximum [a-z ]{0,24}(?:length|size|allowed)\D{0,16}?([\d,_]{3,})"),
    pattern!(
        r"(?i)(?:context length|context size|context window|token limit|the limit)\D{0,16}?([\d,_]{3,})"
    ),
    pattern!(r"(?i)> ([\d,_]{3,}) maximum"),
    pattern!(r"(?i)model with ([\d,_]{3,}) maximum"),
    pattern!(r"(?i)input length should be \[\d+, ?([\d,_]{3,})\]"),
];
/// The tokens reserved for the answer, if the limit includes them.
static ANSWERS: Pattern = pattern!(r"(?i)([\d,_]+) (?:tokens )?in (?:the|your) completion");
static NUMBERS: Pattern = pattern!(r"\d[\d,_]*");

/// What a provider said about a request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct ReportedLimit {
    /// The tokens it accepts, without those for the answer.
    pub(super) limit: Option<usize>,
    /// The tokens of the request.
    pub(super) asked: Option<usize>,
}

/// A request that was too long. All numbers are tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct TooLong {
    pub said: ReportedLimit,
    /// Messages of the context, by our estimate.
    pub context: usize,
    /// Where Pi compacts automatically, or cuts answers short.
    pub threshold: Option<usize>,
    /// System prompt and tools.
    pub prompt: usize,
}

impl ReportedLimit {
    /// Parses a provider's error message.
    pub(super) fn of(words: &str) -> Self {
        let first = |pattern: &Pattern| number(pattern.captures(words).next()?.get(1)?.as_str());
        let limit = LIMITS.iter().find_map(first);
        let Some(limit) = limit else { return Self::default() };
        let numbers = NUMBERS.found(words).filter_map(|found| number(found.as_str()));
        let largest = numbers.max().filter(|largest| *largest > limit);
        let answer = first(&ANSWERS).unwrap_or_default();
        Self {
            limit: Some(limit.saturating_sub(answer).max(1)),
            asked: largest.map(|asked| asked.saturating_sub(answer)),
        }
    }

    /// The window in tokens, if it is smaller than assumed.
    pub(super) fn window(self, known: Option<usize>) -> Option<usize> {
        [self.limit, known].into_iter().flatten().min()
    }
}

impl TooLong {
    /// The estimated tokens that may stay raw along with a block of `block`; `estimated` converts real tokens
    /// to estimated ones.
    pub(super) fn room(self, block: usize, estimated: impl Fn(usize) -> usize) -> usize {
        let ReportedLimit { limit, asked } = self.said;
        let threshold = self.threshold.unwrap_or(usize::MAX);
        let prompt = self.prompt;
        let sent = self.context + prompt;
        let most = match limit {
            Some(limit) => {
                let most = (limit.saturating_mul(USED) / 100).min(threshold);
                // The provider counts more than we do, and will again.
                let asked = asked.unwrap_or_default().clamp(1, sent.saturating_mul(MOST_TIMES).max(1));
                estimated(most).min(most.saturating_mul(sent) / asked)
            }
            None => estimated(threshold).min(sent.saturating_mul(SHRUNK) / 100),
        };
        most.saturating_sub(prompt.saturating_add(block))
    }
}

/// The first message that may start a raw part of at most `room` tokens, not before Pi's own cut; `None` if
/// nothing may stay.
pub(super) fn fitting(branch: &Branch, room: usize) -> Option<usize> {
    let visible = branch.visible();
    let mut starts = (branch.before().len()..visible.len()).filter(|at| visible[*at].can_begin());
    starts.find(|at| tokens_of(&visible[*at..]) <= room)
}

fn number(text: &str) -> Option<usize> {
    text.replace([',', '_'], "").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn providers_error_messages_are_parsed() {
        let cases = [
            ("prompt is too long: 213462 tokens > 200000 maximum", Some(200_000), Some(213_462)),
            ("This model's maximum context length is 8192 tokens.", Some(8_192), None),
            (
                "This model's maximum context length is 131072 tokens. However, you requested 131999 tokens (130975 in the \
                 messages, 1024 in the completion).",
                Some(130_048),
                Some(130_975),
            ),
            (
                "Requested token count exceeds the model's maximum context length of 131,072 tokens",
                Some(131_072),
                None,
            ),
            (
                "Input length (265330) exceeds model's maximum context length (262144).",
                Some(262_144),
                Some(265_330),
            ),
            (
                "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575)",
                Some(1_048_575),
                Some(1_196_265),
            ),
            (
                "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
                Some(131_072),
                Some(537_812),
            ),
            (
                "The input (9000 tokens) is longer than the model's context length (8192 tokens).",
                Some(8_192),
                Some(9_000),
            ),
            ("prompt token count of 130000 exceeds the limit of 128000", Some(128_000), Some(130_000)),
            (
                "Your request exceeded model token limit: 262144 (requested: 300000)",
                Some(262_144),
                Some(300_000),
            ),
            (
                "Prompt has 70,000 tokens, but the configured context size is 65,536 tokens",
                Some(65_536),
                Some(70_000),
            ),
            (
                "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
                Some(32_768),
                Some(40_000),
            ),
            ("Range of input length should be [1, 129024]", Some(129_024), None),
            ("Your input exceeds the context window of this model", None, None),
            ("400 status code (no body)", None, None),
        ];
        for (words, limit, asked) in cases {
            assert_eq!(ReportedLimit::of(words), ReportedLimit { limit, asked }, "{words}");
        }
    }

    #[test]
    fn the_raw_part_follows_from_the_limit_or_the_rejected_size() {
        let too_long = |words: &str, context| TooLong {
            said: ReportedLimit::of(words),
            context,
            threshold: Some(180_000),
            prompt: 1_000,
        };
        let same = |real| real;
        let limited = too_long("maximum context length is 10000 tokens", 11_000);
        assert_eq!(limited.room(1_000, same), 6_000);
        // If the provider counts twice as much as we do, half of it.
        let twice =
            too_long("maximum context length is 10000 tokens. However, you requested 24000 tokens", 11_000);
        assert_eq!(twice.room(1_000, same), 2_000);
        assert_eq!(twice.room(1_000, |real| real / 2), 2_000);
        assert_eq!(too_long("too long", 99_000).room(1_000, same), 58_000);
        assert_eq!(too_long("maximum context length is 1000 tokens", 2_000).room(1_000, same), 0);
    }
}
