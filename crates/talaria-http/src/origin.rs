//! Defence against DNS rebinding: which `Host` and `Origin` a request may carry.
//!
//! A page of another site can make a browser send requests here, under its own host name once
//! its DNS answers with our address. Such a request carries that name in `Host` and the page in
//! `Origin`, so both have to be ours. An IP literal cannot be rebound.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use actix_web::HttpRequest;
use actix_web::http::header;
use talaria_config::TalariaConfig;
use talaria_types::{ErrorCode, Failure};
use url::Url;

/// The hosts a server answers to.
#[derive(Clone, Debug)]
pub(crate) struct HostPolicy {
    listen: IpAddr,
    /// `allowed_hosts` and the host of `public_url`.
    allowed: Vec<Authority>,
}

impl HostPolicy {
    /// The policy of a server at an address.
    pub(crate) fn new(config: &TalariaConfig, address: SocketAddr) -> Self {
        let public = config.media.public_url.as_deref().and_then(|url| {
            let (scheme, authority) = origin_parts(url)?;
            Some(authority.with_port_of(scheme))
        });
        let named = config
            .allowed_hosts
            .iter()
            .filter_map(|host| Authority::parse(host));
        Self {
            listen: address.ip(),
            allowed: named.chain(public).collect(),
        }
    }

    /// Refuses a request whose `Host` or `Origin` is not ours.
    pub(crate) fn check(&self, request: &HttpRequest) -> Result<(), Failure> {
        let headers = request.headers();
        let mut hosts = headers.get_all(header::HOST);
        let host = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok().and_then(Authority::parse),
            (Some(_), Some(_)) | (None, Some(_) | None) => None,
        };
        let Some(host) = host else {
            return Err(refused("the request needs exactly one valid Host header"));
        };
        if !self.is_ours(&host) {
            return Err(refused(
                "the Host header names a host this service does not answer to; \
                 add it to `talaria.allowed_hosts` if it should",
            ));
        }
        // An absolute request target overrides the header, so it has to be ours as well.
        if let Some(target) = request.uri().authority()
            && !Authority::parse(target.as_str()).is_some_and(|target| self.is_ours(&target))
        {
            return Err(refused(
                "the request target names a host this service does not answer to",
            ));
        }
        let mut origins = headers.get_all(header::ORIGIN);
        let Some(origin) = origins.next() else {
            return Ok(());
        };
        let ours = origins.next().is_none()
            && origin
                .to_str()
                .is_ok_and(|origin| self.is_our_origin(origin, &host));
        if ours {
            return Ok(());
        }
        Err(refused(
            "the Origin header names another site; \
             add its host to `talaria.allowed_hosts` if it may use this service",
        ))
    }

    fn is_ours(&self, host: &Authority) -> bool {
        let literal = host.ip().is_some_and(|ip| {
            ip.is_loopback() || self.listen.is_unspecified() || ip == self.listen
        });
        literal || host.name == "localhost" || self.is_allowed(host)
    }

    fn is_our_origin(&self, origin: &str, host: &Authority) -> bool {
        let Some((scheme, authority)) = origin_parts(origin) else {
            return false;
        };
        let origin = authority.with_port_of(scheme);
        origin == host.clone().with_port_of(scheme) || self.is_allowed(&origin)
    }

    fn is_allowed(&self, host: &Authority) -> bool {
        self.allowed.iter().any(|allowed| {
            allowed.name == host.name
                && (allowed.port.is_none()
                    || allowed.port == host.port
                    // A client leaves the port out when it is the default of its scheme.
                    || (host.port.is_none() && matches!(allowed.port, Some(80 | 443))))
        })
    }
}

/// A host and perhaps a port; names in lower case, without a final dot.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Authority {
    name: String,
    port: Option<u16>,
}

impl Authority {
    /// Reads `name`, `name:port`, `1.2.3.4:port`, `[::1]:port` or a bare `::1`.
    fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        if let Ok(bare) = text.parse::<Ipv6Addr>() {
            return Some(Self {
                name: bare.to_string(),
                port: None,
            });
        }
        let (name, port) = match text.strip_prefix('[') {
            Some(rest) => {
                let (literal, after) = rest.split_once(']')?;
                let literal: Ipv6Addr = literal.parse().ok()?;
                let port = match after {
                    "" => None,
                    after => Some(after.strip_prefix(':')?),
                };
                (literal.to_string(), port)
            }
            None => match text.split_once(':') {
                Some((name, port)) => (name.to_owned(), Some(port)),
                None => (text.to_owned(), None),
            },
        };
        let name = name
            .strip_suffix('.')
            .map_or_else(|| name.clone(), ToOwned::to_owned);
        let sane = !name.is_empty()
            && name.bytes().all(|byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b':')
            });
        if !sane {
            return None;
        }
        let port = match port {
            Some(digits) if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                Some(digits.parse().ok()?)
            }
            Some(_) => return None,
            None => None,
        };
        Some(Self {
            name: name.to_ascii_lowercase(),
            port,
        })
    }

    fn ip(&self) -> Option<IpAddr> {
        let ip: IpAddr = self.name.parse().ok()?;
        Some(ip.to_canonical())
    }

    /// Fills the default port of a scheme in.
    fn with_port_of(self, scheme: Scheme) -> Self {
        let default = match scheme {
            Scheme::Http => 80,
            Scheme::Https => 443,
        };
        Self {
            port: self.port.or(Some(default)),
            ..self
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum Scheme {
    Http,
    Https,
}

/// Scheme and authority of an origin or a base URL.
fn origin_parts(text: &str) -> Option<(Scheme, Authority)> {
    let url = Url::parse(text).ok()?;
    let scheme = match url.scheme() {
        "http" => Scheme::Http,
        "https" => Scheme::Https,
        _ => return None,
    };
    let authority = match url.port() {
        Some(port) => format!("{}:{port}", url.host_str()?),
        None => url.host_str()?.to_owned(),
    };
    Some((scheme, Authority::parse(&authority)?))
}

fn refused(detail: &str) -> Failure {
    Failure::new(ErrorCode::OriginRefused, detail)
}

#[cfg(test)]
mod tests {
    use actix_web::test::TestRequest;

    use super::*;
    use crate::fixtures::talaria_config;

    fn policy(listen: &str) -> HostPolicy {
        let mut config = talaria_config();
        config.allowed_hosts = ["talaria.internal", "proxy.example:8443", "[fd00::1]:9000"]
            .map(ToOwned::to_owned)
            .to_vec();
        config.media.public_url = Some("https://files.example/base".to_owned());
        HostPolicy::new(&config, listen.parse().unwrap())
    }

    fn outcome(policy: &HostPolicy, headers: &[(&'static str, &str)]) -> bool {
        let mut request = TestRequest::get();
        for header in headers {
            request = request.append_header(*header);
        }
        match policy.check(&request.to_http_request()) {
            Ok(()) => true,
            Err(failure) => {
                assert_eq!(failure.code(), ErrorCode::OriginRefused);
                false
            }
        }
    }

    #[test]
    fn answers_only_to_its_own_hosts() {
        let policy = policy("127.0.0.1:8700");
        for (host, ours) in [
            ("localhost", true),
            ("LOCALHOST:8700", true),
            ("localhost.:8700", true),
            ("127.0.0.1:8700", true),
            ("127.0.0.2", true),
            ("[::1]:8700", true),
            ("[::ffff:127.0.0.1]:8700", true),
            ("talaria.internal", true),
            ("talaria.internal:1234", true),
            ("proxy.example:8443", true),
            ("proxy.example", false),
            ("proxy.example:80", false),
            ("[fd00::1]:9000", true),
            ("[fd00::1]:9001", false),
            ("files.example", true),
            ("files.example:443", true),
            ("files.example:80", false),
            ("evil.example", false),
            ("localhost.evil.example", false),
            ("127.0.0.1.evil.example", false),
            ("10.0.0.5:8700", false),
            ("0.0.0.0:8700", false),
            ("", false),
            ("localhost:port", false),
            ("localhost:", false),
            ("a@localhost", false),
            ("localhost/..", false),
            ("[::1", false),
        ] {
            assert_eq!(outcome(&policy, &[("host", host)]), ours, "{host:?}");
        }
        assert!(!outcome(&policy, &[]));
        assert!(!outcome(
            &policy,
            &[("host", "localhost"), ("host", "localhost")]
        ));
    }

    #[test]
    fn answers_to_the_address_it_listens_on() {
        let one = policy("10.0.0.5:8700");
        assert!(outcome(&one, &[("host", "10.0.0.5:8700")]));
        assert!(!outcome(&one, &[("host", "10.0.0.6:8700")]));
        let every = policy("[::]:8700");
        assert!(outcome(&every, &[("host", "10.0.0.6:8700")]));
        assert!(!outcome(&every, &[("host", "evil.example:8700")]));
    }

    #[test]
    fn takes_requests_of_its_own_pages_only() {
        let policy = policy("127.0.0.1:8700");
        for (host, origin, ours) in [
            ("localhost:8700", "http://localhost:8700", true),
            ("localhost:8700", "http://localhost:3000", false),
            ("localhost:8700", "http://127.0.0.1:8700", false),
            ("localhost", "http://localhost", true),
            ("localhost", "http://localhost:80", true),
            ("talaria.internal", "https://talaria.internal", true),
            ("localhost:8700", "https://talaria.internal", true),
            ("localhost:8700", "https://files.example", true),
            ("localhost:8700", "http://files.example", false),
            ("localhost:8700", "https://evil.example", false),
            ("localhost:8700", "null", false),
            ("localhost:8700", "", false),
            ("localhost:8700", "file:///etc", false),
        ] {
            let headers = [("host", host), ("origin", origin)];
            assert_eq!(outcome(&policy, &headers), ours, "{origin:?} on {host:?}");
        }
        let twice = [
            ("host", "localhost"),
            ("origin", "http://localhost"),
            ("origin", "http://localhost"),
        ];
        assert!(!outcome(&policy, &twice));
    }

    #[test]
    fn judges_an_absolute_request_target_too() {
        let policy = policy("127.0.0.1:8700");
        for (uri, ours) in [
            ("http://localhost:8700/healthz", true),
            ("http://evil.example/healthz", false),
            ("http://localhost@evil.example/healthz", false),
        ] {
            let request = TestRequest::with_uri(uri).insert_header(("host", "localhost"));
            assert_eq!(
                policy.check(&request.to_http_request()).is_ok(),
                ours,
                "{uri}"
            );
        }
    }
}
