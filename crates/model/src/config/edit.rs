//! Sets or removes one value in the text of a JSON file and keeps the rest as written.

use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstObjectProp, CstRootNode};
use serde_json::Value;

/// Why a file can't be edited.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is not valid JSON; the reason.
    Broken(String),
    /// It is not an object, or its `lcm` is not one.
    NoObject,
}

/// `text` with `value` under one of `names` below `lcm`: the last existing one, or the first name. Without a
/// value, all of the names are removed.
pub(super) fn edited(text: &str, names: &[&str], value: Option<&Value>) -> Result<String, Refusal> {
    let json = text.trim_start_matches('\u{feff}');
    let mark = &text[..text.len() - json.len()];
    let json = if json.trim().is_empty() { "{}\n" } else { json };
    // This parser comes first because it accepts no more than Pi, reports the position and bounds the depth.
    serde_json::from_str::<&serde_json::value::RawValue>(json)
        .map_err(|error| Refusal::Broken(error.to_string()))?;
    let root = CstRootNode::parse(json, &ParseOptions::default())
        .map_err(|error| Refusal::Broken(error.to_string()))?;
    let top = root.object_value().ok_or(Refusal::NoObject)?;
    // The last of several counts.
    let lcm = match top.properties().into_iter().rfind(|member| name_of(member) == "lcm") {
        Some(member) => member.object_value().ok_or(Refusal::NoObject)?,
        None if value.is_none() => return Ok(text.to_owned()),
        None => top.object_value_or_set("lcm"),
    };
    let is_named = |member: &CstObjectProp| names.contains(&name_of(member).as_str());
    let there: Vec<CstObjectProp> = lcm.properties().into_iter().filter(is_named).collect();
    match (value, there.last()) {
        (Some(value), Some(last)) => last.set_value(input(value)),
        (Some(value), None) => drop(lcm.append(names[0], input(value))),
        (None, _) => there.into_iter().for_each(CstObjectProp::remove),
    }
    Ok(format!("{mark}{root}"))
}

fn name_of(member: &CstObjectProp) -> String {
    member.decoded_name().unwrap_or_default()
}

/// A setting's value in the editor's type.
fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Bool(on) => (*on).into(),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => text.as_str().into(),
        Value::Array(values) => values.iter().map(input).collect::<Vec<_>>().into(),
        Value::Null | Value::Object(_) => CstInputValue::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["maxDepth", "max"];

    #[test]
    fn only_the_one_value_changes() {
        let cases = [
            ("", "{\n  \"lcm\": {\n    \"maxDepth\": 3\n  }\n}\n"),
            ("{}", "{\n  \"lcm\": {\n    \"maxDepth\": 3\n  }\n}"),
            (
                "{\n\t\"theme\":   \"dark\",\n\t\"n\": 1e400\n}\n",
                "{\n\t\"theme\":   \"dark\",\n\t\"n\": 1e400,\n\t\"lcm\": {\n\t\t\"maxDepth\": 3\n\t}\n}\n",
            ),
            ("{\"lcm\":{\"maxDepth\" : 2}}", "{\"lcm\":{\"maxDepth\" : 3}}"),
            ("{\"lcm\":{\"max\" : 2}}", "{\"lcm\":{\"max\" : 3}}"),
            (
                "{\"lcm\": {\"status\": true}}",
                "{\"lcm\": {\n    \"status\": true,\n    \"maxDepth\": 3\n  }}",
            ),
            ("{\"lcm\": 1, \"lcm\": {\"max\": 2}}", "{\"lcm\": 1, \"lcm\": {\"max\": 3}}"),
            (
                "\u{feff}{\r\n    \"lcm\": {\r\n        \"a\": {}\r\n    },\r\n    \"z\": 0\r\n}",
                "\u{feff}{\r\n    \"lcm\": {\r\n        \"a\": {},\r\n        \"maxDepth\": 3\r\n    },\r\n    \"z\": 0\r\n}",
            ),
            ("{\n  \"lcm\": {}\n}", "{\n  \"lcm\": {\n    \"maxDepth\": 3\n  }\n}"),
        ];
        for (before, after) in cases {
            assert_eq!(edited(before, NAMES, Some(&3.into())).unwrap(), after, "{before}");
        }
    }

    #[test]
    fn a_value_is_removed_under_all_its_names() {
        let cases = [
            ("{}", "{}"),
            ("{\"lcm\": {\"maxDepth\": 2}, \"a\": 1}", "{\"lcm\": {}, \"a\": 1}"),
            ("{\"lcm\": {\n  \"maxDepth\": 2,\n  \"b\": 1\n}}", "{\"lcm\": {\n  \"b\": 1\n}}"),
            ("{\"lcm\": {\"b\": \"x,\", \"max\": 2, \"maxDepth\": 1}}", "{\"lcm\": {\"b\": \"x,\"}}"),
        ];
        for (before, after) in cases {
            assert_eq!(edited(before, NAMES, None).unwrap(), after, "{before}");
        }
    }

    #[test]
    fn invalid_files_are_refused() {
        assert!(matches!(edited("{\"lcm\": ", NAMES, Some(&3.into())), Err(Refusal::Broken(_))));
        assert_eq!(edited("[1]", NAMES, Some(&3.into())), Err(Refusal::NoObject));
        assert_eq!(edited("{\"lcm\": true}", NAMES, Some(&3.into())), Err(Refusal::NoObject));
    }
}
