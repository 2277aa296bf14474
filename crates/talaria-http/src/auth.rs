//! Bearer tokens: who is calling and what they may do.

use std::net::SocketAddr;
use std::sync::Arc;

use actix_web::HttpRequest;
use actix_web::http::header::{self, HeaderValue};
use sha2::{Digest, Sha256};
use subtle::ConstantTimeEq;
use talaria_config::{Scope, TalariaConfig, TokenConfig};
use talaria_media::ArtifactRecord;
use talaria_types::{ErrorCode, Failure, TokenName};

use crate::glob;
use crate::problem::Rejection;

/// Who may use an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Everybody.
    Open,
    /// Everybody on loopback or with `open_probes`; elsewhere scope `metrics`.
    Probe,
    /// Everybody on loopback; elsewhere scope `metrics`.
    Metrics,
    /// Any token; the operation itself looks at what the token may see.
    AnyToken,
    /// Scope `call`.
    Call,
    /// Scope `admin`.
    Admin,
}

/// Knows the tokens.
#[derive(Debug)]
pub(crate) struct Authenticator {
    tokens: Vec<Arc<KnownToken>>,
    loopback: bool,
    open_probes: bool,
}

/// A token without its secret.
#[derive(Debug)]
pub(crate) struct KnownToken {
    name: TokenName,
    /// SHA-256 of the secret: all of one length, so comparing tells nothing of it.
    digest: [u8; 32],
    scopes: Vec<Scope>,
    servers: Vec<String>,
}

impl Authenticator {
    /// The tokens of the configuration, for a server at an address.
    pub(crate) fn new(config: &TalariaConfig, address: SocketAddr) -> Self {
        Self {
            tokens: config
                .tokens
                .iter()
                .map(|token| Arc::new(known(token)))
                .collect(),
            loopback: address.ip().is_loopback(),
            open_probes: config.open_probes,
        }
    }

    /// Finds out who is calling, and whether they may.
    pub(crate) fn admit(&self, access: Access, request: &HttpRequest) -> Result<Caller, Rejection> {
        let needed = match access {
            Access::Open => return Ok(Caller::anybody()),
            Access::Probe if self.loopback || self.open_probes => return Ok(Caller::anybody()),
            Access::Metrics if self.loopback => return Ok(Caller::anybody()),
            Access::Probe | Access::Metrics => Some(Scope::Metrics),
            Access::AnyToken => None,
            Access::Call => Some(Scope::Call),
            Access::Admin => Some(Scope::Admin),
        };
        if self.tokens.is_empty() {
            return Ok(Caller::anybody());
        }
        let caller = Caller {
            token: Some(self.identify(request)?),
        };
        if let Some(scope) = needed {
            caller.need(scope)?;
        }
        Ok(caller)
    }

    fn identify(&self, request: &HttpRequest) -> Result<Arc<KnownToken>, Rejection> {
        let mut presented = request.headers().get_all(header::AUTHORIZATION);
        let Some(value) = presented.next() else {
            return Err(unauthorized(
                "this service needs a bearer token: send `Authorization: Bearer …`",
                "Bearer realm=\"talaria\"",
            ));
        };
        if presented.next().is_some() {
            return Err(invalid_token(
                "the request has more than one Authorization header",
            ));
        }
        let Some(secret) = bearer(value) else {
            return Err(invalid_token(
                "the Authorization header is not of the form `Bearer …`",
            ));
        };
        let digest: [u8; 32] = Sha256::digest(secret).into();
        // Looks at every token, so that the time taken does not depend on which one matched.
        let mut found = None;
        for token in &self.tokens {
            if bool::from(token.digest.ct_eq(&digest)) {
                found = Some(token);
            }
        }
        found
            .map(Arc::clone)
            .ok_or_else(|| invalid_token("nobody knows this bearer token"))
    }
}

/// Who is calling: a token, or anybody where none is asked for.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    token: Option<Arc<KnownToken>>,
}

impl Caller {
    /// A caller of whom nothing is known and nothing is asked.
    pub(crate) const fn anybody() -> Self {
        Self { token: None }
    }

    /// The name of the token.
    pub(crate) fn name(&self) -> Option<TokenName> {
        self.token.as_ref().map(|token| token.name.clone())
    }

    /// Whether the token has a scope; anybody has all.
    pub(crate) fn has(&self, scope: Scope) -> bool {
        self.token
            .as_ref()
            .is_none_or(|token| token.scopes.contains(&scope))
    }

    /// Refuses a token without a scope.
    pub(crate) fn need(&self, scope: Scope) -> Result<(), Rejection> {
        if self.has(scope) {
            return Ok(());
        }
        Err(insufficient(scope))
    }

    /// Whether the token may use every server there is or will be.
    pub(crate) fn may_use_all(&self) -> bool {
        self.token
            .as_ref()
            .is_none_or(|token| token.servers.iter().any(|glob| glob == "*"))
    }

    /// Whether the token may use a server.
    pub(crate) fn may_use(&self, server: &str) -> bool {
        self.token
            .as_ref()
            .is_none_or(|token| token.servers.iter().any(|glob| glob::matches(glob, server)))
    }

    /// Refuses a server that is not among the token's. Says nothing of whether it exists.
    pub(crate) fn need_server(&self, server: &str) -> Result<(), Rejection> {
        if self.may_use(server) {
            return Ok(());
        }
        let detail = format!("this token may not use a server called `{server}`");
        Err(Failure::new(ErrorCode::Forbidden, detail).into())
    }

    /// Refuses an artifact that another token's call made.
    pub(crate) fn need_artifact(&self, record: &ArtifactRecord) -> Result<(), Rejection> {
        let Some(token) = &self.token else {
            return Ok(());
        };
        if record.owner.as_ref() == Some(&token.name) {
            return Ok(());
        }
        self.need(Scope::Artifacts)
    }
}

fn known(token: &TokenConfig) -> KnownToken {
    KnownToken {
        name: TokenName::from(token.name.as_str()),
        digest: Sha256::digest(token.token.as_bytes()).into(),
        scopes: token.scopes.clone(),
        servers: token.servers.clone(),
    }
}

/// The secret of `Bearer secret`; the scheme's case does not matter.
fn bearer(value: &HeaderValue) -> Option<&str> {
    let (scheme, secret) = value.to_str().ok()?.trim().split_once(' ')?;
    let secret = secret.trim_start();
    (scheme.eq_ignore_ascii_case("bearer") && !secret.is_empty()).then_some(secret)
}

fn invalid_token(detail: &str) -> Rejection {
    unauthorized(detail, "Bearer realm=\"talaria\", error=\"invalid_token\"")
}

fn unauthorized(detail: &str, challenge: &'static str) -> Rejection {
    Rejection::from(Failure::new(ErrorCode::Unauthorized, detail)).with_header(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static(challenge),
    )
}

fn insufficient(scope: Scope) -> Rejection {
    let (word, challenge) = match scope {
        Scope::Call => (
            "call",
            "Bearer error=\"insufficient_scope\", scope=\"call\"",
        ),
        Scope::Approve => (
            "approve",
            "Bearer error=\"insufficient_scope\", scope=\"approve\"",
        ),
        Scope::Artifacts => (
            "artifacts",
            "Bearer error=\"insufficient_scope\", scope=\"artifacts\"",
        ),
        Scope::Metrics => (
            "metrics",
            "Bearer error=\"insufficient_scope\", scope=\"metrics\"",
        ),
        Scope::Admin => (
            "admin",
            "Bearer error=\"insufficient_scope\", scope=\"admin\"",
        ),
    };
    Rejection::from(Failure::new(
        ErrorCode::Forbidden,
        format!("this token lacks the scope `{word}`"),
    ))
    .with_header(
        header::WWW_AUTHENTICATE,
        HeaderValue::from_static(challenge),
    )
}

#[cfg(test)]
mod tests {
    use std::time::UNIX_EPOCH;

    use actix_web::test::TestRequest;
    use talaria_content::{Artifact, ArtifactKind};
    use talaria_types::ArtifactId;

    use super::*;
    use crate::fixtures::{talaria_config, token};

    const LOOPBACK: &str = "127.0.0.1:8700";
    const NETWORK: &str = "10.0.0.5:8700";

    fn authenticator(address: &str) -> Authenticator {
        let mut config = talaria_config();
        config.tokens = vec![
            token("agent", &[Scope::Call], &["slack", "git-*"]),
            token("operator", &[Scope::Admin], &["*"]),
            token("scraper", &[Scope::Metrics], &[]),
            token("archive", &[Scope::Artifacts], &[]),
        ];
        Authenticator::new(&config, address.parse().unwrap())
    }

    fn with(header: &str) -> HttpRequest {
        TestRequest::get()
            .insert_header(("authorization", header))
            .to_http_request()
    }

    fn caller(name: &str) -> Caller {
        let request = with(&format!("Bearer {name}-secret"));
        authenticator(LOOPBACK)
            .admit(Access::AnyToken, &request)
            .unwrap()
    }

    fn refusal(address: &str, access: Access, request: &HttpRequest) -> ErrorCode {
        authenticator(address)
            .admit(access, request)
            .unwrap_err()
            .failure()
            .code()
    }

    #[test]
    fn asks_nothing_where_no_token_is_configured() {
        let open = Authenticator::new(&talaria_config(), LOOPBACK.parse().unwrap());
        let request = TestRequest::get().to_http_request();
        for access in [
            Access::AnyToken,
            Access::Call,
            Access::Admin,
            Access::Metrics,
        ] {
            let caller = open.admit(access, &request).unwrap();
            assert!(
                caller.may_use_all() && caller.has(Scope::Artifacts),
                "{access:?}"
            );
            assert_eq!(caller.name(), None);
        }
    }

    #[test]
    fn knows_a_token_by_its_secret() {
        for header in [
            "Bearer agent-secret",
            "bearer agent-secret",
            "BEARER   agent-secret",
        ] {
            let caller = authenticator(LOOPBACK)
                .admit(Access::Call, &with(header))
                .unwrap();
            assert_eq!(caller.name(), Some(TokenName::from("agent")), "{header}");
        }
        for header in [
            "Bearer agent-secre",
            "Bearer agent-secrets",
            "Bearer AGENT-SECRET",
            "Bearer ",
            "Bearer",
            "Basic YWdlbnQtc2VjcmV0",
            "agent-secret",
        ] {
            let code = refusal(LOOPBACK, Access::Call, &with(header));
            assert_eq!(code, ErrorCode::Unauthorized, "{header}");
        }
        let twice = TestRequest::get()
            .append_header(("authorization", "Bearer agent-secret"))
            .append_header(("authorization", "Bearer operator-secret"))
            .to_http_request();
        assert_eq!(
            refusal(LOOPBACK, Access::AnyToken, &twice),
            ErrorCode::Unauthorized
        );
        let none = TestRequest::get().to_http_request();
        assert_eq!(
            refusal(LOOPBACK, Access::AnyToken, &none),
            ErrorCode::Unauthorized
        );
    }

    #[test]
    fn asks_for_the_scope_of_the_operation() {
        let agent = with("Bearer agent-secret");
        assert_eq!(
            refusal(LOOPBACK, Access::Admin, &agent),
            ErrorCode::Forbidden
        );
        let operator = with("Bearer operator-secret");
        assert_eq!(
            refusal(LOOPBACK, Access::Call, &operator),
            ErrorCode::Forbidden
        );
        assert!(
            authenticator(LOOPBACK)
                .admit(Access::Admin, &operator)
                .is_ok()
        );
    }

    #[test]
    fn opens_metrics_and_probes_on_loopback_only() {
        let nobody = TestRequest::get().to_http_request();
        for access in [Access::Metrics, Access::Probe] {
            assert!(authenticator(LOOPBACK).admit(access, &nobody).is_ok());
            assert_eq!(refusal(NETWORK, access, &nobody), ErrorCode::Unauthorized);
            let agent = with("Bearer agent-secret");
            assert_eq!(refusal(NETWORK, access, &agent), ErrorCode::Forbidden);
            let scraper = with("Bearer scraper-secret");
            assert!(authenticator(NETWORK).admit(access, &scraper).is_ok());
        }
        let mut config = talaria_config();
        config.tokens = vec![token("agent", &[Scope::Call], &["*"])];
        config.open_probes = true;
        let exempt = Authenticator::new(&config, NETWORK.parse().unwrap());
        assert!(exempt.admit(Access::Probe, &nobody).is_ok());
        assert!(exempt.admit(Access::Metrics, &nobody).is_err());
    }

    #[test]
    fn limits_a_token_to_its_servers() {
        let agent = caller("agent");
        assert!(agent.may_use("slack") && agent.may_use("git-hub"));
        assert!(!agent.may_use("slack2") && !agent.may_use("git") && !agent.may_use_all());
        assert!(caller("operator").may_use_all());
        assert!(!caller("scraper").may_use("slack"));
    }

    #[test]
    fn gives_an_artifact_to_its_maker_and_to_the_scope() {
        let record = |owner: Option<&str>| ArtifactRecord {
            artifact: Artifact {
                id: ArtifactId::generate(),
                kind: ArtifactKind::Document,
                name: "a.pdf".to_owned(),
                path: "/a.pdf".into(),
                url: None,
                media_type: "application/pdf".to_owned(),
                declared_type: None,
                bytes: 1,
                sha256: String::new(),
                source_uri: None,
            },
            owner: owner.map(TokenName::from),
            created: UNIX_EPOCH,
        };
        let may = |name: &str, owner| caller(name).need_artifact(&record(owner)).is_ok();
        assert!(may("agent", Some("agent")));
        assert!(!may("agent", Some("operator")));
        assert!(!may("agent", None));
        assert!(may("archive", Some("agent")) && may("archive", None));
        assert!(!may("operator", Some("agent")));
        assert!(
            Caller::anybody()
                .need_artifact(&record(Some("agent")))
                .is_ok()
        );
    }

    #[test]
    fn never_prints_a_secret() {
        assert!(!format!("{:?}", authenticator(LOOPBACK)).contains("-secret"));
    }
}
