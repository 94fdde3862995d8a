//! When the session's own model is asked within the session, for the tokens that its provider has cached.

use super::*;

/// A question of about 2,000 tokens, or about 50 within the session. Answers to it contain a `t`.
fn question_in_session(mark: &str) -> ModelRequest {
    let prompt = "Which part of the above is it?".to_owned();
    let (first, last) = ("e1".to_owned(), "e9".to_owned());
    let in_session = Some(InSession { prompt, first, last, effort: None, mark: mark.to_owned() });
    ModelRequest { in_session, ..request(&"long ago ".repeat(1_000)) }
}

/// The log of `times` questions to the session's own model with this many tokens cached; it answers `t`.
async fn asked_in_session(cached: Option<usize>, cost: Value, mark: &str, times: usize) -> Vec<String> {
    let model = move |name: &str| {
        let mut facts = facts(name);
        facts["model"]["cost"] = cost.clone();
        Some(facts)
    };
    let script = Arc::new(Script::with_cached(cached, model, reply).naming(&[None]));
    let chain = chain(&script);
    for _ in 0..times {
        assert_eq!(chain.ask(question_in_session(mark)).await.unwrap().text, "t");
    }
    script.log().split_off(1)
}

fn cost(input: f64, read: f64) -> Value {
    json!({"input": input, "output": 15.0, "cacheRead": read, "cacheWrite": 0.0})
}

#[tokio::test]
async fn the_sessions_model_is_asked_within_the_session_if_cheaper() {
    for (cached, cost, within) in [
        (Some(5_000), cost(3.0, 0.3), true),
        (Some(5_000), cost(0.0, 0.0), true),
        (Some(5_000), json!({"input": "?"}), true),
        // Room for most of the answer that the question allows.
        (Some(9_600), cost(3.0, 0.03), true),
        (None, cost(3.0, 0.3), false),
        // As expensive as the question without a cache; no room for the answer.
        (Some(8_000), cost(3.0, 1.5), false),
        (Some(5_000), cost(3.0, 0.0), false),
        (Some(9_800), cost(3.0, 0.03), false),
    ] {
        let log = asked_in_session(cached, cost.clone(), "t", 1).await;
        assert_eq!(log, [if within { "ask in session" } else { "ask session" }], "{cached:?} {cost}");
    }
}

#[tokio::test]
async fn a_model_that_continues_its_work_is_asked_outside_the_session() {
    let log = asked_in_session(Some(5_000), cost(3.0, 0.3), "Expand", 3).await;
    assert_eq!(log, ["ask in session", "ask session", "ask in session", "ask session", "ask session"]);
}

#[tokio::test]
async fn without_cached_tokens_nothing_is_asked_within_the_session() {
    // The script's answers report a prompt of one token, none of it from the cache.
    let log = asked_in_session(Some(5_000), cost(3.0, 0.3), "t", 3).await;
    assert_eq!(log, ["ask in session", "ask in session", "ask session"]);
}

#[tokio::test(start_paused = true)]
async fn a_provider_in_trouble_is_not_asked_outside_the_session_at_once() {
    for (status, log) in [
        (400, ["resolve session", "ask in session", "ask session"].as_slice()),
        (500, &["resolve session", "ask in session"]),
    ] {
        let fail = move |_: Option<&str>| Err(Failure::answered_with(status, None, "no"));
        let script = Script::with_cached(Some(5_000), |name| Some(facts(name)), fail);
        let script = Arc::new(script.naming(&[None]));
        let settings = Settings { model_retries: 0, ..settings() };
        let chain = chain_with(&script, &settings, Arc::new(ProviderState::new(&settings)));
        chain.ask(question_in_session("t")).await.unwrap_err();
        assert_eq!(script.log(), log, "{status}");
    }
}

#[tokio::test]
async fn only_the_sessions_own_model_is_asked_within_the_session() {
    let script = Arc::new(Script::with_cached(Some(5_000), |name| Some(facts(name)), reply));
    chain(&script).ask(question_in_session("t")).await.unwrap();
    assert_eq!(script.log(), ["resolve a/one", "ask a/one"]);
}
