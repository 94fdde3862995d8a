//! The program that libFuzzer drives: one target of `src/fuzzing.rs`, which the variable `FUZZ_TARGET` names.

#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use pi_lossless_context::fuzzing::TARGETS;

static TARGET: LazyLock<fn(&[u8])> = LazyLock::new(|| {
    let wanted = std::env::var("FUZZ_TARGET").unwrap_or_default();
    let found = TARGETS.iter().find(|(name, _)| *name == wanted);
    found.expect("FUZZ_TARGET names a target of src/fuzzing.rs").1
});

fuzz_target!(|bytes: &[u8]| TARGET(bytes));
