//! One value in the text of a JSON file, set or taken out; everything else stays as it was written, to the last blank.

use std::collections::BTreeMap;
use std::ops::Range;

use serde_json::value::RawValue;

/// An object in a text: where it stands, and its members in the order in which they stand.
struct Object<'t> {
    text: &'t str,
    /// With its braces.
    range: Range<usize>,
    members: Vec<Member>,
}

struct Member {
    name: String,
    /// Of its value.
    value: Range<usize>,
}

/// How the text is laid out.
struct Layout {
    line: &'static str,
    step: String,
}

/// What can't be edited.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// It is no JSON; why.
    Broken(String),
    /// It is no object, or its `lcm` is none.
    NoObject,
}

/// `text` with `value`, as JSON, under one of `names` below `lcm`: the one that stands there already, or the first. Without a
/// value none of the names is left.
pub(super) fn edited(text: &str, names: &[&str], value: Option<&str>) -> Result<String, Refusal> {
    let start = if text.starts_with('\u{feff}') { '\u{feff}'.len_utf8() } else { 0 };
    let whole =
        if text[start..].trim().is_empty() { format!("{}{{}}\n", &text[..start]) } else { text.to_owned() };
    let layout = Layout::of(&whole);
    let top = Object::at(&whole, start..whole.len())?;
    let Some(member) = top.members.iter().find(|member| member.name == "lcm") else {
        let Some(value) = value else { return Ok(text.to_owned()) };
        let (line, step) = (layout.line, &layout.step);
        let lcm = format!("{{{line}{step}{step}\"{}\": {value}{line}{step}}}", names[0]);
        return Ok(top.with("lcm", &lcm, &layout, ""));
    };
    let lcm = Object::at(&whole, member.value.clone())?;
    let there: Vec<&Member> =
        lcm.members.iter().filter(|member| names.contains(&member.name.as_str())).collect();
    match (value, there.as_slice()) {
        (Some(value), [.., last]) => Ok(replaced(&whole, last.value.clone(), value)),
        (Some(value), []) => Ok(lcm.with(names[0], value, &layout, &layout.step)),
        (None, []) => Ok(text.to_owned()),
        (None, [first, ..]) => {
            let rest = lcm.without(&first.name);
            // A setting may stand there under both of its names.
            edited(&rest, names, None)
        }
    }
}

impl<'t> Object<'t> {
    fn at(text: &'t str, range: Range<usize>) -> Result<Self, Refusal> {
        let members: BTreeMap<String, &RawValue> = match serde_json::from_str(&text[range.clone()]) {
            Ok(members) => members,
            Err(error) if error.is_data() => return Err(Refusal::NoObject),
            Err(error) => return Err(Refusal::Broken(error.to_string())),
        };
        let place = |value: &RawValue| {
            let from = value.get().as_ptr() as usize - text.as_ptr() as usize;
            from..from + value.get().len()
        };
        let mut members: Vec<Member> =
            members.into_iter().map(|(name, value)| Member { name, value: place(value) }).collect();
        members.sort_by_key(|member| member.value.start);
        let lead = text[range.clone()].len() - text[range.clone()].trim_start().len();
        let trail = text[range.clone()].len() - text[range.clone()].trim_end().len();
        Ok(Self { text, range: range.start + lead..range.end - trail, members })
    }

    /// The text with one more member at the object's end; the object itself is indented by `indent`.
    fn with(&self, name: &str, value: &str, layout: &Layout, indent: &str) -> String {
        let (line, step) = (layout.line, &layout.step);
        let member = format!("\"{name}\": {value}");
        match self.members.last() {
            Some(last) => {
                // As its members stand, so does this one.
                let gap = self.gap();
                replaced(self.text, last.value.end..last.value.end, &format!(",{gap}{member}"))
            }
            None => {
                let object = format!("{{{line}{indent}{step}{member}{line}{indent}}}");
                replaced(self.text, self.range.clone(), &object)
            }
        }
    }

    /// What stands between the brace and the first member.
    fn gap(&self) -> &'t str {
        let inner = &self.text[self.range.start + 1..];
        let gap = &inner[..inner.len() - inner.trim_start().len()];
        if gap.is_empty() { " " } else { gap }
    }

    /// The text without a member.
    fn without(&self, name: &str) -> String {
        let Some(at) = self.members.iter().position(|member| member.name == name) else {
            return self.text.to_owned();
        };
        let end = self.members[at].value.end;
        if at > 0 {
            return replaced(self.text, self.members[at - 1].value.end..end, "");
        }
        let inside = self.range.start + 1..self.range.end - 1;
        if self.members.len() == 1 {
            return replaced(self.text, inside, "");
        }
        // Up to the next one's name.
        let rest = &self.text[end..inside.end];
        let comma = rest.find(',').map_or(0, |comma| comma + 1);
        let next = end + comma + (rest[comma..].len() - rest[comma..].trim_start().len());
        let first =
            inside.start + (self.text[inside.start..].len() - self.text[inside.start..].trim_start().len());
        replaced(self.text, first..next, "")
    }
}

impl Layout {
    fn of(text: &str) -> Self {
        let line = if text.contains("\r\n") { "\r\n" } else { "\n" };
        let indented = text.lines().find(|line| line.starts_with([' ', '\t']) && !line.trim().is_empty());
        let step = indented.map(|line| line[..line.len() - line.trim_start().len()].to_owned());
        Self { line, step: step.unwrap_or_else(|| "  ".into()) }
    }
}

fn replaced(text: &str, range: Range<usize>, with: &str) -> String {
    format!("{}{with}{}", &text[..range.start], &text[range.end..])
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
            ("{\"lcm\": {\"status\": true}}", "{\"lcm\": {\"status\": true, \"maxDepth\": 3}}"),
            (
                "\u{feff}{\r\n    \"lcm\": {\r\n        \"a\": {}\r\n    },\r\n    \"z\": 0\r\n}",
                "\u{feff}{\r\n    \"lcm\": {\r\n        \"a\": {},\r\n        \"maxDepth\": 3\r\n    },\r\n    \"z\": 0\r\n}",
            ),
            ("{\n  \"lcm\": {}\n}", "{\n  \"lcm\": {\n    \"maxDepth\": 3\n  }\n}"),
        ];
        for (before, after) in cases {
            assert_eq!(edited(before, NAMES, Some("3")).unwrap(), after, "{before}");
        }
    }

    #[test]
    fn a_value_is_taken_out_under_all_its_names() {
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
    fn what_is_broken_is_refused() {
        assert!(matches!(edited("{\"lcm\": ", NAMES, Some("3")), Err(Refusal::Broken(_))));
        assert_eq!(edited("[1]", NAMES, Some("3")), Err(Refusal::NoObject));
        assert_eq!(edited("{\"lcm\": true}", NAMES, Some("3")), Err(Refusal::NoObject));
    }
}
