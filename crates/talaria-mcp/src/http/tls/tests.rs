//! Certificates, against a server with encryption. The authority and what it signed stand in
//! `fixtures`; nobody else trusts it.

use std::path::PathBuf;

use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use talaria_config::HttpConfig;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::TlsAcceptor;

use super::*;
use crate::http::Agent;

const PASSWORD: &str = "open-sesame";

fn fixture(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("src/http/tls/fixtures")
        .join(name)
}

/// A server that says hello to whom it lets in.
async fn server(wants_certificate: bool) -> String {
    set_up();
    let chain = CertificateDer::pem_file_iter(fixture("server.pem")).unwrap();
    let chain = chain.map(Result::unwrap).collect();
    let key = PrivateKeyDer::from_pem_file(fixture("server.key")).unwrap();
    let builder = ServerConfig::builder();
    let builder = if wants_certificate {
        let mut roots = rustls::RootCertStore::empty();
        let authority = CertificateDer::from_pem_file(fixture("ca.pem")).unwrap();
        roots.add(authority).unwrap();
        let verifier = WebPkiClientVerifier::builder(Arc::new(roots))
            .build()
            .unwrap();
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    let acceptor = TlsAcceptor::from(Arc::new(builder.with_single_cert(chain, key).unwrap()));
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}/mcp", listener.local_addr().unwrap());
    drop(runtime::spawn("tls_server", async move {
        while let Ok((stream, _)) = listener.accept().await {
            let acceptor = acceptor.clone();
            drop(runtime::spawn("tls_connection", async move {
                let Ok(mut stream) = acceptor.accept(stream).await else {
                    return;
                };
                let mut head = Vec::new();
                while !head.ends_with(b"\r\n\r\n") {
                    if stream.read_buf(&mut head).await.unwrap_or(0) == 0 {
                        return;
                    }
                }
                drop(
                    stream
                        .write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
                        .await,
                );
            }));
        }
    }));
    url
}

async fn is_reached(url: &str, tls: TlsConfig) -> Result<bool, Failure> {
    let mut config = HttpConfig::new(url);
    config.tls = tls;
    let agent = Agent::new(&config, &std::collections::BTreeMap::new())?;
    let headers = http::HeaderMap::new();
    let answer = agent
        .send(http::Method::GET, agent.endpoint(), headers, None)
        .await;
    Ok(answer.is_ok_and(|answer| answer.status().is_success()))
}

fn verified_by(name: &str) -> TlsConfig {
    TlsConfig {
        verify: Verify::Ca(fixture(name)),
        ..TlsConfig::default()
    }
}

#[tokio::test]
async fn an_authority_of_ones_own_is_trusted_where_it_is_named() {
    let url = server(false).await;
    let off = TlsConfig {
        verify: Verify::Off,
        ..TlsConfig::default()
    };
    for (tls, expected) in [
        (verified_by("ca.pem"), true),
        (verified_by(""), true),
        (verified_by("client.pem"), false),
        (off, true),
    ] {
        let shown = format!("{tls:?}");
        assert_eq!(is_reached(&url, tls).await.unwrap(), expected, "{shown}");
    }
    // Without any authority on this machine it is an error, otherwise a refusal.
    assert!(
        !is_reached(&url, TlsConfig::default())
            .await
            .unwrap_or(false)
    );
}

#[tokio::test]
async fn we_show_a_certificate_where_one_is_configured() {
    let url = server(true).await;
    let with = |key: Option<&str>, password: Option<&str>| TlsConfig {
        client_cert: Some(fixture("client.pem")),
        client_key: key.map(fixture),
        key_password: password.map(|password| Secret::from(password.to_owned())),
        ..verified_by("ca.pem")
    };
    assert!(!is_reached(&url, verified_by("ca.pem")).await.unwrap());
    assert!(
        is_reached(&url, with(Some("client.key"), None))
            .await
            .unwrap()
    );
    let locked = Some("client.locked.key");
    assert!(
        is_reached(&url, with(locked, Some(PASSWORD)))
            .await
            .unwrap()
    );
    for (tls, words) in [
        (with(locked, Some("wrong")), "cannot be opened"),
        (with(locked, None), "takes a password"),
        (with(None, None), "no certificate with its key"),
        (with(Some("absent.key"), None), "absent.key cannot be read"),
    ] {
        let failure = is_reached(&url, tls).await.unwrap_err();
        assert!(failure.detail().contains(words), "{}", failure.detail());
        assert!(!format!("{failure:?}").contains("wrong"));
    }
}

#[test]
fn a_file_without_certificates_is_named() {
    set_up();
    for name in ["server.key", "absent.pem"] {
        let failure = apply(reqwest::Client::builder(), &verified_by(name), "https").unwrap_err();
        assert!(failure.detail().contains(name), "{}", failure.detail());
    }
}
