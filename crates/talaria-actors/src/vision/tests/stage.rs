//! A vision actor, its scripted backends and servers, a picture, and a clock the test moves.
//!
//! Pictures are prepared on threads of their own, which a paused clock does not wait for. So the
//! clock never jumps by itself here: the test moves it in steps, with real time in between.

use std::collections::BTreeMap;
use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use actix::{ActorContext, AsyncContext, Context, Handler, Message};
use futures_util::future::LocalBoxFuture;
use parking_lot::Mutex;
use serde_json::{Value, json};
use sha2::Digest as _;
use talaria_config::Source;
use talaria_image::PoolOptions;
use talaria_media::MediaOptions;
use talaria_types::{CallContext, runtime};
use talaria_vision::describe::{Ask, Backend, Encoded, Fault, Verdict};
use tokio::task::JoinHandle;

use super::super::actor::VisionActor;
use super::super::messages::Reply;
use super::super::workshop::Backends;
use super::*;
use crate::fake::{FakeServer, Fleet};
use crate::supervisor::plan::Timing;
use crate::supervisor::{Parts, Placement, Supervisor};

/// How far the clock moves at a time.
const STEP: Duration = Duration::from_millis(50);
/// Real time for every step.
const BREATH: Duration = Duration::from_millis(1);

/// Runs a test in a system of its own, on a clock that only the test moves.
pub(crate) fn on_moved_clock(test: impl Future<Output = ()>) {
    actix::System::new().block_on(async {
        tokio::time::pause();
        test.await;
    });
}

/// What a backend does when it is asked.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Does {
    Say(&'static str),
    Reason(&'static str),
    Fail(FaultKind),
    Stall,
    Take(Duration, &'static str),
    Panic,
}

/// What a backend was sent.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) prompt: String,
    pub(super) picture: Encoded,
}

impl Sent {
    /// Pixels of the picture.
    pub(crate) fn size(&self) -> (u32, u32) {
        let decoded = talaria_content::base64_guard::decode(&self.picture.base64).unwrap();
        let facts = talaria_image::inspect(&decoded.0).unwrap();
        (facts.width, facts.height)
    }
}

/// Scripted backends, by model.
#[derive(Clone, Debug, Default)]
struct Cast {
    scripts: Arc<Mutex<BTreeMap<String, Does>>>,
    sent: Arc<Mutex<BTreeMap<String, Vec<Sent>>>>,
    open: Arc<AtomicUsize>,
    most_open: Arc<AtomicUsize>,
}

/// A question under way.
struct UnderWay(Arc<AtomicUsize>);

impl Drop for UnderWay {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::SeqCst);
    }
}

impl Backends for Cast {
    fn ask<'a>(
        &'a self,
        backend: &'a Backend,
        ask: Ask<'a>,
        _: Deadline,
    ) -> LocalBoxFuture<'a, Verdict> {
        let sent = Sent {
            prompt: ask.prompt.to_owned(),
            picture: ask.picture.clone(),
        };
        self.sent
            .lock()
            .entry(backend.model.clone())
            .or_default()
            .push(sent);
        let does = self.scripts.lock()[&backend.model];
        let open = self.open.fetch_add(1, Ordering::SeqCst) + 1;
        self.most_open.fetch_max(open, Ordering::SeqCst);
        let under_way = UnderWay(Arc::clone(&self.open));
        Box::pin(async move {
            let _under_way = under_way;
            match does {
                Does::Say(text) => Verdict::Answer(text.to_owned()),
                Does::Reason(text) => Verdict::Reasoned(text.to_owned()),
                Does::Fail(kind) => Verdict::Failed(Fault::new(kind, "scripted")),
                Does::Stall => std::future::pending().await,
                Does::Take(time, text) => {
                    tokio::time::sleep(time).await;
                    Verdict::Answer(text.to_owned())
                }
                Does::Panic => panic!("scripted panic while asking"),
            }
        })
    }
}

/// Everything a test needs.
pub(crate) struct Stage {
    pub(crate) vision: VisionHandle,
    pub(super) fleet: Fleet,
    pub(super) store: MediaStore,
    cast: Cast,
    picture: Mutex<PictureFile>,
    home: tempfile::TempDir,
}

impl Stage {
    /// `auxiliary.vision` with these models, one after the other.
    pub(crate) fn backends(models: &[&str]) -> Value {
        let entry = |model: &&str| json!({ "base_url": format!("http://127.0.0.1:9/{model}"), "model": model, "timeout": 120 });
        let mut entries = models.iter().map(entry);
        let mut vision = entries.next().unwrap_or_else(|| json!({}));
        vision["fallback_chain"] = entries.collect();
        vision
    }

    /// A chain of backends with these models.
    pub(crate) async fn chain(models: &[&str]) -> Self {
        Self::with(&json!({ "auxiliary": { "vision": Self::backends(models) } })).await
    }

    /// Any configuration.
    pub(crate) async fn with(config: &Value) -> Self {
        let stage = Self::start_over(config, &Fleet::default());
        stage.pass(STEP).await;
        stage
    }

    /// The same over servers with a script.
    pub(super) fn start_over(config: &Value, fleet: &Fleet) -> Self {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().display().to_string();
        let environment = [("HOME".to_owned(), path)].into();
        let config = config.to_string();
        let config = talaria_config::load(&config, &environment, &Source::default()).unwrap();
        let config = Arc::new(config);
        let store = MediaStore::open(MediaOptions {
            root: home.path().join("cache"),
            max_bytes: 1 << 30,
            ttl: Duration::from_secs(3600),
            grace: Duration::from_secs(60),
            fsync: false,
            base_url: Some("http://127.0.0.1:8700".to_owned()),
        });
        let blocking = BlockingPool::new(4);
        let supervisor = Supervisor::start_with(&Parts {
            config: Arc::clone(&config),
            blocking: blocking.clone(),
            placement: Placement::Current,
            connector: Arc::new(fleet.clone()),
            timing: Timing::PRODUCTION,
        });
        let parts = VisionParts {
            chain: Chain::resolve(&config, None),
            config: Arc::clone(&config),
            pool: ImagePool::start(PoolOptions {
                workers: std::num::NonZeroUsize::MIN,
                queue: config.talaria.images.queue,
                pixels: 100_000_000,
                drawer: None,
            }),
            store: store.clone(),
            blocking,
            supervisor,
        };
        let cast = Cast::default();
        let own = cast.clone();
        let factory = Arc::new(move || Box::new(own.clone()) as Box<dyn Backends>);
        let vision = VisionHandle::start_with(parts, Placement::Current, factory).unwrap();
        let stage = Self {
            vision,
            fleet: fleet.clone(),
            store,
            cast,
            picture: Mutex::new(PictureFile {
                path: PathBuf::new(),
                bytes: 0,
                sha256: String::new(),
                artifact: None,
            }),
            home,
        };
        stage.picture(64, false);
        stage
    }

    /// The server of that name.
    pub(super) fn server(&self, name: &str) -> FakeServer {
        self.fleet.server(name)
    }

    /// What a backend does from now on.
    pub(crate) fn script(&self, model: &str, does: Does) {
        self.cast.scripts.lock().insert(model.to_owned(), does);
    }

    /// What a backend was sent.
    pub(crate) fn seen(&self, model: &str) -> Vec<Sent> {
        self.cast
            .sent
            .lock()
            .get(model)
            .cloned()
            .unwrap_or_default()
    }

    /// Questions under way at backends.
    pub(super) fn open(&self) -> usize {
        self.cast.open.load(Ordering::SeqCst)
    }

    /// The same, at most so far.
    pub(crate) fn most_open(&self) -> usize {
        self.cast.most_open.load(Ordering::SeqCst)
    }

    /// Makes the picture a square PNG, of one colour or of noise.
    pub(super) fn picture(&self, side: u32, noise: bool) {
        let pixels = usize::try_from(side * side).unwrap();
        let mut state = 7_u32;
        let pixels: Vec<u8> = (0..pixels)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                if noise { state.to_be_bytes()[0] } else { 90 }
            })
            .collect();
        let mut bytes = Vec::new();
        let mut encoder = png::Encoder::new(&mut bytes, side, side);
        encoder.set_color(png::ColorType::Grayscale);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&pixels).unwrap();
        writer.finish().unwrap();
        self.write(&bytes);
    }

    /// Makes the picture a file with these bytes.
    pub(super) fn write(&self, bytes: &[u8]) {
        let sha256 = hex::encode(sha2::Sha256::digest(bytes));
        let path = self.home.path().join(&sha256);
        std::fs::write(&path, bytes).unwrap();
        let mut picture = self.picture.lock();
        *picture = PictureFile {
            path,
            bytes: bytes.len().try_into().unwrap(),
            sha256,
            artifact: None,
        };
    }

    /// Puts the picture into the store.
    pub(super) fn store_picture(&self, name: &str) {
        let mut picture = self.picture.lock();
        let request = talaria_content::FileRequest {
            kind: talaria_content::ArtifactKind::Image,
            name: name.to_owned(),
            named: true,
            media_type: "image/png".to_owned(),
            declared_type: None,
            source_uri: None,
            body: talaria_content::FileBody::Bytes(std::fs::read(&picture.path).unwrap()),
        };
        let artifact = self.store.save(request, None).unwrap();
        picture.path = artifact.path;
        picture.artifact = Some(artifact.id);
    }

    /// A question about the picture.
    pub(super) fn question(&self, prompt: Option<&str>) -> Question {
        Question {
            picture: self.picture.lock().clone(),
            prompt: prompt.map(ToOwned::to_owned),
            region: None,
        }
    }

    /// Asks, and moves the clock until there is an answer.
    pub(super) async fn ask(&self, prompt: Option<&str>) -> Reply {
        self.ask_within(prompt, Duration::from_secs(600)).await
    }

    pub(super) async fn ask_within(&self, prompt: Option<&str>, within: Duration) -> Reply {
        let asking = self.start(prompt, within);
        self.all(vec![asking]).await.remove(0)
    }

    pub(super) async fn ask_this(&self, question: Question) -> Reply {
        let asking = self.start_this(question, Duration::from_secs(600));
        self.all(vec![asking]).await.remove(0)
    }

    /// Asks beside the test.
    pub(super) fn start(&self, prompt: Option<&str>, within: Duration) -> JoinHandle<Reply> {
        self.start_this(self.question(prompt), within)
    }

    fn start_this(&self, question: Question, within: Duration) -> JoinHandle<Reply> {
        let vision = self.vision.clone();
        let ctx = CallContext::new(Deadline::after(within));
        runtime::spawn_local("test question", async move {
            vision.describe(&ctx, question).await
        })
    }

    /// Moves the clock until all have answered.
    pub(super) async fn all(&self, waiting: Vec<JoinHandle<Reply>>) -> Vec<Reply> {
        self.until("everybody is answered", || {
            waiting.iter().all(JoinHandle::is_finished)
        })
        .await;
        let mut replies = Vec::new();
        for one in waiting {
            replies.push(one.await.unwrap());
        }
        replies
    }

    /// How long something takes on the test's clock.
    pub(crate) async fn timed<T>(&self, what: impl Future<Output = T>) -> (T, Duration) {
        let since = runtime::now();
        let done = what.await;
        (done, since.elapsed())
    }

    /// Moves the clock.
    pub(crate) async fn pass(&self, time: Duration) {
        let until = runtime::now() + time;
        while runtime::now() < until {
            step().await;
        }
    }

    /// Moves the clock until it holds; for at most 20 minutes of it.
    pub(crate) async fn until(&self, what: &str, holds: impl Fn() -> bool) {
        let give_up = Deadline::after(Duration::from_secs(1_200));
        // What needs no time happens first.
        for _ in 0..20 {
            if holds() {
                return;
            }
            breathe().await;
        }
        while !holds() {
            assert!(!give_up.expired(), "never: {what}");
            step().await;
        }
    }

    /// Descriptions under way.
    pub(super) fn running(&self) -> usize {
        self.vision.running()
    }

    /// The actor ends as if it had died.
    pub(super) async fn end_actor(&self) {
        self.vision.address().send(Quit).await.unwrap();
    }

    /// The actor reads its mailbox no more.
    pub(super) async fn freeze(&self) {
        self.vision.address().send(Freeze).await.unwrap();
    }
}

/// A step of the clock, with real time for threads before and after.
async fn step() {
    breathe().await;
    tokio::time::advance(STEP).await;
    breathe().await;
}

/// Real time in which the clock stands: it does not jump while a blocking job runs.
async fn breathe() {
    let pause = || std::thread::park_timeout(BREATH);
    let pool = BlockingPool::new(1);
    pool.run(Deadline::after(Duration::from_secs(3_600)), pause)
        .await
        .unwrap();
}

#[derive(Debug)]
struct Quit;

impl Message for Quit {
    type Result = ();
}

impl Handler<Quit> for VisionActor {
    type Result = ();

    fn handle(&mut self, _: Quit, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}

#[derive(Debug)]
struct Freeze;

impl Message for Freeze {
    type Result = ();
}

impl Handler<Freeze> for VisionActor {
    type Result = ();

    fn handle(&mut self, _: Freeze, ctx: &mut Context<Self>) {
        ctx.wait(actix::fut::wrap_future(std::future::pending::<()>()));
    }
}
