//! Parses ranges of lines: `100-180`.

use std::ops::Range;

use lcm_model::error::{Error, Result};
use lcm_model::text;

/// The bytes of the lines `from-to` of `text`. Lines past its end are left out.
pub(super) fn bytes_of(text: &str, lines: &str) -> Result<Range<usize>> {
    let wrong =
        |what: String| Error::invalid(format!("{what}: write the first and the last line, such as 100-180"));
    let shown = text::one_line(lines, 40);
    let (first, last) = lines.split_once(['-', '–']).unwrap_or((lines, lines));
    let number = |written: &str| written.trim().parse::<usize>().ok();
    let (Some(first), Some(last)) = (number(first), number(last)) else {
        return Err(wrong(format!("lines `{shown}` is not a range")));
    };
    if first == 0 || last < first {
        return Err(wrong(format!("lines `{shown}` is empty, the first line is 1")));
    }
    // The end of the text does not start a line.
    let further = text.match_indices('\n').map(|(at, _)| at + 1).filter(|at| *at < text.len());
    let starts: Vec<usize> = std::iter::once(0).chain(further).collect();
    match starts.get(first - 1) {
        Some(start) => Ok(*start..starts.get(last).copied().unwrap_or(text.len())),
        None => Err(wrong(format!("lines `{shown}` is past the end, there are {}", starts.len()))),
    }
}
