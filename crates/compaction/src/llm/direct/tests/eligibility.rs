//! Which models are plain.

use reqwest::header::HeaderMap;
use serde_json::{Value, json};

use super::super::eligibility::{Plan, plan};
use super::{facts, glm, haiku, keyed, with};

fn planned(json: Value) -> Option<Plan> {
    plan(&facts(json), |_| None)
}

fn own(changes: Value) -> Value {
    keyed(with(with(glm(), json!({"provider": "own", "baseUrl": "https://models.example/v1"})), changes))
}

fn auth(model: Value, auth: Value) -> Value {
    json!({"model": model, "auth": with(json!({"ok": true, "apiKey": "sk-a1b2c3d4e5f6g7h8"}), auth)})
}

fn shown(headers: &HeaderMap) -> Vec<(&str, &str)> {
    let mut shown: Vec<_> =
        headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
    shown.sort_unstable();
    shown
}

const NAME: (&str, &str) = ("user-agent", concat!("pi-lossless-context/", env!("CARGO_PKG_VERSION")));

#[test]
fn the_models_for_summaries_are_plain() {
    let plan = planned(keyed(glm())).unwrap();
    assert_eq!(plan.url.as_str(), "https://api.cerebras.ai/v1/chat/completions");
    let json = "application/json";
    let bearer = ("authorization", "Bearer sk-a1b2c3d4e5f6g7h8");
    assert_eq!(shown(&plan.headers), [("accept", json), bearer, ("content-type", json), NAME]);

    let plan = planned(keyed(haiku())).unwrap();
    assert_eq!(plan.url.as_str(), "https://api.anthropic.com/v1/messages");
    let version = ("anthropic-version", "2023-06-01");
    let key = ("x-api-key", "sk-a1b2c3d4e5f6g7h8");
    assert_eq!(shown(&plan.headers), [("accept", json), version, ("content-type", json), NAME, key]);
    assert!(plan.headers["x-api-key"].is_sensitive());
}

#[test]
fn known_and_empty_fields_are_plain() {
    let plain = [
        own(json!({})),
        own(json!({"baseUrl": "http://127.0.0.1:8080/v1/"})),
        own(json!({"baseUrl": "http://[::1]:8080"})),
        own(
            json!({"reasoning": true, "compat": {"thinkingFormat": "openai", "maxTokensField": "max_tokens"}}),
        ),
        own(json!({"reasoning": false, "compat": {"thinkingFormat": "qwen"}})),
        own(
            json!({"compat": {"openRouterRouting": {}, "vllmPriority": null, "requiresToolResultName": true}}),
        ),
        own(json!({"samplingParams": {}, "somethingNew": null})),
        auth(glm(), json!({"env": {}, "headers": null, "baseUrl": null})),
        keyed(with(
            haiku(),
            json!({"compat": {"forceAdaptiveThinking": true, "supportsTemperature": false}}),
        )),
        keyed(with(
            haiku(),
            json!({"compat": {"supportsMidConvoEffort": false, "allowedFallbackModels": []}}),
        )),
        keyed(with(glm(), json!({"provider": "groq", "baseUrl": "https://api.groq.com/openai/v1"}))),
    ];
    for json in plain {
        assert!(planned(json.clone()).is_some(), "{json}");
    }
}

#[test]
fn anything_special_is_left_to_pi() {
    let special = [
        own(json!({"api": "openai-responses"})),
        own(json!({"api": "bedrock-converse-stream"})),
        own(json!({"id": ""})),
        own(json!({"baseUrl": ""})),
        own(json!({"baseUrl": "models.example/v1"})),
        own(json!({"baseUrl": "file:///v1"})),
        own(json!({"baseUrl": "https://user:word@models.example/v1"})),
        own(json!({"baseUrl": "https://models.example/v1?version=2"})),
        own(json!({"baseUrl": "https://models.example/{ACCOUNT}/v1"})),
        own(json!({"baseUrl": "https://bücher.example/v1"})),
        own(json!({"samplingParams": {"temperature": 0.2}})),
        own(json!({"somethingNew": true})),
        own(json!({"compat": {"supportsStore": "no"}})),
        own(json!({"compat": {"maxTokensField": "n_predict"}})),
        own(json!({"compat": {"vllmPriority": 1}})),
        own(json!({"compat": {"somethingNew": "a"}})),
        own(json!({"reasoning": true, "compat": {"thinkingFormat": "qwen"}})),
        own(json!({"compat": {"openRouterRouting": {"only": ["a"]}}})),
        own(json!({"headers": {"accept-encoding": "gzip"}})),
        own(json!({"headers": {"not a name": "a"}})),
        own(json!({"headers": {"x-note": "two\nlines"}})),
        keyed(with(haiku(), json!({"compat": {"supportsMidConvoEffort": true}}))),
        keyed(with(haiku(), json!({"compat": {"allowedFallbackModels": [{"model": "a"}]}}))),
        auth(haiku(), json!({"headers": {"Anthropic-Beta": "a-2026"}})),
        auth(haiku(), json!({"apiKey": "sk-ant-oat01-abc"})),
        auth(haiku(), json!({"apiKey": " "})),
        auth(haiku(), json!({"apiKey": null, "headers": {"authorization": "Bearer a"}})),
        auth(haiku(), json!({"ok": false})),
        auth(haiku(), json!({"env": {"ACCOUNT": "1"}})),
        with(keyed(haiku()), json!({"oauth": true})),
        with(keyed(haiku()), json!({"ownStream": true})),
    ];
    for json in special {
        assert!(planned(json.clone()).is_none(), "{json}");
    }
}

#[test]
fn an_environment_that_changes_requests_is_left_to_pi() {
    let under = |json: Value, name: &str, value: &str| {
        plan(&facts(json), |asked| (asked == name).then(|| value.to_owned())).is_some()
    };
    for name in ["OPENAI_ORG_ID", "ANTHROPIC_CUSTOM_HEADERS", "https_proxy", "NODE_EXTRA_CA_CERTS"] {
        assert!(!under(keyed(glm()), name, "a"), "{name}");
        assert!(under(keyed(haiku()), name, " "), "{name}");
    }
}

#[test]
fn the_users_headers_come_last_and_may_remove_ours() {
    let model = with(glm(), json!({"headers": {"X-Team": "model's", "user-agent": "theirs"}}));
    let headers = json!({"x-team": "the key's", "Authorization": null, "x-key": "k"});
    let plan =
        planned(auth(model, json!({"headers": headers, "baseUrl": "https://other.example/api/"}))).unwrap();
    assert_eq!(plan.url.as_str(), "https://other.example/api/chat/completions");
    let json = "application/json";
    let expected = [
        ("accept", json),
        ("content-type", json),
        ("user-agent", "theirs"),
        ("x-key", "k"),
        ("x-team", "the key's"),
    ];
    assert_eq!(shown(&plan.headers), expected);
}
