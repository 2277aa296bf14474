//! Two stores on one root, and many threads on one store.

use std::collections::BTreeMap;
use std::thread;

use super::*;

#[test]
fn a_second_store_sees_what_the_first_one_saves_and_removes() {
    let bench = Bench::new();
    let (first, second) = (bench.open(), bench.open());
    let saved = save(&first, b"from the first");
    assert_eq!(content(&second, &saved.id), b"from the first");
    let back = save(&second, b"from the second");
    assert_eq!(content(&first, &back.id), b"from the second");
    second.delete(&saved.id).unwrap();
    assert_eq!(code(first.read(&saved.id)), ErrorCode::UnknownArtifact);
    first.sweep(bench.now());
    assert_eq!(code(first.find(&saved.id)), ErrorCode::UnknownArtifact);
}

#[test]
fn only_the_first_store_compacts_until_it_is_gone() {
    let bench = Bench::new();
    let (first, second) = (bench.open(), bench.open());
    let kept = save(&second, b"kept");
    let churn = |store: &MediaStore| {
        for _ in 0..8 {
            let id = save(store, b"gone").id;
            store.delete(&id).unwrap();
        }
    };
    let length = |bench: &Bench| bench.index().len();
    churn(&first);
    first.sweep(bench.now());
    let compact = length(&bench);
    churn(&second);
    let grown = length(&bench);
    second.sweep(bench.now());
    assert!(
        compact < grown && length(&bench) == grown,
        "the second must not compact"
    );
    drop(first);
    second.sweep(bench.now());
    assert!(length(&bench) < grown, "the lock is free now");
    assert_eq!(content(&second, &kept.id), b"kept");
}

#[test]
fn stores_and_threads_on_one_root_lose_and_mix_nothing() {
    let mut bench = Bench::new();
    // Compaction at every sweep, so that it meets as many appends as possible.
    bench.bounds.dead_lines = 0;
    bench.bounds.max_files = 10_000;
    bench.bounds.max_bytes = u64::MAX;
    let stores = [bench.open(), bench.open()];
    let kept: BTreeMap<ArtifactId, Vec<u8>> = thread::scope(|scope| {
        let workers: Vec<_> = (0_u8..4)
            .map(|worker| {
                let store = stores[usize::from(worker) % 2].clone();
                let bench = &bench;
                scope.spawn(move || {
                    let mut kept = BTreeMap::new();
                    for round in 0_u8..60 {
                        let bytes = vec![worker; usize::from(round) + 1];
                        let artifact = save(&store, &bytes);
                        assert_eq!(content(&store, &artifact.id), bytes);
                        if round % 3 == 0 {
                            kept.insert(artifact.id, bytes);
                        } else {
                            store.delete(&artifact.id).unwrap();
                        }
                        if round % 5 == 0 {
                            store.sweep(bench.now());
                        }
                    }
                    kept
                })
            })
            .collect();
        workers
            .into_iter()
            .flat_map(|worker| worker.join().unwrap())
            .collect()
    });
    assert_eq!(kept.len(), 80);
    for store in stores {
        for (id, bytes) in &kept {
            assert_eq!(&content(&store, id), bytes);
        }
    }
    let fresh = bench.open();
    for (id, bytes) in &kept {
        assert_eq!(&content(&fresh, id), bytes);
    }
    assert_eq!(bench.listing("documents").len(), kept.len());
    assert_eq!(bench.listing("staging"), Vec::<String>::new());
}
