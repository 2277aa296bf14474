//! Names that may lead to some addresses only.
//!
//! Where a redirect leads is looked up before it is followed, and the name may say something else
//! a moment later. So whoever follows one connects with this resolver: it hands out only what has
//! passed, each time somebody connects.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use talaria_types::metadata::{is_metadata, is_metadata_name};

use super::{proxy, redirect};

/// Why nobody connects.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("its host is where no redirect may lead")]
struct Refused;

/// Refuses names of places where no redirect may lead.
#[derive(Clone, Debug)]
pub(super) struct Redirected {
    /// The proxies that were configured here: these may be inside, and look names up themselves.
    proxies: Arc<BTreeSet<String>>,
    is_refused: fn(IpAddr) -> bool,
}

impl Redirected {
    /// For whom somebody in the open network sent: not into the inner one.
    pub(super) fn from_outside(environment: &BTreeMap<String, String>) -> Self {
        Self {
            proxies: Arc::new(proxy::hosts(environment)),
            is_refused: redirect::is_inner,
        }
    }

    /// For whom somebody inside sent: not to a metadata service.
    pub(super) fn from_inside(environment: &BTreeMap<String, String>) -> Self {
        Self {
            is_refused: is_metadata,
            ..Self::from_outside(environment)
        }
    }

    async fn addresses(
        self,
        host: String,
    ) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
        let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
        let is_refused =
            is_metadata_name(&host) || found.iter().any(|found| (self.is_refused)(found.ip()));
        if is_refused && !self.proxies.contains(&host) {
            tracing::warn!(host, "a redirect was not followed to where none may lead");
            return Err(Box::new(Refused));
        }
        Ok(found)
    }
}

impl Resolve for Redirected {
    fn resolve(&self, name: Name) -> Resolving {
        let looking = self.clone().addresses(name.as_str().to_ascii_lowercase());
        Box::pin(async move {
            let found: Addrs = Box::new(looking.await?.into_iter());
            Ok(found)
        })
    }
}
