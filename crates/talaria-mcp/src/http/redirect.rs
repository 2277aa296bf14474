//! Which redirects of an MCP server are followed.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use http::{Method, StatusCode};
use reqwest::{Response, Url};
use talaria_types::metadata::is_metadata;

/// How long the addresses of a host are looked for.
const LOOKUP_PATIENCE: Duration = Duration::from_secs(5);

/// Where a response sends its request, if it is a redirect that keeps the method and does not
/// give up encryption.
pub(super) fn target(
    method: &Method,
    status: StatusCode,
    from: &Url,
    location: &str,
) -> Option<Url> {
    let keeps_method = match status.as_u16() {
        307 | 308 => true,
        301..=303 => matches!(*method, Method::GET | Method::HEAD),
        _ => false,
    };
    let to = from.join(location).ok()?;
    let is_web = matches!(to.scheme(), "http" | "https") && to.has_host();
    let weakens = from.scheme() == "https" && to.scheme() != "https";
    let names_somebody = !to.username().is_empty() || to.password().is_some();
    (keeps_method && is_web && !weakens && !names_somebody).then_some(to)
}

/// Where a redirect to another origin may lead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// Nowhere: a server outside must not make us talk to what only we can reach.
    Nowhere,
    /// To the open network, whatever the name says when somebody connects.
    Outside,
    /// Anywhere but to a metadata service: it comes from inside.
    Anywhere,
}

/// Judges by where the redirect comes from and where it leads now.
pub(super) async fn reach(response: &Response, from: &Url, to: &Url) -> Reach {
    let answered = response.remote_addr().map(|address| address.ip());
    reach_from(answered, from, to).await
}

/// One inner address makes the aim an inner one; who sends us there has to be inside altogether,
/// also by the address that answered.
async fn reach_from(answered: Option<IpAddr>, from: &Url, to: &Url) -> Reach {
    let Some(aim) = addresses(to).await else {
        return Reach::Nowhere;
    };
    if aim.iter().copied().any(is_metadata) {
        return Reach::Nowhere;
    }
    let origin = addresses(from).await.unwrap_or_default();
    let is_from_inside =
        !origin.is_empty() && origin.into_iter().all(is_inner) && answered.is_none_or(is_inner);
    if is_from_inside {
        Reach::Anywhere
    } else if aim.into_iter().any(is_inner) {
        Reach::Nowhere
    } else {
        Reach::Outside
    }
}

/// Where a host is; `None` where that is not found out in time. What only a proxy can look up
/// has no address here.
async fn addresses(url: &Url) -> Option<Vec<IpAddr>> {
    let host = url.host_str().unwrap_or_default();
    let literal = host.trim_start_matches('[').trim_end_matches(']');
    if let Ok(address) = literal.parse::<IpAddr>() {
        return Some(vec![address]);
    }
    if host == "localhost" || host.ends_with(".localhost") {
        return Some(vec![Ipv4Addr::LOCALHOST.into()]);
    }
    let port = url.port_or_known_default().unwrap_or(443);
    let looking = tokio::net::lookup_host((host, port));
    match tokio::time::timeout(LOOKUP_PATIENCE, looking).await {
        Ok(Ok(found)) => Some(found.map(|address| address.ip()).collect()),
        Ok(Err(_)) => Some(Vec::new()),
        Err(_) => None,
    }
}

/// Loopback, private, link-local, shared (RFC 6598) and unspecified addresses.
pub(super) fn is_inner(address: IpAddr) -> bool {
    match address {
        IpAddr::V4(four) => {
            let [first, second, ..] = four.octets();
            four.is_loopback()
                || four.is_private()
                || four.is_link_local()
                || four.is_unspecified()
                || first == 100 && (64..128).contains(&second)
        }
        IpAddr::V6(six) => match six.to_ipv4_mapped() {
            Some(four) => is_inner(IpAddr::V4(four)),
            None => {
                six.is_loopback()
                    || six.is_unspecified()
                    || six.is_unique_local()
                    || six.is_unicast_link_local()
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn url(text: &str) -> Url {
        text.parse().unwrap()
    }

    #[test]
    fn redirects_that_change_the_method_or_drop_encryption_are_answers() {
        let to = |method: Method, status: u16, from: &str, location: &str| {
            let status = StatusCode::from_u16(status).unwrap();
            target(&method, status, &url(from), location).map(|url| url.to_string())
        };
        let http = "http://a.example/mcp";
        for (status, posts, gets) in [
            (301, false, true),
            (302, false, true),
            (303, false, true),
            (307, true, true),
            (308, true, true),
            (304, false, false),
            (200, false, false),
        ] {
            assert_eq!(
                to(Method::POST, status, http, "/b").is_some(),
                posts,
                "{status}"
            );
            assert_eq!(
                to(Method::GET, status, http, "/b").is_some(),
                gets,
                "{status}"
            );
        }
        let moved = |from, location| to(Method::POST, 308, from, location);
        assert_eq!(moved(http, "b/").as_deref(), Some("http://a.example/b/"));
        assert_eq!(
            moved(http, "https://a.example/mcp").as_deref(),
            Some("https://a.example/mcp")
        );
        for location in [
            "http://a.example/mcp",
            "ftp://a.example/",
            "https://u:p@a.example/",
        ] {
            assert_eq!(moved("https://a.example/mcp", location), None, "{location}");
        }
    }

    #[tokio::test]
    async fn who_answered_from_outside_is_outside_whatever_its_name_says_now() {
        let (from, to) = (url("http://localhost/mcp"), url("http://10.0.0.1/x"));
        for (answered, expected) in [
            ("127.0.0.1", Reach::Anywhere),
            ("93.184.216.34", Reach::Nowhere),
        ] {
            let answered = Some(answered.parse().unwrap());
            assert_eq!(reach_from(answered, &from, &to).await, expected);
        }
    }

    #[tokio::test]
    async fn nobody_outside_sends_us_inside() {
        for (from, to, expected) in [
            (
                "https://93.184.216.34/mcp",
                "https://127.0.0.1/x",
                Reach::Nowhere,
            ),
            (
                "https://93.184.216.34/mcp",
                "https://localhost/x",
                Reach::Nowhere,
            ),
            (
                "https://93.184.216.34/mcp",
                "https://169.254.169.254/x",
                Reach::Nowhere,
            ),
            (
                "https://93.184.216.34/mcp",
                "https://[::ffff:10.0.0.1]/x",
                Reach::Nowhere,
            ),
            (
                "https://93.184.216.34/mcp",
                "https://[fd00::1]/x",
                Reach::Nowhere,
            ),
            (
                "https://93.184.216.34/mcp",
                "https://100.64.1.1/x",
                Reach::Nowhere,
            ),
            (
                "https://93.184.216.34/mcp",
                "https://93.184.216.35/x",
                Reach::Outside,
            ),
            ("http://10.0.0.1/mcp", "http://10.0.0.2/x", Reach::Anywhere),
            (
                "http://127.0.0.1/mcp",
                "http://169.254.169.254/x",
                Reach::Nowhere,
            ),
            (
                "http://10.0.0.1/mcp",
                "http://[::ffff:100.100.100.200]/x",
                Reach::Nowhere,
            ),
            (
                "http://10.0.0.1/mcp",
                "http://[fd00:ec2::254]/x",
                Reach::Nowhere,
            ),
            (
                "http://127.0.0.1/mcp",
                "http://93.184.216.34/x",
                Reach::Anywhere,
            ),
        ] {
            assert_eq!(
                reach_from(None, &url(from), &url(to)).await,
                expected,
                "{from} {to}"
            );
        }
    }
}
