//! What the tests here share.

use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::{Answer, Script, Service, ServiceBuilder, programs};

pub fn builder() -> ServiceBuilder {
    Service::builder(programs!()).unwrap()
}

/// A service with one scripted server `s` over stdio.
pub async fn start(script: Script) -> Service {
    let builder = builder().stdio("s", script).unwrap();
    builder.start().await.unwrap()
}

/// Calls the tool `t` of the server `s`.
pub async fn call(service: &Service) -> Answer {
    service.call("s", "t", json!({})).await.unwrap()
}

/// The tools of servers, as they are offered.
pub async fn listed(service: &Service) -> Vec<Value> {
    let listed = service.get("/v1/tools").await.unwrap().ok().unwrap();
    let mut tools = listed["tools"].as_array().unwrap().clone();
    tools.retain(|tool| tool["name"] != "vision_analyze");
    tools
}

/// Their names.
pub async fn names(service: &Service) -> Vec<String> {
    let tools = listed(service).await;
    let names = tools.iter().filter_map(|tool| tool["name"].as_str());
    names.map(str::to_owned).collect()
}

/// Calls a tool by its public name and answers the text.
pub async fn text_of(service: &Service, public: &str) -> String {
    let body = json!({"tool": public, "arguments": {}});
    let answer = service.post("/v1/tools/call", &body).await.unwrap();
    let delivery = answer.ok().unwrap();
    delivery["text"].as_str().unwrap().to_owned()
}

/// Runs something and says how long it took.
pub async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let started = talaria_types::runtime::now();
    let value = work.await;
    (value, started.elapsed())
}
