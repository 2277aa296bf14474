//! The pipeline over a real store.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use talaria_config::Config;
use talaria_content::BlockFate;
use talaria_image::PoolOptions;
use talaria_media::MediaOptions;
use talaria_types::{ErrorCode, TokenName};

use super::*;

mod pixels;
mod words;

struct Desks {
    service: DeliveryService,
    pool: ImagePool,
    _home: tempfile::TempDir,
}

fn desks() -> Desks {
    desks_with(|_| {})
}

fn desks_with(change: impl FnOnce(&mut Config)) -> Desks {
    let home = tempfile::tempdir().unwrap();
    let mut config = Config::with_home(home.path().to_path_buf());
    config.result_size_chars = 2_000;
    change(&mut config);
    let store = MediaStore::open(MediaOptions {
        root: home.path().join("cache"),
        max_bytes: 1 << 30,
        ttl: Duration::from_secs(3600),
        grace: Duration::from_secs(60),
        fsync: false,
        base_url: None,
    });
    let parts = DeliveryParts {
        store,
        blocking: BlockingPool::new(2),
        gatekeeper: Gatekeeper::new(&config),
        pool: pool(),
    };
    let pool = parts.pool.clone();
    let service = DeliveryService::new(&config, parts);
    Desks {
        service,
        pool,
        _home: home,
    }
}

fn pool() -> ImagePool {
    ImagePool::start(PoolOptions {
        workers: NonZeroUsize::MIN,
        queue: NonZeroUsize::new(8).unwrap(),
        pixels: 100_000_000,
        drawer: None,
    })
}

fn options(kind: ResultKind) -> DeliverOptions {
    DeliverOptions {
        kind,
        server: Some(ServerName::from("s")),
        tool: Some("t".to_owned()),
        reader: ReaderTool::Missing,
        format: Format::Talaria,
        images: ImageWishes::default(),
    }
}

fn block_on<F: Future>(test: F) -> F::Output {
    actix::System::new().block_on(test)
}

/// Delivers a result as it would come over HTTP.
async fn deliver(desks: &Desks, kind: ResultKind, result: &Value) -> Delivery {
    let ctx = CallContext::new(Deadline::after(Duration::from_secs(60)));
    let body = result.to_string().into_bytes();
    let scrubbed = desks.service.read_body(&ctx, body, "").await.unwrap();
    desks
        .service
        .deliver(&ctx, scrubbed.result.unwrap(), options(kind))
        .await
        .unwrap()
        .delivery
}

async fn deliver_tool(desks: &Desks, result: Value) -> Delivery {
    deliver(desks, ResultKind::ToolCall, &result).await
}

#[test]
fn a_text_is_delivered_and_the_gate_says_why_it_is_closed() {
    block_on(async {
        let desks = desks();
        let result = json!({ "content": [{ "type": "text", "text": "hello" }] });
        let delivery = deliver_tool(&desks, result).await;
        assert_eq!(delivery.text, "hello");
        assert!(!delivery.gate.open && delivery.gate.mode == "auto");
        assert!(
            delivery.gate.reason.contains("names no route"),
            "{}",
            delivery.gate.reason
        );
    });
}

#[test]
fn a_file_is_saved_byte_for_byte_and_belongs_to_its_token() {
    block_on(async {
        let desks = desks();
        let bytes: Vec<u8> = (0..200_000_u32)
            .map(|n| u8::try_from(n % 251).unwrap())
            .collect();
        let result = json!({ "content": [{ "type": "resource", "resource": {
            "uri": "x:data.bin", "mimeType": "application/octet-stream", "blob": STANDARD.encode(&bytes),
        } }] });
        let mut ctx = CallContext::new(Deadline::after(Duration::from_secs(60)));
        ctx.token = Some(TokenName::from("ci"));
        let body = json!({ "result": result }).to_string().into_bytes();
        let scrubbed = desks
            .service
            .read_body(&ctx, body, "/result")
            .await
            .unwrap();
        let delivered = desks.service.deliver(
            &ctx,
            scrubbed.result.unwrap(),
            options(ResultKind::ToolCall),
        );
        let delivery = delivered.await.unwrap().delivery;
        let artifact = &delivery.artifacts[0];
        assert_eq!(std::fs::read(&artifact.path).unwrap(), bytes);
        let record = desks.service.store.find(&artifact.id).unwrap();
        assert_eq!(record.owner, Some(TokenName::from("ci")));
    });
}

#[test]
fn a_long_text_is_spilled_whole() {
    block_on(async {
        let desks = desks();
        let long = "All work and no play. ".repeat(500);
        let result = json!({ "content": [{ "type": "text", "text": long }] });
        let delivery = deliver_tool(&desks, result).await;
        assert!(delivery.text.len() < long.len());
        assert_eq!(
            std::fs::read_to_string(&delivery.artifacts[0].path).unwrap(),
            long
        );
        assert_eq!(delivery.blocks[0].fate, BlockFate::Spilled);
    });
}

#[test]
fn a_short_text_blob_is_saved_and_shown() {
    block_on(async {
        let desks = desks();
        let text = "name,count\nfoo,1\n";
        let result = json!({ "content": [{ "type": "resource", "resource": {
            "uri": "x:table.csv", "mimeType": "text/csv", "blob": STANDARD.encode(text),
        } }] });
        let delivery = deliver_tool(&desks, result).await;
        assert!(delivery.text.contains("foo,1"), "{}", delivery.text);
        assert_eq!(
            std::fs::read_to_string(&delivery.artifacts[0].path).unwrap(),
            text
        );
    });
}

#[test]
fn a_disk_that_refuses_costs_its_block_and_not_the_call() {
    block_on(async {
        let desks = desks();
        // A file where the store wants its folder.
        let home = tempfile::NamedTempFile::new().unwrap();
        let store = MediaStore::open(MediaOptions {
            root: home.path().join("cache"),
            max_bytes: 1 << 30,
            ttl: Duration::from_secs(3600),
            grace: Duration::from_secs(60),
            fsync: false,
            base_url: None,
        });
        let service = DeliveryService {
            store,
            ..desks.service.clone()
        };
        let ctx = CallContext::new(Deadline::after(Duration::from_secs(60)));
        let body = json!({ "content": [
            { "type": "text", "text": "before" },
            { "type": "audio", "mimeType": "audio/wav", "data": STANDARD.encode(b"RIFF0000WAVEfmt ") },
            { "type": "text", "text": "after" },
        ] });
        let body = body.to_string().into_bytes();
        let scrubbed = service.read_body(&ctx, body, "").await.unwrap();
        let delivered = service.deliver(
            &ctx,
            scrubbed.result.unwrap(),
            options(ResultKind::ToolCall),
        );
        let delivery = delivered.await.unwrap().delivery;
        assert!(delivery.text.contains("before") && delivery.text.contains("after"));
        assert!(delivery.artifacts.is_empty());
        assert_eq!(delivery.notices.len(), 1, "{:?}", delivery.notices);
    });
}

#[test]
fn a_busy_pool_answers_busy_and_a_body_that_is_no_json_is_refused() {
    block_on(async {
        let desks = desks();
        let ctx = CallContext::new(Deadline::after(Duration::from_secs(60)));
        let refused = desks
            .service
            .read_body(&ctx, b"no json".to_vec(), "")
            .await
            .unwrap_err();
        assert_eq!(refused.code(), ErrorCode::MalformedMessage);

        let service = DeliveryService {
            blocking: BlockingPool::new(1),
            ..desks.service.clone()
        };
        let gate = Arc::new(std::sync::Barrier::new(2));
        let blocker = {
            let (gate, pool) = (Arc::clone(&gate), service.blocking.clone());
            let long = Deadline::after(Duration::from_secs(60));
            runtime::spawn("test blocker", async move {
                pool.run(long, move || gate.wait()).await
            })
        };
        while service.blocking.running() == 0 {
            tokio::task::yield_now().await;
        }
        let soon = CallContext::new(Deadline::after(Duration::from_millis(20)));
        let long = "x".repeat(100_000);
        let raw = RawResult::from_json(json!({ "content": [{ "type": "text", "text": long }] }));
        let busy = service
            .deliver(&soon, raw, options(ResultKind::ToolCall))
            .await
            .unwrap_err();
        assert_eq!(busy.code(), ErrorCode::Busy);
        gate.wait();
        assert!(blocker.await.unwrap().is_ok());
    });
}

#[test]
fn every_block_received_meets_a_fate() {
    block_on(async {
        let desks = desks();
        let png = STANDARD.encode(b"\x89PNG\r\n\x1a\n0000");
        let content = json!([
            { "type": "text", "text": "a" },
            { "type": "text", "text": "" },
            { "type": "image", "mimeType": "image/png", "data": png },
            { "type": "image", "mimeType": "image/png", "data": "not base64!" },
            { "type": "audio" },
            { "type": "resource", "resource": { "uri": "x:y", "text": "inside" } },
            { "type": "resource_link", "uri": "x:z", "name": "z" },
            { "uri": "x:bare", "name": "bare" },
            { "type": "hologram", "depth": 3 },
            null, 7, "bare words", [],
        ]);
        let shapes = [
            (ResultKind::ToolCall, json!({ "content": content })),
            (
                ResultKind::ToolCall,
                json!({ "content": content, "isError": true }),
            ),
            (ResultKind::ToolCall, json!({ "content": "words" })),
            (
                ResultKind::ToolCall,
                json!({ "content": { "type": "text", "text": "one" } }),
            ),
            (ResultKind::ToolCall, json!({ "content": { "odd": 1 } })),
            (ResultKind::ToolCall, json!({ "content": [] })),
            (
                ResultKind::ToolCall,
                json!({ "toolResult": { "content": content } }),
            ),
            (ResultKind::ToolCall, json!({ "toolResult": "words" })),
            (
                ResultKind::ToolCall,
                json!({ "structuredContent": { "a": 1 } }),
            ),
            (ResultKind::ToolCall, json!("bare string")),
            (
                ResultKind::ToolCall,
                json!([{ "type": "text", "text": "in a bare list" }]),
            ),
            (
                ResultKind::ReadResource,
                json!({ "contents": [
                { "uri": "x:a", "text": "t" }, { "uri": "x:b", "blob": png }, {}, null,
            ] }),
            ),
            (ResultKind::ReadResource, json!({ "content": content })),
            (
                ResultKind::GetPrompt,
                json!({ "messages": [
                { "role": "user", "content": { "type": "text", "text": "t" } },
                { "role": "user", "content": [{ "type": "text", "text": "t" }] },
                { "role": "user", "content": "t" },
                { "role": "user" },
            ] }),
            ),
            (
                ResultKind::ListResources,
                json!({ "resources": [{ "uri": "x:y", "name": "y" }] }),
            ),
            (
                ResultKind::ListPrompts,
                json!({ "prompts": [{ "name": "p" }] }),
            ),
        ];
        for (kind, result) in shapes {
            let received = received::kinds(&result, &kind);
            let delivery = deliver(&desks, kind, &result).await;
            let settled: Vec<_> = delivery.blocks.iter().map(|block| block.kind).collect();
            assert_eq!(
                received.len(),
                settled.len(),
                "{result}: {received:?} {settled:?}"
            );
        }
    });
}
