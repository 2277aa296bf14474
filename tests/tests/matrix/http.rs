//! The faults of a server over Streamable HTTP while a call is in flight or waits.

use serde_json::json;
use talaria_testkit::Action;
use talaria_testkit::script::{HttpAction, HttpScript, http_status, parts, raw};

use crate::outcome::Fault;
use crate::stage::{Transport, run};
use crate::stdio::{answer, dripping, huge, notify, storm};

const BOTH: [Transport; 2] = [Transport::HttpJson, Transport::HttpEvents];
const FAULTS: &str = "talaria_wire_faults_total";

/// The same fault whether answers are bodies or event streams.
async fn run_both(fault: &Fault) {
    for transport in BOTH {
        run(transport, fault).await;
    }
}

fn html(body: &str) -> Action {
    HttpAction::Answer {
        status: 200,
        headers: vec![("Content-Type".to_owned(), "text/html".to_owned())],
        body: body.to_owned(),
    }
    .into()
}

#[tokio::test]
async fn a_server_that_hangs() {
    run_both(&Fault::silence(vec![Action::Hang])).await;
}

#[tokio::test]
async fn a_server_whose_answer_drips() {
    run_both(&Fault::silence(vec![dripping()])).await;
}

#[tokio::test]
async fn a_connection_that_is_reset() {
    let fault = Fault::costs_the_call(vec![HttpAction::Reset.into()], &["connection_lost"]);
    run_both(&fault).await;
}

#[tokio::test]
async fn half_an_answer() {
    let codes = &["connection_lost", "malformed_message"];
    let fault = Fault::costs_the_call(vec![HttpAction::HalfClose.into()], codes);
    run_both(&fault).await;
}

#[tokio::test]
async fn an_answer_to_another_id() {
    let other = raw("{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{\"content\":[]}}");
    let codes = &["malformed_message", "connection_lost"];
    run_both(&Fault::costs_the_call(vec![other], codes)).await;
}

#[tokio::test]
async fn two_answers() {
    let fault = Fault::harmless(vec![answer("first"), answer("second")], "first");
    run_both(&fault).await;
}

#[tokio::test]
async fn garbage_in_place_of_the_answer() {
    let garbage = raw("{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{]}");
    let fault = Fault::costs_the_call(vec![garbage], &["malformed_message"])
        .counted(FAULTS, &[("server", "s"), ("code", "malformed_message")]);
    run_both(&fault).await;
}

#[tokio::test]
async fn a_web_page_in_place_of_the_answer() {
    let page = html("<html><title>Sign in to the hotel</title></html>");
    let fault = Fault::costs_the_call(vec![page], &["malformed_message"]);
    run(Transport::HttpJson, &fault).await;
}

#[tokio::test]
async fn a_huge_answer() {
    let fault = Fault::costs_the_call(vec![huge()], &["message_too_large"])
        .counted(FAULTS, &[("server", "s"), ("code", "message_too_large")]);
    run_both(&fault).await;
}

#[tokio::test]
async fn a_storm_of_notifications_before_the_answer() {
    let storm = vec![
        storm("notifications/tools/list_changed", 1_000),
        storm("notifications/nobody/knows", 1_000),
        notify(
            "notifications/progress",
            json!({"progressToken": "nobody", "progress": 1}),
        ),
        answer("heard"),
    ];
    run(Transport::HttpEvents, &Fault::harmless(storm, "heard")).await;
}

#[tokio::test]
async fn an_event_stream_that_ends_without_an_answer() {
    let comment = HttpAction::Events {
        parts: parts(": nothing follows\n\n"),
    };
    let codes = &["connection_lost", "malformed_message"];
    let fault = Fault::costs_the_call(vec![comment.into()], codes);
    run(Transport::HttpEvents, &fault).await;
}

#[tokio::test]
async fn a_server_that_is_out_of_order() {
    let refused = |status| vec![http_status(status, "out of order")];
    // Whoever stands before the server does not know what became of the call.
    for status in [500, 503] {
        let fault = Fault::costs_the_call(refused(status), &["connection_lost"]);
        run(Transport::HttpJson, &fault).await;
    }
    // It says itself that it did not take the request.
    let fault = Fault::costs_the_call(refused(429), &["server_error"]).certain();
    run(Transport::HttpJson, &fault).await;
}

#[tokio::test]
async fn header_and_body_in_two_writes() {
    // The trap of Nagle's algorithm and delayed acknowledgements costs 40 ms, not the call.
    let stage = crate::stage::Stage::over_http(
        &[answer("whole")],
        HttpScript {
            split_writes: true,
            ..HttpScript::default()
        },
    )
    .await;
    let fault = Fault::harmless(vec![answer("whole")], "whole");
    stage.rounds(&fault).await;
    stage.stop().await;
}
