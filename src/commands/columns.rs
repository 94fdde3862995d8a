//! Cuts and wraps text to a terminal's width.

use unicode_width::{UnicodeWidthChar as _, UnicodeWidthStr as _};

/// `line`, truncated to `width` columns.
pub(super) fn fit(line: &str, width: usize) -> String {
    if line.width() <= width {
        return line.to_owned();
    }
    let mut taken = 1;
    let fitting = line.chars().take_while(|c| {
        taken += c.width().unwrap_or_default();
        taken <= width
    });
    fitting.collect::<String>().trim_end().to_owned() + "…"
}

/// `text` after `indent` columns, wrapped between words at `width`, with further lines indented equally.
pub(super) fn hanging(text: &str, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut out = String::new();
    let mut taken = indent;
    for word in text.split(' ') {
        let columns = word.width();
        if taken > indent && taken + 1 + columns > width {
            out += &format!("\n{}", " ".repeat(indent));
            taken = indent;
        } else if taken > indent {
            out.push(' ');
            taken += 1;
        }
        out += word;
        taken += columns;
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_cut_before_it_is_too_wide() {
        assert_eq!(fit("plain", 5), "plain");
        assert_eq!(fit("plainer", 5), "plai…");
        assert_eq!(fit("三つ目の要約", 8), "三つ目…");
        assert_eq!(fit("🦀🦀🦀", 5), "🦀🦀…");
        assert_eq!(hanging("one two three", 4, Some(11)), "one two\n    three");
        assert_eq!(hanging("one two three", 4, None), "one two three");
        assert_eq!(fit("e\u{301}e\u{301}e", 3), "e\u{301}e\u{301}e");
    }
}
