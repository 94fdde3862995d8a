//! Whether one sentence replaces or closes an earlier one, by the words they share.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::sentences::sentences;
use super::words::LANGUAGES;
use crate::{Pattern, pattern};

/// Words that say nothing about a sentence's topic; most are part of rules of any kind.
static COMMON: LazyLock<HashSet<&str>> = LazyLock::new(|| {
    concat!(
        "a an the of to in on at for from with and or but is are be was it this that these those i you we me my your ",
        "our do don t s not no never always only please must should may can now also still then use using instead ",
        "rather than again all any as so if by will want make sure keep ok fine anymore longer project todo just have ",
        "has need needs later afterwards und oder der die das den ein eine nicht kein keine nie immer bitte ab jetzt le ",
        "la les de des du un une ne pas jamais toujours el los las nunca siempre por favor ",
    )
    .split_whitespace()
    .collect()
});
/// Words in a sentence that forbids.
static FORBIDS: Pattern = pattern!(
    r"(?i)\b(?:never|not|don'?t|no|avoid|stop|nie|niemals|nicht|kein\w*|jamais|pas|aucun\w*|nunca|jamás)\b",
    r"|不|别|勿|禁止|ない|禁止|ません",
);
/// Words in a sentence that takes something back.
static REVOKES: Pattern = pattern!(
    r"(?i)\b(?:instead|no longer|any ?more|forget|scrap|ignore|drop|you (?:may|can)|allowed|changed my mind",
    r"|(?:it'?s |is )?(?:ok|okay|fine) to|switch(?:ed)? to|nicht mehr|stattdessen|vergiss|darfst|plutôt|oublie|en lugar|olvida|puedes)\b",
    r"|改用|改为|可以|不再|代わりに",
);
/// Words in a sentence that applies from now on: to what an older one is about, or to something else.
static BEGINS: Pattern = pattern!(
    r"(?i)\b(?:from now on|actually|now|ab jetzt|ab sofort|doch|désormais|à partir de maintenant|a partir de ahora)\b",
    r"|以后|从现在|今後|これから|もう",
);
/// Words that say that something is done.
static DONE: Pattern = pattern!(
    r"(?i)\b(?:done|finished|completed?|added|updated|fixed|implemented|removed|deleted|wrote|written|renamed|moved|merged|resolved",
    r"|in place|there now|settled|closed|went in|taken care of|sorted out|strike (?:it|that)|off the list|nothing left|forget about (?:it|that)|erledigt|fertig|behoben|hinzugefügt|aktualisiert|terminé|ajouté|corrigé|hecho|terminado|añadido|corregido)\b",
    r"|完成|已修复|已添加|修正しました|追加しました|完了",
);

/// Words in a sentence that is not about completed work: it denies it, or says what is to be done.
static NOT_YET: Pattern = pattern!(
    r"(?i)\b(?:not|n't|never|no|must|should|shall|will|needs? to|have to|has to|to be|later|still|todo|before|once|when|after|until|if",
    r"|nicht|kein\w*|muss|müssen|soll\w*|wird|noch|später|pas|doit|devra|falta|debe\w*)\b|未|没|ない|まだ",
);

/// Where a sentence begins to say when, or on what condition.
static WHEN: Pattern = pattern!(
    r"(?i),? (?:once|before|after|until|as soon as|when|whenever|if|sobald|bevor|nachdem|wenn|falls|quand|dès que|lorsque|avant",
    r"|cuando|antes|después|quando|prima|dopo) ",
);
/// A word that starts another one, like `clean` in `cleanup`, counts as the same from this many bytes on.
const PREFIX: usize = 5;

/// In percent: a report with this share of a task's words certainly means it.
const SURELY: usize = 75;

/// A sentence's topic, computed once.
pub struct Meaning {
    words: HashSet<String>,
    forbids: bool,
    revokes: bool,
    begins: bool,
    languages: HashSet<String>,
}

impl Meaning {
    /// Returns the topic of `sentence`.
    pub fn of(sentence: &str) -> Self {
        let lower = sentence.to_lowercase();
        let languages = LANGUAGES.found(&lower).map(|language| language.as_str().to_owned());
        Self {
            words: words(sentence),
            forbids: FORBIDS.is_in(sentence),
            revokes: REVOKES.is_in(sentence),
            begins: BEGINS.is_in(sentence),
            languages: languages.collect(),
        }
    }

    /// Returns whether this rule replaces `older`: it reverses it, or says that something else applies from
    /// now on. In doubt both apply, and rules that only forbid more exist side by side.
    pub fn replaces(&self, older: &Self) -> bool {
        let (shared, all) = (self.words.intersection(&older.words).count(), older.words.len());
        let is_turned = self.forbids != older.forbids;
        if is_turned {
            return shared > 0 && 3 * shared >= 2 * all;
        }
        // `From now on` alone may add a rule of the same pattern; only of languages is one meant.
        let is_other_language = !self.languages.is_empty()
            && !older.languages.is_empty()
            && self.languages.is_disjoint(&older.languages);
        let changes = self.revokes || self.begins && is_other_language;
        let is_changed = self.words != older.words && changes && !older.forbids;
        // Two sentences of the same pattern may be about different things.
        is_changed && shared > 0 && 2 * shared >= all && all - shared <= 2
    }

    /// Returns a task's topic, without when it is to be done.
    pub(super) fn of_task(sentence: &str) -> Self {
        let when = WHEN.found(sentence).last().map(|when| when.start());
        // Only a clause in the second half counts; an earlier one is the condition itself.
        Self::of(when.filter(|at| *at > sentence.len() / 2).map_or(sentence, |at| &sentence[..at]))
    }

    /// Returns how much of the task this sentence reports as done, in percent; `None` if it is about
    /// something else.
    fn share_of(&self, task: &Self) -> Option<usize> {
        let begins = |one: &str, other: &str| one.len() >= PREFIX && other.starts_with(one);
        let are_kin = |one: &str, other: &str| one == other || begins(one, other) || begins(other, one);
        let is_told = |word: &&String| self.words.iter().any(|told| are_kin(told, word));
        let (shared, all) = (task.words.iter().filter(is_told).count(), task.words.len());
        let is_closed = shared > 0 && (4 * shared >= 3 * all || (shared >= 3 && 2 * shared >= all));
        is_closed.then(|| 100 * shared / all)
    }

    /// Closes the open `tasks` that this sentence reports as done: those it covers almost completely,
    /// otherwise the one it covers best.
    pub(super) fn close(&self, tasks: &[Self], is_open: &mut [bool]) {
        let share = |(task, is_open): (&Self, &bool)| if *is_open { self.share_of(task) } else { None };
        let shares: Vec<Option<usize>> = tasks.iter().zip(is_open.iter()).map(share).collect();
        let most = shares.iter().flatten().max().copied().unwrap_or_default();
        for (share, is_open) in shares.into_iter().zip(is_open) {
            *is_open &= share.is_none_or(|share| share < most.min(SURELY));
        }
    }
}

/// Returns the sentences of `text` that report something as done.
pub(super) fn done(text: &str) -> Vec<&str> {
    if !DONE.is_in(text) {
        return Vec::new();
    }
    let says_so = |sentence: &&str| sentence.len() <= 400 && DONE.is_in(sentence) && !NOT_YET.is_in(sentence);
    sentences(text).filter(says_so).collect()
}

/// The words that a sentence is about, without their endings; in scripts without spaces, pairs of characters.
fn words(sentence: &str) -> HashSet<String> {
    let lower = sentence.to_lowercase();
    let mut words = HashSet::new();
    for word in lower.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()) {
        if word.chars().any(|c| c >= '\u{2e80}') {
            let characters: Vec<char> = word.chars().collect();
            words.extend(characters.windows(2).map(|pair| pair.iter().collect::<String>()));
        } else if !COMMON.contains(word) {
            let stem =
                ["ing", "ed", "es", "s", "en", "e"].iter().find_map(|ending| word.strip_suffix(ending));
            words.insert(stem.filter(|stem| stem.len() > 2).unwrap_or(word).to_owned());
        }
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaces(newer: &str, older: &str) -> bool {
        Meaning::of(newer).replaces(&Meaning::of(older))
    }

    fn closes(done: &str, task: &str) -> bool {
        let mut is_open = [true];
        Meaning::of(done).close(&[Meaning::of_task(task)], &mut is_open);
        !is_open[0]
    }

    #[test]
    fn a_rule_is_replaced_by_one_that_reverses_or_changes_it() {
        for (newer, older) in [
            ("Use spaces, not tabs.", "Use tabs."),
            ("From now on use spaces instead of tabs, please.", "Use tabs in this project."),
            ("You may push to main now.", "Never push to main."),
            ("From now on answer in English.", "Answer in German."),
            ("ok you can commit without asking now", "don't commit without asking"),
            ("Ab jetzt bitte auf Englisch antworten.", "Antworte auf Deutsch."),
            ("Doch, du darfst main.rs ändern.", "main.rs nicht ändern"),
            ("现在可以修改数据库了", "不要修改数据库"),
            ("以后注释都必须用英文写。", "注释都必须用中文写。"),
            ("From now on all comments must be written in English.", "Comments must be written in Chinese."),
            ("From now on, run pnpm test instead before each commit.", "Run npm test before each commit."),
        ] {
            assert!(replaces(newer, older), "{newer} / {older}");
        }
        for (newer, older) in [
            ("Never push to main.", "Never push to main."),
            ("Never touch lib.rs", "Never touch main.rs"),
            ("From now on never touch lib.rs", "Never touch main.rs"),
            ("Never commit to main without asking me.", "Never push to main without asking me."),
            ("Use four spaces.", "Answer in German."),
            ("Tests go in __test__.", "Run the linter before each commit."),
            ("必须用中文", "不要修改数据库"),
            ("规则：以后所有的异常信息都必须用中文写。", "规则：注释都必须用中文写。"),
            (
                "From now on all exceptions must be written in Chinese.",
                "All comments must be written in Chinese.",
            ),
            ("From now on log lines must be in English.", "All comments must be in Chinese."),
            ("From now on, run npm run lint before every commit.", "Run npm test before every commit."),
            (
                "From now on, fixtures must be placed in the test folder.",
                "Tests must be placed in the test folder.",
            ),
            (
                "From now on every change to the chat widget goes past Mira first, she owns it.",
                "From now on every change to the search index goes past Alex first, he owns it.",
            ),
            ("Always rebase on main.", "Never push to main."),
            ("Always format files with prettier.", "Never delete files."),
            ("Always write tests for the parser.", "Don't touch the parser."),
        ] {
            assert!(!replaces(newer, older), "{newer} / {older}");
        }
    }

    #[test]
    fn a_task_is_closed_by_a_report_that_it_is_done() {
        let said = "Alright. I added the tests for the parser and updated the docs. Next the lexer.";
        assert_eq!(done(said), ["I added the tests for the parser and updated the docs."]);
        for open in [
            "The login page must be fixed.", "The parser module is not renamed.", "Later I'll have it fixed.",
        ] {
            assert_eq!(done(open), [""; 0], "{open}");
        }
        assert!(closes("I added the tests for the parser.", "Later also add tests for the parser."));
        assert!(closes("The docs are updated.", "todo: update the docs"));
        assert!(closes(
            "The cleanup in the invoice mailer went in.",
            "For later: the invoice mailer should be cleaned up before we ship."
        ));
        assert!(closes(
            "Coming back to the mailer queue is settled.",
            "We come back to the mailer queue once 2.0 is out."
        ));
        assert!(!closes("I added the tests for the lexer.", "still to do: write the changelog"));
        let queues = ["mail", "order"]
            .map(|queue| Meaning::of_task(&format!("Come back to X1 in the staging {queue} queue.")));
        let done = Meaning::of("What we come back to in the staging mail queue is settled.");
        let mut are_open = [true, true];
        done.close(&queues, &mut are_open);
        assert_eq!(are_open, [false, true]);
        assert!(!closes("I updated the docs.", "After the docs are updated, write the changelog."));
    }
}
