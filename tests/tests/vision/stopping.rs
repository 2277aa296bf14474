//! SIGTERM while pictures are described.

use std::time::Duration;

use serde_json::json;
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Gate, Reply, wait_for};
use talaria_types::runtime::now;

use crate::scene::{
    ANALYZE, VIA_TOOL, analyze, blind, endpoint, picture, question, result, settles, text,
    with_tool, with_tool_builder,
};

#[tokio::test]
async fn a_description_under_way_still_reaches_the_tool_of_a_server() {
    let gate = Gate::closed();
    let primary = endpoint(Reply::error(400, "bad", "not today").held_by(&gate));
    let service = with_tool(&primary.base()).await;
    let asked = question(&picture(1));
    let analysis = service.post(ANALYZE, &asked);
    let body = json!({"result": result(&[picture(2)]), "route": blind()});
    let delivery = service.post("/v1/results/deliver", &body);
    let meanwhile = async {
        settles("both questions", &2, || primary.count()).await;
        service.terminate().unwrap();
        wait_for("the drain", PATIENCE, || async {
            let ready = service.get("/readyz").await.unwrap().status;
            if ready == 503 { Ok(()) } else { Err(ready) }
        })
        .await
        .unwrap();
        gate.open();
    };
    let (analysis, delivery, ()) = tokio::join!(analysis, delivery, meanwhile);
    let analysis = analysis.unwrap().ok().unwrap();
    assert_eq!(analysis["via"], VIA_TOOL, "{analysis}");
    let delivery = delivery.unwrap().ok().unwrap();
    let description = &delivery["vision"]["descriptions"][0];
    assert_eq!(description["via"], VIA_TOOL, "{delivery}");
    let status = service.wait_exit(PATIENCE).await.unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
    service
        .wait_no_processes(Duration::from_secs(2))
        .await
        .unwrap();
}

#[tokio::test]
async fn a_description_that_does_not_end_is_given_up_at_the_drain_limit() {
    let primary = endpoint(Reply::stalled());
    let service = with_tool_builder(&primary.base())
        .set(&["talaria", "calls", "drain_timeout"], "1s")
        .start()
        .await
        .unwrap();
    let bytes = picture(1);
    let analysis = analyze(&service, &bytes);
    let body = json!({"result": result(&[picture(2)]), "route": blind()});
    let delivery = service.post("/v1/results/deliver", &body);
    let meanwhile = async {
        settles("both questions", &2, || primary.count()).await;
        service.terminate().unwrap();
        now()
    };
    let (analysis, delivery, told) = tokio::join!(analysis, delivery, meanwhile);
    assert!(told.elapsed() < Duration::from_secs(5), "{told:?}");
    let problem = analysis.problem().unwrap();
    assert_eq!(problem["code"], "shutting_down", "{problem}");
    // The result itself is there; it is only not described.
    let delivery = delivery.unwrap().ok().unwrap();
    assert!(text(&delivery).contains("MEDIA:"), "{delivery}");
    assert_eq!(delivery["notices"][0]["code"], "image_not_described");
    let status = service.wait_exit(PATIENCE).await.unwrap();
    assert_eq!(status.code(), Some(0), "{status}");
}
