//! Which addresses pictures may be fetched from (specification 6.1).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use talaria_types::metadata::is_metadata;

/// What the operator allows beyond the public network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Rules {
    /// Private, loopback and other special addresses.
    pub(super) allow_private: bool,
    /// The fake addresses that a tunnel answers names with.
    pub(super) allow_fake_ip: bool,
    /// Addresses that count as public, for endpoints of tests.
    #[cfg(test)]
    pub(super) exempt: Vec<IpAddr>,
}

/// Why an address is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Closed {
    /// Clouds tell credentials there; no setting opens it.
    Metadata,
    /// `security.allow_private_urls` opens it.
    Private,
}

/// Special networks: this host, private, shared, loopback, protocol assignments, documentation,
/// relays, benchmarks, multicast, reserved.
const SPECIAL_V4: [(Ipv4Addr, u32); 14] = [
    (Ipv4Addr::new(0, 0, 0, 0), 8),
    (Ipv4Addr::new(10, 0, 0, 0), 8),
    (Ipv4Addr::new(100, 64, 0, 0), 10),
    (Ipv4Addr::new(127, 0, 0, 0), 8),
    (Ipv4Addr::new(172, 16, 0, 0), 12),
    (Ipv4Addr::new(192, 0, 0, 0), 24),
    (Ipv4Addr::new(192, 0, 2, 0), 24),
    (Ipv4Addr::new(192, 88, 99, 0), 24),
    (Ipv4Addr::new(192, 168, 0, 0), 16),
    FAKE_V4,
    (Ipv4Addr::new(198, 51, 100, 0), 24),
    (Ipv4Addr::new(203, 0, 113, 0), 24),
    (Ipv4Addr::new(224, 0, 0, 0), 4),
    (Ipv4Addr::new(240, 0, 0, 0), 4),
];
/// Benchmarks; tunnels answer names with it.
const FAKE_V4: (Ipv4Addr, u32) = (Ipv4Addr::new(198, 18, 0, 0), 15);

/// Special networks inside of what is public: protocol assignments with Teredo, documentation.
const SPECIAL_V6: [(Ipv6Addr, u32); 3] = [
    (Ipv6Addr::new(0x2001, 0, 0, 0, 0, 0, 0, 0), 23),
    (Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 0), 32),
    (Ipv6Addr::new(0x3fff, 0, 0, 0, 0, 0, 0, 0), 20),
];
/// What is public of IPv6.
const PUBLIC_V6: (Ipv6Addr, u32) = (Ipv6Addr::new(0x2000, 0, 0, 0, 0, 0, 0, 0), 3);

/// Whether an address may be fetched from.
///
/// # Errors
/// It may not.
pub(super) fn check(address: IpAddr, rules: &Rules) -> Result<(), Closed> {
    #[cfg(test)]
    {
        if rules.exempt.contains(&address) {
            return Ok(());
        }
    }
    match address {
        IpAddr::V4(address) => check_v4(address, rules),
        IpAddr::V6(address) => check_v6(address, rules),
    }
}

fn check_v4(address: Ipv4Addr, rules: &Rules) -> Result<(), Closed> {
    if is_metadata(IpAddr::V4(address)) {
        return Err(Closed::Metadata);
    }
    let is_fake = rules.allow_fake_ip && holds_v4(FAKE_V4, address);
    let is_special = SPECIAL_V4.iter().any(|network| holds_v4(*network, address));
    if is_special && !is_fake && !rules.allow_private {
        return Err(Closed::Private);
    }
    Ok(())
}

fn check_v6(address: Ipv6Addr, rules: &Rules) -> Result<(), Closed> {
    if is_metadata(IpAddr::V6(address)) {
        return Err(Closed::Metadata);
    }
    let (inside, is_public_form) = embedded(address);
    // Both ends of what is translated are checked: whoever translates may stand anywhere.
    let mut closed = None;
    for address in inside.into_iter().flatten() {
        match check_v4(address, rules) {
            Err(Closed::Metadata) => return Err(Closed::Metadata),
            Err(Closed::Private) => closed = Some(Closed::Private),
            Ok(()) => {}
        }
    }
    if let Some(closed) = closed {
        return Err(closed);
    }
    let is_public = is_public_form
        || (holds_v6(PUBLIC_V6, address)
            && !SPECIAL_V6.iter().any(|network| holds_v6(*network, address)));
    if is_public || rules.allow_private {
        Ok(())
    } else {
        Err(Closed::Private)
    }
}

/// The IPv4 addresses that an IPv6 address stands for, and whether its form may lead to public
/// ones although it lies outside of the public network: mapped addresses and NAT64.
fn embedded(address: Ipv6Addr) -> ([Option<Ipv4Addr>; 2], bool) {
    let [a, b, c, d, e, f, g, h] = address.segments();
    let v4 = |high: u16, low: u16| Ipv4Addr::from_bits((u32::from(high) << 16) | u32::from(low));
    match (a, b, c, d, e, f) {
        // Mapped, and the well-known prefix of NAT64.
        (0, 0, 0, 0, 0, 0xffff) | (0x64, 0xff9b, 0, 0, 0, 0) => ([Some(v4(g, h)), None], true),
        // Compatible (deprecated) and translated addresses.
        (0, 0, 0, 0, 0, 0) | (0, 0, 0, 0, 0xffff, 0) => ([Some(v4(g, h)), None], false),
        // NAT64 of a network's own, in the two forms that its prefix may have.
        (0x64, 0xff9b, 1, ..) => {
            let low = (e << 8) | (f >> 8);
            ([Some(v4(g, h)), Some(v4(d, low))], false)
        }
        // 6to4.
        (0x2002, high, low, ..) => ([Some(v4(high, low)), None], false),
        // Teredo: the server, and the client behind a mask.
        (0x2001, 0, high, low, ..) => ([Some(v4(high, low)), Some(v4(!g, !h))], false),
        // ISATAP.
        (_, _, _, _, 0 | 0x200, 0x5efe) => ([Some(v4(g, h)), None], false),
        _ => ([None, None], false),
    }
}

fn holds_v4((network, bits): (Ipv4Addr, u32), address: Ipv4Addr) -> bool {
    let shift = 32 - bits;
    network.to_bits() >> shift == address.to_bits() >> shift
}

fn holds_v6((network, bits): (Ipv6Addr, u32), address: Ipv6Addr) -> bool {
    let shift = 128 - bits;
    network.to_bits() >> shift == address.to_bits() >> shift
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn judged(address: &str, allow_private: bool) -> Option<Closed> {
        let rules = Rules {
            allow_private,
            ..Rules::default()
        };
        check(address.parse().unwrap(), &rules).err()
    }

    #[test]
    fn v16_metadata_is_closed_whatever_is_allowed() {
        for address in [
            "169.254.169.254",
            "169.254.170.2",
            "169.254.169.253",
            "169.254.0.1",
            "100.100.100.200",
            "168.63.129.16",
            "fd00:ec2::254",
            "fe80::a9fe:a9fe",
            "::ffff:169.254.169.254",
            "::ffff:100.100.100.200",
            "::169.254.169.254",
            "::ffff:0:169.254.169.254",
            "64:ff9b::169.254.169.254",
            "64:ff9b:1::a9fe:a9fe",
            "64:ff9b:1:a9fe:a9:fe00::",
            "2002:a9fe:a9fe::1",
            "2001:0:a9fe:a9fe::1",
            "2001:0:808:808:0:0:5601:5601",
            "2001:db8::5efe:a9fe:a9fe",
            "fe80::200:5efe:169.254.169.254",
        ] {
            for allow_private in [false, true] {
                assert_eq!(
                    judged(address, allow_private),
                    Some(Closed::Metadata),
                    "{address}"
                );
            }
        }
    }

    #[test]
    fn special_addresses_are_closed_unless_allowed() {
        for address in [
            "0.0.0.0",
            "0.1.2.3",
            "10.0.0.1",
            "100.64.0.1",
            "100.127.255.255",
            "127.0.0.1",
            "127.255.255.254",
            "172.16.0.1",
            "172.31.255.255",
            "192.0.0.1",
            "192.0.2.1",
            "192.88.99.1",
            "192.168.1.1",
            "198.18.0.1",
            "198.19.255.255",
            "198.51.100.1",
            "203.0.113.1",
            "224.0.0.1",
            "239.255.255.255",
            "240.0.0.1",
            "255.255.255.255",
            "::",
            "::1",
            "::2",
            "::127.0.0.1",
            "::ffff:127.0.0.1",
            "::ffff:10.0.0.1",
            "::ffff:0:10.0.0.1",
            "64:ff9b::10.0.0.1",
            "64:ff9b:1::808:808",
            "2002:7f00:1::",
            "2002:a00:1::1",
            "2001:0:808:808:0:0:f7f7:f7f7",
            "2001:db8::1",
            "2001:10::1",
            "3fff::1",
            "100::1",
            "5f00::1",
            "fc00::1",
            "fd12:3456::1",
            "fe80::1",
            "fec0::1",
            "ff02::1",
            "4000::1",
        ] {
            assert_eq!(judged(address, false), Some(Closed::Private), "{address}");
            assert_eq!(judged(address, true), None, "{address}");
        }
    }

    #[test]
    fn public_addresses_are_open() {
        for address in [
            "8.8.8.8",
            "1.1.1.1",
            "100.63.255.255",
            "100.128.0.1",
            "172.15.0.1",
            "172.32.0.1",
            "192.167.1.1",
            "169.253.1.1",
            "198.17.0.1",
            "198.20.0.1",
            "223.255.255.255",
            "2606:4700::1111",
            "2002:808:808::1",
            "2001:4860:4860::8888",
            "::ffff:8.8.8.8",
            "64:ff9b::8.8.8.8",
        ] {
            assert_eq!(judged(address, false), None, "{address}");
        }
    }

    #[test]
    fn fake_addresses_of_a_tunnel_are_opened_by_their_own_setting() {
        let rules = Rules {
            allow_fake_ip: true,
            ..Rules::default()
        };
        assert_eq!(check("198.18.0.7".parse().unwrap(), &rules), Ok(()));
        assert_eq!(
            check("10.0.0.7".parse().unwrap(), &rules),
            Err(Closed::Private)
        );
    }

    proptest! {
        #[test]
        fn an_address_inside_another_is_never_more_open(bits in any::<u32>(), allow_private in any::<bool>()) {
            let inner = Ipv4Addr::from_bits(bits);
            let rules = Rules { allow_private, ..Rules::default() };
            let alone = check(inner.into(), &rules);
            let (high, low) = ((bits >> 16) as u16, (bits & 0xffff) as u16);
            for outer in [
                inner.to_ipv6_mapped(),
                Ipv6Addr::new(0, 0, 0, 0, 0xffff, 0, high, low),
                Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, high, low),
                Ipv6Addr::new(0x2002, high, low, 0, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0, high, low, 0, 0, 0, 1),
                Ipv6Addr::new(0x2001, 0, 0x808, 0x808, 0, 0, !high, !low),
                Ipv6Addr::new(0x2606, 0x4700, 0, 0, 0, 0x5efe, high, low),
            ] {
                if alone.is_err() {
                    prop_assert!(check(outer.into(), &rules).is_err(), "{} in {}", inner, outer);
                }
            }
        }
    }
}
