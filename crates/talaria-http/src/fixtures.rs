//! Configurations that tests start from.

use std::num::NonZeroUsize;
use std::time::Duration;

use talaria_config::{
    CallsConfig, ImagesConfig, LimitsConfig, MediaConfig, Scope, TalariaConfig, TokenConfig,
};

const PLACES: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// A section without tokens, with small limits.
pub(crate) fn talaria_config() -> TalariaConfig {
    TalariaConfig {
        listen: ([127, 0, 0, 1], 0).into(),
        home: "/nonexistent".into(),
        tokens: Vec::new(),
        allowed_hosts: Vec::new(),
        open_probes: false,
        media: MediaConfig {
            max_bytes: 1 << 30,
            ttl: Duration::from_secs(3600),
            grace: Duration::from_secs(60),
            public_url: None,
            fsync: false,
        },
        images: ImagesConfig::default(),
        calls: CallsConfig {
            max_call_duration: Duration::from_secs(30),
            drain_timeout: Duration::from_secs(2),
            wrap_untrusted: false,
        },
        limits: LimitsConfig {
            message_bytes: 1 << 24,
            body_bytes: 1 << 20,
            pending_per_server: PLACES,
            pending_per_token: PLACES,
            stderr_log_bytes: 1 << 16,
            blocking_jobs: PLACES,
        },
        watch_config: false,
    }
}

/// A token `<name>-secret`.
pub(crate) fn token(name: &str, scopes: &[Scope], servers: &[&str]) -> TokenConfig {
    TokenConfig {
        name: name.to_owned(),
        token: format!("{name}-secret"),
        scopes: scopes.to_vec(),
        servers: servers.iter().map(|glob| (*glob).to_owned()).collect(),
    }
}
