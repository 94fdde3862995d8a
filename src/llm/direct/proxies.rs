//! Chooses a request's proxy as Pi would, from the environment.
//!
//! The rules are those of Pi's HTTP client, not the usual ones: lowercase names first, HTTPS falls back to
//! the proxy for HTTP, and no address is exempt by default, not even localhost. `ALL_PROXY`, which Pi does
//! not know, comes last. Pi's setting `httpProxy` ends up in the environment.

use reqwest::Url;

/// The environment's proxies.
#[derive(Clone, Debug)]
pub(super) struct Proxies {
    http: Option<Url>,
    https: Option<Url>,
    /// Hosts that are asked directly, each with its port if only that; `None` for all.
    exempt: Option<Vec<(String, Option<u16>)>>,
}

impl Proxies {
    /// `None` if a proxy is configured that can't be used here.
    pub(super) fn read(variable: impl Fn(&str) -> Option<String>) -> Option<Self> {
        // An empty variable counts as set.
        let said = |name: &str| variable(&name.to_lowercase()).or_else(|| variable(name)).unwrap_or_default();
        let all = usable(&said("ALL_PROXY")).ok().flatten();
        let http = usable(&said("HTTP_PROXY")).ok()?;
        let https = usable(&said("HTTPS_PROXY")).ok()?.or_else(|| http.clone());
        let exempt = said("NO_PROXY");
        let entries = exempt.split([',', ' ', '\t', '\n', '\r']).filter(|entry| !entry.is_empty());
        Some(Self {
            http: http.or_else(|| all.clone()),
            https: https.or(all),
            exempt: (exempt != "*").then(|| entries.map(entry).collect()),
        })
    }

    /// The proxy for an address.
    pub(super) fn of(&self, url: &Url) -> Option<&Url> {
        let proxy = if url.scheme() == "https" { &self.https } else { &self.http };
        proxy.as_ref().filter(|_| !self.exempts(url))
    }

    fn exempts(&self, url: &Url) -> bool {
        let Some(entries) = &self.exempt else { return true };
        let host =
            url.host_str().unwrap_or_default().trim_matches(['[', ']']).trim_end_matches('.').to_lowercase();
        entries.iter().any(|(name, port)| {
            let below = || host.strip_suffix(name.as_str()).is_some_and(|rest| rest.ends_with('.'));
            (port.is_none() || *port == url.port_or_known_default()) && (host == *name || below())
        })
    }
}

/// Parses a host, or all hosts below it, optionally with a port.
fn entry(said: &str) -> (String, Option<u16>) {
    let (name, port) = match said.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') || name.ends_with(']') => (name, port.parse().ok()),
        _ => (said, None),
    };
    let name = name.trim_matches(['[', ']']);
    let name = name.strip_prefix("*.").or_else(|| name.strip_prefix('.')).unwrap_or(name);
    (name.trim_end_matches('.').to_lowercase(), port)
}

fn usable(said: &str) -> Result<Option<Url>, ()> {
    if said.trim().is_empty() {
        return Ok(None);
    }
    let url = Url::parse(said.trim()).map_err(|_| ())?;
    if matches!(url.scheme(), "http" | "https") { Ok(Some(url)) } else { Err(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Environment<'a> = &'a [(&'a str, &'a str)];

    fn read(environment: Environment<'_>) -> Option<Proxies> {
        Proxies::read(|name| {
            environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        })
    }

    #[test]
    fn the_environment_selects_the_proxy() {
        let cases: [(Environment<'_>, &str, Option<&str>); 13] = [
            (&[], "https://a.b/", None),
            (&[("HTTPS_PROXY", "http://p:1")], "https://a.b/", Some("http://p:1/")),
            (&[("HTTPS_PROXY", "http://p:1")], "http://a.b/", None),
            (&[("HTTP_PROXY", "http://p:1")], "https://a.b/", Some("http://p:1/")),
            (&[("HTTP_PROXY", "http://p:1")], "http://127.0.0.1:8/", Some("http://p:1/")),
            (
                &[("https_proxy", "http://s:1"), ("HTTPS_PROXY", "http://l:1")],
                "https://a.b/",
                Some("http://s:1/"),
            ),
            (&[("ALL_PROXY", "http://p:1")], "https://a.b/", Some("http://p:1/")),
            (&[("ALL_PROXY", "socks5://p:1")], "https://a.b/", None),
            (&[("HTTP_PROXY", "http://p:1"), ("NO_PROXY", "*")], "https://a.b/", None),
            (&[("HTTP_PROXY", "http://p:1"), ("NO_PROXY", "x, *.b")], "https://A.b/", None),
            (
                &[("HTTP_PROXY", "http://p:1"), ("NO_PROXY", "a.b:444,ab")],
                "https://a.b/",
                Some("http://p:1/"),
            ),
            (&[("HTTP_PROXY", "http://p:1"), ("NO_PROXY", ".a.b:443")], "https://a.b/", None),
            (&[("HTTP_PROXY", "http://p:1"), ("no_proxy", "::1,[::2]:80")], "http://[::2]/", None),
        ];
        for (environment, url, proxy) in cases {
            let found = read(environment).unwrap();
            assert_eq!(found.of(&url.parse().unwrap()).map(Url::as_str), proxy, "{environment:?} {url}");
        }
    }

    #[test]
    fn other_kinds_of_proxies_are_unsupported() {
        assert!(read(&[("HTTPS_PROXY", "socks5://p:1")]).is_none());
        assert!(read(&[("HTTP_PROXY", "nonsense")]).is_none());
    }
}
