//! Words by which a line is told for what it is, where no model says so: a rule of the user's, something left to do, a decision,
//! a failure. In the languages people write to agents in most; a line in another is kept by other means, or not at all.

use std::fmt::Write as _;
use std::sync::LazyLock;

use regex::Regex;

/// Words that tell a rule; those of a language between bars.
const RULE: [&str; 6] = [
    "never|always|must|don't|do not|make sure|prefer|only use|avoid",
    "nie|niemals|immer|stets|muss|müssen|musst|darf nicht|dürfen nicht|bitte nicht|auf keinen Fall|achte darauf|vermeide",
    "jamais|toujours|il faut|doit|doivent|ne pas|évite|évitez|assure-toi|assurez-vous",
    "nunca|jamás|siempre|debe|deben|debes|hay que|no uses|no toques|no cambies|asegúrate|evita|prohibido",
    "不要|不得|不能|不许|不準|禁止|必须|必須|务必|務必|总是|總是|始终|始終|绝不|絕不|永远不|只能|请勿|請勿",
    "必ず|常に|絶対に|決して|ないでください|てはいけない|てはいけません|てはならない|なければならない|なければなりません|避けて",
];
/// And something left to do.
const TASK: [&str; 6] = [
    "todo|to-do|to do:|still to be done|still have to|still has to|left to do|remaining:|next step|not yet done",
    "noch zu tun|noch zu erledigen|bleibt zu tun|fehlt noch|als Nächstes|nächster Schritt",
    "à faire|reste à|prochaine étape",
    "por hacer|pendiente|pendientes|falta por|queda por|siguiente paso",
    "待办|待辦|尚未完成|还需要|還需要|下一步",
    "未完了|残り作業|残っている作業|次のステップ|まだ終わっていない",
];
/// And a decision, or its reason.
const DECISION: [&str; 6] = [
    "because|decided|instead of|so that|therefore|we keep|we use",
    "weil|entschieden|anstatt|stattdessen|deshalb|daher|wir behalten|wir nehmen",
    "parce que|décidé|au lieu de|c'est pourquoi|nous gardons",
    "porque|decidido|decidimos|en lugar de|en vez de|por eso",
    "因为|因為|决定|決定|改用|而不是|所以",
    "ために|なので|決めた|決めました|代わりに|理由",
];

/// A rule.
pub(super) static RULES: Words = Words(LazyLock::new(|| whole_words(&[RULE])));
/// A rule or something left to do, so that most of a text is passed over once.
pub(super) static RULES_OR_TASKS: Words = Words(LazyLock::new(|| whole_words(&[RULE, TASK])));
/// A decision, or its reason.
pub(super) static DECISIONS: Words = Words(LazyLock::new(|| whole_words(&[DECISION])));
/// A failure in what a tool prints; these count within other words too.
pub(super) static ALARMS: Words = Words(LazyLock::new(|| {
    Regex::new(concat!(
        "(?i)error|failed|failure|exception|panicked|traceback|fatal|cannot |fehler|fehlgeschlagen|erreur|échec|échoué",
        "|falló|excepción|错误|錯誤|失败|失敗|异常|エラー|例外",
    ))
    .ok()
}));

/// Between two words. By name: what is made of `\s` takes a tenth of a second to compile where the case does not matter.
const BLANKS: &str = r"[ \t\u{a0}\u{202f}\u{3000}]+";

/// Whole words, in whatever case, with whatever blanks between them.
fn whole_words(lists: &[[&str; 6]]) -> Option<Regex> {
    let mut pattern = String::new();
    for word in lists.iter().flatten().flat_map(|list| list.split('|')) {
        // A letter beyond ASCII ends no word in the sense of `\b`, and scripts without blanks have no such ends.
        let edge =
            |c: Option<char>| if c.is_some_and(|c| c.is_ascii_alphanumeric()) { r"(?-u:\b)" } else { "" };
        let (first, last) = (edge(word.chars().next()), edge(word.chars().next_back()));
        let bar = if pattern.is_empty() { "(?i)" } else { "|" };
        let _ = write!(pattern, "{bar}{first}{}{last}", regex::escape(word).replace(' ', BLANKS));
    }
    Regex::new(&pattern).ok()
}

/// Words that are looked for.
pub(super) struct Words(LazyLock<Option<Regex>>);

impl Words {
    /// Does `line` hold one of them?
    pub(super) fn are_in(&self, line: &str) -> bool {
        self.0.as_ref().is_some_and(|words| words.is_match(line))
    }

    /// The lines of `text` that hold one of them, in order.
    pub(super) fn lines<'t>(&'static self, text: &'t str) -> impl Iterator<Item = &'t str> {
        let mut at = 0;
        std::iter::from_fn(move || {
            let found = self.0.as_ref()?.find_at(text, at.min(text.len()))?;
            let start = text[..found.start()].rfind('\n').map_or(0, |end| end + 1);
            let end = text[found.end()..].find('\n').map_or(text.len(), |line| found.end() + line);
            at = end + 1;
            text.get(start..end)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_and_tasks_are_known_in_several_languages() {
        let rules = [
            "Never push to main",
            "du musst die Tests laufen lassen",
            "Bitte NICHT in main.rs schreiben",
            "il faut garder les noms",
            "Évite les dépendances",
            "nunca borres la base de datos",
            "提交前必须运行测试",
            "main.rsを変更しないでください",
        ];
        for rule in rules {
            assert!(RULES.are_in(rule), "{rule}");
        }
        let tasks = [
            "TODO: the parser",
            "Noch zu tun: der Parser",
            "il reste à tester",
            "pendiente: tests",
            "下一步是测试",
            "未完了のテスト",
        ];
        for task in tasks {
            assert!(RULES_OR_TASKS.are_in(task) && !RULES.are_in(task), "{task}");
        }
        for other in
            ["mustard and nieces", "The doctor said so", "我们谈谈", "今日は晴れ", "tododo", "geniessen"]
        {
            assert!(!RULES.are_in(other) && !RULES_OR_TASKS.are_in(other), "{other}");
        }
    }

    #[test]
    fn blanks_between_words_are_of_any_number_and_kind_but_end_no_line() {
        for rule in ["do  not touch it", "do\u{a0}not touch it", "make \t sure"] {
            assert!(RULES.are_in(rule), "{rule}");
        }
        assert!(!RULES.are_in("what to do\nnot yet"));
    }

    #[test]
    fn the_lines_are_whole_and_each_comes_once() {
        let text = "ok\nTypeError: error\nfine\nla prueba falló\n\n编译错误";
        assert_eq!(
            ALARMS.lines(text).collect::<Vec<_>>(),
            ["TypeError: error", "la prueba falló", "编译错误"]
        );
        assert_eq!(ALARMS.lines("").count(), 0);
    }
}
