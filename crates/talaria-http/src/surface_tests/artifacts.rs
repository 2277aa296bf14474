//! Files over HTTP.

use std::time::Duration;

use serde_json::json;
use talaria_content::{ArtifactKind, FileBody, FileRequest};
use talaria_testkit::wait_for;
use talaria_types::runtime;
use tokio::io::AsyncReadExt;

use super::*;

/// More than one piece, and not a multiple of one.
const LARGE: usize = 700_001;

/// Bytes that repeat nowhere near the size of a piece.
fn bytes(length: usize) -> Vec<u8> {
    (0..length)
        .map(|index| u8::try_from((index * 31 + index / 251) % 256).unwrap())
        .collect()
}

/// Delivers bytes as a blob and answers the artifact it became.
async fn stored(service: &Fixture, name: &str, bytes: &[u8], headers: &[&str]) -> Value {
    let result = json!({ "content": [{ "type": "resource", "resource": {
        "uri": format!("test://files/{name}"),
        "mimeType": "application/octet-stream",
        "blob": talaria_testkit::samples::base64(bytes),
    }}]});
    let reply = service
        .post_as("/v1/results/deliver", &json!({ "result": result }), headers)
        .await;
    assert_eq!(reply.status, 200, "{}", reply.json());
    reply.json()["artifacts"][0].clone()
}

fn path_of(artifact: &Value) -> String {
    format!("/v1/artifacts/{}", artifact["id"].as_str().unwrap())
}

#[actix_web::test]
async fn sends_a_file_with_what_a_client_needs_to_know() {
    let service = fixture();
    let original = bytes(1000);
    let artifact = stored(&service, "r%C3%A9sum%C3%A9.bin", &original, &[]).await;
    assert_eq!(artifact["name"], "résumé.bin");
    let reply = service.get(&path_of(&artifact)).await;
    assert_eq!(
        (reply.status, reply.body.as_slice()),
        (200, original.as_slice())
    );
    let etag = format!("\"{}\"", artifact["sha256"].as_str().unwrap());
    for (name, value) in [
        ("content-type", artifact["media_type"].as_str().unwrap()),
        ("content-length", "1000"),
        ("accept-ranges", "bytes"),
        ("etag", etag.as_str()),
        ("x-content-type-options", "nosniff"),
        (
            "content-security-policy",
            "default-src 'none'; sandbox; frame-ancestors 'none'",
        ),
        (
            "content-disposition",
            "attachment; filename=\"r_sum_.bin\"; filename*=UTF-8''r%C3%A9sum%C3%A9.bin",
        ),
    ] {
        assert_eq!(reply.header(name), Some(value), "{name}");
    }
    assert_eq!(
        artifact["url"],
        format!("http://files.example{}", path_of(&artifact)),
        "the address in the delivery is the one that is served"
    );
}

#[actix_web::test]
async fn sends_large_files_and_ranges_byte_for_byte() {
    let service = fixture();
    let original = bytes(LARGE);
    let path = path_of(&stored(&service, "large.bin", &original, &[]).await);
    let whole = service.get(&path).await;
    assert!(whole.body == original, "{} bytes", whole.body.len());
    assert_eq!(whole.header("content-length"), Some("700001"));
    for (range, first, last) in [
        ("bytes=0-0", 0, 0),
        ("bytes=262143-262144", 262_143, 262_144),
        ("bytes=1-700000", 1, 700_000),
        ("bytes=300000-", 300_000, 700_000),
        ("bytes=-300000", 400_001, 700_000),
    ] {
        let reply = service
            .send("GET", &path, &[&format!("Range: {range}")], b"")
            .await;
        assert_eq!(reply.status, 206, "{range}");
        let expected = format!("bytes {first}-{last}/700001");
        assert_eq!(reply.header("content-range"), Some(expected.as_str()));
        assert!(reply.body == original[first..=last], "{range}");
    }
}

#[actix_web::test]
async fn sends_no_range_outside_the_file_and_nothing_twice() {
    let service = fixture();
    let artifact = stored(&service, "a.bin", &bytes(10), &[]).await;
    let path = path_of(&artifact);
    let outside = service.send("GET", &path, &["Range: bytes=10-"], b"").await;
    assert_eq!(outside.header("content-range"), Some("bytes */10"));
    outside.refused(416, "invalid_request");
    let etag = artifact["sha256"].as_str().unwrap();
    let known = service
        .send("GET", &path, &[&format!("If-None-Match: \"{etag}\"")], b"")
        .await;
    assert_eq!((known.status, known.body.len()), (304, 0));
    let changed = ["Range: bytes=0-0", "If-Range: \"other\""];
    assert_eq!(service.send("GET", &path, &changed, b"").await.status, 200);
    let same = ["Range: bytes=0-0", &format!("If-Range: \"{etag}\"")];
    assert_eq!(service.send("GET", &path, &same, b"").await.status, 206);
}

#[actix_web::test]
async fn answers_head_with_the_length_and_no_bytes() {
    let service = fixture();
    let path = path_of(&stored(&service, "large.bin", &bytes(LARGE), &[]).await);
    let head = service.send("HEAD", &path, &[], b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    assert_eq!(head.header("content-length"), Some("700001"));
    let part = service
        .send("HEAD", &path, &["Range: bytes=0-99"], b"")
        .await;
    assert_eq!((part.status, part.body.len()), (206, 0));
    assert_eq!(part.header("content-length"), Some("100"));
}

#[actix_web::test]
async fn a_head_request_leaves_the_connection_usable() {
    let service = fixture();
    let path = path_of(&stored(&service, "large.bin", &bytes(LARGE), &[]).await);
    let mut connection = client::Connection::open(service.address()).await;
    let head = connection.ask("HEAD", &path, &[], b"").await;
    assert_eq!((head.status, head.body.len()), (200, 0));
    let part = connection
        .ask("GET", &path, &["Range: bytes=0-4"], b"")
        .await;
    assert_eq!((part.status, part.body), (206, bytes(5)));
}

#[actix_web::test]
async fn a_file_that_is_being_sent_does_not_expire() {
    const SIZE: usize = 24 << 20;
    let service = fixture();
    let original = bytes(SIZE);
    let stored = service.store.save(
        FileRequest {
            kind: ArtifactKind::Document,
            name: "huge.bin".to_owned(),
            named: true,
            media_type: "application/octet-stream".to_owned(),
            declared_type: None,
            source_uri: None,
            body: FileBody::Bytes(original.clone()),
        },
        None,
    );
    let artifact = stored.unwrap();
    let mut connection = client::Connection::open(service.address()).await;
    let path = format!("/v1/artifacts/{}", artifact.id);
    connection
        .send("GET", &path, &["Connection: close"], b"")
        .await;
    let mut received = vec![0];
    connection.stream.read_exact(&mut received).await.unwrap();

    let later = runtime::wall_clock() + Duration::from_secs(7 * 24 * 3600);
    assert_eq!(service.store.sweep(later).expired, 0, "it is being sent");
    connection.stream.read_to_end(&mut received).await.unwrap();
    assert!(received.ends_with(&original), "{} bytes", received.len());
    wait_for("the file to be free", Duration::from_secs(5), || {
        let swept = service.store.sweep(later).expired;
        std::future::ready(if swept == 1 { Ok(()) } else { Err(swept) })
    })
    .await
    .unwrap();
}

#[actix_web::test]
async fn tells_what_is_known_of_a_file() {
    let service = fixture();
    let artifact = stored(&service, "a.bin", &bytes(10), &[]).await;
    let meta = service
        .get(&format!("{}/meta", path_of(&artifact)))
        .await
        .json();
    for (key, value) in artifact.as_object().unwrap() {
        assert_eq!(meta[key], *value, "{key}");
    }
    assert_eq!(meta["owner"], Value::Null);
    assert!(meta["created_ms"].as_u64().unwrap() > 1_700_000_000_000);
}

#[actix_web::test]
async fn a_removed_file_is_unknown() {
    let service = fixture();
    let artifact = stored(&service, "a.bin", &bytes(10), &[]).await;
    let path = path_of(&artifact);
    let removed = service.send("DELETE", &path, &[], b"").await;
    assert_eq!((removed.status, removed.body.len()), (204, 0));
    service.get(&path).await.refused(404, "unknown_artifact");
    service
        .get(&format!("{path}/meta"))
        .await
        .refused(404, "unknown_artifact");
    service
        .send("DELETE", &path, &[], b"")
        .await
        .refused(404, "unknown_artifact");
    assert!(!std::path::Path::new(artifact["path"].as_str().unwrap()).exists());
}

#[actix_web::test]
async fn knows_no_artifact_by_a_path_or_a_foreign_id() {
    let service = fixture();
    for id in [
        "x",
        "art_",
        "..",
        "..%2F..%2Fetc%2Fpasswd",
        "art_00000000000000000000000000",
    ] {
        let reply = service.get(&format!("/v1/artifacts/{id}")).await;
        reply.refused(404, "unknown_artifact");
    }
}
