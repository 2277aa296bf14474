//! A service with one faulty server on it.

use std::future::Future;
use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::{Answer, Script, Service, ServiceBuilder, programs};

/// An answer that is owed at once comes within this, on a busy machine too.
pub const AT_ONCE: Duration = Duration::from_secs(3);

/// A builder with one scripted server `s` over stdio, which also has a tool `echo` that works.
pub fn with(script: Script) -> ServiceBuilder {
    let script = script.text_tool("echo", "echoed");
    Service::builder(programs!())
        .unwrap()
        .stdio("s", script)
        .unwrap()
}

/// The started service.
pub async fn start(script: Script) -> Service {
    with(script).start().await.unwrap()
}

/// Calls the tool `t`.
pub async fn call(service: &Service) -> Answer {
    service.call("s", "t", json!({})).await.unwrap()
}

/// Calls the tool `t` and expects a delivery; answers its text.
pub async fn text_of_call(service: &Service) -> String {
    let delivery = call(service).await.ok().unwrap();
    delivery["text"].as_str().unwrap().to_owned()
}

/// Asserts that the server still answers, as the same process.
pub async fn assert_alive(service: &Service, pid: &Value) {
    let delivery = service
        .call("s", "echo", json!({}))
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(delivery["text"], "echoed");
    assert_eq!(
        &service.server("s").await.unwrap()["pid"],
        pid,
        "the server was restarted"
    );
}

/// The process id of the server.
pub async fn pid(service: &Service) -> Value {
    let status = service.server("s").await.unwrap();
    assert!(status["pid"].is_u64(), "{status}");
    status["pid"].clone()
}

/// Runs something and says how long it took.
pub async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let started = talaria_types::runtime::now();
    let value = work.await;
    (value, started.elapsed())
}

/// Asserts that a call fails with a code, soon, and that nothing else suffers.
pub async fn assert_fails_alone(service: &Service, code: &str) -> Value {
    let pid = pid(service).await;
    let (answer, took) = timed(call(service)).await;
    let problem = answer.problem().unwrap();
    assert_eq!(problem["code"], code, "{problem}");
    assert_eq!(problem["server"], "s", "{problem}");
    assert!(took < AT_ONCE, "it took {took:?}");
    assert_alive(service, &pid).await;
    problem
}
