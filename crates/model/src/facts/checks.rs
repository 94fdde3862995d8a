//! Commands that test or build, and their outcomes.

use std::collections::VecDeque;

use serde::{Deserialize, Serialize};

use crate::{CallOutcome, Pattern, pattern, text};

/// Characters kept of a command, and of the line with its outcome: enough that a secret in it is masked
/// completely.
const KEPT: usize = 400;
/// UTF-16 units that Pi keeps of what a script's failed call said.
const CUT: usize = 500;

/// Commands that check the work, at the start of a command or after `&&`, `;`, `|` or a variable.
static JUDGES: Pattern = pattern!(
    r"(?m)(?:^|[;&|(]\s*|\b(?:[A-Z_]+=\S*|timeout \S+|time|env|npx|bunx|uv run|poetry run|pnpm exec|yarn) +)",
    r"(?:cargo +(?:\+\S+ +)?(?:test|t|nextest|build|b|check|c|clippy|bench|fmt +--check)",
    r"|(?:npm|pnpm|yarn|bun|deno) +(?:(?:run|run-script|task) +)?(?:\S*(?:test|build|check|lint|typecheck|tsc|ci|verify)\S*|t)",
    r"|node +(?:\S+ +)*--test|go +(?:test|build|vet)|make|cmake +--build|ninja|ctest|meson +test|bazel +(?:test|build)",
    r"|(?:python3?|py) +-m +(?:pytest|unittest|mypy|ruff)|pytest|tox|nox|mypy|pyright|ruff|flake8|pylint",
    r"|jest|vitest|mocha|ava|playwright +test|cypress +run|tsc|eslint|biome|prettier +--check",
    r"|(?:\./)?(?:gradlew?|mvnw?)|sbt|dotnet +(?:test|build)|swift +(?:test|build)|xcodebuild|zig +(?:build|test)",
    r"|mix +(?:test|compile)|rspec|rake|bundle +exec +\S+|phpunit|composer +test|stack +(?:test|build)|cabal +(?:test|build)",
    r"|\S*/(?:test|check|build|ci)\S*\.(?:sh|py|js|mjs|ts)|shellcheck|pre-commit)\b",
);

/// The line of an output that best shows how a command failed.
static FAILURES: Pattern = pattern!(
    r"(?m)^.*(?:\b[1-9]\d* (?:tests? )?(?:failed|failing|failures?|errors?)\b|test result: FAILED|^FAILED\b|^FAIL\b|npm ERR!|npm error",
    r"|could not compile|BUILD FAILED|error(?:\[\w+\])?: |panicked at|^Traceback |\b[A-Z]\w*(?:Error|Exception): |^not ok \d|^✖ |^(?:#|ℹ) fail [1-9]).*$",
);

/// A line that reveals a failure where another command's exit code hides it.
static HIDDEN: Pattern = pattern!(
    r"(?m)^(?:.*test result: FAILED|FAILED\b|FAIL\b|npm ERR!|error: could not compile|BUILD FAILED|not ok \d",
    r"|.*\berror TS\d+: |.*: error: |make(?:\[\d+\])?: \*\*\* |.*\bFound [1-9]\d* errors?\b|Tests run: .*(?:Failures|Errors): [1-9]",
    r"|(?i:build failed|error during build)",
    r"|.*\b[1-9]\d* (?:tests? )?(?:failed|failing)\b|(?:#|ℹ) fail [1-9]|✖ |(?i:exit(?: code)?|rc|status|code)\s*[:=]\s*[1-9]).*$",
);
/// A line that shows that all passed, where another command's exit code hides it.
static SUCCESSES: Pattern = pattern!(
    r"(?mi)^.*(?:\b[1-9]\d* (?:tests? )?pass(?:ed|ing)?\b|\bpass(?:ed)? [1-9]|test result: ok|^ok\b|^PASS\b|[✔✓]|\bOK\b|\b0 (?:errors?|failures?|failed|problems)\b",
    r"|\ball checks passed|^ *Finished\b|\bBUILD SUCCESS|\bsuccess(?:fully)?\b|\bsucceeded\b|\bno (?:issues|errors|problems)\b|\bup to date\b|^(?:exit(?: code)?|rc|status|code)\s*[:=]\s*0\s*$).*$",
);
/// A script that ends with the first command that fails.
static STOPPING: Pattern = pattern!(r"(?m)(?:^|[;&|]\s*)set -\w*e");
/// The start of a here-document, with the line that ends it.
static DOCUMENT: Pattern = pattern!(r#"(?:^|[^<])<<-?\s*(?:'([^'\n]+)'|"([^"\n]+)"|\\?([A-Za-z_]\w*))"#);
/// Marks at the start of a line about something that passed.
const PASSED: [&str; 5] = ["✔", "✓", "ok ", "PASS", "passed"];

/// A command with its outcome.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// The position of its result.
    pub at: usize,
    /// The command, on one line.
    pub command: String,
    /// The line that shows how it failed; `None` if it passed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
}

impl Check {
    /// Returns the outcome of `command`, if it tests or builds.
    pub(super) fn of(at: usize, command: &str, output: &str, has_failed: bool) -> Option<Self> {
        // Pi ends the output of a failed command with its exit code.
        let is_telling = |line: &&str| {
            !line.trim().is_empty()
                && !["Command exited with", "npm notice"].iter().any(|no| line.starts_with(no))
        };
        let last = || output.lines().rfind(is_telling);
        let line = match has_failed {
            true => telling(&FAILURES, output).or_else(last).or(Some("failed")),
            // Only its output tells: nothing, where it says neither.
            false if hides_code(command) => {
                let hidden = telling(&HIDDEN, output);
                if hidden.is_none() && !SUCCESSES.is_in(output) {
                    return None;
                }
                hidden
            }
            false => None,
        };
        Self::ended(at, command, line)
    }

    /// Returns the outcome of a `command` that a script ran, if it tests or builds and its outcome is known: the
    /// script got the output, and `shown` is what it shows of it.
    pub(super) fn in_script(at: usize, command: &str, outcome: &CallOutcome, shown: &str) -> Option<Self> {
        match outcome {
            CallOutcome::Done if hides_code(command) => {
                Self::ended(at, command, Some(telling(&HIDDEN, shown)?))
            }
            CallOutcome::Done => Self::ended(at, command, None),
            CallOutcome::Failed(said) if said.encode_utf16().count() < CUT => {
                Self::of(at, command, said, true)
            }
            // Its end, which would say more than any other line, is cut off.
            CallOutcome::Failed(said) => {
                let line = telling(&FAILURES, said).or_else(|| telling(&FAILURES, shown));
                Self::ended(at, command, line.or(Some("failed")))
            }
            CallOutcome::Unfinished => None,
        }
    }

    /// The outcome of `command`, with the line that shows how it failed, if it tests or builds.
    fn ended(at: usize, command: &str, failure: Option<&str>) -> Option<Self> {
        let failure = failure.map(|line| text::one_line(line, KEPT));
        JUDGES.is_in(&without_documents(command)).then(|| Self {
            at,
            command: text::one_line(command, KEPT),
            failure,
        })
    }
}

/// Whether the exit code of a command is another one's than its check's: of what follows, or of the end of a pipe.
fn hides_code(command: &str) -> bool {
    let command = without_documents(command);
    let (stops, has_pipefail) = (STOPPING.is_in(&command), command.contains("pipefail"));
    let is_between = |c: char| c == '|' && !has_pipefail || matches!(c, ';' | '\n') && !stops;
    let last = command.split(is_between).map(str::trim).rfind(|part| !part.is_empty());
    !last.is_some_and(|last| JUDGES.is_in(last))
}

/// A command without its here-documents: they are written to files and messages, and mention commands.
fn without_documents(command: &str) -> String {
    let mut out = String::new();
    let mut ends: VecDeque<String> = VecDeque::new();
    for line in command.lines() {
        if let Some(end) = ends.front() {
            if line.trim() == end {
                ends.pop_front();
            }
            continue;
        }
        out.push_str(line);
        out.push('\n');
        ends.extend(DOCUMENT.captures(line).filter_map(|found| {
            (1..=3).find_map(|group| found.get(group)).map(|end| end.as_str().to_owned())
        }));
    }
    out
}

/// The first of these lines in an output that is not about something that passed.
fn telling<'o>(lines: &'static Pattern, output: &'o str) -> Option<&'o str> {
    let is_pass = |line: &str| PASSED.iter().any(|mark| line.trim_start().starts_with(mark));
    lines.found(output).map(|line| line.as_str()).find(|line| !is_pass(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_scripts_command_has_an_outcome_if_that_is_known() {
        let outcome = |command, outcome: &CallOutcome, shown| {
            Check::in_script(3, command, outcome, shown).map(|check| check.failure)
        };
        let failed = |said: &str| CallOutcome::Failed(said.into());
        let done = CallOutcome::Done;
        assert_eq!(outcome("npm test", &done, "1 failed"), Some(None));
        assert_eq!(outcome("ls", &done, ""), None);
        assert_eq!(outcome("npm test", &CallOutcome::Unfinished, ""), None);
        let whole = failed("no rule\n\nCommand exited with code 2");
        assert_eq!(outcome("make", &whole, "1 failed"), Some(Some("no rule".into())));
        let cut = failed(&"ok\n".repeat(200)[..500]);
        assert_eq!(outcome("npm test", &cut, "sorry"), Some(Some("failed".into())));
        assert_eq!(outcome("npm test", &cut, "so\n1 failed\n"), Some(Some("1 failed".into())));
        // A pipe hides the exit code.
        assert_eq!(outcome("npm test | tail", &done, "2 passed"), None);
        assert_eq!(outcome("npm test | tail", &done, "1 failed"), Some(Some("1 failed".into())));
    }

    #[test]
    fn only_commands_that_test_or_build_have_an_outcome() {
        let outcome =
            |command, output, failed| Check::of(3, command, output, failed).map(|check| check.failure);
        for command in [
            "cargo test -q",
            "cd src && npm run test:unit",
            "RUST_LOG=1 cargo +nightly clippy",
            "cat > a.mjs <<'EOF'\nmake(1);\nEOF\nnpm test",
            "grep <<< make x\nnpm test",
            "./scripts/check.sh",
            "npx tsc --noEmit",
            "python -m pytest tests/a.py",
            "timeout 60 go test ./... | tail -5",
        ] {
            assert_eq!(outcome(command, "ok", false), Some(None), "{command}");
        }
        for command in [
            "cat > ci.sh <<'EOF'\nnpm ci\nnpm test\nEOF\nchmod +x ci.sh",
            "git commit -F - <<EOF\nFix it\n\nnpm test passes now\nEOF",
            "tee a <<-\"END\"\n\tmake\n\tEND",
            "ls tests",
            "git commit -m 'make it build'",
            "cat makefile",
            "echo cargo-test",
            "sed -n 1,9p check.rs",
        ] {
            assert_eq!(outcome(command, "ok", false), None, "{command}");
        }
        let hidden = "running 3 tests\ntest result: FAILED. 2 passed; 1 failed\n";
        assert_eq!(
            outcome("cargo test | tail", hidden, false),
            Some(Some("test result: FAILED. 2 passed; 1 failed".into()))
        );
        // The exit code is another command's.
        for (command, output, expected) in [
            ("npm test; echo \"exit: $?\"", "✔ one\nexit: 1", Some(Some("exit: 1"))),
            ("npm test; echo rc=$?", "rc=0", Some(None)),
            ("cd shop\nnpm test\ngit status --short", "# pass 1\n# fail 5\n M a.js", Some(Some("# fail 5"))),
            ("npm test > log 2>&1; tail -8 log", "npm notice", None),
            (
                "cargo test > log 2>&1; tail -3 log",
                "test result: FAILED. 2 passed; 1 failed",
                Some(Some("test result: FAILED. 2 passed; 1 failed")),
            ),
            ("python -m pytest -q; true", "4 passed in 0.12s", Some(None)),
            (
                "npx tsc --noEmit 2>&1 | head -20",
                "src/a.ts(3,5): error TS2322: Type",
                Some(Some("src/a.ts(3,5): error TS2322: Type")),
            ),
            (
                "make check 2>&1 | tail -3",
                "make: *** [Makefile:1: check] Error 1",
                Some(Some("make: *** [Makefile:1: check] Error 1")),
            ),
            (
                "npx eslint . | tail -4",
                "✖ 3 problems (2 errors, 1 warning)",
                Some(Some("✖ 3 problems (2 errors, 1 warning)")),
            ),
            (
                "npm run build | tail",
                "error during build:\nBuild failed with 1 error",
                Some(Some("error during build:")),
            ),
            (
                "mvn -q test | tail -5",
                "Tests run: 5, Failures: 1, Errors: 0",
                Some(Some("Tests run: 5, Failures: 1, Errors: 0")),
            ),
            ("make test | tail", "Tests run: 5, Failures: 0, Errors: 0\nBUILD SUCCESS", Some(None)),
            ("npx tsc | tail", "Found 0 errors. Watching for file changes.", Some(None)),
            ("git pull; npm test", "", Some(None)),
            ("set -e\nnpm test\necho done", "done", Some(None)),
            ("npm test && echo done", "done", Some(None)),
            ("set -o pipefail; npm test | tail -3", "", Some(None)),
        ] {
            let expected = expected.map(|line: Option<&str>| line.map(ToOwned::to_owned));
            assert_eq!(outcome(command, output, false), expected, "{command}");
        }
        assert_eq!(
            outcome("make", "no rule\n\nCommand exited with code 2", true),
            Some(Some("no rule".into()))
        );
        assert_eq!(outcome("npm test", "0 failed, 12 passed", false), Some(None));
        for (said, line) in [
            ("✔ one\n✖ two (3ms)\nℹ fail 1\nnpm notice New version", "✖ two (3ms)"),
            ("broken\nnpm notice\nnpm notice New version\n", "broken"),
        ] {
            assert_eq!(outcome("npm test", said, true), Some(Some(line.into())));
        }
        let thrown = "✔ throws TypeError: bad input\n✔ retries after 3 failures";
        assert_eq!(outcome("npm test", thrown, false), Some(None));
        assert_eq!(outcome("npm test | tail", thrown, false), Some(None));
        assert_eq!(outcome("set -e\ncargo build", "ok", false), Some(None));
        // A pipe's end succeeds, whatever the command did.
        let piped = "node --test a.test.js 2>&1 | tail -5";
        assert_eq!(outcome(piped, "Could not find 'a.test.js'", false), None);
        assert_eq!(outcome(piped, "ℹ pass 4\nℹ fail 0", false), Some(None));
        assert_eq!(outcome(piped, "ℹ pass 4\nℹ fail 1", false), Some(Some("ℹ fail 1".into())));
        assert_eq!(outcome(&format!("set -o pipefail; {piped}"), "", false), Some(None));
    }
}
