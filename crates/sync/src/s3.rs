//! A bucket of an object store that speaks S3's protocol, with the AWS tools' environment variables.
//!
//! `rusty-s3` signs; the requests are reqwest's. A hundred kilobytes of engine that way; the `object_store` crate, which
//! knows two more protocols, takes seven times as much.

use std::collections::HashMap;
use std::sync::OnceLock;
use std::time::Duration;

use reqwest::{Client, Method, Response, StatusCode, Url};
use rusty_s3::actions::ListObjectsV2;
use rusty_s3::{Bucket, Credentials, S3Action as _, UrlStyle};

use super::OVERLAP;
use super::pack::{LARGEST, PackName};
use lcm_model::error::{Error, Result};
use lcm_model::text::one_line;

/// What a bucket's address begins with.
pub(crate) const SCHEME: &str = "s3://";
/// How long a signed address is valid: a large pack may take a while.
const VALID: Duration = Duration::from_secs(3_600);
/// A server that takes longer to connect counts as unreachable.
const CONNECT: Duration = Duration::from_secs(10);
/// A server that is silent for longer, too.
const SILENT: Duration = Duration::from_secs(30);
/// The slowest upload that is waited for, bytes per second.
const SLOWEST: u64 = 10_000;
/// The pauses before a request is tried again.
const PAUSES: [Duration; 2] = [Duration::from_millis(300), Duration::from_secs(2)];
/// The most bytes of a list of a thousand names, or of an error.
const ANSWER: u64 = 16 * 1024 * 1024;

/// The packs of a project in a bucket.
pub(crate) struct S3 {
    bucket: Bucket,
    credentials: Credentials,
    /// What the names of the project's packs begin with, with a slash at the end.
    prefix: String,
    client: Client,
}

impl S3 {
    /// The packs of `project` at `s3://BUCKET/PREFIX`.
    ///
    /// # Errors
    /// When the address or the environment lacks something.
    pub fn of(address: &str, project: &str) -> Result<Self> {
        let variable = |name: &str| std::env::var(name).ok().filter(|value| !value.trim().is_empty());
        let first = |names: [&str; 2]| names.into_iter().find_map(variable);
        let place = address.trim_start_matches(SCHEME);
        let (bucket, prefix) = place.split_once('/').unwrap_or((place, ""));
        let wrong = |why: String| Error::invalid(format!("{address} can't be a sync target: {why}"));
        if bucket.is_empty() {
            return Err(wrong("it names no bucket: write s3://BUCKET/PREFIX".into()));
        }
        let credentials = Credentials::from_env().ok_or_else(|| {
            wrong("set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, as `aws configure export-credentials` prints them".into())
        })?;
        let region = first(["AWS_REGION", "AWS_DEFAULT_REGION"]).unwrap_or_else(|| "us-east-1".into());
        // Names with dots are in no certificate, and other servers mostly know no buckets as hosts.
        let (endpoint, style) = match first(["AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL"]) {
            Some(endpoint) => (endpoint, UrlStyle::Path),
            None if bucket.contains('.') => (format!("https://s3.{region}.amazonaws.com"), UrlStyle::Path),
            None => (format!("https://s3.{region}.amazonaws.com"), UrlStyle::VirtualHost),
        };
        let url: Url = endpoint.parse().map_err(|error| wrong(format!("AWS_ENDPOINT_URL: {error}")))?;
        let bucket = Bucket::new(url, style, bucket.to_owned(), region)
            .map_err(|error| wrong(format!("{error:?}")))?;
        let prefix = prefix.trim_matches('/');
        let prefix = if prefix.is_empty() { format!("{project}/") } else { format!("{prefix}/{project}/") };
        let client = client().ok_or_else(|| wrong("this system has no trusted certificates".into()))?;
        Ok(Self { bucket, credentials, prefix, client })
    }

    /// The names of all packs, of the machines in `read` only those that may be new: a request for the machines, and one or
    /// more for the packs of each.
    pub async fn list(&self, read: &HashMap<String, i64>) -> Result<Vec<PackName>> {
        let machines = self.names(&self.prefix, None, Some("/")).await?;
        let mut packs = Vec::new();
        for machine in machines {
            let after =
                machine.strip_prefix(&self.prefix).and_then(|name| read.get(name.trim_end_matches('/')));
            let after = after.map(|number| format!("{machine}{}", PackName::beginning(number - OVERLAP)));
            let names = self.names(&machine, after, None).await?;
            packs.extend(names.iter().filter_map(|name| PackName::parse(name.strip_prefix(&self.prefix)?)));
        }
        Ok(packs)
    }

    /// Everything whose name begins with `prefix`, after a name, or only up to the next `delimiter`.
    async fn names(
        &self,
        prefix: &str,
        after: Option<String>,
        delimiter: Option<&str>,
    ) -> Result<Vec<String>> {
        let (mut names, mut more) = (Vec::new(), None);
        loop {
            let mut action = self.bucket.list_objects_v2(Some(&self.credentials));
            action.with_prefix(prefix);
            after.iter().for_each(|after| action.with_start_after(after.as_str()));
            delimiter.iter().for_each(|delimiter| action.with_delimiter(*delimiter));
            if let Some(token) = more {
                action.with_continuation_token(token);
            }
            let answer = self.send(Method::GET, &action.sign(VALID), None).await?;
            let text = String::from_utf8_lossy(&self.body(answer, ANSWER).await?).into_owned();
            let page = ListObjectsV2::parse_response(&text)
                .map_err(|error| self.failed(&format!("its list can't be read: {error}")))?;
            names.extend(page.contents.into_iter().map(|object| object.key));
            names.extend(page.common_prefixes.into_iter().map(|folder| folder.prefix));
            more = page.next_continuation_token;
            if more.is_none() {
                return Ok(names);
            }
        }
    }

    /// A pack's bytes; `None` if it is gone.
    pub async fn get(&self, name: &PackName) -> Result<Option<Vec<u8>>> {
        let url = self.bucket.get_object(Some(&self.credentials), &self.key(name)).sign(VALID);
        match self.send(Method::GET, &url, None).await {
            Ok(answer) if answer.status() == StatusCode::NOT_FOUND => Ok(None),
            Ok(answer) => self.body(answer, LARGEST).await.map(Some),
            Err(error) => Err(error),
        }
    }

    /// Writes a pack, unless it is there.
    pub async fn put(&self, name: &PackName, bytes: Vec<u8>) -> Result<()> {
        let url = self.bucket.put_object(Some(&self.credentials), &self.key(name)).sign(VALID);
        self.send(Method::PUT, &url, Some(bytes)).await.map(drop)
    }

    /// Removes a pack.
    pub async fn remove(&self, name: &PackName) -> Result<()> {
        let url = self.bucket.delete_object(Some(&self.credentials), &self.key(name)).sign(VALID);
        self.send(Method::DELETE, &url, None).await.map(drop)
    }

    fn key(&self, name: &PackName) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Sends a request, again if the server or the connection failed. Any answer that is no error is one, and so are that
    /// a pack is not there, and that it is there already.
    async fn send(&self, method: Method, url: &Url, body: Option<Vec<u8>>) -> Result<Response> {
        let mut pauses = PAUSES.into_iter();
        loop {
            let mut request = self.client.request(method.clone(), url.clone());
            if let Some(body) = &body {
                request = request.header("if-none-match", "*").body(body.clone());
            }
            let size = body.as_ref().map_or(0, Vec::len) as u64;
            let limit = SILENT + Duration::from_secs(size / SLOWEST);
            let failure = match tokio::time::timeout(limit, request.send()).await {
                Err(_) => self.failed("it does not answer"),
                Ok(Ok(answer)) => match answer.status() {
                    status if status.is_success() => return Ok(answer),
                    StatusCode::NOT_FOUND if method != Method::PUT && !url.path().ends_with('/') => {
                        return Ok(answer);
                    }
                    StatusCode::PRECONDITION_FAILED => return Ok(answer),
                    status => {
                        let passes = [StatusCode::TOO_MANY_REQUESTS, StatusCode::CONFLICT];
                        let is_final = status.is_client_error() && !passes.contains(&status);
                        let said = self.body(answer, ANSWER).await.unwrap_or_default();
                        let error = self.failed(&said_in(status, &String::from_utf8_lossy(&said)));
                        if is_final {
                            return Err(error);
                        }
                        error
                    }
                },
                Ok(Err(error)) => self.failed(&cause(&error.without_url())),
            };
            match pauses.next() {
                Some(pause) => tokio::time::sleep(pause).await,
                None => return Err(failure),
            }
        }
    }

    async fn body(&self, mut answer: Response, most: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        loop {
            let Ok(chunk) = tokio::time::timeout(SILENT, answer.chunk()).await else {
                return Err(self.failed("it has stopped answering"));
            };
            match chunk {
                Ok(Some(chunk)) if (bytes.len() + chunk.len()) as u64 > most => {
                    return Err(self.failed("an answer is too long"));
                }
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk),
                Ok(None) => return Ok(bytes),
                Err(error) => return Err(self.failed(&cause(&error.without_url()))),
            }
        }
    }

    fn failed(&self, why: &str) -> Error {
        Error::store(format!("the sync target {SCHEME}{} can't be used: {why}", self.bucket.name()))
    }
}

/// What a server says went wrong, in the form of S3's errors.
fn said_in(status: StatusCode, xml: &str) -> String {
    let field = |name: &str| {
        let from = xml.find(&format!("<{name}>"))? + name.len() + 2;
        let text = &xml[from..];
        Some(one_line(&text[..text.find('<')?], 200))
    };
    match (field("Code"), field("Message")) {
        (Some(code), Some(message)) => format!("{code}: {message}"),
        (Some(code), None) => code,
        _ => format!("it answered {status}"),
    }
}

/// The innermost error's message; the outer ones only say that something failed.
fn cause(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(|| error.to_string(), cause)
}

/// The process's client. It goes through the proxies that the environment names.
fn client() -> Option<Client> {
    static CLIENT: OnceLock<Option<Client>> = OnceLock::new();
    let make = || {
        // Fails if it is already installed.
        drop(rustls::crypto::ring::default_provider().install_default());
        Client::builder().connect_timeout(CONNECT).build().ok()
    };
    CLIENT.get_or_init(make).clone()
}
