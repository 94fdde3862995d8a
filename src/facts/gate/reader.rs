//! Collects candidates from the user's and the model's text, from edits, and from tool output.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use regex::Captures;

use super::model::{Feature, Features};
use super::numbers::{Number, numbers};
use super::patterns::*;
use super::rules::Rules;
use super::tokens::*;
use super::{Anchor, Kind};

/// The most candidates, errors of an output, removed files, and parts that contain a candidate.
const MOST: usize = 4_000;
const MOST_ERRORS: usize = 200;
const MOST_REMOVALS: usize = 200;
const MOST_PARTS: usize = 30;
/// The bytes of a text that count as prose: the rest was probably pasted and is read like tool output.
const PROSE: usize = 20_000;
/// Bytes of output that is read from both ends; of an edit that a person may have made.
const OUTPUT: usize = 200_000;
const EDIT: usize = 1_000_000;
/// The most bytes of an output, and of numbers in it, if these may matter.
const RESULT: usize = 2_000;
const FEW: usize = 16;

/// A candidate.
struct Found {
    text: String,
    number: Option<Number>,
    features: Features,
    /// The parts that contain it.
    parts: Vec<usize>,
    /// The last part of the user, of the model, and of output that contains it.
    told: [Option<usize>; 3],
    /// The number of candidates of the part that has fewest.
    crowd: usize,
    /// The file that defines it.
    path: Option<String>,
}

#[derive(Default)]
pub(super) struct Reader<'a> {
    pub(super) at: usize,
    found: HashMap<(Kind, String), Found>,
    /// The candidates in this part.
    here: Vec<(Kind, String)>,
    /// The last part of the user, of the model, and of output.
    last: [usize; 3],
    removed: Vec<&'a str>,
    removals: usize,
    rules: Rules,
    /// Edits, calls and output, where candidates from elsewhere may occur.
    machine: Vec<(usize, &'a str)>,
}

impl<'a> Reader<'a> {
    pub(super) fn prose(&mut self, text: &'a str, by: Feature) {
        let is_user = by == Feature::User;
        self.last[usize::from(!is_user)] = self.at;
        let (prose, pasted) = text.split_at(text.floor_char_boundary(PROSE));
        if !pasted.is_empty() {
            self.output(pasted);
        }
        self.rules.read(prose, is_user);
        for (at, part) in prose.split("```").enumerate() {
            if at % 2 == 1 {
                self.output(part);
            } else {
                sentences(part).for_each(|sentence| self.sentence(sentence, by));
            }
        }
        self.end();
    }

    fn sentence(&mut self, text: &str, by: Feature) {
        let (mut taken, mut units): (Vec<Range<usize>>, Vec<Range<usize>>) = (Vec::new(), Vec::new());
        for path in paths(text) {
            let start = path.as_ptr() as usize - text.as_ptr() as usize;
            // A position in the file follows.
            let is_position = |c: char| ":(".contains(c) || c.is_ascii_digit();
            let after = text[start + path.len()..].trim_start_matches(is_position);
            taken.push(start..text.len() - after.len());
            self.path(path, by);
        }
        for found in captures(&ERRORS, text) {
            taken.extend(found.get(0).map(|whole| whole.range()));
            self.code(&found, by);
        }
        taken.sort_by_key(|range| range.start);
        for number in numbers(text).into_iter().filter(|number| !is_in(&taken, number.start)) {
            // A unit is not a name.
            units.push(number.start + 1..number.end);
            self.number(text, number, by);
        }
        taken.extend(units);
        taken.sort_by_key(|range| range.start);
        for token in tokens(text).filter(|token| !is_in(&taken, token.start)) {
            if token.shape != Shape::Plain || token.is_ticked {
                self.name(token.text, token.shape, by, &[(Feature::Ticked, token.is_ticked)]);
            }
        }
    }

    pub(super) fn edit(&mut self, path: &'a str, old: &'a str, new: &'a str) {
        self.removed.retain(|removed| !ends_at(path, removed));
        if is_noise(path) {
            return;
        }
        self.path(path, Feature::Edit);
        let new = &new[..new.floor_char_boundary(EDIT)];
        self.machine.push((self.at, new));
        let (name, ending) = end_of(path, 1).rsplit_once('.').unwrap_or((path, ""));
        let is_prose = is_among(PROSE_ENDINGS, ending);
        let known: HashSet<&str> = words(&old[..old.floor_char_boundary(EDIT)]).collect();
        for token in tokens(new) {
            let word = token.text.rsplit(['.', ':']).next().unwrap_or(token.text);
            let word = word.trim_start_matches(['-', '@', '#', '$']);
            let (form, before) = (shape(word), &new[..token.start]);
            let is_declared = !is_prose && is_declared(before);
            let is_set = !is_prose && is_set(&new[token.end()..]);
            let is_code = is_declared
                || matches!(form, Shape::Compound | Shape::Mixed)
                || form == Shape::Capitals && is_set;
            let is_defined = is_declared || is_set;
            if is_code
                && (token.is_ticked || !is_prose)
                && (is_defined || !known.contains(word))
                && word != name
                && words(word).count() == 1
            {
                let features = [(Feature::Defined, is_defined), (Feature::Thrown, is_thrown(before))];
                self.name(word, form, Feature::Edit, &features);
                if let Some(found) = self.found.get_mut(&(Kind::Name, word.to_lowercase())) {
                    found.path = Some(path.to_lowercase());
                }
            }
        }
        self.end();
    }

    pub(super) fn call(&mut self, text: &'a str) {
        let mut rest = captures(&COMMANDS, text).peekable();
        while let Some(found) = rest.next() {
            let words = |group| found.name(group).map_or("", |words| words.as_str()).split_whitespace();
            let end = found.get(0).map_or(text.len(), |whole| whole.end());
            let next = rest.peek().and_then(|next| next.get(0)).map_or(text.len(), |next| next.start());
            if let Some(path) = found.name("written").or(found.name("sent")) {
                self.edit(path.as_str(), "", &text[end..next]);
            }
            if let Some(path) = words("changed").last().filter(|path| path.contains(['.', '/'])) {
                self.path(path, Feature::Edit);
            }
            ["moved", "into", "touched"]
                .into_iter()
                .flat_map(words)
                .flat_map(paths)
                .for_each(|path| self.path(path, Feature::Edit));
            for word in words("removed").filter(|word| !word.starts_with('-')) {
                self.removals += 1;
                let key = word.to_lowercase();
                if self.removals > MOST_REMOVALS {
                    break;
                } else if self.found.keys().any(|(kind, path)| *kind == Kind::Path && ends_at(path, &key)) {
                    self.removed.push(word);
                } else {
                    // A removed file that existed before may be referenced elsewhere.
                    paths(word)
                        .filter(|path| path.contains('/'))
                        .for_each(|path| self.path(path, Feature::Edit));
                }
            }
        }
        paths(text).for_each(|path| self.path(path, Feature::Call));
        self.machine.push((self.at, &text[..text.floor_char_boundary(OUTPUT)]));
        self.end();
    }

    pub(super) fn output(&mut self, text: &'a str) {
        if text.len() > 2 * OUTPUT {
            self.output(&text[..text.floor_char_boundary(OUTPUT)]);
            return self.output(&text[text.ceil_char_boundary(text.len() - OUTPUT)..]);
        }
        self.last[2] = self.at;
        self.machine.push((self.at, text));
        let all = if text.len() < RESULT { numbers(text) } else { Vec::new() };
        if all.len() <= FEW {
            all.into_iter().for_each(|number| self.number(text, number, Feature::Output));
        }
        let errors = captures(&ERRORS, text).filter(|found| is_of_error_line(text, found));
        errors.take(MOST_ERRORS).for_each(|found| self.code(&found, Feature::Output));
        self.end();
    }

    /// A known error code.
    fn code(&mut self, found: &Captures<'_>, by: Feature) {
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
        let number: u32 = code.parse().unwrap_or_default();
        // In tool output, only unusual failures count.
        let is_daily = match label {
            "HTTP " => matches!(number, 400 | 401 | 404 | 405),
            "exit code " | "exit status " => number < 124,
            _ => found.name("numbered").is_some() || code == "AssertionError" || code.ends_with("Warning"),
        };
        if label.starts_with("exit") && number == 0 {
            return;
        }
        let is_numbered = found.name("numbered").is_some();
        let key = if is_numbered { code.rsplit([' ', ':', '=', '#']).next().unwrap_or(code) } else { code };
        let mut features = Features::default();
        features.set(Feature::Daily, is_daily);
        self.note(Kind::Error, key.to_lowercase(), format!("{label}{code}"), None, features, by);
    }

    fn name(&mut self, word: &str, form: Shape, by: Feature, more: &[(Feature, bool)]) {
        if is_plain(word) || is_noise(word) {
            return;
        }
        let mut features = Features::default();
        features.set(Feature::Compound, form == Shape::Compound);
        features.set(Feature::Mixed, form == Shape::Mixed);
        features.set(Feature::Joined, form == Shape::Joined);
        more.iter().for_each(|(feature, is_true)| features.set(*feature, *is_true));
        self.note(Kind::Name, word.to_lowercase(), word.to_owned(), None, features, by);
    }

    fn number(&mut self, text: &str, number: Number, by: Feature) {
        let is_bare = number.unit.is_empty();
        let is_counted = number.counted(text).is_some();
        let before = &text[..number.start];
        if is_bare && (number.is_year(text) || is_position(before)) {
            return;
        }
        let mut features = Features::default();
        features.set(Feature::Unit, !is_bare && number.unit != "x");
        features.set(Feature::Counted, is_counted);
        features.set(Feature::Small, is_bare && number.amount < 10.0);
        let shown = number.shown(text, if is_bare && !is_counted { 2 } else { 1 });
        self.note(Kind::Number, number.key(), shown, Some(number), features, by);
    }

    fn path(&mut self, path: &str, by: Feature) {
        let path = path.replace('\\', "/");
        let path = path.trim_start_matches(['@', '\'', '"']).trim_start_matches("./");
        if !is_noise(path) && path.len() < 200 && !path.contains(char::is_control) {
            let mut features = Features::default();
            features.set(Feature::Bare, !path.contains('/'));
            self.note(Kind::Path, path.to_lowercase(), end_of(path, 3).to_owned(), None, features, by);
        }
    }

    fn note(
        &mut self,
        kind: Kind,
        key: String,
        text: String,
        number: Option<Number>,
        features: Features,
        by: Feature,
    ) {
        let (id, at) = ((kind, key), self.at);
        // Output must not use up the room for prose.
        let room = if matches!(by, Feature::Output | Feature::Call) { MOST / 2 } else { MOST };
        if self.found.len() >= room && !self.found.contains_key(&id) {
            return;
        }
        let found = self.found.entry(id.clone()).or_insert_with(|| Found {
            text: text.clone(),
            number,
            features,
            parts: Vec::new(),
            told: [None; 3],
            crowd: usize::MAX,
            path: None,
        });
        found.features.merge(&features);
        found.features.set(by, true);
        let teller = match by {
            Feature::User => Some(0),
            Feature::Assistant => Some(1),
            Feature::Output => Some(2),
            _ => None,
        };
        // The first text in someone's own words is shown.
        if found.told[..2] == [None; 2] && matches!(teller, Some(0 | 1)) {
            found.text = text;
        }
        if let Some(teller) = teller {
            found.told[teller] = Some(at);
        }
        if found.parts.last() != Some(&at) {
            found.add(at);
            self.here.push(id);
        }
    }

    /// Ends a part.
    fn end(&mut self) {
        let crowd = self.here.len();
        for id in self.here.drain(..) {
            if let Some(found) = self.found.get_mut(&id) {
                found.crowd = found.crowd.min(crowd);
            }
        }
    }

    /// Returns the candidates that are more likely kept than not.
    pub(super) fn finish(mut self) -> Vec<Anchor> {
        let names = self.found.iter_mut().filter(|((kind, _), _)| *kind == Kind::Name);
        let mut names: HashMap<&str, &mut Found> =
            names.map(|((_, key), found)| (key.as_str(), found)).collect();
        let mut lower = String::new();
        for (at, text) in &self.machine {
            for token in tokens(text) {
                for word in std::iter::once(token.text).chain(words(token.text)).filter(|word| word.len() > 2)
                {
                    lower.clear();
                    lower.extend(word.chars().flat_map(char::to_lowercase));
                    if let Some(found) = names.get_mut(lower.as_str()) {
                        found.add(*at);
                    }
                }
            }
        }
        self.join_members();
        let is_gone = |path: &str| self.removed.iter().any(|removed| ends_at(path, &removed.to_lowercase()));
        let is_kept = |((kind, key), found): &((Kind, String), Found)| {
            !(found.path.as_deref().is_some_and(is_gone) || *kind == Kind::Path && is_gone(key))
        };
        let anchor = |((kind, key), found): ((Kind, String), Found)| {
            let mut features = found.features;
            for (feature, teller) in [(Feature::Last, 0), (Feature::Concluding, 1), (Feature::Closing, 2)] {
                features.set(feature, found.told[teller] == Some(self.last[teller]));
            }
            features.count(Feature::Often, found.parts.len());
            features.count(Feature::Crowd, found.crowd);
            let number = found.number;
            Anchor { kind, text: found.text, key, number, about: Vec::new(), has_twin: false, features }
        };
        let is_error = |key: &str| self.found.contains_key(&(Kind::Error, key.to_owned()));
        let names = [Kind::Name, Kind::Number];
        let doubled: HashSet<(Kind, String)> =
            self.found.keys().filter(|(kind, key)| names.contains(kind) && is_error(key)).cloned().collect();
        let found =
            self.found.into_iter().filter(|one| !doubled.contains(&one.0) && is_kept(one)).map(anchor);
        let (files, mut all): (Vec<_>, Vec<_>) = found.partition(|anchor| anchor.kind == Kind::Path);
        all.extend(one_each(files));
        all.extend(self.rules.anchors());
        let mut all: Vec<(f64, Anchor)> =
            all.into_iter().map(|anchor| (anchor.features.score(anchor.kind), anchor)).collect();
        all.retain(|(score, _)| *score > 0.0);
        all.sort_by(|(a, one), (b, other)| b.total_cmp(a).then_with(|| one.text.cmp(&other.text)));
        all.into_iter().map(|(_, anchor)| anchor).collect()
    }
}

impl Reader<'_> {
    /// Merges `Cache::evict` with `evict`, if that is a candidate too.
    fn join_members(&mut self) {
        let last =
            |name: &str| name.rsplit(['.', ':']).next().filter(|last| *last != name).map(str::to_owned);
        let members = self.found.keys().filter(|(kind, _)| *kind == Kind::Name);
        let members: Vec<(String, String)> =
            members.filter_map(|(_, name)| Some((name.clone(), last(name)?))).collect();
        for (whole, member) in members {
            let id = (Kind::Name, member);
            if !self.found.contains_key(&id) {
                continue;
            }
            if let Some(whole) = self.found.remove(&(Kind::Name, whole))
                && let Some(known) = self.found.get_mut(&id)
            {
                let shape = [Feature::Joined, Feature::Mixed];
                known.features.merge(&whole.features.without(&shape));
                known.crowd = known.crowd.min(whole.crowd);
                whole.parts.iter().for_each(|part| known.add(*part));
                for (mine, its) in known.told.iter_mut().zip(whole.told) {
                    *mine = (*mine).max(its);
                }
            }
        }
    }
}

impl Found {
    fn add(&mut self, part: usize) {
        if self.parts.len() < MOST_PARTS && !self.parts.contains(&part) {
            self.parts.push(part);
        }
    }
}

/// Whether one of the ranges, which are in order, contains a position.
fn is_in(ranges: &[Range<usize>], at: usize) -> bool {
    let next = ranges.partition_point(|range| range.start <= at);
    ranges[..next].iter().rev().take(2).any(|range| range.contains(&at))
}

/// Whether the number after `before` is a position.
fn is_position(before: &str) -> bool {
    let word = before.trim_end().rsplit(|c: char| !c.is_alphabetic()).next().unwrap_or_default();
    is_among(" line lines step page zeile ligne línea ", &word.to_lowercase())
}

/// Merges a file's several spellings, which have the same ending.
fn one_each(mut files: Vec<Anchor>) -> Vec<Anchor> {
    files.sort_by(|a, b| (b.key.len(), &a.key).cmp(&(a.key.len(), &b.key)));
    let mut by_name: HashMap<String, Vec<Anchor>> = HashMap::new();
    for file in files {
        let same = by_name.entry(end_of(&file.key, 1).to_owned()).or_default();
        match same.iter_mut().take(50).find(|longer| ends_at(&longer.key, &file.key)) {
            Some(longer) => longer.features.merge(&file.features),
            None => same.push(file),
        }
    }
    let twins = |files: Vec<Anchor>| {
        let has_twin = files.len() > 1;
        files.into_iter().map(move |file| {
            let name = stem(end_of(&file.text, 1));
            // The folder counts if the name says little.
            let parts = if has_twin { 3 } else { 1 + usize::from(name.len() < 8 && !is_compound(name)) };
            Anchor { has_twin, text: end_of(&file.text, parts).to_owned(), ..file }
        })
    };
    by_name.into_values().flat_map(twins).collect()
}
