//! Names, paths, permissions, records.

use std::os::unix::fs::PermissionsExt;

use sha2::{Digest, Sha256};
use talaria_types::TokenName;

use super::*;

#[test]
fn each_kind_has_its_folder_and_prefix() {
    let bench = Bench::new();
    let store = bench.open();
    let cases = [
        (ArtifactKind::Image, "images", "img_"),
        (ArtifactKind::Audio, "audio", "audio_"),
        (ArtifactKind::Document, "documents", "doc_"),
        (ArtifactKind::Text, "spillover", "text_"),
    ];
    for (kind, folder, prefix) in cases {
        let named = store.save(request(kind, "a b.pdf", b"x"), None).unwrap();
        let file = named.path.file_name().unwrap().to_str().unwrap();
        assert_eq!(named.path, bench.root().join(folder).join(file));
        assert!(
            file.starts_with(prefix) && file.ends_with("_a b.pdf"),
            "{file}"
        );
        let unnamed = store
            .save(
                FileRequest {
                    named: false,
                    ..request(kind, "a.pdf", b"x")
                },
                None,
            )
            .unwrap();
        let file = unnamed.path.file_name().unwrap().to_str().unwrap();
        assert_eq!(file.len(), prefix.len() + 12 + 4, "{file}");
        assert_eq!(unnamed.name, "a.pdf");
    }
}

#[test]
fn an_artifact_says_what_was_stored() {
    let bench = Bench::new();
    let store = bench.open();
    let owner = TokenName::from("ci");
    let artifact = store
        .save(document("a.pdf", b"%PDF-1.7"), Some(&owner))
        .unwrap();
    assert_eq!(
        artifact,
        Artifact {
            id: artifact.id.clone(),
            kind: ArtifactKind::Document,
            name: "a.pdf".to_owned(),
            path: artifact.path.clone(),
            url: Some(format!(
                "http://127.0.0.1:8700/v1/artifacts/{}",
                artifact.id
            )),
            media_type: "application/pdf".to_owned(),
            declared_type: Some("application/x-pdf".to_owned()),
            bytes: 8,
            sha256: hex::encode(Sha256::digest(b"%PDF-1.7")),
            source_uri: Some("x://h/a.pdf".to_owned()),
        }
    );
    assert!(artifact.path.is_absolute());
    assert_eq!(artifact.path, artifact.path.canonicalize().unwrap());
    assert_eq!(fs::read(&artifact.path).unwrap(), b"%PDF-1.7");
    assert_eq!(content(&store, &artifact.id), b"%PDF-1.7");
    let record = store.find(&artifact.id).unwrap();
    assert_eq!(record.artifact, artifact);
    assert_eq!(record.owner, Some(owner));
    assert_eq!(record.created, bench.now());
}

#[test]
fn files_are_private_and_so_are_folders() {
    let bench = Bench::new();
    let store = bench.open();
    let artifact = save(&store, b"x");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&artifact.path), 0o600);
    for folder in ["documents", "staging", ""] {
        assert_eq!(mode(&bench.root().join(folder)), 0o700, "{folder}");
    }
    for file in ["index.jsonl", "index.lock"] {
        assert_eq!(mode(&bench.root().join(file)), 0o600, "{file}");
    }
}

#[test]
fn f12_the_same_source_twice_makes_two_files() {
    let bench = Bench::new();
    let store = bench.open();
    let (first, second) = (save(&store, b"same"), save(&store, b"same"));
    assert_ne!(first.path, second.path);
    assert_ne!(first.id, second.id);
    assert_eq!(bench.listing("documents").len(), 2);
}

#[test]
fn f06_a_long_name_in_a_wide_script_is_saved() {
    let bench = Bench::new();
    let store = bench.open();
    let artifact = store
        .save(document(&format!("{}.pdf", "报".repeat(150)), b"x"), None)
        .unwrap();
    let file = artifact
        .path
        .file_name()
        .unwrap()
        .to_str()
        .unwrap()
        .to_owned();
    assert!(file.len() <= 255 && file.ends_with("报.pdf"), "{file}");
    assert!(artifact.path.exists());
}

#[test]
fn a_staged_payload_is_renamed_not_copied() {
    let bench = Bench::new();
    let store = bench.open();
    let bytes: Vec<u8> = (0..200_000_u32)
        .flat_map(u32::to_le_bytes)
        .take(300_001)
        .collect();
    let payload = staged(&store, &bytes);
    assert_eq!(payload.bytes, 300_001);
    assert_eq!(payload.sha256, <[u8; 32]>::from(Sha256::digest(&bytes)));
    assert_eq!(payload.head, bytes[..4096]);
    let inode = |path: &Path| std::os::unix::fs::MetadataExt::ino(&fs::metadata(path).unwrap());
    let before = inode(payload.path().unwrap());
    let body = FileBody::Staged(payload);
    let artifact = store
        .save(
            FileRequest {
                body,
                ..document("a.bin", b"")
            },
            None,
        )
        .unwrap();
    assert_eq!(inode(&artifact.path), before);
    assert_eq!(fs::read(&artifact.path).unwrap(), bytes);
    assert_eq!(artifact.sha256, hex::encode(Sha256::digest(&bytes)));
    assert_eq!(bench.listing("staging"), Vec::<String>::new());
}

#[test]
fn a_dropped_writer_or_payload_leaves_no_file() {
    let bench = Bench::new();
    let store = bench.open();
    let mut writer = store.begin().unwrap();
    writer.write(&[7; 100_000]).unwrap();
    assert_eq!(bench.listing("staging").len(), 1);
    drop(writer);
    assert_eq!(bench.listing("staging"), Vec::<String>::new());
    drop(staged(&store, b"never wanted"));
    assert_eq!(bench.listing("staging"), Vec::<String>::new());
}

#[test]
fn an_empty_payload_is_a_file_too() {
    let bench = Bench::new();
    let store = bench.open();
    let artifact = save(&store, b"");
    assert_eq!(artifact.bytes, 0);
    assert_eq!(content(&store, &artifact.id), b"");
}

#[test]
fn fsync_changes_nothing_that_is_seen() {
    let bench = Bench {
        fsync: true,
        ..Bench::new()
    };
    let store = bench.open();
    let artifact = save(&store, b"flushed");
    assert_eq!(content(&store, &artifact.id), b"flushed");
    assert_eq!(bench.open().find(&artifact.id).unwrap().artifact, artifact);
}

#[test]
fn a_relative_or_linked_root_is_reported_under_its_real_path() {
    let bench = Bench::new();
    let link = bench.home.path().join("link");
    fs::create_dir(bench.home.path().join("real")).unwrap();
    std::os::unix::fs::symlink("real", &link).unwrap();
    let store = MediaStore::open(MediaOptions {
        root: link.join("deep/cache"),
        max_bytes: 1000,
        ttl: HOUR,
        grace: MINUTE,
        fsync: false,
        base_url: None,
    });
    let artifact = save(&store, b"x");
    let real = bench
        .home
        .path()
        .canonicalize()
        .unwrap()
        .join("real/deep/cache/documents");
    assert_eq!(artifact.path.parent().unwrap(), real);
    assert_eq!(artifact.url, None);
}

#[test]
fn an_artifact_is_found_by_the_path_it_was_reported_under() {
    let bench = Bench::new();
    let store = bench.open();
    let artifact = save(&store, b"x");
    let found = store.find_path(&artifact.path).unwrap();
    assert_eq!(found.artifact, artifact);
    let alias = bench.home.path().join("alias");
    std::os::unix::fs::symlink(bench.root(), &alias).unwrap();
    let file = artifact.path.file_name().unwrap();
    let by_alias = store.find_path(&alias.join("documents").join(file));
    assert_eq!(by_alias.unwrap().artifact.id, artifact.id);
    for path in [
        bench.root(),
        bench.root().join("index.jsonl"),
        bench.root().join("documents"),
        bench.root().join("documents/doc_0123456789ab_a.pdf"),
        bench.root().join("images").join(file),
        artifact.path.join("deeper"),
        alias.join("documents/../documents").join(file),
        PathBuf::from("/etc/passwd"),
    ] {
        assert!(store.find_path(&path).is_none(), "{}", path.display());
    }
}
