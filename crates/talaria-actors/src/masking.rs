//! Configured secrets in what servers say, wherever it goes: results, failures, tool lists.

use std::sync::Arc;

use parking_lot::RwLock;
use serde_json::Value;
use talaria_config::SecretValues;
use talaria_content::{Masker, visible_line};
use talaria_mcp::{ClosedBy, PeerInfo, Rpc, RpcLimits};
use talaria_types::runtime::BlockingPool;
use talaria_types::{Deadline, Failure, RawResult, ServerName};

use crate::upstream::{ConnectRequest, Connector, Job, Upstream};

/// Members of a tool and of its schemas whose texts mean something to who calls it or judges a
/// call; `const` and `enum` do with whatever they hold.
const BINDING: [&str; 9] = [
    "name", "type", "format", "pattern", "required", "$ref", "$id", "$anchor", "$schema",
];

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
        let server = request.config.name.clone();
        let connecting = self.inner.connect(request);
        let masker = self.masker.clone();
        let blocking = self.blocking.clone();
        Box::pin(async move {
            match connecting.await {
                Ok(inner) => Ok(Arc::new(MaskedUpstream {
                    server,
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
    server: ServerName,
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
        let server = self.server.clone();
        Box::pin(async move {
            match asking.await {
                Ok(mut raw) if lists_tools => {
                    let masker = masker.current();
                    if masker.is_empty() {
                        return Ok(raw);
                    }
                    let masking = move || {
                        mask_tools(&masker, &server, &mut raw.json);
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

/// Masks what is said in a page of a tool list. A tool that has a secret in what a caller sends
/// back, where it cannot be replaced, is left out.
fn mask_tools(masker: &Masker, server: &ServerName, page: &mut Value) {
    let Some(tools) = page.get_mut("tools").and_then(Value::as_array_mut) else {
        return;
    };
    tools.retain_mut(|tool| {
        let is_clean = mask_unbound(masker, tool, false);
        if !is_clean {
            let name = tool.get("name").and_then(Value::as_str).unwrap_or_default();
            let tool = visible_line(&masker.mask(name));
            tracing::warn!(%server, tool, "a tool is left out: what calls it holds a secret");
        }
        is_clean
    });
}

/// Masks every text that nobody sends back; whether the rest holds no secret.
fn mask_unbound(masker: &Masker, value: &mut Value, is_bound: bool) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => true,
        Value::String(text) if is_bound => !masker.finds(text),
        Value::String(text) => {
            masker.mask_text(text);
            true
        }
        Value::Array(items) => items
            .iter_mut()
            .all(|item| mask_unbound(masker, item, is_bound)),
        Value::Object(members) => members.iter_mut().all(|(key, member)| {
            // A property may have the name of a keyword; what describes it is an object.
            let binds = BINDING.contains(&key.as_str()) && !member.is_object()
                || key == "const"
                || key == "enum";
            !masker.finds(key) && mask_unbound(masker, member, is_bound || binds)
        }),
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

    fn masked_tools(tools: &Value) -> Value {
        let mut page = json!({ "tools": tools, "nextCursor": "a-secret-1" });
        mask_tools(
            &Masker::new(["a-secret-1"]),
            &ServerName::from("s"),
            &mut page,
        );
        assert_eq!(page["nextCursor"], "a-secret-1", "the server's own");
        page["tools"].take()
    }

    #[test]
    fn tool_lists_lose_secrets_in_every_text() {
        let tools = masked_tools(&json!([{
            "name": "echo",
            "description": "uses a-secret-1",
            "inputSchema": { "type": "object", "properties": {
                "name": { "type": "string", "description": "a-secret-1", "$comment": "a-secret-1" },
                "x": { "title": "a-secret-1", "default": ["a-secret-1"], "enum": ["one"] },
            }, "required": ["name"] },
            "annotations": { "title": "a-secret-1" },
            "_meta": { "vendor/x": "a-secret-1" },
        }]));
        assert_eq!(
            tools,
            json!([{
                "name": "echo",
                "description": "uses [REDACTED]",
                "inputSchema": { "type": "object", "properties": {
                    "name": { "type": "string", "description": "[REDACTED]", "$comment": "[REDACTED]" },
                    "x": { "title": "[REDACTED]", "default": ["[REDACTED]"], "enum": ["one"] },
                }, "required": ["name"] },
                "annotations": { "title": "[REDACTED]" },
                "_meta": { "vendor/x": "[REDACTED]" },
            }])
        );
    }

    #[test]
    fn tools_that_need_a_secret_to_be_called_are_left_out() {
        for schema in [
            json!({ "properties": { "a-secret-1": {} } }),
            json!({ "properties": { "x": { "enum": ["a-secret-1"] } } }),
            json!({ "properties": { "x": { "const": { "y": "a-secret-1" } } } }),
            json!({ "required": ["a-secret-1"] }),
            json!({ "properties": { "x": { "pattern": "^a-secret-1$" } } }),
        ] {
            let tools = masked_tools(&json!([
                { "name": "bad", "inputSchema": schema },
                { "name": "good", "inputSchema": {} },
            ]));
            assert_eq!(tools, json!([{ "name": "good", "inputSchema": {} }]));
        }
        assert_eq!(masked_tools(&json!([{ "name": "a-secret-1" }])), json!([]));
    }
}
