//! How a server over HTTP is reached.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;

use url::Url;

use super::Secret;
use crate::secrets::mask_url;

/// A server over HTTP.
#[derive(Clone, PartialEq)]
pub struct HttpConfig {
    /// Endpoint, http or https; on a unix socket the host is `localhost`.
    pub url: String,
    /// Headers sent with every request; values are secrets.
    pub headers: BTreeMap<String, String>,
    /// Which form of HTTP is spoken.
    pub kind: HttpKind,
    /// The socket that takes the place of the network.
    pub unix_socket: Option<PathBuf>,
    /// Certificates.
    pub tls: TlsConfig,
    /// Whether a redirect to another origin loses every configured header, not only those that
    /// log in.
    pub strict_redirect_headers: bool,
    /// Whether the endpoint is not probed before the first handshake.
    pub skip_preflight: bool,
    /// A further header, name and value, which says who calls.
    pub identity_header: Option<(String, String)>,
}

impl HttpConfig {
    /// An address, everything else at its default.
    #[must_use]
    pub fn new(url: impl Into<String>) -> Self {
        Self {
            url: url.into(),
            headers: BTreeMap::new(),
            kind: HttpKind::Auto,
            unix_socket: None,
            tls: TlsConfig::default(),
            strict_redirect_headers: false,
            skip_preflight: false,
            identity_header: None,
        }
    }

    /// The endpoint as the file has it, with user, password and query masked.
    #[must_use]
    pub fn masked_url(&self) -> String {
        let Some(socket) = &self.unix_socket else {
            return mask_url(&self.url);
        };
        let path =
            Url::parse(&self.url).map_or_else(|_| String::new(), |url| url.path().to_owned());
        format!("unix://{}:{path}", socket.display())
    }
}

impl fmt::Debug for HttpConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let identity = self.identity_header.as_ref().map(|(name, _)| name);
        f.debug_struct("Http")
            .field("url", &self.masked_url())
            .field("headers", &self.headers.keys())
            .field("kind", &self.kind)
            .field("tls", &self.tls)
            .field("strict_redirect_headers", &self.strict_redirect_headers)
            .field("skip_preflight", &self.skip_preflight)
            .field("identity_header", &identity)
            .finish()
    }
}

/// Which form of HTTP a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HttpKind {
    /// Streamable HTTP, or the older HTTP+SSE where the first connect shows that it is not
    /// understood.
    Auto,
    /// Streamable HTTP.
    Streamable,
    /// The older HTTP+SSE.
    Sse,
}

impl HttpKind {
    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Streamable => "http",
            Self::Sse => "sse",
        }
    }
}

/// Certificates of a server over HTTP.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TlsConfig {
    /// What the server's certificate is checked with.
    pub verify: Verify,
    /// Our own certificate (PEM); holds the key as well where `client_key` is absent.
    pub client_cert: Option<PathBuf>,
    /// Its key (PEM).
    pub client_key: Option<PathBuf>,
    /// The password of the key.
    pub key_password: Option<Secret>,
}

/// What a server's certificate is checked with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Verify {
    /// The authorities this machine trusts.
    #[default]
    System,
    /// Nothing.
    Off,
    /// The authorities in a file (PEM).
    Ca(PathBuf),
}
