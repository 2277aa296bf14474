//! A pool that is busy, and a server that floods the service with large pictures.

use serde_json::json;
use talaria_testkit::script::text_result;
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Script, pictures, wait_for};

use crate::scene::{
    attached, bars, blind, builder, codes, deliver, media_lines, result, seeing, text,
};

/// Pictures that cost the pool some time: noise that has to shrink.
fn heavy(seed: u64) -> Vec<u8> {
    pictures::noise_png(2_400, 1_600, seed).unwrap()
}

#[tokio::test]
async fn a_busy_pool_costs_pixels_and_nothing_else() {
    let service = builder()
        .set(&["talaria", "images", "workers"], 1)
        .set(&["talaria", "images", "queue"], 1)
        .start()
        .await
        .unwrap();
    // Four at once: one is worked on, one waits, and for the others there is no place.
    let images: Vec<Vec<u8>> = (1..=4).map(heavy).collect();
    let delivery = deliver(&service, result(&images), seeing()).await;
    assert_eq!(delivery["gate"]["open"], true);
    assert_eq!(media_lines(text(&delivery)), 4, "{}", text(&delivery));
    let busy = codes(&delivery)
        .iter()
        .filter(|code| **code == "image_busy")
        .count();
    assert!(busy >= 1, "{}", text(&delivery));
    assert!(!attached(&delivery).is_empty(), "{}", text(&delivery));
    let metrics = service.metrics().await.unwrap();
    let outcome = |outcome| metrics.sum("talaria_image_attachments_total", &[("outcome", outcome)]);
    assert_eq!(outcome("attached") + outcome("refused"), 4.0);
    let again = deliver(&service, result(&[bars(1)]), seeing()).await;
    assert_eq!(attached(&again).len(), 1, "the pool works on");
}

#[tokio::test]
async fn a_flood_of_large_pictures_delays_no_other_servers_calls() {
    let flood = result(&(1..=4).map(heavy).collect::<Vec<_>>());
    let big = Script::new("big").tool("shots", flood);
    let small = Script::new("small").tool("echo", text_result("hi"));
    let service = builder()
        .stdio("big", big)
        .unwrap()
        .stdio("small", small)
        .unwrap()
        .set(&["talaria", "images", "workers"], 1)
        .set(&["talaria", "limits", "blocking_jobs"], 1)
        .start()
        .await
        .unwrap();
    let floods: Vec<_> = (0..4)
        .map(|_| {
            let body = json!({"server": "big", "name": "shots", "route": seeing()});
            let request = service
                .client()
                .post(service.url("/v1/tools/call"))
                .json(&body);
            talaria_types::runtime::spawn("test", request.send())
        })
        .collect();
    wait_for("the pool to have work waiting", PATIENCE, || async {
        let metrics = service.metrics().await.map_err(|error| error.to_string())?;
        let waiting = metrics.sum("talaria_queue_depth", &[("queue", "images")]);
        if waiting > 0.0 {
            Ok(())
        } else {
            Err(format!("{waiting} wait"))
        }
    })
    .await
    .unwrap();
    // Sixteen pictures on one thread: whatever waited behind them would not be back before them.
    let delivery = service
        .call("small", "echo", json!({}))
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(text(&delivery), "hi");
    let saved = deliver(&service, result(&[bars(1)]), blind()).await;
    assert_eq!(media_lines(text(&saved)), 1, "files are stored meanwhile");
    let ended = floods.iter().filter(|flood| flood.is_finished()).count();
    assert!(
        ended < floods.len(),
        "the flood was over before the small calls were made"
    );
    for flood in floods {
        assert_eq!(flood.await.unwrap().unwrap().status(), 200);
    }
}
