//! Proxies: those the environment names, and none for this machine itself.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::{ClientBuilder, NoProxy, Proxy, Url};
use talaria_types::Failure;

use super::agent::unusable;

/// This machine, which no proxy can reach in our place.
const NEVER: &str = "localhost,.localhost,127.0.0.0/8,::1";

/// Uses the proxies of the environment we were given, and no others.
///
/// # Errors
/// A variable holds no address.
pub(crate) fn apply(
    builder: ClientBuilder,
    environment: &BTreeMap<String, String>,
) -> Result<ClientBuilder, Failure> {
    let mut builder = builder.no_proxy();
    let except = variable(environment, "NO_PROXY").map_or_else(
        || NEVER.to_owned(),
        |(_, configured)| format!("{NEVER},{configured}"),
    );
    let everything = variable(environment, "ALL_PROXY");
    for (name, is_https) in [("HTTP_PROXY", false), ("HTTPS_PROXY", true)] {
        let Some((name, address)) = variable(environment, name).or(everything) else {
            continue;
        };
        let proxy = if is_https {
            Proxy::https(address)
        } else {
            Proxy::http(address)
        };
        // The address may hold a password.
        let proxy = proxy
            .map_err(|_secret| unusable(format!("the variable {name} holds no proxy address")))?;
        builder = builder.proxy(proxy.no_proxy(NoProxy::from_string(&except)));
    }
    Ok(builder)
}

/// The hosts of those proxies.
pub(crate) fn hosts(environment: &BTreeMap<String, String>) -> BTreeSet<String> {
    ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"]
        .into_iter()
        .filter_map(|name| variable(environment, name))
        .filter_map(|(_, address)| {
            // As `host:port` it has no scheme, and is one of HTTP.
            let whole = if address.contains("://") {
                address.to_owned()
            } else {
                format!("http://{address}")
            };
            let host = Url::parse(&whole).ok()?.host_str()?.to_ascii_lowercase();
            Some(host)
        })
        .collect()
}

/// A variable in small or capital letters, as other programs read it; an empty one is none.
fn variable<'a>(
    environment: &'a BTreeMap<String, String>,
    name: &str,
) -> Option<(&'a str, &'a str)> {
    [name.to_ascii_lowercase(), name.to_owned()]
        .iter()
        .filter_map(|name| environment.get_key_value(name))
        .map(|(name, value)| (name.as_str(), value.trim()))
        .find(|(_, value)| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    use super::*;

    /// A proxy that says so to everybody.
    async fn proxy() -> String {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        drop(talaria_types::runtime::spawn("proxy", async move {
            while let Ok((mut stream, _)) = listener.accept().await {
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n")
                    && stream.read_buf(&mut head).await.is_ok_and(|n| n > 0)
                {}
                let answer =
                    b"HTTP/1.1 299 Proxy\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
                drop(stream.write_all(answer).await);
            }
        }));
        format!("http://{address}")
    }

    #[tokio::test]
    async fn proxies_of_the_environment_are_honoured_but_never_for_this_machine() {
        let proxy = proxy().await;
        let environment = |pairs: &[(&str, &str)]| -> BTreeMap<String, String> {
            pairs
                .iter()
                .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
                .collect()
        };
        crate::http::tls::set_up();
        for (pairs, url, expected) in [
            (
                &[("http_proxy", proxy.as_str())][..],
                "http://server.invalid/",
                true,
            ),
            (&[("ALL_PROXY", &proxy)], "http://server.invalid/", true),
            (
                &[("HTTP_PROXY", &proxy), ("NO_PROXY", "server.invalid")],
                "http://server.invalid/",
                false,
            ),
            (&[("HTTPS_PROXY", &proxy)], "http://server.invalid/", false),
            (&[("HTTP_PROXY", &proxy)], "http://localhost:1/", false),
            (&[("HTTP_PROXY", &proxy)], "http://127.0.0.1:1/", false),
            (&[("HTTP_PROXY", &proxy)], "http://127.8.8.8:1/", false),
            (&[("HTTP_PROXY", &proxy)], "http://[::1]:1/", false),
        ] {
            let builder = apply(reqwest::Client::builder(), &environment(pairs)).unwrap();
            let client = builder.build().unwrap();
            let answer = client.get(url).send().await;
            let is_proxied = answer.is_ok_and(|answer| answer.status() == 299);
            assert_eq!(is_proxied, expected, "{pairs:?} {url}");
        }
    }

    #[test]
    fn the_hosts_of_proxies_are_known() {
        let environment = [
            ("http_proxy", "http://me:pw@Proxy.example:3128"),
            ("HTTPS_PROXY", "other.example:8080"),
            ("ALL_PROXY", ""),
        ];
        let environment = environment.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let hosts: Vec<_> = hosts(&BTreeMap::from(environment)).into_iter().collect();
        assert_eq!(hosts, ["other.example", "proxy.example"]);
    }

    #[test]
    fn a_variable_that_holds_no_address_is_named_without_its_value() {
        let environment = BTreeMap::from([("HTTP_PROXY".to_owned(), "::secret::".to_owned())]);
        let failure = apply(reqwest::Client::builder(), &environment).unwrap_err();
        assert!(failure.detail().contains("HTTP_PROXY"));
        assert!(!format!("{failure:?}").contains("secret"));
    }
}
