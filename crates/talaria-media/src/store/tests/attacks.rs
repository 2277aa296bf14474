//! Hostile names and planted links: nothing outside the root is touched.

use std::os::unix::fs::symlink;

use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use proptest::prelude::*;

use super::*;

/// A directory next to the root with one file, and what must still be true of it.
fn outside(bench: &Bench) -> PathBuf {
    let outside = bench.home.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("secret"), "secret").unwrap();
    outside
}

fn untouched(outside: &Path) {
    assert_eq!(names(outside), ["secret"]);
    assert_eq!(
        fs::read_to_string(outside.join("secret")).unwrap(),
        "secret"
    );
}

#[test]
fn a_folder_replaced_by_a_link_is_refused_until_it_is_a_folder_again() {
    let bench = Bench::new();
    let outside = outside(&bench);
    for folder in ["documents", "staging"] {
        let store = bench.open();
        let artifact = save(&store, b"before");
        let (path, aside) = (bench.root().join(folder), bench.root().join("aside"));
        fs::rename(&path, &aside).unwrap();
        symlink(&outside, &path).unwrap();
        let refused = store.save(document("a.pdf", b"x"), None).unwrap_err();
        assert_eq!(refused.code, ErrorCode::MediaUnavailable);
        assert!(
            refused.detail.contains("of another kind"),
            "{}",
            refused.detail
        );
        store.sweep(bench.now() + 48 * HOUR);
        untouched(&outside);
        fs::remove_file(&path).unwrap();
        fs::rename(&aside, &path).unwrap();
        drop(store);
        let store = bench.open();
        save(&store, b"after");
        if folder == "documents" {
            assert_eq!(content(&store, &artifact.id), b"before");
        }
    }
}

#[test]
fn reading_and_deleting_do_not_follow_a_folder_link() {
    let bench = Bench::new();
    let outside = outside(&bench);
    let store = bench.open();
    let artifact = save(&store, b"secret");
    let file = artifact.path.file_name().unwrap();
    fs::rename(outside.join("secret"), outside.join(file)).unwrap();
    fs::remove_dir_all(bench.root().join("documents")).unwrap();
    symlink(&outside, bench.root().join("documents")).unwrap();
    assert_eq!(code(store.read(&artifact.id)), ErrorCode::MediaUnavailable);
    assert_eq!(
        code(store.delete(&artifact.id)),
        ErrorCode::MediaUnavailable
    );
    assert_eq!(
        code(store.read(&artifact.id)),
        ErrorCode::MediaUnavailable,
        "still known"
    );
    assert_eq!(fs::read(outside.join(file)).unwrap(), b"secret");
}

#[test]
fn a_file_replaced_by_a_link_is_not_read_and_only_the_link_is_removed() {
    let bench = Bench::new();
    let outside = outside(&bench);
    let store = bench.open();
    let artifact = save(&store, b"secret");
    fs::remove_file(&artifact.path).unwrap();
    symlink(outside.join("secret"), &artifact.path).unwrap();
    let error = store.read(&artifact.id).unwrap_err();
    assert_eq!(error.code, ErrorCode::MediaUnavailable);
    assert!(error.detail.contains("changed"), "{}", error.detail);
    store.delete(&artifact.id).unwrap();
    assert_eq!(bench.listing("documents"), Vec::<String>::new());
    untouched(&outside);
}

#[test]
fn a_planted_fifo_blocks_nobody() {
    let bench = Bench::new();
    let store = bench.open();
    let artifact = save(&store, b"x");
    fs::remove_file(&artifact.path).unwrap();
    mkfifo(&artifact.path, Mode::S_IRWXU).unwrap();
    assert_eq!(code(store.read(&artifact.id)), ErrorCode::MediaUnavailable);
    fs::remove_file(bench.root().join("index.jsonl")).unwrap();
    let index = bench.root().join("index.jsonl");
    mkfifo(&index, Mode::S_IRWXU).unwrap();
    assert_eq!(
        code(store.save(document("a.pdf", b"x"), None)),
        ErrorCode::MediaUnavailable
    );
    drop(store);
    drop(bench.open());
}

#[test]
fn a_linked_index_is_neither_read_nor_written() {
    let bench = Bench::new();
    let outside = outside(&bench);
    drop(bench.open());
    for name in ["index.jsonl", "index.lock"] {
        let path = bench.root().join(name);
        drop(fs::remove_file(&path));
        symlink(outside.join("secret"), &path).unwrap();
    }
    let store = bench.open();
    let refused = store.save(document("a.pdf", b"x"), None).unwrap_err();
    assert_eq!(refused.code, ErrorCode::MediaUnavailable);
    assert_eq!(
        bench.listing("documents"),
        Vec::<String>::new(),
        "nothing left behind"
    );
    assert_eq!(bench.listing("staging"), Vec::<String>::new());
    untouched(&outside);
}

#[test]
fn a_payload_from_elsewhere_is_refused() {
    let bench = Bench::new();
    let outside = outside(&bench);
    let store = bench.open();
    let path = outside.join("secret");
    let payload = talaria_types::StagedPayload::new(path, 6, [0; 32], Vec::new());
    let mut request = document("a.pdf", b"");
    request.body = FileBody::Staged(payload);
    assert_eq!(code(store.save(request, None)), ErrorCode::Internal);
    assert_eq!(bench.listing("documents"), Vec::<String>::new());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn s_any_name_stays_in_its_folder(
        name in prop_oneof![
            "(\\PC|[./\\\\\u{0}\n\u{202e}]){0,300}",
            "(\\.\\./){1,8}[a-z/.]{0,20}",
            "/(etc|proc|tmp)/[a-z/.]{0,20}",
        ],
        named: bool,
    ) {
        let bench = Bench::new();
        let outside = outside(&bench);
        let store = bench.open();
        let artifact =
            store.save(FileRequest { named, ..document(&name, b"x") }, None).unwrap();
        prop_assert_eq!(artifact.path.parent().unwrap(), bench.root().join("documents"));
        prop_assert_eq!(&artifact.path, &artifact.path.canonicalize().unwrap());
        prop_assert_eq!(content(&store, &artifact.id), b"x");
        drop(store);
        prop_assert_eq!(bench.open().find(&artifact.id).unwrap().artifact, artifact);
        untouched(&outside);
        let top = ["documents", "index.jsonl", "index.lock", "staging"];
        prop_assert_eq!(bench.listing(""), top);
        prop_assert_eq!(names(bench.home.path()), ["cache", "outside"]);
    }
}
