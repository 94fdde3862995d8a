//! How much a model thinks before it writes a summary: not at all, or as little as it can.
//!
//! Thinking counts as output and has the same limit. A model that can't be asked without it gets its lowest
//! level, because the default is a high one, and room on top of the answer's. Pi's description of a model does
//! not always say so: what a model's answers show is remembered.

use serde_json::Value;

use super::{Answer, Failure, InSession, Kind, ModelFacts, ModelRequest, thought, usage};

/// Pi's levels above `off`, with the most tokens that thinking may take.
const LEVELS: [(&str, usize); 6] = [
    ("minimal", 8_192),
    ("low", 8_192),
    ("medium", 16_384),
    ("high", 32_768),
    ("xhigh", 32_768),
    ("max", 32_768),
];

/// If that is not enough, this many times as much.
const MORE: usize = 4;

/// What a provider complains about if a model can't be asked without thinking.
const COMPLAINTS: [&str; 3] = ["thinking", "reasoning", "effort"];

/// How a model is asked, from less thinking to more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thinking {
    #[default]
    Off,
    Lowest,
    /// The same, with more room.
    Roomy,
}

impl Thinking {
    /// By the model's description.
    pub fn of(model: &ModelFacts) -> Self {
        let always = model.reasoning && model.thinking_levels.get("off") == Some(&Value::Null);
        if always { Self::Lowest } else { Self::Off }
    }

    /// Asks for it in `request`.
    pub fn set(self, model: &ModelFacts, request: &mut ModelRequest) {
        let (level, room) = lowest(model);
        request.max_tokens += match self {
            Self::Off if can_say_off(model) => 0,
            Self::Off | Self::Lowest => room,
            Self::Roomy => room * MORE,
        };
        request.reasoning = Some(level).filter(|_| self > Self::Off && model.reasoning);
        // The provider's name for it.
        let name =
            |level| model.thinking_levels.get(level).and_then(Value::as_str).unwrap_or(level).to_owned();
        let effort = request.reasoning.map(name);
        request.in_session = request.in_session.take().map(|question| InSession { effort, ..question });
    }

    /// What the model needs, as its answer shows.
    pub fn after(self, answer: &Answer) -> Self {
        let needed = match answer {
            Err(Failure { was_thinking: true, .. }) if self == Self::Off => Self::Lowest,
            Err(Failure { was_thinking: true, .. }) => Self::Roomy,
            Err(failure) if failure.kind == Kind::Rejected && is_about_thinking(&failure.reason) => {
                Self::Lowest
            }
            answer if usage(answer).is_some_and(thought) => Self::Lowest,
            _ => Self::Off,
        };
        self.max(needed)
    }
}

/// The model's lowest level that is certain to exist, and its room. Pi also offers `minimal` to models that do
/// not name it, but most providers refuse it.
fn lowest(model: &ModelFacts) -> (&'static str, usize) {
    let exists = |level: &str| match model.thinking_levels.get(level) {
        Some(name) => name.is_string(),
        None => matches!(level, "low" | "medium" | "high"),
    };
    LEVELS.into_iter().find(|(level, _)| exists(level)).unwrap_or(LEVELS[1])
}

/// Whether Pi can ask the model not to think. In OpenAI's format there is no word for it unless the
/// description has one, and a local server then has the model think as usual.
fn can_say_off(model: &ModelFacts) -> bool {
    let format = model.compat.get("thinkingFormat").and_then(Value::as_str).unwrap_or("openai");
    let is_unsaid = model.api == "openai-completions" && format == "openai";
    !model.reasoning || !is_unsaid || model.thinking_levels.get("off").is_some_and(Value::is_string)
}

fn is_about_thinking(reason: &str) -> bool {
    let reason = reason.to_lowercase();
    COMPLAINTS.iter().any(|word| reason.contains(word))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::llm::Reply;

    fn model(api: &str, levels: &Value) -> ModelFacts {
        serde_json::from_value(json!({"api": api, "reasoning": true, "thinkingLevelMap": levels})).unwrap()
    }

    /// The level, the provider's name for it, and the room.
    fn asked(thinking: Thinking, model: &ModelFacts) -> (Option<&'static str>, Option<String>, usize) {
        let (prompt, first, last, mark) = Default::default();
        let in_session = Some(InSession { prompt, first, last, effort: None, mark });
        let (system, prompt) = Default::default();
        let mut request = ModelRequest {
            system,
            prompt,
            max_tokens: 1,
            reasoning: None,
            timeout_ms: 1,
            by: None,
            in_session,
        };
        thinking.set(model, &mut request);
        (request.reasoning, request.in_session.unwrap().effort, request.max_tokens - 1)
    }

    #[test]
    fn a_model_that_always_thinks_gets_its_lowest_level() {
        let cases = [
            // Claude Opus 5.5, Fable, Codex, GPT-5.5 pro, DeepSeek, one level only.
            (json!({"off": null, "minimal": null, "low": "low", "medium": "medium"}), "low", "low", 8_192),
            (json!({"off": null, "xhigh": "xhigh", "max": "max"}), "low", "low", 8_192),
            (json!({"off": null, "minimal": "low", "low": "low"}), "minimal", "low", 8_192),
            (json!({"off": null, "minimal": null, "low": null}), "medium", "medium", 16_384),
            (json!({"off": null, "minimal": null, "low": null, "medium": null}), "high", "high", 32_768),
            (
                json!({"off": null, "minimal": null, "low": null, "medium": null, "high": null, "max": "most"}),
                "max",
                "most",
                32_768,
            ),
        ];
        for (levels, level, effort, room) in cases {
            let model = model("openai-responses", &levels);
            assert_eq!(Thinking::of(&model), Thinking::Lowest, "{levels}");
            let effort = Some(effort.to_owned());
            assert_eq!(asked(Thinking::Lowest, &model), (Some(level), effort.clone(), room), "{levels}");
            assert_eq!(asked(Thinking::Roomy, &model), (Some(level), effort, room * 4), "{levels}");
        }
    }

    #[test]
    fn a_model_that_need_not_think_is_asked_without() {
        for (api, levels, room) in [
            ("anthropic-messages", json!({}), 0),
            ("openai-responses", json!({"minimal": null}), 0),
            ("openai-completions", json!({"off": "none"}), 0),
            // It may think, because nothing says that it must not.
            ("openai-completions", json!({}), 8_192),
        ] {
            let model = model(api, &levels);
            assert_eq!(asked(Thinking::of(&model), &model), (None, None, room), "{api}");
        }
        let plain = ModelFacts { api: "openai-completions".into(), ..ModelFacts::default() };
        assert_eq!(asked(Thinking::of(&plain), &plain), (None, None, 0));
        // Not described as one that thinks, but it does.
        assert_eq!(asked(Thinking::Lowest, &plain), (None, None, 8_192));
    }

    #[test]
    fn answers_show_how_much_it_must_think() {
        let rejected = |reason: &str| Err(Failure::said(reason));
        let cut = Failure { was_thinking: true, ..Failure::useless("") };
        let reply = |reasoning| {
            let usage = Some(json!({"reasoning": reasoning}));
            Ok(Reply { text: String::new(), model: None, usage })
        };
        let cases = [
            (
                rejected(
                    r#"400 {"error": {"message": "\"thinking.type.disabled\" is not supported for this model."}}"#,
                ),
                Thinking::Lowest,
            ),
            (rejected("400: 'reasoning.effort' does not support 'none' with this model."), Thinking::Lowest),
            (rejected("400: no such model"), Thinking::Off),
            (rejected("503: it is thinking"), Thinking::Off),
            (Err(cut.clone()), Thinking::Lowest),
            (Err(Failure::useless("the answer was cut off")), Thinking::Off),
            (reply(7), Thinking::Lowest),
            (reply(0), Thinking::Off),
        ];
        for (answer, needed) in cases {
            assert_eq!(Thinking::Off.after(&answer), needed, "{answer:?}");
            assert_eq!(Thinking::Roomy.after(&answer), Thinking::Roomy);
        }
        assert_eq!(Thinking::Lowest.after(&Err(cut)), Thinking::Roomy);
    }
}
