//! Whether one sentence replaces or closes an earlier one, by the words they share.

use std::collections::HashSet;
use std::sync::LazyLock;

use super::folding::folded;
use super::sentences::sentences;
use super::topics::{are_kin, words, words_after};
use super::words::{LANGUAGES, asks};
use crate::{Pattern, pattern};

/// Words in a sentence that forbids.
static FORBIDS: Pattern = pattern!(
    r"(?i)\b(?:never|not|don'?t|no|avoid|stop|forbidden|prohibited|banned|off[ -]limits|nie|niemals|nicht|kein\w*|jamais|pas|aucun\w*|nunca|jamás)\b",
    r"|不|别|勿|禁止|ない|禁止|ません",
);
/// Words in a sentence that takes something back.
static REVOKES: Pattern = pattern!(
    r"(?i), not |\b(?:instead|no longer|any ?more|forget|scrap|ignore|drop|skip|dropped|scratch|lifted|no need|(?:don'?t|do not|needn'?t) (?:need|have)|you (?:may|can)|allowed|changed my mind",
    r"|after all|(?:it'?s |is )?(?:ok|okay|fine) to|switch(?:ed)? to|nicht mehr|stattdessen|vergiss|darfst|plutôt|oublie|en lugar|olvida|puedes)\b",
    r"|改用|改为|可以|不再|代わりに",
);
/// Words in a sentence that applies from now on: to what an older one is about, or to something else.
static BEGINS: Pattern = pattern!(
    r"(?i)\b(?:from now on|actually|now|ab jetzt|ab sofort|doch|désormais|à partir de maintenant|a partir de ahora)\b",
    r"|以后|从现在|今後|これから|もう",
);
/// Before what no longer applies.
static INSTEAD_OF: Pattern = pattern!(
    r"(?i)\b(?:instead of|rather than|anstatt|statt|anstelle|plutôt que|au lieu d[e']|en lugar de|en vez de|invece di|em vez de)\b"
);
static OVER: Pattern = pattern!(r"(?i), not |\b(?:instead of|rather than|statt|anstatt)\b");
/// Words of which only one can hold, as [`words`] gives them.
const EXCLUSIVE: [&str; 5] =
    ["tab spac", "singl doubl", "camelcas snake_cas pascalcas", "npm pnpm yarn bun", "jest vitest mocha"];
/// Words that say that something is done, whatever it was.
static FINISHED: Pattern = pattern!(
    r"(?i)\b(?:done|finished|completed?|in place|there now|gone|settled|closed|went in|taken care of|took care of|sorted out",
    r"|(?:is|are) (?:now )?ready|up[ -]to[ -]date|tick(?:ed)? off|check(?:ed)? off|strike (?:it|that)|off the list|nothing left",
    r"|forget about (?:it|that)|erledigt|fertig|terminé|fini|à jour|hecho|terminado|está\w* \w+[ai]d[oa]s?|fatto|feito)\b",
    r"|完成|搞定|完了|好了|終わりました",
);
/// Words that say what was done.
static DONE: Pattern = pattern!(
    r"(?i)\b(?:added|updated|upgraded|bumped|fixed|implemented|removed|deleted|dropped|cleaned|wrote|(?:re)?written|documented|renamed|moved",
    r"|replaced|refactored|migrated|merged|released|published|shipped|deployed|tested|resolved|behoben",
    r"|hinzugefügt|aktualisiert|ajouté|corrigé|añadido|corregido)\b",
    r"|已(?:经|經)?(?:修|添|更|写|寫|删|刪|做|改|加)|修正しました|追加しました|更新しました",
);
/// The same by the form of the word, which agents use all the time.
static PARTICIPLE: Pattern = pattern!(
    r"(?i)\b(?:is|are|was|were|been|got|i|we|i'?ve|we'?ve|have|has) (?:now |all |already |just |finally |also |fully )*",
    r"(?:[a-z-]{2,}ed|built|rebuilt|made|run|ran|sent|set|split|cut|taken)\b",
);
/// Words in a sentence of the user that something need not be done.
static CANCELLED: Pattern = pattern!(
    r"(?i)(?:^|[,;:] |\b(?:and|but|ok|okay|please|so|then|just|also|actually|well|let'?s|you can|we can) )",
    r"(?:forget|skip|scrap|scratch|cancel|drop|ignore|never ?mind|leave out) ",
    r"|\b(?:no longer|not|isn'?t|aren'?t) (?:needed|necessary|required|relevant|wanted)\b|\bno need (?:to|for)\b|\bneedn'?t\b",
    r"|\b(?:no longer (?:need|want|have to)|(?:don'?t|do not|doesn'?t|won'?t) (?:need|have to))\b|\bno\b.* after all\b|\bcancell?ed\b",
    r"|\b(?:we|i) (?:won'?t|will not)\b|\b(?:not|aren'?t) going to\b|\b(?:we'?re|we are|i'?m|i am) not [a-z]+ing\b",
    r"|\b(?:let'?s not|decided against|off the table|obsolete|out of scope)\b",
    r"|\b(?:(?:brauch\w*|muss|müssen) .{0,60}nicht(?: mehr)?|nicht mehr nötig|vergiss|entfällt|hinfällig|plus besoin|pas besoin|laisse tomber|oublie",
    r"|no hace falta|olvida|non serve più|lascia perdere|não precisa mais|esque[cç][ea])\b|不用|不需要|不必|取消|算了|不要|いらな|なくて(?:いい|も)",
);
/// Words in such a sentence that only puts it off, or demands it.
static POSTPONED: Pattern = pattern!(
    r"(?i)\b(?:for now|yet|today|right now|at the moment|until|till|before|unless|without|if|first|here|once",
    r"|this (?:commit|time|one|pr|change|session)|(?:not|n't|never) forget|erst ?mal|vorerst|noch nicht",
    r"|pour l'instant|por ahora|per ora|por enquanto)\b|先|暂时|今は|とりあえず",
);
/// Words that allow something, and those that tell that this is new: together, they take a rule back.
static ALLOWED: Pattern = pattern!(
    r"(?i)\b(?:is|are|it'?s|that'?s|ist|sind) (?:\w+ ){0,2}(?:fine|ok|okay|allowed|all ?right|acceptable|permitted|welcome|erlaubt|in ordnung)\b",
);
static CHANGED: Pattern =
    pattern!(r"(?i)\b(?:now|again|after all|actually|changed my mind|i was wrong|doch|wieder|jetzt)\b");

/// Words in a sentence that is not about completed work: it denies it, or says what is to be done.
static NOT_YET: Pattern = pattern!(
    r"(?i)\b(?:not|n't|never|no|must|should|shall|will|needs? to|have to|has to|to be|later|still|todo|before|once|when|after|until|if",
    r"|almost|half|nearly|partly|mostly|nicht|kein\w*|muss|müssen|soll\w*|wird|noch|später|pas|doit|devra",
    r"|falta|debe\w*)\b|未|没|ない|まだ",
);
/// What a task demands: a sentence that something is done, or need not be, often leaves it out.
static ACTIONS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    words(concat!(
        "add adjust bring build bump change check clean convert create cut delete deploy describe do document drop extend ",
        "extract finish fix get go handle implement improve install investigate look merge migrate move port prepare ",
        "publish refactor release remove rename replace review revisit rewrite run send set ship sort split start switch ",
        "test tidy translate try update upgrade verify write schreiben aktualisieren entfernen hinzufügen mettre actualizar",
    ))
});

/// Where a sentence begins to say when, or on what condition.
static WHEN: Pattern = pattern!(
    r"(?i),? (?:once|before|after|until|as soon as|when|whenever|if|sobald|bevor|nachdem|wenn|falls|quand|dès que|lorsque|avant",
    r"|cuando|antes|después|quando|prima|dopo) ",
);
/// The most bytes of a remark.
const REMARK: usize = 160;
/// How many words a rule may have that the one it takes back has not.
const OTHERS: usize = 4;
/// In percent: a report with this share of a task's words certainly means it.
const SURELY: usize = 75;

/// A sentence's topic, computed once.
pub struct Meaning {
    words: HashSet<String>,
    /// The words without when, or on what condition.
    core: HashSet<String>,
    forbids: bool,
    revokes: bool,
    begins: bool,
    /// The words after `instead of` and the like.
    instead_of: HashSet<String>,
    /// The same, and those after `, not`.
    over: HashSet<String>,
    /// If it says that something is done or need not be, whatever is to be done with it: the words for that.
    finishing: Option<HashSet<String>>,
    languages: HashSet<String>,
}

impl Meaning {
    /// Returns the topic of `sentence`.
    pub fn of(sentence: &str) -> Self {
        let lower = sentence.to_lowercase();
        let languages = LANGUAGES.found(&lower).map(|language| language.as_str().to_owned());
        // An earlier clause is the condition itself.
        let when = WHEN.found(sentence).last().map(|when| when.start());
        let core = when.filter(|at| *at > sentence.len() / 3).map_or(sentence, |at| &sentence[..at]);
        Self {
            words: words(sentence),
            core: words(core),
            forbids: FORBIDS.is_in(sentence),
            revokes: REVOKES.is_in(sentence),
            begins: BEGINS.is_in(sentence),
            instead_of: words_after(&INSTEAD_OF, sentence),
            over: words_after(&OVER, sentence),
            finishing: finishing(sentence),
            languages: languages.collect(),
        }
    }

    /// Returns whether this rule replaces `older`: it reverses it, or says that something else applies from
    /// now on. In doubt both apply, and rules that only forbid more exist side by side.
    pub fn replaces(&self, older: &Self) -> bool {
        let is_turned = self.forbids != older.forbids;
        if is_turned && self.reverses(older) {
            return true;
        }
        let is_other_language = !self.languages.is_empty()
            && !older.languages.is_empty()
            && self.languages.is_disjoint(&older.languages);
        if self.is_mirrored(older) {
            return true;
        }
        if older.forbids || is_turned && !self.revokes {
            return false;
        }
        if is_other_language && self.is_only_language(older) || self.has_other_value(older) {
            return true;
        }
        // `From now on` alone may add a rule of the same pattern; only of languages is one meant.
        let changes = self.revokes || self.begins && is_other_language;
        // Two sentences of the same pattern may be about different things.
        let (mine, its) = self.compared(older);
        let (shared, all) = (mine.intersection(its).count(), its.len());
        let names_all = its.iter().all(|word| mine.contains(word) || ACTIONS.contains(word));
        let is_it = 3 * shared >= 2 * all || names_all || self.puts_instead(its);
        let is_other = self.words != older.words || self.instead_of != older.instead_of;
        changes && shared > 0 && is_it && self.may_change(older, shared) && is_other
    }

    /// Whether this sentence forbids all that `older` demands, or the reverse. If it says more, that may be an exception,
    /// unless its words tell that something changes.
    fn reverses(&self, older: &Self) -> bool {
        let (mine, its) = self.compared(older);
        let (shared, all) = (mine.intersection(its).count(), its.len());
        // Pairs of characters differ at the ends of what is said.
        let is_wide = its.iter().any(|word| word.chars().any(|c| c >= '\u{2e80}'));
        let is_all = if is_wide { 3 * shared >= 2 * all } else { shared == all };
        let changes = is_wide || (self.revokes || self.begins) && self.may_change(older, shared);
        shared > 0 && is_all && (changes || self.words.is_subset(&older.words))
    }

    /// Whether this sentence, which changes something, may mean `older`: it has few words of its own, and what comes after
    /// `instead of` is what no longer applies.
    fn may_change(&self, older: &Self, shared: usize) -> bool {
        let is_meant = self.instead_of.is_empty() || !self.instead_of.is_disjoint(&older.words);
        is_meant && self.words.len() - shared <= OTHERS
    }

    /// Whether something else applies instead of a part of `its` words.
    fn puts_instead(&self, its: &HashSet<String>) -> bool {
        !self.instead_of.is_empty() && self.instead_of.is_subset(its)
    }

    /// The words of both to compare: what is taken back is often named without its occasion.
    fn compared<'a>(&'a self, older: &'a Self) -> (&'a HashSet<String>, &'a HashSet<String>) {
        let has_occasion = self.core != self.words;
        (&self.words, if has_occasion { &older.words } else { &older.core })
    }

    /// Returns whether this sentence, which would be no rule alone, takes back `older`: what is allowed now must
    /// be all that it forbids; what need not be done, nothing else than it demands.
    pub(super) fn takes_back(&self, older: &Self) -> bool {
        let (part, whole) = if older.forbids { (older, self) } else { (self, older) };
        part.words.is_subset(&whole.words) && self.replaces(older)
    }

    /// Whether this sentence has no words but those of `older` and the language.
    fn is_only_language(&self, older: &Self) -> bool {
        let language: HashSet<String> = self.languages.iter().flat_map(|language| words(language)).collect();
        self.words
            .difference(&older.words)
            .all(|word| language.contains(word) || ["back", "switch"].contains(&word.as_str()))
    }

    /// Whether this sentence has the words of `older`, but another number, or another of the words that exclude each other.
    fn has_other_value(&self, older: &Self) -> bool {
        let mine: Vec<&String> = self.words.difference(&older.words).collect();
        let its: Vec<&String> = older.words.difference(&self.words).collect();
        let ([mine], [its]) = (mine.as_slice(), its.as_slice()) else { return false };
        let is_number = |word: &str| word.bytes().all(|byte| byte.is_ascii_digit());
        let exclude = |words: &&str| {
            let has = |word: &str| words.split(' ').any(|other| other == word);
            has(mine) && has(its)
        };
        is_number(mine) && is_number(its) && self.words.len() > 1 || EXCLUSIVE.iter().any(exclude)
    }

    /// Whether the two have the same words, and each puts its own before the other's: `pnpm, not npm`.
    fn is_mirrored(&self, older: &Self) -> bool {
        let is_apart = !self.over.is_empty() && !older.over.is_empty() && self.over.is_disjoint(&older.over);
        is_apart && self.words == older.words
    }

    /// Returns whether this short sentence is about the rule or task `earlier`, whatever it says of it: it names
    /// most of what that is about, or a part and hardly anything else.
    pub fn is_about(&self, earlier: &Self) -> bool {
        let is_in = |word: &String, all: &HashSet<String>| all.iter().any(|other| are_kin(word, other));
        let things = || earlier.core.iter().filter(|word| !ACTIONS.contains(*word));
        let (named, all) = (things().filter(|word| is_in(word, &self.words)).count(), things().count());
        let others = self.words.iter().filter(|word| !is_in(word, &earlier.words)).count();
        // What has another number is another thing.
        let numbers = |meant: &Self| -> HashSet<String> {
            meant.words.iter().filter(|word| word.contains(|c: char| c.is_ascii_digit())).cloned().collect()
        };
        let [here, there] = [self, earlier].map(numbers);
        let is_other = !here.is_empty() && !there.is_empty() && here.is_disjoint(&there);
        named > 0 && !is_other && (others <= 1 && 3 * named >= all || others <= 4 && 3 * named >= 2 * all)
    }

    /// Returns how much of the task this sentence reports as done, in percent; `None` if it is about
    /// something else.
    fn share_of(&self, task: &Self) -> Option<usize> {
        let is_told = |word: &&String| self.words.iter().any(|told| are_kin(told, word));
        let shared = task.core.iter().filter(is_told).count();
        // A sentence that something is done may leave out the action, if it is about nothing else.
        let is_in = |word: &String, all: &HashSet<String>| all.iter().any(|other| are_kin(word, other));
        let is_only_this = self.finishing.as_ref().is_some_and(|finishing| {
            self.words.iter().all(|word| is_in(word, &task.words) || finishing.contains(word))
        });
        let left_out = |word: &&String| is_only_this && ACTIONS.contains(*word) && !is_told(word);
        let all = task.core.len() - usize::from(task.core.iter().any(|word| left_out(&word)));
        let is_closed = shared > 0 && (4 * shared >= 3 * all || (shared >= 3 && 2 * shared >= all));
        is_closed.then(|| 100 * shared / all)
    }

    /// Closes the open `tasks` that this sentence reports as done: those it covers almost completely,
    /// otherwise the one it covers best. Returns whether there are any.
    pub(super) fn close(&self, tasks: &[Self], is_open: &mut [bool]) -> bool {
        let share = |(task, is_open): (&Self, &bool)| if *is_open { self.share_of(task) } else { None };
        let shares: Vec<Option<usize>> = tasks.iter().zip(is_open.iter()).map(share).collect();
        let most = shares.iter().flatten().max().copied();
        let least = most.map(|most| most.min(SURELY));
        for (share, is_open) in shares.into_iter().zip(is_open) {
            *is_open &= share.is_none() || share < least;
        }
        most.is_some()
    }
}

/// Returns the sentences of `text` that report something as done, and those of the user that something need
/// not be done.
pub(super) fn done(text: &str, by_user: bool) -> Vec<&str> {
    if !by_user && !FINISHED.is_in(text) && !DONE.is_in(text) {
        return Vec::new();
    }
    let is_done = |sentence: &str| {
        (FINISHED.is_in(sentence) || DONE.is_in(sentence) || by_user && PARTICIPLE.is_in(sentence))
            && !NOT_YET.is_in(sentence)
    };
    stated(text, |sentence| is_done(sentence) || by_user && is_cancelled(sentence))
}

/// Returns the short sentences of `text`, without questions.
pub(super) fn remarks(text: &str) -> Vec<&str> {
    stated(text, |sentence| (8..=REMARK).contains(&sentence.len()))
}

/// Returns whether `sentence` [takes back](Meaning::takes_back) a rule that it is about.
pub(super) fn may_take_back(sentence: &str) -> bool {
    ALLOWED.is_in(sentence) && CHANGED.is_in(sentence) || is_cancelled(sentence)
}

/// The sentences of `text` for which `is_one` is true, without questions and long ones.
fn stated(text: &str, is_one: impl Fn(&str) -> bool) -> Vec<&str> {
    let is_stated = |sentence: &&str| sentence.len() <= 400 && is_one(sentence) && !asks(&folded(sentence));
    sentences(text).filter(is_stated).collect()
}

fn finishing(sentence: &str) -> Option<HashSet<String>> {
    let cancelled = if is_cancelled(sentence) { Some(CANCELLED.found(sentence)) } else { None };
    let found: Vec<_> = FINISHED.found(sentence).chain(cancelled.into_iter().flatten()).collect();
    (!found.is_empty()).then(|| found.iter().flat_map(|found| words(found.as_str())).collect())
}

fn is_cancelled(sentence: &str) -> bool {
    CANCELLED.is_in(sentence) && !POSTPONED.is_in(sentence)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn replaces(newer: &str, older: &str) -> bool {
        Meaning::of(newer).replaces(&Meaning::of(older))
    }

    fn closes(done: &str, task: &str) -> bool {
        let mut is_open = [true];
        Meaning::of(done).close(&[Meaning::of(task)], &mut is_open);
        !is_open[0]
    }

    #[test]
    fn a_rule_is_replaced_by_one_that_reverses_or_changes_it() {
        for (newer, older) in [
            ("Use spaces, not tabs.", "Use tabs."),
            ("Use npm instead of pnpm.", "Use pnpm instead of npm."),
            ("Use 4 spaces.", "Use 2 spaces."),
            ("Use snake_case for variable names from now on.", "Use camelCase for variable names."),
            ("Use double quotes.", "Use single quotes."),
            ("We use npm now, not pnpm.", "Only use pnpm, not npm."),
            ("Always use spaces, not tabs.", "Always use tabs, not spaces."),
            ("Actually, you can answer in English again.", "Answer in German from now on."),
            ("Lines have at most 100 characters.", "Lines have at most 80 characters."),
            ("Spaces instead of tabs, please.", "Use tabs for indentation."),
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
            ("OK, you can use lodash after all.", "Don't use lodash."),
            ("Emojis in commit messages are fine after all.", "No emojis in commit messages"),
            ("Logging customer emails is fine after all.", "Never log customer emails."),
            ("Answer in English again.", "Always answer in German."),
            ("Please answer in English.", "Always answer in German."),
            ("Back to English, please.", "Always answer in German."),
            ("Stop answering in German.", "Always answer in German."),
            ("No need to run prettier before committing.", "Always run prettier before committing."),
            ("The lodash ban is lifted.", "Don't use lodash."),
            ("Forget what I said about emojis, the marketing team loves them.", "No emojis please."),
            ("Bitte nie direkt auf main pushen.", "You may push to main now."),
            ("Use spaces, not tabs.", "Use tabs."),
            ("Skip prettier from now on.", "Always run prettier before committing."),
            ("You don't have to run prettier any more.", "Always run prettier before committing."),
            ("You don't have to run prettier any more.", "Run prettier before every commit."),
            ("Forget the prettier rule.", "Always run prettier before committing."),
        ] {
            assert!(replaces(newer, older), "{newer} / {older}");
        }
        for (newer, older) in [
            ("Never push to main.", "Never push to main."),
            ("The main branch must always be green.", "Never push to the main branch."),
            ("Always rebase onto the main branch before you push.", "Never push to the main branch."),
            ("Keep commit messages short.", "No emojis in commit messages."),
            ("No emojis in commit messages.", "Keep commit messages short."),
            ("Put test files next to the source.", "Never delete test files."),
            ("Inline styles are forbidden in tests too.", "Don't use inline styles."),
            ("Delete files in tmp after each run.", "Never delete files."),
            ("Don't use tabs in YAML.", "Use tabs."),
            (
                "The rule about asking before each migration no longer applies.",
                "Ask me before you install anything.",
            ),
            ("Tests go next to the source, not in a separate folder.", "Use vitest for all tests."),
            ("For this repo, always branch off develop, not main.", "You may push to main now."),
            (
                "If a requirement is unclear, ask instead of guessing.",
                "You don't need to ask before commits.",
            ),
            ("Comments in English.", "Always answer in German."),
            ("Write the readme in English.", "Always answer in German."),
            ("Never touch lib.rs", "Never touch main.rs"),
            ("Never change migration 13.", "Never change migration 12."),
            ("Port 9090 is for the page.", "Port 8080 is for the API."),
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
    fn what_is_no_rule_alone_takes_one_back() {
        let takes_back = |newer, older| Meaning::of(newer).takes_back(&Meaning::of(older));
        for (newer, older) in [
            ("lodash is fine now.", "Don't use lodash."),
            ("Using lodash is ok again.", "Don't use lodash."),
            ("Pushing to main is fine again.", "Never push to main."),
            ("Prettier is not needed any more.", "Always run prettier before committing."),
        ] {
            assert!(may_take_back(newer), "{newer}");
            assert!(takes_back(newer, older), "{newer} / {older}");
        }
        for (newer, older) in [
            ("The database schema is fine now.", "Never change the database schema."),
            ("The tests are fine now.", "Always run the tests before committing."),
            ("We don't need to change the tabs.", "Use tabs."),
        ] {
            assert!(may_take_back(newer), "{newer}");
            assert!(!takes_back(newer, older), "{newer} / {older}");
        }
        for said in ["Skip prettier for this commit.", "lodash is fine."] {
            assert!(!may_take_back(said), "{said}");
        }
        assert_eq!(remarks("Is lodash ok now? lodash is fine."), ["lodash is fine."]);
    }

    #[test]
    fn a_remark_is_about_what_it_names() {
        let is_about = |remark, earlier| Meaning::of(remark).is_about(&Meaning::of(earlier));
        for (remark, earlier) in [
            ("OK, you can edit prod.env.", "Never touch prod.env."),
            ("zod is fine as a dependency.", "No new dependencies."),
            ("We keep the old cart code.", "TODO: delete the old cart code."),
            ("The login endpoint has rate limiting now.", "Later: add rate limiting to the login endpoint."),
            ("Pagination is done.", "Later: add pagination to the orders list."),
            ("Anna knows about the release.", "Don't forget to tell Anna about the release."),
        ] {
            assert!(is_about(remark, earlier), "{remark} / {earlier}");
        }
        for (remark, earlier) in [
            ("Add a discount to the cart and show it in the checkout.", "TODO: delete the old cart code."),
            ("The server is slow.", "Never touch prod.env."),
            ("Then write module number 59.", "Later, write module number 3."),
        ] {
            assert!(!is_about(remark, earlier), "{remark} / {earlier}");
        }
    }

    #[test]
    fn a_task_is_closed_by_a_report_that_it_is_done() {
        let said = "Alright. I added the tests for the parser and updated the docs. Next the lexer.";
        assert_eq!(done(said, true), ["I added the tests for the parser and updated the docs."]);
        for open in [
            "The login page must be fixed.", "The parser module is not renamed.", "Later I'll have it fixed.",
        ] {
            assert_eq!(done(open, true), [""; 0], "{open}");
        }
        assert!(closes("I added the tests for the parser.", "Later also add tests for the parser."));
        assert!(closes("The docs are updated.", "todo: update the docs"));
        for (done, task) in [
            ("The changelog is updated.", "Don't forget to update the changelog."),
            ("I have written the migration guide.", "TODO: write a migration guide."),
            ("I wrote the migration guide.", "TODO: write a migration guide."),
            ("The migration guide is done.", "TODO: write a migration guide."),
            ("The release notes are written.", "Don't forget the release notes."),
            ("utils.js is cleaned up, thanks.", "Later: clean up utils.js"),
            ("vite is upgraded now", "We still need to upgrade vite."),
            ("The debug flag is gone.", "Remember to remove the debug flag."),
            ("We no longer need to remove the debug flag.", "Remember to remove the debug flag."),
            ("No need to remove the debug flag.", "Remember to remove the debug flag."),
            ("Forget the docs for refunds.", "TODO: docs for refunds"),
            ("Forget the docs for refunds, we don't need them any more.", "Later, write docs for refunds."),
            ("The migration guide is no longer needed.", "TODO: write a migration guide."),
            ("The changelog is up to date now.", "Remember to update the changelog at the end."),
            ("The login bug is fixed.", "TODO: fix the login bug"),
            ("The timeout error is handled.", "TODO: handle the timeout error"),
            ("Done with the changelog.", "Don't forget to update the changelog."),
            ("The changelog is up to date now.", "Don't forget to update the changelog."),
            ("Take the migration guide off the list.", "TODO: write a migration guide."),
            ("We won't write a migration guide.", "TODO: write a migration guide."),
            ("Refund flow tested.", "We still have to test the refund flow."),
            ("The flaky login test is fixed.", "Next: fix the flaky login test."),
            ("Die Doku ist fertig.", "Später noch die Doku aktualisieren."),
        ] {
            assert_eq!(super::done(done, true), [done], "not seen as done");
            assert!(closes(done, task), "{done} / {task}");
        }
        for (done, task) in [
            ("The debug flag is added.", "Remember to remove the debug flag."),
            ("The parser is done.", "TODO: write tests for the parser"),
            ("The changelog template is ready.", "TODO: write the changelog"),
            ("The login page design is done.", "TODO: add a login page"),
            ("The changelog is done.", "TODO: update the changelog and the docs"),
        ] {
            assert!(!closes(done, task), "{done} / {task}");
        }
        for open in [
            "Don't forget the docs for refunds.",
            "Skip the docs for refunds for now.",
            "Is the guide done?",
            "The admin order book handles twice what it did.",
            "The guide is almost done.",
            "We won't ship without the guide.",
        ] {
            assert_eq!(done(open, true), [""; 0], "{open}");
        }
        assert_eq!(done("We no longer need to remove the debug flag.", false), [""; 0]);
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
            .map(|queue| Meaning::of(&format!("Come back to X1 in the staging {queue} queue.")));
        let done = Meaning::of("What we come back to in the staging mail queue is settled.");
        let mut are_open = [true, true];
        done.close(&queues, &mut are_open);
        assert_eq!(are_open, [false, true]);
        assert!(!closes("I updated the docs.", "After the docs are updated, write the changelog."));
    }
}
