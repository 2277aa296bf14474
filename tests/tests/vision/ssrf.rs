//! Addresses that a picture must not be fetched from, however they are spelled.

use serde_json::{Value, json};
use talaria_testkit::{Reply, Service, VisionEndpoint};

use crate::scene::{ANALYZE, backend, blind, builder, chained, endpoint, picture, seeing};

/// The two routes that take the address of a picture.
const ROUTES: &[&str] = &[ANALYZE, "/v1/images/deliver"];

/// Hosts of this machine and its network, refused unless private addresses are allowed.
const PRIVATE: &[&str] = &[
    "127.0.0.1",
    "127.0.0.1.",
    "127.1",
    "127.0.1",
    "127.255.255.254",
    "2130706433",
    "0x7f000001",
    "0x7F.0x0.0x0.0x1",
    "0x7f.1",
    "017700000001",
    "0177.0.0.1",
    "0177.0.0.01",
    "00000177.0.0.1",
    "0",
    "0.0.0.0",
    "0x0",
    "0.1.2.3",
    "%31%32%37.0.0.1",
    "%6c%6f%63%61%6c%68%6f%73%74",
    "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
    "127\u{3002}0\u{3002}0\u{3002}1",
    "\u{2460}\u{2461}\u{2466}.\u{24ea}.\u{24ea}.\u{2460}",
    "localhost",
    "LOCALHOST",
    "LocalHost.",
    "a.localhost",
    "[::1]",
    "[::]",
    "[0:0:0:0:0:0:0:1]",
    "[0000::0001]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[0:0:0:0:0:ffff:127.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b:1::7f00:1]",
    "[2002:7f00:1::]",
    "[2001:0:7f00:1::]",
    "[fe80::1]",
    "[fe80::1%25lo]",
    "[fe80::1%25eth0]",
    "[fc00::1]",
    "[fd12:3456::1]",
    "[fec0::1]",
    "[ff02::1]",
    "[2001:db8::1]",
    "[100::1]",
    "10.0.0.1",
    "012.0.0.1",
    "0xa000001",
    "167772161",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "0xc0.0xa8.1.1",
    "3232235777",
    "100.64.0.1",
    "100.127.255.255",
    "192.0.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "198.51.100.7",
    "203.0.113.9",
    "224.0.0.1",
    "239.255.255.250",
    "240.0.0.1",
    "255.255.255.255",
    "user:secret@127.0.0.1",
    "example.com@127.0.0.1",
    "example.com:80@[::1]",
];

/// Hosts that tell a machine's secrets, refused whatever is allowed.
const METADATA: &[&str] = &[
    "169.254.169.254",
    "169.254.169.254.",
    "2852039166",
    "0xa9fea9fe",
    "0xA9.0xFE.0xA9.0xFE",
    "025177524776",
    "0251.0376.0251.0376",
    "169.254.43518",
    "169.16689662",
    "169.254.170.2",
    "169.254.169.253",
    "169.254.0.1",
    "169.254.255.255",
    "100.100.100.200",
    "0x646464c8",
    "1684301000",
    "[::ffff:169.254.169.254]",
    "[::ffff:a9fe:a9fe]",
    "[0:0:0:0:0:ffff:a9fe:a9fe]",
    "[::ffff:100.100.100.200]",
    "[::169.254.169.254]",
    "[64:ff9b::169.254.169.254]",
    "[2002:a9fe:a9fe::]",
    "[fd00:ec2::254]",
    "[FD00:EC2:0:0:0:0:0:254]",
    "metadata.google.internal",
    "METADATA.GOOGLE.INTERNAL",
    "metadata.google.internal.",
    "metadata.goog",
    "Metadata.Goog.",
    "user@169.254.169.254",
];

/// What is no address of a web server at all.
const OTHERS: &[&str] = &[
    "file:///etc/passwd",
    "file://localhost/etc/passwd",
    "FILE:///etc/passwd",
    "ftp://127.0.0.1/a.png",
    "gopher://127.0.0.1:70/_a",
    "dict://127.0.0.1:11211/stats",
    "ldap://127.0.0.1/",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/info",
    "jar:http://127.0.0.1!/a.png",
    "javascript:alert(1)",
    "ws://127.0.0.1/",
    "//127.0.0.1/a.png",
    "/etc/passwd",
    "http://",
    "http:///a.png",
    "http://[::1/a.png",
    "http://[::1]]/a.png",
    "http://127.0.0.1:99999/a.png",
    "",
    " ",
];

async fn service(allow_private: bool) -> (VisionEndpoint, Service) {
    let first = endpoint(Reply::chat("seen"));
    let service = chained(
        builder(),
        Some(backend(&first.base(), "first")),
        Vec::new(),
        Vec::new(),
    )
    .set(&["security", "allow_private_urls"], allow_private)
    .start()
    .await
    .unwrap();
    (first, service)
}

/// A request for the picture of an address; the gate does not matter to where it comes from.
pub(crate) fn request(path: &str, url: &str, sees: bool) -> Value {
    let mut body = json!({"image": {"url": url}});
    if path == ANALYZE {
        body["prompt"] = json!("What is it?");
    } else {
        body["source"] = json!("browser");
        body["route"] = if sees { seeing() } else { blind() };
    }
    body
}

async fn assert_refused(service: &Service, url: &str, codes: &[&str]) {
    for path in ROUTES {
        let answer = service.post(path, &request(path, url, true)).await.unwrap();
        let problem = answer.problem().unwrap();
        let code = problem["code"].as_str().unwrap();
        assert!(codes.contains(&code), "{path} {url}: {problem}");
        assert!(
            (400..500).contains(&answer.status),
            "{path} {url}: {problem}"
        );
        assert_eq!(problem["retryable"], false, "{url}: {problem}");
        // A URL's password is a secret.
        assert!(!problem.to_string().contains("secret@"), "{problem}");
    }
}

#[tokio::test]
async fn addresses_of_this_network_are_refused_however_they_are_spelled() {
    let host = endpoint(Reply::raw(200, picture(1)));
    let port = host.address().port();
    let (first, service) = service(false).await;
    assert!(PRIVATE.len() + METADATA.len() > 60);
    for name in PRIVATE.iter().chain(METADATA) {
        assert_refused(
            &service,
            &format!("http://{name}:{port}/a.png"),
            &["url_blocked", "invalid_request"],
        )
        .await;
    }
    for name in ["127.0.0.1", "localhost", "[::1]", "0x7f.1"] {
        assert_refused(
            &service,
            &format!("https://{name}:{port}/a.png"),
            &["url_blocked"],
        )
        .await;
    }
    assert_eq!(host.connections().total, 0, "nobody knocked");
    assert_eq!(first.count(), 0, "and no backend was asked");
}

#[tokio::test]
async fn v16_addresses_that_tell_secrets_are_refused_even_where_private_ones_are_allowed() {
    let (first, service) = service(true).await;
    for name in METADATA {
        for tail in ["/x.png", ":80/latest/meta-data/", ":8080/a.png?b=c#d"] {
            assert_refused(
                &service,
                &format!("http://{name}{tail}"),
                &["url_blocked", "invalid_request"],
            )
            .await;
        }
    }
    assert_eq!(first.count(), 0);
}

#[tokio::test]
async fn what_is_no_web_address_is_refused() {
    let (first, service) = service(true).await;
    for url in OTHERS {
        assert_refused(&service, url, &["url_blocked", "invalid_request"]).await;
    }
    assert_eq!(first.count(), 0);
}

#[tokio::test]
async fn v17_a_redirect_is_checked_like_the_first_address_and_not_tried_again() {
    let (first, service) = service(true).await;
    let targets = METADATA
        .iter()
        .map(|name| format!("http://{name}/x.png"))
        .chain(["file:///etc/passwd", "ftp://127.0.0.1/a", "unix:/a"].map(str::to_owned));
    for target in targets {
        for status in [301, 302, 303, 307, 308] {
            let host = endpoint(Reply::redirect(status, &target));
            let path = ANALYZE;
            let body = request(path, &host.url("/a.png"), true);
            let answer = service.post(path, &body).await.unwrap();
            let code = answer.code().unwrap();
            assert!(
                ["url_blocked", "invalid_request", "url_unreachable"].contains(&code.as_str()),
                "{status} {target}: {}",
                answer.excerpt()
            );
            assert_eq!(host.count(), 1, "{status} {target}: asked again");
            if status > 302 {
                continue;
            }
            assert_refused(
                &service,
                &host.url("/a.png"),
                &["url_blocked", "invalid_request", "url_unreachable"],
            )
            .await;
        }
    }
    assert_eq!(first.count(), 0);
}

#[tokio::test]
async fn the_other_hops_of_a_redirect_are_checked_too() {
    let (_, service) = service(true).await;
    let last = endpoint(Reply::redirect(302, "http://169.254.169.254/x.png"));
    let middle = endpoint(Reply::redirect(307, &last.url("/b.png")));
    let host = endpoint(Reply::redirect(301, &middle.url("/a.png")));
    assert_refused(&service, &host.url("/a.png"), &["url_blocked"]).await;
    assert_eq!((host.count(), middle.count(), last.count()), (2, 2, 2));
}
