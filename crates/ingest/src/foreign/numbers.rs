//! The numbers of records without an id, which are those of their lines when they are stored. A log may lose lines later, or be
//! replaced: then each of its records keeps the number it is stored with, and new ones get the next free numbers.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};

use super::{Log, Raw};
use crate::file::Stored;
use lcm_model::Fields;
use lcm_model::error::Result;
use lcm_model::ids::Hash;

/// The numbers of a log's records, if not all are those of their lines.
#[derive(Default)]
pub(super) struct Numbers {
    /// By line.
    of: Vec<usize>,
    /// The next free number.
    free: usize,
}

impl Numbers {
    /// The number of the record in this line.
    pub fn of(&self, line: usize) -> usize {
        match self.of.get(line - 1) {
            Some(number) => *number,
            None if self.of.is_empty() => line,
            None => self.free + line - 1 - self.of.len(),
        }
    }

    /// Compares a log with what is stored of it, and lets it start again. `began` is the time of records before the first that has one.
    pub fn find(log: &mut Log, began: i64, known: &HashSet<String>, stored: &mut Stored<'_>) -> Result<Self> {
        let entries = entries(known, &log.prefix);
        // The last record that is stored, and the purged ones after it.
        let mut last: VecDeque<(usize, Option<Hash>, i64)> = VecDeque::new();
        for (number, entry) in entries.iter().rev() {
            let (record, time) = stored(vec![entry.clone()])?.remove(0);
            last.push_front((*number, record, time));
            if record.is_some() {
                break;
            }
        }
        // If they are in their lines, none before was lost.
        for line in 1.. {
            let Some((number, record, time)) = last.front() else { break };
            let Some(text) = next(log)? else { break };
            if line == 1 && Fields::of(&text).is_some_and(|fields| fields.json("ordinal").is_some()) {
                // Its records have numbers of their own.
                last.clear();
            } else if line == *number {
                let is_same = match record {
                    Some(record) => Hash::plain(text.as_bytes()) == *record,
                    None => Fields::of(&text).and_then(|fields| fields.time()).is_none_or(|at| at == *time),
                };
                if !is_same {
                    break;
                }
                last.pop_front();
            }
        }
        log.records.again()?;
        if last.is_empty() {
            return Ok(Self::default());
        }
        let found = Self::by_content(log, began, &entries, stored)?;
        log.records.again()?;
        Ok(found)
    }

    fn by_content(
        log: &mut Log,
        began: i64,
        entries: &BTreeMap<usize, String>,
        stored: &mut Stored<'_>,
    ) -> Result<Self> {
        let mut same: HashMap<Hash, VecDeque<usize>> = HashMap::new();
        // What is purged has only its time.
        let mut purged: HashMap<i64, VecDeque<usize>> = HashMap::new();
        for (number, (record, time)) in entries.keys().zip(stored(entries.values().cloned().collect())?) {
            match record {
                Some(record) => same.entry(record).or_default().push_back(*number),
                None => purged.entry(time).or_default().push_back(*number),
            }
        }
        let mut numbers =
            Self { of: Vec::new(), free: entries.keys().next_back().map_or(1, |last| last + 1) };
        let (mut time, mut last) = (began, 0);
        while let Some(line) = next(log)? {
            let fields = Fields::of(&line);
            let own_time = fields.as_ref().and_then(Fields::time);
            time = own_time.unwrap_or(time);
            let known = same.get_mut(&Hash::plain(line.as_bytes())).and_then(VecDeque::pop_front);
            let known = known.or_else(|| match fields.and_then(|fields| fields.text("uuid")) {
                Some(_) => Some(0),
                None => {
                    let purged = purged.get_mut(&time)?;
                    // Without a time of its own, it is none of those that were before what is known.
                    let before = if own_time.is_none() { last } else { 0 };
                    purged.drain(..purged.partition_point(|number| *number < before));
                    purged.pop_front()
                }
            });
            last = last.max(known.unwrap_or_default());
            numbers.of.push(known.unwrap_or(numbers.free));
            numbers.free += usize::from(known.is_none());
        }
        Ok(numbers)
    }
}

/// The entries of records without an id, by their numbers: those that have the record.
fn entries(known: &HashSet<String>, prefix: &str) -> BTreeMap<usize, String> {
    let mut entries: BTreeMap<usize, String> = BTreeMap::new();
    for id in known {
        let Some(line) = id.strip_prefix(prefix).and_then(|id| id.strip_prefix('L')) else { continue };
        let (number, is_alone) = line.split_once('@').map_or((line, false), |(number, _)| (number, true));
        if let Ok(number) = number.parse() {
            let entry = entries.entry(number).or_insert_with(|| id.clone());
            if is_alone {
                entry.clone_from(id);
            }
        }
    }
    entries
}

fn next(log: &mut Log) -> Result<Option<String>> {
    loop {
        match log.records.next()? {
            Some(Raw::Text(line)) => return Ok(Some(line)),
            Some(_) => {}
            None => return Ok(None),
        }
    }
}
