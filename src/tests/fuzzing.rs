//! Runs each fuzz target over its corpus and cut, doubled and mixed inputs: the same each time.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use super::doctor_fuzz::Dice;
use crate::fuzzing::TARGETS;
use lcm_testing::share;

/// Inputs of each target in `npm run test:all`.
const INPUTS: u32 = 10_000;
/// The maximum length in bytes; longer inputs only take longer.
const LONGEST: usize = 4_096;
/// Tokens that mean something to one of the targets.
const TOKENS: [&[u8]; 24] = [
    b"\"", b"\\", b"{", b"}", b"[", b"]", b",", b":", b"\n", b"null", b"-1", b"1e999",
    b"9223372036854775808", b"\\ud800", b"\xff", b"\x00", b"\x1f", b"\"cursor\":\"", b"</history-", b"<",
    b"\"parentId\":\"a\"", b"@0", b"\xe2\x80\x8b", b"\n%\n",
];

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz").join("corpus").join(name);
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| fs::read(file).unwrap()).collect()
}

/// An input of the corpus after a few changes.
fn changed(corpus: &[Vec<u8>], dice: &mut Dice) -> Vec<u8> {
    let mut input = corpus[dice.below(corpus.len())].clone();
    for _ in 0..=dice.below(4) {
        let (from, to) = (dice.below(input.len() + 1), dice.below(input.len() + 1));
        let piece = from.min(to)..from.max(to);
        match dice.below(6) {
            0 => drop(input.drain(piece)),
            1 => drop(input.splice(piece.end..piece.end, input[piece].to_vec())),
            2 => drop(input.splice(from..from, dice.of(&TOKENS).iter().copied())),
            3 => drop(input.splice(piece, dice.of(&TOKENS).iter().copied())),
            4 => {
                let other = &corpus[dice.below(corpus.len())];
                input.truncate(from);
                input.extend(&other[dice.below(other.len() + 1)..]);
            }
            _ => input.iter_mut().skip(from).take(1).for_each(|byte| *byte ^= 1 << dice.below(8)),
        }
        input.truncate(LONGEST);
    }
    input
}

/// Runs a target over its corpus and over inputs made from it by seed.
fn withstands(name: &str) {
    let (_, target) = TARGETS.iter().find(|(target, _)| *target == name).unwrap();
    let corpus = corpus(name);
    assert!(corpus.len() >= 5, "{} inputs", corpus.len());
    let bytes: usize = corpus.iter().map(Vec::len).sum();
    assert!(bytes <= 16 * 1024, "{bytes} bytes: a corpus in the repository is small");
    let mut dice = Dice(bytes as u64);
    let mixed = (0..share(INPUTS)).map(|_| changed(&corpus, &mut dice)).collect::<Vec<_>>();
    for input in corpus.iter().chain(&mixed) {
        let outcome = catch_unwind(AssertUnwindSafe(|| target(input)));
        assert!(outcome.is_ok(), "{name} fails on b\"{}\"", input.escape_ascii());
    }
}

macro_rules! withstand {
    ($($name:ident)*) => {
        $(#[test]
        fn $name() {
            withstands(stringify!($name));
        })*
        #[test]
        fn every_target_is_run() {
            assert_eq!(TARGETS.map(|(name, _)| name), [$(stringify!($name)),*]);
        }
    };
}

withstand!(arguments cursors fences redaction rows sessions settings);
