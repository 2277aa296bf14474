//! Drawings that would draw for minutes, overflow a stack or eat memory cost themselves a notice.

use serde_json::json;

use crate::scene::{attached, base64, codes, deliver, post, seeing, service, text};

/// A drawing of 800×600 with these shapes.
fn drawing(shapes: &str) -> String {
    format!("<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"800\" height=\"600\">{shapes}</svg>")
}

fn hostile() -> Vec<(&'static str, String)> {
    let path = |data: &str| drawing(&format!("<path d=\"M0 0{data}\"/>"));
    let attributes: String = (0..60_000).map(|n| format!(" a{n}=\"\"")).collect();
    let names: String = (0..30_000)
        .map(|n| format!(" xmlns:n{n}=\"u{n}\""))
        .collect();
    let circles = "<circle r=\"1e12\" stroke=\"red\" stroke-width=\"1e11\"/>".repeat(4_000);
    let curve = "c9 9 1 9 5 5".repeat(500);
    let letters = "x".repeat(20_000);
    vec![
        ("thousands of arcs", path(&"A9 9 0 1 1 5 5 ".repeat(20_000))),
        (
            "one huge arc",
            drawing(
                "<path stroke=\"red\" stroke-width=\"1e8\" fill=\"none\" d=\"M0 0A1e9 1e9 0 1 1 5 5\"/>",
            ),
        ),
        (
            "one huge curve",
            drawing(
                "<path stroke=\"red\" stroke-width=\"1e8\" fill=\"none\" d=\"M0 0C1e9 0 0 1e9 5 5\"/>",
            ),
        ),
        ("attributes", drawing(&format!("<g{attributes}/>"))),
        ("name spaces", drawing(&format!("<g{names}/>"))),
        (
            "a long style",
            drawing(&format!("<g style=\"{}\"/>", "fill:red;".repeat(100_000))),
        ),
        ("huge circles", drawing(&circles)),
        (
            "text on a path",
            drawing(&format!(
                "<defs><path id=\"p\" d=\"M0 0{curve}\"/></defs>\
                 <text><textPath href=\"#p\">{letters}</textPath></text>"
            )),
        ),
        ("open brackets", "<svg ".to_owned() + &"<".repeat(2_000_000)),
    ]
}

#[tokio::test]
async fn a_hostile_drawing_costs_itself_a_notice_and_nobody_else_anything() {
    let service = service().await;
    for (name, svg) in hostile() {
        let block = json!({
            "type": "image", "mimeType": "image/svg+xml", "data": base64(svg.as_bytes()),
        });
        let delivery = deliver(&service, json!({ "content": [block] }), seeing()).await;
        let codes = codes(&delivery);
        let is_said = codes
            .iter()
            .any(|code| code.starts_with("image_") || *code == "not_an_image");
        // What is drawn in time after all is a picture like any other.
        assert!(
            is_said || attached(&delivery).len() == 1,
            "{name}: {delivery}"
        );
        assert!(!codes.contains(&"image_late"), "{name}: {codes:?}");
    }
    // Both workers are free again, and draw.
    let fine = drawing("<rect width=\"400\" height=\"600\" fill=\"#c00\"/>");
    let body = json!({
        "source": "mcp", "image": {"data": base64(fine.as_bytes())}, "route": seeing(),
    });
    let delivery = post(&service, "/v1/images/deliver", &body).await;
    let pictures = attached(&delivery);
    assert_eq!(pictures.len(), 1, "{}", text(&delivery));
    assert_eq!((pictures[0].width, pictures[0].height), (800, 600));
}
