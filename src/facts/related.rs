//! Whether one sentence replaces or closes what an earlier one said: by the words that both have.

use std::collections::HashSet;
use std::sync::LazyLock;

use regex::Regex;

use super::sentences::sentences;

/// Words that say nothing of what a sentence is about; most are part of rules of any kind.
const COMMON: &[&str] = &[
    "a",
    "an",
    "the",
    "of",
    "to",
    "in",
    "on",
    "at",
    "for",
    "from",
    "with",
    "and",
    "or",
    "but",
    "is",
    "are",
    "be",
    "was",
    "it",
    "this",
    "that",
    "these",
    "those",
    "i",
    "you",
    "we",
    "me",
    "my",
    "your",
    "our",
    "do",
    "don",
    "t",
    "s",
    "not",
    "no",
    "never",
    "always",
    "only",
    "please",
    "must",
    "should",
    "may",
    "can",
    "now",
    "also",
    "still",
    "then",
    "use",
    "using",
    "instead",
    "rather",
    "than",
    "again",
    "all",
    "any",
    "as",
    "so",
    "if",
    "by",
    "will",
    "want",
    "make",
    "sure",
    "keep",
    "ok",
    "fine",
    "anymore",
    "longer",
    "project",
    "todo",
    "just",
    "have",
    "has",
    "need",
    "needs",
    "later",
    "afterwards",
    "und",
    "oder",
    "der",
    "die",
    "das",
    "den",
    "ein",
    "eine",
    "nicht",
    "kein",
    "keine",
    "nie",
    "immer",
    "bitte",
    "ab",
    "jetzt",
    "le",
    "la",
    "les",
    "de",
    "des",
    "du",
    "un",
    "une",
    "ne",
    "pas",
    "jamais",
    "toujours",
    "el",
    "los",
    "las",
    "no",
    "nunca",
    "siempre",
    "por",
    "favor",
];
/// A sentence that forbids.
static FORBIDS: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:never|not|don'?t|no|avoid|stop|nie|niemals|nicht|kein\w*|jamais|pas|aucun\w*|nunca|jamás)\b",
        r"|不|别|勿|禁止|ない|禁止|ません",
    ))
    .ok()
});
/// A sentence that takes something back, or says that it holds from now on.
static CHANGES: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:from now on|instead|no longer|any ?more|actually|now|forget|scrap|ignore|drop|you (?:may|can)|allowed|changed my mind",
        r"|(?:it'?s |is )?(?:ok|okay|fine) to|switch(?:ed)? to|ab jetzt|ab sofort|nicht mehr|stattdessen|vergiss|darfst|doch",
        r"|désormais|à partir de maintenant|plutôt|oublie|a partir de ahora|en lugar|olvida|puedes)\b",
        r"|以后|从现在|改用|改为|可以|不再|今後|これから|代わりに|もう",
    ))
    .ok()
});
/// Words by which somebody says that something is done.
static DONE: LazyLock<Option<Regex>> = LazyLock::new(|| {
    Regex::new(concat!(
        r"(?i)\b(?:done|finished|completed?|added|updated|fixed|implemented|removed|deleted|wrote|written|renamed|moved|merged|resolved",
        r"|in place|there now|settled|closed|went in|taken care of|sorted out|strike (?:it|that)|off the list|nothing left|forget about (?:it|that)|erledigt|fertig|behoben|hinzugefügt|aktualisiert|terminé|ajouté|corrigé|hecho|terminado|añadido|corregido)\b",
        r"|完成|已修复|已添加|修正しました|追加しました|完了",
    ))
    .ok()
});

/// Returns whether the rule `newer` replaces `older`: both are about the same, and the newer one takes back, turns round or changes
/// what the older one said. Rules that only forbid more are beside each other.
#[must_use]
pub fn replaces(newer: &str, older: &str) -> bool {
    let (new, old) = (words(newer), words(older));
    let shared = new.intersection(&old).count();
    let is_about_the_same = shared > 0 && 2 * shared >= new.len().min(old.len());
    if !is_about_the_same || (new == old && is(&FORBIDS, newer) == is(&FORBIDS, older)) {
        return false;
    }
    let is_turned = is(&FORBIDS, newer) != is(&FORBIDS, older);
    is_turned || (is(&CHANGES, newer) && !is(&FORBIDS, older))
}

/// Returns the sentences of `text` that say that something is done.
pub(super) fn done(text: &str) -> Vec<&str> {
    if !is(&DONE, text) {
        return Vec::new();
    }
    sentences(text).filter(|sentence| sentence.len() <= 400 && is(&DONE, sentence)).collect()
}

/// Returns whether what was said to be `done` is the task.
pub(super) fn closes(done: &str, task: &str) -> bool {
    let (done, task) = (words(done), words(task));
    let shared = done.intersection(&task).count();
    shared > 0 && (4 * shared >= 3 * task.len() || (shared >= 3 && 2 * shared >= task.len()))
}

fn is(words: &LazyLock<Option<Regex>>, text: &str) -> bool {
    words.as_ref().is_some_and(|words| words.is_match(text))
}

/// The words that a sentence is about, without their endings; of scripts without blanks, pairs of characters.
fn words(sentence: &str) -> HashSet<String> {
    let lower = sentence.to_lowercase();
    let mut words = HashSet::new();
    for word in lower.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|word| !word.is_empty()) {
        if word.chars().any(|c| c >= '\u{2e80}') {
            let characters: Vec<char> = word.chars().collect();
            words.extend(characters.windows(2).map(|pair| pair.iter().collect::<String>()));
        } else if !COMMON.contains(&word) {
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

    #[test]
    fn a_rule_is_replaced_by_one_that_turns_it_round_or_changes_it() {
        for (newer, older) in [
            ("Use spaces, not tabs.", "Use tabs."),
            ("From now on use spaces instead of tabs, please.", "Use tabs in this project."),
            ("You may push to main now.", "Never push to main."),
            ("From now on answer in English.", "Answer in German."),
            ("ok you can commit without asking now", "don't commit without asking"),
            ("Ab jetzt bitte auf Englisch antworten.", "Antworte auf Deutsch."),
            ("Doch, du darfst main.rs ändern.", "main.rs nicht ändern"),
            ("现在可以修改数据库了", "不要修改数据库"),
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
        ] {
            assert!(!replaces(newer, older), "{newer} / {older}");
        }
    }

    #[test]
    fn a_task_is_closed_by_what_says_that_it_is_done() {
        let said = "Alright. I added the tests for the parser and updated the docs. Next the lexer.";
        assert_eq!(done(said), ["I added the tests for the parser and updated the docs."]);
        assert!(closes("I added the tests for the parser.", "Later also add tests for the parser."));
        assert!(closes("The docs are updated.", "todo: update the docs"));
        assert!(!closes("I added the tests for the lexer.", "still to do: write the changelog"));
    }
}
