//! The links of a chain: who is asked for a description, and under which names their health is
//! kept.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use talaria_config::{Endpoint, McpFallback, Secret};
use url::Url;

use super::health::Identity;
use super::verdict::Fault;
use crate::{ApiShape, ProviderLimits};

/// One link of a chain.
#[derive(Clone, Debug, PartialEq)]
pub enum Link {
    /// A model behind an HTTP API.
    Http(Backend),
    /// A tool of an MCP server.
    Mcp(McpFallback),
    /// An entry that cannot be used; it fails at once, with its reason.
    Broken {
        /// Its name.
        via: String,
        /// Why.
        fault: Fault,
    },
}

impl Link {
    /// Its name: `openai/gpt-4o-mini`, `mcp:MiniMax/understand_image`.
    #[must_use]
    pub fn via(&self) -> String {
        match self {
            Self::Http(backend) => backend.via(),
            Self::Mcp(tool) => format!("mcp:{}/{}", tool.server.as_str(), tool.tool),
            Self::Broken { via, .. } => via.clone(),
        }
    }

    /// The names under which its health is kept; none where nothing is ever asked.
    #[must_use]
    pub fn identity(&self) -> Option<Identity> {
        match self {
            Self::Http(backend) => Some(backend.identity()),
            Self::Mcp(tool) => {
                let account = format!("mcp:{}", tool.server.as_str());
                let model = format!("{account}/{}", tool.tool);
                Some(Identity { account, model })
            }
            Self::Broken { .. } => None,
        }
    }

    /// Limit of one attempt; zero where none is made.
    #[must_use]
    pub const fn timeout(&self) -> Duration {
        match self {
            Self::Http(backend) => backend.timeout,
            Self::Mcp(tool) => tool.timeout,
            Self::Broken { .. } => Duration::ZERO,
        }
    }
}

/// A model behind an HTTP API, ready to be asked.
#[derive(Clone, PartialEq)]
pub struct Backend {
    /// Where it stands in the configuration, or how it was found.
    pub path: String,
    /// Provider for people.
    pub provider: String,
    /// Model, as the provider spells it.
    pub model: String,
    /// Endpoint without the part that names an operation.
    pub endpoint: Url,
    /// Key.
    pub key: Option<Secret>,
    /// Shape of requests.
    pub api: ApiShape,
    /// Limit of one attempt.
    pub timeout: Duration,
    /// What the provider takes at most.
    pub limits: ProviderLimits,
    /// How many links before it in the chain have its provider and model, with another key or at
    /// another address.
    pub twins: usize,
}

impl fmt::Debug for Backend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // The address may hold a password.
        let endpoint = Endpoint::from(self.endpoint.to_string());
        f.debug_struct("Backend")
            .field("path", &self.path)
            .field("provider", &self.provider)
            .field("model", &self.model)
            .field("endpoint", &endpoint)
            .field("key", &self.key)
            .field("api", &self.api)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}

impl Backend {
    /// Its name: `openai/gpt-4o-mini`, and `openai/gpt-4o-mini#2` for the second of that name.
    #[must_use]
    pub fn via(&self) -> String {
        let name = format!("{}/{}", self.provider, self.model);
        match self.twins {
            0 => name,
            twins => format!("{name}#{}", twins.saturating_add(1)),
        }
    }

    /// Whether both would have the same name.
    pub(super) fn is_namesake(&self, other: &Self) -> bool {
        self.provider == other.provider && self.model == other.model
    }

    /// The names under which its health is kept; they hold no secret.
    #[must_use]
    pub fn identity(&self) -> Identity {
        // Only compared within this process, so the hasher of the standard library will do.
        let mut hasher = DefaultHasher::new();
        self.endpoint.hash(&mut hasher);
        self.key.hash(&mut hasher);
        let host = self.endpoint.host_str().unwrap_or_default();
        let account = format!("{host}#{:016x}", hasher.finish());
        Identity {
            model: format!("{account}/{}", self.model),
            account,
        }
    }

    /// Whether two are the same model of the same account, asked the same way.
    pub(super) fn is_same(&self, other: &Self) -> bool {
        self.shares_account(other) && self.model == other.model && self.api == other.api
    }

    /// Whether two share endpoint and key.
    pub(super) fn shares_account(&self, other: &Self) -> bool {
        self.endpoint == other.endpoint && self.key == other.key
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn backend(key: &str, model: &str) -> Backend {
        Backend {
            path: "p".to_owned(),
            provider: "openai".to_owned(),
            model: model.to_owned(),
            endpoint: Url::parse("http://me:hunter21@h:1/v1").unwrap(),
            key: Some(Secret::from(key.to_owned())),
            api: ApiShape::OpenaiChat,
            timeout: Duration::from_secs(1),
            limits: ProviderLimits::default(),
            twins: 0,
        }
    }

    #[test]
    fn health_is_kept_by_account_and_by_model() {
        let identity = |key, model| backend(key, model).identity();
        let first = identity("hunter22", "a");
        assert_eq!(first, identity("hunter22", "a"));
        let other_model = identity("hunter22", "b");
        assert_eq!(first.account, other_model.account);
        assert_ne!(first.model, other_model.model);
        assert_ne!(first.account, identity("hunter23", "a").account);
        assert!(!format!("{first:?}").contains("hunter"));
        let shown = format!("{:?}", backend("hunter22", "a"));
        assert!(!shown.contains("hunter"), "{shown}");
    }

    #[test]
    fn links_are_named_after_whom_they_ask() {
        let link = Link::Http(backend("k", "gpt-4o-mini"));
        assert_eq!(link.via(), "openai/gpt-4o-mini");
        let tool = McpFallback::new("p", "MiniMax", "understand_image");
        assert_eq!(Link::Mcp(tool).via(), "mcp:MiniMax/understand_image");
    }
}
