//! Loops that wait for each other would wait for ever.

use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use talaria_testkit::script::{self, text_result, understand_image};
use talaria_testkit::{Action, PictureForm, Script, Service, samples};
use talaria_types::runtime::now;

use crate::scene::{
    ANALYZE, SERVER, VIA_TOOL, backend, blind, builder, chained, picture, question, refusing, text,
    tool_link,
};

/// Analyses at the same time.
const ANALYSES: u32 = 100;

/// A server that describes, yields pictures and can be held, one call at a time.
fn script(release: &std::path::Path) -> Script {
    let image =
        json!({"type": "image", "mimeType": "image/png", "data": samples::base64(&picture(7))});
    Script::new("eyes")
        .vision_tool(
            "understand_image",
            "image_source",
            PictureForm::File,
            "saw {seen}",
        )
        .on_call(
            "hold",
            [
                Action::AwaitFile {
                    path: release.to_owned(),
                },
                Action::Answer {
                    result: text_result("let go"),
                },
            ],
        )
        .tool("snap", json!({"content": [image]}))
        .with_tools(vec![
            understand_image(),
            script::tool("hold"),
            script::tool("snap"),
        ])
}

async fn service(primary: &str) -> (Service, std::path::PathBuf) {
    let builder = builder();
    let release = builder.home().join("release");
    let builder = builder
        .stdio(SERVER, script(&release))
        .unwrap()
        .set(&["talaria", "limits", "pending_per_server"], 512);
    let service = chained(
        builder,
        Some(backend(primary, "first")),
        Vec::new(),
        vec![tool_link(SERVER)],
    )
    .start()
    .await
    .unwrap();
    (service, release)
}

#[tokio::test]
async fn a_hundred_analyses_wait_for_the_lock_and_the_service_for_nobody() {
    let port = refusing();
    let (service, release) = service(&port.base()).await;
    let service = &service;
    let held = service.call(SERVER, "hold", json!({}));
    let analyses = join_all((0..ANALYSES).map(|number| async move {
        let body = question(&picture(number));
        service.post(ANALYZE, &body).await.unwrap()
    }));
    let watch = async {
        service
            .wait_record(SERVER, "the held call", Duration::from_secs(10), |record| {
                record.calls("hold")
            })
            .await
            .unwrap();
        // While the lock is held and a hundred wait for it, everything else is answered.
        for _ in 0..5 {
            let started = now();
            assert_eq!(service.get("/healthz").await.unwrap().status, 200);
            service.server(SERVER).await.unwrap();
            let result = json!({"result": text_result("words"), "route": blind()});
            let delivered = service.post("/v1/results/deliver", &result).await.unwrap();
            assert_eq!(text(&delivered.ok().unwrap()), "words");
            let took = started.elapsed();
            assert!(took < Duration::from_secs(3), "after {took:?}");
        }
        let calls = crate::scene::tool_calls(service);
        assert!(
            calls.is_empty(),
            "the lock is held, and {} calls ran",
            calls.len()
        );
        std::fs::write(&release, "").unwrap();
    };
    let (held, analyses, ()) = tokio::join!(held, analyses, watch);
    assert_eq!(text(&held.unwrap().ok().unwrap()), "let go");
    for answer in analyses {
        let answer: Value = answer.ok().unwrap();
        assert_eq!(answer["via"], VIA_TOOL, "{answer}");
    }
}

#[tokio::test]
async fn pictures_of_a_server_are_described_by_its_own_tool() {
    let port = refusing();
    let (service, _) = service(&port.base()).await;
    let service = &service;
    let calls = (0..20).map(|_| async move {
        let body = json!({"server": SERVER, "name": "snap", "arguments": {}, "route": blind()});
        service
            .post("/v1/tools/call", &body)
            .await
            .unwrap()
            .ok()
            .unwrap()
    });
    let started = now();
    for delivery in join_all(calls).await {
        assert!(text(&delivery).contains("saw image/"), "{delivery}");
    }
    assert!(
        started.elapsed() < Duration::from_secs(20),
        "{:?}",
        started.elapsed()
    );
}

#[tokio::test]
async fn a_held_lock_costs_the_analysis_its_own_time_only() {
    let port = refusing();
    let builder = builder();
    let release = builder.home().join("release");
    let mut link = tool_link(SERVER);
    link["timeout"] = json!(1);
    let builder = builder.stdio(SERVER, script(&release)).unwrap();
    let service = chained(
        builder,
        Some(backend(&port.base(), "first")),
        Vec::new(),
        vec![link],
    )
    .start()
    .await
    .unwrap();
    let held = service.call(SERVER, "hold", json!({}));
    let asked = async {
        service
            .wait_record(SERVER, "the held call", Duration::from_secs(10), |record| {
                record.calls("hold")
            })
            .await
            .unwrap();
        let started = now();
        let answer = crate::scene::analyze(&service, &picture(1)).await;
        let took = started.elapsed();
        assert!(answer.status >= 500, "{}", answer.excerpt());
        assert!(took < Duration::from_secs(4), "after {took:?}");
        std::fs::write(&release, "").unwrap();
    };
    let (held, ()) = tokio::join!(held, asked);
    assert_eq!(held.unwrap().status, 200);
}
