//! Configured secrets in what servers say, wherever it goes: results, failures, tool lists.

use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;
use talaria_config::SecretValues;
use talaria_content::Masker;
use talaria_mcp::{ClosedBy, PeerInfo, Rpc, RpcLimits};
use talaria_types::runtime::BlockingPool;
use talaria_types::{Deadline, Failure, RawResult};

use crate::upstream::{ConnectRequest, Connector, Job, Upstream};

/// Texts of a tool list that nobody sends back.
const PROSE: [&str; 4] = ["description", "title", "default", "examples"];

/// Finds configured secrets; every clone sees what is added to them.
#[derive(Clone, Debug, Default)]
pub struct SharedMasker(Arc<RwLock<Sought>>);

#[derive(Debug, Default)]
struct Sought {
    secrets: SecretValues,
    masker: Masker,
}

impl Sought {
    fn of(secrets: SecretValues) -> Self {
        Self {
            masker: Masker::new(secrets.expose()),
            secrets,
        }
    }
}

impl SharedMasker {
    /// Looks for these secrets.
    #[must_use]
    pub fn new(secrets: SecretValues) -> Self {
        Self(Arc::new(RwLock::new(Sought::of(secrets))))
    }

    /// Looks for these as well from now on. Nothing is forgotten: servers that drain, and those
    /// whose newer entry is broken, still use older ones.
    pub fn learn(&self, newer: SecretValues) {
        let mut secrets = self.0.read().secrets.clone();
        secrets.extend(newer);
        let sought = Sought::of(secrets);
        *self.0.write() = sought;
    }

    /// What is looked for now.
    #[must_use]
    pub fn current(&self) -> Masker {
        self.0.read().masker.clone()
    }

    /// A failure whose words hold no secret.
    #[must_use]
    pub fn mask_failure(&self, failure: Failure) -> Failure {
        let masker = self.current();
        if masker.is_empty() {
            return failure;
        }
        failure.map_words(|words| masker.mask(words).into_owned())
    }
}

/// Makes sessions whose failures and tool lists hold no secret. Results are masked where they
/// are delivered.
#[derive(Debug)]
pub(crate) struct MaskingConnector {
    pub(crate) inner: Arc<dyn Connector>,
    pub(crate) masker: SharedMasker,
    /// Where tool lists are masked: they may be long.
    pub(crate) blocking: BlockingPool,
}

impl Connector for MaskingConnector {
    fn connect(&self, request: ConnectRequest) -> Job<Result<Arc<dyn Upstream>, Failure>> {
        let connecting = self.inner.connect(request);
        let masker = self.masker.clone();
        let blocking = self.blocking.clone();
        Box::pin(async move {
            match connecting.await {
                Ok(inner) => Ok(Arc::new(MaskedUpstream {
                    peer: masked_peer(&masker.current(), inner.peer()),
                    inner,
                    masker,
                    blocking,
                }) as Arc<dyn Upstream>),
                Err(failure) => Err(masker.mask_failure(failure)),
            }
        })
    }
}

/// What a server says of itself, its instructions among it, is shown to operators.
fn masked_peer(masker: &Masker, peer: &PeerInfo) -> PeerInfo {
    let mut peer = peer.clone();
    masker.mask_text(&mut peer.name);
    masker.mask_text(&mut peer.version);
    if let Some(instructions) = &mut peer.instructions {
        masker.mask_text(instructions);
    }
    peer
}

#[derive(Debug)]
struct MaskedUpstream {
    peer: PeerInfo,
    inner: Arc<dyn Upstream>,
    masker: SharedMasker,
    blocking: BlockingPool,
}

impl Upstream for MaskedUpstream {
    fn peer(&self) -> &PeerInfo {
        &self.peer
    }

    fn request(&self, rpc: Rpc, limits: RpcLimits) -> Job<Result<RawResult, Failure>> {
        let lists_tools = matches!(rpc, Rpc::ListTools { .. });
        let deadline = limits.deadline;
        let asking = self.inner.request(rpc, limits);
        let (masker, blocking) = (self.masker.clone(), self.blocking.clone());
        Box::pin(async move {
            match asking.await {
                Ok(mut raw) if lists_tools => {
                    let masker = masker.current();
                    if masker.is_empty() {
                        return Ok(raw);
                    }
                    let masking = move || {
                        mask_prose(&masker, &mut raw.json);
                        raw
                    };
                    blocking.run(deadline, masking).await
                }
                Ok(raw) => Ok(raw),
                Err(failure) => Err(masker.mask_failure(failure)),
            }
        })
    }

    fn closed(&self) -> Job<ClosedBy> {
        self.inner.closed()
    }

    fn close(&self, deadline: Deadline) -> Job<()> {
        self.inner.close(deadline)
    }
}

/// Masks what is said in a tool list; names and what a caller has to send back stay.
fn mask_prose(masker: &Masker, value: &mut Value) {
    if masker.is_empty() {
        return;
    }
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        Value::Array(items) => {
            for item in items {
                mask_prose(masker, item);
            }
        }
        Value::Object(members) => {
            for (key, member) in members {
                if PROSE.contains(&key.as_str()) && !member.is_object() {
                    masker.mask_value(member);
                } else {
                    mask_prose(masker, member);
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;
    use talaria_config::{Config, Secret};
    use talaria_types::ErrorCode;

    use super::*;

    #[test]
    fn s02_failures_lose_secrets_and_learn_new_ones() {
        let masker = SharedMasker::new(secrets("first-secret"));
        let clone = masker.clone();
        let failure = || {
            Failure::new(ErrorCode::ConnectFailed, "no first-secret here")
                .with_server_words("but second-secret")
        };
        let masked = masker.mask_failure(failure());
        assert_eq!(masked.detail(), "no [REDACTED] here");
        assert_eq!(masked.server_words(), Some("but second-secret"));
        masker.learn(secrets("second-secret"));
        let masked = clone.mask_failure(failure());
        assert_eq!(masked.detail(), "no [REDACTED] here");
        assert_eq!(masked.server_words(), Some("but [REDACTED]"));
    }

    /// A configuration's secrets, one of them.
    fn secrets(token: &str) -> SecretValues {
        let mut config = Config::with_home(std::path::PathBuf::new());
        config.gate.main.api_key = Some(Secret::from(token.to_owned()));
        config.secrets()
    }

    #[test]
    fn tool_lists_lose_secrets_and_keep_names() {
        let mut listed = json!({ "tools": [{
            "name": "a-secret-1",
            "description": "uses a-secret-1",
            "inputSchema": { "properties": { "a-secret-1": {
                "title": "a-secret-1", "default": ["a-secret-1"], "enum": ["a-secret-1"],
            } } },
        }] });
        mask_prose(&Masker::new(["a-secret-1"]), &mut listed);
        assert_eq!(
            listed,
            json!({ "tools": [{
                "name": "a-secret-1",
                "description": "uses [REDACTED]",
                "inputSchema": { "properties": { "a-secret-1": {
                    "title": "[REDACTED]", "default": ["[REDACTED]"], "enum": ["a-secret-1"],
                } } },
            }] })
        );
    }
}
