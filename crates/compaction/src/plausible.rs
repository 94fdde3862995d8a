//! Whether an answer can be a summary of its source, by rule. A weak model answers with anything: a chat, an echo,
//! JSON, something it made up. Such an answer must not replace the messages it was asked about.
//!
//! Every prompt asks for a last line in fixed words. An answer that ends with it followed its instructions and is
//! only held against what no summary is; any other has to resemble a summary of this source. The bounds accept each
//! of 2,600 summaries by people and strong models, of meetings, calls, mails, papers, news and sessions, in English
//! and Chinese; half of these were not used to set them.

use std::collections::HashSet;

use super::prompts::{self, LAST_LINE};

use lcm_model::policy::float;
use lcm_model::{quotes, read_json};

/// The question that an answer must fit.
pub(super) struct Asked<'a> {
    pub prompt: &'a str,
    /// The sources in it.
    pub history: &'a str,
    /// Whether they are messages; summaries may be joined word for word.
    pub is_of_messages: bool,
    /// How many words were asked for.
    pub words: usize,
}

/// An answer has at least these words besides the last line and empty sections; one line has more than a title, unless it
/// is a sentence. Without the last line, it has at least this share of the words asked for.
const LEAST_WORDS: usize = 3;
const TITLE_WORDS: usize = 8;
const SENTENCE_ENDS: [char; 6] = ['.', '!', '?', '。', '！', '？'];
const LEAST_SHARE: f64 = 0.05;
/// The share of an answer's words that the source has: at least the first for a short source, rising with the
/// source's words (one more for this many) to the second. Pairs of characters recur less often: a third of that.
const SHARED: (f64, f64) = (0.34, 0.42);
const RISE: f64 = 60_000.0;
const PAIRED: f64 = 3.0;
/// Runs of three words that differ: a text with a smaller share repeats itself.
const VARIED: f64 = 0.45;
/// A text is an echo if this share of its runs of 24 words (or it, if shorter) is in the question, and it has at least so many
/// words, or at most this share of those asked for: a sentence that says it all may be copied.
const LONG: usize = 60;
const SHORT: f64 = 0.2;
const RUN: usize = 24;
const COPIED: f64 = 0.8;
/// In fewer words than this, repetition says nothing.
const ENOUGH: usize = 12;
/// This many names, numbers and paths, of which the source has none, are made up.
const MADE_UP: usize = 5;
/// Words with which a model speaks of itself or to its user. A summary is about others.
const SPOKEN: [&str; 11] = ["i", "i'm", "i'll", "i've", "i'd", "me", "my", "you", "your", "let's", "myself"];
const TALK: f64 = 0.08;

/// Why `answer` is no summary of what was asked about, in words; `None` if it may be one.
pub(super) fn fault(answer: &str, asked: &Asked<'_>) -> Option<&'static str> {
    let lines: Vec<&str> = answer.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_last = |line: &str| line.trim().trim_matches(['*', '#', '_', '-', ' ']).starts_with(LAST_LINE);
    let follows = lines.last().is_some_and(|line| is_last(line));
    let body = lines.iter().filter(|line| !is_last(line)).copied().collect::<Vec<_>>().join("\n");
    if body.starts_with("```") || (body.starts_with(['{', '[']) && read_json(&body).is_ok()) {
        return Some("it is code or data");
    }
    let words = words(&body);
    let told: Vec<&str> = body.lines().filter(|line| !is_empty_section(line)).collect();
    let said = self::words(&told.join("\n")).len();
    let is_title = told.len() == 1 && said < TITLE_WORDS && !told[0].trim_end().ends_with(SENTENCE_ENDS);
    if said < LEAST_WORDS || is_title || (!follows && float(words.len()) < LEAST_SHARE * float(asked.words)) {
        return Some("it says next to nothing");
    }
    let source = self::words(asked.history);
    let known: HashSet<&str> = source.iter().map(String::as_str).collect();
    let distinct: HashSet<&str> = words.iter().map(String::as_str).collect();
    let shared = share(distinct.iter(), |word| known.contains(**word));
    let runs: Vec<_> = words.windows(3).collect();
    let varied = float(runs.iter().collect::<HashSet<_>>().len()) / float(runs.len().max(1));
    let is_paired = distinct.iter().filter(|word| word.starts_with(is_wide)).count() * 2 > distinct.len();
    let least = (SHARED.0 + float(source.len()) / RISE).min(SHARED.1) / if is_paired { PAIRED } else { 1.0 };
    match () {
        () if (asked.is_of_messages || !follows) && is_echo(&body, asked) => Some("it copies the question"),
        () if is_made_up(&body, asked.history) => Some("it is about something else"),
        () if follows => None,
        () if words.len() >= ENOUGH && varied < VARIED => Some("it repeats itself"),
        () if shared < least => Some("it is about something else"),
        () if is_talk(&body) => Some("it continues the conversation"),
        () => None,
    }
}

/// A heading, `none`, or both, such as `Quotes: none`.
fn is_empty_section(line: &str) -> bool {
    let bare = line.replace(['*', '#', '_', '-'], "").trim().to_lowercase();
    bare.ends_with(':') || bare == "none" || bare.ends_with(": none")
}

/// Lower-case words; in scripts that write no spaces, pairs of neighboring characters.
fn words(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for word in text.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()) {
        let wide: Vec<char> = word.chars().filter(|c| is_wide(*c)).collect();
        match wide.len() {
            0 => found.push(word.to_lowercase()),
            1 => found.push(wide[0].to_string()),
            _ => found.extend(wide.windows(2).map(|pair| pair.iter().collect::<String>())),
        }
    }
    found
}

/// Whether words are written without spaces in this character's script.
fn is_wide(c: char) -> bool {
    ('\u{e00}'..='\u{1dff}').contains(&c) || c >= '\u{2e80}'
}

/// Whether nearly all of it is copied. What it quotes may be.
fn is_echo(body: &str, asked: &Asked<'_>) -> bool {
    let said = words(&quotes::taken_off(body).0);
    let prompt = format!(" {} ", words(asked.prompt).join(" "));
    let runs = said.chunks_exact(RUN.min(said.len().max(1))).map(|run| format!(" {} ", run.join(" ")));
    let is_sentence = said.len() < LONG && float(said.len()) > SHORT * float(asked.words);
    !is_sentence && share(runs, |run| prompt.contains(run.as_str())) >= COPIED
}

/// Whether it names several things, and none of them is in the source.
fn is_made_up(body: &str, history: &str) -> bool {
    let mut names = HashSet::new();
    for line in body.lines() {
        let mut begins = true;
        for word in line.split_whitespace() {
            let bare = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
            let is_name = bare.chars().any(|c| c.is_ascii_digit() || matches!(c, '_' | '/' | '.'))
                || (!begins && bare.starts_with(|c: char| c.is_ascii_uppercase()));
            if bare.is_ascii() && bare.len() > 3 && is_name {
                names.insert(bare.to_lowercase());
            }
            begins = word.ends_with(['.', '!', '?', ':', '*', '-']);
        }
    }
    let history = history.to_lowercase();
    names.len() >= MADE_UP && !names.iter().any(|name| history.contains(name.as_str()))
}

fn is_talk(body: &str) -> bool {
    let plain = quotes::taken_off(body).0.replace('’', "'").to_lowercase();
    let words = plain.split_whitespace().map(|word| word.trim_matches(|c: char| !c.is_alphanumeric()));
    share(words, |word| SPOKEN.contains(word)) >= TALK
}

/// The share of `all` that are so.
fn share<T>(all: impl Iterator<Item = T>, is_so: impl Fn(&T) -> bool) -> f64 {
    let (mut count, mut so) = (0, 0);
    for one in all {
        count += 1;
        so += usize::from(is_so(&one));
    }
    float(so) / float(count.max(1))
}

/// An answer without what surrounds it: the thoughts of a model whose server does not take them out, and a fence
/// around the whole.
pub(super) fn unwrapped(answer: &str) -> String {
    let answer = answer.trim();
    let said = match answer.strip_prefix("<think>") {
        Some(thought) => thought.split_once("</think>").map_or("", |(_, said)| said.trim()),
        None => answer,
    };
    let inner = said.strip_prefix("```").and_then(|rest| rest.strip_suffix("```"));
    let inner = inner.filter(|inner| inner.contains(LAST_LINE)).and_then(|inner| inner.split_once('\n'));
    prompts::without_fences(inner.map_or(said, |(_, inner)| inner))
}

#[cfg(test)]
pub(crate) mod tests;
