//! The media store tells the metrics what it does. Own process: the recorder is global.

use std::time::Duration;

use talaria_content::{ArtifactKind, FileBody, FileRequest};
use talaria_media::{MediaOptions, MediaStore};
use talaria_types::runtime::wall_clock;

#[test]
fn every_event_of_the_store_is_counted() {
    let metrics = talaria_telemetry::install().unwrap();
    let home = tempfile::tempdir().unwrap();
    let store = MediaStore::open(MediaOptions {
        root: home.path().join("cache"),
        max_bytes: 100,
        ttl: Duration::from_secs(3600),
        grace: Duration::ZERO,
        fsync: false,
        base_url: None,
    });
    let save = |bytes: usize| {
        let request = FileRequest {
            kind: ArtifactKind::Document,
            name: "a.pdf".to_owned(),
            named: true,
            media_type: "application/pdf".to_owned(),
            declared_type: None,
            source_uri: None,
            body: FileBody::Bytes(vec![0; bytes]),
        };
        store.save(request, None)
    };
    let deleted = save(30).unwrap();
    store.delete(&deleted.id).unwrap();
    save(60).unwrap();
    save(50).unwrap();
    save(40).unwrap();
    save(101).unwrap_err();
    assert_eq!(
        store
            .sweep(wall_clock() + Duration::from_secs(7200))
            .expired,
        2
    );
    save(7).unwrap();

    let mut lines: Vec<_> = metrics
        .render()
        .lines()
        .filter(|line| line.starts_with("talaria_media_"))
        .map(str::to_owned)
        .collect();
    lines.sort();
    assert_eq!(
        lines,
        [
            "talaria_media_bytes 7",
            "talaria_media_failures_total{code=\"media_unavailable\"} 1",
            "talaria_media_files 1",
            "talaria_media_removed_bytes_total{reason=\"deleted\"} 30",
            "talaria_media_removed_bytes_total{reason=\"expired\"} 90",
            "talaria_media_removed_bytes_total{reason=\"quota\"} 60",
            "talaria_media_removed_files_total{reason=\"deleted\"} 1",
            "talaria_media_removed_files_total{reason=\"expired\"} 2",
            "talaria_media_removed_files_total{reason=\"quota\"} 1",
            "talaria_media_saved_bytes_total{kind=\"document\"} 187",
            "talaria_media_saved_files_total{kind=\"document\"} 5",
        ]
    );
}
