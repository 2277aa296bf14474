//! Names that may lead to the open network only.
//!
//! Where a redirect leads is looked up before it is followed, and the name may say something else
//! a moment later. So whoever was sent somewhere from outside connects with this resolver: it
//! hands out only what has passed, each time somebody connects.

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;
use std::net::SocketAddr;
use std::sync::Arc;

use reqwest::dns::{Addrs, Name, Resolve, Resolving};

use super::{proxy, redirect};

/// Why nobody connects.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("its host is in the inner network")]
struct Inside;

/// Refuses names of the inner network.
#[derive(Clone, Debug)]
pub(super) struct OutsideOnly {
    /// The proxies that were configured here: these may be inside, and look names up themselves.
    proxies: Arc<BTreeSet<String>>,
}

impl OutsideOnly {
    pub(super) fn new(environment: &BTreeMap<String, String>) -> Self {
        Self {
            proxies: Arc::new(proxy::hosts(environment)),
        }
    }

    async fn addresses(
        self,
        host: String,
    ) -> Result<Vec<SocketAddr>, Box<dyn Error + Send + Sync>> {
        let found: Vec<SocketAddr> = tokio::net::lookup_host((host.as_str(), 0)).await?.collect();
        let is_inside = found.iter().any(|found| redirect::is_inner(found.ip()));
        if is_inside && !self.proxies.contains(&host) {
            tracing::warn!(host, "a redirect into the inner network was not followed");
            return Err(Box::new(Inside));
        }
        Ok(found)
    }
}

impl Resolve for OutsideOnly {
    fn resolve(&self, name: Name) -> Resolving {
        let looking = self.clone().addresses(name.as_str().to_ascii_lowercase());
        Box::pin(async move {
            let found: Addrs = Box::new(looking.await?.into_iter());
            Ok(found)
        })
    }
}
