//! Words that mark a sentence as a rule, a task or a decision, in the languages most used with agents.
//!
//! A sentence is folded first: lowercase, without emphasis, with single spaces between words and around
//! punctuation, and one at either end. So a space in a pattern is the end of a word, patterns ignore case,
//! and each starts at a word boundary.

use std::sync::LazyLock;

use regex::Regex;

/// A set of patterns.
pub(super) struct Words(LazyLock<Option<Regex>>);

impl Words {
    /// Whether `folded` contains one of them.
    pub(super) fn is_in(&self, folded: &str) -> bool {
        self.0.as_ref().is_some_and(|words| words.is_match(folded))
    }

    /// Where the first of them starts.
    pub(super) fn at(&self, folded: &str) -> Option<usize> {
        Some(self.0.as_ref()?.find(folded)?.start())
    }
}

/// Patterns that match anywhere.
macro_rules! anywhere {
    ($($list:expr),+) => { Words(LazyLock::new(|| compiled("", &[$($list),+]))) };
}

/// Patterns that match at the start of a clause, after filler words.
macro_rules! starting {
    ($($list:expr),+) => { Words(LazyLock::new(|| compiled("^(?:{FILL} )*", &[$($list),+]))) };
}

fn compiled(start: &str, lists: &[&[&str]]) -> Option<Regex> {
    let all: Vec<&str> = lists.iter().flat_map(|list| list.iter().copied()).collect();
    let mut pattern = format!("{start}(?:{})", all.join("|"));
    for (name, words) in NAMED {
        if pattern.contains(name) {
            pattern = pattern.replace(name, &format!("(?:{words})"));
        }
    }
    let made = Regex::new(&pattern);
    debug_assert!(made.is_ok(), "{made:?}");
    made.ok()
}

/// Names used in patterns, each before those it uses itself.
const NAMED: [(&str, &str); 12] = [
    ("{FILL}", FILL),
    ("{VERB}", VERB),
    ("{NOUN}", NOUN),
    ("{STYLE}", STYLE),
    ("{EVENT}", EVENT),
    ("{VERB_DE}", VERB_DE),
    ("{NOUN_DE}", NOUN_DE),
    ("{LANG}", LANG),
    // Up to this many words.
    ("{W1}", "[^ ,:?]+ )?(?:"),
    ("{W3}", "[^ ,:?]+ ){0,3}(?:"),
    ("{W6}", "[^ ,:?]+ ){0,6}(?:"),
    ("{W12}", "[^ ,:?]+ ){0,12}(?:"),
];

const FILL: &str = "please|pls|plz|pleas|kindly|just|also|and|but|so|ok|okay|oh|btw|hey|hi|then|now|actually|really|again\
    |generally|absolutely|strictly|definitely|ever|yes|yeah|ah|well|in general|by the way|for now|next time|important|note|reminder\
    |remember to|remember|don't forget to|at least|if possible|unless necessary|we should|bitte|und|aber|also|auch|dann|mal|oder|s'il te plaît|s'il vous plaît|svp|stp|et|mais\
    |aussi|surtout|merci de|por favor|y|pero|también|además|e|ma|anche|per favore|mas|também|ey";

const LANG: &str = "(?:british |american |us |uk |plain |simple |proper |brazilian )?(?:english|german|french|spanish|chinese|japanese|italian\
    |portuguese|dutch|russian|korean|polish|turkish|swedish|mandarin|deutsch|englisch|französisch|spanisch|chinesisch\
    |japanisch|italienisch|portugiesisch|français|anglais|allemand|espagnol|chinois|japonais|italien|portugais|español|inglés\
    |ingles|alemán|francés|chino|japonés|italiano|portugués|inglese|tedesco|francese|spagnolo|português|inglês|alemão\
    |francês|espanhol|espanol|francais|portugues)";

/// Styles and tools that a project chooses once.
const STYLE: &str = "(?:british|american|us|uk) (?:spelling|english)|tabs|spaces|[0-9]+[ -]spaces?|[0-9]+[ -]space (?:indent|indentation|tabs)|(?:two|four|eight) spaces?|snake[_ ]?case|camel[- ]?case\
    |pascal[- ]?case|kebab[- ]?case|screaming[_ ](?:snake[_ ])?case|upper ?case|lower ?case|title case|sentence case|(?:single|double) quotes|semicolons?|trailing commas?\
    |conventional commits?|gitmoji|(?:the )?imperative(?: mood)?|present tense|past tense|active voice|passive voice|es modules|esm|commonjs|typescript|javascript|pnpm|npm|yarn|bun|uv|pip\
    |poetry|conda|vitest|jest|mocha|pytest|unittest|black|ruff|prettier|eslint|biome|rustfmt|clippy|gofmt|mypy|pyright|async/await\
    |arrow functions|named exports|default exports|type hints|type annotations|strict mode|functional components|tailwind|f-strings|pathlib|dataclasses|early returns|metric units|utc\
    |iso 8601|iso8601|semver|markdown|plain text|bullet points|powershell|bash|zsh|fish|podman|docker|google style|numpy style|composition|stdlib|ascii|(?:the )?standard library\
    |std|thiserror|anyhow|tracing|functions|classes|interfaces|enums|generics|exceptions|their own files?|(?:a )?separate (?:file|files|commit|commits|pr)|one line|{LANG}";

/// Things in an agent's work, whatever the program is about.
const NOUN: &str = "(?:tests?|tests? (?:files?|names?|cases?)|commits?|commit (?:messages?|titles?|subjects?)|comments?|docs|documentation|docstrings?|names?\
    |identifiers?|variables?|functions?|methods?|class|classes|types?|structs?|traits?|interfaces?|components?|hooks?|modules?\
    |files?|file ?names?|folders?|imports?|exports?|constants?|enums?|errors?|error messages?|exceptions?|log messages?\
    |strings?|query|queries|migrations?|endpoints?|routes?|pr|prs|pull requests?|pr (?:titles?|descriptions?)|branch|branches|branch names?\
    |releases?|dependency|dependencies|deps?|crates?|packages?|library|libraries|secrets?|credentials|api keys|dates?|timestamps?|amounts?|money\
    |prices?|units?|colors?|helpers?|utilities|utils|mocks?|fixtures?|snapshots?|changes?|edits?|patches|answers?|replies|responses?\
    |explanations?|code|sql|indentation|lines?|whitespace|scripts?|warnings?|features?|bug ?fix(?:es)?|fixes|refactors?|refactorings?|changelog|entries|translations?\
    |templates?|text|titles?|headings?|chat|configs?|config|settings|everything(?: you write)?|anything(?: you write)?|work)";

/// Recurring events in such work.
const EVENT: &str = "(?:{W1}(?:commits?|push|pushes|pr|prs|merge|release|change|changes|edit|edits|step|steps|task|tasks|session|response|responses|answers?\
    |reply|message|refactor|refactoring|features?|bugs?|bugfix|bug fix|fix|deploy|deployment|modification|file you [^ ]+|function you [^ ]+|bug you [^ ]+|new [^ ]+))";

const VERB: &str = "answer|reply|respond|write|use|run|keep|put|name|call|commit|push|merge|rebase|test|check|format|lint|build|update|bump\
    |document|log|wrap|add|create|ask|tell|show|explain|review|verify|confirm|wait|stop|start|begin|prefix|sign|squash|follow|prefer\
    |treat|mark|tag|import|export|handle|validate|return|throw|store|save|leave|remove|delete|refactor|fix|make|do|give\
    |list|report|summari[sz]e|read|look|work|stay|stick|limit|speak|talk|include|provide|propose|suggest|open|deploy|release|regenerate\
    |rerun|re-run|sort|indent|comment|annotate|type|translate|measure|benchmark|profile|double-check|double check|increment|set|get|change|edit\
    |touch|modify|install|rename|warn|don't|dont|never|always|only|avoid|no|please|think|plan|split|group|reuse|mention|record|note|try|assume|consider|describe|end|go";

/// Beginnings of orders to an agent.
const ORDERS_EN: &[&str] = &[
    "(?:never|nevr|nver) ",
    "(?:always|allways|alwyas|alway|alwasy) ",
    "(?:don't|dont|do not|don t|donot|do n't|dnt|don;t|do never|must not|mustn't|should not|shouldn't|shall not|may not) ",
    "do , .{0,40}, not ",
    "(?:avoid|avoiding|refrain from|abstain from|steer clear of|stay away from|stay out of|keep away from|hands off|quit|cease|beware of) ",
    "stop [a-z-]+ing ",
    "(?:(?:i|i'd|we|i would|i'd much|i much|i strongly|i usually|i generally) )?(?:strongly |much )?(?:prefer|favou?r|rather have) ",
    "(?:stick|adhere|conform|comply|keep|limit|restrict|confine|constrain|restricts) (?:yourself|strictly|closely|to|with|your|all|changes|edits|the changes|the scope|it to) ",
    "(?:keep|preserve|retain|maintain|respect|obey|honou?r|mind) ",
    "stay (?:within|in|inside|on|with|compatible|consistent|close|away|out|concise|off|focused|under|below) ",
    "follow {W6}(?:styles?|conventions?|guides?|guidelines|rules?|patterns?|standards?|pep|pep8|pep-8|naming|architecture|structure|best practices|principles?|idioms|solid|dry|tdd|semver|contributing.md|spec|gitflow|template|format) ",
    "(?:match|mirror|mimic|copy|reuse) (?:the )?(?:existing|surrounding|current|project's|repo's) ",
    "(?:make|making|be|mak|mke) (?:sure|shure|certain) ",
    "(?:ensure|see to it|take care (?:that|to|not)|pay attention to|watch out for|double[- ]check|be sure to) ",
    "be (?:more |less |very |extra |as |really |a bit more |a bit less )*(?:concise|brief|terse|short|careful|strict|direct|honest|succinct|critical|verbose|precise|consistent|conservative|pragmatic|explicit|minimal|polite|formal|informal|thorough|skeptical|quiet|specific|defensive|mindful|chatty) ",
    "no (?:more |new |extra |additional |external |unnecessary |unneeded |needless |third[- ]party |other |big |large |direct |inline |global |hard-?coded |default |single-letter |one-letter |magic |runtime |dev |production |long |fancy |clever |useless |redundant |trailing |force[ -]|lengthy |unrelated |public |breaking |such |half |nested |premature |trailing |implicit |circular |deep |silent |empty |raw |manual |automatic |random |partial |blank |untested |unused |wildcard )*(?:dependency|dependencies|deps|libraries|libs|library|packages|crates|modules|gems|plugins|comments?|emojis?|tabs|semicolons?|unwraps?|panics?|mocks?|mocking|classes|globals?|push|pushes|pushing|fluff|yapping|explanations?|summary|summaries|commits?|refactors?|refactorings?|renames?|exports?|any|abbreviations|variables?|variable names|placeholders?|stubs?|hacks?|workarounds?|shortcuts?|numbers|prints?|printlns?|println!|console\\.logs?|whitespace|unsafe|lambdas?|macros?|inheritance|orms?|jquery|lodash|frameworks?|styles|css|imports|changes?|api changes?|features?|merge commits|squash|squashing|rebase|rebases|rebasing|amending|markdown|readmes?|files?|preambles?|small ?talk|apologies|jargon|buzzwords|boilerplate|abstractions?|wrappers?|singletons?|globals|state|async|threads?|loops|ternaries|one-liners|ai|docs|docstrings?|todos?|fixmes|dead code|commented[- ]out code|duplication|docker|bash|python|javascript|js|typescript|sql|regex|reformatting|formatting|guessing|guesses|secrets|credentials|cleverness|surprises|exceptions|telemetry|network|internet|warnings|co-authored-by|attribution|trailers|signatures?|lines|bullet points|lists|headings|bold|filler|praise|flattery|questions|code|side effects|casts|type assertions|ts-ignore|!important|backwards?|migrations|schema changes|optimi[sz]ations?|commas?|deployments?|releases?|refs?|goto|gotos|nesting|recursion|dark magic|threads|pointers|copies|clones?|allocations?|downtime|regressions|assumptions|speculation|essays|novels|chit-chat|chitchat|lectures|disclaimers|caveats|tables|hyphens|em dashes|dashes|headers|footers|links|images|quotes|spaces|braces|parentheses|bare except|except|try/catch|prefixes|suffixes|getters|setters|builders|factories|reflection|annotations|decorators|generators|var|let|goto|eval|exec|shell|sudo|root|force|cache|caching|cdn|polyfills|transpilation|bundler|cloud|tracking|analytics|ads|passwords|tokens|keys|pii) ",
    "no (?:new|more|extra|additional|external|third[- ]party|direct|hard-?coded|unneeded|unnecessary) [^ ]+ ",
    "no (?:{W3}[^ ,:]+ (?:please|pls|plz|allowed|ever|whatsoever|without|unless|in (?:the |this |my |our )?(?:code|repo|codebase|project|commits?|commit messages|comments|tests|answers|library|core)|anywhere|at all|yet) )",
    "no [a-z-]{3,}ing (?:of |the |in |on |around |up |things |stuff |, |$)",
    "no [^ ,:?]*[a-z][_().:!][^ ]* ",
    "(?:zero|nothing but) {W3}",
    "only (?:ever )?[^ ]+ ",
    "(?:answer|reply|respond|return|commit|push|edit|change|modify|touch|use|write|deploy|work|import|create|update) {W3}only ",
    "use (?:only )?{STYLE} ",
    "use {W6}(?:instead of|rather than|over|not|and not|but not|never|everywhere|throughout|consistently|wherever|where possible|whenever|when possible|by default|in this (?:project|repo|codebase|session)|exclusively|only|always|at all times) ",
    "(?:use|using) {W6}, (?:not|never|no|and not|but not|instead of|rather than) ",
    "(?:write|give me|answer|call|name|choose|favor|take|pick|log|run|import|put|target|send me|show me|prefer) {W6}(?:, (?:not|never|no|and not)|instead of|rather than|and never) ",
    "use {W6}for (?:all|every|everything|any|anything|each|new|[a-z]+ing|[a-z-]+(?:[a-rt-z]s|ss)) ",
    "for (?:all|every|everything|any|new|each) {W6}(?:use|prefer|stick|run|write|add|go with|, {VERB}) ",
    "(?:answer|reply|respond|speak|talk|communicate|chat|converse|write|explain|comment|document) {W6}in {LANG} ",
    "(?:speak|talk) {LANG} ",
    "(?:in )?{LANG} (?:only|please|pls|from|, please) ",
    "(?:answer|reply|respond) (?:only|just|briefly|concisely|shortly|with|as|like|without|using|in) ",
    "(?:ask|check with|consult|confirm with|notify|warn|inform|tell|show|ping|run it by|clear it with) (?:me|us) (?:{W12}(?:before|first|beforehand|if|when|whenever|prior) |$)",
    "(?:ask|check|confirm) (?:{W3}(?:before|first|beforehand)|for (?:my |)(?:permission|confirmation|approval|feedback)|instead of|rather than|, don't) ",
    "(?:get|wait for|require|await|need|obtain|seek) {W1}(?:my|explicit|user) (?:explicit |final )?(?:ok|okay|approval|permission|consent|confirmation|go|go-ahead|feedback|sign-off|signoff|review|answer|green light|instructions|yes) ",
    "(?:let me (?:review|approve|confirm|see|know|check|decide)|show me the diff|i (?:want to|will|'ll) (?:review|approve)) {W6}(?:before|first) ",
    "(?:when|if|whenever) (?:in doubt|unsure|uncertain|unclear|stuck|not sure|possible|ambiguous|anything is|something is|you're (?:unsure|not sure|stuck|in doubt)|you are (?:unsure|not sure|stuck|in doubt)|you have (?:any )?(?:doubts?|questions?)|requirements) ",
    "(?:if|when|whenever|once) (?:you|u|we) (?:have to |need to |must |want to |ever )*(?:change|changed|add|added|touch|edit|modify|create|write|rename|delete|remove|introduce|update|move|bump|commit|push|refactor|answer|reply|merge|release|deploy|use|make|do|fix|implement|finish|propose|suggest|come across|notice) {W12}(?:, {W3}|{W12}){VERB} ",
    "(?:when|while|whenever) (?:writing|naming|adding|creating|editing|changing|refactoring|committing|answering|replying|responding|documenting|touching|modifying|reviewing|fixing|testing|coding|implementing|designing|generating|renaming|deleting|pushing|merging) {W12}(?:, )?{VERB} ",
    "(?:if|when|whenever) (?:a|an|any|some) {W12}, {W1}(?:ask|tell|let me know|stop|don't|dont|never|always|warn|check|wait|report|fix|say|explain) ",
    "(?:{VERB} {W12}|)(?:before|after|on|with|for|in|per) (?:each|every|any) (?:single )?{EVENT} ",
    "(?:{VERB} {W12}|)(?:before|when|while|after) (?:you commit|you push|you merge|you release|committing|pushing|merging|releasing|deploying|you deploy|you (?:make|change|edit|touch|write|start|run|say|claim|finish)|making changes|saying|claiming|you're done) ",
    "(?:{VERB} {W12}|)(?:every|each|any) ?time (?:you|we) ",
    "(?:commit|work|test|push|save) {W1}(?:often|early|in small|frequently|regularly|after each|incrementally|step by step|one step|in steps) ",
    "(?:max|maximum|at most|no more than|up to|under|below|keep it under|not more than) [0-9]+ (?:chars|characters|columns|cols|lines|words|sentences|paragraphs) ",
    "{STYLE} (?:, )?(?:please|pls|plz|instead of|rather than|over|not|never|only|everywhere|throughout|for|and not|in all|, no|when|wherever) ",
    "(?:[0-9]|two|four|eight)[ -]spaces? ",
    "(?:less|fewer|shorter|smaller|small|short|tiny|atomic|concise|brief|minimal|descriptive|meaningful|signed) {W1}(?:comments?|commits?|emojis?|explanations?|explanation|answers?|replies|steps|diffs|patches|functions|prs|pull requests|changes|talk|summaries|text|verbose|chatty|commit messages|variable names|names) ",
    "(?:prefix|start|begin|end|sign|sign off|label|tag|name|format|title|capitali[sz]e|write|wrap|put|do|keep|treat|document) (?:off )?(?:all |your |each |every |any |new |the |my |our )*(?:commits?|commit messages?|branch|branches|prs?|pull requests|tests|test files|answers|replies|everything|all|variables|functions|code|migrations|helpers|types|constants|imports|comments|compiler warnings|warnings|docs) (?:in|with|by|like|after|as|to|into|under|next to|alongside|off|first|on|at|below|before|for|from|using|inside) ",
    "(?:tests? first|write (?:the |a |failing )*tests? (?:first|before)|do tdd|tdd) ",
    "(?:skip|omit|spare me|cut|drop|leave out|save) {W3}(?:explanations?|preamble|summary|summaries|pleasantries|intro|fluff|small talk|apologies|emojis?|boilerplate|chatter|comments) ",
    "(?:leave|let) {W12}(?:alone|as is|as-is|as it is|as they are|as it was|untouched|unchanged|be|in place|intact) ",
    "(?:change|touch|modify|edit|add|do|break|delete|remove) (?:nothing|no) ",
    "(?:call me|address me|talk to me|treat me|explain (?:things|everything|it to me)|do everything|treat|assume|target (?:es[0-9]*|python|node|java|rust|c\\+\\+|\\.net|ie|android|ios|php|go|ruby|[a-z]+ [0-9])|minimi[sz]e|pin|work (?:only|exclusively|in|on) (?:in|on|within|inside|small|a (?:separate|feature|new)|your own|the branch)|sign off|bear in mind|keep in mind|remember (?:that|,|:|we|i|i'm|this|our)|squash|resist|don't ever|consult|whenever possible|where possible) ",
    "do (?:only|just|exactly|nothing but|nothing more|what i) ",
    "nothing (?:more|else|fancy) ",
    "use {W3}(?:variable names|names|commit messages|imports|branches|paths|slashes|functions|types|hooks|exports|quotes|identifiers|comments|exceptions|units|line endings|constants|classes|abbreviations|sentences|words|terms|prs|commits|steps|helpers|variables|verbs|transactions|migrations|parameters|queries|enums|interfaces|traits|generics|errors) ",
    "(?:indent|format|align) {W1}(?:with|by|using) ",
    "wrap {W3}(?:at|after|to) ",
    "make (?:minimal|small|the smallest|as few|only|surgical|focused|incremental|atomic|the minimal|minimum|no|as little) ",
    "handle (?:all |every |any )?(?:errors?|exceptions|edge cases|failures) ",
    "(?:document|test|annotate|type|comment|cover|name|justify|explain|verify|check|question|source|cite) (?:every|each|all|any|everything|your) ",
    "(?:sign|squash|reference|mention|link|include|cite) {W6}(?:in|with|on|to|for|before) (?:every|each|all|any|your|commits?|commit messages?|prs?|the commit|the pr) |sign (?:your|all|every|each) ",
    "commit {W3}(?:regularly|often|frequently|as you go|separately|incrementally) ",
    "(?:please )?(?:switch|change|go|continue|stay|let's speak|let's talk|let's use|let's continue|speak|carry on) {W1}(?:to |in |with )?{LANG} |let's (?:speak|talk|use|write|continue|chat|communicate) {W1}{LANG} ",
    "(?:if|when|whenever) (?:a|an|any|some) (?:test|command|build|commit|step|check|file|function|change|decision|dependency|migration|error|package|task|fix|tool|requirement|question) {W12}, ",
    "(?:if|when|whenever) you (?:don't|do not|dont|can't|cannot|aren't|are not|'re not) (?:know|understand|find|get|have|sure|certain) {W12}, ",
    "ask {W3}(?:if|when|whenever|instead|rather|until) |ask questions |say so (?:if|when) ",
    "{VERB} {W12}(?:whenever|when|if|as soon as|each time|before|after) you (?:change|add|touch|edit|modify|create|write|rename|delete|remove|introduce|update|refactor|commit|push|are unsure|'re unsure|aren't sure) ",
    "think (?:twice|hard|carefully|before|first|step by step) ",
    "(?:show|print|give|output|send|list|paste|post) {W3}only (?:the |me )?(?:changed|relevant|diff|patch|code|new|essential|necessary|important|modified) ",
    "consider {W6}(?:stable|frozen|final|off|off-limits|read-only|done|fixed|private|deprecated|untouchable) ",
    "work (?:only |exclusively )?(?:in|on|within|inside) (?:small|feature|separate|a (?:separate|feature|new|dedicated|fresh)|your own|the branch|branch|branches|this branch|dev|develop|topic) ",
    "(?:apply|practice|do|remember|follow)? ?(?:kiss|yagni|dry|solid|tdd|bdd|clean code|gitflow|trunk-based) (?:and|please|,|$|principles?)",
    "(?:write|code|explain|comment|optimi[sz]e|design|document) for (?:[a-z-]+s|humans|readability|clarity|speed|people|someone|maintainability) ",
    "(?:max|maximum|at most|no more than|not more than) (?:one|two|three|four|five|[0-9]+) ",
    "aim for |strive for |target [0-9]+|default to |fall back to asking |err on |opt for |go for (?:simple|the simplest|readable)|think of me as |act as |act like |behave like |pretend |imagine you're |mark {W6}with ",
    "don't you (?:dare|ever) ",
    "rebase (?:instead|rather|don|,|before|your|onto) |in case of doubt |only (?:show|give|send|tell|print|output|answer|return|paste) (?:me )?",
    "(?:leave|keep) (?:it|them|that|this|those|these) out |leave {W12}to me ",
    "(?:come|check|get|report) back (?:to|with) me |(?:it's|it is|that's) enough (?:if|to|when) ",
    "whenever {W12}(?:, )?i (?:want|need|expect) |(?:please )?(?:describe|explain|say|tell|summari[sz]e|quote|link|paste) {W12}(?:instead of|rather than) ",
    "before (?:touching|changing|editing|deleting|removing|running|adding|renaming|restarting|installing|applying|dropping|upgrading|refactoring) {W6}(?:, )?(?:please )?(?:ask|ping|tell|talk|check|consult|notify|inform|run|write|get|wait|show|make) ",
    "(?:if|when|whenever) (?:a|an|any) (?:test|command|build|step|function|file|query|script|change|migration|package) {W12}{VERB} ",
    "(?:edit|change|touch|modify|patch|commit|push|test|read|describe) {W6}, (?:not|never) ",
    "no {W1}[a-z-]+(?:ions?|ments?|als?|ies|ings?) (?:after|before|outside|inside|during|beyond|except) ",
    "(?:short|simple|plain|full|complete) (?:sentences|words|paragraphs|lines|titles) ",
    "(?:let me|i'll|i will|i'm going to) (?:do|handle|take care of) (?:all )?the (?:commits?|committing|pushing|pushes|merging|merges?|deploys?|deployments?|deploying|releases?|releasing|migrations?|reviews?) ",
    "(?:if|when|whenever) you (?:quote|cite|mention|name|give|show|refer|report|compare|publish|print|measure|describe|summari[sz]e|query|delete|run|need|want) {W12}, (?:please |always |also )*{VERB} ",
];

/// Beginnings of sentences that are always rules.
const SURE: &[&str] = &[
    "(?:the )?{W3}(?:public api|api|public interface|interface|abi|schema|db schema|wire format|file format|format|behaviou?r|code|codebase|build|ci|pipeline|test suite|tests|coverage|frontend|backend|library|project|repo|main branch|main|master|history|changelog|readme|signatures?|bundle|core|engine|compatibility|protocol) (?:must|has to|have to|needs? to|should|may|can|shall|is|are) (?:not |never |always |only |still |to )*(?:stay|remain|compile|build|be kept|be preserved|be maintained|depend|change|break|be changed|be modified|be touched|be broken|run|pass|work|support|import|be (?:stable|green|untouched|backwards?|compatible|able)) ",
    "(?:this|the|our) (?:project|repo|codebase|repository|package|library|code) (?:is|must|should|has to|needs to) {W3}(?:only|free|stay|remain|compile|keep|support|run|work) ",
    "{W12}(?:need|needs|require|requires|with|without|after|get|until) my (?:explicit |prior |written )?(?:approval|permission|consent|sign-off|go-ahead) ",
];

/// Beginnings of sentences that state a fact for an agent to follow.
const FACTS_EN: &[&str] = &[
    "(?:you )?(?:must|should|have to|need to|are to|ought to|shall|may|can|are|will|'re) {W1}(?:never|always|only|not) ",
    "(?:you )?(?:must|have to|need to) (?:ask|stick|follow|keep|use|run|write|test|answer|respond|check|respect|stay|get) ",
    "(?:you |u )?(?:mustn't|shouldn't|should not|must not|may not|shall not|can't (?:push|commit|change|touch|edit|modify|delete|use|add|rename|install|break|merge|deploy)|cannot (?:push|commit|change|touch|edit|modify|delete|use|add|rename|install|break|merge|deploy)|aren't (?:allowed|supposed)|'re not (?:allowed|supposed)|are not (?:allowed|supposed|to)|you're not (?:allowed|supposed|to)|not (?:allowed|supposed) to|you're only|aren't to) ",
    "(?:i|i'd|we|we'd) (?:want|need|expect|like|would like|require|wish|ask|trust) (?:you|u|everything|all) (?:to )?(?:please )?(?:always|never|only|not|stick|follow|avoid|ask|wait|confirm|use|answer|respond|reply|run|keep|stop|check|stay|commit|be|work|prefer|double-check|treat) ",
    "(?:i|we) (?:want|need|expect|like|require) (?:to (?:approve|review|see|be asked|be told|confirm|sign off|decide) |all |every |each |only |no |small |short |my |our |zero |clean |minimal |atomic |tests? for (?:every|all|each) )",
    "(?:i|we) (?:really |absolutely |definitely |explicitly |also |only )*(?:don't|do not|dont|never|won't|didn't) (?:want|like(?: it when)?|wanna|accept|tolerate|allow) ",
    "i (?:really |absolutely )?(?:hate|dislike|can't stand|cannot stand|loathe|detest) (?:it when |when |{W1}[^ ,]+s )",
    "(?:i'd|i would|we'd|i had) (?:rather|prefer) ",
    "(?:let's|lets|let us) (?:always |all |both |please |try to )*(?:never|not|stick|only|avoid|always|keep|agree|make it a rule) ",
    "we (?:always|never|only|don't|do not|dont|strictly|generally|usually|won't|shouldn't|should not|mustn't|must not|cannot|can't) ",
    "we (?:must|have to|need to|should) (?:always|never|only|not|stay|keep|remain|support|be|follow|stick|avoid|preserve|maintain) ",
    "(?:in this (?:project|repo|codebase|repository) ,? ?|here ,? ?)?(?:we|this project|this repo|our team|the team|this codebase|our project|the project|this repository) (?:uses?|follows?|writes?|indents?|names?|put|puts|squash|rebase|prefer|prefers|requires?|targets?|avoids?|sticks?) (?:{W6}(?:here|in this (?:project|repo|codebase)|not|instead of|rather than|everywhere|for (?:all|every|everything|[a-z]+ing|new)|convention|style|by convention) |{STYLE} |(?:the )?{W3}(?:style|conventions?|guide|guidelines) )",
    "(?:all |any |every |each |new |our |your |both |public |private |unit |no ){W6}{NOUN} {W6}(?:must|should|shall|has to|have to|needs?|need to|ought to|gets?|goes?|goes|go|may|uses?|is to|are to|requires?|lives?|belongs?|stays?|follows?|can only|comes? with|starts?|ends?|(?:are|is) (?:to|always|never|only|required|mandatory|in {STYLE}|written|kept|named|formatted|documented|tested|typed|forbidden|done|reviewed|signed)) ",
    "{W3}{NOUN} {W6}(?:must|should|shall|has to|have to|need to|ought to|are to|can only|can never|cannot|can't|mustn't|shouldn't|should(?:n't| not)|must never|may|may not|never|always|are (?:always|never|required|mandatory|forbidden|kept|written|named|not)|is (?:always|never|required|mandatory|written|not to)|belong|belongs|stay|stays|live|lives|go|goes|start with|end with|follow|get) ",
    "{W3}{NOUN} (?:and {W1}|or {W1}|{W3})(?:only |always |strictly )*in (?:{STYLE}|the same|[^ ]+case|[a-z]+ style|[a-z]+ mood|[a-z]+ tense) ",
    "{W1}{NOUN} (?:sorted|ordered|named|written|indented|prefixed|grouped|capitali[sz]ed|signed|squashed|formatted) ",
    "{W1}{NOUN} (?:under|inside|into|next to|alongside|in) [^ ]+ (?:please )?(?:,|$)",
    "{W6}(?:go|goes|live|lives|belong|belongs) (?:always |only )?(?:in|into|under|inside|next to|alongside|below|through|to) ",
    "{W6}(?:type hints|type annotations|strict types|types|tests|docs|docstrings|const|{STYLE}) everywhere ",
    "there (?:should|must|shall|may|can) (?:be (?:no|zero|at most|only|exactly one|never|not)|never|always|not) ",
    "(?:nothing|nobody|no one|none|no [^ ]+) {W6}(?:should|must|may|can|gets?|is to|shall|is allowed) ",
    "(?:the |a |my |our |new |first |golden |only |house |ground |hard |another |one |general |important |coding )*(?:rules?|conventions?|constraints?|guidelines?|policy|ground rules?|hard requirement)(?: (?:no |nr |#)?[0-9]+)?(?: for you)? (?:is )?(?:that )?(?::|,|is) [^ ]+ [^ ]+ ",
    "i like (?:my|our|your|to keep|short|small|clean|when you|it when you|simple|explicit) ",
    "{STYLE} over ",
    "(?:tests|docs|type hints|documentation|changelog entries|a test|reviews?|approval) (?:is|are) (?:required|mandatory|a must|not optional) ",
    "(?:everything|anything) (?:in|under|inside|outside|else|below|you) {W6}(?:is|must|should|stays?|has to|needs to|may|gets?|remains?) ",
    "{W3}[^ ,:?]+ only (?:,|$|please |pls |from |in this |for this )",
    "{W3}(?:line length|line width|lines|titles?|functions?|subject lines?|subjects?|answers|replies|summary|summaries|messages|columns) ?(?:{W3}(?:max|maximum|under|below|up to|at most|limit|limited to|is|are|to|than|of|:)) {W1}[0-9]+ ",
    "(?:one|a single|max one|at most one|exactly one|max|at most|maximum|up to|no more than) {W3}per ",
    "(?:in|on|for|with|under|inside|within|at|during|outside|when it comes to|regarding) {W6}(?:never|always|don't|do not|dont|we never|we always|we don't|we only|use only|only use|avoid|prefer|please|please use|please don't|no|only) [^ ]+ ",
    "{STYLE} (?:in|for) {W6}(?:please|pls|plz) ",
    "(?:nobody|no one) (?:but|except|besides|other than) ",
    "(?:i'm|i am) the (?:only )?one who {W3}(?:merges?|push|pushes|commits?|deploys?|releases?|decides?) ",
    "(?:leave|let me do|i'll do|i do) {W3}(?:commits?|committing|pushing|merging|deploying|deploys?|merges?|releases?|releasing) (?:to me|myself) ",
    "no [^ ,]+ (?:and|or|nor) (?:no )?[^ ,]+ (?:,|$|please|in|for) ?",
    "{W3}(?:is|are) read-only (?:for you|to you|here) ",
    "[^ ,:]+ (?:[^ ,:]+ )?over (?:[^ ,:]+ )?[^ ,:]+ (?:,|$|please )",
    "[^ ,:]+ first ,? ?(?:then |and )?[^ ,:]+ (?:second|later|last|after) ",
    "(?:new |all |any |public |production |db |schema )?[^ ,:]+(?:s|ing|ies) (?:is |are )?only (?:on|in|after|via|with|from|through|when|if|under|as|inside|within|for|by|where) ",
    "[^ ,:]+ (?:is|are) only (?:ok|okay|fine|allowed|permitted|acceptable|to be) ",
    "{W6}[^ ,:?]+ only (?:$|please |pls )",
    "{W1}(?:indentation|indent|line length|max line length|encoding|charset|line endings?|quote style|code style|formatter|linter|package manager|test framework|commit style|naming convention|naming) (?:is|are|:|=|should|must|follows) ",
    "(?:jsdoc|docs?|docstrings?|doc comments?|tests?|unit tests|type hints|types|comments?|a test|one test|headers?|examples|logging|error handling|alt text|explanations?) (?:for|in|on|to) (?:all|every|each|any|new) ",
    "you (?:just |only )?(?:write|edit|code|do|propose|suggest|handle|give) {W6}, i |i (?:do|run|handle|take care of|write|review|make) {W6}, (?:and )?you ",
    "(?:i|we) (?:only|just) want [^ ]+ |(?:i'd|i would|we'd) like (?:every|all|each|no|only|short|small|the code|our) |i like it when ",
    "(?:it's|it is|that's|most|this is) (?:very |really |super |absolutely |also |extremely )?(?:important|essential|crucial|critical|vital|imperative|mandatory|key) (?:, )?(?:that|to|you|not|never|:|we) ",
    "{W3}(?:error messages?|{NOUN}) {W6}(?:end in|begin with|are (?:named|called|written|to be|kept|put|placed|stored|always|never)|is (?:written|to be|kept|put|placed|stored)) ",
    "{W3}(?:needs?|requires?|only with|only after|not without|after) (?:my |explicit |your |a |prior )*(?:approval|permission|ok|okay|consent|sign-off|review|asking|discussion|talking) ",
    "no {W1}[^ ,]+ (?:longer|larger|bigger|more|deeper|wider|shorter|fewer|less) than ",
    "{W6}(?:need|needs|require|requires) (?:approval|permission|review|a review|confirmation|sign-off|tests|a test|documentation) ",
    "we (?:support|target|ship|deploy|accept|allow|commit|use|write|merge) only ",
    "(?:in|on|for|at|within) {W6}we (?:write|use|do|keep|put|name|call|only|have|prefer|follow|avoid|want|like|commit|indent|start|end|try) ",
    "the (?:code|diff|patch|commands?) (?:, )?(?:only|please|, no) |(?:code|diff|patch|commands?) (?:, )?please ",
    "{W6}(?:needs?|requires?) (?:my|our|prior|explicit) {W3}(?:ok|okay|approval|go|sign-off|consent|permission|review) ",
    "(?:i|we) (?:want|expect|need) {W6}(?:for|with|in|per|after|before) (?:each|every|all|any) ",
    "{W6}(?:must|may|should|can|shall) (?:not|never) {W3}(?:appear|show up|end up|turn up|leave|go) ",
    "only (?:i|we) (?:may |can |am |are |get to )?[a-z]+ ",
    "no [^ ,]+ (?:left |anywhere )?in (?:committed|production|released|public|shipped) ",
    "{W3}[^ ,]+ (?:uppercase|lowercase|singular|plural|camelcase|snake_case|kebab-case|pascalcase|capitali[sz]ed) (?:,|$|please )",
    "only [a-z]+ , (?:never|don\'t|do not) ",
    "read-?only access ",
    "{VERB} {W6}before you (?:tell|say|commit|push|finish|hand|report|claim|call|start|merge) ",
    "you (?:do not|don\'t|dont|never) {W12}(?:again|ever) ",
    "(?:i'd|i would|i|we) (?:like|want|need) to (?:see|read|check|look at|approve|review|know|hear) {W12}(?:before|first) ",
    "{W6}(?:gets?|needs?|deserves?|goes in|go in|goes into|go into) (?:its|their) own ",
    "{W6}(?:has to|have to|must|should|needs? to|need to|is to|are to) (?:always )?(?:stay|remain|fit|be kept) (?:under|below|within|above|smaller|shorter|less|fewer|in|at|inside|between) ",
    "{W6}(?:must|may|should|can|shall) (?:not|never) be (?:any )?(?:slower|larger|bigger|longer|more|worse|heavier|older) ",
    "{W6}(?:is|are) (?:fixed|pinned|locked|capped|limited|restricted) (?:at|to|by) ",
    "(?:everything|anything|all|nothing|whatever|all that|what) (?:we|you|i) [^ ,]+ (?:is|are|has|have|must|should|stays?|goes|gets?|needs?) ",
    "{W12}(?:is|are) (?:ok|okay|fine|allowed|good|enough|alright|acceptable) {W6}, (?:but|just|only) (?:not|never|no) ",
    "(?:it's|it is|this is|that's) (?:a|an|our|my|the) (?:very |hard |strict |absolute |firm |basic |golden )*(?:requirement|rule|must|condition|constraint|convention|policy|principle) ",
    "{W3}(?:timestamps|dates|times|names|naming|commits|branches|figures|tests|units|amounts|numbers|language|style|format|answers|comments|logs|logging|errors|imports|quotes|encoding|versions|texts?|docs) : (?:only|always|never|no|{STYLE}|short|in|lower|upper|[a-z]+ only) ",
    "(?:each|every|all|any) new [^ ]+ {W3}(?:must|should|has to|have to|needs?|need to|gets?|comes with|requires?) ",
    "we (?:pin|sign|review|test|log|document|squash|rebase|version|lint|format|prefix|tag|measure|mock|validate|escape|cache|name|wrap|ship|support|accept|allow|deploy|merge|commit|round|store|count|translate|cite) {W1}(?:every|each|all|any|only|no) ",
    "{W6}(?:names?|titles?|tables?|columns?|keys|identifiers|headings?|labels?|messages?|constants?|fields?|files?|branches|folders?|classes|variables|functions|commits)(?: of [^ ]+)? (?:is|are) (?:always )?(?:singular|plural|lower ?case|upper ?case|camelcase|snake_case|kebab-case|sorted|alphabetical|prefixed|versioned|generated|signed|squashed|imperative|immutable|append-only) ",
    "(?:the )?{W3}(?:raw|source|original|input|master|reference|generated|vendored|production|customer|live|third-party|upstream) {W6}(?:is|are|stays?|remains?) (?:immutable|read-only|append-only|write-once|private|confidential|final|untouched|secret|generated) ",
    "(?:the )?(?:data|files?|folders?|tables?|tests|everything|anything|code) (?:in|under|inside|below|of) [^ ]+ (?:is|are|stays?|remains?) {W1}(?:immutable|read-only|append-only|write-once|private|confidential|final|vendored|generated|throwaway|frozen|secret) ",
    "{W6}(?:live|lives|belong|belongs|go|goes|stay|stays) (?:always |only )?(?:in|into|under|inside|with|on) {W6}(?:, (?:not|never)|and nowhere|only|, nowhere) ",
    "{W3}(?:is|are) yours {W12}, {W6}(?:is|are) not ",
    "(?:i'm|i am|the reader is|readers are|our users are) (?:colou?r-?blind|blind|deaf|dyslexic|new to|a beginner|not a native) ",
    "{W12}(?:, (?:so|therefore|hence)|so) (?:please |always |never |don't |do not |keep |no |use |check |stick |avoid |leave |treat |only )[^ ]+ ",
    "{W6}(?:are|is|get|gets) never (?:ever )?(?:renamed|changed|edited|deleted|removed|reused|logged|committed|shared|exposed|hardcoded|hard-coded|modified|printed|stored|rounded|mocked|merged|overwritten|translated) ",
    "(?:our|the) {W1}[^ ,]+ (?:signs? off|reviews?|approves?|checks?|reads?) (?:on )?(?:every|each|all|any) ",
];

const NO_SURE: &[&str] = &[
    "{W12}(?:now|again|already|yesterday|before) (?:,|$)",
    "{W12}(?:should|must) (?:pass|work|run|compile|build) (?:now|again|,|$)",
];

/// Clauses that start like orders but are not.
const NO_ORDERS_EN: &[&str] = &[
    "(?:never|always) (?:mind|again|seen|had|got|been|saw|heard|knew|gonna|will|would|the|a|an|getting|get|is|was|are|were|wanted|did|does|has|have|found|ran|came|went|thought|works|fails|returns|answers|responds|happens|finishes|ends|terminates|stops|shows|gets|comes|goes|loads|starts|crashes|matches|appears|runs|passes|exists|helps|changes|breaks|hits|reaches|calls|gives|throws|says|takes|closes|opens|fires|triggers|renders|updates|syncs|sends|receives|connects|completes|compiles|builds|hangs|prints|writes|reads|saves|logs|emits|occurs|resolves|reports|halts|sees|uses|needs|wants|makes|leads|tells|asks|forgets|seems|looks|keeps|remembers|waits|displays|sets|calls|picks|ignores|allocates|blocks|exits|dies|redirects|[a-z]*[^eb]ed|worked) ",
    "(?:don't|dont|do not|don t) (?:know|knw|worry|think|care|mind|understand|see|get|remember|recall|believe|have|need|forget|hesitate|really|like|they|we|i|work|seem|exist|bother me|sweat|blame|sure|make sense|match|matter|appear|show up|get me) ",
    "(?:don't|dont|do not) be (?:surprised|afraid|shy|sorry|scared|sad|fooled|confused|mad|discouraged) ",
    "do not disturb ",
    "(?:don't|dont|do not|must not|mustn't|should not|shouldn't|may not) (?:exist|work|happen|matter|be (?:null|empty|here|there|possible|needed|necessary|hard|a problem|an issue|too hard)) ",
    "stop (?:working|responding|loading|compiling|rendering|functioning|string) ",
    "keep (?:getting|seeing|going|hitting|having|failing|trying|up|running|receiving|crashing|me logged|the (?:first|last)|up the|in touch) ",
    "mind (?:if|you|the gap|blown|that|explaining|taking|having|telling|helping) ",
    "(?:make|making) sure (?:i|it (?:works|compiles|builds|runs|is fixed)|this (?:works|compiles|builds|runs)|that (?:it|this) (?:works|compiles)) ",
    "no (?:new|more|extra|additional) (?:errors?|failures?|crash|crashes|issues?|problems?|messages?|data|rows|results?|luck|logs?|entries|output) ",
    "no (?:(?:more |other |new )?(?:idea|problem|problems|worries|worry|luck|thanks|thank|need|matter|wonder|doubt|way|errors?|result|results|output|effect|difference|rush|hurry|biggie|reason|sense|clue|chance|longer|one|warnings|changes|files|logs|tests|commits|lines|code|docs|questions|comments?) (?:in the |in my |yet |,|$|at all|were|was|are|is|found|that|there|either|so far|anymore|shown|about|from|why|what|how|whether|to show|on) ?)",
    "only (?:the|a|an|one|two|three|some|this|that|these|those|if|when|then|because|after|problem|thing|issue|way|question|difference|happens|i|it|he|she|we|you|in|with|at|by|just|since|known|happened|works|fails|[0-9]+|part|reason|my|your|our|partially|[a-z]*[^s]s|[a-z]*[^e]ed|once|during|sometimes|slightly|now|about|for) ",
    "only (?:thing|the admin|admins|users|for) ",
    "(?:use|using|write|put|give me|run|take|import) (?:the|this|these|those|that) (?:numbers|values?|data|version|result|results|output|debugger|one|above|following|same approach|rows?|other) ",
    "use {W6}for (?:this|his|us|these|those|its|is|as) ",
    "use [^ ]+ (?:here|there|now)? ?(?:,|$)(?:$)",
    "(?:let's|lets) keep (?:going|working|trying|digging|it up) ",
    "(?:i'd|we'd|i would) prefer (?:to know|to see what|an answer) ",
    "(?:don't|dont|do not) let (?:it|the|this|them|that|users?) ",
    "(?:if|when|whenever|every time|each time|after|before|any time) {W12}(?:, )?(?:it|this|that|the|app|page|everything|nothing|i|there|my) {W3}(?:crashes|crash|fails|throws|breaks|hangs|happens|freezes|disappears|changes|shows|takes|gets|goes|is|returns|resets|reloads|jumps|says|loses|stops|dies|get|see) ",
    "(?:(?:i|we|i'd|i would|i'd much) )?(?:much )?(?:prefer|favou?r|rather have) (?:option|approach|variant|version|solution|number|this|that|your|it|to know|to see|(?:the )?(?:first|second|third|former|latter|other|new one|old one)) ",
    "(?:don't|do not|dont) (?:,|$)",
    "keep only (?:the|those|rows) ",
    "avoid (?:the|this|that|these) {W6}(?:in|on|at|from|when) ",
    "no {W3}(?:is|are|was|were|needed|necessary|required|found|left|shown|available|visible|detected|expected|given|yet|works?|fails?|running|happens|either|though|appears?|returned|changed|received) ",
    "only {W3}(?:is|are|was|were|has|have|works|fails|gets|shows|seems|needs|does|pass|passes|left|remains?) ",
    "(?:write|translate|explain|comment) (?:the readme|this|it|a|an|that) {W6}in ",
    "(?:don't|dont|do not) bother (?:,|$)",
    "prefer the {W1}(?:one|version|option|approach|solution|layout|design) |(?:i|we) (?:really )?prefer the {W1}(?:one|version|option|approach|solution|layout|design) ",
    "act as (?:a )?(?:proxy|fallback|default) ",
    "(?:document|test|annotate|type|comment|cover|explain|check|handle|wrap|format|indent|use|avoid|rename|write) {W12}in [^ ]+\\.(?:rs|py|js|ts|tsx|jsx|go|java|c|cpp|h|rb|php|css|html|vue|swift|kt|sql|sh|cs|json|yaml|yml|toml) (?:,|$)",
    "no such (?:file|luck|thing|host|table|column|module) ",
    "use an? {W6}for (?:[a-z]+s|[a-z]+ing|this|that) (?:,|$)",
    "keep (?:me|us|him) ",
    "(?:(?:i|i'd|i would|we|we'd) )?(?:really )?prefer (?:an? )?(?:simpler|different|another|shorter|better|cleaner) (?:solution|approach|way|version|name|layout|design) ",
    "avoid {W6}in [^ ]+\\(\\) ",
    "(?:i'd|i would|we'd) (?:rather|prefer) (?:to )?(?:have|use|see|do|go) (?:a|an|the|this|that|it) ",
    "(?:i'd|i would|we'd) prefer an? (?:simpler|different|another|shorter|better|cleaner) ",
    "(?:if|when|whenever) you (?:run|need|want|delete|query|print|show) {W12}, (?:do|does|is|are|it|the|this|that|nothing|everything|there) ",
];

/// Clauses that start like such facts but are not.
const NO_FACTS_EN: &[&str] = &[
    "(?:it|he|she|that|they|there|which|what|who|the (?:bug|error|problem|issue|crash|app|page|site|server|test|build)) {W12}(?:only|per|before|after|every|each) ",
    "(?:must|should|may|can|has to|have to|need to|needs? to) (?:not |never )?(?:have been|have|be wrong|be broken|be missing|be a bug|be merged|be fixed) ",
    "(?:i must|i should|i need to|i have to|i can|i may) ",
    "(?:the|this|that|these|those|my|his|her|its|a|an|it|there's|there) {W6}(?:must|should|has to|may|can) (?:be|have) (?:wrong|broken|missing|been|a bug|an error|something|renamed|fixed|merged|the (?:reason|cause|problem)) ",
    "(?:the|this|that|these|those|my|his|her|a|an|its|their|it|he|she|they|some|which|something|somehow|someone|two|one|three|several|many|most|few) {W6}{NOUN} {W6}(?:must|should|shall|has to|have to|need to|ought to|are|is|can|cannot|can't|never|always|may|belong|belongs|live|lives|go|goes|stay|stays|get|mustn't|shouldn't|start|end|follow|in|sorted|named|written|formatted|ordered|under|inside|into|grouped) ",
    "(?:the|a|this|one) {W6}goes ",
    "(?:this|that|it|these|those|i|he|she|which|something|my|two|the (?:error|request|bug|output|data|button|modal|user|traffic|page|app)) {W6}(?:go|goes|live|lives|belong|belongs) ",
    "{W6}{NOUN} {W3}(?:is|are|always|never) {W1}(?:red|failing|broken|slow|null|undefined|empty|wrong|missing|the same|flaky|fails?|pass(?:es)?|fine|ok|okay|green|done|passing|there|gone|back|ready|now|back|still) ",
    "{W6}(?:go|goes) (?:in|into|to) (?:a loop|an infinite|sleep|waste) ",
    "we (?:always|never|only|don't|do not|dont|can't|cannot|usually|generally) (?:get|got|see|saw|end|run into|had|have|hit|know|understand|need|received?|want|see|found|managed|really|have|get|find|figure|reproduce|tried|noticed) ",
    "(?:i|we) (?:don't|do not|dont) want to (?:lose|spend|waste|wait|bother|deal) ",
    "(?:i|we) (?:really )?(?:don't|do not|dont) like (?:the|this|that|how|it (?:at|so|here|,|$|that)) ?",
    "i (?:hate|dislike|loathe) (?:this|his|the|that) ",
    "there (?:must|should|can|may) (?:be (?:a|an|some|something|more)) ",
    "{W6}(?:read|write|append|import|test|view) only ",
    "(?:{VERB}) (?:a|an|me|some|another) ",
    "{W6}(?:that|which|who) (?:should |must |can |will )?(?:never|always|only|is|are|must|should|goes|go|may) ",
    "(?:in|on|for|with|under|inside|within|at|during|outside) {W3}[^ ,:?]+ (?:it|they|the|this|that|i|he|she|a|users?|there) {W3}(?:never|always|no|don't|do not) ",
    "(?:i'd|i would) (?:rather|prefer) (?:not |to )*[^ ]+ (?:it|this|that) ",
    "no (?:errors?|warnings?|logs?|output|idea|problems?|issues?|results?|luck) ",
    "(?:start|starting|move|go|hand|take|hover|roll|switch|come|think|read|check|over|left|it's|game|all|carry|hovering|iterate|loop|loops|iterates|run|runs|jump) {W1}over ",
    "(?:[a-z]+s|works?|fails?|it|they|this|that|the|these|happens|only|tests fail|tests pass|run|show|show me|give me|make|set|mark|start|open|copy|render|load|disable|enable|hide|send|retry|display) {W6}only (?:$|please|pls) ?",
    "i only want to (?:know|see|understand) |i just want ",
    "(?:i'd|i would) (?:rather|prefer) (?:to )?(?:have|use|see|do|go) (?:a|an|the|this|that|it) ",
    "(?:it's|it is|that's) (?:very |really )?(?:important|essential|crucial) (?:to know|to understand|to me to know) ",
    "(?:the|that) (?:code|file|module|class|function|script|author|library) (?:uses|used|has|had) ",
    "in the (?:old|previous|last|new|current) (?:version|release|code) ",
    "(?:let's|lets) not forget ",
    "we (?:never|always|only|all|both) (?:[a-z]+ed|got|had|saw|found|knew|did|made|came|went|thought|took|ran|gave|kept) ",
    "(?:each|every|any|all) new (?:user|users|customer|player|visitor|order|message|member|session|account|item|row|guest|subscriber|connection|request) ",
    "{W12}(?:, (?:so|therefore|hence)|so) no (?:idea|problem|worries|rush|hurry|need|wonder|errors?|luck|clue|changes?|results?) ",
    "(?:everything|anything|all|nothing|what|whatever) (?:we|you|i) [^ ,]+ (?:is|are|has|have|gets?|needs?) (?:a|an|the|to|wrong|broken|gone|lost|that|this|been|here|there|slow|empty) ",
];

/// Phrases that make a rule anywhere.
const PERSISTENT_EN: &[&str] = &[
    " (?:from now on|form now on|from here on|from this point|from today on|going forward|moving forward|in future|in the future|for the rest of (?:this|the|our)|for the remainder of|for this (?:whole |entire )?session|throughout (?:this|the) (?:session|project)|until further notice|as a (?:general )?rule|at all times|under no circumstances|in no case|no matter what|by no means|for all (?:future|new)|all future|every future|henceforth|once and for all) ",
    " (?:without|w/o|witout) (?:asking|my|telling|checking|permission|approval|confirmation|consulting|explicit|an explicit|me |first|confirming|prior|talking to me|notice) ",
    " unless (?:i|we) (?:explicitly |specifically |really |clearly )*(?:say|ask|tell|told|approve|confirm|want|request|agree|said|okay|ok|allow|mention|instruct) ",
    " unless (?:asked|told|instructed|requested|explicitly|absolutely|strictly|otherwise|necessary|needed|it's absolutely|really) ",
    " (?:until|unless|before) i (?:say|approve|confirm|tell|give|ok|okay|'ve|have (?:approved|reviewed|confirmed|said)|reviewed|review|approved|said) ",
    " only (?:if|when|after|once) i (?:say|ask|tell|approve|confirm|explicitly|give) ",
    " (?:is|are|remains?|stays?) (?:strictly |absolutely |completely |totally |now )?(?:forbidden|prohibited|off limits|off-limits|offlimits|not allowed|disallowed|banned|taboo|mandatory|a must|a no-go|a no go|frozen|untouchable|sacred|not to be [^ ]+|non-negotiable|out of bounds|out of scope|never to be [^ ]+|write-protected) ",
    " (?:must|should|may|shall|can|are|is) ?(?:not|never|n't) (?:to )?be (?:changed|modified|touched|edited|broken|renamed|removed|deleted|committed|logged|pushed|used|altered|reformatted|checked in|overwritten|mocked|merged|imported|hardcoded|hard-coded) ",
    " (?:is|are) required for (?:every|all|each|any) ",
    " (?:stays?|remains?) (?:as is|as it is|as they are|untouched|unchanged|the same|stable|private|internal|compatible|out) ",
    " hands off ",
    ", (?:always|never) (?:,|$)",
    " (?:i|i've) (?:told you|said|asked you) (?:already |before |not |to )*(?:never|always|not to|don't|no) ",
    " (?:every|each) ?time (?:you|u) ",
    " (?:say|said|tell you|told|stated|noted|specified|mentioned|say so) otherwise ",
    " (?:after|until|once|before|unless) (?:i've|i have|we've|we have) (?:looked|seen|checked|read|approved|reviewed|signed|confirmed|said|okayed|had a look|given|had a chance) ",
    " (?:isn't|is not|aren't|are not) (?:up for (?:discussion|debate|negotiation|grabs)|negotiable|optional|to be discussed|debatable) ",
    " (?:please|pls) ,? ?no [a-z-]+ ",
    " (?:goes|go|has to go|must go|runs|gets?|pass|passes) (?:through|past|via|by) me (?:first|,|$) | (?:goes|go|must go|has to go) through me ",
    " (?:that's|it's|they're|those are|these are) (?:mine|off limits|not yours|not ours to) ",
];

/// Phrases that revoke rules.
const REVOKED_ALL: &[&str] = &[
    " (?:you|u) (?:may|'re free to|are free to|can go ahead and) (?:now |again |also )*(?:[^ ]+ )",
    " (?:you|u) can (?:now|again) ",
    " (?:you|u) can {W6}(?:now|again|freely|without|from now on|as you like|at will|directly|yourself|on your own) ",
    " (?:you can stop|you can start|you could now) [a-z-]+ing ",
    " (?:you're|you are|ur) (?:now |again |hereby )*(?:allowed|free|permitted|welcome) (?:now |again )?to ",
    "^ (?:ok |okay |and |but |so |now |, |fine |actually |yes |alright )*(?:it's|its|it is|that's|is|it'd be) (?:now |totally |perfectly |also )*(?:ok|okay|fine|allowed|alright|all right|acceptable|permitted) (?:now |again )?(?:to|if you|for you|to now) ",
    " (?:forget|ignore|drop|disregard|scratch|cancel|lift|revoke|scrap|override|relax|nevermind|never mind) (?:about )?{W3}(?:rules?|restrictions?|constraints?|conventions?|policy|ban|freeze|limits?|instructions?|guidelines?|requirement) ",
    " (?:forget|ignore|scratch|disregard|nevermind|never mind|drop) (?:about )?(?:what i|my (?:earlier|previous|last|old|prior)|everything i) ",
    " (?:rules?|restrictions?|ban|freeze|constraints?|limit|policy|convention) {W12}(?:no longer|doesn't apply|does not apply|is lifted|is off|is gone|is over|anymore|any more|any longer|is obsolete|isn't) ",
    " (?:no longer|don't|do not|dont|needn't|doesn't) (?:need|have|necessary|required|must)? ?(?:to )?{W12}(?:anymore|any more|any longer) ",
    " (?:you no longer (?:need|have|must)|no longer (?:necessary|required) to|there's no need to {W6}(?:anymore|any more|any longer)|no need to {W12}(?:anymore|any more|any longer|from now)) ",
    " (?:is|are) (?:now |again )*(?:allowed|permitted|acceptable)(?: now| again| in| for| from|,|$)? ",
    "^ {W3}(?:is|are) (?:ok|okay|fine) (?:in|for|inside|within) (?:tests|[a-z]+s) ",
    " feel free to ",
    // German, French, Spanish, Italian, Portuguese.
    " du (?:darfst|kannst) (?:jetzt|nun|wieder|ab jetzt|ab sofort|ruhig|gerne?|künftig|auch) ",
    " du (?:musst|brauchst) {W12}(?:nicht|kein|keine|keinen) {W6}mehr ",
    " (?:vergiss|ignoriere?) (?:die (?:regel|vorgabe|einschränkung)|was ich|das mit|meine) ",
    " (?:regel|vorgabe|einschränkung|verbot) {W6}(?:gilt|ist) {W3}(?:nicht mehr|aufgehoben|hinfällig) ",
    " (?:ist|sind) (?:jetzt |wieder |nun |ab jetzt |ab sofort )+(?:erlaubt|okay|ok|in ordnung|gestattet) ",
    " tu (?:peux|as le droit de|es autorisé à) {W3}(?:maintenant|désormais|à nouveau|de nouveau) | tu n'as plus (?:besoin|à) | (?:oublie|ignore) (?:la règle|ce que j'ai|la consigne) | la règle {W6}(?:ne s'applique plus|n'est plus) ",
    " (?:ya|ahora) (?:sí )?puedes | puedes {W6}(?:ahora|otra vez|de nuevo|sin) | (?:olvida|ignora) (?:la regla|lo que dije|lo de|lo que te dije) | ya no (?:hace falta|es necesario|tienes que|necesitas|hay que|aplica|se aplica|vale) | la regla {W6}ya no ",
    " (?:ora|adesso) puoi | puoi {W3}(?:ora|adesso|di nuovo) | (?:dimentica|ignora) (?:la regola|quello che) | non (?:serve|devi|è necessario) più ",
    " (?:agora|já) (?:você )?(?:pode|podes) | pode {W3}(?:agora|de novo) | (?:esqueça|esquece|ignore) (?:a regra|o que eu) | não precisa mais ",
    "可以(?:直接)?(?:推送|提交|改|修改|使用|用|删|加|push)[^。]*了|现在(?:你)?可以|現在(?:你)?可以|(?:不用|不必|不需要|無需|无需|不用)再|(?:忘掉|忘记|取消|忽略)[^。]*(?:规则|規則|限制|要求|之前说|之前說)|(?:规则|規則|限制)[^。]*(?:取消|不再|作废|解除)",
    "(?:して|使って|変更して|push|プッシュして|追加して)も(?:いい|大丈夫|よい|良い|構いません|かまいません|OK|ok)|もう[^。]*(?:なくて(?:いい|大丈夫|も)|不要|必要はありません|必要ありません)|ルール(?:は|を)[^。]*(?:忘れ|無効|撤回|なし|取り消)",
    " (?:remove|lift) the (?:rule|restriction|ban|freeze) (?:on|about|against|for) ",
    " (?:{STYLE}|emojis|comments|mocks|new dependencies|unwraps?|force pushes) (?:is|are) (?:fine|ok|okay|allowed|alright) (?:now|again|from now) ",
    " i (?:take back|changed my mind|take it back) | we (?:no longer|dropped|drop) (?:support|need|use|require|have to|care|[a-z]+) | (?:limit|rule|restriction|ban|freeze|convention) (?:is|has been|was) (?:gone|lifted|over|dropped|removed|off|void) ",
    " (?:finalement|désormais|maintenant) {W1}tu (?:peux|as le droit) ",
    "(?:触って|変えて|消して|直して)も?(?:いい|よい|良い|大丈夫)",
    " (?:freeze|ban|lock|rule|restriction|limit|embargo|convention|policy) {W6}(?:has been|have been|is|was|are|were) (?:now |finally |already )*(?:lifted|over|gone|off|dropped|removed|void|history|obsolete|no more) ",
    " (?:you )?(?:don't|do not|needn't|no longer) (?:need to|have to) {W12}(?:each time|every time|any ?more|any longer|from now on) ",
];

const VERB_DE: &str = "änder|ändere|ändre|fass|fasse|lösch|lösche|verwend|verwende|benutz|benutze|nutz|nutze|nimm|schreib|schreibe|mach|mache|füg|füge\
    |installier|installiere|erstell|erstelle|leg|lege|bau|baue|lass|lasse|entfern|entferne|geh|gehe|führ|führe|ruf|rufe|antwort|antworte\
    |erklär|erkläre|kommentier|kommentiere|rühr|rühre|veränder|verändere|modifiziere|bearbeite|editier|editiere|überschreib|überschreibe\
    |refactore|refaktorisiere|importier|importiere|rate|erfinde|erfind|frag|frage|formatier|formatiere|deploye|verschieb|verschiebe|nenn|nenne\
    |benenn|benenne|gib|zeig|zeige|setz|setze|pack|packe|speicher|speichere|brich|fang|fange|wechsle|wechsel|tu|hol|hole|sag|sage|beweg|bewege\
    |berühr|berühre|committe|commite|teste|pushe|push|merge|commit|starte|prüf|prüfe|mocke|dokumentier|dokumentiere|arbeite|hinterlass|hinterlasse|liefere|begründe|führe";

const NOUN_DE: &str = "(?:unit-tests?|tests?|commits?|commit-nachrichten|commitnachrichten|commit-messages|commit messages|kommentare|codekommentare|funktionen|funktionsnamen|variablen|variablennamen\
    |namen|dateien|klassen|antworten|änderungen|doku|dokumentation|code|branches|branch-namen|prs|pull requests|bezeichner|fehlermeldungen|abhängigkeiten|migrationen|konstanten\
    |zeilen|texte|überschriften|methoden|typen|module|endpunkte|features|passwörter|secrets|api|schnittstelle|public api|konfiguration|imports|hilfsfunktionen|logs|meldungen|einrückung)";

const ORDERS_DE: &[&str] = &[
    "(?:nie|niemals|immer|stets|grundsätzlich|keinesfalls|ausschließlich|niemals) ",
    "kein(?:e|en|er|es|erlei)? [^ ]+ ",
    "{VERB_DE} {W12}(?:nicht|nie|niemals|nur|immer|keine[nrms]?|kein|nichts|ausschließlich|stets|grundsätzlich|ohne|statt|anstatt|anstelle|für neuen?|jedes mal|jedesmal|bei jedem|bei jeder|vor jedem|vor jeder|nach jedem|nach jeder|unverändert|in ruhe|bevor|vorher|lieber|überall|künftig|weiterhin|für (?:alle|jede[nrms]?)) ",
    "{VERB_DE} {W6}(?:auf|in) {LANG} ",
    "{VERB_DE} {STYLE} ",
    "(?:sprich|rede|red|antworte|schreib|schreibe) {W6}(?:{LANG}|per du|knapp|kurz) ",
    "(?:auf|in) {LANG} ",
    "nur {W3}(?:auf|in|unter|mit) [^ ]+ (?:bitte )?(?:,|$|arbeiten)",
    "(?:frag|frage) (?:mich|bitte|immer|erst|vorher|zuerst|lieber|nach|vor) ",
    "(?:warte|wart) (?:immer )?(?:auf|bis|mit) (?:mein|meine|meinen|ich|dem) ",
    "(?:sag|gib|zeig|zeige) (?:mir )?{W6}(?:bevor|vorher) ",
    "(?:bevor|ehe) du {W12}, ",
    "(?:immer )?(?:wenn|falls|sobald|sooft) du {W12}(?:[^ ,:]+st|bist) , ",
    "(?:im zweifel|im zweifelsfall|jedes mal ,? ?wenn du|jedesmal ,? ?wenn du|bei unklarheiten|wenn (?:etwas )?unklar) ",
    "(?:ich|wir) (?:will|möchte|mag|wünsche|brauche|wollen|möchten|erwarte) {W6}(?:kein|keine|keinen|nicht|nie|nur|immer|, dass du (?:immer|nie|nur|vor|keine|nicht)|, dass alle) ",
    "(?:ich|wir) (?:bevorzuge|bevorzugen|ziehe|hätte gern|hätte lieber|hasse) ",
    "(?:lass|lasse|laß) {W12}(?:in ruhe|unverändert|wie (?:er|sie|es) (?:ist|sind)|unangetastet|stehen|die finger|so) ",
    "(?:finger weg|hände weg|halt dich|halte dich|halte|halt|bleib|bleibe|beschränk|beschränke|achte|acht|stell (?:bitte |immer )?sicher|stelle (?:bitte |immer )?sicher|sorg|sorge|vermeid|vermeide|bevorzug|bevorzuge|verzichte|hör (?:bitte )?auf|höre auf|unterlass|unterlasse|respektier|respektiere|behalt|behalte|beachte|berücksichtige|denk (?:bitte )?(?:immer )?(?:dran|daran)|fasse dich|fass dich|sei|behandle|wahre) ",
    "du (?:darfst|sollst|solltest|musst|kannst) {W6}(?:nicht|nie|niemals|nur|immer|keine[nrms]?|kein|nichts|vor jedem|nach jedem|nach jeder|vor jeder|bei jeder|bei jedem|stets|erst) ",
    "(?:wir|hier) (?:wird |werden )?(?:verwenden|benutzen|nutzen|schreiben|committen|pushen|machen|nehmen|arbeiten|testen|verwendet|mocken) {W6}(?:nie|nur|immer|keine[nrms]?|nicht|kein|stets|ausschließlich|hier|statt|{STYLE}) ",
    "(?:jede[rsn]?|alle|sämtliche) {W6}(?:muss|müssen|braucht|brauchen|bekommt|soll|sollen|darf|dürfen|gehört|gehören) ",
    "(?:duze?|sieze?|nenne?|sprich) (?:mich|uns) ",
    "schreibe? {W3}{NOUN_DE} {W3}(?:im|in|auf|mit|ohne) |(?:verwende|benutze|nutze|wähle?) (?:sprechende|aussagekräftige|kurze|klare|eindeutige) ",
    "(?:nur |bitte )*(?:kleine|kurze|knappe|sprechende|atomare|einfache|kleinere|kürzere) {W1}(?:{NOUN_DE}|antworten|erklärungen|schritte|prs|diffs) ",
    "{W3}(?:max|maximal|höchstens) [0-9]+ (?:zeichen|zeilen|wörter|sätze|spalten) ",
    "{W6}(?:bleibt|bleiben) (?:wie|unverändert|unangetastet|stabil|privat|gleich|kompatibel|tabu) ",
    "(?:nach|vor|bei) (?:jeder|jedem) {W12}",
    "es (?:darf|dürfen|soll|sollen) (?:keine?|nichts|nie|niemand|nur|keinen) ",
    "(?:ich|wir) (?:will|möchte|wollen|möchten|erwarte) , dass (?:du (?:immer|nie|nur|vor|keine|nicht)|alle|jede) ",
    "(?:antworten|kommentare|doku|namen) (?:bitte )?(?:kurz|knapp|kürzer|sprechend) ",
    "(?:erklär|erkläre|zeig|zeige|sag|sage|dokumentier|dokumentiere|begründ|begründe|kommentier|kommentiere|teste|nenn|nenne) {W6}(?:jede[nrsm]?|alle|stets|immer) ",
    "vor dem {W3}(?:bitte )?(?:frag|sag|zeig|gib|lass|prüf|teste|warte|sichere?)e? |(?:ein|eine|einen) (?:commit|datei|klasse|test|branch|pr|thema|funktion|ticket|änderung) (?:pro|je) ",
];

/// The same, by nouns and infinitives.
const FACTS_DE: &[&str] = &[
    "{W6}(?:nicht|nie|niemals|immer|nur|keine[nrms]?|kein|stets|nichts|ausschließlich|ohne) {W12}[a-zäöüß]{2,}(?:en|ern|eln|tun) (?:bitte )?(?:,|:|$|und |sondern |oder )",
    "(?:alle |neue |jede[rs]? |die |unsere |der |das )*{W3}{NOUN_DE} {W6}(?:müssen|muss|sollen|soll|sollten|dürfen|darf|gehören|gehört|kommen|kommt|liegen|bleiben|bleibt|nie|niemals|nur|stets|bitte|(?:immer )?(?:auf|in) {LANG}|in {STYLE}|brauchen|braucht|bekommen|bekommt|immer|ohne|nach|unter) ",
    "{W6}(?:darf|dürfen) {W6}(?:nicht|nie|niemals|keine|nur) {W6}(?:geändert|verändert|angefasst|gelöscht|verwendet|committet|commitet|gepusht|brechen|ändern|umbenannt|verschoben|werden|kaputtgehen) ",
    "{W6}(?:wird|werden) {W3}(?:nichts|nicht|nie|niemals) {W3}(?:geändert|angefasst|verändert|gelöscht|angerührt|committet|gepusht|umbenannt) ",
    "{W6}(?:erledige|mache|mach|übernehme|entscheide|merge|deploye|committe|pushe|release|prüfe|schreibe) ich (?:immer )?(?:selbst|selber|alleine?) ",
    "{W12}(?:wird|werden) {W3}(?:gesiezt|geduzt|gegendert|kleingeschrieben|großgeschrieben|klein geschrieben|groß geschrieben|versioniert|signiert) ",
    "(?:immer )?(?:erst|zuerst) [a-zäöüß]+n , dann ",
];

const NO_FACTS_DE: &[&str] = &[
    "(?:{W12}(?:ich|es|er|man|kann|können|konnte|wird|wurde|wurden|ist|sind|war|hat|habe|haben|scheint|lässt|klappt|geht|kommt|werden|das|dass|weil|warum|läuft|laufen|schlagen|stimmt|zeigt|gibt|fehlt|seit) {W12}(?:nicht|nie|niemals|immer|nur|keine[nrms]?|kein|nichts|ohne) )",
    "(?:{W12}(?:nicht|nie|niemals|immer|nur|keine[nrms]?|kein|nichts|ohne) {W6}(?:ich|es|er|man|kann|können|konnte|wird|wurde|wurden|ist|sind|war|hat|habe|haben|scheint|klappt|geht) )",
    "(?:das|es|dies|der fehler|die seite|der server|da|dort) {W6}(?:darf|muss|soll|müsste|müssen|sollte|bleibt|kommt|kommen) ",
    "(?:der|die|das|dieser|diese|dieses|ein|eine) {W6}(?:tests?|code|commit|datei|funktion|fehlermeldungen|logs?|antwort|antworten) {W6}(?:laufen|schlagen|schlägt|kommt|kommen|bleibt|bleiben|nicht mehr|immer noch|sind|ist|hängt|hängen) ",
    "{W12}(?:wir|denen|der|welche) (?:nie|nicht|immer|nur|keine) ",
    "nur (?:noch|der|die|das|ein|eine|wenn|dann|kurz|zur|zum|weil|so|mal) ",
];

const NO_ORDERS_DE: &[&str] = &[
    "immer (?:noch|wieder|mehr|wenn ich|fehler|error|[0-9]+|nur|dieser fehler|der|die|das|dieser|dieselbe|ein|eine) |nie (?:gesehen|gehört|im leben) ",
    "kein(?:e|en|er|es)? (?:ahnung|problem|probleme|idee|fehler|sorge|sorgen|angst|zeit|lust|änderung|änderungen|unterschied|ergebnis|ergebnisse|treffer|reaktion|stress|eile|plan|wunder|chance|frage|fehlermeldung|ausgabe|antwort|wirkung|log|logs) ",
    "wenn du (?:das |damit |hiermit |da |alles |soweit )*(?:fertig|durch|zeit|kannst|willst|möchtest|meinst|magst) ",
    "(?:wenn|falls|sobald|bevor) {W12}, (?:stürzt|kommt|passiert|erscheint|siehst|wird|ist|dann stürzt|bekommt|bekomme|hängt) ",
    "du (?:musst|brauchst) {W1}(?:nicht|keine|kein) ",
    "(?:halt|halte) (?:mal|kurz|an|stopp) |sei (?:so|nicht böse) |achte mal |lass (?:uns|mal sehen) ",
    "ich (?:will|möchte|mag) {W1}(?:nicht|nur) (?:wissen|verstehen|sehen|sagen|wissen|dass ich) ",
    "nur (?:noch|der|die|das|ein|eine|wenn|dann|kurz|zur|zum|weil|so|mal) |wir (?:haben|hatten|können|sind|werden) ",
    "(?:nach|vor|bei) (?:jeder|jedem) {W12}(?:ist|sind|kommt|stürzt|fehlt|hängt|geht|wird|werden|muss ich|habe ich|kriege ich) ",
    "(?:das|es|die seite|der bildschirm|der|er|sie) {W3}(?:bleibt|bleiben) ",
];

const PERSISTENT_DE: &[&str] = &[
    " (?:ab (?:jetzt|sofort|heute|nun)|von (?:jetzt|nun|heute) an|in zukunft|künftig|zukünftig|für den rest (?:der|des|dieser)|bis auf weiteres|unter keinen umständen|auf keinen fall|in keinem fall|fortan) ",
    " ohne (?:rückfrage|rücksprache|nachfrage|zu fragen|mich zu|nachzufragen|vorher|ausdrückliche|erlaubnis|meine|mein|zustimmung|freigabe|genehmigung|dass ich) | es sei denn ,? ?ich ",
    " (?:ist|sind|bleibt|bleiben|wird|werden) {W3}(?:verboten|tabu|nicht erlaubt|untersagt|pflicht|gesperrt|eingefroren|unantastbar|nicht verhandelbar|nicht angefasst|nicht verändert) ",
    " nur (?:noch )?(?:nach|mit|auf|in) (?:vorheriger |meiner |ausdrücklicher )?(?:absprache|rücksprache|freigabe|genehmigung|zustimmung|nachfrage|anweisung|ansage|erlaubnis) ",
    " (?:wird|werden) {W6}(?:nichts|niemals) (?:mehr )?(?:geändert|angefasst|verändert|angerührt|gelöscht|gepusht|committet|gemergt|deployt|installiert|umbenannt) ",
    " (?:kommt|kommen) (?:nicht|nie|auf keinen fall) in frage | (?:geht|gehen|läuft|laufen) (?:nur |immer |alle )?über (?:mich|meinen tisch) | steht nicht zur (?:diskussion|debatte) ",
    " nichts (?:verloren|zu suchen) ",
];

const ORDERS_FR: &[&str] = &[
    "ne (?:jamais |pas |plus )?[^ ]+ ",
    "n'[^ ]+ {W3}(?:pas|jamais|plus|rien|que|aucun|aucune) ",
    "jamais ",
    "toujours ",
    "plus jamais |plus de [^ ]+ ,? ?(?:svp|stp|s'il|$)",
    "pas (?:de |d')",
    "aucune? [^ ]+ ",
    "(?:évite|évitez|éviter|evite|evitez|privilégie|privilégiez|préfère|préférez|veille|veillez|assure-toi|assurez-vous|respecte|respectez|garde|gardez|conserve|conservez|maintiens|maintenez|limite-toi|limitez-vous|contente-toi|tiens-toi|arrête de|arrête d'|arrêtez de|cesse de|sois|soyez|demande-moi|demandez-moi|préviens-moi|prévenez-moi|restes?|restez|suivez|fais attention|faites attention|fais en sorte) ",
    "suis (?:le|la|les|strictement) ",
    "demande (?:avant|toujours|d'abord|-moi|confirmation|la permission|mon) |attends (?:mon|ma|que|toujours) ",
    "(?:laisse|laissez) {W12}(?:tranquille|tel quel|telle quelle|tels quels|telles quelles|intact|intacts|intacte|comme|tranquilles|en l'état) ",
    "(?:utilise|utilisez|utiliser|emploie|prends|prenez|écris|écrivez|mets|mettez|lance|lancez|fais|faites|nomme|nommez|committe|commite|place|range) {W12}(?:au lieu|plutôt que|plutôt qu'[^ ]+|et non|et pas|toujours|uniquement|seulement|partout|jamais|systématiquement|avant de|avant chaque|à chaque|après chaque|pour (?:tous|toutes|chaque)) ",
    "(?:utilise|utilisez|emploie) (?:toujours |uniquement |seulement |{STYLE}|des (?:tabulations|tabs|espaces)|les guillemets|l'anglais|l'impératif) ?",
    "(?:réponds?|répondez|réponds-moi|écris|écrivez|parle|parlez|parle-moi|explique|commente|rédige|rédigez|documente) {W6}en {LANG} ",
    "en {LANG} (?:svp|stp|s'il|uniquement|merci|,|$)",
    "(?:touche|utilise|ajoute|fais|mets|change|modifie|supprime|push|pushe|pousse|commite|commit|committe|crée|casse|invente|réponds|écris|lance|installe|renomme|efface)z? (?:surtout )?(?:pas|jamais|plus|rien) ",
    "(?:tous |toutes |les |le |la |chaque |nos |tes )*{W1}(?:commentaires|commits?|messages(?: de commit)?|réponses|docs|documentation|noms|variables|tests?|code|fonctions?|fichiers|branches|types|api|dépendances|migrations|secrets|erreurs|classes) {W6}(?:doivent|doit|devront|en {LANG}|vont|restent|reste|sont toujours|toujours|jamais|uniquement|ne doivent|ne doit|au présent|à l'impératif|en {STYLE}) ",
    "il faut (?:toujours |jamais |que tu |que les |que tous |éviter |garder |rester |respecter |utiliser |absolument |systématiquement |lancer )|il ne faut (?:pas|jamais|plus|surtout) |(?:il est )?(?:interdit|interdiction|défense) d",
    "tu (?:dois|devrais|ne dois|ne devrais|ne peux) (?:toujours|jamais|pas|surtout|uniquement|seulement|me demander|utiliser|respecter|garder|demander|systématiquement|lancer) |(?:quand|lorsque|si|dès que|chaque fois que) (?:tu|vous) (?:modifies|changes|ajoutes|crées|écris|touches|commites|renommes|supprimes|n'es pas sûr|as un doute|hésites|modifiez|changez|ajoutez) |en cas de doute ",
    "je (?:ne veux|ne souhaite|ne veut|veux|n'aime|souhaite) (?:pas|plus|aucun|aucune|jamais|surtout pas|toujours|uniquement|que (?:tu|tous|toutes|les) {W6}(?:toujours|jamais|soient|soit|restent|reste)) |je veux pas |(?:je préfère|on préfère|j'aimerais que tu (?:ne|n'|toujours|évites)|je préférerais) |on (?:n'[^ ]+|ne [^ ]+) (?:jamais|pas|plus) |on utilise {W3}(?:ici|dans ce|pour|et pas|pas|au lieu|{STYLE}) |(?:uniquement|seulement) (?:en|du|des|dans|les fichiers|avec) ",
    "merci de (?:ne|toujours|répondre|garder|respecter|n'[^ ]+|utiliser|rester|éviter) |merci d'(?:utiliser|éviter|écrire) ",
    "(?:utilise|utilisez) des (?:noms|fonctions|types|commits|messages|guillemets|imports|branches|phrases) ",
    "(?:réponses|commits|fonctions|messages) (?:courts?|courtes?|brèves|petits?|petites?|concis|concises) |{W3}(?:maximum|max|au plus|au maximum) [0-9]+ (?:caractères|lignes|mots) ",
    "on (?:garde|reste|travaille|écrit|nomme|met|passe par|code|documente|teste) {W12}(?:tant que|jusqu'à|pour tout|toujours|partout|uniquement|seulement|d'abord) |(?:un|une|un seul|une seule) (?:commit|fonction|fichier|classe|test|branche|pr|idée|sujet|instruction|migration|composant|ticket) par ",
    "(?:chaque|tout|toute|tous|toutes) {W6}(?:passe par|passent par|doit|doivent|nécessite|nécessitent|exige|commence par|commencent par) |avant de {W6}(?:, )?(?:demande|préviens|lance|vérifie|fais|montre|attends|exécute)",
    "(?:donne|montre|dis|explique|lance|envoie|affiche|cite|précise)[^ ]* {W6}(?:à chaque fois|chaque fois|systématiquement) |{W6}ne (?:sortent|sort|quittent|quitte|bougent|bouge|se touchent|se touche|se modifie|se modifient) (?:pas|jamais) ",
];

const NO_ORDERS_FR: &[&str] = &[
    "(?:ne|n') ?(?:jamais |pas |plus )?(?:marche|marchent|fonctionne|fonctionnent|compile|passe|passent|trouve|comprends|sais|vois|répond|démarre|t'inquiète|vous inquiétez|s'affiche|s'ouvre|change rien|peux|me|se) ",
    "n'(?:est|a|ai|arrive|y|existe|oublie|oubliez|hésite|hésitez|affiche|étaient|était|as|avez) ",
    "toujours (?:pas|le même|la même|rien|aucun|aucune|en panne|cassé|une|un|les mêmes|des) |jamais (?:vu|eu|compris) ",
    "pas (?:de |d')(?:problème|problèmes|souci|soucis|quoi|résultat|panique|chance|changement|réponse|erreur|erreurs|accord|inquiétude|idée) |pas de nouvelles ?(?:,|$)",
    "aucune? (?:idée|problème|erreur|souci|résultat|changement|chance|différence|réponse) ",
    "il faut que je |reste (?:à|plus|encore) |restes? (?:bloqué|le|la|un) |on (?:ne|n') ?(?:sait|voit|comprend|peut|arrive) |on (?:ne sait|ne voit|ne peut|n'a|n'arrive) ",
    "je veux (?:pas (?:te|vous)|savoir) |ça |je ne comprends |le (?:test|serveur|build|code) (?:ne|reste|doit être cassé) |les tests (?:ne|restent) ",
    "(?:le|la|les|ce|cette|mon|mes) {W6}(?:échoue|échouent|plante|plantent|marche|marchent|fonctionne|fonctionnent|passe|passent|renvoie|retourne|affiche|bloque|tourne|crashe) {W3}(?:toujours|jamais|pas) ",
];

const PERSISTENT_FR: &[&str] = &[
    " (?:à partir de maintenant|a partir de maintenant|à partir d'aujourd'hui|désormais|dorénavant|à l'avenir|en aucun cas|sous aucun prétexte|avant (?:chaque|tout|toute) (?:commit|push|modification|changement|merge)|après chaque (?:modification|changement|commit|étape)|jusqu'à nouvel ordre|pour le reste de|sauf si je|sauf demande|à chaque fois que tu) ",
    " sans (?:me|m'[^ ]+|mon|ma|demander|permission|autorisation|accord|confirmation|validation|prévenir) | (?:est|sont|reste|restent) (?:strictement |formellement )?(?:interdit|obligatoire|figé|gelé|proscrit|intouchable)e?s? ",
    " (?:dès maintenant|à compter d'aujourd'hui|dès aujourd'hui|en lecture seule|lecture seule uniquement|n'est pas négociable|ne sont pas négociables|après mon accord|avec mon accord|passe par moi|passent par moi) ",
];

const ORDERS_ES: &[&str] = &[
    "no (?:me |te |lo |la |los |las |le |se )?(?:uses|utilices|toques|cambies|modifiques|borres|elimines|agregues|añadas|anadas|pongas|hagas|escribas|metas|crees|instales|subas|commitees|edites|rompas|muevas|renombres|mezcles|ejecutes|corras|dejes|empieces|respondas|contestes|incluyas|generes|inventes|asumas|refactorices|reescribas|actualices|importes|llames|lances|publiques|despliegues|expliques|repitas|quites|sobrescribas|formatees|comentes|vuelvas|hables|introduzcas|pushees|hardcodees|adivines) ",
    "no [a-zñáéíóú]+[ae]s (?:el|la|los|las|un|una|de|en|a|al|del|ningún|ninguna|nada|nunca|más|con|por|sin|que|mi|mis|esto|eso) ",
    "(?:nunca|jamás|siempre) ",
    "(?:nada de|cero|ningún|ninguna) [^ ]+ ",
    "(?:no más|sin) (?:dependencias|librerías|comentarios|emojis|mocks|explicaciones|abreviaturas|cambios) ",
    "(?:evita|evitar|evite|prefiere|prefiero|preferimos|mantén|manten|mantenga|conserva|respeta|asegúrate|asegurate|asegúrese|limítate|limitate|cíñete|procura|deja de|pregúntame|preguntame|avísame|consúltame|ten cuidado|recuerda que|trata de no|cuida|usemos|sé (?:breve|conciso|claro|directo)|prohibido|está prohibido) ",
    "sigue (?:el|la|las|los|siempre|estrictamente) |pregunta (?:antes|siempre|primero|si) |espera (?:mi|a que|siempre|hasta) |deja {W6}(?:como|tal cual|en paz|intact[oa]s?|quiet[oa]s?) ",
    "(?:usa|utiliza|use|usar|utilice|emplea|escribe|pon|haz|ejecuta|corre|nombra|coloca|guarda|commitea) {W12}(?:en lugar|en vez|y no|no|nunca|siempre|solo|sólo|únicamente|en todas partes|antes de (?:cada|hacer)|después de cada|para (?:todo|todos|todas|cada)) ",
    "(?:usa|utiliza|use|emplea) (?:siempre |solo |sólo |únicamente |{STYLE}|tabulaciones|espacios|comillas|el imperativo) ?",
    "(?:responde|responda|contesta|escribe|escriba|habla|háblame|explica|comenta|redacta|respóndeme|documenta) {W6}en {LANG} ",
    "en {LANG} (?:por favor|solo|siempre|,|$)",
    "(?:debes|tienes que|hay que|deberías|debe|se debe|se deben) (?:siempre |nunca |usar |ejecutar |correr |preguntar |mantener |evitar |respetar |seguir |no |pasar |hacer commit)|no (?:debes|puedes|se puede|se debe|se deben|hay que|quiero|me gusta|me gustan|queremos|usamos|está permitido) ",
    "(?:quiero|necesito|prefiero|quisiera) que (?:siempre|nunca|todo|todos|todas|los|las|no|solo|sólo|uses|mantengas|preguntes|respondas|me preguntes) ",
    "(?:solo|sólo|únicamente|solamente) [^ ]+ ",
    "(?:todos |todas )?(?:los |las |el |la |nuestros |cada )?{W1}(?:mensajes(?: de commit)?|commits?|comentarios|tests?|pruebas|nombres|variables|funciones|función|respuestas|documentación|código|archivos|ramas|clases|dependencias|migraciones|errores|cambios?|api|secretos) {W6}(?:deben|debe|tienen que|tiene que|van|va|en {LANG}|siempre|nunca|no deben|no debe|se escriben|se quedan|necesita|necesitan|en {STYLE}) ",
    "(?:si|cuando) (?:cambias|tocas|añades|modificas|agregas|no estás segur[oa]|tienes dudas|dudas|creas|cambies|añadas|hagas|escribas|toques|crees|modifiques|agregues) |en caso de duda |ante la duda |(?:aquí |en este proyecto )?(?:usamos|trabajamos con|nunca usamos) {W6}(?:aquí|en este|no|y no|en lugar|en vez|{STYLE}) ",
    "haz (?:commits|siempre|solo|funciones) |(?:respuestas|commits|funciones|mensajes|cambios) (?:cortas?|cortos?|breves?|pequeñ[oa]s?|concis[oa]s?|atómic[oa]s?) |usa {W6}, no |(?:usa|utiliza) (?:nombres|funciones|tipos|imports|comillas|frases) |{W3}(?:máximo|como máximo|máx) [0-9]+ (?:caracteres|líneas|palabras) ",
    "{W6}no se (?:toca|tocan|cambia|cambian|modifica|modifican|borra|borran|edita|editan) ",
    "{W6}(?:ni|no) se (?:mira|miran|toca|tocan|mueve|mueven|sube|suben|usa|usan|publica|despliega|mezcla) |{W6}(?:van|va) (?:siempre |solo |sólo )?(?:en|dentro de|bajo) {W6}, (?:no|nunca|jamás) ",
    "(?:cada|todo|toda|todos|todas) {W6}(?:necesita|necesitan|debe|deben|tiene que|tienen que|lleva|llevan|pasa por|pasan por|requiere|requieren) |antes de {W6}(?:, )?(?:pregunta|avisa|consulta|ejecuta|corre|haz|muestra|enseña|pide|espera)",
    "(?:un|una|un solo|una sola) (?:commit|función|archivo|clase|prueba|test|rama|pr|idea|tema|migración|ticket) por |{W6}(?:hablamos|tratamos|escribimos) de (?:usted|tú) |(?:enséñame|muéstrame|dime|explícame) {W12}antes de (?:seguir|continuar|hacer|subir|ejecutar) ",
    "(?:cada|todo|toda|todos los|todas las) [^ ,]+ {W6}se (?:documenta|prueba|revisa|aprueba|escribe|registra|valida|firma|versiona|comenta|traduce)n? ",
];

const NO_ORDERS_ES: &[&str] = &[
    "(?:siempre|nunca) (?:falla|fallan|sale|da|dan|me|pasa|pasan|hay|es|está|se|lo mismo|el mismo|la misma|que (?:abro|intento|ejecuto|lo)|funciona|funcionan|responde|termina|llega|he|ha|había|vi|pasó) ",
    "no (?:crees|sabes|puedes creer|olvides|te preocupes|dejes de avis|entiendes|changes|files|issues) ",
    "(?:solo|sólo|únicamente|solamente) (?:falla|pasa|quiero|hay|queda|falta|es|un|una|el|la|los|las|en|cuando|si|funciona|aparece|me|necesito|por|con) |(?:ningún|ninguna) (?:error|problema|idea|resultado|cambio) |(?:sigue|deja) (?:fallando|sin|igual|dando|roto|me|que) ",
    "(?:el|la|los|las|este|esta|ese|esa|un|una) {W6}(?:siempre|nunca) (?:falla|fallan|pasan|pasa|da|dan|devuelve|responde|termina|funciona|funcionan|muestra|se|está|están|es) ",
    "(?:el|la|este|esta) {W3}(?:debe|va) (?:haber|ser un|estar mal|estar roto|lent[oa]|bien|mal) |(?:los|las) {W3}van (?:lent[oa]s|bien|mal) ",
];

const PERSISTENT_ES: &[&str] = &[
    " (?:a partir de (?:ahora|hoy|aquí|este momento)|de ahora en adelante|de aquí en adelante|de hoy en adelante|en adelante|en el futuro|salvo que te|a menos que (?:te|yo)|a no ser que|bajo ningún concepto|bajo ninguna circunstancia|en ningún caso|antes de (?:cada|cualquier) (?:commit|push|cambio|merge)|después de cada|cada vez que (?:cambies|hagas|añadas|modifiques|toques|crees|termines|agregues|escribas|edites)) ",
    " sin (?:preguntar|preguntarme|avisar|avisarme|mi|consultar|consultarme|permiso|confirmación|aprobación|pedir|pedirme|que yo|autorización) | (?:está|están|queda|quedan|es|son) (?:estrictamente |totalmente )?(?:prohibid[oa]s?|congelad[oa]s?|vetad[oa]s?|intocables?|obligatori[oa]s?) ",
    " (?:desde hoy|desde ahora|de solo lectura|de sólo lectura|solo lectura|sólo lectura|no es negociable|no se negocia|con mi visto bueno|sin mi visto bueno|pasa por mí|pasan por mí|antes de (?:seguir|continuar)) ",
];

/// Italian and Portuguese.
const ORDERS_IT_PT: &[&str] = &[
    "non (?:mai )?[a-zàèìòù]+(?:are|ere|ire|arre|orre|urre)(?:lo|la|li|le|mi)? ",
    "(?:mai|sempre|nessuna?|niente|nessun) [^ ]+ ",
    "(?:evita|evitare|evitate|preferisco|preferisci|mantieni|rispetta|assicurati|chiedimi|chiedi (?:sempre|prima|conferma)|attieniti|limitati|smetti di|lascia {W6}(?:così|com'è|stare|intatt[oa])|segui (?:le|lo|la|il)|avvisami) ",
    "(?:usa|usare|utilizza|scrivi|metti|esegui|fai) {W12}(?:invece di|al posto di|anziché|e non|non|mai|sempre|solo|soltanto|ovunque|prima di ogni|dopo ogni) ",
    "(?:usa|utilizza) {STYLE} ",
    "(?:rispondi|rispondimi|scrivi|parla|parlami|commenta|spiega) {W6}in {LANG} ",
    "non (?:voglio|devi|puoi|si deve|si può|usiamo|mi piacciono|vogliamo) |(?:devi|dovresti) (?:sempre|mai|solo) |voglio che {W3}(?:sempre|mai|non) ",
    "(?:solo|soltanto|esclusivamente) [^ ]+ ",
    "(?:tutti |tutte )?(?:i |gli |le |il |la |ogni )?(?:messaggi(?: di commit)?|commit|commenti|test|nomi|variabili|funzioni|funzione|risposte|documentazione|codice|file|rami|dipendenze) {W6}(?:devono|deve|vanno|va|in {LANG}|sempre|mai|non devono|non deve) ",
    "(?:não|nao) (?:me |o |a |os |as )?(?:use|usar|utilize|altere|alterar|mexa|mexe|mexer|faça|faca|fazer|crie|adicione|remova|apague|toque|toca|modifique|escreva|coloque|commite|mude|muda|quebre|instale|responda|invente|edite|renomeie|delete|rode|execute|suba|envie|introduza|inclua|comente|gere|assuma|reescreva|formate|dê) ",
    "(?:nunca|sempre|nenhum|nenhuma|nada de) ",
    "(?:evite|evita|evitar|prefiro|prefira|mantenha|respeite|siga (?:o|a|os|as)|certifique-se|garanta|pergunte|me pergunte|pare de|limite-se|deixe {W6}(?:como|em paz|intact[oa])|me avise|espere (?:minha|eu)|aguarde) ",
    "(?:use|usa|utilize|escreva|coloque|rode|execute|faça) {W12}(?:em vez de|ao invés de|no lugar de|e não|não|nunca|sempre|só|somente|apenas|em todos?|antes de cada|depois de cada) ",
    "(?:responda|responde|escreva|fale|comente|explique) {W6}em {LANG} |em {LANG} (?:por favor|,|$)",
    "não (?:quero|deve|deves|pode|podes|queremos|usamos|gosto de) |(?:você )?(?:deve|tem que|precisa) (?:sempre|nunca|só) |quero que (?:sempre|nunca|tod[oa]s|só) |(?:só|somente|apenas) (?:altere|mexa|edite|modifique|use|faça|responda|toque) ",
    "(?:tod[oa]s )?(?:os |as |o |a )?(?:mensagens(?: de commit)?|commits|comentários|testes|nomes|variáveis|funções|respostas|documentação|código|arquivos|dependências) {W6}(?:devem|deve|vão|ficam|em {LANG}|sempre|nunca|não devem|não deve|têm que) ",
    "usa {W6}, non |use {W6}, não |(?:use|usa|utilize) (?:nomes|funções|tipos|aspas|nomi|funzioni|virgolette) |(?:sem|senza|niente) (?:emojis?|dependências|bibliotecas|comentários|mocks?|explicações|dipendenze|commenti|librerie|spiegazioni) |(?:respostas|commits|risposte|commit|funções|funzioni) (?:curt[oa]s|pequen[oa]s|breves|brevi|piccol[ei]) ",
    "prima di {W6}(?:, )?(?:chiedi|chiedimi|avvisa|avvisami|esegui|controlla|verifica|mostrami|aspetta)|{W6}non si (?:tocca|toccano|modifica|modificano|cambia|cambiano|cancella|cancellano|usa|usano|pubblica) ",
    "(?:ogni|tutti|tutte) {W6}(?:deve|devono|richiede|richiedono|ha bisogno|passa per|passano per) |(?:un|una|un solo|una sola) (?:commit|funzione|file|classe|test|ramo|pr|idea|migrazione|ticket) per ",
    "(?:cada|todo|toda|todos|todas) {W6}(?:precisa|precisam|deve|devem|tem que|têm que|leva|levam|passa por|passam por|requer|requerem) |antes de {W6}(?:, )?(?:pergunte|avise|rode|execute|faça|mostre|peça|espere)",
    "{W6}(?:são|é|ficam|fica) sempre (?:em|no|na|por|inteir[oa]s?|minúscul[oa]s?|maiúscul[oa]s?) |{W6}não se (?:mexe|toca|altera|apaga|usa|publica) |(?:um|uma) (?:commit|função|arquivo|classe|teste|ramo|pr|ideia|migração|ticket) por ",
];

const NO_ORDERS_IT_PT: &[&str] = &[
    "(?:sempre|mai|nunca) (?:lo stesso|la stessa|gli stessi|più|visto|o mesmo|a mesma|dá|falha|que (?:abro|tento)|funciona|trava|retorna|acontece|c'è|errore|erro) ",
    "(?:solo|soltanto) (?:un|una|il|la|quando|se|in|su|per|con|i|le) |nessuna? (?:problema|idea|errore|risultato) |nenhuma? (?:problema|ideia|erro|resultado) |niente (?:di|da) ",
    "(?:il|la|lo|i|gli|le|questo|questa|o|a|os|as|este|esta|esse|essa) {W6}(?:sempre|mai|nunca) (?:fallisce|falliscono|funziona|funzionano|passano|restituisce|falha|falham|funciona|passam|retorna|trava|responde|risponde) |(?:test|testes) (?:non|não) (?:passano|passam|funzionano|funcionam) ",
];

const PERSISTENT_IT_PT: &[&str] = &[
    " (?:d'ora in poi|d'ora in avanti|da ora in poi|da ora in avanti|da adesso in poi|in futuro|in nessun caso|per nessun motivo|prima di ogni (?:commit|push|modifica)|dopo ogni (?:modifica|commit)|ogni volta che (?:modifichi|aggiungi|cambi|tocchi)|a meno che (?:non )?te lo|(?:è|sono) (?:vietat[oaie]|proibit[oaie]|obbligatori[oaie]?)) | senza (?:chiedere|chiedermi|il mio|la mia|permesso|conferma|avvisare|avvisarmi|autorizzazione|prima) ",
    " (?:a partir de agora|a partir de hoje|de agora em diante|daqui para frente|daqui em diante|daqui pra frente|de hoje em diante|no futuro|em hipótese alguma|em nenhum caso|de jeito nenhum|antes de cada (?:commit|push|alteração|mudança)|depois de cada (?:alteração|mudança|commit)|sempre que (?:você )?(?:alterar|mudar|adicionar|criar|mexer)|a menos que eu|(?:é|são|está|estão) (?:proibid[oa]s?|obrigatóri[oa]s?)) | sem (?:perguntar|me perguntar|minha|meu|permissão|confirmação|avisar|me avisar|autorização|pedir) ",
    " (?:da oggi|da subito|da questo momento|in sola lettura|sola lettura|non è negoziabile|desde hoje|a partir deste momento|somente leitura|só leitura|apenas leitura|não é negociável|com a minha aprovação|con la mia approvazione|passa por mim|passa da me) ",
];

/// Chinese.
const PERSISTENT_ZH: &[&str] = &[
    "不要|不得|不許|不许|不準|不准|禁止|务必|務必|总是要|总要|始终|始終|绝不|絕不|绝对不|絕對不|永远不|永遠不|只准|只許|只许|请勿|請勿|切勿|勿|严禁|嚴禁|千万别|千萬別|杜绝",
    "从现在|從現在|从今以后|從今以後|从今往后|以后(?:都|请|不|要|用|每|别|的|一律|统一|在|只|所有|提交|回|写|,)|以後(?:都|請|不|要|用|每|別|的|一律|統一|在|只|所有|提交|回|寫|,)|今后|今後|往后|接下来(?:都|一律|所有)|一律|统一(?:用|使用|采用|放|以|为|写)|統一(?:用|使用|採用|放|以|為|寫)",
    "(?:用|使用|采用|採用)[^,。]{1,20}(?:[, ]*不要用|[, ]*不用|[, ]*别用|代替|替代|而不是|而非|[, ]*而不是|[, ]*而非)",
    "(?:尽量|儘量|优先|優先)(?:不|别|少|用|使用|保持|简|簡|短|写|寫|采|复用|避免)|保持[^,。]{0,16}(?:不变|不變|一致|兼容|相容|简|簡|整洁|整潔|原样|原樣|稳定|穩定|风格|短|更新)|避免|遵循|遵守|遵照|按照[^,。]*(?:规范|規範|风格|風格|标准)",
    "先(?:问|問|征求|徵求|跟我|和我|经过|經過|告诉|告訴|让我|讓我|得到|等我)|未经|未經|没有我|沒有我|沒經過|没经过|经过我|經過我|(?:问|問)(?:过|過|一下)?我(?:再|之后|之後)?|得到我|等我(?:确认|確認|同意|批准|说)|除非我",
    "每次[^。]{0,20}(?:都|要|前|后|後|先|必)|每(?:个|個|条|條|一)[^,。]{0,16}(?:都要|必须|必須|都必须|需要|要有|都得|都应|不超过|不超過)|所有[^,。]{0,16}(?:都要|都用|都放|都写|必须|必須|应该|應該|放在|用中|用英|要用|一律|统一|都必须|不超过)",
    "(?:用|使用|以)(?:中文|英文|英语|英語|日文|日语|德语|法语|繁体|繁體|简体|簡體)(?:回|答|写|寫|交流|注|说|說|沟通|溝通|解释|解釋|描述|编写|即可|吧|$| |,)|(?:注释|註釋|註解|提交信息|提交訊息|提交说明|回复|回答|文档|文檔|变量名|變數名|变量|变数|函数名|命名|日志|commit message|commit信息|commit)(?:都|请|要|只|全部|全|必须)?(?:用|使用|以|写|寫|采用|遵循|放|要)",
    "(?:^|[ ,:请請也])(?:别|別)(?:动|動|改|碰|用|删|刪|加|提交|推|再|乱|亂|引入|写|寫|在|自己|自动|把|直接|擅自|随便|隨便|使用|修改|添加|解释|废话|啰嗦|给|安装|重构|说)",
    "只(?:改|修改|动|動|用|使用|碰|在[^,。]*(?:改|修改|工作|提交|操作|动)|提交|允许|允許|回答|输出|輸出|给我|給我|需要改|准|可以(?:改|修改|用))|只能(?:改|修改|动|用|使用|在[^,。]{0,20}(?:改|修改|工作|提交|操作|写|分支)|碰|编辑|提交)",
    "(?:不能|不可以?|不应该?|不應該?|不该|不可)(?:改|修改|动|動|删|刪|提交|推|用|使用|引入|直接|碰|破坏|破壞|变|擅自|出现|有|包含|超过|超過|依赖|改变|随意|再)",
    "我(?:不想要?|不希望|不喜欢|不喜歡|更喜欢|更喜歡|偏好|习惯用|要求)|(?:希望|要求)你(?:总是|每次|始终|不|以后|都)|(?:记住|記住|注意|规则|規則|约定|約定|要求)(?::|,| |[一二三四五六七八九十0-9])|勿忘规则|擅自",
    "(?:必须|必須|应当|應當|一定要|应该|應該)(?:先|用|使用|通过|通過|放|写|寫|有|遵|保持|兼容|经过|附|跑|运行|運行|执行|执|加|是英|是中|包含|以|为|符合|同步|更新|在)|(?:代码|代碼|测试|測試|提交|注释|函数|函數|变量|變量|文件|接口|API|api|依赖|依賴|命名|分支)[^,。]{0,12}(?:必须|必須|应放|应该放|放在|放到|统一)|优先使用|保证[^,。]*(?:不变|兼容|通过)|不(?:需要|用)(?:解释|加注释|写注释)",
    "(?:缩进|縮排)[^,。]*(?:用|空格|tab)|(?:用|使用)[^,。]{0,10}(?:缩进|縮排)|(?:提交|合并|推送|修改|改|删除|部署)(?:之)?前[^,。]{0,8}(?:先|要|跑|运行|问|必|请)|先(?:跑|运行|执行|写)(?:一遍)?测试|(?:繁体|繁體|简体|簡體)(?:中文)?(?:回|答|写|寫|交流)|(?:回答|回复|解释|提交|函数|变量名|名字|注释|commit)[^,。]{0,4}(?:要|尽量|必须|应)[^,。]{0,4}(?:简|短|清|小|有意义|英文|中文)|不超过[0-9一二三四五六七八九十]+(?:行|个字|字|列)",
    "先[^。,]{0,8}(?:给|給|发|發|让|讓|交|拿)[^。,]{0,4}我[^。,]{0,4}(?:看|确认|確認|过目|過目|审|審|检查|批|同意)|(?:跟着|跟著|沿用|照着|照著|参照|參照|仿照|延续|延續|比照)[^。,]{0,10}(?:现有|現有|已有|原有|原来|原來|项目|專案|周围|风格|風格)",
    "(?:说话|說話|回答|回复|回覆|解释|解釋|语气|語氣|措辞)[^。,]{0,4}(?:简短|簡短|简洁|簡潔|简单|簡單|直接|礼貌|正式|精简)|只读(?:$| |,|,)|唯讀(?:$| |,)|没得商量|不容商量|不可协商|由我(?:来|亲自|自己)?(?:合并|合併|部署|发布|提交|决定)|一个[^。,]{1,6}(?:只|对应)一个",
    "(?:新|每|所有|任何)[^。,]{0,12}(?:都要|都得|都应|都應|都需)",
];

/// Japanese.
const PERSISTENT_JA: &[&str] = &[
    "ないでください|ないで下さい|ないでほしい|ないで欲しい|ないこと|ないように|ないで(?: ?[,!]| $|ね|くれ)|てはいけ|てはなら|ては駄目|ちゃだめ|ちゃダメ|ては ?ダメ|禁止|厳禁|控えて|やめて|(?:変更|追加|削除|使用)(?:は)?(?:不可|ng)",
    "なければなら|なければいけ|なきゃ|ねばなら|なくてはなら|必要があります(?: |,|$)|べき(?:です| ?$| ?,|では)|必ず|常に|絶対に?|決して|今後|これから(?:は|も)|以降|今回から|今から|毎回|ごとに|たびに|都度",
    "(?:の)?代わりに[^。]*(?:使|を)|(?:では|じゃ)なく(?:て)?[^。]*(?:使|統一|でお願い|で書|にして)",
    "(?:だけ|のみ)(?:を|に|で|が)?[^。,]{0,8}(?:変更|編集|触|使|修正|コミット|対象|書|して)",
    "(?:日本語|英語|中国語|ドイツ語|フランス語|敬語|関西弁|です・ます調)で(?:回答|答え|書|返|説明|話|お願い|統一|記述|記載|コメント|対応| ?$)|(?:コメント|コミットメッセージ|変数名|回答|ドキュメント|関数名|テスト名|ログ|命名)(?:は|も)[^。]*(?:で|に|と)(?:して|書|統一|お願い|記述|する|$| )",
    "避けて|避ける(?:こと)?|勝手に|許可(?:なく|なしに|を得)|無断で|確認してから|聞いてから|相談してから|確認を?取|前に(?:は)?(?:必ず)?[^。]{0,10}(?:聞いて|確認|教えて|相談|知らせて|許可)|迷ったら|不明(?:な点|な場合)|わからない(?:場合|とき|時)は|場合は[^。]{0,8}(?:聞いて|質問して|確認して)",
    "そのまま(?:に|で|残|維持|保)|維持して|維持する|保って|保つ|統一して|統一する|従って|従う|準拠|守って|守る|遵守|心がけて|優先して|徹底",
    "こと(?: ?,)? $|(?:テスト|型|定数|ファイル|ヘルパー|ドキュメント|スタイル)[^。]*は[^。]*(?:に置|に入れ|に配置|に追加し|に書)",
    "(?:を|は)(?:触ら|変え|変更し|いじら|壊さ|消さ|使わ|増やさ)な(?:い|いで)|(?:増やさ|追加し|使わ|しない)(?:ないで|ない ?(?:こと|で|よう)|でお願い)|ルール[:0-9]|約束[:]|(?:してほしく|は欲しく|は要ら|はいら|は必要)ない(?:です)? ?$|なしで(?:お願い|頼| ?$)",
    "(?:回答|説明|返事|返答|コメント|コミット|変数名|関数|関数名|文章|出力|差分|pr|メッセージ)は[^。]*(?:して|に)(?:ください|下さい|ほしい)",
    "(?:私|こちら|僕|俺)[^。]{0,4}(?:承認|確認|許可|レビュー|合意)[^。]{0,6}(?:から|後に|あと)|(?:説明|回答|返答|返事|文章|コメント|出力|報告)は[^。]*(?:短|簡潔|簡単|丁寧|最小限|少なめ|手短|敬語|平易)|(?:読み取り|参照)専用|(?:私|こちら)が(?:マージ|デプロイ|公開|リリース|判断)|譲れ(?:ない|ません)|一(?:つ|件)の[^。]{1,8}(?:に|は)(?:一|1)",
];

/// Sentences that contain such a phrase but only tell a story.
const STORIES_ALL: &[&str] = &[
    "^ (?:it|this|that|the (?:app|page|server|build|bug|test|tests|error|site|crash|program|service|process)|there|he|she|they|i) {W12}(?:every ?time|each ?time|without|in the future|unless|stays|remains|when|is not allowed|is off) ",
    " you may (?:want|need|have|notice|also notice|find|be|already|remember|think|know|ask|wonder|say|not) (?:to (?:know|check|look|see|restart)|that|already|why|a |an |the |seen|noticed|right|be |been |have )",
    " (?:feel free to|you can|you may) (?:ignore|skip|ask|look|see|find|tell|reproduce|download|log in|login) {W12}",
    "(?:为什么|為什麼|为何|怎么|怎麼|如何|是否|是不是)|(?:吗|嗎|呢|么) ?[?]? $|(?:总是|總是|一直|老是|始终|始終)(?:报错|報錯|失败|失敗|返回|提示|卡|出错|出錯|崩|显示|是空|为空|不|没|没有)|只能(?:看到|显示|打开)|不要(?:紧|緊)|(?:用户|用戶|密码|密碼|按钮|按鈕|字段|输入|輸入|页面|頁面|表单|表單|邮箱|郵箱)[^,。]{0,8}(?:必须|必須|不能|只能|应该|不得|不可|应)",
    "なぜ|どうして|何故|ですか|ますか|でしょうか|のか(?: |$|、)|(?:わかりません|わからない|分かりません|分からない)(?:。| |$|です)",
    "(?:必ず|いつも|常に|毎回|たびに|絶対に?|以降)[^。]*(?:失敗|落ち|エラー|クラッシュ|止ま|動か|遅|おかし|固ま|フリーズ)(?:する|します|してい?ます|している|して|ます|る|になります|になる|ない|ません|く|い)",
    "(?:报错|報錯|错误|錯誤|日志|日誌|提示)(?:说|說|信息|是|为|显示|:)|と(?:表示|言われ|出て|エラー|出ます|出る)",
    " (?:every|each) ?time (?:you|u) {W12}(?:, )?(?:(?:it|this|that|the|app|page|everything|nothing|i|there|my|a) {W3}(?:crashes|crash|fails|throws|breaks|hangs|happens|freezes|disappears|changes|shows|takes|gets|goes|is|returns|resets|reloads|jumps|says|loses|stops|dies|get|see)|forget|break) ",
    " (?:it's|it is|that's) (?:fine|ok|okay|alright) (?:to (?:leave|skip|wait|do|have|keep|ignore)|for now) ",
    "(?:ユーザー|パスワード|ボタン|入力|画面|ページ|フォーム|項目)[^。]*(?:なければ|必ず|のみ|だけ|ないよう|べき)",
];

/// Descriptions of how a program should treat its users; in them, `never` and the like are not rules for an
/// agent.
const SPECS: &[&str] = &[
    "^ (?:please |pls |ok |now |then |so |and |, |also |can you )*(?:implement|add|build|create|write|design|display|render|when|if|i need|make a|make an|make the) ",
    "^ (?:it|they|he|she|this|that|the|a|an|users?|our) {W6}(?:should|must|will|can|could|is|are|has to|needs to|may|shall) ",
    " (?:buttons?|pages?|forms?|dropdowns?|spinners?|modals?|popups?|dialogs?|sidebar|footer|navbar|menus?|checkbox|checkboxes|tooltips?|toasts?|cart|checkout|screens?|users?|customers?|e-?mails?|passwords?|fields?|clicks?|clicked|login|cookies?|header|requests?|icons?|avatars?|charts?|tables?|rows?|columns?|items?|player|enemies|score|scroll|scrolling|cursor|animation) ",
];

/// Words about an agent's work, which exclude such a description.
const WORK: &[&str] = &[
    " (?:tests?|code|commits?|committing|push|pushing|merge|comments?|docs|documentation|docstrings?|branch|branches|prs?|dependency|dependencies|deps|library|libraries|packages?|crates?|ask|asking|permission|approval|me|my|touch|edit|modify|refactor|rename|rewrite|reformat|install|lint|linter|format|migrations?|repo|codebase|project|ci|changelog|readme|names?|naming|mocks?|types?|use|using|run|files?|answer|explain|explanations|secrets|inline|css|components?|error messages|frontend|backend|depend|log|tokens|imports?|import) ",
];

/// Orders that don't count in such a description.
const WEAK: &[&str] = &[
    "(?:never|always|only|max|maximum|at most|no more than|must|should|up to|keep|make sure|ensure|no|limit|restrict|prefer) ",
    "{W6}(?:max|only|must|should) ",
];

/// What makes a question a rule.
const REQUESTS_ALL: &[&str] = &[
    "(?:can|could|would|will|can't|why don't) (?:you|u) (?:please |pls |also |just |kindly |from now on |maybe )*(?:always|never|only (?:use|touch|change|commit|answer)|not|stop|avoid|make sure to always|stick|keep (?:the|your|it|all|everything)|refrain|use {STYLE}|answer {W3}in|reply {W3}in|speak|respond {W3}in|start using|ask (?:me )?(?:before|first)) ",
    "{W12}(?:from now on|in future|in the future|going forward|every time|each time|whenever) (?:{W12}|, )",
    "(?:kannst|könntest|würdest) du {W6}(?:immer|nie|niemals|nur noch|nicht mehr|ab jetzt|künftig|in zukunft|aufhören|auf {LANG}) ",
    "(?:peux-tu|pourrais-tu|tu peux|pouvez-vous|pourriez-vous) {W6}(?:toujours|ne plus|arrêter|éviter|désormais|dorénavant|en {LANG}|ne jamais|ne pas) ",
    "(?:puedes|podrías|puede|podría) {W6}(?:siempre|dejar de|evitar|nunca|no|en {LANG}|de ahora) ",
    ".*(?:以后|以後|今后|今後)(?:能|可以|请|請|都).*|.*(?:今後|これから)(?:は|も).*(?:もらえ|いただけ|くれ).*",
];

/// Tasks.
const TASKS_START: &[&str] = &[
    "(?:todos?|to-?dos?|fixme|follow[- ]ups?|tbd|backlog)(?: (?:for )?(?:later|next|list|tomorrow))? ?(?::|,|\\[)? ",
    "(?:to|still to|left to|things to) do ?(?::|,|is) |open(?: points?| items?| tasks?)? ?: |pending ?: |remaining ?(?::|tasks|work|is|are) |outstanding ?: |left ?: |missing ?: ",
    "(?:the |my |our |and the )?next (?:step|steps|up|task|tasks|thing|job|item|milestone|on the list)s? ?(?:is|are|:|will|would|,|after|on) ",
    "still (?:missing|open|to do|todo|left|pending|outstanding|need|needs|have|has|to|on the list|undone) ",
    "(?:what's|what is|whats|all that's|that) (?:left|missing|still|remains|remaining) ",
    "(?:later|afterwards|afterward|subsequently|for later|in a later|in a second step|in the next step|at a later|eventually|one day|someday|some day|in a follow-up|down the road|at some point) ",
    "after (?:that|this|it works|you're done|you are done|it's merged|it's done|the release|this is|that's|it is) ",
    "(?:once|when|as soon as) (?:you're|you are|that's|this is|that is|it's|it is|everything is|everything's|we're|this|that|it|all) {W6}(?:done|finished|through|ready|merged|works|working|fixed|in|green|released|over|complete|passes|pass|deployed|shipped|there) ",
    "(?:remember to|reminder to|don't forget|dont forget|do not forget|remind me|make a note|note to self|put it on the list|keep on the list) ",
    "(?:i|we|you|i'll|we'll|you'll|let's|lets) {W12}(?:later|tomorrow|next week|afterwards|next|another time|in a follow-up|after the release|after that) ",
    "(?:i|we|you|someone) (?:also )?(?:still|yet) (?:have|need|must|should|has|got|want) ",
    "(?:noch zu tun|noch zu erledigen|noch offen|offen|zu erledigen|es bleibt|bleibt noch|es fehlt|es fehlen|fehlt noch|was noch fehlt|als nächstes|nächster schritt|der nächste schritt|danach|anschließend|später|hinterher|vergiss nicht|nicht vergessen|denk daran|denk dran|erinnere? mich|wenn (?:das|du) {W6}(?:fertig|erledigt|durch)|sobald (?:das|du|es) {W6}(?:fertig|erledigt|läuft|durch)|wir müssen noch|du musst noch|ich muss noch|dann noch) ",
    "(?:à faire|reste à|il reste|il restera|il faudra|prochaine étape|la prochaine étape|ensuite|après ça|après cela|plus tard|n'oublie pas|n'oubliez pas|rappelle-moi|une fois (?:que|fini|terminé)|quand (?:tu auras|ce sera|c'est) {W3}(?:fini|terminé|prêt|fait)|on doit encore|nous devons encore|il faut encore|pense à|por hacer|pendiente|pendientes|falta|faltan|queda por|quedan|luego|después|más tarde|siguiente paso|el siguiente paso|próximo paso|no olvides|no te olvides|recuérdame|cuando (?:termines|acabes|esté)|todavía (?:hay que|tenemos que|falta)|aún (?:hay que|falta|tenemos)|da fare|resta da|prossimo passo|poi|in seguito|dopo|più tardi|non dimenticare|ricordati|ricordami|quando hai finito|falta fazer|próximo passo|depois|mais tarde|não esqueça|não se esqueça|lembre-me|quando terminar|ainda (?:precisamos|falta|temos)) ",
    "before (?:we|the) (?:ship|release|launch|next release|deploy|go live|merge) ",
    "next ?: ",
    "(?:once|as soon as|when) (?:the|all|ci|everything|tests) {W6}(?:pass|passes|green|done|finished|merged|released|works|ready|through|fixed|deployed) ",
];
const TASKS_IN: &[&str] = &[
    " (?:still|yet) (?:have|need|needs|has|got|needed) to | (?:still|yet) to be (?:done|written|implemented|fixed|decided|tested|added) | left to (?:do|implement|write|fix|test|port) | not (?:yet )?(?:done|implemented|finished|written|ported|tested) yet | (?:is|are) still (?:missing|open|pending|outstanding|todo|to do) ",
    " (?:don't|dont|do not) forget (?:to|the|about) | (?:remind me|as a next step|as the next step|as a follow-up|on the todo list|on my todo|to the todo list|to the backlog) ",
    " muss(?:t)? (?:noch|später|danach|anschließend) | müssen (?:wir )?(?:noch|später|danach|anschließend) | (?:steht|stehen) noch aus | fehl(?:t|en) noch ",
    "待办|待辦|尚未完成|还需要|還需要|还要|還要|下一步|别忘|別忘|不要忘|记得|記得|稍后|稍後|晚点|晚點|之后再|之後再|以后再|以後再|然后还|回头|还没做|还剩|完成后(?:再|请|更|把)|做完(?:后|之后|了)?(?:再|请|,)",
    "未完了|残り作業|残っている作業|残りの(?:作業|タスク)|残タスク|次のステップ|次は|まだ終わって|あとで|後で|その後|忘れずに|忘れないで|終わったら|完了したら|まだ[^。]*(?:必要|残って|していない|していません|できていない)",
    " (?:put|add|note|keep) (?:it |this |that |them )?on (?:the|my|our) (?:list|todo) | (?:have to|need to|must|will|we\'ll|i\'ll|should) {W1}(?:come back to|revisit) |^ not now , but ",
];
const NOT_TASKS_ALL: &[&str] = &[
    "(?:later|afterwards|afterward|after (?:this|that)|eventually|after (?:this|that) change|at some point) ,? ?(?:it|he|she|they|the [^ ]+ (?:crash|crashes|crashed|fails|failed|stops|stopped|was|is|hangs|works|worked|gets|got)|everything|nothing|that|there|i (?:got|get|saw|see|found|noticed)) ",
    "(?:danach|später|anschließend) (?:kommt|ist|war|stürzt|hängt|passiert|geht|funktioniert) |(?:luego|después) (?:falla|se|no funciona|sale|de) |(?:ensuite|plus tard) (?:ça|il|elle|rien) |after that (?:didn't|doesn't) |falta(?:n)? (?:un|una|el|la) [^ ]+ $",
    "(?:todo|todos|todas|to do) (?:el|lo|los|las|funciona|está|bien|este|esto|app|list app) |still (?:have|has|need) (?:the same|no|a bug|this|an error|problems|issues) |(?:i|we) still (?:have|get|need) (?:the same|no|this|an error|problems|issues|a ) |poi(?:nt|s) |remember (?:when|how|that|me|what) ",
];

/// Decisions.
const DECIDED_ALL: &[&str] = &[
    " (?:decided|decision|opted for|settled on|agreed (?:on|to|that)|chose|chosen|i picked|we picked|going with|go with|went with|gone with|let's go (?:with|for)|the choice is|my choice) ",
    " (?:entschieden|entscheidung|beschlossen|entscheide mich|entscheiden uns|einigen uns|geeinigt) | (?:décidé|décision|choisi|opté|on part sur|je choisis|nous choisissons|on garde) ",
    " (?:decidido|decidimos|decidí|decisión|elegí|elegimos|elijo|optamos|opté|nos quedamos con|vamos con|deciso|decisione|scelto|scelgo|andiamo con|decidi|decisão|escolhi|escolhemos|vamos de) ",
    "决定|決定|选定|選定|改用|决策|選擇了|选择了|最终选|最終選|还是用[^。]*(?:吧|因)|就用",
    "決めた|決めました|決定|ことにした|ことにします|ことにしました|採用し|を採用|に決ま|を選びました|を選んだ|でいきましょう|で行きましょう",
    " (?:better off with|the better (?:fit|choice|option)|makes more sense than|was the deciding) ",
];
const CHOICES_ALL: &[&str] = &[
    " (?:i|we|let's|lets|i'll|we'll|i'm|we're|i've|we've|i'd|we'd|let us) {W3}(?:use|used|using|keep|kept|keeping|take|took|taking|choose|choosing|pick|stick|stuck|store|stored|storing|switch|switched|switching|move|moved|moving|prefer|leave|left|leaving|make|made|making|drop|dropped|dropping|avoid|avoided|implement|implemented|put|add|added|adding|write|wrote|replace|replaced|replacing|split|cache|cached|return|introduce|introduced|skip|skipped|skipping|wrap|wrapped|do|did|run|rewrite|rewrote|inline|inlined|build|built|stay|target|base|based|hash|pin|pinned|vendor|parse|hand-roll|model|ship|went|go) ",
    " (?:stays?|remains?|was chosen|is chosen|was picked|wins|was dropped|was rejected|is better than|are better than|makes more sense) ",
    " (?:wir|ich) (?:nehmen|behalten|bleiben|verwenden|benutzen|nutzen|setzen|nehme|behalte|bleibe|verwende|benutze|nutze|setze|lassen|lasse|machen|mache|speichern|speichere|wechseln|wechsle|verzichten|verzichte|schreiben|schreibe|haben|habe|baue|bauen) | (?:bleibt|bleiben) ",
    " (?:on|nous|je|j') ?(?:garde|gardons|utilise|utilisons|utiliserai|prends|prend|prenons|reste|restons|passe|passons|préfère|préférons|stocke|évite|vais utiliser|ai utilisé|va utiliser) | j'utilise | j'ai (?:gardé|utilisé|pris|remplacé|mis) ",
    " (?:usamos|usaremos|uso|usaré|usar|mantenemos|mantengo|prefiero|preferimos|dejamos|dejo|cambiamos|cambio|voy a usar|vamos a usar|usiamo|uso|userò|teniamo|mantengo|preferisco|useremo|vou usar|vamos usar|mantemos|mantenho|prefiro|ficamos com) ",
    "(?:我们|我們|咱们|我|还是|先)[^,。]{0,6}(?:使用|采用|採用|用|选|選|保留|改成|换成|换|換|不用)|(?:使い|使う|使用|残し|維持|選|変更し)(?:ます|ました|た|よう|する|します)|にします|にしました|にした",
];
/// A decision only if a cause is given.
const IMPERATIVES: &[&str] =
    &["^ (?:keep|kept|use|used|using|stay|switch|switched|stick|chose|moving|move|replaced|keeping) "];
const CAUSES: &[&str] =
    &[" (?:because|cause|cuz|since|so that|as (?:it|this|that|they)|to avoid|in order to|therefore) "];
const REASONS_ALL: &[&str] = &[
    " would (?:need|double|cost|break|take|lose|block|slow|mean|require) ",
    " (?:because|cause|cuz|since|so that|so (?:we|it|the|they|i|you|this|that|nothing)|as (?:it|this|that|the|they|we)|to (?:avoid|keep|reduce|prevent|make|save|simplify|not|minimi[sz]e|preserve|ensure|allow)|in order to|instead of|rather than|over|therefore|hence|which (?:keeps|avoids|makes|lets|saves|means)|due to|for (?:performance|simplicity|speed|consistency|now because|safety|compatibility|readability)|thus) ",
    " (?:weil|da|denn|damit|statt|anstatt|anstelle|stattdessen|deshalb|daher|darum|um|wegen|sodass|so dass|somit) ",
    " (?:parce que|parce qu'[^ ]+|car|puisque|afin|pour (?:que|éviter|garder|ne pas|simplifier)|plutôt que|plutôt qu'[^ ]+|au lieu de|au lieu d'[^ ]+|donc|à cause de|c'est pourquoi) ",
    " (?:porque|ya que|para (?:que|evitar|no|mantener|simplificar)|en lugar de|en vez de|por eso|debido a|así|perché|poiché|così|invece di|al posto di|per (?:evitare|non|mantenere)|pois|em vez de|já que|ao invés de|por isso) ",
    "因为|因為|所以|而不是|而非|以便|这样|這樣|为了|為了|避免|由于|由於|代替|ので|ため|から(?:です|、|,)|ではなく|代わりに|ように|理由",
];

/// Rules at the start of a clause, each with what only resembles one.
pub(super) static ORDERS: [(Words, Words); 7] = [
    (starting!(SURE), starting!(NO_SURE)),
    (starting!(ORDERS_EN), starting!(NO_ORDERS_EN)),
    (starting!(FACTS_EN), starting!(NO_FACTS_EN)),
    (starting!(ORDERS_DE), starting!(NO_ORDERS_DE)),
    (starting!(FACTS_DE), starting!(NO_FACTS_DE)),
    (starting!(ORDERS_FR), starting!(NO_ORDERS_FR)),
    (starting!(ORDERS_ES, ORDERS_IT_PT), starting!(NO_ORDERS_ES, NO_ORDERS_IT_PT)),
];
/// A rule anywhere in a sentence.
pub(super) static PERSISTENT: Words = anywhere!(
    PERSISTENT_EN,
    PERSISTENT_DE,
    PERSISTENT_FR,
    PERSISTENT_ES,
    PERSISTENT_IT_PT,
    PERSISTENT_ZH,
    PERSISTENT_JA
);
/// A revoked rule.
pub(super) static REVOKED: Words = anywhere!(REVOKED_ALL);
/// A story that sounds like a rule.
pub(super) static STORIES: Words = anywhere!(STORIES_ALL);
/// Descriptions of a product.
pub(super) static DESCRIBED: Words = anywhere!(SPECS);
/// Not about a product.
pub(super) static ABOUT_WORK: Words = anywhere!(WORK);
/// Orders that count only outside product descriptions.
pub(super) static WEAK_ORDERS: Words = starting!(WEAK);
/// A rule in the form of a question.
pub(super) static REQUESTS: Words = starting!(REQUESTS_ALL);
/// A task at the start of a clause.
pub(super) static TASKS: Words = starting!(TASKS_START);
/// A task anywhere in a sentence.
pub(super) static TASKS_ANYWHERE: Words = anywhere!(TASKS_IN);
/// What only starts like a task.
pub(super) static NOT_TASKS: Words = starting!(NOT_TASKS_ALL);
/// A decision.
pub(super) static DECIDED: Words = anywhere!(DECIDED_ALL);
/// A decision, if it has a reason.
pub(super) static CHOICES: Words = anywhere!(CHOICES_ALL);
/// An order that is a decision if it has a cause.
pub(super) static CHOSEN: Words = anywhere!(IMPERATIVES);
/// A cause.
pub(super) static BECAUSE: Words = anywhere!(CAUSES);
/// A reason, or the rejected alternative.
pub(super) static REASONS: Words = anywhere!(REASONS_ALL);

/// A heading above rules.
pub(super) static HEADINGS: Words = anywhere!(&[
    " (?:rules?|conventions?|constraints?|guidelines?|principles|ground rules|policies|house style|code style|standards|preferences|dos and don'ts|please (?:always|follow|respect|observe)|from now on|keep in mind|regeln?|vorgaben|konventionen|richtlinien|grundregeln|règles?|consignes|conventions|contraintes|reglas?|normas|convenciones|restricciones|regole|regras) ",
    "规则|規則|规范|規範|约定|約定|要求|ルール|規約|約束事|制約|注意点"
]);
/// A heading above tasks.
pub(super) static TASK_HEADINGS: Words = anywhere!(&[
    " (?:todos?|to-dos?|to do|still open|still missing|open (?:points|items|tasks|issues)|left to do|next steps|remaining|what's left|still to do|for later|later|backlog|pending|noch zu tun|offen|offene punkte|noch offen|nächste schritte|à faire|prochaines étapes|reste à faire|por hacer|pendiente|pendientes|próximos pasos|da fare|prossimi passi|a fazer|pendências) ",
    "待办|待辦|下一步|剩下的|残り|残タスク|次のステップ|やること"
]);
/// A line that ends with a colon and contains one of these announces pasted text.
pub(super) static CUE: Words = anywhere!(&[
    " (?:errors?|warnings?|output|logs?|trace|traceback|stack ?trace|says|said|say|prints?|printed|shows|stderr|stdout|fails with|i get|i got|get|getting|got|gives|gave|returned|returns|readme|readme\\.md|license|licence|snippet|excerpt|quote|wrote|writes|pasted|diff|e?mail|ticket|issue|spec|reads|complains|reported|report|response from|message i|following (?:error|text|message)|text of|docs|documentation|quoted|contents? of|fehler|fehlermeldung|ausgabe|sagt|meldet|steht|log-ausgabe|erreur|sortie|affiche|dit|error|errores|salida|dice|muestra|errore|dice|erro|diz|saída) {W6}:",
    "报错|報錯|错误|錯誤|日志|日誌|输出|輸出|提示|エラー|ログ|出力|表示"
]);
/// From here on, a sentence reports the words of someone or something else.
pub(super) static REPORTED: Words = anywhere!(&[
    " according to | (?:it|he|she|they|compiler|linter|clippy|eslint|docs|documentation|readme|readme\\.md|rustc|ci|tsc|npm|server|console|log|logs|error|warning|output|boss|client|manual|book|tool|page|app|spec|ticket|comment|guide|website|pylint|mypy|bot|popup|dialog|colleague|customer|which|claude\\.md|agents\\.md|contributing\\.md) (?:always |just |also |only |now |still |keeps? |clearly |explicitly )*(?:says?|said|saying|tells?|told|complains?|complaining|prints?|printed|warns?|claims?|states?|reads|reports?|reported|shows?|mentions?|writes?|wrote) ",
    " (?:error|warning|output|log|logs|exception|fehler|fehlermeldung|erreur|errore|erro) : | (?:sagt|meldet|schreibt|steht|dit que|affiche|dice que|indica|diz que) "
]);
/// Phrases that say nothing is left to do; below them, words of licenses and the like, which users paste but
/// never write.
pub(super) static CLOSED: Words = anywhere!(&[
    " (?:nothing (?:left|more|else) to|is (?:done|settled|closed|fixed|there now|off the list)|are (?:done|settled|closed)|went in|taken care of|that's closed|already done) ",
    " (?:ist|sind) (?:erledigt|fertig) | (?:c'est|est) (?:fait|réglé) | (?:está|están) (?:hecho|listo|lista|listos) |已完成|完成了|完了しました",
]);

pub(super) static NOT_SAID: Words = anywhere!(&[
    "^ it (?:should|must|has to|needs to|shall) ",
    " (?:copyright|redistributions?|licensees?|licensor|sublicense|warranty|warranties|hereby|noninfringement|merchantability|indemnify|herein|thereof|rfc ?2119) "
]);
/// Beginnings of questions.
static QUESTIONS: Words = starting!(&[
    "(?:why|how|who|whose|where|what's|what is|what are|what does|what do|what did|what should|what would|which|is|are|does|did|do (?:you|i|we|they)|can i|may i|should (?:i|we)|shall (?:i|we)|could it|would it|isn't|aren't|doesn't|don't you (?:think|want|agree|see|have|know|need|like)|wouldn't|couldn't|shouldn't|has|have (?:you|we|i)|was|were|am i|any idea) ",
    "(?:warum|wieso|weshalb|wie|wer|wo|woran|was (?:ist|macht|bedeutet|heißt)|kannst du mir (?:sagen|erklären)|ist|sind|hat|gibt es|soll ich|sollen wir|muss ich|pourquoi|comment|est-ce|qu'est-ce|où|quand est-ce|dois-je|por qué|¿|cómo|qué|cuál|dónde|perché|come mai|por que|como|quem) "
]);

/// Whether a sentence is a question, with or without a question mark.
pub(super) fn asks(folded: &str) -> bool {
    folded.ends_with("? ") || folded.ends_with("?, ") || QUESTIONS.is_in(&folded[1.min(folded.len())..])
}

/// Words that never end a sentence: the next line continues it.
pub(super) const LINKS: &[&str] = &[
    "the", "a", "an", "of", "to", "and", "or", "in", "with", "never", "always", "not", "for", "on", "from",
    "by", "at", "must", "should", "don't", "der", "die", "das", "und", "oder", "nie", "nicht", "mit", "de",
    "la", "le", "et", "el", "que",
];

/// Words after which a clause starts.
const BREAKS: &[&str] = &[
    ",", ":", "and", "but", "so", "then", "also", "please", "pls", "plz", "or", "because", "cause",
    "however", "though", "while", "und", "aber", "dann", "bitte", "denn", "sondern", "et", "mais", "puis",
    "y", "pero", "e", "ma", "poi", "mas", "just", "que", "cuz",
];

/// The clauses of a folded sentence, each including everything after it.
pub(super) fn clauses(folded: &str) -> impl Iterator<Item = &str> {
    let text = folded.trim_start();
    let starts = text.match_indices(' ').filter_map(|(at, _)| {
        let word = text[..at].rsplit(' ').next()?;
        BREAKS.contains(&word).then_some(&text[at + 1..])
    });
    std::iter::once(text).chain(starts).filter(|clause| !clause.is_empty())
}

/// `sentence` in the form that patterns expect.
pub(super) fn folded(sentence: &str) -> String {
    let mut folded = String::with_capacity(sentence.len() + 16);
    folded.push(' ');
    let mut chars = sentence.char_indices().peekable();
    let mut parens = 0;
    while let Some((at, c)) = chars.next() {
        let blank = folded.ends_with(' ');
        let ends =
            chars.peek().is_none_or(|(_, next)| next.is_whitespace() || ",;:.!?)…\"”'’*`".contains(*next));
        match c {
            _ if c.is_whitespace() => blank_after(&mut folded),
            '*' | '~' if blank || ends => {}
            '"' | '“' | '”' | '„' | '«' | '»' | '`' | '「' | '『' => {
                // Several quoted words are someone else's, and count as one.
                let rest = &sentence[at + c.len_utf8()..];
                let close: &[char] = match c {
                    '“' => &['”'],
                    '„' => &['“', '”'],
                    '«' => &['»'],
                    '「' => &['」'],
                    '『' => &['』'],
                    '"' => &['"'],
                    '`' => &['`'],
                    _ => &[],
                };
                let close = if close.is_empty() { None } else { rest.find(close) };
                if let Some(close) =
                    close.filter(|close| rest[..*close].trim().contains(' ') || has_wide(&rest[..*close]))
                {
                    let end = at + c.len_utf8() + close;
                    while chars.next_if(|(at, _)| *at <= end).is_some() {}
                    blank_after(&mut folded);
                    folded.push_str("\"\" ");
                }
            }
            '」' | '』' => {}
            '(' if !blank => {
                parens += 1;
                folded.push(c);
            }
            ')' if parens > 0 => {
                parens -= 1;
                folded.push(c);
            }
            '’' | '‘' | '´' => folded.push('\''),
            '.' | '…' | '!' if ends => apart(&mut folded, ','),
            ':' if ends => apart(&mut folded, ':'),
            '：' => apart(&mut folded, ':'),
            '?' if ends => apart(&mut folded, '?'),
            '？' => apart(&mut folded, '?'),
            ',' | ';' if ends || blank || !folded.ends_with(|c: char| c.is_ascii_digit()) => {
                apart(&mut folded, ',');
            }
            '(' | ')' | '–' | '—' | '，' | '；' | '、' | '。' | '！' | '（' | '）' | '→' | '•' =>
            {
                apart(&mut folded, ',');
            }
            '-' if blank && ends => apart(&mut folded, ','),
            '¿' | '¡' | '\'' if blank => {}
            _ if c.is_ascii() => folded.push(c.to_ascii_lowercase()),
            _ if c.is_alphanumeric() => folded.extend(c.to_lowercase()),
            // An emoji, or another sign.
            _ => blank_after(&mut folded),
        }
    }
    blank_after(&mut folded);
    // A comma at the end has no meaning.
    while folded.ends_with(" , ") {
        folded.truncate(folded.len() - 2);
    }
    folded
}

/// Whether the text contains a character of a script without spaces.
fn has_wide(text: &str) -> bool {
    text.chars().any(|c| c >= '\u{2e80}')
}

fn blank_after(folded: &mut String) {
    if !folded.ends_with(' ') {
        folded.push(' ');
    }
}

fn apart(folded: &mut String, c: char) {
    blank_after(folded);
    if !folded.ends_with(", ") || c != ',' {
        folded.push(c);
        folded.push(' ');
    }
}
