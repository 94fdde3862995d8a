//! The gate: what a model's summary lost of what later work rests on is put back by machine, in one line.
//!
//! Anchors are words that cannot be said in another way: files that were changed or named, names that were defined,
//! numbers with a unit, error codes. They are looked for where they mean something: in what people and models say, in
//! what an edit writes, and in those lines of tool output that look like an error. A summary has an anchor if it has it
//! in any spelling a reader would take for the same.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use numbers::{Number, numbers};

use crate::model::{Message, Part, Role};

mod numbers;

/// Most anchors, most words that are counted, and bytes of a text that are read as prose: what follows was pasted, most
/// likely, and is read like a tool's output.
const MOST: usize = 4_000;
const MOST_WORDS: usize = 50_000;
const PROSE: usize = 20_000;
/// Bytes of what a user types; of output that is read from both its ends; of an edit that a person may have made.
const SHORT: usize = 2_000;
const OUTPUT: usize = 200_000;
const EDIT: usize = 1_000_000;
/// Bytes of a line that are looked at.
const LINE: usize = 200;
/// What an anchor weighs: in output, far from both its ends or not; where the model, where the user says it; as a file that
/// was changed. Those of less than the third weight are not worth a line of their own.
const FAR: u32 = 1;
const NEAR: u32 = 2;
const ASSISTANT: u32 = 3;
const USER: u32 = 5;
const EDITED: u32 = 6;
/// An edit that defines no more than this is about what it defines.
const FEW: usize = 2;
/// Who has a word, as bits.
const BY_USER: u32 = 1;
const BY_ASSISTANT: u32 = 2;
const BY_EDIT: u32 = 4;
const BY_CALL: u32 = 8;

/// Error codes; a group holds what counts of it where that is not the whole.
const ERROR: &str = concat!(
    // Of compilers, linters, databases and the like.
    r"(?-u:\b)(?:E[0-9]{4,5}|[EFW][0-9]{3}|TS[0-9]{4,5}|(?:CS|LNK|NU|MSB|CA|BC|FS|RUF|SC|DL|PLR|C|W)[0-9]{4}|ORA-[0-9]{4,5}",
    r"|CVE-[0-9]{4}-[0-9]{4,}|(?:ERR|CERT|SSL_ERROR|UNABLE_TO|DEPTH_ZERO|SELF_SIGNED)_[A-Z_]{3,}|NXDOMAIN|SERVFAIL",
    r"|SIG(?:SEGV|ABRT|KILL|BUS|ILL|FPE)|0x[89A-Fa-f][0-9A-Fa-f]{7}",
    // Why a container does not run; how a remote call ended.
    r"|OOMKilled|CrashLoopBackOff|(?:Err)?ImagePull(?:BackOff)?|FailedScheduling|FailedMount|Evicted|NodeNotReady",
    r"|DEADLINE_EXCEEDED|RESOURCE_EXHAUSTED|FAILED_PRECONDITION|PERMISSION_DENIED|INVALID_ARGUMENT|ALREADY_EXISTS|DATA_LOSS",
    r"|rpc error: code = (?<grpc>[A-Z][A-Za-z]+)",
    r"|E(?:ACCES|ADDRINUSE|ADDRNOTAVAIL|AGAIN|AI_[A-Z]+|BADENGINE|BADF|BUSY|CONN(?:REFUSED|RESET|ABORTED)|DEADLK|EXIST",
    r"|FAULT|FBIG|HOSTUNREACH|INTEGRITY|INTR|INVAL|IO|ISDIR|LIFECYCLE|LOOP|MFILE|MSGSIZE|NAMETOOLONG|NETUNREACH|NFILE|NOENT",
    r"|NOEXEC|NOMEM|NOSPC|NOSYS|NOTCONN|NOTDIR|NOTEMPTY|NOTFOUND|NOTSUP|NXIO|OVERFLOW|PERM|PIPE|PROTO|RESOLVE|ROFS|SRCH",
    r"|STALE|TARGET|TIMEDOUT|USAGE|XDEV)",
    r"|(?:SQLSTATE[^A-Za-z0-9\n]{0,3}|ERROR: +)(?<sql>[0-9][0-9A-Z]{4})|ERROR (?<mysql>[0-9]{4})",
    r"|(?:HTTP|[Ss]tatus(?: ?[Cc]ode)?)[ :/=]{1,2}(?<http>[45][0-9]{2})",
    r"|(?:answers|answered|returns|returned|sends|gibt|liefert|devuelve|renvoie|responde)(?: with| mit| con)?(?: a)? ?",
    r"(?<status>40[1-9]|41[0-9]|42[2-9]|50[1-9])",
    r"|(?<reason>[45][0-9]{2}) (?:Bad|Unauthorized|Forbidden|Not Found|Conflict|Gone|Too Many|Unprocessable|Internal|Service|Gateway)",
    r"|(?i-u:exit(?:ed|s)?(?: with)?(?: exit)? (?:code|status)|exit(?:ed|s) with)[ :=]+(?<exit>[0-9]{1,3})",
    r"|(?<class>[A-Z][A-Za-z0-9]*[a-z][A-Za-z0-9]*(?:Error|Exception|Warning|Fault)|Err[A-Z][a-z][A-Za-z0-9]+))(?-u:\b)",
);
/// Where something is given a name; each group is one way to.
const DEFINITION: &str = concat!(
    // fn, def, class and their like, with whatever stands before them.
    r"(?m)^[ \t]*(?:(?:pub(?:\([a-z: ]+\))?|[a-z]+)[ \t]+)*(?:fn|def|defp|defmodule|defmacro|func|function\*?|fun|class",
    r"|struct|enum|trait|interface|protocol|record|type|module|macro_rules!|#define)[ \t]+(?:\([^)\n]*\)[ \t]*|self\.)?([A-Za-z_]\w*)",
    r"|^[ \t]*(?:[a-z]+[ \t]+)*(?:object|actor|extension|union|rpc)[ \t]+([A-Z]\w+)|^[ \t]*sub[ \t]+(\w+)[ \t]*\{",
    // Constants and variables, unless they are local; names in capitals.
    r"|^(?:(?:pub(?:\([a-z: ]+\))?|export|default|declare)[ \t]+)*(?:const|let|var|val)[ \t]+(?:mut[ \t]+)?([A-Za-z_]\w*)",
    r"|^[ \t]*(?:(?:pub(?:\([a-z: ]+\))?|const|static|val)[ \t]+)*([A-Z][A-Z0-9_]{3,})[ \t]*[:=]",
    // Methods and fields, known by what stands before or behind them; functions in C.
    r"|^[ \t]*(?:(?:public|private|protected|internal|static|async|final|virtual|abstract|readonly|volatile|get)[ \t]+)+",
    r"(?:[\w<>\[\],.?*&]+[ \t]+)*[*&]?([A-Za-z_]\w*)[ \t]*[(=;]",
    r"|^[ \t]*([A-Za-z_]\w*)\([^()`\n]*\)(?:: [^\n]+)?[ \t]*\{[ \t]*$",
    r"|^(?:[A-Za-z_]\w*[ \t*]+)+\*?([A-Za-z_]\w*)\([^;\n]*\)?[ \t]*\{?$",
    r"|(?i:\bcreate (?:or replace )?(?:unique )?(?:table|index|function|view|type|trigger)(?: concurrently)?",
    r"(?: if not exists)?|\badd (?:column|constraint)(?: if not exists)?) (?:\w+\.)?(\w+)",
    // Variables of Terraform; options of CMake; variables of a Python module.
    r#"|^(?:variable|output) "([\w-]+)" *\{|^ *(?:option|set)\(([A-Z]\w+)"#,
    r"|^([a-z]+_\w+)(?:: [^=\n]+)? = ",
);
/// Where a setting is given a value.
const SETTING: &str = r#"(?m)^[ \t]*"?([A-Za-z_][\w-]*)"?[ \t]*[:=]"#;
/// In a command: a file that is written from it, that is changed in place, that is removed.
const COMMAND: &str = concat!(
    r#"(?m)(?:>|\btee(?: -a)?)[ \t]*["']?(?<written>[\w@./~+-]+)["']?[^\n]*<<|<<[^\n>]*>[ \t]*["']?(?<sent>[\w@./~+-]+)"#,
    r"|\bsed +-i(?<changed>[^;&|\n]*)|(?:^|[;&|(] *|(?:git|sudo) +)rm +(?<removed>[^;&|\n]*)",
);
/// Several files in one, as `src/{a,b}.rs`.
const BRACES: &str = r"([\w./@-]*)\{([\w.,/ -]+)\}([\w./-]*)";

static ERRORS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(ERROR).ok());
static DEFINITIONS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(DEFINITION).ok());
static SETTINGS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(SETTING).ok());
static COMMANDS: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(COMMAND).ok());
static BRACE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(BRACES).ok());

/// What a file's name ends in, if nothing but the name is said; what is called so but is no file.
const ENDINGS: &str = " rs ts tsx js jsx mjs cjs py go java kt kts swift c h cc cpp hpp cs rb php sql sh bash ps1 lua zig ex exs erl hs \
    scala vue svelte css scss html md mdx rst txt json jsonl yaml yml toml ini cfg conf xml gradle proto tf csv parquet ipynb lock ";
const PRODUCTS: &str = " node next vue nuxt three express ";
/// What is no source, so that nothing in it is defined; files in which settings have names.
const PROSE_ENDINGS: &str = " md mdx rst txt jsonl html css scss csv lock svg xml ";
const SETTINGS_ENDINGS: &str = " json yaml yml toml ini cfg conf env properties ";
/// Folders that hold nothing of the user's own.
const NOISE: &str = " node_modules .git __pycache__ .venv venv site-packages tmp temp dist target ";
/// Names that tell nothing.
const PLAIN: &str = " new main run init get set add default from into fmt drop clone next test tests setup teardown constructor \
    render tostring index self this update data value result handle name args config if for while switch catch return else match \
    function describe beforeeach aftereach register ";
/// What a sentence begins with that tells only what is looked at next.
const PLANS: [&str; 5] = ["let me ", "let's ", "i'll ", "i will ", "i'm going to "];
/// Words of a line that is about an error, and words of source code that deals with one.
const TROUBLE: &str = "error fail fatal panic exception err! exit signal kill denied cannot";
const CODE: &str =
    " new except raise throw throws catch instanceof class extends implements import case use return if ";

/// A piece of what was said, in order. What the model read of a file need not be given.
#[derive(Clone, Copy, Debug)]
pub enum Said<'a> {
    /// Words of the person.
    User(&'a str),
    /// Words of the model.
    Assistant(&'a str),
    /// A file that was edited or written.
    Edit {
        /// Which.
        path: &'a str,
        /// What was there; empty where nothing or nobody knows.
        old: &'a str,
        /// What is there now.
        new: &'a str,
    },
    /// Any other call of a tool: its command or its path.
    Call(&'a str),
    /// What a tool answered.
    Output(&'a str),
}

/// Returns the pieces of a message. What was read of a file and what our own tools found is no news.
pub fn said(message: &Message) -> Vec<Said<'_>> {
    let mut pieces = Vec::new();
    for part in &message.parts {
        match (part, &message.role) {
            (Part::Text(text), Role::User) => pieces.push(Said::User(text)),
            (Part::Text(text), Role::Assistant) => pieces.push(Said::Assistant(text)),
            (Part::Text(text), Role::ToolResult | Role::Bash)
                if message.tool.as_deref() != Some("read") && !message.is_recall_echo() =>
            {
                pieces.push(Said::Output(text));
            }
            (Part::ToolCall { arguments, .. }, _) => pieces.extend(called(arguments)),
            _ => {}
        }
    }
    pieces
}

/// What a call writes, runs or names.
fn called(arguments: &Value) -> Vec<Said<'_>> {
    fn text<'v>(value: &'v Value, key: &str) -> &'v str {
        value[key].as_str().unwrap_or_default()
    }
    let path = text(arguments, "path");
    let edit = |edit| Said::Edit { path, old: text(edit, "oldText"), new: text(edit, "newText") };
    match (arguments["edits"].as_array(), path, text(arguments, "content"), text(arguments, "command")) {
        (Some(edits), ..) => edits.iter().map(edit).collect(),
        _ if arguments["newText"].is_string() => vec![edit(arguments)],
        (_, path, new, _) if !path.is_empty() && !new.is_empty() => vec![Said::Edit { path, old: "", new }],
        (.., command) if !command.is_empty() => vec![Said::Call(command)],
        (_, path, ..) if !path.is_empty() => vec![Said::Call(path)],
        _ => Vec::new(),
    }
}

/// What an anchor is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A file.
    Path,
    /// Something with a name of its own in code.
    Name,
    /// A number with its unit.
    Number,
    /// An error's code or class.
    Error,
}

/// Something a summary must not lose.
#[derive(Clone, Debug)]
pub struct Anchor {
    /// What it is.
    pub kind: Kind,
    /// As it is written after `Also: `.
    pub text: String,
    /// How much it matters.
    pub weight: u32,
    /// What is looked for, in small letters; of a path all of it.
    key: String,
    number: Option<Number>,
    /// Has another file the same name?
    has_twin: bool,
    /// The piece that had it last.
    seen: usize,
}

/// Returns what the stretch holds that a summary must not lose, most important first.
pub fn anchors<'a>(said: impl IntoIterator<Item = Said<'a>>) -> Vec<Anchor> {
    let mut reader = Reader::default();
    for (at, piece) in said.into_iter().enumerate() {
        reader.at = at;
        match piece {
            Said::User(text) => reader.prose(text, USER, BY_USER),
            Said::Assistant(text) => reader.prose(text, ASSISTANT, BY_ASSISTANT),
            Said::Edit { path, old, new } => reader.edit(path, old, new),
            Said::Call(text) => reader.call(text),
            Said::Output(text) => reader.output(text),
        }
    }
    reader.finish()
}

/// Returns those that `summary` does not have, in the same order.
#[must_use]
pub fn missing<'a>(anchors: &'a [Anchor], summary: &str) -> Vec<&'a Anchor> {
    let summary = Summary::of(summary);
    let mut beside: HashMap<&str, usize> = HashMap::new();
    for file in anchors.iter().filter(|anchor| anchor.kind == Kind::Path) {
        *beside.entry(folder(&file.key)).or_default() += 1;
    }
    // Nobody lists every file of a folder that was changed as a whole.
    let is_of_many = |anchor: &Anchor| {
        let folder = folder(&anchor.key);
        beside.get(folder).is_some_and(|files| *files > 5)
            && has(&summary.lower, &format!("{}/", end_of(folder, 1)), "-.")
    };
    anchors.iter().filter(|anchor| !summary.holds(anchor) && !is_of_many(anchor)).collect()
}

/// Returns `Also: …` with as many of them as fit; none where nothing among them is worth a line.
#[must_use]
pub fn also(missing: &[&Anchor], most_tokens: usize) -> Option<String> {
    missing.first().filter(|first| first.weight >= ASSISTANT)?;
    let mut line = String::from("Also:");
    for anchor in missing {
        if line.len() + anchor.text.len() + 2 <= most_tokens * 4 {
            line.push_str(if line.ends_with(':') { " " } else { ", " });
            line.push_str(&anchor.text);
        }
    }
    Some(line).filter(|line| !line.ends_with(':'))
}

/// Returns how many tokens may be added to `summary`: 8 % of its own, and room for a few anchors where it is short.
#[must_use]
pub fn room(summary: &str) -> usize {
    (summary.len() / 4 * 8 / 100).max(24)
}

/// A name in an edit: where, whether it was given there, and whether the edit is about it.
struct Name<'a> {
    path: &'a str,
    is_new: bool,
    is_point: bool,
}

/// A word: in which piece last, in how many, by whom.
#[derive(Clone, Copy, Default)]
struct Word {
    last: usize,
    pieces: u32,
    by: u32,
}

#[derive(Default)]
struct Reader<'a> {
    at: usize,
    found: HashMap<(Kind, String), Anchor>,
    names: HashMap<&'a str, Name<'a>>,
    words: HashMap<&'a str, Word>,
    removed: Vec<&'a str>,
}

impl<'a> Reader<'a> {
    fn prose(&mut self, text: &'a str, weight: u32, by: u32) {
        let (prose, pasted) = text.split_at(text.floor_char_boundary(PROSE));
        self.output(pasted);
        for (at, part) in prose.split("```").enumerate() {
            if at % 2 == 1 {
                self.count_words(part, BY_CALL);
                self.output(part);
                continue;
            }
            // Long words of a user are instructions, most of which are not about anything here.
            self.count_words(part, if by == BY_USER && text.len() > SHORT { BY_CALL } else { by });
            for sentence in part.lines().flat_map(|line| line.split(". ")) {
                let start = sentence[..sentence.floor_char_boundary(24)].to_lowercase();
                // What the model is about to look at may not matter in the end.
                if by == BY_USER || !PLANS.iter().any(|plan| start.contains(plan)) {
                    paths(sentence).for_each(|path| self.path(path, weight));
                }
            }
            captures(&ERRORS, part).for_each(|found| self.error(&found, weight + 2));
            for number in numbers(part).into_iter().filter(|number| number.is_telling(by == BY_USER)) {
                self.note(Kind::Number, number.key(), number.shown(part), weight, Some(number));
            }
        }
    }

    fn edit(&mut self, path: &'a str, old: &'a str, new: &'a str) {
        self.removed.retain(|removed| !ends_at(path, removed));
        if is_noise(path) {
            return;
        }
        self.path(path, EDITED);
        self.count_words(&new[..new.floor_char_boundary(EDIT)], BY_EDIT);
        let (stem, ending) = path.rsplit_once('.').unwrap_or((path, ""));
        if is_among(PROSE_ENDINGS, ending) || old.len() + new.len() > EDIT {
            return;
        }
        let are_settings = is_among(SETTINGS_ENDINGS, ending);
        let defined = |text| definitions(if are_settings { &SETTINGS } else { &DEFINITIONS }, text);
        let before: HashSet<(&str, &str)> = defined(old).collect();
        let now: HashSet<&str> = if before.is_empty() { HashSet::new() } else { words(new).collect() };
        for (name, _) in before.iter().filter(|(name, _)| !now.contains(name)) {
            if self.names.get(name).is_some_and(|known| known.path == path) {
                self.names.remove(name);
            }
        }
        let is_own = |name: &str, line: &str| {
            !is_plain(name) && end_of(stem, 1) != name && !line.contains("override ")
        };
        let after: HashSet<(&str, &str)> = defined(new).filter(|(name, line)| is_own(name, line)).collect();
        let is_about = !are_settings && !path.contains("test") && !path.contains("spec");
        let names_of =
            |all: &HashSet<(&'a str, &str)>| all.iter().map(|(name, _)| *name).collect::<HashSet<_>>();
        let added: HashSet<&str> = names_of(&after).difference(&names_of(&before)).copied().collect();
        let few = after.difference(&before).count() <= FEW;
        for definition in &after {
            let is_new = !before.contains(definition);
            let is_added = added.len() <= FEW && added.contains(definition.0) && is_compound(definition.0);
            let has_room = self.names.len() < MOST && (is_new || !are_settings);
            if has_room || self.names.contains_key(definition.0) {
                let known = self.names.entry(definition.0).or_insert(Name { path, is_new, is_point: false });
                known.is_new |= is_new;
                known.is_point |= is_about && is_new && (few || is_added);
            }
        }
    }

    fn call(&mut self, text: &'a str) {
        self.count_words(text, BY_CALL);
        let mut rest = captures(&COMMANDS, text).peekable();
        while let Some(found) = rest.next() {
            let words = |group| found.name(group).map_or("", |words| words.as_str()).split_whitespace();
            let end = found.get(0).map_or(text.len(), |whole| whole.end());
            let next = rest.peek().and_then(|next| next.get(0)).map_or(text.len(), |next| next.start());
            if let Some(path) = found.name("written").or(found.name("sent")) {
                self.edit(path.as_str(), "", &text[end..next]);
            }
            if let Some(path) = words("changed").last().filter(|path| path.contains(['.', '/'])) {
                self.path(path, EDITED);
            }
            let room = 200_usize.saturating_sub(self.removed.len());
            self.removed.extend(words("removed").filter(|word| !word.starts_with('-')).take(room));
        }
    }

    fn output(&mut self, text: &'a str) {
        if text.len() > 2 * OUTPUT {
            self.output(&text[..text.floor_char_boundary(OUTPUT)]);
            return self.output(&text[text.ceil_char_boundary(text.len() - OUTPUT)..]);
        }
        for found in captures(&ERRORS, text).filter(|found| is_of_error_line(text, found)) {
            let is_far = found.get(0).is_some_and(|at| at.start() > 3_000 && text.len() - at.end() > 3_000);
            self.error(&found, if is_far { FAR } else { NEAR });
        }
    }

    fn error(&mut self, found: &Captures<'_>, weight: u32) {
        let group = |(label, name)| Some((label, found.name(name)?.as_str()));
        let labels = [
            ("SQLSTATE ", "sql"),
            ("ERROR ", "mysql"),
            ("HTTP ", "http"),
            ("HTTP ", "status"),
            ("HTTP ", "reason"),
            ("exit code ", "exit"),
            ("", "grpc"),
        ];
        let (label, code) = labels.into_iter().find_map(group).unwrap_or(("", &found[0]));
        let number: u32 = code.parse().unwrap_or_default();
        // Of what tools say, only what is no everyday failure.
        let is_daily = match label {
            "HTTP " => number < 500,
            "exit code " => number < 124,
            _ => code == "AssertionError" || code.ends_with("Warning"),
        };
        if (!is_daily || weight > NEAR) && (label != "exit code " || number > 0) {
            self.note(Kind::Error, code.to_lowercase(), format!("{label}{code}"), weight, None);
        }
    }

    fn path(&mut self, path: &str, weight: u32) {
        let path = path.replace('\\', "/");
        let path = path.trim_start_matches("./");
        if !is_noise(path) && path.len() < 200 && !path.contains(char::is_control) {
            self.note(Kind::Path, path.to_lowercase(), end_of(path, 3).to_owned(), weight, None);
        }
    }

    fn note(&mut self, kind: Kind, key: String, text: String, weight: u32, number: Option<Number>) {
        let (at, id) = (self.at, (kind, key.clone()));
        // What tools say takes no room from what is said.
        let room = if weight > NEAR { MOST } else { MOST / 2 };
        if let Some(known) = self.found.get_mut(&id) {
            known.said_again(weight, at);
        } else if self.found.len() < room {
            self.found.insert(id, Anchor { kind, text, weight, key, number, has_twin: false, seen: at });
        }
    }

    fn count_words(&mut self, text: &'a str, by: u32) {
        for word in words(text).filter(|word| word.len() > 2) {
            if self.words.len() < MOST_WORDS || self.words.contains_key(word) {
                let known = self.words.entry(word).or_default();
                known.pieces += u32::from(known.by == 0 || known.last != self.at);
                known.last = self.at;
                known.by |= by;
            }
        }
    }

    fn finish(self) -> Vec<Anchor> {
        let is_gone = |path: &str| self.removed.iter().any(|removed| ends_at(path, &removed.to_lowercase()));
        let (files, mut all): (Vec<Anchor>, Vec<Anchor>) =
            self.found.into_values().partition(|anchor| anchor.kind == Kind::Path);
        all.extend(one_each(files.into_iter().filter(|file| !is_gone(&file.key)).collect()));
        for (name, word) in &self.words {
            let matters = match self.names.get(name) {
                Some(known) if is_gone(&known.path.to_lowercase()) => false,
                // A word of every day may be said without the name being meant.
                Some(known) if !known.is_point => {
                    let is_told = known.is_new || word.by & (BY_USER | BY_ASSISTANT) > 0;
                    is_told && word.pieces > 1 && name.contains(|c: char| c == '_' || c.is_uppercase())
                }
                Some(_) => true,
                // What the user calls by a name that can only be one; in capitals it may be a product's.
                None => {
                    let is_used = word.by & (BY_ASSISTANT | BY_EDIT) > 0;
                    let is_ascii = name.chars().all(|c| c.is_ascii_alphabetic() || c == '_');
                    let is_code = is_ascii && name.len() > 5 && !name.starts_with(char::is_uppercase);
                    let is_told = word.by & BY_ASSISTANT > 0 && word.by & BY_EDIT > 0;
                    (is_told || word.by & BY_USER > 0 && (is_used || is_code)) && is_compound(name)
                }
            };
            if matters {
                let (text, key, weight) = ((*name).to_owned(), name.to_lowercase(), 2 + word.pieces.min(5));
                all.push(Anchor {
                    kind: Kind::Name,
                    text,
                    weight,
                    key,
                    number: None,
                    has_twin: false,
                    seen: word.last,
                });
            }
        }
        let is_error = |anchor: &&mut Anchor| anchor.kind == Kind::Error;
        if all.iter_mut().filter(is_error).count() <= FEW {
            all.iter_mut().filter(is_error).for_each(|error| error.weight = error.weight.max(ASSISTANT));
        }
        all.sort_by(|a, b| (b.weight, b.seen, &a.text).cmp(&(a.weight, a.seen, &b.text)));
        all
    }
}

impl Anchor {
    fn said_again(&mut self, weight: u32, at: usize) {
        self.weight = self.weight.max(weight) + u32::from(self.seen != at && self.weight < 12);
        self.seen = self.seen.max(at);
    }
}

/// Makes one of a file's several spellings, which end alike.
fn one_each(mut files: Vec<Anchor>) -> Vec<Anchor> {
    files.sort_by(|a, b| (b.key.len(), &a.key).cmp(&(a.key.len(), &b.key)));
    let mut by_name: HashMap<String, Vec<Anchor>> = HashMap::new();
    for file in files {
        let same = by_name.entry(end_of(&file.key, 1).to_owned()).or_default();
        match same.iter_mut().take(50).find(|longer| ends_at(&longer.key, &file.key)) {
            Some(longer) => longer.said_again(file.weight, file.seen),
            None => same.push(file),
        }
    }
    let twins = |files: Vec<Anchor>| {
        let has_twin = files.len() > 1;
        files.into_iter().map(move |file| Anchor { has_twin, ..file })
    };
    by_name.into_values().flat_map(twins).collect()
}

/// A summary, ready to be looked into.
struct Summary {
    lower: String,
    /// Without what tells `max_age` from `maxAge` and `max-age`.
    plain: String,
    numbers: Vec<Number>,
}

impl Summary {
    fn of(summary: &str) -> Self {
        let mut text = summary.to_owned();
        for found in captures(&BRACE, summary) {
            for name in found[2].split(',') {
                let _ = write!(text, "\n{}{}{}", &found[1], name.trim(), &found[3]);
            }
        }
        let mut lower = text.to_lowercase().replace("::", "/");
        let words = "one two three four five six seven eight nine ten eleven twelve".split(' ');
        for (number, word) in (1..).zip(words) {
            lower = lower.replace(&format!(" {word} "), &format!(" {number} "));
        }
        let numbers = numbers(&text).into_iter().chain(numbers(&lower)).collect();
        Self { plain: squeezed(&lower), lower, numbers }
    }

    fn holds(&self, anchor: &Anchor) -> bool {
        match (anchor.kind, &anchor.number) {
            (Kind::Path, _) => self.holds_path(anchor),
            // Any number may be a small code.
            (Kind::Error, None) if anchor.key.len() < 3 => ["code", "exit", "status", "with"]
                .iter()
                .any(|word| has(&self.lower, &format!("{word} {}", anchor.key), "")),
            (Kind::Name, _) => has(&self.plain, &squeezed(&anchor.key), ""),
            (_, None) => has(&self.lower, &anchor.key, "") || has(&self.plain, &squeezed(&anchor.key), ""),
            (_, Some(number)) => match number.only_spelling() {
                Some(key) => has(&self.lower, key, ".") || has(&self.lower, &format!("v{key}"), "."),
                None => self.numbers.iter().any(|said| number.is_said_by(said)),
            },
        }
    }

    /// By its name, with its folder if another has that; by folder and name without the ending, as a module; without both
    /// if it is made of several words.
    fn holds_path(&self, file: &Anchor) -> bool {
        let name = stem(end_of(&file.text, 1));
        let module = stem(end_of(&file.key, 2));
        let is_own = !file.has_twin && (name.contains(['-', '.']) || is_compound(name));
        has(&self.lower, end_of(&file.key, 1 + usize::from(file.has_twin)), "-.")
            || (is_own && has(&self.plain, &squeezed(&name.to_lowercase()), ""))
            || (module.contains('/')
                && [module, &module.replace('/', ".")].iter().any(|name| has(&self.lower, name, "-.")))
    }
}

/// What looks like a file's path in what was said, without line numbers.
fn paths(text: &str) -> impl Iterator<Item = &str> {
    let is_part = |c: char| c.is_alphanumeric() || "_-./\\~@+".contains(c);
    text.split_inclusive(move |c: char| !is_part(c)).filter_map(move |piece| {
        let word = piece.trim_end_matches(|c: char| !is_part(c)).trim_end_matches(['.', '/', '-']);
        let (stem, ending) = end_of(word, 1).rsplit_once('.')?;
        let is_file = if let Some((host, _)) = word.split_once('/') {
            let is_ending = ending.len() <= 7 && ending.starts_with(|c: char| c.is_ascii_lowercase());
            let is_host = host.len() > 2 && host.contains('.');
            is_ending && !stem.is_empty() && !is_host && !word.starts_with("//")
        } else {
            let is_product =
                ending == "js" && (stem.starts_with(char::is_uppercase) || is_among(PRODUCTS, stem));
            stem.len() > 1
                && is_among(ENDINGS, ending)
                && !is_product
                && !stem.contains('@')
                && !piece.ends_with('(')
        };
        is_file.then_some(word)
    })
}

/// The names that `text` defines in a way, each with the line it stands in.
fn definitions<'t>(
    way: &'static LazyLock<Option<Regex>>,
    text: &'t str,
) -> impl Iterator<Item = (&'t str, &'t str)> {
    captures(way, text).filter_map(|found| {
        let name = found.iter().skip(1).flatten().next()?.as_str();
        let line = text[found.get(0)?.start()..].trim_start();
        Some((name, line[..line.floor_char_boundary(LINE)].lines().next()?.trim_end()))
    })
}

/// Does what was found look like an error that happened, and not like source code that deals with one?
fn is_of_error_line(text: &str, found: &Captures<'_>) -> bool {
    let (start, end) = found.get(0).map_or((0, 0), |whole| (whole.start(), whole.end()));
    let before = &text[text.floor_char_boundary(start.saturating_sub(LINE))..start];
    let before = before.rsplit('\n').next().unwrap_or_default();
    let after = text[end..text.floor_char_boundary(end + LINE)].split('\n').next().unwrap_or_default();
    let is_quoted = before.ends_with(['\'', '"', '`', '_']) || after.starts_with(['\'', '"', '`', '(', '_']);
    if is_quoted || words(before).any(|word| is_among(CODE, word)) {
        return false;
    }
    let is_class = found.name("class").is_some();
    let is_thrown = matches!(before.trim(), "" | "E") || before.trim_end().ends_with([':', '.', ']', '>']);
    let line = format!("{before}{}{after}", if is_class { "" } else { &found[0] }).to_lowercase();
    (is_class && is_thrown) || TROUBLE.split(' ').any(|word| line.contains(word))
}

fn captures<'t>(
    regex: &'static LazyLock<Option<Regex>>,
    text: &'t str,
) -> impl Iterator<Item = Captures<'t>> {
    regex.as_ref().into_iter().flat_map(move |regex| regex.captures_iter(text))
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| !c.is_alphanumeric() && c != '_')
}

fn squeezed(text: &str) -> String {
    text.replace(['_', '-'], "")
}

/// Does `text` have `word` with nothing around it that would make it another word, neither any of `more`?
fn has(text: &str, word: &str, more: &str) -> bool {
    let goes_on = |c: char| c.is_alphanumeric() || c == '_';
    let is_whole = |(at, _): (usize, &str)| {
        let after = &text[at + word.len()..];
        // The end of a sentence is no part of a name.
        let after =
            if more.contains('.') { after.strip_prefix('.').map_or(after, |next| next) } else { after };
        !after.starts_with(|c| goes_on(c) || more.contains(c))
            && !text[..at].ends_with(|c| goes_on(c) || more.contains(c))
    };
    !word.is_empty() && (word.ends_with('/') && text.contains(word) || text.match_indices(word).any(is_whole))
}

/// The last `parts` parts of a path.
fn end_of(path: &str, parts: usize) -> &str {
    path.rmatch_indices('/').nth(parts - 1).map_or(path, |(at, _)| &path[at + 1..])
}

/// Is `end` the whole path or its last parts?
fn ends_at(path: &str, end: &str) -> bool {
    let before = path.strip_suffix(end.trim_start_matches("./"));
    before.is_some_and(|before| before.is_empty() || before.ends_with('/'))
}

/// All but the ending.
fn stem(path: &str) -> &str {
    path.rsplit_once('.').map_or(path, |(stem, _)| stem)
}

fn folder(path: &str) -> &str {
    path.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// Is it a file nobody wants to hear of, made by a machine or only for a moment?
fn is_noise(path: &str) -> bool {
    let is_hash = |part: &str| {
        part.len() > 7
            && part.chars().all(|c| c.is_ascii_hexdigit())
            && part.contains(|c: char| c.is_ascii_digit())
    };
    path.split('/').any(|part| is_among(NOISE, part)) || path.split(['/', '.', '-', '_']).any(is_hash)
}

/// Is it two words in one, as only names are?
fn is_compound(name: &str) -> bool {
    let name = name.trim_matches('_');
    let mut pairs = name.chars().zip(name.chars().skip(1));
    let is_joined = name.contains('_') || pairs.any(|(one, next)| one.is_lowercase() && next.is_uppercase());
    is_joined && !name.starts_with(|c: char| c.is_ascii_digit()) && !is_noise(name)
}

fn is_plain(name: &str) -> bool {
    name.len() < 3 || name.starts_with("__") || is_among(PLAIN, &name.to_lowercase())
}

fn is_among(words: &str, word: &str) -> bool {
    !word.is_empty() && !word.contains(' ') && words.contains(&format!(" {word} "))
}

#[cfg(test)]
mod tests;
