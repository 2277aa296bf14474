//! Speaks to a running service over HTTP.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::Context;
use reqwest::header::{ACCEPT, AUTHORIZATION, CONTENT_TYPE};
use reqwest::{Client, StatusCode, Url};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use talaria_content::Format;
use talaria_types::{ErrorCode, Route};

use crate::exit::CommandError;

/// Where the service listens unless told otherwise.
pub const DEFAULT_URL: &str = "http://127.0.0.1:8700";
/// Variable with the address of the service.
pub const URL_VARIABLE: &str = "TALARIA_URL";
/// Variable with the bearer token.
pub const TOKEN_VARIABLE: &str = "TALARIA_TOKEN";

/// A connection is there by then or the service counts as unreachable.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// An answer is there by then; longer than any call may take by default.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(3700);

/// A client of one service.
#[derive(Debug)]
pub struct ServiceClient {
    base: Url,
    token: Option<String>,
    http: Client,
}

/// The fields of problem details (RFC 9457) that a person needs.
#[derive(Debug, Deserialize)]
struct ProblemBody {
    code: String,
    #[serde(default)]
    detail: Option<String>,
    #[serde(default)]
    model_text: Option<String>,
    #[serde(default)]
    request_id: Option<String>,
    #[serde(default)]
    outcome_uncertain: bool,
}

impl ServiceClient {
    /// A client for a base address.
    ///
    /// # Errors
    /// The address is none that HTTP can reach.
    pub fn new(base: &str, token: Option<String>) -> Result<Self, CommandError> {
        let base = parse_base(base)?;
        // The cryptography behind TLS, once for the process; another that is there serves as well.
        drop(rustls::crypto::ring::default_provider().install_default());
        let mut builder = Client::builder()
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(ANSWER_TIMEOUT)
            .redirect(reqwest::redirect::Policy::none());
        if is_loopback(&base) {
            // A proxy of the environment does not reach this machine's own loopback.
            builder = builder.no_proxy();
        }
        let http = builder.build().context("set up the HTTP client")?;
        Ok(Self { base, token, http })
    }

    /// A client as `--url`, the environment and the default say, in this order.
    ///
    /// # Errors
    /// The address is none that HTTP can reach.
    pub fn from_environment(
        url: Option<&str>,
        environment: &BTreeMap<String, String>,
    ) -> Result<Self, CommandError> {
        let url = url
            .or_else(|| environment.get(URL_VARIABLE).map(String::as_str))
            .unwrap_or(DEFAULT_URL);
        Self::new(url, environment.get(TOKEN_VARIABLE).cloned())
    }

    /// The service's address.
    #[must_use]
    pub const fn base(&self) -> &Url {
        &self.base
    }

    /// Reads a JSON document.
    ///
    /// # Errors
    /// The service does not answer, refuses, or answers something else.
    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, CommandError> {
        let text = self.get_text(path).await?;
        parse(&text)
    }

    /// Reads a text.
    ///
    /// # Errors
    /// The service does not answer or refuses.
    pub async fn get_text(&self, path: &str) -> Result<String, CommandError> {
        self.send_for_text(self.http.get(self.url(path)?)).await
    }

    /// Reads the bytes behind a whole address, which must be this service's.
    ///
    /// # Errors
    /// The address is another's, or the service does not answer or refuses.
    pub async fn get_bytes(&self, address: &str) -> Result<Vec<u8>, CommandError> {
        let url = Url::parse(address).context("read an address")?;
        if url.origin() != self.base.origin() {
            // The token is for this service alone.
            return Err(CommandError::usage(format!(
                "{address} is not on {}",
                self.base
            )));
        }
        self.send(self.http.get(url)).await
    }

    /// Posts a JSON body and reads the answer as text.
    ///
    /// # Errors
    /// The service does not answer or refuses.
    pub async fn post(&self, path: &str, body: &Value) -> Result<String, CommandError> {
        let request = self
            .http
            .post(self.url(path)?)
            .header(CONTENT_TYPE, "application/json")
            .body(body.to_string());
        self.send_for_text(request).await
    }

    /// Posts a JSON body and reads the answer as JSON.
    ///
    /// # Errors
    /// The service does not answer, refuses, or answers something else.
    pub async fn post_json<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &Value,
    ) -> Result<T, CommandError> {
        parse(&self.post(path, body).await?)
    }

    fn url(&self, path: &str) -> Result<Url, CommandError> {
        let joined = self.base.join(path.trim_start_matches('/'));
        Ok(joined.with_context(|| format!("form the address of {path}"))?)
    }

    async fn send_for_text(
        &self,
        request: reqwest::RequestBuilder,
    ) -> Result<String, CommandError> {
        let request = request.header(ACCEPT, "application/json, text/plain;q=0.9");
        let body = self.send(request).await?;
        Ok(String::from_utf8(body).context("read the service's answer")?)
    }

    async fn send(&self, mut request: reqwest::RequestBuilder) -> Result<Vec<u8>, CommandError> {
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, format!("Bearer {token}"));
        }
        let response = request
            .send()
            .await
            .map_err(|error| self.unreachable(error))?;
        let status = response.status();
        let body = response
            .bytes()
            .await
            .map_err(|error| self.unreachable(error))?;
        if status.is_success() {
            return Ok(body.into());
        }
        Err(refusal(status, &String::from_utf8_lossy(&body)))
    }

    fn unreachable(&self, error: reqwest::Error) -> CommandError {
        let chain = anyhow::Error::new(error.without_url());
        CommandError::unreachable(format!(
            "{} does not answer ({chain:#}); is `talaria serve` running there?",
            self.base
        ))
    }
}

/// What a request to call a tool says.
#[derive(Clone, Debug)]
pub struct CallRequest {
    /// Public name, or the server's own name for it.
    pub tool: String,
    /// The server, when `tool` is its own name.
    pub server: Option<String>,
    /// Arguments of the tool.
    pub arguments: serde_json::Map<String, Value>,
    /// Form of the answer.
    pub format: Format,
    /// Who reads it.
    pub route: Option<Route>,
    /// The provider's id of the call.
    pub call_id: Option<String>,
    /// When the call is given up.
    pub timeout: Option<Duration>,
}

impl CallRequest {
    /// The body of `POST /v1/tools/call`.
    #[must_use]
    pub fn body(&self) -> Value {
        let mut body = serde_json::Map::new();
        match &self.server {
            Some(server) => {
                body.insert("server".to_owned(), server.clone().into());
                body.insert("name".to_owned(), self.tool.clone().into());
            }
            None => {
                body.insert("tool".to_owned(), self.tool.clone().into());
            }
        }
        body.insert(
            "arguments".to_owned(),
            Value::Object(self.arguments.clone()),
        );
        reader(
            &mut body,
            self.format,
            self.route.as_ref(),
            self.call_id.as_deref(),
        );
        if let Some(timeout) = self.timeout {
            let milliseconds = u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX);
            body.insert("timeout_ms".to_owned(), milliseconds.into());
        }
        Value::Object(body)
    }
}

/// Says in a body who reads the delivery.
pub(crate) fn reader(
    body: &mut serde_json::Map<String, Value>,
    format: Format,
    route: Option<&Route>,
    call_id: Option<&str>,
) {
    body.insert("format".to_owned(), format.as_str().into());
    if let Some(Route {
        provider, model, ..
    }) = route
    {
        let route = serde_json::json!({ "provider": provider, "model": model });
        body.insert("route".to_owned(), route);
    }
    if let Some(call_id) = call_id {
        body.insert("call_id".to_owned(), call_id.into());
    }
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, CommandError> {
    Ok(serde_json::from_str(text).context("read the service's answer")?)
}

/// An answer that is no success, in words.
fn refusal(status: StatusCode, text: &str) -> CommandError {
    let Ok(problem) = serde_json::from_str::<ProblemBody>(text) else {
        return CommandError::call_failed(vec![format!("the service answered {status}")]);
    };
    let detail = problem.detail.or(problem.model_text).unwrap_or_default();
    let mut lines = vec![format!("{}: {detail}", problem.code)];
    if problem.outcome_uncertain {
        lines.push("The call may have been executed.".to_owned());
    }
    lines.extend(
        problem
            .request_id
            .map(|id| format!("Request {id} in the service's log.")),
    );
    if problem.code == ErrorCode::ConfigInvalid.as_str() {
        return CommandError::configuration(lines);
    }
    CommandError::call_failed(lines)
}

fn parse_base(base: &str) -> Result<Url, CommandError> {
    let with_slash = format!("{}/", base.trim_end_matches('/'));
    let url = Url::parse(&with_slash)
        .map_err(|error| CommandError::usage(format!("{base:?} is not a URL: {error}")))?;
    if matches!(url.scheme(), "http" | "https") && url.has_host() {
        return Ok(url);
    }
    Err(CommandError::usage(format!(
        "{base:?} is not an http or https URL"
    )))
}

fn is_loopback(url: &Url) -> bool {
    let host = url
        .host_str()
        .unwrap_or_default()
        .trim_start_matches('[')
        .trim_end_matches(']');
    host == "localhost"
        || host
            .parse()
            .is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::time::Duration;

    use reqwest::StatusCode;
    use serde_json::json;
    use talaria_content::Format;

    use super::{CallRequest, ServiceClient, is_loopback, parse_base, refusal};
    use crate::exit::Exit;

    #[test]
    fn option_beats_environment_beats_default() {
        let environment = BTreeMap::from([("TALARIA_URL".to_owned(), "http://b:1/x".to_owned())]);
        let base = |url, environment: &BTreeMap<String, String>| {
            ServiceClient::from_environment(url, environment)
                .unwrap()
                .base()
                .to_string()
        };
        assert_eq!(base(Some("http://a"), &environment), "http://a/");
        assert_eq!(base(None, &environment), "http://b:1/x/");
        assert_eq!(base(None, &BTreeMap::new()), "http://127.0.0.1:8700/");
    }

    #[test]
    fn an_address_that_http_cannot_reach_is_a_usage_error() {
        for base in ["127.0.0.1:8700", "ftp://host", "unix:/run/x", ""] {
            assert_eq!(
                parse_base(base).unwrap_err().exit(),
                Exit::Usage,
                "{base:?}"
            );
        }
    }

    #[test]
    fn loopback_is_recognised() {
        let loopback = |base| is_loopback(&parse_base(base).unwrap());
        assert!(loopback("http://127.0.0.1:8700"));
        assert!(loopback("http://[::1]:8700"));
        assert!(loopback("https://localhost"));
        assert!(!loopback("http://192.0.2.1"));
    }

    #[test]
    fn a_call_names_tool_or_server_and_name() {
        let mut call = CallRequest {
            tool: "mcp__a__b".to_owned(),
            server: None,
            arguments: serde_json::Map::new(),
            format: Format::Text,
            route: None,
            call_id: None,
            timeout: Some(Duration::from_secs(2)),
        };
        let body =
            json!({"tool": "mcp__a__b", "arguments": {}, "format": "text", "timeout_ms": 2000});
        assert_eq!(call.body(), body);
        call.server = Some("a".to_owned());
        call.timeout = None;
        let body = json!({"server": "a", "name": "mcp__a__b", "arguments": {}, "format": "text"});
        assert_eq!(call.body(), body);
    }

    #[test]
    fn problem_details_become_lines() {
        let text = json!({
            "code": "connection_lost", "detail": "the server ended", "outcome_uncertain": true,
            "request_id": "req_1"
        });
        let error = refusal(StatusCode::BAD_GATEWAY, &text.to_string());
        assert_eq!(error.exit(), Exit::CallFailed);
        assert_eq!(
            error.lines(),
            [
                "connection_lost: the server ended",
                "The call may have been executed.",
                "Request req_1 in the service's log.",
            ]
        );
        let error = refusal(StatusCode::BAD_GATEWAY, "<html>");
        assert_eq!(error.lines(), ["the service answered 502 Bad Gateway"]);
    }

    #[tokio::test]
    async fn a_port_nobody_listens_on_is_unreachable() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        drop(listener);
        let client = ServiceClient::new(&format!("http://{address}"), None).unwrap();
        let error = client.get_text("/healthz").await.unwrap_err();
        assert_eq!(error.exit(), Exit::Unreachable);
    }
}
