//! Pi's own model call as a [`Model`]: the question goes to JavaScript, the answer comes back as a promise.

use std::future::Future;
use std::pin::Pin;

use napi::Status;
use napi::bindgen_prelude::Promise;
use napi::threadsafe_function::ThreadsafeFunction;

use crate::llm::{Answer, Failure, Model, Request, read_reply};

/// A function of JavaScript's that gets a request and promises a message, both as JSON. Weak: it does not keep Pi alive.
pub(super) type Ask = ThreadsafeFunction<String, Promise<String>, String, Status, false, true>;

/// The model behind such a function.
pub(super) struct HostModel {
    ask: Ask,
}

impl HostModel {
    pub(super) fn new(ask: Ask) -> Self {
        Self { ask }
    }
}

impl Model for HostModel {
    fn ask(&self, request: Request) -> Pin<Box<dyn Future<Output = Answer> + Send + '_>> {
        Box::pin(async move {
            let request = serde_json::to_string(&request).map_err(|e| Failure::unreachable(e.to_string()))?;
            let failed = |error: napi::Error| Failure::unreachable(error.reason.clone());
            // A callback that throws before it promises anything must not become an uncaught exception in Pi.
            let promise = self.ask.call_async_catch(request).await.map_err(failed)?;
            read_reply(&promise.await.map_err(failed)?)
        })
    }
}
