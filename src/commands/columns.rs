//! How wide a text is in a terminal, and where to cut it. In doubt a character counts as wide: a line may end too early, never
//! too late.

/// Where a character begins to take two columns.
const WIDE: [std::ops::RangeInclusive<char>; 9] = [
    '\u{1100}'..='\u{115f}',
    '\u{231a}'..='\u{23ff}',
    '\u{2600}'..='\u{27bf}',
    '\u{2b05}'..='\u{2b55}',
    '\u{2e80}'..='\u{a4cf}',
    '\u{ac00}'..='\u{d7ff}',
    '\u{f900}'..='\u{faff}',
    '\u{fe30}'..='\u{ff60}',
    '\u{ffe0}'..='\u{10ffff}',
];

/// Columns of a character.
fn of(c: char) -> usize {
    if WIDE.iter().any(|range| range.contains(&c)) {
        return 2;
    }
    // What combines with the character before it, or shows nothing.
    let is_nothing = matches!(c, '\u{300}'..='\u{36f}' | '\u{200b}'..='\u{200f}' | '\u{fe00}'..='\u{fe0f}');
    usize::from(!is_nothing)
}

/// `line`, cut to `width` columns where it is longer.
pub(super) fn fit(line: &str, width: usize) -> String {
    if line.chars().map(of).sum::<usize>() <= width {
        return line.to_owned();
    }
    let mut taken = 1;
    let fitting = line.chars().take_while(|c| {
        taken += of(*c);
        taken <= width
    });
    fitting.collect::<String>().trim_end().to_owned() + "…"
}

/// `text` behind `indent` columns of something else, broken between words where `width` ends, each further line as far in.
pub(super) fn hanging(text: &str, indent: usize, width: Option<usize>) -> String {
    let Some(width) = width else { return text.to_owned() };
    let mut out = String::new();
    let mut taken = indent;
    for word in text.split(' ') {
        let columns: usize = word.chars().map(of).sum();
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
