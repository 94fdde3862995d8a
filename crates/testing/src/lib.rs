//! How much a test tries: a tenth in `npm test`, everything in `npm run test:all`, which sets
//! `TEST_SUITE=all`.

use proptest::test_runner::{Config, RngSeed};

/// Whether this is `npm run test:all`.
pub fn everything() -> bool {
    std::env::var("TEST_SUITE").is_ok_and(|suite| suite == "all")
}

/// The share of a test's cases, rounds or bytes for this run; `of` is the number in `npm run test:all`.
pub fn share(of: u32) -> u32 {
    if everything() { of } else { of.div_ceil(10) }
}

/// The cases of a property test: `of` new ones each time in `npm run test:all`; a tenth in `npm test`, always
/// the same, so that a failure is due to the change. `PROPTEST_CASES` and `PROPTEST_RNG_SEED` override both.
pub fn cases(of: u32) -> Config {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = share(of);
    }
    if !everything() && std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

/// The step through a list; `npm run test:all` tries every item.
pub fn stride() -> usize {
    if everything() { 1 } else { 10 }
}
