//! Collects anchors from the user's and the model's text, from edits, and from tool output.

use std::collections::{HashMap, HashSet};

use regex::Captures;

use super::numbers::{Number, numbers};
use super::patterns::*;
use super::rules::Rules;
use super::{Anchor, Kind};

/// The most anchors, words to count, technical terms, removed files and names that are only talked about; and
/// the bytes of a text that count as prose: the rest was probably pasted and is read like tool output.
const MOST: usize = 4_000;
const MOST_WORDS: usize = 50_000;
const MOST_TERMS: usize = 100;
const MOST_REMOVALS: usize = 200;
const MOST_TOLD: usize = 6;
const PROSE: usize = 20_000;
/// Bytes of what a user types; of output that is read from both ends; of an edit that a person may have made.
const SHORT: usize = 2_000;
const OUTPUT: usize = 200_000;
const EDIT: usize = 1_000_000;
/// An anchor's weight: in output, far from both ends or near; in the model's or the user's text; as a changed
/// file. Those below the third weight are not worth adding.
const FAR: u32 = 1;
const NEAR: u32 = 2;
pub(super) const ASSISTANT: u32 = 3;
pub(super) const USER: u32 = 5;
pub(super) const EDITED: u32 = 6;
/// Numbers of errors from here on say which; smaller ones are the same everywhere.
const LARGE: u32 = 256;
/// An edit that defines at most this many names is about them.
const FEW: usize = 2;
/// Where a word occurs, as bits: the user's text, the model's text, an edit that adds it, another call,
/// output; and whether it is marked as code.
pub(super) const BY_USER: u32 = 1;
pub(super) const BY_ASSISTANT: u32 = 2;
const BY_EDIT: u32 = 4;
const BY_CALL: u32 = 8;
const BY_OUTPUT: u32 = 16;
const TICKED: u32 = 32;

/// A name in an edit: its file, whether it is defined there, and whether the edit is about it.
struct Name<'a> {
    path: &'a str,
    is_new: bool,
    is_point: bool,
}

/// A word: the last part that contains it, the number of parts, and where it occurs.
#[derive(Clone, Copy, Default)]
struct Word {
    last: usize,
    pieces: u32,
    by: u32,
}

#[derive(Default)]
pub(super) struct Reader<'a> {
    pub(super) at: usize,
    found: HashMap<(Kind, String), Anchor>,
    names: HashMap<&'a str, Name<'a>>,
    words: HashMap<&'a str, Word>,
    removed: Vec<&'a str>,
    removals: usize,
    terms: HashMap<&'a str, Term>,
    rules: Rules,
    /// Tool output and calls, which identify technical terms.
    machine: Vec<&'a str>,
}

/// A possible technical term: its weight by who uses it, the last part that contains it, and the number of
/// parts.
struct Term {
    weight: u32,
    seen: usize,
    pieces: u32,
}

impl<'a> Reader<'a> {
    pub(super) fn prose(&mut self, text: &'a str, weight: u32, by: u32) {
        let (prose, pasted) = text.split_at(text.floor_char_boundary(PROSE));
        self.output(pasted);
        // Long user texts are instructions: mostly not about anything here, and stored as rules anyway.
        let is_pasted = by == BY_USER && text.len() > SHORT;
        if !is_pasted {
            self.rules.read(prose, self.at, by == BY_USER);
        }
        for (at, part) in prose.split("```").enumerate() {
            if at % 2 == 1 {
                self.count_words(part, BY_CALL);
                self.output(part);
                continue;
            }
            self.count_words(part, if is_pasted { BY_CALL } else { by });
            for word in
                part.split('`').skip(1).step_by(2).filter(|ticked| ticked.len() < LINE).flat_map(words)
            {
                self.words.entry(word).and_modify(|known| known.by |= TICKED);
            }
            for sentence in part.lines().flat_map(|line| line.split(". ")) {
                let start = sentence[..sentence.floor_char_boundary(24)].to_lowercase();
                // What the model is about to look at may turn out to be irrelevant.
                let is_plan = by != BY_USER && PLANS.iter().any(|plan| start.contains(plan));
                let is_of_trace = start.trim_start().starts_with("at ");
                if !is_plan && !is_of_trace {
                    for path in paths(sentence) {
                        // A name without a folder that the model mentions without marking it as code is
                        // probably not a file of the project.
                        let is_bare =
                            by != BY_USER && !path.contains('/') && !sentence.contains(&format!("`{path}"));
                        self.path(path, if is_bare { NEAR } else { weight });
                    }
                }
            }
            // Words such as `built-in` and `On-demand`.
            let is_word = |term: &str| {
                let is_title =
                    term.starts_with(char::is_uppercase) && !term.contains(|c: char| c.is_ascii_digit());
                is_title || term.split('-').any(|word| is_among(PARTICLES, word))
            };
            let is_code = |term: &&str| !is_word(term) || part.contains(&format!("`{term}"));
            for term in terms(part).filter(is_code) {
                if self.terms.len() < MOST_TERMS || self.terms.contains_key(term) {
                    let known = self.terms.entry(term).or_insert(Term { weight, seen: self.at, pieces: 1 });
                    known.pieces += u32::from(known.seen != self.at);
                    (known.weight, known.seen) = (known.weight.max(weight), self.at);
                }
            }
            captures(&ERRORS, part).for_each(|found| self.error(&found, weight + 2));
            for (codes, label) in [(&AFTERS, ""), (&LEADS, ""), (&STATUSES, "HTTP ")] {
                for code in captures(codes, part).map(|found| found.extract::<1>().1[0].to_owned()) {
                    self.note(Kind::Error, code.to_lowercase(), format!("{label}{code}"), weight + 2, None);
                }
            }
            for number in numbers(part).into_iter().filter(|number| number.is_telling(by == BY_USER)) {
                self.note(Kind::Number, number.key(), number.shown(part), weight, Some(number));
            }
        }
    }

    pub(super) fn edit(&mut self, path: &'a str, old: &'a str, new: &'a str) {
        self.removed.retain(|removed| !ends_at(path, removed));
        if is_noise(path) {
            return;
        }
        self.path(path, EDITED);
        self.machine.push(new);
        let known: HashSet<&str> = words(&old[..old.floor_char_boundary(EDIT)]).collect();
        self.count_words(&new[..new.floor_char_boundary(EDIT)], BY_CALL);
        for word in words(&new[..new.floor_char_boundary(EDIT)]).filter(|word| !known.contains(word)) {
            self.words.entry(word).and_modify(|known| known.by |= BY_EDIT);
        }
        let (stem, ending) = path.rsplit_once('.').unwrap_or((path, ""));
        if is_among(PROSE_ENDINGS, ending) || old.len() + new.len() > EDIT {
            return;
        }
        let are_settings = is_among(SETTINGS_ENDINGS, ending);
        let defined = |text| definitions(if are_settings { &SETTINGS } else { &DEFINITIONS }, text);
        let before: HashSet<(&str, &str)> = defined(old).collect();
        let now: HashSet<&str> = if before.is_empty() { HashSet::new() } else { words(new).collect() };
        for (name, _) in before.iter().filter(|(name, _)| !now.contains(name)) {
            if self.names.get(name).is_some_and(|known| known.path == path) {
                self.names.remove(name);
            }
        }
        let is_own = |name: &str, line: &str| {
            let is_sql_call = ending == "sql"
                && !["create", "add", "rename"].iter().any(|word| line.to_lowercase().starts_with(word));
            let is_override = line.contains("override ") || new.contains(&format!("super().{name}"));
            !is_plain(name)
                && !name.starts_with('_')
                && end_of(stem, 1) != name
                && !is_override
                && !is_sql_call
        };
        let after: HashSet<(&str, &str)> = defined(new).filter(|(name, line)| is_own(name, line)).collect();
        let is_about = !is_of_tests(path);
        let names_of =
            |all: &HashSet<(&'a str, &str)>| all.iter().map(|(name, _)| *name).collect::<HashSet<_>>();
        let added: HashSet<&str> = names_of(&after).difference(&names_of(&before)).copied().collect();
        let few = after.difference(&before).filter(|(name, line)| !is_value(name, line)).count()
            <= FEW + usize::from(!are_settings);
        for definition in &after {
            let is_new = !before.contains(definition);
            let is_added = added.len() <= FEW && added.contains(definition.0) && is_compound(definition.0);
            let has_room = self.names.len() < MOST && (is_new || !are_settings);
            if has_room || self.names.contains_key(definition.0) {
                let known =
                    self.names.entry(definition.0).or_insert(Name { path, is_new: false, is_point: false });
                known.is_new |= is_new && is_about;
                known.is_point |= is_about
                    && is_new
                    && (few || is_added)
                    && if are_settings {
                        is_added && !old.is_empty()
                    } else {
                        !is_value(definition.0, definition.1) || !added.contains(definition.0)
                    };
            }
        }
    }

    pub(super) fn call(&mut self, text: &'a str) {
        self.count_words(text, BY_CALL);
        let mut rest = captures(&COMMANDS, text).peekable();
        while let Some(found) = rest.next() {
            let words = |group| found.name(group).map_or("", |words| words.as_str()).split_whitespace();
            let end = found.get(0).map_or(text.len(), |whole| whole.end());
            let next = rest.peek().and_then(|next| next.get(0)).map_or(text.len(), |next| next.start());
            if let Some(path) = found.name("written").or(found.name("sent")) {
                self.edit(path.as_str(), "", &text[end..next]);
            }
            if let Some(path) = words("changed").last().filter(|path| path.contains(['.', '/'])) {
                self.path(path, EDITED);
            }
            ["moved", "into", "touched"]
                .into_iter()
                .flat_map(words)
                .flat_map(paths)
                .for_each(|path| self.path(path, EDITED));
            for word in words("removed").filter(|word| !word.starts_with('-')) {
                self.removals += 1;
                let key = word.to_lowercase();
                if self.removals > MOST_REMOVALS {
                    break;
                } else if self.found.keys().any(|(kind, path)| *kind == Kind::Path && ends_at(path, &key)) {
                    self.removed.push(word);
                } else {
                    // A removed file that existed before may be referenced elsewhere.
                    paths(word).filter(|path| path.contains('/')).for_each(|path| self.path(path, USER));
                }
            }
        }
    }

    pub(super) fn output(&mut self, text: &'a str) {
        if text.len() > 2 * OUTPUT {
            self.output(&text[..text.floor_char_boundary(OUTPUT)]);
            return self.output(&text[text.ceil_char_boundary(text.len() - OUTPUT)..]);
        }
        self.machine.push(text);
        for word in words(text).filter(|word| is_compound(word)) {
            if self.words.len() < MOST_WORDS / 2 || self.words.contains_key(word) {
                self.words.entry(word).or_default().by |= BY_OUTPUT;
            }
        }
        let mut errors = captures(&ERRORS, text).filter(|found| is_of_error_line(text, found)).peekable();
        while let Some(found) = errors.next() {
            let span = |found: &Captures<'_>| found.get(0).map_or(0..0, |whole| whole.range());
            let (at, next) = (span(&found), errors.peek().map(span));
            // Of a line's codes the last is the cause.
            if next.is_none_or(|next| text[at.end.min(next.start)..next.start].contains('\n')) {
                let is_far = at.start > 3_000 && text.len() - at.end > 3_000;
                let line = text[at.start..text.floor_char_boundary(at.end + LINE)].lines().next();
                // A class says less than the code after it.
                match line.and_then(|line| captures(&AFTERS, line).next()) {
                    Some(code) if found.name("class").is_some() => {
                        self.note(Kind::Error, code[1].to_lowercase(), code[1].to_owned(), ASSISTANT, None);
                    }
                    _ => self.error(&found, if is_far { FAR } else { NEAR }),
                }
            }
        }
    }

    fn error(&mut self, found: &Captures<'_>, weight: u32) {
        let group = |(label, name)| Some((label, found.name(name)?.as_str()));
        let labels = [
            ("SQLSTATE ", "sql"),
            ("ERROR ", "mysql"),
            ("HTTP ", "http"),
            ("HTTP ", "status"),
            ("HTTP ", "reason"),
            ("HTTP ", "bare"),
            ("exit code ", "exit"),
            ("", "grpc"),
            ("", "small"),
        ];
        let (label, code) = labels.into_iter().find_map(group).unwrap_or(("", &found[0]));
        let label =
            if label.starts_with("exit") && found[0].contains("status") { "exit status " } else { label };
        let label = if label == "ERROR " { &found[0][..label.len()] } else { label };
        let number: u32 = code.parse().unwrap_or_default();
        // In tool output, only unusual failures count.
        let is_daily = match label {
            "HTTP " => matches!(number, 400 | 401 | 404 | 405),
            "exit code " | "exit status " => number < 124,
            _ => {
                number < LARGE && found.name("numbered").is_some()
                    || is_among(GENERIC, code)
                    || code.ends_with("Warning")
            }
        };
        if (!is_daily || weight > NEAR) && (!label.starts_with("exit") || number > 0) {
            let key = found
                .name("numbered")
                .map_or(code, |_| code.rsplit([' ', ':', '=', '#']).next().unwrap_or(code));
            self.note(Kind::Error, key.to_lowercase(), format!("{label}{code}"), weight, None);
        }
    }

    fn path(&mut self, path: &str, weight: u32) {
        let path = path.replace('\\', "/");
        let path = path.trim_start_matches("./");
        if !is_noise(path) && path.len() < 200 && !path.contains(char::is_control) {
            self.note(Kind::Path, path.to_lowercase(), path.to_owned(), weight, None);
        }
    }

    fn note(&mut self, kind: Kind, key: String, text: String, weight: u32, number: Option<Number>) {
        let (at, id) = (self.at, (kind, key.clone()));
        // Output must not use up the room for prose.
        let room = if weight > NEAR { MOST } else { MOST / 2 };
        if let Some(known) = self.found.get_mut(&id) {
            known.said_again(weight, at);
        } else if self.found.len() < room {
            let about = Vec::new();
            self.found
                .insert(id, Anchor { kind, text, weight, key, number, about, has_twin: false, seen: at });
        }
    }

    fn count_words(&mut self, text: &'a str, by: u32) {
        for word in words(text).filter(|word| word.len() > 2) {
            if self.words.len() < MOST_WORDS || self.words.contains_key(word) {
                let known = self.words.entry(word).or_default();
                known.pieces += u32::from(known.pieces == 0 || known.last != self.at);
                known.last = self.at;
                known.by |= by;
            }
        }
    }

    pub(super) fn finish(self) -> Vec<Anchor> {
        let name = |text: &str, weight, seen| Anchor {
            kind: Kind::Name,
            text: text.to_owned(),
            weight,
            key: text.to_lowercase(),
            number: None,
            about: Vec::new(),
            has_twin: false,
            seen,
        };
        let is_gone = |path: &str| self.removed.iter().any(|removed| ends_at(path, &removed.to_lowercase()));
        let (mut files, mut all): (Vec<Anchor>, Vec<Anchor>) =
            self.found.into_values().partition(|anchor| anchor.kind == Kind::Path);
        // A bare name is a file's if a call uses it.
        let is_called = |name: &str| self.words.get(stem(name)).is_some_and(|word| word.by & BY_CALL > 0);
        for file in files.iter_mut().filter(|file| file.weight == NEAR && is_called(&file.text)) {
            file.weight = ASSISTANT;
        }
        all.extend(one_each(files.into_iter().filter(|file| !is_gone(&file.key)).collect()));
        let mut told = Vec::new();
        for (text, word) in &self.words {
            let is_marked = text.starts_with(char::is_uppercase) || word.by & TICKED > 0;
            let matters = match self.names.get(text) {
                Some(known) if is_gone(&known.path.to_lowercase()) => false,
                // A common word may occur without meaning the name.
                Some(known) if !known.is_point => {
                    let is_told = known.is_new
                        || word.by & BY_USER > 0
                        || word.by & BY_ASSISTANT > 0 && word.pieces > 2;
                    let is_code = text.trim_matches('_').contains(|c: char| c == '_' || c.is_uppercase())
                        || known.is_new && word.by & BY_EDIT > 0 && word.by & TICKED > 0;
                    is_told && word.pieces > 1 && is_code
                }
                Some(_) => is_compound(text) || word.pieces > 1 && is_marked,
                // An identifier in the user's words; one in capitals may be a product's name.
                None => {
                    let is_used = word.by & (BY_ASSISTANT | BY_EDIT) > 0;
                    let is_ascii = text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
                    let has_humps = text.matches(char::is_uppercase).count() > 2;
                    let is_code = is_ascii
                        && text.len() > 5
                        && (text.contains('_') || has_humps || !text.starts_with(char::is_uppercase));
                    let is_told =
                        word.by & BY_ASSISTANT > 0 && word.by & (BY_EDIT | BY_CALL | BY_OUTPUT | TICKED) > 0;
                    // Such as `TypeScript`.
                    let is_title = text.starts_with(char::is_uppercase) && !text.contains('_') && !has_humps;
                    let is_product = is_title && word.by & TICKED == 0;
                    (is_told || word.by & BY_USER > 0 && (is_used || is_code && word.by & BY_OUTPUT == 0))
                        && is_compound(text)
                        && !is_product
                }
            };
            if matters {
                let to = if self.names.contains_key(text) { &mut all } else { &mut told };
                to.push(name(text, 2 + word.pieces.min(5), word.last));
            }
        }
        // Rules stay in the order in which they were said.
        fn name_of(one: &Anchor) -> Option<&str> {
            Some(one.text.as_str()).filter(|_| one.kind != Kind::Rule)
        }
        let first =
            |a: &Anchor, b: &Anchor| (b.weight, b.seen, name_of(a)).cmp(&(a.weight, a.seen, name_of(b)));
        // Of the names that are only talked about, those of most parts.
        told.sort_by(first);
        all.extend(told.into_iter().take((self.at / 5).clamp(2, MOST_TOLD)));
        // Counted words contain no dashes.
        let dashed = self.names.iter().filter(|(text, known)| known.is_point && text.contains('-'));
        let dashed = dashed.filter(|(_, known)| !is_gone(&known.path.to_lowercase()));
        all.extend(dashed.map(|(text, _)| name(text, ASSISTANT, 0)));
        for (term, known) in &self.terms {
            let key = term.to_lowercase();
            let is_file = all.iter().any(|anchor| anchor.kind == Kind::Path && anchor.key.contains(&key));
            let is_ticket = known.weight >= USER && term.contains(|c: char| c.is_ascii_digit());
            if !is_file && (is_ticket || self.machine.iter().any(|text| text.contains(term))) {
                all.push(name(term, known.weight + known.pieces.min(5) - 1, known.seen));
            }
        }
        all.extend(self.rules.anchors(USER));
        let is_error = |anchor: &&mut Anchor| anchor.kind == Kind::Error;
        if all.iter_mut().filter(is_error).count() <= FEW {
            all.iter_mut().filter(is_error).for_each(|error| error.weight = error.weight.max(ASSISTANT));
        }
        all.retain(|anchor| anchor.weight >= ASSISTANT);
        all.sort_by(first);
        all
    }
}

impl Anchor {
    fn said_again(&mut self, weight: u32, at: usize) {
        self.weight = self.weight.max(weight) + u32::from(self.seen != at && self.weight < 12);
        self.seen = self.seen.max(at);
    }
}

/// Merges a file's several spellings, which have the same ending.
fn one_each(mut files: Vec<Anchor>) -> Vec<Anchor> {
    files.sort_by(|a, b| (b.key.len(), &a.key).cmp(&(a.key.len(), &b.key)));
    let mut by_name: HashMap<String, Vec<Anchor>> = HashMap::new();
    for file in files {
        let same = by_name.entry(end_of(&file.key, 1).to_owned()).or_default();
        match same.iter_mut().take(50).find(|longer| ends_at(&longer.key, &file.key)) {
            Some(longer) => longer.said_again(file.weight, file.seen),
            None => same.push(file),
        }
    }
    let twins = |files: Vec<Anchor>| {
        let has_twin = files.len() > 1;
        // The name of several files means the only one that was changed.
        let is_only = files.iter().filter(|file| file.weight >= EDITED).count() == 1;
        files.into_iter().map(move |file| {
            let has_twin = has_twin && !(is_only && file.weight >= EDITED);
            let text = end_of(&file.text, 1 + usize::from(has_twin)).to_owned();
            Anchor { text, has_twin, ..file }
        })
    };
    by_name.into_values().flat_map(twins).collect()
}
