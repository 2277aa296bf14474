//! Keys of backends are shown to nobody but their backend.

use serde_json::{Value, json};
use talaria_testkit::{RefusingPort, Reply, Service, VisionEndpoint, programs, samples};

use crate::scene::{analyze, backend, builder, chained, deliver, endpoint, picture, result};

const KEYS: &[&str] = &[
    "sk-proj-first0123456789abcdef",
    "plain-second-key-of-no-shape",
];

fn links(first: &VisionEndpoint, second: &VisionEndpoint) -> (Value, Value) {
    let mut one = backend(&first.base(), "first");
    one["api_key"] = json!(KEYS[0]);
    let mut two = backend(&second.base(), "second");
    two["api_key"] = json!("${env:TALARIA_TEST_SECOND_KEY}");
    (one, two)
}

async fn service(first: &VisionEndpoint, second: &VisionEndpoint) -> Service {
    let (one, two) = links(first, second);
    chained(builder(), Some(one), vec![two], Vec::new())
        .env("TALARIA_TEST_SECOND_KEY", KEYS[1])
        .env("TALARIA_LOG", "debug")
        .env("RUST_LOG", "debug")
        .start()
        .await
        .unwrap()
}

fn assert_clean(place: &str, text: &str) {
    for key in KEYS {
        assert!(!text.contains(key), "{place} shows {key}: {text:.2000}");
    }
}

#[tokio::test]
async fn keys_appear_in_no_answer_no_log_and_no_metric() {
    // Both send the key back in their errors, as real ones do.
    let told =
        |key: &str| format!("Incorrect API key provided: {key}. Authorization: Bearer {key}");
    let first = endpoint(Reply::error(401, "invalid_api_key", &told(KEYS[0])));
    let second = endpoint(Reply::raw(500, told(KEYS[1])).with_header("X-Key", KEYS[1]));
    let service = service(&first, &second).await;
    let failed = analyze(&service, &picture(1)).await;
    assert_eq!(failed.status, 502, "{}", failed.excerpt());
    assert_clean("the answer", &failed.text().unwrap());
    let delivery = deliver(&service, result(&[picture(2)])).await;
    assert_clean("the delivery", &delivery.to_string());
    second.answer([Reply::chat(&format!("a note that says {}", KEYS[1]))]);
    analyze(&service, &picture(3)).await;
    for path in [
        "/metrics",
        "/v1/servers",
        "/v1/tools",
        "/openapi.json",
        "/healthz",
        "/readyz",
    ] {
        let answer = service.get(path).await.unwrap();
        assert_clean(path, &answer.text().unwrap());
    }
    assert_clean("the log", &service.log().unwrap());
    assert_eq!(
        first.asked()[0].header("authorization"),
        format!("Bearer {}", KEYS[0])
    );
    assert!(
        second
            .asked()
            .iter()
            .any(|asked| asked.header("authorization") == format!("Bearer {}", KEYS[1]))
    );
}

#[tokio::test]
async fn a_key_goes_to_no_other_host() {
    let thief = endpoint(Reply::chat("stolen"));
    let first = endpoint(Reply::redirect(307, &thief.url("/v1/chat/completions")));
    let second = endpoint(Reply::chat("seen"));
    let service = service(&first, &second).await;
    let answer = analyze(&service, &picture(1)).await.ok().unwrap();
    assert_eq!(answer["analysis"], "seen");
    assert_eq!(thief.count(), 0);
}

#[tokio::test]
async fn pictures_and_keys_are_not_in_the_log() {
    let first = endpoint(Reply::chat("seen"));
    let second = endpoint(Reply::chat("seen"));
    let service = service(&first, &second).await;
    analyze(&service, &picture(1)).await;
    let log = service.log().unwrap();
    assert!(!log.contains(&samples::base64(&picture(1))[..40]), "{log}");
    assert!(
        !log.contains("What is on it?"),
        "a question is the caller's own: {log}"
    );
    assert_clean("the log", &log);
}

#[tokio::test]
async fn the_configuration_is_shown_without_keys() {
    let port = RefusingPort::take().unwrap();
    let mut one = backend(&port.base(), "first");
    one["api_key"] = json!(KEYS[0]);
    let builder = chained(builder(), Some(one), Vec::new(), Vec::new());
    // Writes the file that the service would read.
    drop(builder.command().unwrap());
    let config = builder.home().join("config.yaml");
    for words in [["config", "show"], ["config", "check"]] {
        let output = tokio::process::Command::new(programs!().talaria)
            .args(words)
            .arg("--config")
            .arg(&config)
            .output()
            .await
            .unwrap();
        assert!(output.status.success(), "{words:?}: {output:?}");
        let shown =
            String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
        assert_clean(words[1], &shown);
        assert!(
            words[1] == "check" || shown.contains(&port.base()),
            "{shown}"
        );
    }
}
