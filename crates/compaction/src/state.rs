//! The state of the work at the end of a range, in the summarizer's words: a section of its answer, kept in
//! the summary's text.
//!
//! Only the newest leaf summary's state is useful. The block shows it first and leaves out all others.

/// The fields a summarizer is asked for, in this order.
pub(super) const FIELDS: [&str; 4] = ["goal", "in progress", "blocked", "next"];
/// The line that starts the section.
const HEADING: &str = "state:";

/// Returns a summary's text without the section, and the section's value for each of [`FIELDS`].
pub(super) fn split(text: &str) -> (String, [Option<String>; 4]) {
    let mut state = <[Option<String>; 4]>::default();
    let mut kept: Vec<&str> = Vec::new();
    let mut is_inside = false;
    for line in text.lines() {
        let bare = line.trim().trim_matches(['*', '#', '_', ' ']);
        if bare.eq_ignore_ascii_case(HEADING) {
            is_inside = true;
            continue;
        }
        match field(bare).filter(|_| is_inside) {
            Some((at, said)) => state[at] = said,
            None if is_inside && bare.is_empty() => {}
            None => {
                is_inside = false;
                kept.push(line);
            }
        }
    }
    (kept.join("\n").trim().to_owned(), state)
}

/// Parses a line `in progress: …` into the field's index and value; `None` for an empty one.
fn field(line: &str) -> Option<(usize, Option<String>)> {
    let (name, said) = line.trim_start_matches(['-', '•', '·', '*', ' ']).split_once(':')?;
    let name = name.trim_matches(['*', '_', ' ']).to_lowercase();
    let at = FIELDS.iter().position(|field| *field == name)?;
    let said = said.trim_start_matches(['*', '_']).trim();
    let is_nothing = ["", "-", "none", "nothing", "n/a", "unknown", "not stated"]
        .contains(&said.trim_end_matches('.').to_lowercase().as_str());
    Some((at, (!is_nothing).then(|| said.to_owned())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_is_removed_and_empty_fields_are_missing() {
        let text = "Parser work\nDid this.\n\n**State:**\n- **goal:** ship the parser\n- in progress: the lexer\nblocked: none\n\nExpand for details about: all";
        let (rest, [goal, progress, blocked, next]) = split(text);
        assert_eq!(rest, "Parser work\nDid this.\n\nExpand for details about: all");
        assert_eq!((goal.as_deref(), progress.as_deref()), (Some("ship the parser"), Some("the lexer")));
        assert_eq!((blocked, next), (None, None));
        let plain = "Work\ngoal: this is no section\nDone";
        assert_eq!(split(plain), (plain.to_owned(), Default::default()));
    }
}
