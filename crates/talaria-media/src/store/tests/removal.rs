//! Expiry, quota, grace, leases, deletion.

use crate::SweepReport;

use super::*;

#[test]
fn what_is_older_than_its_time_to_live_goes() {
    let bench = Bench::new();
    let store = bench.open();
    let old = save(&store, b"old");
    bench.pass(HOUR);
    let young = save(&store, b"young");
    bench.pass(23 * HOUR);
    assert_eq!(store.sweep(bench.now()), SweepReport::default());
    bench.pass(Duration::from_millis(1));
    assert_eq!(
        store.sweep(bench.now()),
        SweepReport {
            expired: 1,
            evicted: 0,
            bytes: 3
        }
    );
    assert_eq!(code(store.find(&old.id)), ErrorCode::UnknownArtifact);
    assert!(!old.path.exists() && young.path.exists());
}

#[test]
fn a_save_that_needs_room_removes_the_least_recently_used() {
    let bench = Bench::new();
    let store = bench.open();
    let first = save(&store, &[1; 400_000]);
    bench.pass(MINUTE);
    let second = save(&store, &[2; 400_000]);
    bench.pass(HOUR);
    drop(store.read(&first.id).unwrap());
    let third = save(&store, &[3; 400_000]);
    assert!(first.path.exists() && !second.path.exists() && third.path.exists());
    assert_eq!(code(store.read(&second.id)), ErrorCode::UnknownArtifact);
}

#[test]
fn a_save_over_the_quota_fails_when_all_is_young() {
    let bench = Bench::new();
    let store = bench.open();
    let first = save(&store, &[1; 600_000]);
    bench.pass(10 * MINUTE - Duration::from_millis(1));
    let refused = store
        .save(document("b.pdf", &[2; 400_001]), None)
        .unwrap_err();
    assert_eq!(refused.code, ErrorCode::MediaUnavailable);
    assert!(refused.detail.contains("quota"), "{}", refused.detail);
    assert!(first.path.exists());
    assert_eq!(bench.listing("documents").len(), 1);
    assert_eq!(bench.listing("staging"), Vec::<String>::new());
    save(&store, &[2; 400_000]);
    bench.pass(Duration::from_millis(1));
    save(&store, &[2; 400_001]);
    assert!(!first.path.exists());
}

#[test]
fn a_file_that_cannot_be_removed_does_not_stop_the_store() {
    let bench = Bench::new();
    let store = bench.open();
    let stuck = save(&store, &[1; 100_000]);
    // Not even root unlinks a directory.
    fs::remove_file(&stuck.path).unwrap();
    fs::create_dir(&stuck.path).unwrap();
    for _ in 0..20 {
        bench.pass(HOUR);
        let saved = save(&store, &[2; 500_000]);
        assert!(saved.path.is_file());
    }
    bench.pass(HOUR);
    let refused = store
        .save(document("b.pdf", &[3; 950_000]), None)
        .unwrap_err();
    assert!(refused.detail.contains("stored"), "{}", refused.detail);
    // Once it can be removed, it is.
    fs::remove_dir(&stuck.path).unwrap();
    save(&store, &[3; 950_000]);
    assert_eq!(bench.listing("documents").len(), 1);
}

#[test]
fn a_refused_save_removes_nothing_and_keeps_no_room() {
    let bench = Bench::new();
    let store = bench.open();
    let old = save(&store, &[1; 500_000]);
    bench.pass(HOUR);
    for _ in 0..5 {
        let body = FileBody::Staged(staged(&store, &[2; 1_000_001]));
        let refused = store.save(
            FileRequest {
                body,
                ..document("b.pdf", b"")
            },
            None,
        );
        assert_eq!(code(refused), ErrorCode::MediaUnavailable);
    }
    assert!(old.path.exists());
    assert_eq!(bench.listing("staging"), Vec::<String>::new());
    save(&store, &[3; 500_000]);
    assert!(old.path.exists());
}

#[test]
fn the_number_of_files_is_bounded_too() {
    let mut bench = Bench::new();
    bench.bounds.max_files = 3;
    let store = bench.open();
    let first = save(&store, b"");
    for _ in 0..2 {
        bench.pass(HOUR);
        save(&store, b"");
    }
    bench.pass(HOUR);
    save(&store, b"");
    assert!(!first.path.exists());
    assert_eq!(bench.listing("documents").len(), 3);
}

#[test]
fn a_file_open_for_reading_is_neither_expired_nor_evicted() {
    let bench = Bench::new();
    let store = bench.open();
    let artifact = save(&store, &[1; 700_000]);
    let open = (
        store.read(&artifact.id).unwrap(),
        store.read(&artifact.id).unwrap(),
    );
    bench.pass(48 * HOUR);
    assert_eq!(store.sweep(bench.now()), SweepReport::default());
    let refused = store.save(document("b.pdf", &[2; 700_000]), None);
    assert_eq!(code(refused), ErrorCode::MediaUnavailable);
    drop(open.0);
    assert_eq!(store.sweep(bench.now()), SweepReport::default());
    drop(open.1);
    assert_eq!(
        store.sweep(bench.now()),
        SweepReport {
            expired: 1,
            evicted: 0,
            bytes: 700_000
        }
    );
}

#[test]
fn a_file_in_its_grace_time_outlives_its_time_to_live() {
    let mut bench = Bench::new();
    bench.bounds.ttl = Duration::ZERO;
    let store = bench.open();
    let artifact = save(&store, b"x");
    bench.pass(10 * MINUTE - Duration::from_millis(1));
    assert_eq!(store.sweep(bench.now()), SweepReport::default());
    assert!(artifact.path.exists());
    bench.pass(Duration::from_millis(1));
    assert_eq!(store.sweep(bench.now()).expired, 1);
}

#[test]
fn a_smaller_quota_after_a_restart_evicts_the_oldest_first() {
    let mut bench = Bench::new();
    let store = bench.open();
    let mut saved = Vec::new();
    for _ in 0..5 {
        saved.push(save(&store, &[1; 100_000]));
        bench.pass(HOUR);
    }
    drop(store);
    bench.bounds.max_bytes = 250_000;
    let store = bench.open();
    assert_eq!(
        store.sweep(bench.now()),
        SweepReport {
            expired: 0,
            evicted: 3,
            bytes: 300_000
        }
    );
    let left: Vec<_> = saved
        .iter()
        .map(|artifact| artifact.path.exists())
        .collect();
    assert_eq!(left, [false, false, false, true, true]);
}

#[test]
fn a_clock_set_back_removes_nothing() {
    let bench = Bench::new();
    let store = bench.open();
    let artifact = save(&store, &[1; 900_000]);
    let past = bench.now() - 365 * 24 * HOUR;
    assert_eq!(store.sweep(past), SweepReport::default());
    assert!(artifact.path.exists());
}

#[test]
fn deleting_removes_the_file_at_once_and_a_reader_reads_on() {
    let bench = Bench::new();
    let store = bench.open();
    let artifact = save(&store, b"bytes");
    let mut open = store.read(&artifact.id).unwrap();
    store.delete(&artifact.id).unwrap();
    assert!(!artifact.path.exists());
    assert_eq!(code(store.find(&artifact.id)), ErrorCode::UnknownArtifact);
    assert_eq!(code(store.delete(&artifact.id)), ErrorCode::UnknownArtifact);
    let mut bytes = Vec::new();
    open.file.read_to_end(&mut bytes).unwrap();
    assert_eq!(bytes, b"bytes");
    drop(open);
    assert_eq!(
        code(bench.open().find(&artifact.id)),
        ErrorCode::UnknownArtifact
    );
}

#[test]
fn stale_staging_files_go_and_fresh_ones_stay() {
    let bench = Bench::new();
    let store = bench.open();
    let payload = staged(&store, b"waiting");
    let path = payload.path().unwrap().to_owned();
    let stranger = bench.root().join("staging/notes.txt");
    fs::write(&stranger, "not ours").unwrap();
    store.sweep(bench.now());
    assert!(path.exists());
    bench.pass(HOUR);
    store.sweep(bench.now());
    assert!(!path.exists() && stranger.exists());
    let lost = store.save(
        FileRequest {
            body: FileBody::Staged(payload),
            ..document("a.pdf", b"")
        },
        None,
    );
    assert_eq!(code(lost), ErrorCode::MediaUnavailable);
    assert_eq!(bench.listing("documents"), Vec::<String>::new());
}
