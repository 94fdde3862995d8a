//! How full a context is: a threshold for each model, as a share of its window or in tokens.

use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Number, Value};

use super::Share;

/// All models that are not named.
const OTHERS: &str = "*";
const OFF: &str = "off";

/// A threshold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Level {
    /// There is none.
    #[default]
    Off,
    /// A share of the model's window, above 0.
    Share(Share),
    /// So many tokens, above 1.
    Tokens(usize),
    /// Another one for each model, by `provider/id`; `*` is for all others, which without it have none. None of them is such a
    /// list itself.
    ByModel(BTreeMap<String, Self>),
}

impl Level {
    /// From the JSON that a setting may be.
    pub(super) fn read(value: &Value) -> Option<Self> {
        let Value::Object(levels) = value else { return Self::one(value) };
        let by_model = levels.iter().map(|(name, level)| {
            let is_model =
                name == OTHERS || name.split_once('/').is_some_and(|(a, b)| !a.is_empty() && !b.is_empty());
            is_model.then_some(())?;
            Some((name.clone(), Self::one(level)?))
        });
        by_model.collect::<Option<_>>().map(Self::ByModel)
    }

    fn one(value: &Value) -> Option<Self> {
        match value {
            Value::Bool(false) => Some(Self::Off),
            Value::String(text) if text.eq_ignore_ascii_case(OFF) => Some(Self::Off),
            Value::Number(number) => Self::of_number(number),
            _ => None,
        }
    }

    fn of_number(number: &Number) -> Option<Self> {
        match number.as_u64() {
            Some(tokens) if tokens > 1 => usize::try_from(tokens).ok().map(Self::Tokens),
            _ => Share::new(number.as_f64()?).filter(|share| *share != Share::default()).map(Self::Share),
        }
    }

    /// The tokens at which it lies for `model`, as `provider/id`, whose window holds `window` tokens; none where it is off.
    #[must_use]
    pub fn tokens(&self, model: Option<&str>, window: usize) -> Option<usize> {
        match self {
            Self::Off => None,
            Self::Share(share) => Some(share.of(window)),
            Self::Tokens(tokens) => Some(*tokens),
            Self::ByModel(levels) => {
                let own = model.and_then(|model| levels.get(model));
                own.or_else(|| levels.get(OTHERS))?.tokens(model, window)
            }
        }
    }
}

impl Serialize for Level {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Off => serializer.serialize_str(OFF),
            Self::Share(share) => share.serialize(serializer),
            Self::Tokens(tokens) => tokens.serialize(serializer),
            Self::ByModel(levels) => levels.serialize(serializer),
        }
    }
}

impl<'de> Deserialize<'de> for Level {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let value = Value::deserialize(deserializer)?;
        Self::read(&value)
            .ok_or_else(|| serde::de::Error::custom("a level is off, a share or a number of tokens"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn level(value: &Value) -> Level {
        Level::read(value).unwrap()
    }

    #[test]
    fn a_level_is_off_a_share_of_the_window_or_tokens() {
        let cases = [
            (json!("off"), None),
            (json!("OFF"), None),
            (json!(false), None),
            (json!(0.7), Some(140_000)),
            (json!(1), Some(200_000)),
            (json!(1.0), Some(200_000)),
            (json!(2), Some(2)),
            (json!(90_000), Some(90_000)),
        ];
        for (value, expected) in cases {
            assert_eq!(level(&value).tokens(Some("a/b"), 200_000), expected, "{value}");
        }
        for wrong in [
            json!(0),
            json!(-1),
            json!(1.5),
            json!(0.000_1),
            json!(true),
            json!("half"),
            json!(null),
            json!([0.5]),
        ] {
            assert_eq!(Level::read(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn each_model_may_have_its_own() {
        let by_model = level(&json!({"a/b/c": 0.5, "d/e": "off", "*": 50_000}));
        let tokens = |model| by_model.tokens(model, 100_000);
        assert_eq!(tokens(Some("a/b/c")), Some(50_000));
        assert_eq!(
            (tokens(Some("d/e")), tokens(Some("x/y")), tokens(None)),
            (None, Some(50_000), Some(50_000))
        );
        assert_eq!(level(&json!({"a/b": 0.5})).tokens(Some("x/y"), 100_000), None);
        for wrong in [json!({"model": 0.5}), json!({"a/b": {"*": 0.5}}), json!({"a/b": 0})] {
            assert_eq!(Level::read(&wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_level_is_written_as_it_is_read() {
        for value in [json!("off"), json!(0.7), json!(90_000), json!({"*": "off", "a/b": 0.5, "c/d": 2})] {
            assert_eq!(serde_json::to_value(level(&value)).unwrap(), value);
            assert_eq!(serde_json::from_value::<Level>(value.clone()).unwrap(), level(&value));
        }
    }
}
