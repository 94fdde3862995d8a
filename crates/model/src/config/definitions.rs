//! The only definition of every setting: name, type, default and description.

use std::ops::RangeInclusive;
use std::path::Path;

use serde_json::Value;

use super::value::{agent, model, recipient};

/// A setting.
pub struct Definition {
    /// The key below `lcm` in Pi's settings.
    pub key: &'static str,
    /// The description that users read.
    pub help: &'static str,
    /// The type of its value, its default, and where it is kept.
    pub kind: Kind,
}

/// The type of a setting's value.
pub enum Kind {
    /// `true` or `false`.
    Switch { default: bool },
    /// A whole number.
    Number {
        default: usize,
        /// The accepted range.
        range: RangeInclusive<usize>,
    },
    /// One of these words; the default is the first.
    Word { words: [&'static str; 2] },
    /// A text, or a path; empty by default.
    Text,
    /// A folder.
    Folder {
        /// The default, below Pi's agent folder.
        default: &'static str,
    },
    /// Names in order; none by default.
    Names {
        /// What they are, in words that follow "takes".
        expected: &'static str,
        /// Converts a name to the form that is kept; `None` if it is invalid.
        read: fn(&Value) -> Option<String>,
    },
}

impl Definition {
    /// The environment variable: `leafChunkTokens` is `LCM_LEAF_CHUNK_TOKENS`.
    pub fn variable(&self) -> String {
        variable(self.key)
    }

    /// Its key, and other spellings that are accepted.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        let also = ALSO.iter().filter(|(_, key)| *key == self.key).map(|(name, _)| *name);
        std::iter::once(self.key).chain(also)
    }

    /// The default, for a Pi whose agent folder is `agent_dir`.
    pub(super) fn default(&self, agent_dir: &Path) -> Value {
        match &self.kind {
            Kind::Switch { default } => (*default).into(),
            Kind::Number { default, .. } => (*default).into(),
            Kind::Word { words } => words[0].into(),
            Kind::Text => "".into(),
            Kind::Folder { default } => agent_dir.join(default).to_string_lossy().into(),
            Kind::Names { .. } => Value::Array(Vec::new()),
        }
    }

    /// The accepted values, in words that follow "takes".
    pub fn expected(&self) -> String {
        match &self.kind {
            Kind::Switch { .. } => "true or false".into(),
            Kind::Number { range, .. } => format!("a whole number from {} to {}", range.start(), range.end()),
            Kind::Text => "a text, or a path".into(),
            Kind::Folder { .. } => "the path of a folder".into(),
            Kind::Word { words: [one, other] } => format!("\"{one}\" or \"{other}\""),
            Kind::Names { expected, .. } => (*expected).into(),
        }
    }
}

/// The environment variable for a key.
pub(super) fn variable(key: &str) -> String {
    let mut name = String::from("LCM_");
    for c in key.chars() {
        if c.is_ascii_uppercase() {
            name.push('_');
        }
        name.push(c.to_ascii_uppercase());
    }
    name
}

/// Further names of settings, each with the key.
const ALSO: [(&str, &str); 1] = [("largFileThresholdTokens", "largeFileThresholdTokens")];

/// Every setting, in the order in which they are documented.
pub const DEFINITIONS: &[Definition] = &[
    Definition {
        key: "enabled",
        help: "Turns the extension on or off. When off, nothing is stored, no tools are added, and Pi compacts by \
               itself. When you turn it on again, it stores the messages written in the meantime.",
        kind: Kind::Switch { default: true },
    },
    Definition {
        key: "dbDir",
        help: "The folder for the databases, one per project. `~` is your home folder. A relative path starts at \
               Pi's agent folder in the global settings, and at the project's folder everywhere else.",
        kind: Kind::Folder { default: "lcm" },
    },
    Definition {
        key: "projectIdentity",
        help: "What shares one history: the folder that Pi works in (`cwd`), or the whole git repository with all \
               its folders and worktrees (`git`). Submodules, and folders outside a repository, always have their \
               own. After a change, `/lcm import FOLDER` adds the history of before.",
        kind: Kind::Word { words: ["cwd", "git"] },
    },
    Definition {
        key: "context",
        help: "How much old content the model sees. `lean` replaces old messages with the block as soon as that \
               lowers the cost. `full` changes nothing until Pi compacts. See context.md.",
        kind: Kind::Word { words: ["lean", "full"] },
    },
    Definition {
        key: "foldAt",
        help: "The context size, in tokens, from which on `lean` folds old messages into the block. 0 lets the \
               model's prices decide. See context.md.",
        kind: Kind::Number { default: 0, range: 0..=10_000_000 },
    },
    Definition {
        key: "compactionModels",
        help: "The models that write summaries, as `provider/id`, in order of preference. Models that Pi does not \
               know or has no key for are skipped. Then a small model of the session's provider is asked, then the \
               session's own model; no other provider gets any text. `session` is the session's own model; with it \
               in the list, no unlisted model is asked. In the environment variable, separate models with commas. \
               See models.md.",
        kind: Kind::Names { expected: "models as \"provider/id\", or \"session\"", read: model },
    },
    Definition {
        key: "leafChunkTokens",
        help: "The approximate amount of conversation per leaf summary, in tokens. Smaller values give more detail \
               and more model calls.",
        kind: Kind::Number { default: 16_000, range: 500..=100_000 },
    },
    Definition {
        key: "redact",
        help: "Masks keys, tokens and passwords, recognized by their shape or name, in the text sent to the \
               summarizing model. The stored messages keep them.",
        kind: Kind::Switch { default: true },
    },
    Definition {
        key: "notes",
        help: "Adds the tool `lcm_note`, with which the model keeps notes. Each block contains all notes, word for \
               word, until they are removed; `/lcm notes` shows and edits them. `false` saves about 120 tokens per \
               request.",
        kind: Kind::Switch { default: true },
    },
    Definition {
        key: "recallOnNew",
        help: "Tells the model of a new session, in the system prompt, how many earlier sessions the project has, \
               when the newest began, and how to search them. Their content is not included.",
        kind: Kind::Switch { default: false },
    },
    Definition {
        key: "alsoRead",
        help: "The other agents whose new messages in this project are imported in the background at the start of a \
               session. In the environment variable, separate them with commas. See your-data.md.",
        kind: Kind::Names {
            expected: "a list of agents: \"claude-code\", \"codex\", \"gemini\", \"opencode\"",
            read: agent,
        },
    },
    Definition {
        key: "syncTarget",
        help: "Where each session's start and end sync the project's history: a folder, or `s3://BUCKET/PREFIX`. A project \
               without a git remote or `syncProject` is left out. A project's own settings can only empty it. See sync.md.",
        kind: Kind::Text,
    },
    Definition {
        key: "syncProject",
        help: "The project's name at the sync target. Without one, the git remote's address.",
        kind: Kind::Text,
    },
    Definition {
        key: "syncLabel",
        help: "What other machines call this one. Without one, the user's and the host's name.",
        kind: Kind::Text,
    },
    Definition {
        key: "syncRedact",
        help: "Masks keys, tokens and passwords in what a sync sends.",
        kind: Kind::Switch { default: false },
    },
    Definition {
        key: "syncRecipients",
        help: "Encrypts what a sync sends, to these keys and this machine's. Not in a project's settings. See sync.md.",
        kind: Kind::Names { expected: "a list of keys: \"age1…\", or \"none\"", read: recipient },
    },
    Definition {
        key: "condensationThreshold",
        help: "The number of consecutive summaries of one depth that may stay. If there are more, the oldest are \
               condensed into one summary of the next depth. Also the size of such a group.",
        kind: Kind::Number { default: 6, range: 2..=50 },
    },
    Definition {
        key: "maxDepth",
        help: "The maximum depth of condensed summaries. It is exceeded only if the block would not fit otherwise.",
        kind: Kind::Number { default: 5, range: 1..=20 },
    },
    Definition {
        key: "maxSummaryTokens",
        help: "The maximum size of the block that replaces compacted messages, in tokens, and at most an \
               eighth of the room for the conversation. Notes are not counted.",
        kind: Kind::Number { default: 4_000, range: 1_000..=100_000 },
    },
    Definition {
        key: "minMessagesForCompaction",
        help: "The minimum number of messages for a session's first compaction. With fewer, Pi compacts by itself.",
        kind: Kind::Number { default: 10, range: 1..=1_000 },
    },
    Definition {
        key: "leafPassConcurrency",
        help: "The maximum number of concurrent model calls. Lower it if your provider limits the rate of requests. A server on this machine or in a private network always gets one at a time.",
        kind: Kind::Number { default: 4, range: 1..=32 },
    },
    Definition {
        key: "background",
        help: "Writes summaries while the agent works, so that a compaction does not have to wait for them. When \
               off, they are written during the compaction, and `lean` works like `full`.",
        kind: Kind::Switch { default: true },
    },
    Definition {
        key: "compactInstructions",
        help: "Instructions for every summary, as text or as the path of a text file. A section `## Compact \
               Instructions` in the `AGENTS.md` or `CLAUDE.md` of a trusted project is added.",
        kind: Kind::Text,
    },
    Definition {
        key: "modelTimeoutSeconds",
        help: "The timeout of a model call for a summary, in seconds; then the next model is asked. Raise it for a \
               slow local model. Without a useful answer, a compaction ends after at most twice this time plus ten \
               seconds.",
        kind: Kind::Number { default: 120, range: 1..=3_600 },
    },
    Definition {
        key: "modelRetries",
        help: "The maximum number of retries after a temporary error, such as a busy provider or a broken \
               connection.",
        kind: Kind::Number { default: 3, range: 0..=10 },
    },
    Definition {
        key: "modelTokensPerHour",
        help: "The maximum number of tokens in model calls for summaries per hour, input and output together, \
               including failed calls. At the limit, summaries are made without a model and replaced later. 0 means \
               no limit. See models.md for typical numbers.",
        kind: Kind::Number { default: 10_000_000, range: 0..=2_000_000_000 },
    },
    Definition {
        key: "largeFileThresholdTokens",
        help: "The size, in tokens, above which the summarizing model sees only the start and end of an output or \
               pasted text. The complete text is stored.",
        kind: Kind::Number { default: 25_000, range: 1_000..=10_000_000 },
    },
    Definition {
        key: "sizeBudgetMegabytes",
        help: "The size of a project's database, in megabytes, above which a notification suggests what to do. It \
               appears again after each 10% of growth. Nothing is deleted automatically.",
        kind: Kind::Number { default: 2_000, range: 1..=1_000_000 },
    },
    Definition {
        key: "status",
        help: "Shows the footer line: messages, summaries, database size.",
        kind: Kind::Switch { default: true },
    },
    Definition {
        key: "debugMode",
        help: "Writes a log next to the database, at most 2 MB, without keys or message texts.",
        kind: Kind::Switch { default: false },
    },
];
