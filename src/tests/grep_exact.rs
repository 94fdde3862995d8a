//! What a search must not miss: quoted phrases, another spelling of the same letters, and a session among far larger ones.

use std::collections::BTreeSet;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::asking::Asking;
use super::support::Session;

/// The short ids of an answer's results, in order.
fn ids(answer: &str) -> Vec<String> {
    answer.lines().filter(|line| line.starts_with("m-")).map(|line| line[..12].to_owned()).collect()
}

#[tokio::test]
async fn a_quoted_phrase_stands_in_every_result_and_other_words_rank() {
    let session = Session::new()
        .user("the connection was refused by the printer")
        .assistant("The connection\n  was REFUSED; by whom? Try «déjà vu» again")
        .user("was refused the connection by")
        .user(&format!("{}connection was refused near the walrus", "a filler line of words\n".repeat(60)))
        .user("and now?");
    let asking = Asking::about(&session).await;
    let ask = async |query: &str| asking.grep(json!({"query": query})).await;
    let found = ids(&ask("\"connection was refused\"").await);
    let all: BTreeSet<String> = found.iter().cloned().collect();
    let expected = [asking.message(0).await, asking.message(1).await, asking.message(3).await];
    assert_eq!(all, expected.iter().cloned().collect());
    assert_eq!(ids(&ask("walrus \"connection was refused\"").await)[0], expected[2]);
    assert_eq!(ids(&ask("printer \"connection was refused\"").await)[0], expected[0]);
    assert_eq!(ids(&ask("\"was refused; by\"").await), expected[1..2], "punctuation counts");
    assert_eq!(ids(&ask("“Deja vu” “was refused”").await), expected[1..2]);
    let nothing = ask("\"connection was lost\" printer").await;
    assert!(
        nothing.starts_with("Nothing found for `\"connection was lost\" printer` in 5 searchable messages of this session. Nowhere in this session does it say \"connection was lost\" in whole words"),
        "{nothing}"
    );
    assert!(nothing.contains(" Thinking is not searched."), "{nothing}");
    let none_has_both = ask("\"by the printer\" \"deja vu\"").await;
    assert!(
        none_has_both.starts_with("Nothing found") && !none_has_both.contains("Nowhere"),
        "{none_has_both}"
    );
    // Others say it.
    let filtered = asking.grep(json!({"query": "\"connection was refused\"", "tool": "edit"})).await;
    assert!(
        filtered.contains(" With these filters, nothing says \"connection was refused\" in whole words")
            && !filtered.contains("Nowhere"),
        "{filtered}"
    );
    for filter in ["--role bashExecution", "--summaries", "--before 2020-01-01"] {
        let filtered = asking.command(&format!("search \"connection was refused\" {filter}")).await;
        assert!(filtered.contains(" With these filters, ") && !filtered.contains("Nowhere"), "{filtered}");
    }
    let shown = asking.command("search \"connection was lost\"").await;
    assert!(shown.contains("Nowhere in this session does it say \"connection was lost\""), "{shown}");
    assert_eq!(
        asking.json("search \"connection was lost\"").await["missing"],
        json!(["connection was lost"])
    );
    assert_eq!(asking.json("search \"connection was refused\"").await["hits"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_phrase_may_begin_in_a_passage_before() {
    let (line, blank) = ("a filler line of words\n".repeat(40), " ".repeat(2_000));
    for text in [
        format!("{line}the walrus{blank}sleeps in the harbour\n{line}"),
        format!("{line}the\n{}\nwalrus{blank}sleeps in\n{line}", "-".repeat(900)),
        format!("{line}看walrus{blank}sleeps in\n{line}"),
    ] {
        let session =
            Session::new().user(&text).user("the walrus; it sleeps in the harbour").user("and now?");
        let asking = Asking::about(&session).await;
        let found = ids(&asking.grep(json!({"query": "\"walrus sleeps in\""})).await);
        assert_eq!(found, [asking.message(0).await], "{text}");
    }
}

#[tokio::test]
async fn a_phrase_of_another_session_is_not_said_to_be_nowhere() {
    let asking = Asking::about(&Session::new().user("nothing of it").user("and now?")).await;
    let asking = asking.with_session("two", &Session::new().user("a walrus of Codex")).await;
    let there = asking.command("search \"nothing of it\" --session two").await;
    assert!(
        there.contains("Nowhere in that session")
            && there.ends_with(" Not searched: 1 other session; add --project."),
        "{there}"
    );
    let answer = asking.grep(json!({"query": "\"walrus of codex\"", "session": "this"})).await;
    assert!(answer.contains("Nowhere") && answer.contains(" Not searched: 1 other session; "), "{answer}");
    assert_eq!(
        ids(&asking.grep(json!({"query": "\"walrus of codex\"", "session": "project"})).await).len(),
        1
    );
}

const WORDS: [&str; 9] = ["alpha", "Beta", "gämma", "delta2", "a.b", "getUserName", "日本", "日alpha本", "x"];
const BETWEEN: [&str; 6] = [" ", "  ", "\n", ", ", "-", "\u{3000}"];
/// Spaces that fill a passage, once in so many.
const WIDE: usize = 1_200;
const RARE: usize = 24;

fn text() -> impl Strategy<Value = String> {
    let between = |n: usize| match n {
        0 => " ".repeat(WIDE),
        _ => BETWEEN[n % BETWEEN.len()].to_owned(),
    };
    proptest::collection::vec((0..WORDS.len(), 0..RARE), 1..260).prop_map(move |pairs| {
        pairs.into_iter().map(|(word, n)| [WORDS[word], &between(n)].concat()).collect()
    })
}

/// With one space between words.
fn spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Plain search: lowercase, without accents, white space as one space, and no word goes on at either end.
fn says(text: &str, phrase: &str) -> bool {
    let plain = |text: &str| spaced(&text.to_lowercase().replace('ä', "a"));
    let (text, phrase) = (plain(text), plain(phrase));
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() && !"日本".contains(c));
    text.match_indices(&phrase).any(|(at, _)| {
        let goes_on = |one: Option<char>, next: Option<char>| is_word(one) && is_word(next);
        let (before, behind) = (text[..at].chars().next_back(), text[at + phrase.len()..].chars().next());
        !goes_on(before, phrase.chars().next()) && !goes_on(phrase.chars().next_back(), behind)
    })
}

proptest! {
    #![proptest_config(lcm_testing::cases(100))]
    #[test]
    fn quoted_phrases_find_what_plain_search_finds(
        texts in proptest::collection::vec(text(), 1..8),
        phrases in proptest::collection::vec((0..8_usize, 0..400_usize, 1..60_usize, any::<bool>()), 6),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let session = texts.iter().fold(Session::new(), |session, text| session.user(text)).user("and now?");
        runtime.block_on(async {
            let asking = Asking::about(&session).await;
            let mut all = Vec::new();
            for at in 0..texts.len() {
                all.push(asking.message(at).await);
            }
            for (from, start, length, upper) in phrases {
                let from = &texts[from % texts.len()];
                let from: Vec<char> = if upper { spaced(from) } else { from.clone() }.chars().collect();
                let phrase: String = from.iter().skip(start % from.len()).take(length).collect();
                let phrase = if upper { phrase.to_uppercase() } else { phrase };
                if !phrase.contains(char::is_alphanumeric) {
                    continue;
                }
                let expected: BTreeSet<String> = (0..texts.len())
                    .filter(|at| says(&texts[*at], &phrase))
                    .map(|at| all[at].clone())
                    .collect();
                let answer = asking.grep(json!({"query": format!("\"{phrase}\""), "limit": 100})).await;
                // Equal results are folded into one.
                let found: BTreeSet<String> = all.iter().filter(|id| answer.contains(*id)).cloned().collect();
                prop_assert_eq!(&found, &expected, "{:?}: {}", phrase, answer);
            }
            Ok(())
        })?;
    }
}

#[tokio::test]
async fn one_spelling_finds_the_other() {
    let pairs = [
        ("ｆｕｌｌｗｉｄｔｈ ＡＢＣ１２３", "fullwidth ABC123"),
        ("ﬁle ﬂow ligature", "file flow ligature"),
        ("ｶﾞﾗｽ ﾃｽﾄ", "ガラス テスト"),
        ("co\u{ad}op\u{ad}er\u{ad}a\u{ad}tive", "cooperative"),
        ("zero\u{200b}width", "zerowidth"),
        ("𝐛𝐨𝐥𝐝 𝓈𝒸𝓇𝒾𝓅𝓉", "bold script"),
        ("Übergröße", "U\u{308}bergro\u{308}ße"),
    ];
    for (one, other) in pairs {
        for (said, asked) in [(one, other), (other, one)] {
            let session =
                Session::new().user(&format!("here: {said} is it")).user("another thing").user("and now?");
            let asking = Asking::about(&session).await;
            for query in [asked.to_owned(), format!("\"{asked}\"")] {
                let answer = asking.grep(json!({"query": query})).await;
                assert_eq!(ids(&answer), [asking.message(0).await], "{said} by {query}: {answer}");
                assert!(answer.replace(['«', '»'], "").contains(said), "the original is shown: {answer}");
            }
        }
    }
}

/// A session with one mention, and `others` mentions in sessions after it.
async fn among(others: usize, mention: impl Fn(usize) -> Session) -> Asking {
    let old = Session::new().user("the walrus lives in the old harbour").assistant("I see.").user("and now?");
    let mut asking = Asking::about(&old).await;
    for n in 0..others / 1_000 {
        asking = asking.with_session(&format!("other{n}"), &mention(n)).await;
    }
    asking
}

#[tokio::test]
async fn an_old_session_is_searched_whatever_newer_ones_hold() {
    let asking = among(31_000, |n| {
        (0..1_000).fold(Session::new(), |session, m| session.user(&format!("walrus {n} {m}: harbour, old")))
    })
    .await;
    let expected = [asking.message(0).await];
    for arguments in [
        json!({"query": "walrus"}),
        json!({"query": "old harbour walrus"}),
        json!({"query": "\"walrus lives\""}),
        json!({"query": "walrus", "branch": "current", "session": "project"}),
        json!({"query": "walrus", "before": "2026-11-20T09:00:01Z", "role": "user", "session": "this"}),
    ] {
        assert_eq!(ids(&asking.grep(arguments.clone()).await), expected, "{arguments}");
    }
}

#[tokio::test]
async fn a_filter_that_leaves_out_all_newer_mentions_finds_the_old_one() {
    let old = Session::new().user("the walrus lives in the old harbour");
    let session =
        (0..31_000).fold(old, |session, n| session.assistant(&format!("walrus {n}"))).user("and now?");
    let asking = Asking::about(&session).await;
    let found: Value = json!({"query": "walrus", "role": "user"});
    assert_eq!(ids(&asking.grep(found).await), [asking.message(0).await]);
}
