//! Measures the gate on a set of conversations: in all, and by the kinds of facts that it is to keep.
//!
//! A fact's kind follows from what the set says, or from its looks. Out of scope are numbers without a unit,
//! identifiers that no edit defines or changes, and what only a tool printed, except errors.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::super::numbers::{Number, numbers};
use super::super::patterns::{ERRORS, captures, paths};
use super::super::summary::has;
use super::*;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    Path,
    Name,
    Number,
    Error,
    Rule,
    Decision,
    Outside,
}

fn said(stretch: &Json) -> Vec<Said<'_>> {
    let pieces = stretch["said"].as_array().unwrap().iter();
    pieces
        .map(|piece| {
            let text = |at: usize| piece[at].as_str().unwrap_or_default();
            match text(0) {
                "user" => Said::User(text(1)),
                "assistant" => Said::Assistant(text(1)),
                "edit" => Said::Edit { path: text(1), old: text(2), new: text(3) },
                "write" => Said::Edit { path: text(1), old: "", new: text(2) },
                "run" | "read" => Said::Call(text(1)),
                _ => Said::Output(text(1)),
            }
        })
        .collect()
}

/// The summary without its marks and with the mentions to `cut` replaced, and its facts.
fn without(marked: &str, cut: impl Fn(&str) -> bool) -> (String, Vec<String>) {
    let (mut out, mut facts) = (String::new(), Vec::new());
    for piece in marked.split("[[") {
        let Some((mention, rest)) = piece.split_once("]]") else {
            out.push_str(piece);
            continue;
        };
        let (key, words) = mention.split_once('|').unwrap_or((mention, mention));
        out.push_str(if cut(key) { "it" } else { words });
        out.push_str(rest);
        if !facts.iter().any(|fact| fact == key) {
            facts.push(key.to_owned());
        }
    }
    (out, facts)
}

fn looks_like_code(fact: &str, said: &[Said<'_>]) -> bool {
    let prints = |text: &str| {
        captures(&ERRORS, text).any(|found| found.iter().flatten().any(|part| part.as_str() == fact))
    };
    prints(fact)
        || fact.bytes().all(|byte| byte.is_ascii_digit())
            && said.iter().any(|piece| matches!(piece, Said::User(text) | Said::Assistant(text) | Said::Output(text) if prints(text)))
}

/// Whether a line that an edit adds or removes begins with the name, apart from words before it.
fn is_changed(name: &str, said: &[Said<'_>]) -> bool {
    let bare = name.trim_matches(['.', '(', ')', ':', '`', '-', '<', '>', '$']);
    let last = bare.rsplit(['.', ':', '#']).next().unwrap_or(bare);
    said.iter().any(|piece| {
        let Said::Edit { old, new, .. } = piece else { return false };
        let (was, is): (Vec<&str>, Vec<&str>) = (old.lines().collect(), new.lines().collect());
        let changed =
            was.iter().filter(|line| !is.contains(line)).chain(is.iter().filter(|line| !was.contains(line)));
        changed.copied().any(|line| {
            line.match_indices(last).any(|(at, _)| {
                let (before, after) =
                    (&line[..at], line[at + last.len()..].trim_start_matches(['"', '\'']).trim_start());
                let is_whole = !before.ends_with(|c: char| c.is_alphanumeric() || c == '_')
                    && !line[at + last.len()..].starts_with(|c: char| c.is_alphanumeric() || c == '_');
                let is_first = before
                    .chars()
                    .all(|c| c.is_alphanumeric() || c.is_whitespace() || "_@\"'.#:*&<>$-()[],".contains(c));
                is_whole
                    && is_first
                    && (after.is_empty() || after.starts_with(['=', ':', '(', '{', '<', '|', '?', ';', ',']))
            })
        })
    })
}

pub(super) fn scope(fact: &str, listed: Option<&str>, said: &[Said<'_>]) -> Scope {
    let is_path = || paths(fact).any(|path| path == fact);
    let parsed = || numbers(fact).into_iter().next();
    let listed = listed.unwrap_or_else(|| {
        if is_path() {
            "path"
        } else if looks_like_code(fact, said) {
            "code"
        } else if parsed().is_some() || fact.starts_with(|c: char| c.is_ascii_digit()) {
            "number"
        } else {
            "identifier"
        }
    });
    let told = || said.iter().filter(|piece| !matches!(piece, Said::Output(_)));
    let texts = |piece: &Said<'_>| match *piece {
        Said::User(text) | Said::Assistant(text) | Said::Call(text) | Said::Output(text) => {
            text.to_lowercase()
        }
        Said::Edit { path, new, old } => format!("{path}\n{old}\n{new}").to_lowercase(),
    };
    match listed {
        "rule" => Scope::Rule,
        "decision" => Scope::Decision,
        "code" => Scope::Error,
        "path" if told().any(|piece| texts(piece).contains(&fact.to_lowercase())) => Scope::Path,
        "identifier" if is_changed(fact, said) => Scope::Name,
        "number" => {
            let Some(number) = parsed().filter(Number::has_unit) else { return Scope::Outside };
            let is_told = |piece: &Said<'_>| {
                numbers(&texts(piece))
                    .iter()
                    .any(|other| number.is_said_by(other) || other.is_said_by(&number))
            };
            if told().any(is_told) { Scope::Number } else { Scope::Outside }
        }
        _ => Scope::Outside,
    }
}

#[derive(Default, Clone, Copy)]
pub(super) struct Tally {
    pub(super) sought: usize,
    pub(super) found: usize,
    pub(super) anchors: usize,
    pub(super) alarms: usize,
    /// Alarms about facts that the summary has in other words.
    pub(super) reworded: usize,
}

#[derive(Default)]
pub(super) struct Figures {
    pub(super) by_scope: BTreeMap<Scope, Tally>,
    /// Facts that were found, but had no room.
    pub(super) crowded: usize,
    pub(super) bytes: usize,
    /// Without those of facts that the author lists as lost, and with them.
    pub(super) added: usize,
    pub(super) all_added: usize,
    /// Facts that the author lists as lost, and those that the line has.
    pub(super) lost: usize,
    pub(super) back: usize,
    /// What was not found, and false alarms.
    pub(super) missed: Vec<String>,
}

impl Figures {
    /// Of everything, or of what is in scope.
    pub(super) fn tally(&self, is_of: impl Fn(Scope) -> bool) -> Tally {
        self.by_scope.iter().filter(|(scope, _)| is_of(**scope)).fold(Tally::default(), |sum, (_, one)| {
            Tally {
                sought: sum.sought + one.sought,
                found: sum.found + one.found,
                anchors: sum.anchors + one.anchors,
                alarms: sum.alarms + one.alarms,
                reworded: sum.reworded + one.reworded,
            }
        })
    }

    /// For each kind: facts sought and found, anchors, alarms, and alarms about facts in other words.
    pub(super) fn table(&self) -> String {
        let row = |(scope, one): (&Scope, &Tally)| {
            format!(
                "{scope:?}: {} {} {} {} {}\n",
                one.sought, one.found, one.anchors, one.alarms, one.reworded
            )
        };
        self.by_scope.iter().map(row).collect()
    }

    /// Found, false alarms and added bytes, in percent.
    pub(super) fn percents(&self) -> [f64; 3] {
        let all = self.tally(|_| true);
        [(all.found, all.sought), (all.alarms, all.anchors), (self.added, self.bytes)]
            .map(|(part, whole)| percent(part, whole))
    }
}

pub(super) fn percent(part: usize, whole: usize) -> f64 {
    let float = |number| f64::from(u32::try_from(number).unwrap());
    if whole == 0 { 0.0 } else { 100.0 * float(part) / float(whole) }
}

/// Whether a text names a fact, or a part of it: whole, so `300 ms` does not name `30`; or, for a number with
/// another word beside it, by its value: `more than 500` names `500 keys`.
fn names(text: &str, fact: &str) -> bool {
    let (lower, fact_lower) = (text.to_lowercase(), fact.to_lowercase());
    let is_same = |number: &Number, other: &Number| {
        (number.has_unit() || other.has_unit()) && (number.is_said_by(other) || other.is_said_by(number))
    };
    has(&lower, &fact_lower, "")
        || lower.len() > 2 && has(&fact_lower, &lower, "")
        || numbers(fact).iter().any(|number| numbers(text).iter().any(|other| is_same(number, other)))
}

/// Whether a reader of `texts` has the fact. A rule's number alone does not give it back, nor less than half
/// of its words.
fn give_back(texts: &[&str], fact: &str, kind: Option<&str>) -> bool {
    let is_whole = texts.iter().any(|text| has(&text.to_lowercase(), &fact.to_lowercase(), ""));
    let parts: Vec<&&str> = texts.iter().filter(|text| names(text, fact)).collect();
    let bytes: usize = parts.iter().map(|text| text.len()).sum();
    is_whole || !parts.is_empty() && (!matches!(kind, Some("rule" | "decision")) || 2 * bytes >= fact.len())
}

/// The summary with each of its facts removed in turn, unless it still says that word elsewhere. Rules and
/// decisions have no marks: their words are listed.
fn omissions(stretch: &Json, whole: &str) -> Vec<(String, String)> {
    let marked = stretch["summary"].as_str().unwrap();
    let (_, facts) = without(marked, |_| false);
    let cut = |fact: String| (without(marked, |key| key == fact).0, fact);
    let is_gone = |(cut, fact): &(String, String)| !has(&cut.to_lowercase(), &fact.to_lowercase(), "");
    let listed = stretch["kept"].as_array().into_iter().flatten();
    let stated = listed.filter(|fact| matches!(fact["kind"].as_str(), Some("rule" | "decision")));
    let cut_statement = |fact: &Json| {
        (whole.replace(fact["as"].as_str().unwrap(), "it"), fact["fact"].as_str().unwrap().to_owned())
    };
    facts.into_iter().map(cut).chain(stated.map(cut_statement)).filter(is_gone).collect()
}

pub(super) fn measured(stretches: &str) -> Figures {
    let stretches: Json = serde_json::from_str(stretches).unwrap();
    let mut figures = Figures::default();
    for stretch in stretches.as_array().unwrap() {
        let name = stretch["name"].as_str().unwrap();
        let said = said(stretch);
        let anchors = anchors(said.iter().copied());
        let (whole, marked) = without(stretch["summary"].as_str().unwrap(), |_| false);
        let reports = missing(&anchors, &whole);
        let listed = |which: &str| stretch[which].as_array().into_iter().flatten().collect::<Vec<_>>();
        let (kept, lost) = (listed("kept"), listed("lost"));
        let kind =
            |fact: &str| kept.iter().find(|one| one["fact"] == fact).and_then(|one| one["kind"].as_str());
        let scope_of = |anchor: &Anchor| {
            let listed = match anchor.kind {
                Kind::Path => "path",
                Kind::Name => "identifier",
                Kind::Number => "number",
                Kind::Error => "code",
                Kind::Rule => "rule",
            };
            scope(&anchor.text, Some(listed), &said)
        };
        for anchor in &anchors {
            figures.by_scope.entry(scope_of(anchor)).or_default().anchors += 1;
        }
        let named = |report: &Anchor, facts: &[&Json]| {
            facts.iter().any(|fact| names(&report.text, fact["fact"].as_str().unwrap()))
        };
        // What its author lists as lost is not a false alarm, and what has no room in the line alarms nobody.
        let line = also(&reports, room(&whole)).unwrap_or_default();
        figures.lost += lost.len();
        figures.back += lost
            .iter()
            .filter(|fact| give_back(&[&line], fact["fact"].as_str().unwrap(), fact["kind"].as_str()))
            .count();
        let is_shown = |report: &&&Anchor| line.contains(&report.text);
        for alarm in reports.iter().filter(is_shown).filter(|report| !named(report, &lost)) {
            let is_kept = named(alarm, &kept) || marked.iter().any(|fact| names(&alarm.text, fact));
            let scope = scope_of(alarm);
            let tally = figures.by_scope.entry(scope).or_default();
            tally.alarms += 1;
            tally.reworded += usize::from(is_kept);
            figures.missed.push(format!("alarm in {name}: {scope:?}: {}", alarm.text));
        }
        for (cut, fact) in omissions(stretch, &whole) {
            let missing = missing(&anchors, &cut);
            let line = also(&missing, room(&cut)).unwrap_or_default();
            // The reader has it back if the line says it, whichever anchors did that.
            let said_by = |is_said: &dyn Fn(&Anchor) -> bool| {
                let texts: Vec<&str> =
                    missing.iter().filter(|new| is_said(new)).map(|new| new.text.as_str()).collect();
                give_back(&texts, &fact, kind(&fact))
            };
            let is_found = has(&line.to_lowercase(), &fact.to_lowercase(), "")
                || said_by(&|new| line.contains(&new.text));
            let is_seen = said_by(&|_| true);
            let scope = scope(&fact, kind(&fact), &said);
            figures.crowded += usize::from(is_seen && !is_found);
            if !is_found {
                let why = if is_seen { "no room" } else { "not found" };
                figures.missed.push(format!("{why} in {name}: {scope:?}: {fact}"));
            }
            let tally = figures.by_scope.entry(scope).or_default();
            tally.sought += 1;
            tally.found += usize::from(is_found);
            // Facts that the author lists as lost are not ballast.
            let back = missing.iter().filter(|one| line.contains(&one.text) && named(one, &lost));
            figures.bytes += cut.len();
            figures.all_added += line.len();
            figures.added += line.len() - back.map(|one| one.text.len() + 2).sum::<usize>().min(line.len());
        }
    }
    figures
}
