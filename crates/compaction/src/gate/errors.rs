//! Error codes in prose and in tool output, and whether a text has one.

use regex::Captures;

use super::has;
use lcm_model::{Pattern, pattern};

/// Bytes of a line that are examined.
const LINE: usize = 200;
/// Error codes; a group contains the relevant part, if that is not everything.
static ERRORS: Pattern = pattern!(
    // Of compilers, linters, databases and the like.
    r"(?-u:\b)(?:E[0-9]{4,5}|[EFW][0-9]{3}|TS[0-9]{4,5}|(?:CS|LNK|NU|MSB|CA|BC|FS|RUF|SC|DL|PLR|C|W|NG)[0-9]{4}|ORA-[0-9]{4,5}",
    r"|CVE-[0-9]{4}-[0-9]{4,}|(?:ERR|CERT|SSL_ERROR|UNABLE_TO)_[A-Z_]{3,}|NXDOMAIN|SERVFAIL|(?:RUSTSEC|GHSA)-[\w-]{4,}",
    r"|(?:AADSTS|NETSDK|PGRST|SQLITE_|EXC_|STATUS_|MODULE_|PLS-|TNS-)[A-Z0-9_]{3,}|P[12]0[0-9]{2}|SIG[A-Z]{3,4}|0x[89A-Fa-f][0-9A-Fa-f]{7}",
    r"|OOMKilled|CrashLoopBackOff|(?:Err)?ImagePull(?:BackOff)?|FailedScheduling|FailedMount|UNAVAILABLE|UNIMPLEMENTED|UNAUTHENTICATED",
    r"|E(?:ACCES|ADDRINUSE|ADDRNOTAVAIL|AGAIN|AI_[A-Z]+|BADF|BUSY|CONN(?:REFUSED|RESET|ABORTED)|EXIST|FAULT|HOSTUNREACH|INTEGRITY|INTR",
    r"|INVAL|IO|ISDIR|LIFECYCLE|LOOP|MFILE|MSGSIZE|NAMETOOLONG|NETUNREACH|NFILE|NOENT|NOEXEC|NOMEM|NOSPC|NOSYS|NOTCONN|NOTDIR|NOTEMPTY",
    r"|NOTFOUND|NOTSUP|NXIO|OVERFLOW|PERM|PIPE|PROTO|RESOLVE|ROFS|SRCH|STALE|TARGET|TIMEDOUT|USAGE|XDEV|TXTBSY|DQUOT|NODEV|NOLCK|CHILD|RANGE)",
    // Names in capitals that contain a word for an error; names of classes.
    r"|(?<caps>[A-Z][A-Z0-9_]*_(?:ERROR|FAIL|INVALID|DENIED|EXCEEDED|OUT_OF|VIOLATION|REFUSED|LOST|NOT_|UNKNOWN|UNSUPPORTED|MISSING|BUSY|LOCKED",
    r"|CONFLICT|EXPIRED|UNAVAILABLE|EXHAUSTED|BAD_|CORRUPT|MISMATCH)[A-Z0-9_]*|(?:NOT|INVALID|UNKNOWN|MISSING|BAD)_[A-Z][A-Z0-9_]{4,})",
    r"|(?<class>[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*(?:Error|Exception|Fault|Violation|Failure|NotFound|Refused|Denied|Exceeded|Expired|Mismatch))",
    // Numbers: of databases, of HTTP, of a process.
    r"|(?:SQLSTATE[^A-Za-z0-9\n]{0,3}|ERROR: +)(?<sql>[0-9][0-9A-Z]{4})|(?:ERROR|[Ee]rror) (?<numbered>[0-9]{4})",
    r"|(?:HTTP(?:/[0-9.]+)?|[Ss]tatus(?: ?[Cc]ode)?|[Ee]rror(?: [Cc]ode)?|answer(?:s|ed)|return(?:s|ed)|[Gg]ets?|[Gg]ot)(?: with| a)?[ :/=]{1,2}(?<http>[45][0-9]{2})",
    r"|(?<reason>[45][0-9]{2}) (?:Bad|Unauthorized|Forbidden|Not Found|Conflict|Gone|Too Many|Unprocessable|Internal|Service|Gateway)",
    r"|(?i-u:exit(?:ed|s)?(?: with)?(?: exit)? (?:code|status)|exit(?:ed|s) with|status)[ :=]+(?<exit>[0-9]{1,3})",
    r"|(?i:errno|error code|signal|xid|sqlcode)[ :=#]+(?<small>[0-9]{1,5}))(?-u:\b)",
);
/// Errors that say nothing without their messages.
const GENERIC: [&str; 8] = [
    "AssertionError", "TypeError", "ReferenceError", "RuntimeError", "ValueError", "AttributeError",
    "SyntaxError", "NameError",
];
/// Words in a line about an error, and words of source code that handles one.
const TROUBLE: [&str; 9] = ["error", "warn", "fail", "fatal", "panic", "exit", "signal", "kill", "denied"];
const CODE: [&str; 11] = [
    "new", "except", "raise", "throw", "throws", "catch", "instanceof", "class", "extends", "case", "return",
];
/// Words before a code of few digits.
const BEFORE: [&str; 7] = ["code", "exit", "status", "with", "error", "errno", "signal"];

/// The codes in a message's own text, each as it is compared and as it is shown.
pub(super) fn told(text: &str) -> impl Iterator<Item = (String, String)> {
    ERRORS.captures(text).filter_map(|found| read(&found, false))
}

/// The codes in tool output.
pub(super) fn printed(text: &str) -> impl Iterator<Item = (String, String)> {
    ERRORS.captures(text).filter(|found| is_error(text, found)).filter_map(|found| read(&found, true))
}

/// Whether `lower` has the code; a sentence says `access denied` for `AccessDenied`.
pub(super) fn is_in(lower: &str, key: &str) -> bool {
    // Any number may look like a small code.
    if key.len() < 3 {
        return BEFORE.iter().any(|word| has(lower, &format!("{word} {key}"), ""));
    }
    has(lower, key, "")
        || key.len() > 8 && lower.replace([' ', '_', '-'], "").contains(&key.replace(['_', '-'], ""))
}

fn read(found: &Captures<'_>, in_output: bool) -> Option<(String, String)> {
    let labels = [
        ("SQLSTATE ", "sql"),
        ("error ", "numbered"),
        ("HTTP ", "http"),
        ("HTTP ", "reason"),
        ("exit code ", "exit"),
    ];
    let group = |(label, name)| Some((label, found.name(name)?.as_str()));
    let (label, code) = labels.into_iter().find_map(group).unwrap_or(("", &found[0]));
    let number: u32 = code.parse().unwrap_or_default();
    // In tool output, only unusual failures count.
    let is_daily = match label {
        "HTTP " => in_output && matches!(number, 400 | 401 | 404 | 405),
        "exit code " => number == 0 || in_output && number < 124,
        _ => in_output && (found.name("small").is_some() || GENERIC.contains(&code)),
    };
    let key = found.name("small").map_or(code, |small| small.as_str());
    (!is_daily).then(|| (key.to_lowercase(), format!("{label}{code}")))
}

/// Whether the match looks like an error that occurred, rather than source code that handles one.
fn is_error(text: &str, found: &Captures<'_>) -> bool {
    let (start, end) = found.get(0).map_or((0, 0), |whole| (whole.start(), whole.end()));
    let before = &text[text.floor_char_boundary(start.saturating_sub(LINE))..start];
    let before = before.rsplit('\n').next().unwrap_or_default();
    let after = text[end..text.floor_char_boundary(end + LINE)].split('\n').next().unwrap_or_default();
    let is_quoted = before.ends_with(['\'', '"', '`', '_']) || after.starts_with(['\'', '"', '`', '(', '_']);
    let is_code = before.trim_end_matches(['\'', '"']).to_lowercase().ends_with("code: ");
    let is_first = before.trim().is_empty() || before.trim_end().ends_with([':', ']', '.', '>', 'E']);
    let is_handled = before.split(|c: char| !c.is_alphanumeric()).any(|word| CODE.contains(&word));
    let is_named = found.name("class").or(found.name("caps")).is_some();
    let line = format!("{before}{}{after}", if is_named { "" } else { &found[0] }).to_lowercase();
    let is_trouble = TROUBLE.iter().any(|word| line.contains(word));
    let is_status = found.name("http").or(found.name("reason")).is_some();
    let is_alone = is_first && (is_named || after.starts_with(':'));
    is_code || !is_quoted && !is_handled && (is_trouble || is_status || is_alone)
}
