//! How much a test tries: a tenth of it in `npm test`, all of it in `npm run test:all`, which sets `TEST_SUITE=all`.

use proptest::test_runner::Config;

/// Whether this is `npm run test:all`.
pub(crate) fn everything() -> bool {
    std::env::var("TEST_SUITE").is_ok_and(|suite| suite == "all")
}

/// Of the cases, rounds or bytes that a test tries in `npm run test:all`, as many as this run is to try.
pub(crate) fn share(of: u32) -> u32 {
    if everything() { of } else { of.div_ceil(10) }
}

/// A property test's cases, of as many in `npm run test:all`; `PROPTEST_CASES` overrides both.
pub(crate) fn cases(of: u32) -> Config {
    let config = Config { failure_persistence: None, ..Config::default() };
    if std::env::var_os("PROPTEST_CASES").is_some() { config } else { Config { cases: share(of), ..config } }
}

/// The step through a long list whose every item is tried in `npm run test:all`.
pub(crate) fn stride() -> usize {
    if everything() { 1 } else { 10 }
}
