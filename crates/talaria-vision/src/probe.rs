//! Asks a model server of this machine or network whether a model sees: Ollama's `/api/show` and
//! llama.cpp's `/props` (specification 2.3, steps 6 and 7).
//!
//! Only endpoints that are local and identified are asked, without credentials, redirects or
//! proxies. Answers, also missing ones, are kept for a while; one probe at a time runs for an
//! endpoint, in a task of its own, and everybody who waits for it gets what it finds.

use std::sync::Arc;
use std::time::Duration;

use reqwest::redirect::Policy;
use serde_json::Value;
use talaria_types::{Deadline, runtime};
use url::Url;

use crate::local::{LocalResolver, is_local};

mod cache;
mod llama_cpp;
mod ollama;

use cache::{Begin, Cache};

/// Longest time a caller waits, and a probe runs.
const MOST_TIME: Duration = Duration::from_secs(1);
/// How many probes of one endpoint, for other models, a caller waits for before its own.
const MOST_TURNS: usize = 16;
/// Largest answer that is read: props hold a chat template, Ollama's answers whole licences.
const MOST_BYTES: usize = 1024 * 1024;

/// What serves an endpoint, as far as its name tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Hint {
    Ollama,
    LlamaCpp,
    Nothing,
}

impl Hint {
    /// By the name of the provider.
    pub(crate) fn of(provider: &str) -> Self {
        let plain: String = provider
            .chars()
            .filter(char::is_ascii_alphanumeric)
            .collect();
        match plain.trim_start_matches("custom") {
            "ollama" => Self::Ollama,
            "llamacpp" | "llamaserver" => Self::LlamaCpp,
            _ => Self::Nothing,
        }
    }

    /// Where such a server listens when nobody says otherwise.
    pub(crate) fn usual_endpoint(self) -> Option<Url> {
        match self {
            Self::Ollama => Url::parse("http://127.0.0.1:11434").ok(),
            Self::LlamaCpp | Self::Nothing => None,
        }
    }
}

/// What was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Finding {
    /// What serves the endpoint.
    pub(crate) server: Server,
    /// Whether the model sees.
    pub(crate) sees: Option<bool>,
    /// In words.
    pub(crate) detail: String,
}

/// What serves an endpoint, as it shows itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Server {
    Ollama,
    LlamaCpp,
    Unknown,
}

impl Finding {
    fn nothing(detail: impl Into<String>) -> Self {
        Self {
            server: Server::Unknown,
            sees: None,
            detail: detail.into(),
        }
    }
}

/// Asks and remembers.
#[derive(Debug, Default)]
pub(crate) struct Prober {
    cache: Arc<Cache>,
    client: std::sync::OnceLock<Option<reqwest::Client>>,
}

impl Prober {
    /// What is known of a model at an endpoint; waits for a probe at most a second and at most
    /// until the deadline. Once that is past, only what was found before answers.
    pub(crate) async fn ask(
        &self,
        endpoint: &Url,
        hint: Hint,
        model: &str,
        deadline: Deadline,
    ) -> Finding {
        let is_late = deadline.expired();
        if !is_local(endpoint) {
            return Finding::nothing("not asked: the endpoint is not of this machine or network");
        }
        let Some(client) = self.client() else {
            return Finding::nothing("not asked: no HTTP client");
        };
        let wait = Deadline::after(MOST_TIME).earlier(deadline);
        let question = Question {
            root: root(endpoint),
            hint,
            model: model.to_owned(),
        };
        if is_late {
            return match self.cache.begin(&question) {
                Begin::Known(finding, _) => finding,
                Begin::Running(_) | Begin::Start(_) | Begin::Full => {
                    Finding::nothing("not asked: there is no time")
                }
            };
        }
        for _ in 0..MOST_TURNS {
            let mut running = match self.cache.begin(&question) {
                Begin::Known(finding, refresh) => {
                    if let Some(ticket) = refresh {
                        spawn(client.clone(), question, ticket);
                    }
                    return finding;
                }
                Begin::Running(running) => running,
                Begin::Start(ticket) => {
                    let running = ticket.watch();
                    spawn(client.clone(), question.clone(), ticket);
                    running
                }
                Begin::Full => return Finding::nothing("not asked: too many probes run"),
            };
            let ended = running.ended();
            if tokio::time::timeout_at(wait.instant(), ended)
                .await
                .is_err()
            {
                break;
            }
        }
        Finding::nothing("no answer in time")
    }

    fn client(&self) -> Option<&reqwest::Client> {
        self.client.get_or_init(client).as_ref()
    }
}

/// What one probe is about.
#[derive(Clone, Debug)]
pub(crate) struct Question {
    root: Url,
    hint: Hint,
    model: String,
}

fn spawn(client: reqwest::Client, question: Question, ticket: cache::Ticket) {
    // Detached on purpose: whoever comes later gets what it finds, also when the first asker has
    // gone. It ends within a second, and its ticket wakes all who wait however it ends.
    drop(runtime::spawn("probe_model_server", async move {
        let probe = probe(&client, &question);
        let finding = tokio::time::timeout(MOST_TIME, probe)
            .await
            .unwrap_or_else(|_| Finding::nothing("no answer in time"));
        tracing::debug!(endpoint = %question.root, ?finding, "probed a model server");
        ticket.finish(finding);
    }));
}

async fn probe(client: &reqwest::Client, question: &Question) -> Finding {
    let Question { root, hint, model } = question;
    match hint {
        Hint::Ollama => ollama::ask(client, root, model).await,
        Hint::LlamaCpp => llama_cpp::ask(client, root, true).await,
        Hint::Nothing => match ollama::is_ollama(client, root).await {
            Err(failure) => Finding::nothing(failure),
            Ok(true) => ollama::ask(client, root, model).await,
            Ok(false) => llama_cpp::ask(client, root, false).await,
        },
    }
}

fn client() -> Option<reqwest::Client> {
    crate::tls::set_up();
    reqwest::Client::builder()
        .no_proxy()
        .redirect(Policy::none())
        .dns_resolver(Arc::new(LocalResolver))
        .timeout(MOST_TIME)
        // A connection belongs to the loop that opened it; probes run on any of them.
        .pool_max_idle_per_host(0)
        .build()
        .ok()
}

/// The endpoint without the `/v1` of its OpenAI-compatible API, ready for another path.
fn root(endpoint: &Url) -> Url {
    let mut root = endpoint.clone();
    let path = endpoint.path().trim_end_matches('/');
    let path = path.strip_suffix("/v1").unwrap_or(path);
    root.set_path(&format!("{}/", path.trim_end_matches('/')));
    root
}

/// An answer of a local server, read up to a bound.
struct Reply {
    status: u16,
    /// The header `server`.
    server: String,
    json: Option<Value>,
}

/// Sends a request and reads the answer.
///
/// # Errors
/// Words for the operator: nobody listens, or the answer is too long or too late.
async fn send(request: reqwest::RequestBuilder) -> Result<Reply, &'static str> {
    let mut response = request.send().await.map_err(|error| {
        if error.is_connect() {
            "nobody listens there"
        } else if error.is_timeout() {
            "no answer in time"
        } else {
            "no HTTP answer"
        }
    })?;
    let server = response.headers().get(reqwest::header::SERVER);
    let server = server.and_then(|value| value.to_str().ok());
    let server = server.unwrap_or_default().to_lowercase();
    let status = response.status().as_u16();
    let mut body = Vec::new();
    loop {
        match response.chunk().await {
            Err(_broken) => return Err("the answer breaks off"),
            Ok(None) => break,
            Ok(Some(chunk)) if body.len() + chunk.len() > MOST_BYTES => {
                return Err("the answer is too long");
            }
            Ok(Some(chunk)) => body.extend_from_slice(&chunk),
        }
    }
    Ok(Reply {
        status,
        server,
        json: serde_json::from_slice(&body).ok(),
    })
}

#[cfg(test)]
mod tests;
