//! What redaction masks, what it leaves, and that a broken rule lets nothing pass.

use serde_json::Value;

use super::rules::{RULES, Rules};
use super::{redacted, redacted_message};
use crate::model::Message;

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
    let file = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/demo/session.jsonl")).unwrap();
    let mut masked = Vec::new();
    for line in file.lines() {
        let entry: Value = serde_json::from_str(line).unwrap();
        let before = Message::parse(&entry["message"].to_string());
        let after = redacted_message(before.clone()).readable();
        let changed = |(old, new): (&str, &str)| (old != new).then(|| new.to_owned());
        masked.extend(before.readable().lines().zip(after.lines()).filter_map(changed));
    }
    assert_eq!(masked, ["PEPPOL_TOKEN=[masked]"]);
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

#[test]
fn every_rule_compiles() {
    assert_eq!(RULES.broken(), [""; 0]);
}

#[test]
fn a_broken_rule_masks_the_rest_of_its_line_and_broken_keywords_mask_all() {
    let broken = Rules::parse("acme key\tacme_\t3\tacme_(");
    assert_eq!(broken.broken(), ["^(?:acme_()"]);
    assert_eq!(broken.redacted("use acme_1 or 2\nnext"), "use [masked: acme key]\nnext");
    // A missing column or an unknown check masks as if the check passed.
    assert_eq!(Rules::parse("acme key\tacme_").redacted("use acme_1"), "use [masked: acme key]");
    assert_eq!(Rules::parse("-\tacme\tpasword\tacme_[0-9]").redacted("acme_1 is"), "[masked] is");
    assert_eq!(Rules::without_keywords().redacted("anything"), "[masked]");
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
        "password=",
        "password=\"",
        "://a:",
        "curl -u ",
        "-----BEGIN PRIVATE KEY-----",
        "--",
        "mnemonic: a",
        "ä:AA",
    ] {
        let text = part.repeat(300_000 / part.len());
        let _ = redacted(&text);
    }
}
