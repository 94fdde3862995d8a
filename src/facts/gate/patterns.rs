//! Defines anchors: what files, names and errors look like, and what only resembles them.

use std::sync::LazyLock;

use regex::{Captures, Regex};

/// Bytes of a line that are examined.
pub(super) const LINE: usize = 200;
/// Error codes; a group contains the relevant part, if that is not everything.
pub(super) const ERROR: &str = concat!(
    // Of compilers, linters, databases and the like.
    r"(?-u:\b)(?:E[0-9]{4,5}|[EFW][0-9]{3}|TS[0-9]{4,5}|(?:CS|LNK|NU|MSB|CA|BC|FS|RUF|SC|DL|PLR|C|W)[0-9]{4}|ORA-[0-9]{4,5}",
    r"|CVE-[0-9]{4}-[0-9]{4,}|(?:ERR|CERT|SSL_ERROR|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED)_[A-Z_]{3,}|NXDOMAIN|SERVFAIL",
    r"|(?:RUSTSEC|GHSA)-[\w-]{4,}|(?:AADSTS",
    r"|NETSDK|PGRST|SQLITE_|EXC_|STATUS_|MODULE_|PLS-|TNS-|SQLCODE[ :]+-)[A-Z0-9_]{3,}|P[12]0[0-9]{2}",
    r"|SIG(?:SEGV|ABRT|KILL|BUS|ILL|FPE|TERM|PIPE)|0x[89A-Fa-f][0-9A-Fa-f]{7}",
    // Why a container does not run; the status of a remote call.
    r"|(?<state>OOMKilled|CrashLoopBackOff|(?:Err)?ImagePull(?:BackOff)?|FailedScheduling|FailedMount|Evicted|NodeNotReady)",
    r"|UNAVAILABLE|UNIMPLEMENTED|UNAUTHENTICATED|FAILED_PRECONDITION|ALREADY_EXISTS|DATA_LOSS",
    r"|code = (?<grpc>[A-Z][A-Za-z]+)",
    r"|E(?:ACCES|ADDRINUSE|ADDRNOTAVAIL|AGAIN|AI_[A-Z]+|BADENGINE|BADF|BUSY|CONN(?:REFUSED|RESET|ABORTED)|DEADLK|EXIST",
    r"|FAULT|FBIG|HOSTUNREACH|INTEGRITY|INTR|INVAL|IO|ISDIR|LIFECYCLE|LOOP|MFILE|MSGSIZE|NAMETOOLONG|NETUNREACH|NFILE|NOENT",
    r"|NOEXEC|NOMEM|NOSPC|NOSYS|NOTCONN|NOTDIR|NOTEMPTY|NOTFOUND|NOTSUP|NXIO|OVERFLOW|PERM|PIPE|PROTO|RESOLVE|ROFS|SRCH",
    r"|STALE|TARGET|TIMEDOUT|USAGE|XDEV|TXTBSY|DQUOT|NODEV|AFNOSUPPORT|PROTONOSUPPORT|NOTSOCK|NETDOWN|NOBUFS|NOLCK|CHILD|RANGE",
    r"|ILSEQ|ALREADY|INPROGRESS|ISCONN|SHUTDOWN|HOSTDOWN|OPNOTSUPP|NOTTY|CANCELED|SOCKETTIMEDOUT|NOTIMPL|NOKEY|DEADLOCK)",
    // Lints; names in capitals that contain a word for an error.
    r"|(?:B|UP|SIM|PT|R|S|G|SA|D|N|IDE|[A-Z]{3}-[0-9]{2})[0-9]{3,4}",
    r"|(?<caps>[A-Z][A-Z0-9_]*_(?:ERROR|FAIL|INVALID|DENIED|EXCEEDED|OUT_OF|VIOLATION|REFUSED|LOST|NOT_|UNKNOWN|UNSUPPORTED|MISSING|BUSY|LOCKED",
    r"|CONFLICT|EXPIRED|UNAVAILABLE|EXHAUSTED|BAD_|CORRUPT|MISMATCH)[A-Z0-9_]*|(?:NOT|INVALID|UNKNOWN|E|MISSING|BAD)_[A-Z][A-Z0-9_]{4,})",
    r"|(?:SQLSTATE[^A-Za-z0-9\n]{0,3}|ERROR: +)(?<sql>[0-9][0-9A-Z]{4})|E(?:RROR|rror) (?<mysql>[0-9]{4})",
    r"|(?:HTTP(?:/[0-9.]+)?|[Ss]tatus(?: ?[Cc]ode)?|[Ee]rror(?: [Cc]ode)?)[ :/=]{1,2}(?<http>[45][0-9]{2})",
    r"|(?:answers|answered|returns|returned|sends|gibt|liefert|devuelve|renvoie|responde)(?: with| mit| con)?(?: a)? ?",
    r"(?<status>40[1-9]|41[0-9]|42[2-9]|50[1-9])|(?:[Gg]ets?|[Gg]ot|[Gg]ave|[Gg]ives|[Tt]hrows|[Aa]n?|→|->) (?<bare>40[01349]|41[0235]|42[2-9]|50[0-4])s?",
    r"|(?<reason>[45][0-9]{2}) (?:Bad|Unauthorized|Forbidden|Not Found|Conflict|Gone|Too Many|Unprocessable|Internal|Service|Gateway)",
    r"|(?i-u:exit(?:ed|s)?(?: with)?(?: exit)? (?:code|status)|exit(?:ed|s) with|status)[ :=]+(?<exit>[0-9]{1,3})",
    r"|(?<numbered>(?i:errno|error(?: code)?|signal|msg|xid|sqlcode)[ :=#]+[0-9]{1,5}|[Cc]ode[ :=]+[0-9]{3,8})",
    r"|(?<class>[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*(?:Error|Exception|Warning|Fault",
    r"|Violation|Failure|Invalid|NotFound|Refused|Denied|Exceeded|Deadlocked|Expired|Mismatch)|[a-z]\w*\.(?<small>[a-z]+error)|Err[A-Z][a-z][A-Za-z0-9]+))(?-u:\b)",
);
/// What stands where a code does: after `Error: `; before a colon at the start of a sentence; a status alone.
const AFTER: &str = r"(?:[Ee]rror|ERROR|Exception|[Ff]ailed|FAILED|\)): +([A-Z][A-Z_-]{6,}[A-Z]|[A-Z]{1,6}-?[0-9]{2,6})(?-u:\b)";
const LEAD: &str =
    r"(?m)(?:^|[.!?] +)([A-Z]{1,6}-?[0-9]{2,6}|[0-9]{2}[A-Z0-9]{3}|[A-Z]+[_-][A-Z_-]*[A-Z]|[a-z]+_[a-z_]+):";
const STATUS: &str = r"(?m)(?:^|[ (\[])(409|41[03]|42[29]|50[234])s?(?:[,.;:)\]]| (?:in|on|when|if|from|for|with|after|or|and|errors?|responses?)(?-u:\b)|$)";
/// Definitions of names; each group is one form.
pub(super) const DEFINITION: &str = concat!(
    // fn, def, class and the like, with any modifiers.
    r"(?m)^(?:local )?function \w+[.:](\w+)|^function (\w+-\w+)|\((?:defn-?|defun|define) \(?([\w!?-]+)|^[ \t]*(?:scope|attribute) :(\w+)",
    r"|^[ \t]*(?:(?:pub(?:\([a-z: ]+\))?|@\w+|[a-z]+)[ \t]+)*(?:fn|def|defp|defmodule|entity|proc|defmacro|func|function\*?|fun|class",
    r"|struct|enum|trait|interface|protocol|record|type|module|macro_rules!|#define)[ \t]+(?:\([^)\n]*\)[ \t]*|self\.)?([A-Za-z_]\w*)",
    r"|^[ \t]*(?:[a-z]+[ \t]+)*(?:object|actor|extension|union|rpc",
    r"|message|service|model|contract|event|error|input|mixin|typedef|(?:- )?alert:)[ \t]+([A-Z]\w+)|^[ \t]*sub[ \t]+(\w+)[ \t]*\{",
    // Constants and variables, unless they are local; names in capitals.
    r"|^(?:(?:pub(?:\([a-z: ]+\))?|export|default|declare)[ \t]+)*(?:const|let|var|val|our|signal|constexpr)[ \t]+(?:mut[ \t]+|[a-z]\w*[ \t]+)?[$@%]?([A-Za-z_]\w*)",
    r"|^[ \t]*(?:(?:pub(?:\([a-z: ]+\))?|const|static|val|export|ENV|ARG)[ \t]+)*([A-Z][A-Z0-9_]{3,})[ \t]*[:=]",
    // Methods and fields, recognized by their modifiers or by what follows; functions in C.
    r"|^[ \t]*(?:(?:public|private|protected|internal|static|async|final|virtual|abstract|readonly|volatile|get)[ \t]+)+",
    r"(?:[\w<>\[\],.?*&]+[ \t]+)*[*&]?([A-Za-z_]\w*)[ \t]*(?:[(=;]|\{ get)",
    r"|^[ \t]*#?([A-Za-z_]\w*)\([^()`\n]*\)(?:: [^\n]+)?[ \t]*\{[ \t]*$",
    r"|^(?:[A-Za-z_][\w:<>,]*[ \t*&]+)+(?:\w+::)?([A-Za-z_]\w*)\([^;\n]*\)?[ \t]*\{?$",
    r"|^([a-z]\w+) :: |^let (?:rec )?([a-z]\w+) [\w(][^=\n]*=|^([a-z]\w+)\([^\n]*\) ->",
    r"|(?i:\bcreate (?:or replace )?(?:unique )?(?:table|index|function|procedure|materialized view|view|type|trigger|policy|role)(?: concurrently)?",
    r"(?: if not exists)?|\badd (?:column|constraint)(?: if not exists)?|\brename (?:(?:column )?\w+ )?to) (?:\w+\.)?(\w+)",
    // Terraform's variables; CMake's options; a Python module's variables.
    r#"|(?:\benv(?:iron)?(?:\.get\(|\.|\[|::var\(|\()|[gG]etenv\()["']?([A-Z][A-Z0-9_]{3,})"#,
    r"|^[ \t]+(?:static )?[A-Za-z][\w<>\[\],?]* ([a-z]\w+)\([^;\n]*\)[^;\n=]*\{$|^local function (?:\w+[.:])?(\w+)|^(\w+) *(?:<-|=) *function",
    r"|^(?:exports|module\.exports)\.(\w+) =",
    r#"|^(?:variable|output|module|(?:resource|data) "\w+") "([\w-]+)" *\{|^ *(?:option|set)\(([A-Z]\w+)"#,
    r"|^([a-z]+_\w+)(?:: [^=\n]+)? = |^[ \t]+pub const ([a-z]\w+)",
);
/// Assignments of settings.
pub(super) const SETTING: &str = r#"(?m)^[ \t]*"?([A-Za-z_][\w-]*)"?[ \t]*[:=]"#;
/// In a command: a file that is written from it, created or changed in place, removed or moved.
pub(super) const COMMAND: &str = concat!(
    r#"(?m)(?:>|\btee(?: -a)?)[ \t]*["']?(?<written>[\w@./~+-]+)["']?[^\n]*<<|<<[^\n>]*>[ \t]*["']?(?<sent>[\w@./~+-]+)"#,
    r"|\b(?:echo|printf) [^\n|;&]*?>>? *(?<into>[\w@./~+-]+)",
    r"|\btouch +(?<touched>[^;&|\n]*)|\b(?:sed +-i|perl +-p?i)(?<changed>[^;&|\n]*)",
    r"|(?:^|[;&|(] *|(?:git|sudo) +)(?:rm +(?<removed>[^;&|\n]*)|mv +(?<moved>[^;&|\n]*))",
);

pub(super) static ERRORS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(ERROR).ok());
pub(super) static AFTERS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(AFTER).ok());
pub(super) static LEADS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(LEAD).ok());
pub(super) static STATUSES: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(STATUS).ok());
pub(super) static DEFINITIONS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(DEFINITION).ok());
pub(super) static SETTINGS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SETTING).ok());
pub(super) static COMMANDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(COMMAND).ok());

/// A technical term: names joined by dashes, an option, or the number of an issue.
const TERM: &str = r"^(?:[A-Za-z]\w*(?:-\w+)+|--[a-z][\w-]+|#[0-9]{2,5})$";
static TERMS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(TERM).ok());

/// File extensions, for names without a folder; file names without extension; products that look like files.
pub(super) const ENDINGS: &str = " rs ts tsx js jsx mjs cjs py go java kt kts swift c h cc cpp hpp cs rb php sql sh bash ps1 lua zig ex exs erl hs \
    scala vue svelte css scss html md mdx rst txt json jsonl yaml yml toml ini cfg conf xml gradle proto tf csv parquet ipynb lock \
    clj cljs edn dart onnx graphql gql prisma vhd sv v j2 tex R r Rmd adoc fs fsx tfvars cu f90 bat cmd wgsl glsl hlsl xaml patch diff sol astro \
    nix service timer dump gd mod sum sbt pbxproj plist storyboard po ml mli jl pl pm pem crt key sqlite db log png jpg svg xlsx pdf groovy hcl \
    properties env jinja erb ejs hbs twig less sass styl m mm asm s vb nim elm hrl wasm avro cron rules nft csproj sln ";
pub(super) const FILES: &str = " Dockerfile Containerfile Makefile Jenkinsfile Procfile Gemfile Rakefile Vagrantfile Caddyfile Justfile \
    Podfile Brewfile Fastfile CODEOWNERS .env .gitignore .dockerignore .npmrc .eslintrc .prettierrc .editorconfig ";
pub(super) const PRODUCTS: &str = " node next vue nuxt three express ";
/// Extensions of files that define nothing; extensions of settings files.
pub(super) const PROSE_ENDINGS: &str = " md mdx rst txt jsonl html css scss csv lock svg xml ";
pub(super) const SETTINGS_ENDINGS: &str = " json yaml yml toml ini cfg conf env properties ";
/// Folders without the user's own files.
pub(super) const NOISE: &str =
    " node_modules .git __pycache__ .venv venv site-packages tmp temp dist target ";
/// Names without meaning.
pub(super) const PLAIN: &str = " new main run init get set add default from into fmt drop clone next test tests setup teardown constructor \
    render tostring index self this update data value result handle name args config if for while switch catch return else match \
    function describe beforeeach aftereach register ";
/// Parts of words such as `built-in`, which are no technical terms.
pub(super) const PARTICLES: &str =
    " a in on of to up by off out at as and or non not self only based like free ";
/// Errors that say nothing without their messages.
pub(super) const GENERIC: &str = " AssertionError TypeError ReferenceError RuntimeError ValueError AttributeError SyntaxError NameError IndexError ";
/// Beginnings of sentences that only announce the next step.
pub(super) const PLANS: [&str; 5] = ["let me ", "let's ", "i'll ", "i will ", "i'm going to "];
/// Words in a line about an error, and words in source code that handles one.
pub(super) const TROUBLE: &str = "error warn fail fatal panic exception err! exit signal kill denied cannot";
pub(super) const CODE: &str =
    " new except raise throw throws catch instanceof class extends implements import case use return if ";

/// The technical terms in `text`.
pub(super) fn terms(text: &str) -> impl Iterator<Item = &str> {
    let pieces = text.split(|c: char| c.is_whitespace() || ",;()\"“”'’`".contains(c));
    pieces
        .map(|word| word.trim_matches(['.', ':', '!', '?', '*']))
        .filter(|word| word.len() > 3 && word.len() < 80)
        .filter(|word| TERMS.as_ref().is_some_and(|terms| terms.is_match(word)))
}

/// What looks like a file path in a text, without line numbers.
pub(super) fn paths(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| is_letter(c) || "_-./\\~@+".contains(c);
    text.split_inclusive(move |c: char| !is_part(c)).filter_map(move |piece| {
        let word = piece.trim_end_matches(|c: char| !is_part(c)).trim_end_matches(['.', '/', '-']);
        if is_among(FILES, end_of(word, 1)) || end_of(word, 1).starts_with(".env.") {
            return Some(word);
        }
        let (stem, ending) = end_of(word, 1).rsplit_once('.')?;
        let is_file = if let Some((host, _)) = word.split_once('/') {
            let is_ending = ending.len() <= 7 && ending.starts_with(|c: char| c.is_ascii_lowercase());
            let is_host = host.len() > 2 && host.contains('.');
            is_ending && !stem.is_empty() && !is_host && !word.starts_with("//")
        } else {
            let is_product =
                ending == "js" && (stem.starts_with(char::is_uppercase) || is_among(PRODUCTS, stem));
            stem.contains(char::is_alphabetic)
                && stem.len() > 1
                && is_among(ENDINGS, ending)
                && !is_product
                && !stem.contains('@')
                && !piece.ends_with('(')
        };
        is_file.then_some(word)
    })
}

/// The names defined in `text` in one form, each with its line.
pub(super) fn definitions<'t>(
    way: &'static LazyLock<Option<Regex>>,
    text: &'t str,
) -> impl Iterator<Item = (&'t str, &'t str)> {
    captures(way, text).filter_map(|found| {
        let name = found.iter().skip(1).flatten().next()?.as_str();
        let line = text[found.get(0)?.start()..].trim_start();
        Some((name, line[..line.floor_char_boundary(LINE)].lines().next()?.trim_end()))
    })
}

/// Whether the match looks like an error that occurred, rather than source code that handles one.
pub(super) fn is_of_error_line(text: &str, found: &Captures<'_>) -> bool {
    let (start, end) = found.get(0).map_or((0, 0), |whole| (whole.start(), whole.end()));
    let before = &text[text.floor_char_boundary(start.saturating_sub(LINE))..start];
    let before = before.rsplit('\n').next().unwrap_or_default();
    let after = text[end..text.floor_char_boundary(end + LINE)].split('\n').next().unwrap_or_default();
    let is_code = before.trim_end_matches(['\'', '"']).to_lowercase().ends_with("code: ");
    let is_first = matches!(before.trim(), "") || before.trim_end().ends_with([':', ']']);
    if is_code || is_first && after.starts_with(':') {
        return true;
    }
    let is_quoted = before.ends_with(['\'', '"', '`', '_']) || after.starts_with(['\'', '"', '`', '(', '_']);
    if found.name("state").is_some() {
        return true;
    }
    if is_quoted || words(before).any(|word| is_among(CODE, word)) {
        return false;
    }
    let is_class = found.name("class").or(found.name("caps")).is_some();
    let is_thrown =
        matches!(before.trim(), "" | "E") || before.trim_end().ends_with([':', '.', ']', '>', '(']);
    let line = format!("{before}{}{after}", if is_class { "" } else { &found[0] }).to_lowercase();
    (is_class && is_thrown)
        || found.name("http").or(found.name("reason")).or(found.name("grpc")).is_some()
        || TROUBLE.split(' ').any(|word| line.contains(word))
}

pub(super) fn captures<'t>(
    regex: &'static LazyLock<Option<Regex>>,
    text: &'t str,
) -> impl Iterator<Item = Captures<'t>> {
    regex.as_ref().into_iter().flat_map(move |regex| regex.captures_iter(text))
}

/// Whether it can be part of a word. Chinese and Japanese have no spaces between a name and its neighbors.
pub(super) fn is_letter(c: char) -> bool {
    c.is_alphanumeric() && !('\u{2e80}'..'\u{fb00}').contains(&c)
}

pub(super) fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !is_letter(c) && c != '_')
}

/// The last `parts` components of a path.
pub(super) fn end_of(path: &str, parts: usize) -> &str {
    path.rmatch_indices('/').nth(parts - 1).map_or(path, |(at, _)| &path[at + 1..])
}

/// Whether `end` is the whole path or its last components.
pub(super) fn ends_at(path: &str, end: &str) -> bool {
    let before = path.strip_suffix(end.trim_start_matches("./"));
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// The path without its extension.
pub(super) fn stem(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(stem, _)| stem)
}

pub(super) fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Whether the file is generated or temporary.
pub(super) fn is_noise(path: &str) -> bool {
    let is_hash = |part: &str| {
        part.len() > 7
            && part.chars().all(|c| c.is_ascii_hexdigit())
            && part.contains(|c: char| c.is_ascii_digit())
            && part.contains(|c: char| c.is_ascii_alphabetic())
    };
    path.split('/').any(|part| is_among(NOISE, part)) || path.split(['/', '.', '-', '_']).any(is_hash)
}

/// Whether the name consists of several words, as only identifiers do.
pub(super) fn is_compound(name: &str) -> bool {
    let name = name.trim_matches('_');
    let mut pairs = name.chars().zip(name.chars().skip(1));
    let is_joined = name.contains('_') || pairs.any(|(one, next)| one.is_lowercase() && next.is_uppercase());
    is_joined && !name.starts_with(|c: char| c.is_ascii_digit()) && !is_noise(name)
}

pub(super) fn is_of_tests(path: &str) -> bool {
    words(path).any(|word| is_among(" test tests spec specs __tests__ e2e ", word))
        || ["test_", "_test.", "_spec.", "Test.", "Tests.", "Spec."].iter().any(|part| path.contains(part))
}

/// Whether a definition is a value, rather than a function or a type.
pub(super) fn is_value(name: &str, line: &str) -> bool {
    let rest = line.split_once(name).map_or("", |(_, rest)| rest.trim_start());
    let is_other =
        ["=>", "function", "type ", "lambda", "def ", "fun "].iter().any(|word| line.contains(word));
    rest.starts_with(['=', ':', ';']) && rest.contains(['=', ';']) && !is_other
}

pub(super) fn is_plain(name: &str) -> bool {
    name.len() < 3 || name.starts_with("__") || is_among(PLAIN, &name.to_lowercase())
}

pub(super) fn is_among(words: &str, word: &str) -> bool {
    !word.is_empty() && !word.contains(' ') && words.contains(&format!(" {word} "))
}
