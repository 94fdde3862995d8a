//! When a model is asked again because it thinks.

use super::*;

/// Asks `questions` of `a/one`, which gives these answers and then good ones. Returns how often it was asked for
/// each, and the last answer.
async fn asked(answers: Vec<Answer>, questions: usize) -> (Vec<usize>, Answer) {
    let rest = Mutex::new(answers.into_iter());
    let script = Script::new(
        |name| {
            let mut facts = facts(name);
            facts["model"]["reasoning"] = json!(true);
            facts["model"]["contextWindow"] = json!(400_000);
            facts["model"]["maxTokens"] = json!(100_000);
            Some(facts)
        },
        move |model| rest.lock().unwrap().next().unwrap_or_else(|| reply(model)),
    );
    let providers = Arc::new(ProviderState::new(&settings()));
    let mut calls = Vec::new();
    let mut last = reply(None);
    for _ in 0..questions {
        let chain = chain_with(&script, &settings(), Arc::clone(&providers));
        last = chain.ask(request("q")).await;
        calls.push(times(&script.log(), "ask a/one"));
    }
    (calls, last)
}

fn cut() -> Answer {
    let usage = Some(json!({"input": 2}));
    Err(Failure { was_thinking: true, usage, ..Failure::useless("") })
}

#[tokio::test]
async fn a_model_that_must_think_is_asked_again_and_from_then_on() {
    let refusal = || Err(Failure::said("400: it can't do without an effort"));
    assert_eq!(asked(vec![refusal()], 3).await.0, [2, 1, 1]);
    // The second time it knows no less than before.
    let (calls, last) = asked(vec![refusal(), refusal()], 1).await;
    assert_eq!((calls, last.unwrap().model.as_deref()), (vec![2], Some("b/two")));
}

#[tokio::test]
async fn an_answer_cut_off_by_thinking_gets_more_room_and_its_usage_counts() {
    let (calls, last) = asked(vec![cut(), cut()], 2).await;
    assert_eq!(calls, [3, 1]);
    assert_eq!(last.unwrap().usage, Some(json!({"input": 1})));
    let (calls, last) = asked(vec![cut()], 1).await;
    assert_eq!((calls, last.unwrap().usage), (vec![2], Some(json!({"input": 3}))));
    // There is an end to it.
    let (calls, last) = asked(vec![cut(), cut(), cut()], 1).await;
    assert_eq!((calls, last.unwrap_err().usage), (vec![3], Some(json!({"input": 6}))));
}

#[tokio::test]
async fn without_more_room_it_is_not_asked_again() {
    let script = Script::new(|name| Some(facts(name)), |_| cut());
    assert!(chain(&script).ask(request("q")).await.is_err());
    // One larger answer fits into what the model allows.
    assert_eq!(script.log(), ["resolve a/one", "ask a/one", "ask a/one"]);
}
