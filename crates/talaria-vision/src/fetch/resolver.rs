//! From names to addresses, each of which is checked before anybody connects to it.

use std::error::Error;
use std::fmt;
use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use talaria_types::metadata::is_metadata_name;

use super::address::{Closed, Rules, check};

/// Most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 8;

/// Addresses of a name, some time later.
pub type Lookup = Pin<Box<dyn Future<Output = io::Result<Vec<IpAddr>>> + Send>>;

/// Finds the addresses of names. Tests bring their own.
pub trait Resolver: Send + Sync + fmt::Debug {
    /// Every address of a name.
    fn resolve(&self, host: &str) -> Lookup;
}

/// The resolver of the system.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn resolve(&self, host: &str) -> Lookup {
        let host = host.to_owned();
        Box::pin(async move {
            let found = tokio::net::lookup_host((host.as_str(), 0)).await?;
            Ok(found.map(|address| address.ip()).collect())
        })
    }
}

/// Why nobody connects; travels through the HTTP client as the cause of its error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The name has no address, or nobody knows one.
    NoAddress,
    /// One of the addresses is closed.
    Closed(Closed),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoAddress => "its host has no address",
            Self::Closed(Closed::Metadata) => "its host is a metadata service",
            Self::Closed(Closed::Private) => {
                "its host is in a private or special network (`security.allow_private_urls`)"
            }
        })
    }
}

impl Error for Refused {}

/// Hands the HTTP client only what has passed. What is checked is what is connected to, so a
/// name that changes its mind between the two has no chance.
#[derive(Clone, Debug)]
pub(super) struct CheckedResolver {
    pub(super) inner: Arc<dyn Resolver>,
    pub(super) rules: Arc<Rules>,
}

impl CheckedResolver {
    async fn addresses(self, host: String) -> Result<Vec<SocketAddr>, Refused> {
        if is_metadata_name(&host) {
            return Err(Refused::Closed(Closed::Metadata));
        }
        let found = self.inner.resolve(&host).await;
        let found = found.map_err(|error| {
            tracing::debug!(host, error = %error, "no address for the host of a picture");
            Refused::NoAddress
        })?;
        if found.is_empty() {
            return Err(Refused::NoAddress);
        }
        for address in &found {
            check(*address, &self.rules).map_err(Refused::Closed)?;
        }
        let found = found.into_iter().take(MAX_ADDRESSES);
        Ok(found.map(|address| SocketAddr::new(address, 0)).collect())
    }
}

impl Resolve for CheckedResolver {
    fn resolve(&self, name: Name) -> Resolving {
        let lookup = self.clone().addresses(name.as_str().to_owned());
        Box::pin(async move {
            let found = lookup.await?;
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}
