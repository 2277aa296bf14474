//! The store when the disk refuses or the process dies.
//!
//! Each test runs itself again as a child: with a tiny file system of its own, with a limit on
//! file sizes, or to be killed. Linux gives the child a mount namespace of its own for that.

#![cfg(target_os = "linux")]

#[cfg(test)]
mod faults {
    use std::collections::BTreeMap;
    use std::fs;
    use std::io::{BufRead, BufReader, Read};
    use std::path::{Path, PathBuf};
    use std::process::{Command, Stdio};
    use std::time::Duration;

    use sha2::{Digest, Sha256};
    use talaria_content::{Artifact, ArtifactKind, FileBody, FileRequest};
    use talaria_media::{MediaOptions, MediaStore, StoreError};
    use talaria_types::runtime::{environment, wall_clock};
    use talaria_types::{ArtifactId, ErrorCode, PayloadSink};
    use tempfile::TempDir;

    /// Names the home directory in which the child works.
    const HOME: &str = "TALARIA_MEDIA_FAULT_HOME";

    /// The child's home, when this process is the child.
    fn child_home() -> Option<PathBuf> {
        environment().get(HOME).map(PathBuf::from)
    }

    /// Runs the test `name` again below `shell`, where `$0` is the test program.
    fn child(name: &str, home: &Path, shell: &str) -> Command {
        let mut command = Command::new("sh");
        command
            .args([
                "-c",
                &format!("{shell}; exec \"$0\" --exact faults::{name} --nocapture"),
            ])
            .arg(std::env::current_exe().unwrap())
            .env(HOME, home)
            .stdin(Stdio::null());
        command
    }

    fn succeeds(mut command: Command) {
        let output = command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("1 passed"),
            "{text}\n{}",
            String::from_utf8_lossy(&output.stderr)
        );
    }

    /// Runs the test again on a file system of that many kibibytes, where the system allows it.
    fn on_a_small_disk(name: &str, kibibytes: usize) {
        let home = TempDir::new().unwrap();
        let mount =
            |size: usize| format!("mount -t tmpfs -o size={size}k none \"${HOME}\" || exit 99");
        let probe = Command::new("unshare")
            .args(["-rm", "sh", "-c", &mount(64)])
            .env(HOME, home.path())
            .output();
        if !probe.is_ok_and(|output| output.status.success()) {
            // Containers may forbid it; the limit on file sizes then stands in for a full disk.
            println!("{name}: no mount namespaces here, not run");
            return;
        }
        let inner = child(name, home.path(), &mount(kibibytes));
        let mut command = Command::new("unshare");
        command
            .arg("-rm")
            .arg(inner.get_program())
            .args(inner.get_args());
        command.env(HOME, home.path()).stdin(Stdio::null());
        succeeds(command);
    }

    fn open(home: &Path) -> MediaStore {
        MediaStore::open(MediaOptions {
            root: home.join("cache"),
            max_bytes: u64::MAX,
            ttl: Duration::from_secs(24 * 3600),
            grace: Duration::from_secs(600),
            fsync: false,
            base_url: None,
        })
    }

    fn save(store: &MediaStore, bytes: &[u8]) -> Result<Artifact, StoreError> {
        let request = FileRequest {
            kind: ArtifactKind::Document,
            name: "a.pdf".to_owned(),
            named: true,
            media_type: "application/pdf".to_owned(),
            declared_type: None,
            source_uri: None,
            body: FileBody::Bytes(bytes.to_vec()),
        };
        store.save(request, None)
    }

    fn content(store: &MediaStore, id: &ArtifactId) -> Vec<u8> {
        let mut bytes = Vec::new();
        store
            .read(id)
            .unwrap()
            .file
            .read_to_end(&mut bytes)
            .unwrap();
        bytes
    }

    fn listing(home: &Path, folder: &str) -> Vec<String> {
        let entries = fs::read_dir(home.join("cache").join(folder)).unwrap();
        entries
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect()
    }

    fn refused(outcome: Result<Artifact, StoreError>, words: &str) {
        let error = outcome.unwrap_err();
        assert_eq!(error.code, ErrorCode::MediaUnavailable);
        assert!(error.detail.contains(words), "{}", error.detail);
        assert!(error.source.is_some());
    }

    /// A disk too small for one file and large enough for others, whatever the reason.
    fn a_file_too_large_leaves_nothing(home: &Path, too_large: usize, words: &str) {
        let store = open(home);
        let before = save(&store, b"before").unwrap();
        refused(save(&store, &vec![1; too_large]), words);
        let mut writer = store.begin().unwrap();
        let piece = vec![2; too_large / 3];
        let failed = (0..4).find_map(|_| writer.write(&piece).err());
        let failed = failed.or_else(|| writer.finish().err()).unwrap();
        assert_eq!(failed.code, ErrorCode::MediaUnavailable);
        assert!(failed.detail.contains(words), "{}", failed.detail);
        assert_eq!(listing(home, "staging"), Vec::<String>::new());
        assert_eq!(listing(home, "documents").len(), 1);
        let after = save(&store, b"after").unwrap();
        assert_eq!(content(&store, &before.id), b"before");
        assert_eq!(content(&store, &after.id), b"after");
    }

    #[test]
    fn a_limit_on_file_sizes_costs_the_file_and_nothing_else() {
        if let Some(home) = child_home() {
            a_file_too_large_leaves_nothing(&home, 600_000, "larger than the system");
            return;
        }
        let home = TempDir::new().unwrap();
        let name = "a_limit_on_file_sizes_costs_the_file_and_nothing_else";
        succeeds(child(name, home.path(), "trap '' XFSZ; ulimit -f 256"));
    }

    #[test]
    fn a_full_disk_costs_the_file_and_nothing_else() {
        let Some(home) = child_home() else {
            return on_a_small_disk("a_full_disk_costs_the_file_and_nothing_else", 512);
        };
        a_file_too_large_leaves_nothing(&home, 600_000, "is full");

        // Down to the last block: also the index may be what finds no room.
        let store = open(&home);
        let mut saved = Vec::new();
        let full = loop {
            match save(&store, &[7; 700]) {
                Ok(artifact) => saved.push(artifact),
                Err(error) => break error,
            }
        };
        refused(Err(full), "is full");
        assert!(saved.len() > 50, "{}", saved.len());
        assert_eq!(listing(&home, "documents").len(), saved.len() + 2);
        for _ in 0..20 {
            refused(save(&store, &[8; 700]), "is full");
        }
        assert_eq!(listing(&home, "staging"), Vec::<String>::new());
        let again = open(&home);
        for artifact in &saved {
            assert_eq!(content(&again, &artifact.id), [7; 700]);
        }
        for artifact in saved.drain(..10) {
            store.delete(&artifact.id).unwrap();
        }
        let late = save(&store, &[9; 700]).unwrap();
        assert_eq!(content(&open(&home), &late.id), [9; 700]);
    }

    #[test]
    fn a_read_only_disk_is_read_and_says_so() {
        let Some(home) = child_home() else {
            return on_a_small_disk("a_read_only_disk_is_read_and_says_so", 512);
        };
        let remount = |how: &str| {
            let options = format!("remount,{how}");
            // Naming type and source keeps `mount` from adding options a user may not give.
            let done = Command::new("mount")
                .args(["-t", "tmpfs", "-o", &options, "none"])
                .arg(&home)
                .status();
            assert!(done.unwrap().success());
        };
        let store = open(&home);
        let artifact = save(&store, b"bytes").unwrap();
        remount("ro");
        refused(save(&store, b"x"), "read-only");
        assert_eq!(
            store.begin().err().unwrap().code,
            ErrorCode::MediaUnavailable
        );
        assert_eq!(
            store.delete(&artifact.id).unwrap_err().code,
            ErrorCode::MediaUnavailable
        );
        let later = wall_clock() + Duration::from_secs(48 * 3600);
        assert_eq!(store.sweep(later).expired, 0);
        assert_eq!(content(&store, &artifact.id), b"bytes");
        let restarted = open(&home);
        assert_eq!(content(&restarted, &artifact.id), b"bytes");
        remount("rw");
        save(&restarted, b"x").unwrap();
        store.delete(&artifact.id).unwrap();
        assert_eq!(
            store.find(&artifact.id).unwrap_err().code,
            ErrorCode::UnknownArtifact
        );
    }

    #[test]
    fn a_root_that_cannot_be_made_is_tried_again_at_each_save() {
        let home = TempDir::new().unwrap();
        let root = home.path().join("cache");
        fs::write(&root, "a file where the directory should be").unwrap();
        let store = open(home.path());
        refused(save(&store, b"x"), "of another kind");
        assert_eq!(
            store.sweep(wall_clock()),
            talaria_media::SweepReport::default()
        );
        fs::remove_file(&root).unwrap();
        let artifact = save(&store, b"x").unwrap();
        assert_eq!(content(&store, &artifact.id), b"x");
        assert!(
            artifact
                .path
                .starts_with(home.path().canonicalize().unwrap())
        );
        drop(store);
        assert_eq!(content(&open(home.path()), &artifact.id), b"x");
    }

    #[test]
    fn kill_nine_loses_nothing_that_was_reported() {
        if let Some(home) = child_home() {
            let store = open(&home);
            for round in 0_usize.. {
                let bytes = vec![u8::try_from(round % 251).unwrap(); round * 37 % 200_000];
                let artifact = save(&store, &bytes).unwrap();
                println!("saved {} {}", artifact.id, artifact.sha256);
                if round % 7 == 0 {
                    store.sweep(wall_clock());
                }
            }
        }
        let home = TempDir::new().unwrap();
        let mut reported = BTreeMap::new();
        for lines in [1, 40, 300] {
            let name = "kill_nine_loses_nothing_that_was_reported";
            let mut child = child(name, home.path(), ":")
                .stdout(Stdio::piped())
                .spawn()
                .unwrap();
            let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
            let mut seen = 0;
            while seen < lines {
                let line = output.next().unwrap().unwrap();
                seen += usize::from(remember(&line, &mut reported));
            }
            child.kill().unwrap();
            child.wait().unwrap();
            for line in output {
                remember(&line.unwrap(), &mut reported);
            }
        }
        assert!(reported.len() >= 341, "{}", reported.len());
        let store = open(home.path());
        for (id, sha256) in &reported {
            assert_eq!(&hex::encode(Sha256::digest(content(&store, id))), sha256);
        }
        // What three deaths left over is bounded and goes with time.
        let over = listing(home.path(), "documents").len() - reported.len();
        assert!(over <= 3 && listing(home.path(), "staging").len() <= 3);
        let later = wall_clock() + Duration::from_secs(25 * 3600);
        assert_eq!(store.sweep(later).expired, reported.len() + over);
        assert_eq!(listing(home.path(), "documents"), Vec::<String>::new());
        assert_eq!(listing(home.path(), "staging"), Vec::<String>::new());
    }

    /// Notes a line `saved ID SHA256`; a line cut by the kill is none.
    fn remember(line: &str, reported: &mut BTreeMap<ArtifactId, String>) -> bool {
        let mut words = line.split(' ').skip_while(|word| *word != "saved").skip(1);
        let (Some(id), Some(sha256)) = (words.next(), words.next()) else {
            return false;
        };
        let whole = sha256.len() == 64;
        if whole {
            reported.insert(ArtifactId::parse(id).unwrap(), sha256.to_owned());
        }
        whole
    }
}
