//! Which endpoints may be probed: addresses of this machine and of private networks, nothing
//! else, whatever a name resolves to (specification 2.3, #89863).

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use reqwest::dns::{Addrs, Name, Resolve, Resolving};
use url::{Host, Url};

/// Ends of names that never leave a private network.
const LOCAL_ENDS: [&str; 6] = [
    ".localhost",
    ".local",
    ".lan",
    ".internal",
    ".home.arpa",
    ".localdomain",
];

/// Whether an endpoint may be probed as far as its text tells. A name must resolve to local
/// addresses besides, which [`LocalResolver`] sees to.
pub(crate) fn is_local(endpoint: &Url) -> bool {
    match endpoint.host() {
        Some(Host::Ipv4(address)) => is_local_address(address.into()),
        Some(Host::Ipv6(address)) => is_local_address(address.into()),
        Some(Host::Domain(name)) => {
            let name = name.trim_end_matches('.').to_lowercase();
            let ends = LOCAL_ENDS.iter().any(|end| name.ends_with(end));
            ends || (!name.is_empty() && !name.contains('.'))
        }
        None => false,
    }
}

/// Loopback and private networks. Link-local addresses are out: clouds answer there.
fn is_local_address(address: IpAddr) -> bool {
    match address.to_canonical() {
        IpAddr::V4(address) => address.is_loopback() || address.is_private(),
        IpAddr::V6(address) => address.is_loopback() || address.is_unique_local(),
    }
}

/// Resolves names, and fails where one leads anywhere but to local addresses.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LocalResolver;

impl Resolve for LocalResolver {
    fn resolve(&self, name: Name) -> Resolving {
        Box::pin(async move {
            let host = name.as_str();
            // Every system has it, not every resolver.
            let found: Vec<SocketAddr> = if host == "localhost" || host.ends_with(".localhost") {
                vec![
                    (Ipv4Addr::LOCALHOST, 0).into(),
                    (Ipv6Addr::LOCALHOST, 0).into(),
                ]
            } else {
                tokio::net::lookup_host((host, 0)).await?.collect()
            };
            if found.is_empty() || !found.iter().all(|found| is_local_address(found.ip())) {
                return Err(io::Error::other("the name does not lead to a local address").into());
            }
            let found: Addrs = Box::new(found.into_iter());
            Ok(found)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_and_private_networks_are_local() {
        for (url, local) in [
            ("http://127.0.0.1:11434", true),
            ("http://127.9.9.9/v1", true),
            ("http://[::1]:8080", true),
            ("http://localhost:8080", true),
            ("http://llama.localhost", true),
            ("http://10.1.2.3", true),
            ("http://172.16.0.1", true),
            ("http://172.31.255.255", true),
            ("http://192.168.1.5:11434/v1", true),
            ("http://[fd00::1]", true),
            ("http://[::ffff:192.168.1.5]", true),
            ("http://ollama:11434", true),
            ("http://box.lan", true),
            ("http://host.docker.internal:11434", true),
            ("https://api.openai.com/v1", false),
            ("http://127.0.0.1.example.com", false),
            ("http://localhost.example.com", false),
            ("http://172.32.0.1", false),
            ("http://8.8.8.8", false),
            ("http://169.254.169.254", false),
            ("http://100.100.1.1", false),
            ("http://0.0.0.0:8080", false),
            ("http://[2001:db8::1]", false),
            ("http://[fe80::1]", false),
            ("http://[::ffff:8.8.8.8]", false),
            ("http://2130706433/", true),
            ("http://0x08080808/", false),
        ] {
            assert_eq!(is_local(&Url::parse(url).unwrap()), local, "{url}");
        }
    }

    #[tokio::test]
    async fn names_of_this_machine_resolve_to_it() {
        let found = LocalResolver
            .resolve("llama.localhost".parse().unwrap())
            .await;
        let addresses: Vec<_> = found.unwrap().map(|found| found.ip()).collect();
        assert_eq!(
            addresses,
            [
                IpAddr::V4(Ipv4Addr::LOCALHOST),
                IpAddr::V6(Ipv6Addr::LOCALHOST)
            ]
        );
    }

    #[tokio::test]
    async fn names_that_lead_elsewhere_do_not_resolve() {
        for name in ["8.8.8.8", "0.0.0.0", "169.254.169.254"] {
            let found = LocalResolver.resolve(name.parse().unwrap()).await;
            assert!(found.is_err(), "{name}");
        }
    }
}
