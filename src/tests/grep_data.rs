//! Data in the history: base64, hex dumps, hashes, ids. It does not fill the index, and is found anyway: whole, by
//! its beginning, in quotation marks and by regular expression. What only looks like it stays indexed word by word.

use std::fmt::Write as _;

use serde_json::json;

use super::asking::Asking;
use super::exact::vocabulary;
use super::support::Session;

const BASE64: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

/// Random data, always the same.
struct Data(u64);

impl Data {
    fn byte(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        u8::try_from(self.0 >> 56).unwrap()
    }

    fn base64(&mut self, length: usize) -> String {
        (0..length).map(|_| char::from(BASE64.as_bytes()[usize::from(self.byte() & 63)])).collect()
    }

    fn hex(&mut self, bytes: usize) -> String {
        (0..bytes).fold(String::new(), |hex, _| format!("{hex}{:02x}", self.byte()))
    }

    fn number(&mut self) -> u64 {
        self.byte();
        self.0 / 2_000
    }

    fn uuid(&mut self) -> String {
        let hex = self.hex(16);
        format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..])
    }

    fn lines(&mut self, count: usize, line: impl Fn(&mut Self, usize) -> String) -> String {
        (0..count).map(|at| line(self, at) + "\n").collect()
    }

    /// As `xxd` prints it.
    fn dump(&mut self, count: usize) -> String {
        self.lines(count, |data, at| {
            let hex = data.hex(16);
            let groups = (0..8).fold(String::new(), |line, n| format!("{line} {}", &hex[n * 4..n * 4 + 4]));
            format!("{:08x}:{groups}  ................", at * 16)
        })
    }
}

/// The kinds of data that are kept out of the index, by name.
fn kinds() -> Vec<(&'static str, String)> {
    let data = &mut Data(1);
    let pem = data.lines(60, |data, _| data.base64(64));
    vec![
        ("base64", data.lines(60, |data, _| data.base64(76))),
        (
            "PEM",
            format!("-----BEGIN PRIVATE KEY-----\n{pem}{}\n-----END PRIVATE KEY-----\n", data.base64(22)),
        ),
        ("base64url", data.lines(60, |data, _| data.base64(76).replace('+', "-").replace('/', "_"))),
        ("numbered base64", data.lines(60, |data, at| format!("{at:6}\u{2192}{}", data.base64(64)))),
        ("a line of base64", data.base64(4_000)),
        ("hashes", data.lines(80, |data, at| format!("{}  src/file{}.rs", data.hex(32), at % 7))),
        ("hex dump", data.dump(100)),
        (
            "base32",
            data.lines(60, |data, _| {
                data.base64(56).to_uppercase().replace(['+', '/', '0', '1', '8', '9'], "2")
            }),
        ),
        ("an embedding", data.lines(60, |data, _| format!("0.{:016}, ", data.number()))),
        (
            "ids",
            data.lines(80, |data, _| {
                format!("INFO done {} req_{}", data.uuid(), data.base64(24).replace(['+', '/'], "7"))
            }),
        ),
    ]
}

#[tokio::test]
async fn data_is_found_but_does_not_fill_the_index() {
    for (kind, text) in kinds() {
        let call = json!({"command": "show"});
        let session = Session::new().user("show me").tool("bash", call, &text).user("and now?");
        let asking = Asking::about(&session).await;
        let words = vocabulary(&asking.store).await;
        assert!(words.len() < 100, "{kind}: {} words, {words:?}", words.len());

        let line = text.lines().nth(text.lines().count() / 2).unwrap();
        let from = line.len() / 2;
        let piece = &line[from..line.len().min(from + 14)];
        let result = asking.message(2).await;
        for (query, mode) in [
            (format!("\"{line}\""), "text"),
            (format!("\"{}\"", line.trim()), "text"),
            (line.replace('+', "\\+").replace('.', "\\."), "regex"),
            (piece.replace('+', "\\+"), "regex"),
        ] {
            let answer = asking.grep(json!({"query": query, "mode": mode})).await;
            assert!(answer.contains(&result), "{kind}: {query}: {answer}");
        }
        // Without quotation marks: whole words, their beginnings, and together with another word.
        let word = line.split(|c: char| !c.is_alphanumeric()).max_by_key(|word| word.len()).unwrap();
        if word.len() > 12 {
            for query in [word, &word[..11], &word.to_lowercase(), &format!("what is {word}?")] {
                let answer = asking.grep(json!({"query": query})).await;
                assert!(answer.contains(&result), "{kind}: {query}: {answer}");
            }
        }
    }
}

#[tokio::test]
async fn a_phrase_may_go_over_lines_of_data_and_lie_within_one() {
    let text = Data(2).lines(40, |data, _| data.base64(76));
    let asking = Asking::about(&Session::new().user("show").assistant(&text).user("and now?")).await;
    let lines: Vec<&str> = text.lines().collect();
    for phrase in [&text[77 * 9..77 * 12 - 1], &lines[20][3..21], &format!("{}  {}", lines[5], lines[6])] {
        let answer = asking.grep(json!({"query": format!("\"{phrase}\"")})).await;
        assert!(answer.contains(&asking.message(1).await), "{phrase}: {answer}");
    }
    let counted = asking.grep(json!({"query": format!("\"{}\"", lines[7]), "count": "role"})).await;
    assert!(counted.starts_with("1 message"), "{counted}");
    let other = Data(3).base64(20);
    let nothing = asking.grep(json!({"query": format!("\"{other}\"")})).await;
    assert!(nothing.starts_with("Nothing found"), "{nothing}");
    // A part of a word that is no data is none.
    let asking = Asking::about(&Session::new().user("session1234").user("and now?")).await;
    assert!(asking.grep(json!({"query": "\"session12\""})).await.starts_with("Nothing found"));
}

#[tokio::test]
async fn a_hash_or_id_in_text_is_found_whole_and_by_its_beginning() {
    let data = &mut Data(4);
    let (sha, short, uuid) = (data.hex(20), "4f3a9c1", data.uuid());
    let (id, jwt) = (
        "req_011CQzXr8sK2mN4pQ7tVb9".to_owned(),
        "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36POk6yJV",
    );
    let log = data.lines(30, |data, at| {
        format!("commit {}\nAuthor: A Person <a@example.com>\nDate:   Fri Nov 20 09:12:30 2026 +0100\n\n    Mend fault {at}\n", data.hex(20))
    });
    let session = Session::new()
        .user(&format!("the commit {sha} broke it"))
        .user(&format!("but {short} did not"))
        .user(&format!("the order {uuid} is late"))
        .user(&format!("as {id} says"))
        .user(&format!("with {jwt} as token"))
        .user(&log)
        .user("and now?");
    let asking = Asking::about(&session).await;
    let commit = log.split_whitespace().nth(1).unwrap();
    for (position, whole) in [(0, &*sha), (1, short), (2, &uuid), (3, &id), (4, jwt), (5, commit)] {
        let message = asking.message(position).await;
        let beginnings = [6, 9, 12, 13, 16, 22].into_iter().filter(|length| *length < whole.len());
        let queries = beginnings.map(|length| whole[..length].to_owned());
        let other_case = whole.bytes().all(|byte| byte.is_ascii_hexdigit()).then(|| whole.to_uppercase());
        for query in queries.chain([whole.to_owned(), format!("\"{whole}\"")]).chain(other_case) {
            let answer = asking.grep(json!({"query": query})).await;
            assert!(answer.contains(&message), "{query}: {answer}");
        }
    }
}

#[tokio::test]
async fn what_only_looks_like_data_stays_indexed_by_its_words() {
    let minified =
        "function(t,e){var n=e.createElement(\"div\");n.className=\"x1\";return t.appendChild(n)};"
            .repeat(20);
    let paths = (0..40).fold(String::new(), |mut out, at| {
        let _ = writeln!(out, "packages/server/services/authentication/handlers{at}/sessionTokenRotation");
        out
    });
    let table = (0..40).fold(String::new(), |mut out, at| {
        let _ = writeln!(out, "{} {} {} {} {}", 1000 + at * 7, 2000 + at, 3000 + at, 4000 + at, 5000 + at);
        out
    });
    for (text, queries) in [
        (&*minified, &["createElement", "appendChild", "child", "className"][..]),
        (&paths, &["sessionTokenRotation", "rotation", "handlers17", "authentication"]),
        (&table, &["3017", "1119"]),
        (
            "getUserById2FromLegacyDatabase i18nextHttpBackend Uint8ClampedArray RSA2048SHA256Padding",
            &["legacy", "i18next", "Backend", "Clamped", "padding", "UserById2"],
        ),
        ("二〇二六年用docker2构建失败abc1def2的日志", &["docker2", "构建失败", "日志"]),
        ("at 2026-11-20T10:11:12.123Z, 192.168.10.24:8443 v1alpha1 x86_64", &["8443", "v1alpha1", "alpha"]),
    ] {
        let asking = Asking::about(&Session::new().user("one").assistant(text).user("and now?")).await;
        let words = vocabulary(&asking.store).await;
        for query in queries {
            let answer = asking.grep(json!({"query": query})).await;
            assert!(answer.contains(&asking.message(1).await), "{query}: {answer} {words:?}");
        }
    }
}
