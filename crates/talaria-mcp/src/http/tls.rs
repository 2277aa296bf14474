//! Certificates: whom we trust, and how we show who we are.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use pkcs8::der::pem::LineEnding;
use pkcs8::{EncryptedPrivateKeyInfoRef, SecretDocument};
use reqwest::{Certificate, ClientBuilder, Identity};
use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use talaria_config::{Secret, TlsConfig, Verify};
use talaria_types::{Failure, runtime};
use tokio::time::Instant;

use super::agent::unusable;

/// How long the authorities this machine trusts are not read again.
const AUTHORITIES_AGE: Duration = Duration::from_secs(3600);

/// What stands around a key that takes a password.
const LOCKED_BEGIN: &str = "-----BEGIN ENCRYPTED PRIVATE KEY-----";
const LOCKED_END: &str = "-----END ENCRYPTED PRIVATE KEY-----";

/// Reading the authorities takes some ten milliseconds and half a megabyte, so servers share
/// what was read.
static SHARED: Mutex<Option<(Instant, Arc<ClientConfig>)>> = Mutex::new(None);

/// Sets up what an endpoint is checked with and what we identify ourselves with.
///
/// # Errors
/// A file cannot be read or holds no certificate or key.
pub(super) fn apply(
    builder: ClientBuilder,
    config: &TlsConfig,
    scheme: &str,
) -> Result<ClientBuilder, Failure> {
    set_up();
    let is_plain = config.verify == Verify::System && config.client_cert.is_none();
    if is_plain {
        return match shared() {
            Ok(shared) => Ok(builder.tls_backend_preconfigured(ClientConfig::clone(&shared))),
            // A server without encryption needs no authorities.
            Err(_) if scheme == "http" => Ok(builder.tls_certs_only([])),
            Err(failure) => Err(failure),
        };
    }
    let builder = match &config.verify {
        Verify::System => builder,
        Verify::Off => builder.tls_danger_accept_invalid_certs(true),
        Verify::Ca(path) => builder.tls_certs_only(authorities(path)?),
    };
    match &config.client_cert {
        Some(certificate) => Ok(builder.identity(identity(certificate, config)?)),
        None => Ok(builder),
    }
}

/// Sees to it that TLS has its cryptography.
pub(crate) fn set_up() {
    if CryptoProvider::get_default().is_none() {
        // Losing a race here means that somebody else has just done it.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}

/// What is used where nothing is configured.
pub(crate) fn shared() -> Result<Arc<ClientConfig>, Failure> {
    let mut shared = SHARED.lock();
    let now = runtime::now();
    if let Some((read, config)) = shared.as_ref()
        && now.duration_since(*read) < AUTHORITIES_AGE
    {
        return Ok(Arc::clone(config));
    }
    let config = Arc::new(system_config()?);
    *shared = Some((now, Arc::clone(&config)));
    Ok(config)
}

fn system_config() -> Result<ClientConfig, Failure> {
    use rustls_platform_verifier::BuilderVerifierExt;

    let failed = |error: rustls::Error| {
        unusable("the certificate authorities of this machine cannot be read").caused_by(error)
    };
    let mut config = ClientConfig::builder()
        .with_platform_verifier()
        .map_err(failed)?
        .with_no_client_auth();
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

/// Certificates in a file, or in the files of a folder.
fn authorities(path: &Path) -> Result<Vec<Certificate>, Failure> {
    let files = if path.is_dir() {
        let entries =
            std::fs::read_dir(path).map_err(|error| unreadable("ssl_verify", path, error))?;
        entries
            .filter_map(|entry| Some(entry.ok()?.path()))
            .filter(|path| path.is_file())
            .collect()
    } else {
        vec![path.to_path_buf()]
    };
    let mut found = Vec::new();
    for file in files {
        let text = std::fs::read(&file).map_err(|error| unreadable("ssl_verify", &file, error))?;
        found.extend(Certificate::from_pem_bundle(&text).unwrap_or_default());
    }
    if found.is_empty() {
        let detail = format!("ssl_verify: {} holds no certificate (PEM)", path.display());
        return Err(unusable(detail));
    }
    Ok(found)
}

fn identity(certificate: &Path, config: &TlsConfig) -> Result<Identity, Failure> {
    let mut text = read_text("client_cert", certificate)?;
    if let Some(key) = &config.client_key {
        text.push('\n');
        text.push_str(&read_text("client_key", key)?);
    }
    if let Some(unlocked) = unlocked(&text, config.key_password.as_ref())? {
        text = unlocked;
    }
    Identity::from_pem(text.as_bytes()).map_err(|error| {
        let detail = "client_cert and client_key hold no certificate with its key (PEM)";
        unusable(detail).caused_by(error)
    })
}

/// The same with its key opened, if that takes a password (PKCS #8).
fn unlocked(text: &str, password: Option<&Secret>) -> Result<Option<String>, Failure> {
    let Some((before, rest)) = text.split_once(LOCKED_BEGIN) else {
        return Ok(None);
    };
    let Some(password) = password else {
        let detail = "the key of client_cert takes a password, and none is configured";
        return Err(unusable(detail));
    };
    let (inside, after) = rest.split_once(LOCKED_END).unwrap_or_default();
    let unlock = || -> pkcs8::Result<_> {
        let (_, locked) =
            SecretDocument::from_pem(&format!("{LOCKED_BEGIN}{inside}{LOCKED_END}\n"))?;
        let locked = EncryptedPrivateKeyInfoRef::try_from(locked.as_bytes())?;
        let key = locked.decrypt(password.expose())?;
        Ok(key.to_pem("PRIVATE KEY", LineEnding::LF)?)
    };
    let key = unlock().map_err(|error| {
        unusable("the key of client_cert cannot be opened with its password").caused_by(error)
    })?;
    Ok(Some(format!("{before}{after}\n{}", key.as_str())))
}

fn read_text(key: &str, path: &Path) -> Result<String, Failure> {
    std::fs::read_to_string(path).map_err(|error| unreadable(key, path, error))
}

fn unreadable(key: &str, path: &Path, error: std::io::Error) -> Failure {
    let detail = format!("{key}: {} cannot be read ({error})", path.display());
    unusable(detail).caused_by(error)
}

#[cfg(test)]
mod tests;
