//! One agent cannot fill a server's queue.

use serde_json::{Value, json};
use talaria_testkit::script::text_result;
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Action, Answer, Script, Service, wait_for};

use crate::stage::builder;

const GREEDY: &str = "greedy-token-0123456789";
const MODEST: &str = "modest-token-0123456789";

async fn call_as(service: &Service, token: &str, tool: &str) -> Answer {
    let body = json!({"server": "s", "name": tool, "arguments": {}});
    let request = service
        .client()
        .post(service.url("/v1/tools/call"))
        .bearer_auth(token)
        .json(&body);
    Answer::read(request.send().await.unwrap()).await.unwrap()
}

#[tokio::test]
async fn the_other_token_is_served_in_turn_and_refused_only_its_share() {
    let folder = tempfile::tempdir().unwrap();
    let gate = folder.path().join("gate");
    let script = Script::new("s")
        .on_call(
            "held",
            [
                Action::AwaitFile { path: gate.clone() },
                Action::Answer {
                    result: text_result("held"),
                },
            ],
        )
        .text_tool("many", "many")
        .text_tool("one", "one");
    let tokens: Vec<Value> = [("greedy", GREEDY), ("modest", MODEST)]
        .into_iter()
        .map(|(name, token)| json!({"name": name, "token": token, "scopes": ["call"], "servers": ["*"]}))
        .collect();
    let service = builder()
        .stdio("s", script)
        .unwrap()
        .set(&["talaria", "auth", "tokens"], tokens)
        .set(&["talaria", "limits", "pending_per_server"], 8)
        .token(GREEDY)
        .start()
        .await
        .unwrap();
    let waits = |count: u64| {
        let service = &service;
        async move {
            wait_for("so many calls to wait", PATIENCE, || async {
                let status = service.server("s").await.unwrap();
                if status["pending"] == count {
                    Ok(())
                } else {
                    Err(status)
                }
            })
            .await
            .unwrap();
        }
    };
    let held = call_as(&service, GREEDY, "held");
    let crowd = async {
        service
            .wait_record("s", "the first call", PATIENCE, |record| {
                record.calls("held")
            })
            .await
            .unwrap();
        let many =
            futures_util::future::join_all((0..4).map(|_| call_as(&service, GREEDY, "many")));
        let others = async {
            waits(4).await;
            let one = call_as(&service, MODEST, "one");
            let release = async {
                waits(5).await;
                // Half of the places are the most that one token may hold beside another.
                let refused = call_as(&service, GREEDY, "many").await;
                assert_eq!(refused.code().unwrap(), "busy");
                std::fs::write(&gate, "").unwrap();
            };
            tokio::join!(one, release).0
        };
        tokio::join!(many, others)
    };
    let (held, (many, one)) = tokio::join!(held, crowd);
    assert_eq!(held.status, 200);
    assert_eq!(one.status, 200);
    assert!(many.iter().all(|answer| answer.status == 200));
    let calls: Vec<String> = service
        .records("s")
        .unwrap()
        .iter()
        .filter_map(|record| {
            let name = record.message.pointer("/params/name")?.as_str()?;
            Some(name.to_owned())
        })
        .collect();
    let place = calls.iter().position(|name| name == "one").unwrap();
    assert!(place <= 2, "its turn came late: {calls:?}");
}
