//! Busy, late, abandoned and broken jobs, and turns.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use talaria_types::{CallContext, Deadline};

use super::turns::Turns;
use super::{ImagePool, Input, PoolOptions, PoolRefusal};
use crate::header::Header;
use crate::prepared::Prepared;
use crate::raster::{Layout, Raster};
use crate::refusal::{Refusal, RefusalKind};
use crate::target::Target;
use crate::watch::Watch;

/// Sides that make [`scripted`] do something else than prepare.
const PANIC: u32 = 1_001;
const UNTIL_OVER: u32 = 1_002;

/// Pictures that [`scripted`] began with.
static BEGUN: AtomicUsize = AtomicUsize::new(0);

/// Prepares, panics or blocks, as the side limit says.
fn scripted(
    bytes: &[u8],
    _header: &Header,
    target: &Target,
    watch: &Watch,
) -> Result<Prepared, Refusal> {
    BEGUN.fetch_add(1, Ordering::SeqCst);
    match target.max_side {
        PANIC => panic!("as the test wants it"),
        UNTIL_OVER => {
            while !watch.is_over() {
                std::thread::park_timeout(Duration::from_millis(1));
            }
            Err(Refusal {
                kind: RefusalKind::Abandoned,
                detail: "over".to_owned(),
            })
        }
        _ => crate::prepare(bytes, target, watch),
    }
}

fn pool(workers: usize, queue: usize) -> ImagePool {
    let options = PoolOptions {
        workers: NonZeroUsize::new(workers).unwrap(),
        queue: NonZeroUsize::new(queue).unwrap(),
        pixels: 1_000_000,
        drawer: None,
    };
    ImagePool::with_preparer(options, scripted)
}

fn picture() -> Input {
    let raster = Raster {
        width: 40,
        height: 40,
        layout: Layout::Grey,
        pixels: vec![200; 1_600],
    };
    Input::Bytes(crate::encode::true_colour(&raster).unwrap())
}

fn side(max_side: u32) -> Target {
    Target {
        max_side,
        ..Target::default()
    }
}

fn context(time: Duration) -> CallContext {
    CallContext::new(Deadline::after(time))
}

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(60);

/// Waits until so many jobs are in work.
async fn running(pool: &ImagePool, jobs: usize) {
    let deadline = Deadline::after(LONG);
    while pool.owner.0.queue.running() != jobs {
        assert!(!deadline.expired(), "{pool:?}");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

#[tokio::test]
async fn a_picture_comes_back_prepared() {
    let pool = pool(2, 4);
    let prepared = pool.prepare(&context(LONG), picture(), Target::default());
    let prepared = prepared.await.unwrap();
    assert!(prepared.pictures[0].is_original);
}

#[tokio::test]
async fn a_full_queue_refuses_at_once() {
    let pool = pool(1, 1);
    let blocked = context(LONG);
    let first = pool.prepare(&blocked, picture(), side(UNTIL_OVER));
    running(&pool, 1).await;
    let second = pool.prepare(&context(LONG), picture(), Target::default());
    let third = pool.prepare(&context(LONG), picture(), Target::default());
    assert_eq!(third.await, Err(PoolRefusal::Busy));
    blocked.cancel.cancel();
    assert_eq!(first.await, Err(PoolRefusal::Abandoned));
    assert!(second.await.is_ok());
}

#[tokio::test]
async fn a_place_of_someone_who_left_is_free() {
    let pool = pool(1, 1);
    let blocked = context(LONG);
    let _first = pool.prepare(&blocked, picture(), side(UNTIL_OVER));
    running(&pool, 1).await;
    drop(pool.prepare(&context(LONG), picture(), Target::default()));
    let third = pool.prepare(&context(LONG), picture(), Target::default());
    blocked.cancel.cancel();
    assert!(third.await.is_ok());
}

#[tokio::test]
async fn a_late_picture_is_given_up_and_its_thread_is_free_again() {
    let pool = pool(1, 1);
    let late = pool.prepare(&context(SHORT), picture(), side(UNTIL_OVER));
    assert_eq!(late.await, Err(PoolRefusal::Late));
    let next = pool.prepare(&context(LONG), picture(), Target::default());
    assert!(next.await.is_ok());
}

#[tokio::test]
async fn work_stops_when_the_caller_goes_away() {
    let pool = pool(1, 1);
    let forgotten = pool.prepare(&context(LONG), picture(), side(UNTIL_OVER));
    running(&pool, 1).await;
    drop(forgotten);
    running(&pool, 0).await;
}

#[tokio::test]
async fn an_expired_job_never_starts() {
    let pool = pool(1, 2);
    let blocked = context(LONG);
    let _first = pool.prepare(&blocked, picture(), side(UNTIL_OVER));
    running(&pool, 1).await;
    let expired = pool.prepare(
        &context(SHORT),
        Input::File {
            path: "/does/not/exist".into(),
            bytes: 1,
        },
        Target::default(),
    );
    // Had it started, it would be unreadable.
    assert_eq!(expired.await, Err(PoolRefusal::Late));
    blocked.cancel.cancel();
    let last = pool.prepare(&context(LONG), picture(), Target::default());
    assert!(last.await.is_ok());
}

#[tokio::test]
async fn a_panic_costs_one_job() {
    let pool = pool(1, 4);
    let broken = pool.prepare(&context(LONG), picture(), side(PANIC));
    let next = pool.prepare(&context(LONG), picture(), Target::default());
    assert_eq!(broken.await, Err(PoolRefusal::Failed));
    assert!(next.await.is_ok());
    assert!(BEGUN.load(Ordering::SeqCst) >= 2);
}

#[tokio::test]
async fn a_refused_picture_says_why() {
    let pool = pool(1, 4);
    let input = Input::Bytes(b"no picture at all".to_vec());
    let refused = pool.prepare(&context(LONG), input, Target::default()).await;
    assert_eq!(refused.unwrap_err().as_str(), "not_an_image");
}

#[tokio::test]
async fn files_are_read_by_the_thread() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    let Input::Bytes(bytes) = picture() else {
        unreachable!("the picture is in memory")
    };
    std::fs::write(&path, &bytes).unwrap();
    let pool = pool(1, 4);
    let file = |bytes| Input::File {
        path: path.clone(),
        bytes,
    };
    let length = bytes.len() as u64;
    let ctx = context(LONG);
    assert!(
        pool.prepare(&ctx, file(length), Target::default())
            .await
            .is_ok()
    );
    let grown = pool
        .prepare(&ctx, file(length - 1), Target::default())
        .await;
    assert_eq!(grown.unwrap_err().as_str(), "unreadable");
    std::fs::remove_file(&path).unwrap();
    let missing = pool.prepare(&ctx, file(length), Target::default()).await;
    assert_eq!(missing.unwrap_err().as_str(), "unreadable");
}

#[tokio::test]
async fn closing_drops_what_waits_and_awaits_what_runs() {
    let pool = pool(1, 4);
    let blocked = context(LONG);
    let first = pool.prepare(&blocked, picture(), side(UNTIL_OVER));
    running(&pool, 1).await;
    let waiting = pool.prepare(&context(LONG), picture(), Target::default());
    assert!(!pool.close(Deadline::after(SHORT)).await, "one still runs");
    assert_eq!(waiting.await, Err(PoolRefusal::Abandoned));
    blocked.cancel.cancel();
    assert!(pool.close(Deadline::after(LONG)).await);
    assert_eq!(first.await, Err(PoolRefusal::Abandoned));
    let after = pool.prepare(&context(LONG), picture(), Target::default());
    assert_eq!(after.await, Err(PoolRefusal::Abandoned));
}

#[test]
fn big_pictures_take_turns() {
    let turns = Turns::new(100);
    let in_work = AtomicUsize::new(0);
    let most = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| {
                let turn = turns.take(60, || Ok(())).unwrap();
                let now = in_work.fetch_add(1, Ordering::SeqCst) + 1;
                most.fetch_max(now, Ordering::SeqCst);
                std::thread::park_timeout(Duration::from_millis(2));
                in_work.fetch_sub(1, Ordering::SeqCst);
                drop(turn);
            });
        }
    });
    assert_eq!(most.into_inner(), 1);
}

#[test]
fn small_pictures_pass_a_big_one_that_waits_and_a_huge_one_runs_alone() {
    let turns = Turns::new(100);
    let first = turns.take(60, || Ok(())).unwrap();
    let refused = turns.take(500, || Err(PoolRefusal::Late)).err();
    assert_eq!(refused, Some(PoolRefusal::Late));
    let small = turns.take(40, || Ok(())).unwrap();
    drop((first, small));
    assert!(turns.take(500, || Ok(())).is_ok());
}
