//! Metadata services: where clouds tell a machine its own credentials. No setting and no redirect
//! leads there (specification 6.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Names of metadata services.
const NAMES: [&str; 2] = ["metadata.google.internal", "metadata.goog"];

/// The services of Alibaba, Azure and Oracle, which stand outside of the link-local network.
const V4: [Ipv4Addr; 3] = [
    Ipv4Addr::new(100, 100, 100, 200),
    Ipv4Addr::new(168, 63, 129, 16),
    Ipv4Addr::new(192, 0, 0, 192),
];
/// Amazon, Google, and what answers at the link-local twin of 169.254.169.254.
const V6: [Ipv6Addr; 3] = [
    Ipv6Addr::new(0xfd00, 0xec2, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfd20, 0xce, 0, 0, 0, 0, 0, 0x254),
    Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0xa9fe, 0xa9fe),
];

/// Whether a name is that of a metadata service.
#[must_use]
pub fn is_metadata_name(host: &str) -> bool {
    let host = host.trim_end_matches('.');
    NAMES.iter().any(|name| host.eq_ignore_ascii_case(name))
}

/// Whether an address, also one that is mapped into IPv6, is that of a metadata service; every
/// link-local one of IPv4 is.
#[must_use]
pub fn is_metadata(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => four.is_link_local() || V4.contains(&four),
        IpAddr::V6(six) => match six.to_ipv4_mapped() {
            Some(four) => is_metadata(IpAddr::V4(four)),
            None => V6.contains(&six),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_metadata_services_are_known_in_any_spelling() {
        for name in [
            "metadata.google.internal",
            "METADATA.goog",
            "metadata.goog.",
        ] {
            assert!(is_metadata_name(name), "{name}");
        }
        assert!(!is_metadata_name("metadata.example.com"));
    }

    #[test]
    fn addresses_of_metadata_services_are_known_in_any_form() {
        for (address, expected) in [
            ("169.254.169.254", true),
            ("169.254.0.1", true),
            ("::ffff:169.254.170.2", true),
            ("::ffff:100.100.100.200", true),
            ("fd00:ec2::254", true),
            ("100.100.100.201", false),
            ("127.0.0.1", false),
            ("fd00::1", false),
        ] {
            assert_eq!(is_metadata(address.parse().unwrap()), expected, "{address}");
        }
    }
}
