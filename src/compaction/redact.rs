//! Keys, tokens and passwords are masked in what a summariser is shown. The store keeps every byte, and the session's own
//! model has seen them; but a summary may be written by another provider, and nobody needs a key in a summary.
//!
//! Known shapes of keys are masked wherever they stand; values that are assigned to a name such as `password` only where
//! they look like a value and not like code. Hashes, UUIDs and base64 without such a name stay as they are.

use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use crate::model::{Message, Part};

/// Keys with a shape of their own. A group's name says what it is. Each begins with letters that are looked for fast; the
/// text may be long.
const KEYS: &str = concat!(
    r"(?P<private_key>-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----",
    // To the end, or where that was cut off, as far as it looks like a key.
    r"(?:[A-Za-z0-9+/= \r\n\t\\]|(?:Proc-Type|DEK-Info|Version|Comment): [^\n]*\n){40,}",
    r"(?:-----END (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----)?)",
    r"|(?-u:\b)(?:(?P<aws_key>(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}(?-u:\b))",
    r"|(?P<github_token>gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{22,})",
    r"|(?P<gitlab_token>gl(?:pat|oas|dt|rt|cbt|ptt|ft|imt|agent|soat|ffct)-[A-Za-z0-9_.-]{20,})",
    r"|(?P<slack_token>xox[abeoprs]-[A-Za-z0-9-]{10,}|xapp-[0-9]-[A-Za-z0-9-]{10,}",
    r"|hooks\.slack\.com/services/T[A-Z0-9]+/B[A-Z0-9]+/[A-Za-z0-9]+)",
    r"|(?P<stripe_key>[sr]k_(?:live|test)_[A-Za-z0-9]{16,}|whsec_[A-Za-z0-9+/=]{24,})",
    r"|(?P<anthropic_key>sk-ant-[A-Za-z0-9_-]{20,})",
    r"|(?P<openai_key>sk-[A-Za-z0-9_-]{20,})",
    r"|(?P<google_key>AIza[0-9A-Za-z_-]{35}|ya29\.[0-9A-Za-z_-]{20,}|GOCSPX-[A-Za-z0-9_-]{20,})",
    r"|(?P<access_token>npm_[A-Za-z0-9]{36}|pypi-AgEI[A-Za-z0-9_-]{50,}|hf_[A-Za-z0-9]{30,}",
    r"|SG\.[A-Za-z0-9_-]{22}\.[A-Za-z0-9_-]{43})",
    r"|(?P<jwt>eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}))",
);

/// What stands before a value that is secret because of where it stands, and the value: of a URL, of a header, of a name.
const PLACES: &str = concat!(
    r#"(?P<before>://[^ \t\r\n:/@"'<>]*:)(?P<url>[^ \t\r\n:/@"'<>]{3,})@"#,
    r#"|(?P<bearer>(?i-u:bearer +|authorization["']?[ ]*[:=][ ]*["']?(?:basic|token) +))(?P<bearer_value>[A-Za-z0-9._~+/-]{16,}=*)"#,
    r"|(?P<name>(?i-u:password|passwd|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key",
    r#"|auth[_-]?key|credentials?))(?P<sign>\\?["']? ?(?:=>|:=|:|=) ?)"#,
    r#"(?:\\"(?P<escaped>[^"\\\n]{4,})\\"|"(?P<double>[^"\n]{4,})"|'(?P<single>[^'\n]{4,})'"#,
    r#"|(?P<bare>[^ \t\r\n"'`,;&|<>()\[\]{}\\]{6,}))"#,
);

static KEY: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(KEYS).ok());
static PLACE: LazyLock<Option<Regex>> = LazyLock::new(|| Regex::new(PLACES).ok());

/// `text` with every secret that can be told masked, as `[masked: aws key]`.
pub(super) fn redacted(text: &str) -> String {
    let (Some(key), Some(place)) = (KEY.as_ref(), PLACE.as_ref()) else { return text.to_owned() };
    let masked = key.replace_all(text, |found: &Captures<'_>| masked_key(key, found));
    place.replace_all(&masked, masked_value).into_owned()
}

/// The message as a summariser may read it.
pub(super) fn redacted_message(mut message: Message) -> Message {
    for part in &mut message.parts {
        match part {
            Part::Text(text) | Part::Thinking(text) => *text = redacted(text),
            Part::ToolCall { arguments, .. } => redact_value(arguments),
            Part::Image { .. } => {}
        }
    }
    message
}

/// In arguments a name and its value stand apart.
fn redact_value(value: &mut Value) {
    match value {
        Value::String(text) => *text = redacted(text),
        Value::Array(items) => items.iter_mut().for_each(redact_value),
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                match field {
                    Value::String(text) => {
                        let line = format!("\"{name}\": \"{text}\"");
                        let hidden = !text.contains(['"', '\n']) && redacted(&line) != line;
                        *text = if hidden { "[masked]".to_owned() } else { redacted(text) };
                    }
                    other => redact_value(other),
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

fn masked_key(key: &Regex, found: &Captures<'_>) -> String {
    let whole = &found[0];
    let kind = key.capture_names().flatten().find(|name| found.name(name).is_some()).unwrap_or("secret");
    // Words with hyphens may begin with `sk-`; keys are random.
    if kind == "openai_key" && !is_random(whole) {
        return whole.to_owned();
    }
    format!("[masked: {}]", kind.replace('_', " "))
}

fn masked_value(found: &Captures<'_>) -> String {
    let whole = &found[0];
    let group = |name: &str| found.name(name).map(|group| group.as_str());
    if let (Some(before), Some(value)) = (group("before"), group("url")) {
        return if is_placeholder(value) { whole.to_owned() } else { format!("{before}[masked]@") };
    }
    if let Some(before) = group("bearer") {
        let value = group("bearer_value").unwrap_or_default();
        return if is_random(value) { format!("{before}[masked]") } else { whole.to_owned() };
    }
    let (Some(name), Some(sign)) = (group("name"), group("sign")) else { return whole.to_owned() };
    let quoted = ["escaped", "double", "single"].into_iter().find_map(group);
    let Some(value) = quoted.or_else(|| group("bare")) else { return whole.to_owned() };
    let is_secret = match quoted {
        Some(value) => is_quoted_secret(name, value),
        None => is_bare_secret(name, sign, value),
    };
    if !is_secret || is_placeholder(value) {
        return whole.to_owned();
    }
    let start = found.get(0).map_or(0, |whole| whole.start());
    let at = ["escaped", "double", "single", "bare"].into_iter().find_map(|name| found.name(name));
    let range = at.map_or(0..0, |value| value.start() - start..value.end() - start);
    format!("{}[masked]{}", &whole[..range.start], &whole[range.end..])
}

/// Is the value between quotation marks one, and not a sentence, a path or the name of something?
fn is_quoted_secret(name: &str, value: &str) -> bool {
    !value.contains(char::is_whitespace) && (is_password(name) || (value.len() >= 8 && is_mixed(value)))
}

/// Is the value without quotation marks one, and not code?
fn is_bare_secret(name: &str, sign: &str, value: &str) -> bool {
    let is_code = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.' | '$' | ':' | '?' | '!' | '*');
    let path =
        value.contains('.') && value.chars().all(is_code) && !value.starts_with(|c: char| c.is_ascii_digit());
    if path || value.starts_with(['/', '.', '~']) {
        return false;
    }
    // `PASSWORD=value`, as environments and shells have it.
    let assigned = sign == "=" && is_password(name) && !value.to_lowercase().contains("pass");
    assigned || (value.len() >= 8 && is_mixed(value))
}

fn is_password(name: &str) -> bool {
    let name = name.to_lowercase();
    ["password", "passwd", "passphrase", "pwd"].iter().any(|word| name.ends_with(word))
}

/// Letters and digits: neither a word nor a number.
fn is_mixed(value: &str) -> bool {
    value.chars().any(|c| c.is_ascii_digit()) && value.chars().any(char::is_alphabetic)
}

fn is_random(value: &str) -> bool {
    is_mixed(value) && value.chars().any(char::is_uppercase) && value.chars().any(char::is_lowercase)
}

/// What stands for a value that is elsewhere, or was masked already.
fn is_placeholder(value: &str) -> bool {
    let low = value.to_lowercase();
    value.starts_with(['$', '<', '{', '%', '[', '*', '@'])
        || value.contains("${")
        || value.contains("{{")
        || ["your", "example", "xxx", "...", "changeme", "placeholder", "masked", "redacted"]
            .iter()
            .any(|word| low.contains(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Keys are put together here, so that no scanner takes this file for a leak.
    fn key(parts: &[&str]) -> String {
        parts.concat()
    }

    #[test]
    fn keys_of_known_shapes_are_masked_and_what_stands_around_them_is_not() {
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
            (key(&["npm_", body]), "access token"),
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
            // Cut off in its middle.
            (key(&["-----BEGIN ", "PRIVATE KEY-----\n", &body.repeat(4)]), "private key"),
        ];
        for (secret, kind) in cases {
            let text = format!("before ({secret})\nafter");
            assert_eq!(redacted(&text), format!("before ([masked: {kind}])\nafter"));
        }
    }

    #[test]
    fn what_is_assigned_to_a_telling_name_is_masked() {
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
        ];
        for (text, masked) in cases {
            assert_eq!(redacted(text), masked);
        }
    }

    #[test]
    fn what_is_no_secret_stays() {
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
            "sk-learn-pipelines-and-transformers-in-production",
            "http://localhost:8080/path and https://example.com/a:b@c",
        ] {
            assert_eq!(redacted(text), text);
        }
    }

    #[test]
    fn of_a_whole_session_only_its_one_secret_is_masked() {
        let file =
            std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/demo/session.jsonl")).unwrap();
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
    fn a_messages_parts_are_masked_arguments_too() {
        let message = Message::parse(
            r#"{"role":"assistant","content":[{"type":"text","text":"DB_PASSWORD=hunter2x"},
                {"type":"toolCall","id":"1","name":"http","arguments":{"token":"q8w7e6r5t4","path":"a.rs","max_tokens":12345678}}]}"#,
        );
        let shown = redacted_message(message).for_summary(3_000, "m-1");
        assert!(shown.contains("DB_PASSWORD=[masked]") && shown.contains(r#""token":"[masked]""#), "{shown}");
        assert!(shown.contains("a.rs") && shown.contains("12345678"), "{shown}");
    }
}
