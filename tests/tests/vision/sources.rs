//! Where the picture of a question may come from.

use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::{Place, Reply, Service, ServiceBuilder, VisionEndpoint, samples};
use talaria_types::runtime::now;

use crate::scene::{
    ANALYZE, backend, blind, builder, chained, described, endpoint, picture, question, seeing,
};
use crate::ssrf::request;

fn started(first: &VisionEndpoint) -> ServiceBuilder {
    chained(
        builder(),
        Some(backend(&first.base(), "first")),
        Vec::new(),
        Vec::new(),
    )
    .set(&["security", "allow_private_urls"], true)
}

async fn service(first: &VisionEndpoint) -> Service {
    started(first).start().await.unwrap()
}

async fn fetch(service: &Service, url: &str) -> (u16, Value) {
    let answer = service
        .post(ANALYZE, &request(ANALYZE, url, false))
        .await
        .unwrap();
    (answer.status, answer.json().unwrap())
}

/// The files below a folder.
fn files(folder: &Path) -> Vec<std::path::PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// The files of the store that are not its own bookkeeping.
fn stored(service: &Service) -> Vec<std::path::PathBuf> {
    let mut found = files(&service.cache());
    found.retain(|path| {
        path.parent()
            .is_some_and(|parent| parent != service.cache())
    });
    found
}

#[tokio::test]
async fn a_picture_comes_by_data_by_path_and_by_address() {
    let first = endpoint(Reply::chat("seen"));
    let host = endpoint(Reply::raw(200, picture(3)).with_header("Content-Type", "image/png"));
    let builder = started(&first);
    let root = builder.home().canonicalize().unwrap().join("allowed");
    std::fs::create_dir_all(&root).unwrap();
    std::fs::write(root.join("shot.png"), picture(2)).unwrap();
    let service = builder
        .set(&["talaria", "images", "allowed_roots"], json!([root]))
        .start()
        .await
        .unwrap();
    let data = format!("data:image/png;base64,{}", samples::base64(&picture(1)));
    for image in [
        json!({"data": data}),
        json!({"path": root.join("shot.png")}),
        json!({"url": host.url("/shot.png?size=2")}),
        json!({"url": data.replace("data:image/png", "data:image/PNG")}),
    ] {
        let before = first.count();
        let body = json!({"image": image, "prompt": "What is it?"});
        let answer = service.post(ANALYZE, &body).await.unwrap();
        if image["url"]
            .as_str()
            .is_some_and(|url| url.starts_with("data:"))
        {
            // Either taken or refused with a reason, never fetched.
            assert!(answer.status < 500, "{}", answer.excerpt());
            continue;
        }
        let answer = answer.ok().unwrap();
        assert_eq!(answer["analysis"], "seen", "{image}");
        let seen = first.asked()[before].picture().unwrap();
        assert_eq!((seen.width, seen.height), (64, 48), "{image}");
        let artifact = answer["artifact"].to_string();
        assert!(artifact.contains("art_"), "{artifact}");
    }
    assert_eq!(host.count(), 1);
}

#[tokio::test]
async fn a_file_outside_of_the_roots_reaches_no_backend() {
    let first = endpoint(Reply::chat("seen"));
    let builder = started(&first);
    let outside = builder.home().canonicalize().unwrap().join("secret.png");
    std::fs::write(&outside, picture(1)).unwrap();
    let service = builder.start().await.unwrap();
    for path in [
        outside.to_str().unwrap(),
        "/etc/passwd",
        "relative.png",
        "/proc/self/environ",
    ] {
        let body = json!({"image": {"path": path}, "prompt": "?"});
        let answer = service.post(ANALYZE, &body).await.unwrap();
        assert_eq!(
            (answer.status, answer.code().unwrap().as_str()),
            (403, "path_refused"),
            "{path}"
        );
    }
    let absent = service.cache().join("images/absent.png");
    let body = json!({"image": {"path": absent}, "prompt": "?"});
    let answer = service.post(ANALYZE, &body).await.unwrap();
    assert!((400..500).contains(&answer.status), "{}", answer.excerpt());
    assert_eq!(first.count(), 0, "the caller's own error asks nobody");
}

#[tokio::test]
async fn what_is_no_picture_is_refused_before_anybody_is_asked() {
    let first = endpoint(Reply::chat("seen"));
    let service = service(&first).await;
    for (body, kind) in [
        (samples::HTML.to_vec(), "text/html"),
        (samples::HTML.to_vec(), "image/png"),
        (
            b"  \n<!doctype HTML><title>404</title>".to_vec(),
            "image/jpeg",
        ),
        (samples::PDF.to_vec(), "application/pdf"),
        (b"{\"error\":\"no such file\"}".to_vec(), "image/png"),
        (b"words".to_vec(), "image/webp"),
        (Vec::new(), "image/png"),
    ] {
        let host = endpoint(Reply::raw(200, body.clone()).with_header("Content-Type", kind));
        for path in [ANALYZE, "/v1/images/deliver"] {
            let answer = service
                .post(path, &request(path, &host.url("/a.png"), true))
                .await
                .unwrap();
            assert_eq!(
                answer.code().unwrap(),
                "not_an_image",
                "{kind}: {}",
                answer.excerpt()
            );
        }
        assert_eq!(
            host.count(),
            2,
            "{kind}: it does not become one by asking again"
        );
    }
    assert_eq!(first.count(), 0);
    assert_eq!(stored(&service), Vec::<std::path::PathBuf>::new());
}

/// A body of so many MiB that begins as a PNG does.
fn large(mebibytes: usize) -> Reply {
    let mut unit = vec![0; 1024 * 1024];
    unit[..8].copy_from_slice(b"\x89PNG\r\n\x1a\n");
    Reply::repeated(200, unit, mebibytes).with_header("Content-Type", "image/png")
}

#[tokio::test]
async fn v20_a_body_without_a_length_is_stopped_at_fifty_mebibytes() {
    let first = endpoint(Reply::chat("seen"));
    let service = service(&first).await;
    for reply in [
        large(51).until_closed(),
        large(51).chunked(),
        large(51),
        // The length lies.
        large(51).telling_length(400 * 1024 * 1024),
    ] {
        let host = endpoint(reply);
        let (status, problem) = fetch(&service, &host.url("/large.png")).await;
        assert!((400..500).contains(&status), "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(
            detail.contains("50 MiB") || detail.contains("52428800"),
            "{problem}"
        );
        assert_eq!(host.count(), 1, "it does not get smaller by asking again");
        assert_eq!(
            stored(&service),
            Vec::<std::path::PathBuf>::new(),
            "no file is left"
        );
    }
    assert_eq!(first.count(), 0);
    let peak = service.memory().unwrap().peak;
    assert!(peak < 400 * 1024 * 1024, "{peak} bytes at the peak");
}

#[tokio::test]
async fn servers_in_trouble_are_asked_three_times() {
    let first = endpoint(Reply::chat("seen"));
    let service = service(&first).await;
    let host = VisionEndpoint::start([
        Reply::raw(503, "busy"),
        Reply::raw(200, "").reset_at(Place::Start),
        Reply::raw(200, picture(1)),
    ])
    .unwrap();
    let started = now();
    let (status, answer) = fetch(&service, &host.url("/a.png")).await;
    assert_eq!(
        (status, &answer["analysis"]),
        (200, &json!("seen")),
        "{answer}"
    );
    let took = started.elapsed();
    assert_eq!(host.count(), 3);
    let pauses: Vec<Duration> = host
        .asked()
        .windows(2)
        .map(|two| two[1].at - two[0].at)
        .collect();
    assert!(pauses[0] >= Duration::from_millis(1_900), "{pauses:?}");
    assert!(pauses[1] >= Duration::from_millis(3_900), "{pauses:?}");
    assert!(took < Duration::from_secs(12), "after {took:?}");
}

#[tokio::test]
async fn errors_of_the_question_are_not_asked_again() {
    let first = endpoint(Reply::chat("seen"));
    let service = service(&first).await;
    for status in [400, 401, 403, 404, 410] {
        let host = endpoint(Reply::raw(status, "no"));
        let (answered, problem) = fetch(&service, &host.url("/a.png")).await;
        assert_eq!(problem["code"], "url_unreachable", "{problem}");
        assert!((400..600).contains(&answered), "{problem}");
        assert!(
            problem["detail"]
                .as_str()
                .unwrap()
                .contains(&status.to_string()),
            "{problem}"
        );
        assert_eq!(host.count(), 1, "{status}");
    }
    assert_eq!(first.count(), 0);
}

#[tokio::test]
async fn redirects_are_followed_five_times_and_no_more() {
    let first = endpoint(Reply::chat("seen"));
    let service = service(&first).await;
    let target = endpoint(Reply::raw(200, picture(1)));
    for (hops, reached) in [(1, true), (5, true), (6, false)] {
        let host = endpoint(Reply::raw(404, ""));
        for hop in 1..=hops {
            let next = if hop == hops {
                target.url("/a.png")
            } else {
                // Relative to the address it came from.
                format!("../hops/{}?from={hop}", hop + 1)
            };
            host.answer_at(&format!("/hops/{hop}"), [Reply::redirect(302, &next)]);
        }
        let (status, answer) = fetch(&service, &host.url("/hops/1")).await;
        assert_eq!(status == 200, reached, "{hops} hops: {answer}");
    }
    let host = endpoint(Reply::redirect(302, "/again"));
    let (status, problem) = fetch(&service, &host.url("/a.png")).await;
    assert!(status >= 400, "{problem}");
    assert!(host.count() <= 6, "{} requests in a circle", host.count());
    let host = endpoint(Reply::raw(302, ""));
    let (status, problem) = fetch(&service, &host.url("/a.png")).await;
    assert!(status >= 400, "nowhere to go: {problem}");
}

#[tokio::test]
async fn a_host_that_stalls_costs_the_download_timeout() {
    let first = endpoint(Reply::chat("seen"));
    let service = started(&first)
        .set(&["auxiliary", "vision", "download_timeout"], 1)
        .start()
        .await
        .unwrap();
    for reply in [
        Reply::stalled(),
        Reply::raw(200, picture(1)).stalled_at(Place::Head),
        Reply::raw(200, picture(1)).stalled_at(Place::Body(30)),
        Reply::raw(200, picture(1)).dripped(Duration::from_millis(50)),
    ] {
        let host = endpoint(reply.clone());
        let started = now();
        let (status, problem) = fetch(&service, &host.url("/a.png")).await;
        let took = started.elapsed();
        assert!(status >= 400, "{reply:?}: {problem}");
        assert!(took < Duration::from_secs(12), "{reply:?}: after {took:?}");
        crate::scene::settles("the download to be given up", &0, || host.requests().now).await;
    }
    assert_eq!(stored(&service), Vec::<std::path::PathBuf>::new());
}

#[tokio::test]
async fn nothing_of_the_caller_goes_to_the_host() {
    let first = endpoint(Reply::chat("seen"));
    let other = endpoint(Reply::raw(200, picture(2)));
    let host =
        endpoint(Reply::redirect(302, &other.url("/b.png")).with_header("Set-Cookie", "a=b"));
    let tokens = json!([{"name": "ci", "token": "the-secret-token-of-ci", "scopes": ["call"], "servers": ["*"]}]);
    let service = started(&first)
        .set(&["talaria", "auth", "tokens"], tokens)
        .token("the-secret-token-of-ci")
        .start()
        .await
        .unwrap();
    let url = host.url("/a.png").replace("http://", "http://user:word@");
    let (status, answer) = fetch(&service, &url).await;
    // An address with a password is refused, or its password stays with the host it is for.
    assert!(status == 200 || (400..500).contains(&status), "{answer}");
    for asked in other.asked() {
        assert_eq!(asked.header("authorization"), "", "{asked:?}");
    }
    let (status, answer) = fetch(&service, &host.url("/a.png")).await;
    assert_eq!(status, 200, "{answer}");
    for asked in host.asked().iter().chain(&other.asked()) {
        let sent = format!("{:?}", asked.headers);
        assert!(
            !sent.contains("the-secret-token-of-ci") && !sent.contains("the-key-of"),
            "{sent}"
        );
        assert_eq!(asked.header("cookie"), "", "{sent}");
        assert_eq!(asked.method, "GET");
    }
}

#[tokio::test]
async fn a_fetched_picture_is_delivered_like_any_other() {
    let first = endpoint(Reply::chat("a lake"));
    let host = endpoint(Reply::raw(200, picture(3)).with_header("Content-Type", "image/jpeg"));
    let service = service(&first).await;
    let deliver = |route: Value, mode: &'static str| {
        let service = &service;
        let url = host.url("/shots/shot.jpg");
        async move {
            // A backend that is named closes the gate in mode `auto`.
            let body = json!({"source": "browser", "image": {"url": url}, "route": route,
                              "question": "What is it?", "image_input_mode": mode});
            service
                .post("/v1/images/deliver", &body)
                .await
                .unwrap()
                .ok()
                .unwrap()
        }
    };
    let open = deliver(seeing(), "native").await;
    assert_eq!(open["attachments"].as_array().unwrap().len(), 1, "{open}");
    assert_eq!(
        open["artifacts"][0]["media_type"], "image/png",
        "bytes decide: {open}"
    );
    assert!(open["vision"].is_null(), "{open}");
    assert_eq!(first.count(), 0);
    let closed = deliver(blind(), "auto").await;
    assert!(closed["attachments"].as_array().unwrap().is_empty());
    assert!(crate::scene::text(&closed).contains("a lake"), "{closed}");
    assert!(first.asked()[0].words().contains("What is it?"));
}

#[tokio::test]
async fn an_empty_image_is_the_callers_error() {
    let first = endpoint(Reply::chat("seen"));
    let service = service(&first).await;
    for image in [
        json!({}),
        json!({"data": ""}),
        json!({"data": "***"}),
        json!({"data": "aGk=", "url": "http://host.example/a.png"}),
        json!({"picture": "x"}),
        json!(null),
    ] {
        let answer = service
            .post(ANALYZE, &json!({"image": image}))
            .await
            .unwrap();
        assert_eq!(answer.status, 400, "{image}: {}", answer.excerpt());
    }
    let mut body = question(&picture(1));
    body["region"] = json!([900, 900, 950, 950]);
    let answer = service.post(ANALYZE, &body).await.unwrap();
    assert_eq!(answer.status, 400, "{}", answer.excerpt());
    assert_eq!(first.count(), 0);
    described(&service, &picture(1)).await;
}
