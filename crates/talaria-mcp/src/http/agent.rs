//! Who sends our HTTP requests: which connections, which headers, which redirects.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::header::{AUTHORIZATION, COOKIE, LOCATION, PROXY_AUTHORIZATION};
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use reqwest::redirect::Policy;
use reqwest::{Client, ClientBuilder, Request, Response, Url};
use talaria_config::HttpConfig;
use talaria_types::{ErrorCode, Failure};

use super::redirect::Reach;
use super::resolver::Redirected;
use super::{proxy, redirect, tls};

/// A connection that is not there after this long is not coming.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long an unused connection is kept.
const POOL_IDLE: Duration = Duration::from_secs(60);

/// A peer that vanished without a word is noticed within about three of these.
const KEEPALIVE: Duration = Duration::from_secs(30);

const MAX_REDIRECTS: usize = 5;

/// Headers that the protocol sets; a configuration that names them is ignored there.
const OURS: [&str; 6] = [
    "accept",
    "content-type",
    "content-length",
    "mcp-session-id",
    "mcp-protocol-version",
    "last-event-id",
];

/// Headers that log in; they never leave the origin they were configured for.
const LOGINS: [HeaderName; 3] = [AUTHORIZATION, COOKIE, PROXY_AUTHORIZATION];

/// Sends requests to one server; cheap to clone.
#[derive(Clone, Debug)]
pub(crate) struct Agent(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    client: Client,
    /// For where somebody in the open network sent us.
    outside: Client,
    /// For where somebody in the inner network sent us.
    inside: Client,
    endpoint: Url,
    /// As configured; sensitive.
    headers: HeaderMap,
    is_strict: bool,
    /// Over a socket there is no other place a redirect could lead to.
    is_socket: bool,
}

impl Agent {
    /// Sets the client up. Reads certificates from the disk.
    ///
    /// # Errors
    /// `connect_failed` where an address, a header, a certificate or a proxy is of no use.
    pub(crate) fn new(
        config: &HttpConfig,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let endpoint = Url::parse(&config.url)
            .map_err(|error| unusable("the url is not an address").caused_by(error))?;
        let set_up = || set_up(config, environment, &endpoint);
        let client = built(set_up()?)?;
        let resolving = |names: Redirected| {
            set_up().and_then(|set_up| built(set_up.dns_resolver(Arc::new(names))))
        };
        let outside = resolving(Redirected::from_outside(environment))?;
        let inside = resolving(Redirected::from_inside(environment))?;
        let identity = config
            .identity_header
            .iter()
            .map(|(name, value)| (name, value));
        let mut headers = parse_headers(config.headers.iter().chain(identity))?;
        let endpoint = without_login(&client, endpoint, &mut headers)?;
        Ok(Self(Arc::new(Inner {
            client,
            outside,
            inside,
            endpoint,
            headers,
            is_strict: config.strict_redirect_headers,
            is_socket: config.unix_socket.is_some(),
        })))
    }

    /// The configured address.
    pub(crate) fn endpoint(&self) -> &Url {
        &self.0.endpoint
    }

    /// Sends a request with the configured headers beside its own, and follows redirects as far
    /// as that is safe. A redirect that is not followed is the answer.
    pub(crate) async fn send(
        &self,
        method: Method,
        url: &Url,
        headers: HeaderMap,
        body: Option<Vec<u8>>,
    ) -> reqwest::Result<Response> {
        let mut request = Request::new(method, url.clone());
        *request.headers_mut() = self.0.headers.clone();
        for (name, value) in &headers {
            request.headers_mut().insert(name, value.clone());
        }
        *request.body_mut() = body.map(Into::into);
        self.keep_home(&mut request);
        let mut client = &self.0.client;
        for _ in 0..MAX_REDIRECTS {
            let again = request.try_clone();
            let response = client.execute(request).await?;
            match self.redirected(again, &response, client).await {
                Some(next) => (request, client) = next,
                None => return Ok(response),
            }
        }
        client.execute(request).await
    }

    /// The request that follows a redirect, and who may send it.
    async fn redirected<'a>(
        &'a self,
        again: Option<Request>,
        response: &Response,
        client: &'a Client,
    ) -> Option<(Request, &'a Client)> {
        let mut next = again?;
        let location = response.headers().get(LOCATION)?.to_str().ok()?;
        let to = redirect::target(next.method(), response.status(), next.url(), location)?;
        let is_elsewhere = to.origin() != next.url().origin();
        let reach = match (is_elsewhere, self.0.is_socket) {
            (false, _) => None,
            (true, true) => Some(Reach::Nowhere),
            (true, false) => Some(redirect::reach(response, next.url(), &to).await),
        };
        let client = match reach {
            None => client,
            Some(Reach::Anywhere) => &self.0.inside,
            Some(Reach::Outside) => &self.0.outside,
            Some(Reach::Nowhere) => {
                tracing::warn!(
                    host = to.host_str(),
                    "a redirect was not followed to where none may lead"
                );
                return None;
            }
        };
        *next.url_mut() = to;
        self.keep_home(&mut next);
        Some((next, client))
    }

    /// Takes away what must not leave the configured origin.
    fn keep_home(&self, request: &mut Request) {
        if request.url().origin() == self.0.endpoint.origin() {
            return;
        }
        let headers = request.headers_mut();
        for name in &LOGINS {
            headers.remove(name);
        }
        if self.0.is_strict {
            for name in self.0.headers.keys() {
                headers.remove(name);
            }
        }
    }
}

/// How all clients send.
fn set_up(
    config: &HttpConfig,
    environment: &BTreeMap<String, String>,
    endpoint: &Url,
) -> Result<ClientBuilder, Failure> {
    let builder = Client::builder()
        .connect_timeout(CONNECT_TIMEOUT)
        .pool_idle_timeout(POOL_IDLE)
        .tcp_keepalive(KEEPALIVE)
        .tcp_nodelay(true)
        .redirect(Policy::none());
    let builder = match &config.unix_socket {
        Some(socket) => builder.no_proxy().unix_socket(socket.as_path()),
        None => proxy::apply(builder, environment)?,
    };
    tls::apply(builder, &config.tls, endpoint.scheme())
}

fn built(builder: ClientBuilder) -> Result<Client, Failure> {
    let failed = |error| unusable("the HTTP client cannot be set up").caused_by(error);
    builder.build().map_err(failed)
}

/// The address without its user and password, which become a header unless one is configured.
fn without_login(client: &Client, url: Url, headers: &mut HeaderMap) -> Result<Url, Failure> {
    // A request builder knows how that is done, and does it.
    let request = client
        .get(url)
        .build()
        .map_err(|error| unusable("the url is not an address").caused_by(error.without_url()))?;
    if let Some(login) = request.headers().get(AUTHORIZATION)
        && !headers.contains_key(AUTHORIZATION)
    {
        let mut login = login.clone();
        login.set_sensitive(true);
        headers.insert(AUTHORIZATION, login);
    }
    Ok(request.url().clone())
}

fn parse_headers<'a>(
    configured: impl Iterator<Item = (&'a String, &'a String)>,
) -> Result<HeaderMap, Failure> {
    let mut parsed = HeaderMap::new();
    for (name, value) in configured {
        let invalid = || unusable(format!("the header {name} is not a valid HTTP header"));
        let name =
            HeaderName::try_from(name.as_str()).map_err(|error| invalid().caused_by(error))?;
        let mut value = HeaderValue::from_str(value).map_err(|_secret| invalid())?;
        value.set_sensitive(true);
        if OURS.contains(&name.as_str()) {
            tracing::warn!(%name, "a configured header was ignored: the protocol sets it");
        } else {
            parsed.insert(name, value);
        }
    }
    Ok(parsed)
}

pub(super) fn unusable(detail: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::ConnectFailed, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_checked_and_those_of_the_protocol_left_out() {
        let parsed = |name: &str, value: &str| {
            parse_headers([(&name.to_owned(), &value.to_owned())].into_iter())
        };
        assert!(parsed("Accept", "x").unwrap().is_empty());
        assert_eq!(parsed("X-Key", "x").unwrap().len(), 1);
        for (name, value) in [("bad name", "x"), ("X-Key", "secret\nvalue")] {
            let failure = parsed(name, value).unwrap_err();
            assert_eq!(failure.code(), ErrorCode::ConnectFailed);
            assert!(failure.detail().contains(name));
            assert!(!format!("{failure:?}").contains("secret"));
        }
    }

    #[test]
    fn a_user_in_the_address_logs_in_unless_a_header_does() {
        let mut config = HttpConfig::new("http://me:open%20sesame@127.0.0.1:1/mcp");
        for (configured, sent) in [
            (None, "Basic bWU6b3BlbiBzZXNhbWU="),
            (Some("Bearer x"), "Bearer x"),
        ] {
            let header = configured.map(|value| ("authorization".to_owned(), value.to_owned()));
            config.headers = header.into_iter().collect();
            let agent = Agent::new(&config, &BTreeMap::new()).unwrap();
            assert_eq!(agent.endpoint().as_str(), "http://127.0.0.1:1/mcp");
            assert_eq!(agent.0.headers[AUTHORIZATION], sent);
            assert!(agent.0.headers[AUTHORIZATION].is_sensitive());
        }
    }

    #[tokio::test]
    async fn a_name_that_changes_its_mind_after_the_check_leads_nowhere() {
        use talaria_testkit::{HttpServer, Script};

        let server = HttpServer::start(Script::new("inner")).unwrap();
        let mut inner = Url::parse(&server.url()).unwrap();
        inner.set_host(Some("localhost")).unwrap();
        let send = async |client: &Client| client.get(inner.clone()).send().await;
        let config = HttpConfig::new("http://server.example/mcp");
        let agent = Agent::new(&config, &BTreeMap::new()).unwrap();
        assert!(send(&agent.0.client).await.is_ok());
        // As if the check had seen another address behind the same name.
        let failure = send(&agent.0.outside).await.unwrap_err();
        assert!(failure.is_connect(), "{failure:?}");
        assert!(format!("{failure:?}").contains("Refused"), "{failure:?}");
        assert!(send(&agent.0.inside).await.is_ok(), "from inside it may");
        // A proxy may be inside: the operator put it there.
        let proxied = ("HTTP_PROXY".to_owned(), inner.to_string());
        let agent = Agent::new(&config, &BTreeMap::from([proxied])).unwrap();
        let through = agent.0.outside.get("http://server.example/").send().await;
        assert!(through.is_ok(), "{through:?}");
    }

    #[test]
    fn s12_what_logs_in_stays_at_its_origin_and_strictly_everything_does() {
        for (is_strict, kept) in [(false, true), (true, false)] {
            let mut config = HttpConfig::new("http://127.0.0.1:1/mcp");
            config.strict_redirect_headers = is_strict;
            config.headers = BTreeMap::from([
                ("Authorization".to_owned(), "Bearer x".to_owned()),
                ("X-Key".to_owned(), "k".to_owned()),
            ]);
            let agent = Agent::new(&config, &BTreeMap::new()).unwrap();
            for (url, is_home) in [
                ("http://127.0.0.1:1/other", true),
                ("http://127.0.0.1:2/mcp", false),
                ("https://127.0.0.1:1/mcp", false),
            ] {
                let mut request = Request::new(Method::POST, url.parse().unwrap());
                *request.headers_mut() = agent.0.headers.clone();
                agent.keep_home(&mut request);
                let has = |name: &str| request.headers().contains_key(name);
                assert_eq!(has("authorization"), is_home, "{url}");
                assert_eq!(has("x-key"), is_home || kept, "{url} {is_strict}");
            }
        }
    }
}
