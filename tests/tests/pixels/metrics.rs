//! What is counted of the gate and of the pictures behind it.

use serde_json::json;

use crate::scene::{bars, base64, blind, deliver, post, result, seeing, service};

#[tokio::test]
async fn decisions_and_pictures_are_counted_by_what_became_of_them() {
    let service = service().await;
    let mut cut = bars(9);
    cut.truncate(60);
    let images = [
        cut,
        bars(1),
        bars(1),
        bars(2),
        bars(3),
        bars(4),
        bars(5),
        bars(6),
    ];
    deliver(&service, result(&images), seeing()).await;
    deliver(&service, result(&images), blind()).await;
    let words = json!({"content": [{"type": "text", "text": "no picture"}]});
    deliver(&service, words, seeing()).await;
    let body = json!({"source": "browser", "image": {"data": base64(&bars(1))}, "route": seeing()});
    post(&service, "/v1/images/deliver", &body).await;
    let metrics = service.metrics().await.unwrap();
    let decided = |labels: &[(&str, &str)]| metrics.sum("talaria_gate_decisions_total", labels);
    assert_eq!(decided(&[]), 4.0);
    let open = [("open", "true"), ("cause", "model_sees"), ("source", "mcp")];
    assert_eq!(decided(&open), 2.0);
    assert_eq!(decided(&[("open", "false"), ("cause", "model_blind")]), 1.0);
    assert_eq!(decided(&[("source", "browser")]), 1.0);
    let outcome = |labels: &[(&str, &str)]| metrics.sum("talaria_image_attachments_total", labels);
    assert_eq!(outcome(&[("outcome", "attached")]), 5.0);
    assert_eq!(
        outcome(&[("outcome", "duplicate"), ("code", "image_duplicate")]),
        1.0
    );
    assert_eq!(
        outcome(&[("outcome", "refused"), ("code", "image_not_decodable")]),
        1.0
    );
    assert_eq!(outcome(&[("outcome", "left_out")]), 2.0);
    assert_eq!(outcome(&[]), 9.0);
}
