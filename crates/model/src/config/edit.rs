//! Sets or removes one value in the text of a settings file, which is then laid out as Pi does.

use serde_json::{Value, json};

/// `text` with `value` below `lcm` under one of `names`: the last one that is there, or the first. Without a
/// value, all of the names are removed.
///
/// # Errors
/// What the text is instead of an object with settings, in words.
pub(super) fn edited(text: &str, names: &[&str], value: Option<&Value>) -> Result<String, String> {
    let no_object = || "not an object, or its lcm is not one".to_owned();
    let mut all = match text.trim_start_matches('\u{feff}').trim() {
        "" => json!({}),
        json => serde_json::from_str(json).map_err(|error| format!("no JSON ({error})"))?,
    };
    let top = all.as_object_mut().ok_or_else(no_object)?;
    if value.is_none() && !top.contains_key("lcm") {
        return Ok(text.to_owned());
    }
    let lcm = top.entry("lcm").or_insert_with(|| json!({})).as_object_mut().ok_or_else(no_object)?;
    match value {
        Some(value) => {
            let known = lcm.keys().rfind(|key| names.contains(&key.as_str())).cloned();
            lcm.insert(known.unwrap_or_else(|| names[0].to_owned()), value.clone());
        }
        None => {
            let before = lcm.len();
            lcm.retain(|key, _| !names.contains(&key.as_str()));
            if lcm.len() == before {
                return Ok(text.to_owned());
            }
        }
    }
    Ok(format!("{all:#}\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: &[&str] = &["maxDepth", "max"];

    #[test]
    fn only_the_one_value_changes() {
        let own = "{\n  \"lcm\": {\n    \"maxDepth\": 3\n  }\n}\n";
        let cases = [
            ("", own),
            ("{}", own),
            ("{\"lcm\":{\"maxDepth\" : 2}}", own),
            ("{\"lcm\":{\"max\" : 2}}", "{\n  \"lcm\": {\n    \"max\": 3\n  }\n}\n"),
            (
                "\u{feff}{\r\n\t\"theme\":   \"dark\",\n\"n\": 0.10, \"lcm\": {\"a\": {}, \"z\": [1]}}",
                "{\n  \"theme\": \"dark\",\n  \"n\": 0.10,\n  \"lcm\": {\n    \"a\": {},\n    \"z\": [\n      1\n    ],\n    \"maxDepth\": 3\n  }\n}\n",
            ),
        ];
        for (before, after) in cases {
            assert_eq!(edited(before, NAMES, Some(&3.into())).unwrap(), after, "{before}");
        }
    }

    #[test]
    fn a_value_is_removed_under_all_its_names() {
        for (before, after) in [
            ("{}", "{}"),
            ("{\"lcm\": {\"b\": 1}}", "{\"lcm\": {\"b\": 1}}"),
            ("{\"lcm\": {\"maxDepth\": 2}, \"a\": 1}", "{\n  \"lcm\": {},\n  \"a\": 1\n}\n"),
            (
                "{\"lcm\": {\"b\": \"x,\", \"max\": 2, \"maxDepth\": 1}}",
                "{\n  \"lcm\": {\n    \"b\": \"x,\"\n  }\n}\n",
            ),
        ] {
            assert_eq!(edited(before, NAMES, None).unwrap(), after, "{before}");
        }
    }

    #[test]
    fn invalid_files_are_refused() {
        assert!(edited("{\"lcm\": ", NAMES, Some(&3.into())).unwrap_err().starts_with("no JSON ("));
        for odd in ["[1]", "{\"lcm\": true}"] {
            let why = edited(odd, NAMES, Some(&3.into())).unwrap_err();
            assert_eq!(why, "not an object, or its lcm is not one");
        }
    }
}
