//! How much a test tries: a tenth of it in `npm test`, all of it in `npm run test:all`, which sets `TEST_SUITE=all`.

use proptest::test_runner::{Config, RngSeed};

/// Whether this is `npm run test:all`.
pub(crate) fn everything() -> bool {
    std::env::var("TEST_SUITE").is_ok_and(|suite| suite == "all")
}

/// Of the cases, rounds or bytes that a test tries in `npm run test:all`, as many as this run is to try.
pub(crate) fn share(of: u32) -> u32 {
    if everything() { of } else { of.div_ceil(10) }
}

/// A property test's cases: as many as given, and new ones each time, in `npm run test:all`; a tenth of them in `npm test`, always
/// the same, so that a change is never blamed for a case it did not touch. `PROPTEST_CASES` and `PROPTEST_RNG_SEED` override both.
pub(crate) fn cases(of: u32) -> Config {
    let mut config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_none() {
        config.cases = share(of);
    }
    if !everything() && std::env::var_os("PROPTEST_RNG_SEED").is_none() {
        config.rng_seed = RngSeed::Fixed(1);
    }
    config
}

/// The step through a long list whose every item is tried in `npm run test:all`.
pub(crate) fn stride() -> usize {
    if everything() { 1 } else { 10 }
}
