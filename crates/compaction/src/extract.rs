//! The last resort: describes messages without a model. Deterministic, within a hard cap, never empty.

use std::collections::HashSet;

use super::gate;
use lcm_model::facts::{self, Check, Facts};
use lcm_model::{Message, Pattern, Role, pattern, text, tokens};

/// The fewest tokens of a line worth showing.
const LEAST: usize = 4;
/// The share of an extract for details: 1/n.
const DETAILS: usize = 8;
/// The fewest characters of a token.
const TOKEN: usize = 2;

/// Words for a failure in tool output, even within other words.
static ALARMS: Pattern = pattern!(
    "(?im)^.*(?:error|failed|failure|exception|panicked|traceback|fatal|cannot |fehler|fehlgeschlagen|erreur|échec|échoué",
    "|falló|excepción|错误|錯誤|失败|失敗|异常|エラー|例外).*$",
);
/// What says that there is none.
static NONE: Pattern = pattern!(r"(?i)\b(?:0|no) (?:tests? )?(?:failed|failures?|errors?|exceptions?)\b");

/// Characters of one quoted line, and of one in an extract of extracts.
const LINE: usize = 240;
const SHORT_LINE: usize = 160;

/// An extract of about `cap` tokens: the user's requests, decisions, checks with their outcomes, error lines, changed
/// files, other calls, and the exact details that these lack.
pub(super) fn of_messages(messages: &[&Message], cap: usize) -> String {
    let details = gate::details(messages.iter().copied());
    let room = if details.is_empty() { 0 } else { cap / DETAILS };
    let mut lines =
        DistinctLines::new(cap - room, format!("Extract of {}", text::count(messages.len(), "message")));
    let facts = Facts::without_statements(messages.iter().copied().enumerate());
    let said = |role: Role| messages.iter().copied().filter(move |message| message.role == role);
    lines.section("The user said:", cap * 2 / 5, said(Role::User).map(|message| message.headline(LINE)));
    lines.section("Decisions:", cap / 5, said(Role::Assistant).flat_map(decisions));
    let output = messages.iter().copied().filter(|message| is_output(message));
    lines.section("Checks:", cap / 5, facts.checks.iter().map(check));
    lines.section("Errors:", cap / 5, output.clone().flat_map(errors));
    lines.section("Changed:", cap / 5, facts.touched().modified.into_iter());
    lines.section("The agent said:", cap / 2, said(Role::Assistant).map(|message| message.headline(LINE)));
    lines.section("Files and commands:", cap / 3, messages.iter().copied().flat_map(calls));
    lines.section("Output:", cap, output.map(|message| message.headline(LINE)));
    gate::added_within(&details, lines.text, room * TOKEN, 0)
}

/// An extract of summaries, in equal shares: of each the first line, then outcomes, errors and details, which nothing
/// else in a block has; then of an extract the first line of each section, the second ones, and so on, and of any
/// other summary the beginning.
pub(super) fn of_summaries(texts: &[&str], cap: usize) -> String {
    let mut lines = DistinctLines::new(cap, format!("Extract of {}", text::count(texts.len(), "summary")));
    for (at, text) in texts.iter().enumerate() {
        let mut points = Vec::new();
        let mut depth = 0;
        for line in text.lines() {
            if is_title(line) {
                depth = 0;
                continue;
            }
            let line = text::one_line(line.trim_start_matches("- "), SHORT_LINE);
            let rank = match () {
                () if points.is_empty() => 0,
                () if is_finding(&line) => 1,
                () => 2,
            };
            points.push((rank, depth, line));
            depth += 1;
        }
        points.sort_by_key(|(rank, depth, _)| (*rank, *depth));
        let share = cap.saturating_sub(lines.tokens) / (texts.len() - at);
        lines.section("—", share, points.into_iter().map(|(.., line)| line));
    }
    lines.text
}

/// Whether the line has an outcome, an error or exact details, as in extracts of messages.
fn is_finding(line: &str) -> bool {
    line.starts_with("Also:") || line.ends_with(": passed") || alarms(line).next().is_some()
}

/// Whether the line says nothing by itself, like the titles in extracts.
fn is_title(line: &str) -> bool {
    ["Extract of ", "Outline of ", "—"].iter().any(|title| line.starts_with(title)) || line.ends_with(':')
}

fn is_output(message: &Message) -> bool {
    matches!(message.role, Role::ToolResult | Role::Bash) && !message.is_recall_echo()
}

fn decisions(message: &Message) -> Vec<String> {
    message.texts().flat_map(facts::decisions).take(3).map(|said| text::one_line(said, LINE)).collect()
}

fn errors(message: &Message) -> Vec<String> {
    message.texts().flat_map(alarms).take(2).map(|line| text::one_line(line, LINE)).collect()
}

/// The lines of `text` that report a failure.
fn alarms(text: &str) -> impl Iterator<Item = &str> {
    ALARMS.found(text).map(|line| line.as_str()).filter(|line| ALARMS.is_in(&NONE.replaced(line, "")))
}

/// A check and its outcome: `cargo test: passed`.
fn check(check: &Check) -> String {
    let outcome = match &check.failure {
        None => "passed".to_owned(),
        Some(line) => format!("failed: {line}"),
    };
    format!("{}: {}", text::one_line(&check.command, LINE / 2), text::one_line(&outcome, LINE / 2))
}

/// What the agent did: `edit src/main.rs`, `bash cargo test`.
fn calls(message: &Message) -> Vec<String> {
    let done = message.calls().map(|(name, arguments)| {
        let object = ["path", "command", "pattern", "query"].iter().find_map(|key| arguments[key].as_str());
        text::one_line(&format!("{name} {}", object.unwrap_or_default()), LINE / 2)
    });
    done.collect()
}

/// Distinct lines, up to a cap of tokens.
struct DistinctLines {
    text: String,
    tokens: usize,
    cap: usize,
    seen: HashSet<String>,
}

impl DistinctLines {
    fn new(cap: usize, title: String) -> Self {
        Self { tokens: tokens::estimate(&title), text: title, cap, seen: HashSet::new() }
    }

    /// Adds as many of `items` as fit into `share` tokens, under a heading.
    fn section(&mut self, heading: &str, share: usize, items: impl Iterator<Item = String>) {
        let limit = self.cap.min(self.tokens + share);
        let mut heading = Some(heading);
        for item in items.filter(|item| !item.is_empty()) {
            let head = heading.map(|heading| format!("\n{heading}")).unwrap_or_default();
            let line = format!("{head}\n- {item}");
            let cost = tokens::estimate(&line);
            if self.tokens + cost > limit {
                // Show at least the beginning of the very first one.
                let room = limit.saturating_sub(self.tokens + tokens::estimate(&head) + 2);
                if self.seen.is_empty() && room >= LEAST {
                    let line = format!("{head}\n- {}", text::one_line(&item, room * TOKEN));
                    self.tokens += tokens::estimate(&line);
                    self.text.push_str(&line);
                    self.seen.insert(item);
                }
                break;
            }
            if self.seen.insert(item) {
                self.text.push_str(&line);
                self.tokens += cost;
                heading = None;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_extract_of_extracts_has_their_lines_and_not_their_titles() {
        let one = "Extract of 2 messages\nThe user said:\n- fix the parser\nErrors:\n- it failed";
        let extract = of_summaries(&[one, "Outline of 9 messages\n- then the lexer"], 100);
        assert_eq!(extract, "Extract of 2 summaries\n—\n- fix the parser\n- it failed\n—\n- then the lexer");
    }

    #[test]
    fn an_extract_of_extracts_keeps_outcomes_errors_and_details_before_prose() {
        let prose = "It is as it was, and so is the rest of it. ".repeat(9);
        let extract = |n: usize| {
            format!(
                "Extract of 9 messages\nThe user said:\n- fix part {n}\n- {prose}\nChecks:\n- npm test {n}: passed\nErrors:\n\
                 - error E{n}\nThe agent said:\n- {prose}\n- {prose}\nAlso: took {n} ms"
            )
        };
        let extracts = [1, 2, 3, 4].map(extract);
        let condensed: Vec<String> =
            extracts.chunks(2).map(|two| of_summaries(&[&two[0], &two[1]], 150)).collect();
        let twice = of_summaries(&[&condensed[0], &condensed[1]], 200);
        for n in 1..=4 {
            for kept in [format!("npm test {n}: passed"), format!("error E{n}"), format!("Also: took {n} ms")]
            {
                assert!(twice.contains(&kept), "{kept} in {twice}");
            }
        }
    }

    #[test]
    fn an_extract_keeps_requests_decisions_errors_and_files_within_its_cap() {
        let messages: Vec<Message> = [
            r#"{"role":"user","content":"Make the importer skip blank lines"}"#,
            r#"{"role":"assistant","content":[{"type":"text","text":"We keep the lexer because it is fast."},
                {"type":"toolCall","id":"1","name":"edit","arguments":{"path":"src/import.rs"}}]}"#,
            r#"{"role":"toolResult","toolName":"bash","content":"12 passed, 0 failed\nerror[E0308]: mismatched types\nok"}"#,
        ]
        .map(Message::parse)
        .into();
        let messages: Vec<&Message> = messages.iter().collect();
        let extract = of_messages(&messages, 200);
        for kept in ["skip blank lines", "because it is fast", "error[E0308]", "edit src/import.rs"] {
            assert!(extract.contains(kept), "{kept} in {extract}");
        }
        assert!(extract.contains("Errors:\n- error[E0308]: mismatched types\nChanged:"), "{extract}");
        for cap in [8, 20, 50, 100] {
            let many: Vec<&Message> = messages.iter().copied().cycle().take(150).collect();
            let extract = of_messages(&many, cap);
            assert!(tokens::estimate(&extract) <= cap + 2, "{cap}: {extract}");
        }
    }

    #[test]
    fn an_extract_has_the_exact_details_of_what_it_shortens() {
        let long = format!("{} and it took 812 ms.", "It is slow, ".repeat(60));
        let message = Message::parse(&serde_json::json!({"role": "user", "content": long}).to_string());
        let extract = of_messages(&[&message], 120);
        assert!(extract.ends_with("\nAlso: took 812 ms") && tokens::estimate(&extract) <= 120, "{extract}");
    }
}
