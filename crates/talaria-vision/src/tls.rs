//! What every HTTP client needs before it is set up.

/// Sees to it that TLS has its cryptography.
pub(crate) fn set_up() {
    if rustls::crypto::CryptoProvider::get_default().is_none() {
        // Losing a race here means that somebody else has just done it.
        drop(rustls::crypto::ring::default_provider().install_default());
    }
}
