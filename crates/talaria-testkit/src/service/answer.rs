//! An HTTP answer read whole.

use anyhow::{Context, ensure};
use serde_json::Value;

/// What the service answered.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Status.
    pub status: u16,
    /// Headers.
    pub headers: reqwest::header::HeaderMap,
    /// Body.
    pub body: Vec<u8>,
}

impl Answer {
    /// Reads an answer to its end.
    ///
    /// # Errors
    /// The connection ends early.
    pub async fn read(response: reqwest::Response) -> anyhow::Result<Self> {
        let status = response.status().as_u16();
        let headers = response.headers().clone();
        let body = response.bytes().await?.to_vec();
        Ok(Self {
            status,
            headers,
            body,
        })
    }

    /// A header as text; empty when absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    /// The body as text.
    ///
    /// # Errors
    /// It is not UTF-8.
    pub fn text(&self) -> anyhow::Result<String> {
        String::from_utf8(self.body.clone()).context("a body that is text")
    }

    /// The body as JSON, whatever the status.
    ///
    /// # Errors
    /// It is not JSON.
    pub fn json(&self) -> anyhow::Result<Value> {
        serde_json::from_slice(&self.body)
            .with_context(|| format!("status {}, body {}", self.status, self.excerpt()))
    }

    /// The body of a successful answer as JSON.
    ///
    /// # Errors
    /// The status is not 200, or the body is not JSON.
    pub fn ok(&self) -> anyhow::Result<Value> {
        ensure!(
            self.status == 200,
            "status {}: {}",
            self.status,
            self.excerpt()
        );
        self.json()
    }

    /// The body of a failure as problem details with the shape of RFC 9457 and ours.
    ///
    /// # Errors
    /// The status tells of success, or the body is no such document.
    pub fn problem(&self) -> anyhow::Result<Value> {
        ensure!(
            self.status >= 400,
            "no failure: status {}, {}",
            self.status,
            self.excerpt()
        );
        let kind = self.header("content-type");
        ensure!(
            kind.starts_with("application/problem+json"),
            "content type {kind}"
        );
        let problem = self.json()?;
        let has = |member: &str, fits: fn(&Value) -> bool| -> anyhow::Result<()> {
            ensure!(
                problem.get(member).is_some_and(fits),
                "{member} in {problem}"
            );
            Ok(())
        };
        for member in ["code", "title", "detail", "model_text"] {
            has(member, Value::is_string)?;
        }
        for member in ["retryable", "outcome_uncertain"] {
            has(member, Value::is_boolean)?;
        }
        for member in ["retry_after_ms", "server"] {
            has(member, |_| true)?;
        }
        let told = problem.get("status").and_then(Value::as_u64);
        ensure!(told == Some(u64::from(self.status)), "status in {problem}");
        let text = |member: &str| {
            problem
                .get(member)
                .and_then(Value::as_str)
                .unwrap_or_default()
        };
        ensure!(
            text("model_text").contains(text("server")),
            "the model learns no name: {problem}"
        );
        Ok(problem)
    }

    /// The code of a failure.
    ///
    /// # Errors
    /// As [`Self::problem`].
    pub fn code(&self) -> anyhow::Result<String> {
        let problem = self.problem()?;
        Ok(problem
            .get("code")
            .and_then(Value::as_str)
            .unwrap_or_default()
            .to_owned())
    }

    /// The beginning of the body, for messages.
    #[must_use]
    pub fn excerpt(&self) -> String {
        let head = self.body.get(..2000).unwrap_or(&self.body);
        String::from_utf8_lossy(head).into_owned()
    }
}
