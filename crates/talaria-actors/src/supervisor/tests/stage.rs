//! One system, one clock, scripted servers, and what the tests ask of them.

use std::future::Future;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use actix::{ActorContext, AsyncContext, Context, Handler, Message};
use serde_json::{Map, Value, json};
use talaria_config::{Config, Source};
use talaria_types::runtime::BlockingPool;
use talaria_types::{CallContext, Deadline, ErrorCode, Failure};

use crate::fake::{FakeServer, Fleet};
use crate::server::actor::ServerActor;
use crate::supervisor::plan::Timing;
use crate::supervisor::{
    Parts, Placement, ReloadReport, ServerStatus, Supervisor, SupervisorHandle, ToolAnswer,
};

/// Runs a test in a system of its own with a paused clock.
pub(super) fn on_paused_clock(test: impl Future<Output = ()>) {
    actix::System::new().block_on(async {
        tokio::time::pause();
        test.await;
    });
}

/// A supervisor and its scripted servers.
#[derive(Clone, Debug)]
pub(super) struct Stage {
    pub(super) fleet: Fleet,
    pub(super) supervisor: SupervisorHandle,
}

/// A long time for a caller.
pub(super) const LONG: Duration = Duration::from_secs(200);

impl Stage {
    /// Starts over these servers, written as the section `mcp_servers`.
    pub(super) fn start(fleet: &Fleet, servers: &Value) -> Self {
        Self::start_with(
            fleet,
            &json!({ "mcp_servers": servers }),
            Placement::Current,
        )
    }

    /// Starts over a whole configuration.
    pub(super) fn start_with(fleet: &Fleet, config: &Value, placement: Placement) -> Self {
        Self::start_timed(fleet, config, placement, &Timing::PRODUCTION)
    }

    /// The same with intervals of its own.
    pub(super) fn start_timed(
        fleet: &Fleet,
        config: &Value,
        placement: Placement,
        timing: &Timing,
    ) -> Self {
        let parts = Parts {
            config: Arc::new(config_of(config)),
            blocking: BlockingPool::new(4),
            placement,
            connector: Arc::new(fleet.clone()),
            timing: *timing,
        };
        Self {
            fleet: fleet.clone(),
            supervisor: Supervisor::start_with(&parts),
        }
    }

    /// Starts one server `s` with the tool `echo`, ready.
    pub(super) async fn one() -> (Self, FakeServer) {
        Self::one_with(&json!({ "command": "fake" })).await
    }

    /// The same with a configuration of its own.
    pub(super) async fn one_with(server: &Value) -> (Self, FakeServer) {
        let fleet = Fleet::default();
        let stage = Self::start(&fleet, &json!({ "s": server }));
        stage.settle().await;
        let server = fleet.server("s");
        (stage, server)
    }

    /// Waits until every server is ready or has failed once.
    pub(super) async fn settle(&self) {
        self.supervisor.settled(Deadline::after(LONG)).await;
    }

    /// Reads the configuration again, with these servers.
    pub(super) async fn reload(&self, servers: &Value) -> ReloadReport {
        self.reload_whole(&json!({ "mcp_servers": servers })).await
    }

    /// Reads a whole configuration.
    pub(super) async fn reload_whole(&self, config: &Value) -> ReloadReport {
        let config = Arc::new(config_of(config));
        self.supervisor.reload(config).await.unwrap()
    }

    /// Calls a tool of server `s`.
    pub(super) async fn call(&self, tool: &str) -> Result<ToolAnswer, Failure> {
        self.call_within(tool, LONG).await
    }

    /// Calls a tool of server `s` with a deadline.
    pub(super) async fn call_within(
        &self,
        tool: &str,
        within: Duration,
    ) -> Result<ToolAnswer, Failure> {
        self.call_public(&format!("mcp__s__{tool}"), json!({}), within)
            .await
    }

    /// Calls any tool.
    pub(super) async fn call_public(
        &self,
        public_name: &str,
        arguments: Value,
        within: Duration,
    ) -> Result<ToolAnswer, Failure> {
        let ctx = CallContext::new(Deadline::after(within));
        self.supervisor
            .call_tool(ctx, public_name, object(arguments))
            .await
    }

    /// Starts a call that runs beside the test.
    pub(super) fn start_call(
        &self,
        tool: &str,
        within: Duration,
    ) -> tokio::task::JoinHandle<Result<ToolAnswer, Failure>> {
        let stage = self.clone();
        let tool = tool.to_owned();
        talaria_types::runtime::spawn_local("test call", async move {
            stage.call_within(&tool, within).await
        })
    }

    /// The status of server `s`.
    pub(super) fn status(&self) -> ServerStatus {
        self.supervisor.server("s").unwrap()
    }

    /// Waits until server `s` is in a state; answers with how long it took.
    pub(super) async fn reaches(&self, state: &str) -> Duration {
        let since = talaria_types::runtime::now();
        let reached = async || self.status().state == state;
        if !eventually(reached).await {
            panic!("never {state}: {:?}", self.status());
        }
        since.elapsed()
    }

    /// Sends a server's actor a message that only tests know.
    pub(super) fn meddle<M>(&self, message: M)
    where
        M: Message<Result = ()> + Send + 'static,
        ServerActor: Handler<M>,
    {
        let server = self.supervisor.server_handle("s");
        server
            .address()
            .expect("an actor")
            .try_send(message)
            .expect("room in the mailbox");
    }
}

/// Looks again and again until the condition holds; false after 20 minutes of virtual time.
pub(super) async fn eventually(mut condition: impl AsyncFnMut() -> bool) -> bool {
    let give_up = Deadline::after(Duration::from_secs(1200));
    while !condition().await {
        if give_up.expired() {
            return false;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    true
}

/// Waits until it holds or fails the test.
pub(super) async fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    assert!(
        eventually(async || condition()).await,
        "never happened: {what}"
    );
}

/// The text of an answer.
pub(super) fn text(answer: &ToolAnswer) -> String {
    answer.raw.json["content"][0]["text"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

/// The code of a failure.
pub(super) fn code(result: Result<ToolAnswer, Failure>) -> ErrorCode {
    result
        .map(|answer| answer.raw.json)
        .expect_err("a failure")
        .code()
}

pub(super) fn object(value: Value) -> Map<String, Value> {
    serde_json::from_value(value).expect("an object")
}

pub(super) fn config_of(config: &Value) -> Config {
    let home = PathBuf::from("/nowhere/talaria");
    let environment = [("HOME".to_owned(), home.display().to_string())].into();
    talaria_config::load(&config.to_string(), &environment, &Source::default()).unwrap()
}

/// The actor's handler panics.
#[derive(Debug)]
pub(super) struct Explode;

impl Message for Explode {
    type Result = ();
}

impl Handler<Explode> for ServerActor {
    type Result = ();

    fn handle(&mut self, _: Explode, _: &mut Context<Self>) {
        panic!("scripted panic in a handler");
    }
}

/// The actor stops reading its mailbox and running its jobs.
#[derive(Debug)]
pub(super) struct Freeze;

impl Message for Freeze {
    type Result = ();
}

impl Handler<Freeze> for ServerActor {
    type Result = ();

    fn handle(&mut self, _: Freeze, ctx: &mut Context<Self>) {
        ctx.wait(actix::fut::wrap_future(std::future::pending::<()>()));
    }
}

/// The actor's thread blocks until the other side of the barrier is there.
#[derive(Debug)]
pub(super) struct Block(pub(super) Arc<std::sync::Barrier>);

impl Message for Block {
    type Result = ();
}

impl Handler<Block> for ServerActor {
    type Result = ();

    fn handle(&mut self, Block(barrier): Block, _: &mut Context<Self>) {
        barrier.wait();
    }
}

/// The actor ends without having been asked to drain.
#[derive(Debug)]
pub(super) struct Quit;

impl Message for Quit {
    type Result = ();
}

impl Handler<Quit> for ServerActor {
    type Result = ();

    fn handle(&mut self, _: Quit, ctx: &mut Context<Self>) {
        ctx.stop();
    }
}
