//! What a restart finds: the index, torn lines, files without lines, lines without files.

use std::fs::OpenOptions;
use std::io::Write;

use super::*;

fn append(bench: &Bench, text: &str) {
    let path = bench.root().join("index.jsonl");
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

#[test]
fn everything_is_known_again() {
    let bench = Bench::new();
    let store = bench.open();
    let owner = "ci".into();
    let kept = store
        .save(document("a \"b\"\u{7f}报.pdf", b"kept"), Some(&owner))
        .unwrap();
    let gone = save(&store, b"gone");
    store.delete(&gone.id).unwrap();
    let before = store.find(&kept.id).unwrap();
    drop(store);
    let store = bench.open();
    assert_eq!(store.find(&kept.id).unwrap(), before);
    assert_eq!(content(&store, &kept.id), b"kept");
    assert_eq!(code(store.find(&gone.id)), ErrorCode::UnknownArtifact);
}

#[test]
fn the_index_is_compacted_at_open_and_when_mostly_dead() {
    let bench = Bench::new();
    let store = bench.open();
    let lines = |bench: &Bench| {
        bench
            .index()
            .lines()
            .filter(|line| !line.is_empty())
            .count()
    };
    let kept = save(&store, b"kept");
    for _ in 0..3 {
        let id = save(&store, b"gone").id;
        store.delete(&id).unwrap();
    }
    store.sweep(bench.now());
    assert_eq!(lines(&bench), 7, "not worth it yet");
    for _ in 0..4 {
        let id = save(&store, b"gone").id;
        store.delete(&id).unwrap();
    }
    store.sweep(bench.now());
    assert_eq!(lines(&bench), 1);
    let id = save(&store, b"gone").id;
    store.delete(&id).unwrap();
    drop(store);
    let store = bench.open();
    assert_eq!(lines(&bench), 1);
    assert_eq!(content(&store, &kept.id), b"kept");
    assert_eq!(
        bench.listing(""),
        ["documents", "index.jsonl", "index.lock", "staging"]
    );
}

#[test]
fn a_torn_last_line_costs_nothing_else() {
    let bench = Bench::new();
    let store = bench.open();
    let first = save(&store, b"first");
    append(&bench, "{\"saved\":{\"id\":\"art_01");
    let second = save(&store, b"second");
    append(&bench, "{\"saved\":{\"id\":\"art_02");
    drop(store);
    let store = bench.open();
    assert_eq!(content(&store, &first.id), b"first");
    assert_eq!(content(&store, &second.id), b"second");
    let third = save(&store, b"third");
    drop(store);
    assert_eq!(content(&bench.open(), &third.id), b"third");
}

#[test]
fn lines_that_say_what_this_store_never_writes_are_ignored() {
    let bench = Bench::new();
    let store = bench.open();
    let artifact = save(&store, b"x");
    let secret = bench.home.path().join("secret");
    fs::write(&secret, "secret").unwrap();
    let line = bench
        .index()
        .lines()
        .find(|line| line.contains("saved"))
        .unwrap()
        .to_owned();
    let file = artifact.path.file_name().unwrap().to_str().unwrap();
    let other = ArtifactId::generate();
    for hostile in [
        "../../secret",
        "/etc/passwd",
        "..",
        "secret",
        "doc_0123456789ab_../../x",
    ] {
        let hostile = line
            .replace(file, hostile)
            .replace(artifact.id.as_str(), other.as_str());
        append(&bench, &format!("{hostile}\n"));
    }
    append(
        &bench,
        &format!("{}\n", line.replace(artifact.id.as_str(), "../../secret")),
    );
    append(
        &bench,
        "null\n[]\n{\"removed\":7}\n{\"future\":{}}\n\0\0\0\n",
    );
    append(&bench, &"x".repeat(600_000));
    drop(store);
    let store = bench.open();
    assert_eq!(code(store.find(&other)), ErrorCode::UnknownArtifact);
    assert_eq!(content(&store, &artifact.id), b"x");
    assert!(secret.exists());
}

#[test]
fn entries_whose_file_vanished_are_dropped() {
    let bench = Bench::new();
    let store = bench.open();
    let (gone, kept) = (save(&store, &[1; 900_000]), save(&store, b"kept"));
    fs::remove_file(&gone.path).unwrap();
    assert_eq!(code(store.read(&gone.id)), ErrorCode::UnknownArtifact);
    save(&store, &[1; 900_000]);
    fs::remove_dir_all(bench.root().join("documents")).unwrap();
    store.sweep(bench.now());
    assert_eq!(code(store.find(&kept.id)), ErrorCode::UnknownArtifact);
    save(&store, &[1; 1_000_000]);
}

#[test]
fn a_file_cut_short_is_not_served_and_expires() {
    let bench = Bench::new();
    let store = bench.open();
    let artifact = save(&store, b"whole");
    fs::write(&artifact.path, b"who").unwrap();
    let error = store.read(&artifact.id).unwrap_err();
    assert_eq!(error.code, ErrorCode::MediaUnavailable);
    assert!(error.detail.contains("changed"), "{}", error.detail);
    drop(store);
    let store = bench.open();
    assert_eq!(code(store.read(&artifact.id)), ErrorCode::UnknownArtifact);
    assert!(artifact.path.exists());
    bench.pass(25 * HOUR);
    assert_eq!(store.sweep(bench.now()).expired, 1);
    assert!(!artifact.path.exists());
}

#[test]
fn a_file_without_a_line_counts_and_expires_by_its_own_age() {
    let bench = Bench::new();
    drop(bench.open());
    fs::create_dir(bench.root().join("images")).unwrap();
    let adopted = bench.root().join("images/img_0123456789ab.png");
    let stranger = bench.root().join("images/holiday.png");
    fs::write(&adopted, [0; 600_000]).unwrap();
    fs::write(&stranger, "not ours").unwrap();
    let store = bench.open();
    let refused = store.save(document("b.pdf", &[2; 500_000]), None);
    assert_eq!(
        code(refused),
        ErrorCode::MediaUnavailable,
        "it counts against the quota"
    );
    bench.pass(9 * MINUTE);
    store.sweep(bench.now());
    assert!(adopted.exists(), "younger than the grace time");
    bench.pass(25 * HOUR);
    let report = store.sweep(bench.now());
    assert_eq!((report.expired, report.bytes), (1, 600_000));
    assert!(!adopted.exists() && stranger.exists());
}

#[test]
fn a_reading_is_remembered_as_use() {
    let bench = Bench::new();
    let store = bench.open();
    let first = save(&store, &[1; 400_000]);
    bench.pass(MINUTE);
    let second = save(&store, &[2; 400_000]);
    bench.pass(HOUR);
    drop(store.read(&first.id).unwrap());
    drop(store);
    let store = bench.open();
    save(&store, &[3; 400_000]);
    assert!(first.path.exists() && !second.path.exists());
}

#[test]
fn a_root_moved_elsewhere_is_served_from_there() {
    let bench = Bench::new();
    let artifact = save(&bench.open(), b"x");
    let elsewhere = Bench::new();
    fs::rename(bench.root(), elsewhere.root()).unwrap();
    let found = elsewhere.open().find(&artifact.id).unwrap().artifact;
    assert!(found.path.starts_with(elsewhere.root()) && found.path.exists());
}

#[test]
fn a_clock_that_ran_ahead_keeps_no_file_for_ever() {
    let bench = Bench::new();
    bench.pass(10_000 * HOUR);
    let artifact = save(&bench.open(), b"x");
    bench.clock.fetch_sub(10_000 * 3_600_000, Ordering::SeqCst);
    let store = bench.open();
    assert_eq!(store.find(&artifact.id).unwrap().created, bench.now());
    bench.pass(25 * HOUR);
    assert_eq!(store.sweep(bench.now()).expired, 1);
}

#[test]
fn a_root_that_was_removed_is_made_again() {
    let bench = Bench::new();
    let store = bench.open();
    let lost = save(&store, b"lost");
    fs::remove_dir_all(bench.root()).unwrap();
    assert_eq!(code(store.read(&lost.id)), ErrorCode::MediaUnavailable);
    let kept = save(&store, b"kept");
    assert_eq!(content(&store, &kept.id), b"kept");
    store.sweep(bench.now());
    assert_eq!(code(store.find(&lost.id)), ErrorCode::UnknownArtifact);
    drop(store);
    assert_eq!(content(&bench.open(), &kept.id), b"kept");
}
