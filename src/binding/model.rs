//! Pi as the [`Host`] of the models: questions go to JavaScript, answers come back as promises.

use napi::Status;
use napi::bindgen_prelude::Promise;
use napi::threadsafe_function::ThreadsafeFunction;
use serde_json::{Value, json};

use lcm_compaction::llm::{Answer, Facts, Failure, Host, InSession, ModelRequest, Pending, read_reply};
use lcm_model::read_json;

/// A JavaScript function that takes a question and promises an answer, both as JSON. Weak: it does not keep
/// Pi alive.
pub(super) type CallPi = ThreadsafeFunction<String, Promise<String>, String, Status, false, true>;

/// A host that calls such a function.
pub(super) struct Pi {
    pub call: CallPi,
}

impl Pi {
    async fn call(&self, question: Value) -> Result<String, String> {
        let failed = |error: napi::Error| error.reason.clone();
        // A callback that throws before it returns a promise must not become an uncaught exception in Pi.
        let promise = self.call.call_async_catch(question.to_string()).await.map_err(failed)?;
        promise.await.map_err(failed)
    }
}

impl Host for Pi {
    fn models(&self) -> Pending<'_, Result<Vec<Option<String>>, String>> {
        Box::pin(async move {
            let json = self.call(json!({"kind": "models"})).await?;
            let models = read_json(&json).and_then(serde_json::from_value);
            models.map_err(|_| "Pi's list of them can't be read".into())
        })
    }

    fn resolve<'a>(&'a self, model: Option<&'a str>) -> Pending<'a, Result<Facts, String>> {
        Box::pin(async move {
            let json = self.call(json!({"kind": "resolve", "model": model})).await?;
            let found = read_json(&json).map_err(|error| error.to_string())?;
            if let Some(reason) = found["error"].as_str() {
                return Err(reason.to_owned());
            }
            serde_json::from_value(found).map_err(|_| "Pi's description of it can't be read".into())
        })
    }

    fn ask<'a>(&'a self, model: Option<&'a str>, request: ModelRequest) -> Pending<'a, Answer> {
        Box::pin(async move {
            let question = json!({"kind": "ask", "model": model, "request": request});
            read_reply(&self.call(question).await.map_err(|reason| Failure::said(&reason))?)
        })
    }

    fn cached<'a>(&'a self, question: &'a InSession) -> Pending<'a, Option<usize>> {
        Box::pin(async move {
            let json = self.call(json!({"kind": "cached", "model": null, "request": question})).await.ok()?;
            serde_json::from_str(&json).ok()?
        })
    }
}
