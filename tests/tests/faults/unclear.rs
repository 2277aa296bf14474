//! Answers that do not say whose they are, and answers that say nothing.

use serde_json::json;
use talaria_testkit::script::{raw, text_result};
use talaria_testkit::{Action, Script};

use crate::stage::{assert_alive, assert_fails_alone, pid, start, text_of_call};

/// The answer of the first call comes while the second one waits, and does not say whose it is.
#[tokio::test]
async fn a_late_answer_without_an_id_is_not_that_of_the_next_call() {
    for late in [
        r#"{"jsonrpc":"2.0","id":null,"result":{"content":[{"type":"text","text":"of the first"}]}}"#,
        r#"{"jsonrpc":"2.0","result":{"content":[{"type":"text","text":"of the first"}]}}"#,
        r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"the first was cancelled"}}"#,
        r#"{"jsonrpc":"2.0","result":{"content":"cut"#,
    ] {
        let second = Action::Answer {
            result: text_result("of the second"),
        };
        let script = Script::new("s")
            .on_call("t", [Action::AwaitCancel])
            .on_call("t", [raw(late), second]);
        let service = start(script).await;
        let pid = pid(&service).await;
        let body = json!({"server": "s", "name": "t", "timeout_ms": 300});
        let first = service.post("/v1/tools/call", &body).await.unwrap();
        assert_eq!(first.code().unwrap(), "timeout");
        assert_eq!(text_of_call(&service).await, "of the second", "{late}");
        assert_alive(&service, &pid).await;
    }
}

#[tokio::test]
async fn an_answer_that_says_nothing_fails_its_call_at_once() {
    for nothing in [
        r#"{"jsonrpc":"2.0","id":{id}}"#,
        r#"{"jsonrpc":"2.0","id":{id},"error":null}"#,
    ] {
        let service = start(Script::new("s").on_call("t", [raw(nothing)])).await;
        let problem = assert_fails_alone(&service, "malformed_message").await;
        assert_eq!(problem["outcome_uncertain"], true, "the tool has run");
    }
}
