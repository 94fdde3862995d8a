//! Every setting, once: its name, what it takes, its default, its meaning.

use std::ops::RangeInclusive;
use std::path::PathBuf;

use super::{Context, ProjectIdentity, Settings};

/// A setting.
#[derive(Clone, Debug)]
pub struct Definition {
    /// The key below `lcm` in Pi's settings.
    pub key: &'static str,
    /// Other spellings that are read too.
    pub also: &'static [&'static str],
    /// What it means, for whoever sets it.
    pub help: &'static str,
    /// What it takes, and where it is kept.
    pub kind: Kind,
}

/// What a setting takes.
#[derive(Clone, Debug)]
pub enum Kind {
    /// `true` or `false`.
    Switch {
        /// Without a word from the user.
        default: bool,
        /// Its place.
        field: fn(&mut Settings) -> &mut bool,
    },
    /// A whole number.
    Number {
        /// Without a word from the user.
        default: usize,
        /// What is accepted.
        range: RangeInclusive<usize>,
        /// Its place.
        field: fn(&mut Settings) -> &mut usize,
    },
    /// What is pruned.
    Context {
        /// Without a word from the user.
        default: Context,
        /// Its place.
        field: fn(&mut Settings) -> &mut Context,
    },
    /// A text, or the path of a file; none without a word from the user.
    Text {
        /// Its place.
        field: fn(&mut Settings) -> &mut String,
    },
    /// A folder.
    Folder {
        /// Without a word from the user, below Pi's agent folder.
        default: &'static str,
        /// Its place.
        field: fn(&mut Settings) -> &mut PathBuf,
    },
    /// What has a history of its own.
    Identity {
        /// Without a word from the user.
        default: ProjectIdentity,
        /// Its place.
        field: fn(&mut Settings) -> &mut ProjectIdentity,
    },
    /// Models, tried in order.
    Models {
        /// Without a word from the user.
        default: &'static [&'static str],
        /// Their place.
        field: fn(&mut Settings) -> &mut Vec<String>,
    },
}

impl Definition {
    /// The environment variable: `leafChunkTokens` is `LCM_LEAF_CHUNK_TOKENS`.
    #[must_use]
    pub fn variable(&self) -> String {
        variable(self.key)
    }

    /// Is this the setting that `name`, a key or another spelling of one, means?
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.key == name || self.also.contains(&name)
    }

    /// What is accepted, in words that follow "takes".
    #[must_use]
    pub fn expected(&self) -> String {
        match &self.kind {
            Kind::Switch { .. } => "true or false".into(),
            Kind::Number { range, .. } => format!("a whole number from {} to {}", range.start(), range.end()),
            Kind::Text { .. } => "a text, or the path of a file".into(),
            Kind::Folder { .. } => "the path of a folder".into(),
            Kind::Identity { .. } => "\"cwd\" or \"git\"".into(),
            Kind::Context { .. } => "\"lean\" or \"full\"".into(),
            Kind::Models { .. } => "models as \"provider/id\"".into(),
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

/// Every setting, in the order in which they are documented.
pub const DEFINITIONS: &[Definition] = &[
    Definition {
        key: "enabled",
        also: &[],
        help: "Off, and Pi works as if the extension were not there: nothing is stored, no tool is offered, Pi compacts in \
               its own way. Switched on again, the extension stores what was said meanwhile.",
        kind: Kind::Switch { default: true, field: |s| &mut s.enabled },
    },
    Definition {
        key: "dbDir",
        also: &[],
        help: "The folder of the databases, one for each project. `~` is your home folder. A relative path begins at Pi's \
               agent folder if it stands in the global settings, at the project's folder otherwise.",
        kind: Kind::Folder { default: "lcm", field: |s| &mut s.db_dir },
    },
    Definition {
        key: "projectIdentity",
        also: &[],
        help: "What has a history of its own: the folder that Pi works in (`cwd`), or the git repository which that is in, with \
               all its worktrees and folders (`git`). What is in no repository, or in a submodule, has its own in both cases. \
               After a change a notification names the database of before; `/lcm relink` brings its history.",
        kind: Kind::Identity { default: ProjectIdentity::Cwd, field: |s| &mut s.project_identity },
    },
    Definition {
        key: "context",
        also: &[],
        help: "`lean` keeps the context as small as the model's prices make worthwhile: results of tools that the model has seen \
               give way to stubs, and the past is folded into the block. Nothing is lost, and every stub names the call that brings \
               back what it stands for. `full` leaves the context alone until Pi compacts. See context.md.",
        kind: Kind::Context { default: Context::Lean, field: |s| &mut s.context },
    },
    Definition {
        key: "compactionModels",
        also: &[],
        help: "The models that write the summaries, as `provider/id`. The first one that Pi knows and has a key for is \
               asked; one that fails gives way to the next. After them comes the cheapest fitting model of the session's own \
               provider, and last the session's own model. An empty list leaves it all to that one. In the environment \
               they stand with commas between them.",
        kind: Kind::Models { default: &["anthropic/claude-haiku-4-5"], field: |s| &mut s.compaction_models },
    },
    Definition {
        key: "leafChunkTokens",
        also: &[],
        help: "About how many tokens of conversation become one leaf summary. Less gives finer summaries and more model calls.",
        kind: Kind::Number { default: 16_000, range: 500..=100_000, field: |s| &mut s.leaf_chunk_tokens },
    },
    Definition {
        key: "recentBoost",
        also: &[],
        help: "The newest leaf summaries of a compaction may be longer than others: so many percent of what others aim \
               at. 100 makes them alike.",
        kind: Kind::Number { default: 150, range: 100..=400, field: |s| &mut s.recent_boost },
    },
    Definition {
        key: "redact",
        also: &[],
        help: "Keys, tokens and passwords that can be told by their shape or their name are masked in what the summarizing \
               model is shown. They are stored as they are.",
        kind: Kind::Switch { default: true, field: |s| &mut s.redact },
    },
    Definition {
        key: "notes",
        also: &[],
        help: "The model gets a fourth tool, `lcm_note`, with which it keeps notes. They stand word for word in every block until \
               they are removed; `/lcm notes` shows and changes them. `false` saves about 120 tokens per request.",
        kind: Kind::Switch { default: true, field: |s| &mut s.notes },
    },
    Definition {
        key: "recallOnNew",
        also: &[],
        help: "A session in a project with earlier ones is told in the system prompt how many there are, when the newest of \
               them began and how to look into them; none of their words. It stays the same as long as the session is open.",
        kind: Kind::Switch { default: false, field: |s| &mut s.recall_on_new },
    },
    Definition {
        key: "condensationThreshold",
        also: &[],
        help: "When more summaries of one depth than this follow each other, the oldest of them become one of the next \
               depth.",
        kind: Kind::Number { default: 6, range: 2..=50, field: |s| &mut s.condensation_threshold },
    },
    Definition {
        key: "maxDepth",
        also: &[],
        help: "The depth at which condensing stops, unless the block would not fit without more of it.",
        kind: Kind::Number { default: 5, range: 1..=20, field: |s| &mut s.max_depth },
    },
    Definition {
        key: "maxSummaryTokens",
        also: &[],
        help: "The largest block, in tokens: what the model gets in place of what was compacted. Never more than an eighth \
               of the model's window. Notes come on top.",
        kind: Kind::Number { default: 4_000, range: 1_000..=100_000, field: |s| &mut s.max_summary_tokens },
    },
    Definition {
        key: "minMessagesForCompaction",
        also: &[],
        help: "With fewer messages to compact than this, and no summary yet, Pi compacts in its own way.",
        kind: Kind::Number { default: 10, range: 1..=1_000, field: |s| &mut s.min_messages_for_compaction },
    },
    Definition {
        key: "leafPassConcurrency",
        also: &[],
        help: "How many model calls are under way at once.",
        kind: Kind::Number { default: 4, range: 1..=32, field: |s| &mut s.leaf_pass_concurrency },
    },
    Definition {
        key: "background",
        also: &[],
        help: "While the agent works, summaries are written of what a compaction will ask for anyway, so that it takes no time \
               when it comes. Off, all of it is done at the compaction, and a lean context is not folded.",
        kind: Kind::Switch { default: true, field: |s| &mut s.background },
    },
    Definition {
        key: "compactInstructions",
        also: &[],
        help: "What every summary must mind, as a text or as the path of a text file. A section `## Compact Instructions` in the \
               `AGENTS.md` or `CLAUDE.md` of a trusted project is added to it.",
        kind: Kind::Text { field: |s| &mut s.compact_instructions },
    },
    Definition {
        key: "promptsDir",
        also: &[],
        help: "The folder of prompts of your own. A file there replaces the shipped prompt of the same name, see prompts.md.",
        kind: Kind::Folder { default: "lcm-prompts", field: |s| &mut s.prompts_dir },
    },
    Definition {
        key: "directModelCalls",
        also: &[],
        help: "Plain API-key providers (OpenAI chat completions, Anthropic messages) are asked for summaries straight from \
               the engine; all others through Pi. Off, everything goes through Pi.",
        kind: Kind::Switch { default: true, field: |s| &mut s.direct_model_calls },
    },
    Definition {
        key: "modelTimeoutSeconds",
        also: &[],
        help: "After so many seconds a model call for a summary is given up, and the next model is asked. More helps a slow \
               local model. Without any useful answer a compaction waits for twice this and ten seconds at most.",
        kind: Kind::Number { default: 120, range: 1..=3_600, field: |s| &mut s.model_timeout_seconds },
    },
    Definition {
        key: "modelRetries",
        also: &[],
        help: "How often a model call for a summary is repeated that failed for a reason that may pass: a busy provider, a \
               broken connection.",
        kind: Kind::Number { default: 3, range: 0..=10, field: |s| &mut s.model_retries },
    },
    Definition {
        key: "modelCallsPerHour",
        also: &[],
        help: "So many model calls for summaries are made within an hour, repeated ones included; beyond that, summaries are \
               made without a model, and anew later. 0 is no limit. See models.md for what ordinary work needs.",
        kind: Kind::Number { default: 5_000, range: 0..=1_000_000, field: |s| &mut s.model_calls_per_hour },
    },
    Definition {
        key: "modelTokensPerHour",
        also: &[],
        help: "The same for the tokens of these calls, questions and answers together.",
        kind: Kind::Number {
            default: 10_000_000,
            range: 0..=2_000_000_000,
            field: |s| &mut s.model_tokens_per_hour,
        },
    },
    Definition {
        key: "modelCallsPerSession",
        also: &[],
        help: "The same for all calls as long as a session is open.",
        kind: Kind::Number {
            default: 20_000,
            range: 0..=1_000_000,
            field: |s| &mut s.model_calls_per_session,
        },
    },
    Definition {
        key: "modelTokensPerSession",
        also: &[],
        help: "The same for all tokens as long as a session is open.",
        kind: Kind::Number {
            default: 40_000_000,
            range: 0..=2_000_000_000,
            field: |s| &mut s.model_tokens_per_session,
        },
    },
    Definition {
        key: "largeFileThresholdTokens",
        also: &["largFileThresholdTokens"],
        help: "Of an output or a pasted text with more tokens than this the summarizing model sees only a glimpse of both \
               ends. It is stored whole all the same.",
        kind: Kind::Number {
            default: 25_000,
            range: 1_000..=10_000_000,
            field: |s| &mut s.large_file_threshold_tokens,
        },
    },
    Definition {
        key: "sizeBudgetMegabytes",
        also: &[],
        help: "A project's database that grows beyond this is told of, with what can be done; again when it has grown by \
               another tenth. Nothing is ever deleted by itself.",
        kind: Kind::Number { default: 2_000, range: 1..=1_000_000, field: |s| &mut s.size_budget_megabytes },
    },
    Definition {
        key: "status",
        also: &[],
        help: "The line in the footer: messages, summaries, size.",
        kind: Kind::Switch { default: true, field: |s| &mut s.status },
    },
    Definition {
        key: "debugMode",
        also: &[],
        help: "Writes what the extension does into a log beside the database: counts, times and names, neither keys nor \
               anything that was said. It is kept below 2 MB.",
        kind: Kind::Switch { default: false, field: |s| &mut s.debug_mode },
    },
];
