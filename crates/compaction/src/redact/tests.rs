//! What redaction masks, what it leaves, and that a broken rule lets nothing pass. The second half measures on
//! labeled lines how many secrets are masked, and how much harmless text.
//!
//! `labelled/*.txt` contains templates, so that no file here looks like a leak: `‹m36›` is 36 random letters
//! and digits, `⏎` a line break, and the secret is between `«` and `»`. The first rules were made with the
//! seen half; the unseen half was written before them. Later, an author who did not know the rules wrote two
//! more halves, and the rules were extended with the seen one. A third author, who did not know them either,
//! wrote the third pair. Misses in the unseen halves are only counted, never looked at.

use std::collections::HashSet;
use std::io::Write;

use serde_json::Value;

use super::rules::{RULES, Rules};
use super::values::Condition;
use super::{redacted, redacted_message};
use lcm_model::Message;

/// Keys are assembled here, so that no scanner reports this file as a leak.
fn key(parts: &[&str]) -> String {
    parts.concat()
}

#[test]
fn keys_of_known_shapes_are_masked_without_their_surroundings() {
    let body = "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5";
    let cases = [
        (key(&["AKIA", "IOSFODNN7EXAMPLE"]), "aws key"),
        (key(&["ghp_", body]), "github token"),
        (key(&["github_pat_", "11ABCDEFG0", body]), "github token"),
        (key(&["glpat-", "xYz123456789abcdefgh"]), "gitlab token"),
        (key(&["xoxb-", "123456789012-abcdefGHIJ"]), "slack token"),
        (key(&["sk_live_", "abcdefGHIJ0123456789"]), "stripe key"),
        (key(&["sk-ant-", "api03-", body]), "anthropic key"),
        (key(&["sk-proj-", body]), "openai key"),
        (key(&["AIza", &body[..35]]), "google key"),
        (key(&["npm_", body]), "npm token"),
        (key(&["eyJhbGciOiJIUzI1NiJ9", ".eyJzdWIiOiIxMjM0In0", ".dBjftJeZ4CVP-mB92K27"]), "jwt"),
        (
            key(&[
                "-----BEGIN RSA ",
                "PRIVATE KEY-----\n",
                &body.repeat(4),
                "\n-----END RSA PRIVATE KEY-----",
            ]),
            "private key",
        ),
        // Truncated in the middle.
        (key(&["-----BEGIN ", "PRIVATE KEY-----\n", &body.repeat(4)]), "private key"),
    ];
    for (secret, kind) in cases {
        let text = format!("before ({secret})\nafter");
        assert_eq!(redacted(&text), format!("before ([masked: {kind}])\nafter"));
    }
}

#[test]
fn values_assigned_to_secret_names_are_masked() {
    let cases = [
        ("password=hunter2x", "password=[masked]"),
        ("It has password=hunter2secret9. Then start it.", "It has password=[masked] Then start it."),
        ("Use password: s3cretpass1. Then start it.", "Use password: [masked] Then start it."),
        ("WEBHOOK_SECRETS=n8Xq2LvR7tKw", "WEBHOOK_SECRETS=[masked]"),
        ("DB_PASSWORD=correct-horse", "DB_PASSWORD=[masked]"),
        (r#"{"password": "hunter"}"#, r#"{"password": "[masked]"}"#),
        (r#"{"accessToken":"q8w7e6r5t4"}"#, r#"{"accessToken":"[masked]"}"#),
        (r#""{\"token\": \"q8w7e6r5t4\"}""#, r#""{\"token\": \"[masked]\"}""#),
        ("api_key: 'q8w7e6r5t4y3'", "api_key: '[masked]'"),
        ("aws_secret_access_key = wJalrXUtnFEMIK7MDENGbPxRfiCY", "aws_secret_access_key = [masked]"),
        ("postgres://admin:s3cr3t@db:5432/app", "postgres://admin:[masked]@db:5432/app"),
        ("Authorization: Bearer abcDEF123456ghiJKL789", "Authorization: Bearer [masked]"),
        ("WIFI:T:WPA;S:home;P:tractor blue;;", "WIFI:T:WPA;S:home;P:[masked];;"),
        ("https://a.example/invite?code=Zx9kQ2mN8pL4rT6v", "https://a.example/invite?code=[masked]"),
        ("new Ably.Realtime('aB3dE5.gH7jK9:mN1pQ3sT5vW7yZ9b')", "new Ably.Realtime('[masked]')"),
        ("apiKey:\n  aB3dE5gH7jK9mN1pQ3sT5vW7\n", "apiKey:\n  [masked]\n"),
        ("curl -u aB3dE5.gH7jK9mN1pQ3sT5 https://a.example", "curl -u [masked] https://a.example"),
    ];
    for (text, masked) in cases {
        assert_eq!(redacted(text), masked);
    }
}

#[test]
fn harmless_text_stays() {
    let image = "iVBORw0KGgoAAAANSUhEUgAAAAUAAAAFCAYAAACNbyblAAAAHElEQVQI12P4".repeat(8);
    for text in [
        "commit 3cd3017342b8e4e80f39a8c6228297584c8f20f7",
        "sha512-wJalrXUtnFEMIK7MDENGbPxRfiCYEXAMPLEKEYaaaaaaaaaa==",
        "id 550e8400-e29b-41d4-a716-446655440000",
        image.as_str(),
        "max_tokens: 4096, tokens=12345, token: string, tokenizer = o200k_base",
        "const token = await getToken(); let password = input.value;",
        "token = self.tokens[i]; secret: process.env.SECRET2",
        "password: \"the user must choose one\", password = os.environ[\"DB\"]",
        "fn login(password: &str, api_key: Option<String>)",
        "API_KEY=$OPENAI_KEY PASSWORD=${PASS} token=<your-token-1> url http://user:${PW}@host",
        "use app::auth::password::hash_v2;",
        "sk-learn-pipelines-and-transformers-in-production",
        "http://localhost:8080/path and https://example.com/a:b@c",
    ] {
        assert_eq!(redacted(text), text);
    }
}

#[test]
fn only_the_one_secret_of_a_session_is_masked() {
    let file =
        std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../../demo/session.jsonl")).unwrap();
    let mut masked = Vec::new();
    for line in file.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let before = Message::parse(&entry["message"].to_string());
        let after = redacted_message(before.clone()).readable();
        let changed = |(old, new): (&str, &str)| (old != new).then(|| new.to_owned());
        masked.extend(before.readable().lines().zip(after.lines()).filter_map(changed));
    }
    assert_eq!(masked, ["PAYMENTS_TOKEN=[masked]"]);
}

#[test]
fn all_parts_of_a_message_are_masked_including_arguments() {
    let message = Message::parse(
        r#"{"role":"assistant","content":[{"type":"text","text":"DB_PASSWORD=hunter2x"},
            {"type":"toolCall","id":"1","name":"http","arguments":{"token":"q8w7e6r5t4","path":"a.rs","max_tokens":12345678}}]}"#,
    );
    let shown = redacted_message(message).for_summary(3_000, "m-1");
    assert!(shown.contains("DB_PASSWORD=[masked]") && shown.contains(r#""token":"[masked]""#), "{shown}");
    assert!(shown.contains("a.rs") && shown.contains("12345678"), "{shown}");
}

/// The patterns and keywords that do not compile or are not understood.
fn broken_in(rules: &Rules) -> Vec<&str> {
    let finder = rules.finder.is_none().then_some("the keywords");
    let rules = rules.rules.iter().filter(|rule| rule.regex().is_none() || rule.check == Condition::Unknown);
    rules.map(|rule| rule.pattern.as_str()).chain(finder).collect()
}

#[test]
fn every_rule_compiles() {
    assert_eq!(broken_in(&RULES), [""; 0]);
}

#[test]
fn a_broken_rule_masks_the_rest_of_its_line_and_broken_keywords_mask_all() {
    let broken = Rules::parse("acme key\tacme_\t3\tacme_(");
    assert_eq!(broken_in(&broken), ["^(?:acme_()"]);
    assert_eq!(broken.redacted("use acme_1 or 2\nnext"), "use [masked: acme key]\nnext");
    // A missing column or an unknown check masks as if the check passed.
    assert_eq!(Rules::parse("acme key\tacme_").redacted("use acme_1"), "use [masked: acme key]");
    assert_eq!(Rules::parse("-\tacme\tpasword\tacme_[0-9]").redacted("acme_1 is"), "[masked] is");
    let mut broken = Rules::parse("");
    broken.finder = None;
    assert_eq!(broken.redacted("anything"), "[masked]");
}

#[test]
fn a_masked_text_stays_as_it_is() {
    let text = "DB_PASSWORD=hunter2x curl -u ci:hunter2x postgres://a:hunter2x@db/x Bearer q8w7e6r5t4y3u2i1";
    let once = redacted(text);
    assert_eq!(once.matches("[masked]").count(), 4, "{once}");
    assert_eq!(redacted(&once), once);
}

#[test]
fn a_key_keeps_its_name_even_if_its_position_identifies_it() {
    let token = key(&["ghp_", "aB3dE5gH7jK9mN1pQ3sT5vW7yZ9bC1eF3hJ5"]);
    let text = format!(r"GITHUB_TOKEN={token} and a\n{token}");
    assert_eq!(redacted(&text), r"GITHUB_TOKEN=[masked: github token] and a\n[masked: github token]");
}

#[test]
fn long_values_and_hostile_texts_are_masked_in_time() {
    let long = "a1".repeat(100_000);
    assert_eq!(redacted(&format!("token={long} end")), "token=[masked] end");
    assert_eq!(redacted(&format!("token=\"{long}\" end")), "token=\"[masked]\" end");
    // If each keyword searched to the end of the text, these would take minutes.
    for part in [
        "password=", "password=\"", "://a:", "curl -u ", "-----BEGIN PRIVATE KEY-----", "--", "mnemonic: a",
        "ä:AA",
    ] {
        let text = part.repeat(300_000 / part.len());
        let _ = redacted(&text);
    }
}

const LOWER: &str = "abcdefghijklmnopqrstuvwxyz";
const UPPER: &str = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const DIGITS: &str = "0123456789";
const WORDS: [&str; 8] = ["abandon", "ability", "cactus", "gallery", "lunar", "oxygen", "ribbon", "zebra"];

/// Random, but the same in each run.
struct Dice(u64);

impl Dice {
    fn new(seed: &str) -> Self {
        Self(
            seed.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
                (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            }),
        )
    }

    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 16).unwrap() % end
    }

    fn some(&mut self, alphabet: &str, count: usize) -> String {
        (0..count).map(|_| char::from(alphabet.as_bytes()[self.below(alphabet.len())])).collect()
    }

    /// The text for `‹kind›`.
    fn made(&mut self, place: &str) -> String {
        let (kind, rest) = place.split_at(1);
        let count = || rest.parse().unwrap_or_else(|_| panic!("‹{place}›"));
        let alphabet = match kind {
            "=" => return rest.to_owned(),
            "U" => return [8, 4, 4, 4, 12].map(|count| self.some("0123456789abcdef", count)).join("-"),
            "W" => return (0..count()).map(|_| WORDS[self.below(WORDS.len())]).collect::<Vec<_>>().join(" "),
            "a" => [LOWER, DIGITS].concat(),
            "A" => [UPPER, DIGITS].concat(),
            "m" => [LOWER, UPPER, DIGITS].concat(),
            "x" => "0123456789abcdef".to_owned(),
            "X" => "0123456789ABCDEF".to_owned(),
            "d" => DIGITS.to_owned(),
            "l" => LOWER.to_owned(),
            "b" => [LOWER, UPPER, DIGITS, "+/"].concat(),
            "u" => [LOWER, UPPER, DIGITS, "-_"].concat(),
            "S" => [UPPER, "234567"].concat(),
            "Q" => "QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L".to_owned(),
            _ => panic!("‹{place}›"),
        };
        self.some(&alphabet, count())
    }
}

/// A template filled in.
fn filled(template: &str) -> String {
    let mut dice = Dice::new(template);
    let mut parts = template.split('‹');
    let first = parts.next().unwrap().to_owned();
    let filled = parts.fold(first, |out, part| {
        let (place, rest) = part.split_once('›').unwrap();
        out + &dice.made(place) + rest
    });
    filled.replace('⏎', "\n")
}

/// A line and the secret in it.
struct Secret {
    vendor: &'static str,
    before: String,
    secret: String,
    after: String,
}

impl Secret {
    fn parse(line: &'static str) -> Self {
        let (vendor, template) = line.split_once('\t').unwrap();
        let text = filled(template);
        let (before, rest) = text.split_once('«').unwrap();
        let (secret, after) = rest.split_once('»').unwrap();
        let [before, secret, after] = [before, secret, after].map(str::to_owned);
        Self { vendor, before, secret, after }
    }

    fn text(&self) -> String {
        [self.before.as_str(), &self.secret, &self.after].concat()
    }

    /// Whether no ten bytes of it are left.
    fn is_hidden(&self) -> bool {
        let masked = redacted(&self.text());
        !self.secret.as_bytes().chunks(10).any(|part| {
            let is_whole = part.len() == 10 || self.secret.len() < 10;
            is_whole && masked.as_bytes().windows(part.len()).any(|window| window == part)
        })
    }

    /// Whether the text around it is unchanged.
    fn is_only(&self) -> bool {
        let masked = redacted(&self.text());
        masked.starts_with(&self.before) && masked.ends_with(&self.after)
    }
}

struct Half {
    secrets: Vec<Secret>,
    harmless: Vec<String>,
}

macro_rules! half {
    ($name:literal) => {
        Half {
            secrets: include_str!(concat!("labelled/secrets-", $name, ".txt"))
                .lines()
                .map(Secret::parse)
                .collect(),
            harmless: include_str!(concat!("labelled/harmless-", $name, ".txt"))
                .lines()
                .map(filled)
                .collect(),
        }
    };
}

struct Scores {
    recall: f64,
    precision: f64,
    /// The share of masked secrets whose line is otherwise unchanged.
    exact: f64,
}

impl Half {
    fn missed(&self) -> impl Iterator<Item = &Secret> {
        self.secrets.iter().filter(|secret| !secret.is_hidden())
    }

    fn alarms(&self) -> impl Iterator<Item = &String> {
        self.harmless.iter().filter(|text| redacted(text) != **text)
    }

    fn scores(&self) -> Scores {
        let share = |part: usize, whole: usize| f64::from(u32::try_from(part).unwrap()) / whole as f64;
        let found = self.secrets.len() - self.missed().count();
        let exact = self.secrets.iter().filter(|secret| secret.is_hidden() && secret.is_only()).count();
        Scores {
            recall: share(found, self.secrets.len()),
            precision: share(found, found + self.alarms().count()),
            exact: share(exact, found),
        }
    }
}

/// Checks that at least `least` of the secrets are masked, and little else.
fn assert_scores(name: &str, half: &Half, least: f64) {
    let Scores { recall, precision, exact } = half.scores();
    let summary = format!("{name}: recall {recall:.4}, precision {precision:.4}, exact {exact:.4}");
    writeln!(std::io::stderr(), "{summary}").unwrap();
    assert!(recall >= least && precision >= 0.97 && exact >= 0.95, "{summary}");
}

#[test]
fn nearly_all_secrets_of_the_seen_half_are_masked_and_little_else() {
    let half = half!("seen");
    assert_scores("seen", &half, 0.97);
}

#[test]
fn nearly_all_secrets_of_the_unseen_half_are_masked_and_little_else() {
    // Prints no line: seeing one would spoil the unseen half.
    assert_scores("unseen", &half!("unseen"), 0.98);
}

#[test]
fn most_secrets_of_the_later_halves_are_masked_and_little_else() {
    assert_scores("later seen", &half!("later-seen"), 0.98);
    assert_scores("later unseen", &half!("later-unseen"), 0.9);
}

#[test]
fn nearly_all_secrets_of_the_third_halves_are_masked_and_little_else() {
    assert_scores("third seen", &half!("third-seen"), 0.98);
    assert_scores("third unseen", &half!("third-unseen"), 0.97);
}

#[test]
fn there_are_many_labeled_lines_of_many_vendors() {
    let (seen, unseen) = (half!("seen"), half!("unseen"));
    for half in [&seen, &unseen] {
        assert!(half.secrets.len() >= 150 && half.harmless.len() >= 150);
    }
    let all = seen.secrets.iter().chain(&unseen.secrets);
    let vendors: HashSet<&str> = all.map(|secret| secret.vendor).collect();
    assert!(vendors.len() >= 80, "{}", vendors.len());
}

/// `cargo test --release --lib -- --ignored how_fast --nocapture` prints megabytes per second of CPU time for
/// the sources and the documents. CPU time excludes other load on the machine.
#[test]
#[ignore = "a measurement"]
fn how_fast_ordinary_text_is_read() {
    let text = [
        include_str!("rules.rs"),
        include_str!("../../../../docs/tools.md"),
        include_str!("../../../../index.js"),
    ];
    let text = text.concat();
    // Compiles the rules that the text triggers.
    let _ = redacted(&text);
    let text = text.repeat(1_000);
    let start = core_seconds();
    let masked = redacted(&text);
    let rate = text.len() as f64 / 1e6 / (core_seconds() - start);
    writeln!(std::io::stderr(), "{rate:.0} MB/s, {} of {} bytes", masked.len(), text.len()).unwrap();
}

/// This thread's CPU time, as Linux counts it.
fn core_seconds() -> f64 {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    counted.split(' ').next().unwrap().parse::<f64>().unwrap() / 1e9
}
