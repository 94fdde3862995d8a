//! Which calls to a server run at once. A server on this machine or in the local network usually answers one question
//! after the other: calls that wait there would use up their time limits, so they wait here.

use std::net::IpAddr;
use std::sync::Mutex;

use reqwest::Url;
use tokio::sync::{Semaphore, SemaphorePermit};
use tokio::time::Instant;

use lcm_model::locks::lock;

/// More calls than are ever made at once.
const ALL: u32 = 1_024;

/// The calls to one server.
pub(super) struct Server {
    is_near: bool,
    slots: Semaphore,
    /// When it last answered.
    answered: Mutex<Option<Instant>>,
}

impl Server {
    pub(super) fn at(url: &str) -> Self {
        Self { is_near: is_near(url), slots: Semaphore::new(ALL as usize), answered: Mutex::default() }
    }

    /// Waits until a call may be made, and keeps other calls waiting if it is to be `alone`. `None` never happens,
    /// since a server never closes.
    pub(super) async fn slot(&self, alone: bool) -> Option<SemaphorePermit<'_>> {
        self.slots.acquire_many(if alone || self.is_near { ALL } else { 1 }).await.ok()
    }

    /// Whether a call that began then had to share the server with others, which it answered.
    pub(super) fn was_shared(&self, since: Instant) -> bool {
        lock(&self.answered).is_some_and(|answered| answered > since)
    }

    pub(super) fn answered(&self) {
        *lock(&self.answered) = Some(Instant::now());
    }
}

/// Whether an address is this machine's or in a private network.
fn is_near(url: &str) -> bool {
    let url = Url::parse(url);
    let host = url.as_ref().ok().and_then(Url::host_str).unwrap_or_default();
    match host.trim_matches(['[', ']']).parse() {
        Ok(IpAddr::V4(v4)) => v4.is_loopback() || v4.is_private(),
        Ok(IpAddr::V6(v6)) => v6.is_loopback(),
        Err(_) => host == "localhost" || host.ends_with(".local") || host.ends_with(".localhost"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_servers_are_known_by_their_addresses() {
        for near in [
            "http://localhost:11434/v1", "http://LOCALHOST", "http://127.0.0.1:8080", "http://127.1.2.3",
            "http://[::1]:1/v1", "http://10.0.0.7/v1", "http://172.16.0.1", "http://172.31.255.1",
            "http://192.168.1.20:1234", "https://gpu.local/v1", "http://[::1]",
            "http://me:key@localhost:1/v1?a=@b",
        ] {
            assert!(is_near(near), "{near}");
        }
        for far in [
            "https://api.anthropic.com", "http://172.32.0.1", "http://11.0.0.1",
            "https://localhost.example.com", "https://local", "", "x",
        ] {
            assert!(!is_near(far), "{far}");
        }
    }
}
