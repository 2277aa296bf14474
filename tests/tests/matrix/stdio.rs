//! The faults of a child process.

use serde_json::{Value, json};
use talaria_testkit::Action;
use talaria_testkit::PayloadSpec;
use talaria_testkit::script::{
    Pace, Part, ProcessAction, document_answer, parts, raw, raw_unfinished, text_result,
};

use crate::outcome::Fault;
use crate::stage::{Transport, run};

const LOST: &[&str] = &["connection_lost"];
const RECONNECTS: &str = "talaria_server_reconnects_total";
const FAULTS: &str = "talaria_wire_faults_total";

pub fn answer(text: &str) -> Action {
    Action::Answer {
        result: text_result(text),
    }
}

pub fn notify(method: &str, params: Value) -> Action {
    Action::Notify {
        method: method.to_owned(),
        params,
    }
}

pub fn storm(method: &str, times: usize) -> Action {
    Action::Repeat {
        times,
        actions: vec![notify(method, json!({"level": "info", "data": "storm"}))],
    }
}

/// An answer that takes longer than the limit because its bytes come one by one.
pub fn dripping() -> Action {
    let text = "slow drop after slow drop ".repeat(70);
    let result = text_result(&text);
    Action::Send {
        parts: parts(&format!(
            "{{\"jsonrpc\":\"2.0\",\"id\":{{id}},\"result\":{result}}}"
        )),
        pace: Pace::Drip,
    }
}

pub fn huge() -> Action {
    document_answer("x://h/huge", PayloadSpec::of(2_000_000))
}

#[tokio::test]
async fn a_server_that_hangs() {
    run(Transport::Stdio, &Fault::silence(vec![Action::Hang])).await;
}

#[tokio::test]
async fn a_server_whose_answer_drips() {
    run(Transport::Stdio, &Fault::silence(vec![dripping()])).await;
}

#[tokio::test]
async fn a_server_that_dies() {
    let exit = ProcessAction::Exit { code: 3 }.into();
    let fault = Fault::costs_the_call(vec![exit], LOST)
        .replaced()
        .counted(RECONNECTS, &[("server", "s")]);
    run(Transport::Stdio, &fault).await;
}

#[tokio::test]
async fn a_server_that_closes_its_output() {
    let close = ProcessAction::CloseStdout.into();
    let fault = Fault::costs_the_call(vec![close, Action::Hang], LOST).replaced();
    run(Transport::Stdio, &fault).await;
}

#[tokio::test]
async fn half_a_line_and_the_end() {
    let half = raw_unfinished("{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{\"content\":[{\"ty");
    let exit = ProcessAction::Exit { code: 0 }.into();
    let fault = Fault::costs_the_call(vec![half, exit], &["connection_lost", "malformed_message"])
        .replaced();
    run(Transport::Stdio, &fault).await;
}

#[tokio::test]
async fn an_answer_to_another_id() {
    let other = raw("{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{\"content\":[]}}");
    run(Transport::Stdio, &Fault::silence(vec![other, Action::Hang])).await;
}

#[tokio::test]
async fn an_answer_to_another_id_and_then_the_right_one() {
    let other = raw("{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{\"content\":[]}}");
    let fault = Fault::harmless(vec![other, answer("right")], "right");
    run(Transport::Stdio, &fault).await;
}

#[tokio::test]
async fn two_answers() {
    let fault = Fault::harmless(vec![answer("first"), answer("second")], "first");
    run(Transport::Stdio, &fault).await;
}

#[tokio::test]
async fn an_answer_after_the_cancellation() {
    let fault = Fault::silence(vec![Action::AwaitCancel, answer("late")]);
    run(Transport::Stdio, &fault).await;
}

#[tokio::test]
async fn garbage_in_place_of_the_answer() {
    let garbage = raw("{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{]}");
    let fault = Fault::costs_the_call(vec![garbage], &["malformed_message"])
        .counted(FAULTS, &[("server", "s"), ("code", "malformed_message")]);
    run(Transport::Stdio, &fault).await;
}

#[tokio::test]
async fn garbage_before_the_answer() {
    let garbage = || raw("Listening on port 3000 \u{1b}[32mok\u{1b}[0m {\"not\": json");
    let bytes = Action::Send {
        parts: vec![Part::Bytes("//79/AD/gICA".to_owned())],
        pace: Pace::Fast,
    };
    let fault = Fault::harmless(vec![garbage(), bytes, garbage(), answer("heard")], "heard");
    run(Transport::Stdio, &fault).await;
}

#[tokio::test]
async fn a_huge_line() {
    let fault = Fault::costs_the_call(vec![huge()], &["message_too_large"])
        .counted(FAULTS, &[("server", "s"), ("code", "message_too_large")]);
    run(Transport::Stdio, &fault).await;
}

#[tokio::test]
async fn log_noise() {
    let noise = vec![
        ProcessAction::Stderr { bytes: 3_000_000 }.into(),
        storm("notifications/message", 500),
        answer("heard"),
    ];
    run(Transport::Stdio, &Fault::harmless(noise, "heard")).await;
}

#[tokio::test]
async fn a_storm_of_notifications() {
    let storm = vec![
        storm("notifications/tools/list_changed", 2_000),
        storm("notifications/nobody/knows", 2_000),
        storm("notifications/resources/list_changed", 500),
        answer("heard"),
    ];
    run(Transport::Stdio, &Fault::harmless(storm, "heard")).await;
}
