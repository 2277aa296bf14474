//! The faults of a server of the older HTTP+SSE transport, whose one stream carries everything.

use talaria_testkit::Action;
use talaria_testkit::script::{HttpAction, raw};

use crate::outcome::Fault;
use crate::stage::{Transport, run};
use crate::stdio::{answer, huge, storm};

const FAULTS: &str = "talaria_wire_faults_total";

#[tokio::test]
async fn a_server_that_hangs() {
    run(Transport::Older, &Fault::silence(vec![Action::Hang])).await;
}

#[tokio::test]
async fn a_stream_that_breaks_off() {
    let fault = Fault::costs_the_call(vec![HttpAction::Reset.into()], &["connection_lost"]);
    run(Transport::Older, &fault.replaced()).await;
}

#[tokio::test]
async fn an_answer_to_another_id_and_then_the_right_one() {
    let other = raw("{\"jsonrpc\":\"2.0\",\"id\":987654,\"result\":{\"content\":[]}}");
    let fault = Fault::harmless(vec![other, answer("right")], "right");
    run(Transport::Older, &fault).await;
}

#[tokio::test]
async fn two_answers() {
    let fault = Fault::harmless(vec![answer("first"), answer("second")], "first");
    run(Transport::Older, &fault).await;
}

#[tokio::test]
async fn an_answer_after_the_cancellation() {
    let fault = Fault::silence(vec![Action::AwaitCancel, answer("late")]);
    run(Transport::Older, &fault).await;
}

#[tokio::test]
async fn garbage_in_place_of_the_answer() {
    let garbage = raw("{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{]}");
    let fault = Fault::costs_the_call(vec![garbage], &["malformed_message"])
        .counted(FAULTS, &[("server", "s"), ("code", "malformed_message")]);
    run(Transport::Older, &fault).await;
}

#[tokio::test]
async fn a_huge_answer() {
    let fault = Fault::costs_the_call(vec![huge()], &["message_too_large"])
        .counted(FAULTS, &[("server", "s"), ("code", "message_too_large")]);
    run(Transport::Older, &fault).await;
}

#[tokio::test]
async fn a_storm_of_notifications() {
    let storm = vec![
        storm("notifications/tools/list_changed", 1_000),
        storm("notifications/nobody/knows", 1_000),
        answer("heard"),
    ];
    run(Transport::Older, &Fault::harmless(storm, "heard")).await;
}
