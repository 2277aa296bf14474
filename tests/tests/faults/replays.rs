//! What is sent again after a lost connection, and what never is (design decision 21).

use serde_json::{Value, json};
use talaria_testkit::script::{ProcessAction, text_result};
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Action, Script, Service, wait_for};

use crate::stage::{AT_ONCE, call, start, text_of_call};

fn dies_once(hint: Value) -> Script {
    let annotated = json!({
        "name": "t", "inputSchema": {"type": "object"}, "annotations": {"readOnlyHint": hint},
    });
    Script::new("s")
        .with_tools(vec![annotated, talaria_testkit::script::tool("echo")])
        .on_call("t", [ProcessAction::Exit { code: 1 }.into()])
        .text_tool("t", "second try")
}

fn calls(service: &Service, tool: &str) -> usize {
    service
        .records("s")
        .unwrap()
        .iter()
        .filter(|record| record.calls(tool))
        .count()
}

#[tokio::test]
async fn a_call_that_only_reads_is_made_again() {
    let service = start(dies_once(json!(true))).await;
    assert_eq!(text_of_call(&service).await, "second try");
    assert_eq!(calls(&service, "t"), 2);
}

#[tokio::test]
async fn l19_only_true_itself_means_reading() {
    for hint in [json!("true"), json!(1), json!(false), Value::Null] {
        let service = start(dies_once(hint.clone())).await;
        let problem = call(&service).await.problem().unwrap();
        assert_eq!(problem["code"], "connection_lost", "{hint}");
        assert_eq!(problem["outcome_uncertain"], true, "{hint}");
        service.wait_state("s", "ready", PATIENCE).await.unwrap();
        assert_eq!(calls(&service, "t"), 1, "{hint}");
    }
}

#[tokio::test]
async fn a_call_that_was_waiting_when_the_server_died_is_made_once() {
    let script = Script::new("s")
        .on_call("t", [Action::Hang])
        .text_tool("waiting", "made");
    let service = start(script).await;
    let dying = call(&service);
    let waiting = async {
        service
            .wait_record("s", "the call", AT_ONCE, |record| record.calls("t"))
            .await
            .unwrap();
        service.call("s", "waiting", json!({})).await
    };
    let kill = async {
        let status = wait_for("one call in flight and one waiting", AT_ONCE, || async {
            let status = service.server("s").await.unwrap();
            let both = status["in_flight"] == 1 && status["pending"] == 1;
            if both { Ok(status) } else { Err(status) }
        })
        .await
        .unwrap();
        let pid = u32::try_from(status["pid"].as_u64().unwrap()).unwrap();
        talaria_testkit::process::signal(pid, nix::sys::signal::Signal::SIGKILL).unwrap();
    };
    let (dying, waiting, ()) = tokio::join!(dying, waiting, kill);
    assert_eq!(dying.problem().unwrap()["outcome_uncertain"], true);
    let delivery = waiting.unwrap().ok().unwrap();
    assert_eq!(
        delivery["text"], "made",
        "it never left, so the new process gets it"
    );
    assert_eq!(calls(&service, "waiting"), 1);
}

#[tokio::test]
async fn a_result_that_came_before_the_death_counts() {
    let script = Script::new("s").on_call(
        "t",
        [
            Action::Answer {
                result: text_result("in time"),
            },
            ProcessAction::Exit { code: 0 }.into(),
        ],
    );
    let service = start(script).await;
    assert_eq!(text_of_call(&service).await, "in time");
    service.wait_state("s", "ready", PATIENCE).await.unwrap();
    assert_eq!(calls(&service, "t"), 1);
}
