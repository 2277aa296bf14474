//! What is not fetched, in every spelling.

use super::*;

/// Spellings that lead to this machine, to a private network or to nowhere a picture may be.
const REFUSED: &[&str] = &[
    // Loopback as it is, decimal, octal, hexadecimal, mixed, short.
    "http://127.0.0.1/x.png",
    "http://127.0.0.1./x.png",
    "http://2130706433/",
    "http://0177.0.0.1/",
    "http://0177.0.0.01/",
    "http://017700000001/",
    "http://0x7f.0.0.1/",
    "http://0x7f000001/",
    "http://0x7F.0X0.0x00.0x1/",
    "http://127.1/",
    "http://127.0.1/",
    "http://0/",
    "http://0.0.0.0/",
    "http://00.00.00.00/",
    "http://127.255.255.254/",
    // Digits of other scripts.
    "http://１２７.０.０.１/",
    "http://①②⑦.⓪.⓪.①/",
    "http://127。0。0。1/",
    "http://%31%32%37.0.0.1/",
    // IPv6, and IPv4 inside of it.
    "http://[::]/",
    "http://[::1]/",
    "http://[0:0:0:0:0:0:0:1]/",
    "http://[::ffff:127.0.0.1]/",
    "http://[::ffff:7f00:1]/",
    "http://[0:0:0:0:0:ffff:127.0.0.1]/",
    "http://[::127.0.0.1]/",
    "http://[64:ff9b::127.0.0.1]/",
    "http://[64:ff9b:1::a00:1]/",
    "http://[2002:7f00:1::]/",
    "http://[2002:c0a8:101::1]/",
    "http://[2001:0:7f00:1::]/",
    "http://[fe80::1]/",
    "http://[fec0::1]/",
    "http://[fc00::1]/",
    "http://[fd00:ec2::254]/",
    "http://[ff02::1]/",
    "http://[2001:db8::1]/",
    "http://[fe80::5efe:10.0.0.1]/",
    // Private and special networks.
    "http://10.0.0.1/",
    "http://167772161/",
    "http://172.16.0.1/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://192.0.0.1/",
    "http://198.18.0.1/",
    "http://224.0.0.1/",
    "http://255.255.255.255/",
    // Metadata services.
    "http://169.254.169.254/latest/meta-data",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://[::ffff:169.254.169.254]/",
    "http://169.254.170.2/v2/credentials",
    "http://100.100.100.200/",
    "http://metadata.google.internal/computeMetadata/v1/",
    "http://METADATA.google.internal./",
    "http://metadata.goog/",
    // A user and a password hide where it goes.
    "http://pictures.example@127.0.0.1/",
    "http://pictures.example:80@127.0.0.1/",
    "http://127.0.0.1@pictures.example/",
    "http://a:b@pictures.example/",
    "http:127.0.0.1/",
    "http:/127.0.0.1/",
    "\thttp://127.0.0.1/\n",
    // Names.
    "http://localhost/",
    "http://LOCALHOST./",
    "http://private.example/",
    "http://mixed.example/",
    "http://mapped.example/",
    "http://metadata.example/",
    "http://empty.example/",
    "http://nowhere.example/",
    "https://private.example/",
    // Other schemes.
    "file:///etc/passwd",
    "ftp://pictures.example/x.png",
    "gopher://127.0.0.1:6379/_x",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/",
    "data:image/png;base64,iVBORw0KGgo=",
    "javascript:alert(1)",
];

/// What is no URL at all: zone ids, unix sockets as hosts, nothing.
const NO_URL: &[&str] = &[
    "http://[fe80::1%25eth0]/",
    "http://[fe80::1%eth0]/",
    "http://pictures.example\\@127.0.0.1/",
    "http:\\\\127.0.0.1\\x.png",
    "http://pictures.example/\u{0}x",
    "http://127.0\t.0.1/",
    "http://unix:/var/run/docker.sock:/x",
    "http://%2Fvar%2Frun%2Fdocker.sock/",
    "http://[::ffff:127.0.0.1/",
    "http://[127.0.0.1]/",
    "http://127.0.0.1:99999/",
    "http://1.2.3.4.5/",
    "http://0x7f.0.0.0x100/",
    "http://127.0.0.1 .example/",
    "http://",
    "//127.0.0.1/x.png",
    "/etc/passwd",
    "",
];

fn names() -> Arc<Names> {
    Names::with(&[
        ("localhost", &[&["127.0.0.1", "::1"]]),
        ("localhost.", &[&["127.0.0.1"]]),
        ("pictures.example", &[&[PUBLIC]]),
        ("private.example", &[&["10.0.0.1"]]),
        ("mixed.example", &[&[PUBLIC, "10.0.0.1"]]),
        ("mapped.example", &[&["::ffff:127.0.0.1"]]),
        ("metadata.example", &[&["169.254.169.254"]]),
        ("empty.example", &[&[]]),
    ])
}

#[tokio::test]
async fn spellings_of_what_is_closed_are_refused_without_a_second_try() {
    let fetcher = fetcher(options(names()));
    for url in REFUSED {
        let error = fetch(&fetcher, url).await.unwrap_err();
        assert_eq!(error.code, FetchCode::Blocked, "{url}: {error}");
        assert_eq!(error.code.error_code().as_str(), "url_blocked");
    }
}

#[tokio::test]
async fn what_is_no_url_is_refused() {
    let fetcher = fetcher(options(names()));
    let long = format!("http://pictures.example/{}", "x".repeat(10_000));
    for url in NO_URL.iter().copied().chain([long.as_str()]) {
        let error = fetch(&fetcher, url).await.unwrap_err();
        let is_refused = matches!(error.code, FetchCode::BadUrl | FetchCode::Blocked);
        assert!(is_refused, "{url}: {error:?}");
    }
}

#[tokio::test]
async fn v16_metadata_stays_closed_where_private_addresses_are_allowed() {
    let open = FetchOptions {
        allow_private: true,
        ..options(names())
    };
    let fetcher = fetcher(open);
    for url in [
        "http://169.254.169.254/x.png",
        "http://2852039166/x.png",
        "http://[::ffff:a9fe:a9fe]/x.png",
        "http://[fd00:ec2::254]/x.png",
        "http://100.100.100.200/x.png",
        "http://metadata.google.internal/x.png",
        "http://metadata.example/x.png",
    ] {
        let error = fetch(&fetcher, url).await.unwrap_err();
        assert_eq!(error.code, FetchCode::Blocked, "{url}: {error}");
    }
}

#[tokio::test]
async fn private_addresses_can_be_allowed() {
    let endpoint = endpoint_at("127.0.0.1", vec![answer("200 OK", PNG)]).await;
    let open = FetchOptions {
        allow_private: true,
        ..options(names())
    };
    let url = format!("http://localhost:{}/", endpoint.port);
    assert!(fetch(&Fetcher::new(open), &url).await.is_ok());
}

#[tokio::test]
async fn v17_a_redirect_into_this_machine_is_refused_and_not_tried_again() {
    let inside = endpoint_at("127.0.0.1", vec![answer("200 OK", PNG)]).await;
    for to in [
        format!("http://127.0.0.1:{}/x.png", inside.port),
        format!("http://localhost:{}/x.png", inside.port),
        format!("//127.1:{}/x.png", inside.port),
        "http://169.254.169.254/x.png".to_owned(),
        "file:///etc/passwd".to_owned(),
        format!("http://a@{PUBLIC}/"),
    ] {
        let endpoint = endpoint(vec![redirect(&to), answer("200 OK", PNG)]).await;
        let error = fetch(&fetcher(options(names())), &endpoint.url("/"))
            .await
            .unwrap_err();
        assert_eq!(error.code, FetchCode::Blocked, "{to}: {error}");
        assert_eq!(endpoint.requests.lock().len(), 1, "{to}");
    }
    assert_eq!(inside.requests.lock().len(), 0);
}

#[tokio::test]
async fn s08_a_name_that_changes_its_mind_is_refused_when_it_does() {
    let inside = endpoint_at("127.0.0.1", vec![answer("200 OK", PNG)]).await;
    let endpoint = endpoint(vec![redirect("/again")]).await;
    let names = Names::with(&[("rebind.example", &[&[PUBLIC], &["127.0.0.1"]])]);
    let url = format!("http://rebind.example:{}/", endpoint.port);
    let error = fetch(&fetcher(options(Arc::clone(&names))), &url)
        .await
        .unwrap_err();
    assert_eq!(error.code, FetchCode::Blocked, "{error}");
    // One look-up for each connection: what was checked is what was connected to.
    assert_eq!(names.asked.load(Ordering::SeqCst), 2);
    assert_eq!(inside.requests.lock().len(), 0);
}

#[tokio::test]
async fn a_host_that_has_no_address_is_refused_and_asked_for_once() {
    let names = Names::with(&[]);
    let fetcher = fetcher(options(Arc::clone(&names)));
    let error = fetch(&fetcher, "http://nowhere.example/")
        .await
        .unwrap_err();
    assert_eq!(error.code, FetchCode::Blocked);
    assert_eq!(names.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn no_more_than_eight_addresses_are_tried() {
    // Nobody listens at any of them, so each that is tried is a refused connection.
    let many: Vec<String> = (0..40).map(|_| PUBLIC.to_owned()).collect();
    let many: Vec<&str> = many.iter().map(String::as_str).collect();
    let names = Names::with(&[("many.example", &[many.as_slice()])]);
    let resolver = CheckedResolver {
        inner: names,
        rules: Arc::new(Rules {
            exempt: vec![PUBLIC.parse().unwrap()],
            ..Rules::default()
        }),
    };
    let name = "many.example".parse().unwrap();
    let found = reqwest::dns::Resolve::resolve(&resolver, name)
        .await
        .unwrap();
    assert_eq!(found.count(), 8);
}

proptest::proptest! {
    #[test]
    fn every_spelling_of_an_address_is_judged_as_the_address(bits in proptest::num::u32::ANY) {
        let address = std::net::Ipv4Addr::from_bits(bits);
        let [a, b, c, d] = address.octets();
        let rules = Rules::default();
        let is_open = check(address.into(), &rules).is_ok();
        let low = u32::from(c) << 8 | u32::from(d);
        for host in [
            format!("{address}"),
            format!("{address}."),
            format!("{bits}"),
            format!("{bits:#x}"),
            format!("0{bits:o}"),
            format!("0{a:o}.0{b:o}.0{c:o}.0{d:o}"),
            format!("{a:#x}.{b:#x}.{c:#x}.{d:#X}").replace("0X", "0x"),
            format!("{a}.{}", bits & 0xff_ffff),
            format!("{a}.0{b:o}.{low:#x}"),
            format!("[::ffff:{address}]"),
            format!("[0:0:0:0:0:FFFF:{:x}:{low:x}]", bits >> 16),
        ] {
            let read = target::read(&format!("http://{host}/"), &rules);
            proptest::prop_assert_eq!(read.is_ok(), is_open, "{}", host);
        }
    }
}

#[test]
fn a_redirect_may_not_give_up_encryption() {
    let rules = Rules::default();
    let from = Url::parse("https://pictures.example/a").unwrap();
    let error = target::next(&from, "http://pictures.example/b", &rules).unwrap_err();
    assert_eq!(error.code, FetchCode::Blocked);
    assert!(target::next(&from, "/b", &rules).is_ok());
    let from = Url::parse("http://pictures.example/a").unwrap();
    assert!(target::next(&from, "https://pictures.example/b", &rules).is_ok());
    assert!(target::next(&from, "http://", &rules).is_err());
}
