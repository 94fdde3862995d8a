//! What a batch prunes: a pure function of the context, so that it is the same on every machine and after every restart.

use std::collections::{HashMap, HashSet};
use std::ops::Range;

use serde_json::{Value, json};

use super::{BULKY, Limits, Piece, Zone, stub};
use crate::config::Pruning;
use crate::model::{NOTE_TOOL, Part, Role};
use crate::tokens;

/// A stub takes at most this share of what it stands for: 1/n.
const STUB_SHARE: usize = 2;

/// One context edit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Draft {
    /// Shows a stub in place of a message.
    Stub {
        /// The entry.
        target: String,
        /// The stub.
        text: String,
        /// So many drafts that follow hide the rest of its turn.
        hides: usize,
    },
    /// Shows nothing in place of a message.
    Hide {
        /// The entry.
        target: String,
    },
}

impl Draft {
    /// As Pi takes it. The field `lcm`, which Pi keeps and sends nobody, is what our stubs are known by.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let (target, replacement) = match self {
            Self::Stub { target, text, hides } => {
                let ours = if *hides > 0 { json!({"hides": hides}) } else { json!({}) };
                (target, json!({"content": [{"type": "text", "text": text}], "lcm": ours}))
            }
            Self::Hide { target } => (target, Value::Null),
        };
        json!({"type": "context_edit", "targetId": target, "replacement": replacement})
    }
}

/// What can be pruned now.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The edits, in the order in which they are to be made: at whichever the host is stopped, no tool's result stands without
    /// its call.
    pub drafts: Vec<Draft>,
    /// Estimated tokens that they free.
    pub freed: usize,
}

/// What can be pruned of a context of `usage` tokens, whether or not it is worth a batch.
#[must_use]
pub fn plan(context: &[Piece], limits: &Limits, usage: usize) -> Plan {
    let zone = limits.zone(usage);
    let older = &context[..under_way(context)];
    if zone == Zone::Green || limits.mode == Pruning::Off {
        return Plan::default();
    }
    let mut results = results(older, if zone == Zone::Red { BULKY.1 } else { BULKY.0 });
    let mut freed: usize = results.values().map(|(_, freed)| freed).sum();
    let mut turns = Vec::new();
    if limits.takes_turns(zone) {
        let target = limits.yellow.into_iter().chain(limits.red).min().unwrap_or_default();
        for turn in turns_of(older) {
            if usage.saturating_sub(freed) < target {
                break;
            }
            let Some((drafts, of_turn)) = whole(older, context, turn.clone()) else { continue };
            let of_results: usize = turn.filter_map(|at| results.remove(&at)).map(|(_, freed)| freed).sum();
            freed = freed - of_results + of_turn;
            turns.extend(drafts);
        }
    }
    let mut results: Vec<_> = results.into_iter().collect();
    results.sort_unstable_by_key(|(at, _)| *at);
    turns.extend(results.into_iter().map(|(_, (draft, _))| draft));
    Plan { drafts: turns, freed }
}

/// Where the turn begins that is under way. What the user says while the model is at work is part of it.
fn under_way(context: &[Piece]) -> usize {
    let mut begins = context.len();
    while let Some(request) = context[..begins].iter().rposition(|piece| piece.message.role == Role::User) {
        begins = request;
        let said = |piece: &&Piece| matches!(piece.message.role, Role::Assistant | Role::ToolResult);
        let is_at_work = |piece: &Piece| {
            piece.message.role == Role::ToolResult || piece.message.tool_calls().next().is_some()
        };
        if !context[..begins].iter().rev().find(said).is_some_and(is_at_work) {
            return begins;
        }
    }
    0
}

/// Stubs of the tools' results of at least `bulky` tokens that stand whole, by their places, with what each frees.
fn results(older: &[Piece], bulky: usize) -> HashMap<usize, (Draft, usize)> {
    let mut calls: HashMap<&str, (&str, &Value)> = HashMap::new();
    let mut found = HashMap::new();
    for (at, piece) in older.iter().enumerate() {
        for part in &piece.message.parts {
            if let Part::ToolCall { id, name, arguments } = part {
                calls.insert(id, (name, arguments));
            }
        }
        let is_whole = piece.pruned.is_none() && !piece.is_edited;
        if piece.message.role != Role::ToolResult || !is_whole || is_note(piece) || piece.tokens < bulky {
            continue;
        }
        let called = piece.message.tool_call_id.as_deref().and_then(|id| calls.get(id));
        let text = stub::of_result(piece, called.copied());
        let tokens = tokens::estimate(&text);
        if tokens * STUB_SHARE <= piece.tokens {
            let draft = Draft::Stub { target: piece.entry_id.clone(), text, hides: 0 };
            found.insert(at, (draft, piece.tokens - tokens));
        }
    }
    found
}

/// The turns of a context that a user's message begins.
fn turns_of(older: &[Piece]) -> Vec<Range<usize>> {
    let starts = older.iter().enumerate().filter(|(_, piece)| piece.message.role == Role::User);
    let starts: Vec<usize> = starts.map(|(at, _)| at).collect();
    let ends = starts.iter().skip(1).copied().chain([older.len()]);
    starts.iter().copied().zip(ends).map(|(start, end)| start..end).collect()
}

/// What puts one line in place of a turn, and what that frees; none where it is done, frees nothing, or may not be.
fn whole(older: &[Piece], context: &[Piece], turn: Range<usize>) -> Option<(Vec<Draft>, usize)> {
    let pieces = &older[turn.clone()];
    let (request, rest) = pieces.split_first()?;
    let hidden: Vec<&Piece> = rest.iter().filter(|piece| may_hide(piece)).collect();
    let is_done = request.pruned.is_some() && hidden.iter().all(|piece| piece.pruned == Some(0));
    let must_stay = pieces.iter().any(|piece| piece.is_edited || is_note(piece));
    if is_done || must_stay || !keeps_pairs(pieces, context, &turn) {
        return None;
    }
    let text = stub::of_turn(pieces);
    let before: usize = hidden.iter().chain([&request]).map(|piece| piece.shown_tokens()).sum();
    let freed = before.checked_sub(tokens::estimate(&text)).filter(|freed| *freed > 0)?;
    let stub = Draft::Stub { target: request.entry_id.clone(), text, hides: hidden.len() };
    // From the end on: results before their calls.
    let hide = hidden.into_iter().rev().map(|piece| Draft::Hide { target: piece.entry_id.clone() });
    Some(([stub].into_iter().chain(hide).collect(), freed))
}

/// What Pi lets be edited; commands that the user ran stay.
fn may_hide(piece: &Piece) -> bool {
    matches!(piece.message.role, Role::User | Role::Assistant | Role::ToolResult | Role::Custom)
}

/// Until a block shows it, a note stands nowhere else.
fn is_note(piece: &Piece) -> bool {
    piece.message.tool.as_deref() == Some(NOTE_TOOL)
}

/// Do all results of the turn stand with their calls in it, and those of its calls nowhere else?
fn keeps_pairs(pieces: &[Piece], context: &[Piece], turn: &Range<usize>) -> bool {
    let calls: HashSet<&str> = pieces.iter().flat_map(|piece| piece.message.tool_calls()).collect();
    let result = |piece: &'_ Piece| piece.message.tool_call_id.clone();
    let is_called = |id: String| calls.contains(id.as_str());
    let results = pieces.iter().filter(|piece| piece.message.role == Role::ToolResult);
    let mut elsewhere = context[..turn.start].iter().chain(&context[turn.end..]).filter_map(result);
    results.map(result).all(|id| id.is_some_and(is_called)) && !elsewhere.any(is_called)
}
