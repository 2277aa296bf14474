//! What travels with a call from the first handler to the last effect.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio_util::sync::CancellationToken;
use tracing::Span;

use crate::{Deadline, RequestId, SessionKey, TokenName};

/// The live model route of a request: who will read the delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Route {
    /// Provider name, for example `anthropic`.
    pub provider: String,
    /// Model name as the provider spells it.
    pub model: String,
    /// API shape, for example `openai-responses`; the provider's default when absent.
    #[serde(default)]
    pub api: Option<String>,
}

/// The context of one call. First parameter of everything that serves it.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// Id for logs, spans and error bodies.
    pub request_id: RequestId,
    /// The caller's conversation, when it names one.
    pub session: Option<SessionKey>,
    /// The token the caller authenticated with, when tokens are configured.
    pub token: Option<TokenName>,
    /// The model behind the caller, when it names one.
    pub route: Option<Route>,
    /// Whether the caller may approve, and did approve, a tool that writes on a server that is
    /// not trusted.
    pub approved: bool,
    /// When the caller stops waiting.
    pub deadline: Deadline,
    /// Cancelled when the caller goes away.
    pub cancel: CancellationToken,
    /// The span that work for this call belongs to.
    pub span: Span,
}

impl CallContext {
    /// A context with a fresh id and nothing known of the caller.
    #[must_use]
    pub fn new(deadline: Deadline) -> Self {
        Self {
            request_id: RequestId::generate(),
            session: None,
            token: None,
            route: None,
            approved: false,
            deadline,
            cancel: CancellationToken::new(),
            span: Span::current(),
        }
    }
}
