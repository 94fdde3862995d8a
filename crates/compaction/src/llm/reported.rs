//! Holds what a provider reports against the request: a report that the request cannot have used is ignored, and a
//! prompt that the server has cut was not answered.

use super::{Answer, Failure, ModelRequest, reporting, usage};
use lcm_model::policy::float;
use lcm_model::text::grouped;
use lcm_model::{MOST_REPORTED, Usage, tokens};

/// Providers add tokens of their own: templates, tools of a proxy.
const ADDED: usize = 100_000;
/// Estimates are within a tenth of most tokenizers: a prompt that took less than this share was cut.
const CUT: f64 = 0.6;
/// Neither less was asked, nor less read, where a window cuts.
const LEAST: usize = 500;

/// The answer as it may count, and what the user must know about the server.
pub(super) fn checked(answer: Answer, request: &ModelRequest, model: &str) -> (Answer, Option<String>) {
    let used = usage(&answer).map(Usage::of).unwrap_or_default();
    // Within the session, the prompt has the whole conversation besides.
    let is_alone = request.in_session.is_none();
    let most = if is_alone {
        request.system.len() + request.prompt.len() + request.max_tokens + ADDED
    } else {
        MOST_REPORTED
    };
    if usage(&answer).is_some() && (used.tokens() > most || (used.tokens() == 0 && is_absurd(&answer))) {
        let notice = format!(
            "{model} reports more tokens for a question than it can have used ({} at most), so its reports are left out where they cannot be true",
            grouped(most)
        );
        return (reporting(answer, None), Some(notice));
    }
    let estimated = tokens::estimate(&request.system) + tokens::estimate(&request.prompt);
    let read = used.prompt();
    if is_alone && answer.is_ok() && read >= LEAST && float(read) < CUT * float(estimated) {
        let notice = format!(
            "the server of {model} read only {} of about {} tokens of a question, so it cut off the rest, and its answers are of no use. Give the model more room on the server (Ollama: `num_ctx`; llama.cpp: `--ctx-size`), or lower its `contextWindow` in Pi's models.json to what the server takes",
            grouped(read),
            grouped(estimated)
        );
        let failure =
            Failure { usage: usage(&answer).cloned(), ..Failure::useless("the server cut the prompt") };
        return (Err(failure), Some(notice));
    }
    (answer, None)
}

/// Whether a report says more than any request uses.
fn is_absurd(answer: &Answer) -> bool {
    let Some(report) = usage(answer).and_then(|report| report.as_object()) else { return false };
    report.values().any(|count| count.as_f64().is_some_and(|count| count > float(MOST_REPORTED)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::llm::{InSession, Reply};

    /// What is left of an answer to about 10,000 tokens with this report, and whether the user learns of it.
    fn left(usage: &Value, in_session: Option<InSession>) -> (Result<Option<Value>, String>, bool) {
        let prompt = "some words of a prompt ".repeat(2_000);
        let (system, max_tokens, timeout_ms) = (String::new(), 500, 0);
        let request =
            ModelRequest { system, prompt, max_tokens, reasoning: None, timeout_ms, by: None, in_session };
        let answer = Ok(Reply { text: "t".into(), model: None, usage: Some(usage.clone()) });
        let (answer, notice) = checked(answer, &request, "p/m");
        (answer.map(|reply| reply.usage).map_err(|failure| failure.reason), notice.is_some())
    }

    #[test]
    fn only_what_the_request_can_have_used_is_kept() {
        for sane in [json!({"input": 10_000}), json!({"input": 140_000}), json!({}), json!({"input": "many"})]
        {
            assert_eq!(left(&sane, None), (Ok(Some(sane.clone())), false));
        }
        for absurd in [
            json!({"input": 1_000_000}),
            json!({"output": 1e18}),
            json!({"cacheRead": u64::MAX}),
            json!({"totalTokens": 10_000_000_000_u64}),
        ] {
            assert_eq!(left(&absurd, None), (Ok(None), true), "{absurd}");
        }
    }

    #[test]
    fn a_prompt_that_was_cut_is_not_answered() {
        let cut = (Err("the server cut the prompt".to_owned()), true);
        for read in [json!({"input": 2_048}), json!({"input": 1_000, "cacheRead": 1_048})] {
            assert_eq!(left(&read, None), cut);
        }
        // A count of a few tokens is no window's; within the session, the prompt is another.
        let few = json!({"input": 10});
        assert_eq!(left(&few, None), (Ok(Some(few.clone())), false));
        let [prompt, first, last, mark] = std::array::from_fn(|_| String::new());
        let in_session = InSession { prompt, first, last, effort: None, mark };
        let read = json!({"input": 2_048});
        assert_eq!(left(&read, Some(in_session)), (Ok(Some(read.clone())), false));
    }
}
