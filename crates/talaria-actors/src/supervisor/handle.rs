//! The handle through which everybody else uses the actors.

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use actix::Arbiter;
use futures_util::future::join_all;
use parking_lot::Mutex;
use serde_json::{Map, Value};
use talaria_config::Config;
use talaria_content::tools::ToolFormat;
use talaria_content::{ReaderTool, ResultKind};
use talaria_types::{CallContext, Deadline, ErrorCode, Failure, RawResult, ServerName};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;
use tracing::Instrument;

use crate::directory::{Directory, Entry, PublicTool, ToolTarget};
use crate::feed::Listener;
use crate::server::ServerHandle;
use crate::server::messages::{Probe, Ticket};
use crate::server::refusal;
use crate::server::snapshot::{Outlook, Snapshot, StateName};
use crate::supervisor::actor::SupervisorAddress;
use crate::supervisor::messages::{DrainAll, Reload, StopSupervisor, Switch, SwitchServer};
use crate::supervisor::{Outage, ReloadReport, ServerStatus, ToolAnswer, status};
use crate::tokens::TokenLimits;
use crate::utility;

/// How long the supervisor may take to change the servers; it waits for none of them.
const RELOAD_WITHIN: Duration = Duration::from_secs(30);

/// Bounds of calls and of shutting down.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    /// Upper bound of any call.
    pub(crate) max_call_duration: Duration,
    /// Calls of one token that wait or run.
    pub(crate) pending_per_token: NonZeroUsize,
    /// How long stopping may take once the calls are over.
    pub(crate) stop_within: Duration,
}

/// Every tool at one moment.
#[derive(Clone, Debug)]
pub struct ToolListing {
    /// Rises with every change of the tools, over restarts too.
    pub version: u64,
    /// The tools, in a fixed order.
    pub tools: Vec<PublicTool>,
    /// Servers that are down; their tools are listed as they were.
    pub down: Vec<Outage>,
}

/// Handle to the supervisor; cheap to clone.
#[derive(Clone, Debug)]
pub struct SupervisorHandle {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    address: SupervisorAddress,
    directory: Arc<Directory>,
    limits: Limits,
    tokens: TokenLimits,
    /// Cancelled when the supervisor has ended, however it did.
    ended: CancellationToken,
    /// The supervisor's own thread, until it is joined.
    arbiter: Mutex<Option<Arbiter>>,
}

impl SupervisorHandle {
    pub(crate) fn new(
        address: SupervisorAddress,
        directory: Arc<Directory>,
        limits: Limits,
        ended: CancellationToken,
        arbiter: Mutex<Option<Arbiter>>,
    ) -> Self {
        let tokens = TokenLimits::new(limits.pending_per_token);
        let inner = Inner {
            address,
            directory,
            limits,
            tokens,
            ended,
            arbiter,
        };
        Self {
            inner: Arc::new(inner),
        }
    }

    /// Calls a tool by its public name. Dropping the future cancels the call, on the wire too.
    ///
    /// # Errors
    /// Any transport-level failure; a tool's own error is an answer.
    pub async fn call_tool(
        &self,
        ctx: CallContext,
        public_name: &str,
        arguments: Map<String, Value>,
    ) -> Result<ToolAnswer, Failure> {
        let inner = &self.inner;
        inner.directory.check_open()?;
        let _place = inner.tokens.admit(ctx.token.as_ref())?;
        let deadline = ctx
            .deadline
            .earlier(Deadline::after(inner.limits.max_call_duration));
        let entry = match inner.directory.find(public_name) {
            Some(entry) => entry,
            None => self.await_entry(public_name, deadline).await?,
        };
        entry.server.check_trust(&ctx, entry.read_only)?;
        let target = entry.tool.target.clone();
        match &target {
            ToolTarget::Tool(_) => entry.check_arguments(&arguments)?,
            ToolTarget::Utility(utility) => {
                if let Some(parameter) = utility::missing_parameter(*utility, &arguments) {
                    let raw = utility::missing_parameter_answer(parameter);
                    return Ok(self.answer(&entry, raw, ResultKind::ToolCall));
                }
            }
        }
        let span = tracing::debug_span!(
            parent: &ctx.span,
            "server_call",
            server = %entry.tool.server,
            tool = target.raw_name(),
            request_id = %ctx.request_id,
        );
        let ctx = CallContext {
            deadline,
            cancel: ctx.cancel.child_token(),
            span: span.clone(),
            ..ctx
        };
        // Whatever ends this future ends the call.
        let _leaving = ctx.cancel.clone().drop_guard();
        let ticket = Ticket::new(ctx, target, arguments, entry.read_only);
        let (raw, kind) = entry.server.call(ticket).instrument(span).await?;
        Ok(self.answer(&entry, raw, kind))
    }

    fn answer(&self, entry: &Entry, raw: RawResult, kind: ResultKind) -> ToolAnswer {
        ToolAnswer {
            raw,
            kind,
            server: entry.tool.server.clone(),
            tool: entry.tool.target.raw_name().to_owned(),
            reader: self.inner.directory.reader(&entry.tool.server),
        }
    }

    /// Finds the public name for a server and a raw tool name.
    ///
    /// # Errors
    /// `unknown_server`, `unknown_tool`; `server_unavailable`, `server_disabled` or
    /// `server_misconfigured` for a server that has not listed its tools.
    pub fn resolve(&self, server: &str, tool: &str) -> Result<PublicTool, Failure> {
        let handle = self.handle_of(server)?;
        if let Some(entry) = self.inner.directory.find_raw(handle.name(), tool) {
            return Ok(entry.tool.clone());
        }
        handle.check_usable()?;
        let snapshot = handle.snapshot();
        if !snapshot.listed {
            return Err(refusal::not_ready(handle.name(), &snapshot));
        }
        Err(Failure::new(
            ErrorCode::UnknownTool,
            format!("server '{server}' has no tool '{tool}'; the list of tools names what it has"),
        )
        .on_server(handle.name()))
    }

    /// As [`Self::resolve`], but waits a moment for a server that is still starting, unless what
    /// it takes the place of had the tool.
    ///
    /// # Errors
    /// Those of [`Self::resolve`].
    pub async fn resolve_when_listed(
        &self,
        server: &str,
        tool: &str,
        deadline: Deadline,
    ) -> Result<PublicTool, Failure> {
        let handle = self.handle_of(server)?;
        if let Some(entry) = self.inner.directory.find_raw(handle.name(), tool) {
            return Ok(entry.tool.clone());
        }
        handle.listed(deadline).await;
        self.resolve(server, tool)
    }

    /// Looks a public name up.
    #[must_use]
    pub fn find_tool(&self, public_name: &str) -> Option<PublicTool> {
        self.inner
            .directory
            .find(public_name)
            .map(|entry| entry.tool.clone())
    }

    /// As [`Self::find_tool`], but waits a moment for a server that may have it and is still
    /// starting. For callers that must know whose tool it is before they call it.
    ///
    /// # Errors
    /// `unknown_tool`; `server_unavailable`, `server_disabled` or `server_misconfigured` for a
    /// server that may have it and has not listed its tools.
    pub async fn find_tool_when_listed(
        &self,
        public_name: &str,
        deadline: Deadline,
    ) -> Result<PublicTool, Failure> {
        let entry = match self.inner.directory.find(public_name) {
            Some(entry) => entry,
            None => self.await_entry(public_name, deadline).await?,
        };
        Ok(entry.tool.clone())
    }

    /// Every tool, in a fixed order.
    #[must_use]
    pub fn tools(&self) -> Vec<PublicTool> {
        self.inner
            .directory
            .tools()
            .into_iter()
            .map(|entry| entry.tool.clone())
            .collect()
    }

    /// Every tool with what is to be known of the list.
    #[must_use]
    pub fn listing(&self) -> ToolListing {
        let directory = &self.inner.directory;
        // The version first: a list that is newer than it says is asked for once more, an older
        // one would be taken for the latest.
        let version = directory.version();
        let servers = directory.servers();
        ToolListing {
            version,
            down: servers.iter().filter_map(status::outage).collect(),
            tools: self.tools(),
        }
    }

    /// The definitions of the tools that are wanted in the shape of a provider, each as a list
    /// with that tool alone. Made once for each list of a server.
    #[must_use]
    pub fn rendered(
        &self,
        format: ToolFormat,
        wanted: impl Fn(&PublicTool) -> bool,
    ) -> Vec<Arc<Value>> {
        let entries = self.inner.directory.tools().into_iter();
        let wanted = entries.filter(|entry| wanted(&entry.tool));
        wanted.map(|entry| entry.rendered(format)).collect()
    }

    /// The version of the tool list.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.inner.directory.version()
    }

    /// Listens to what changes, from after the event `last` on or from now on.
    ///
    /// # Errors
    /// `busy` when too many listen, `shutting_down`.
    pub fn listen(&self, last: Option<&str>) -> Result<Listener, Failure> {
        self.inner.directory.feed().listen(last)
    }

    /// Ends everybody who listens, and lets nobody listen any more.
    pub fn end_listening(&self) {
        self.inner.directory.feed().close();
    }

    /// The tool that reads a server's resources.
    #[must_use]
    pub fn reader_tool(&self, server: &str) -> ReaderTool {
        self.inner.directory.reader(&ServerName::from(server))
    }

    /// Whether the supervisor has not ended.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        !self.inner.ended.is_cancelled()
    }

    /// Waits until the supervisor has ended, whether it was asked to or not.
    pub async fn ended(&self) {
        self.inner.ended.cancelled().await;
    }

    /// Asks the supervisor's own loop for a sign of life.
    ///
    /// # Errors
    /// `internal` when it has ended or does not answer by the deadline.
    pub async fn probe(&self, deadline: Deadline) -> Result<(), Failure> {
        let asking = self.inner.address.send(Probe);
        let trouble = match tokio::time::timeout_at(deadline.instant(), asking).await {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(_)) => "the supervisor has ended",
            Err(_) => "the supervisor does not answer",
        };
        Err(Failure::new(ErrorCode::Internal, trouble))
    }

    /// Every server, by name. Answered from what the servers publish, so it never waits for one.
    #[must_use]
    pub fn servers(&self) -> Vec<ServerStatus> {
        self.inner
            .directory
            .servers()
            .iter()
            .map(|server| self.status_of(server))
            .collect()
    }

    /// One server, answered the same way.
    ///
    /// # Errors
    /// `unknown_server`.
    pub fn server(&self, name: &str) -> Result<ServerStatus, Failure> {
        Ok(self.status_of(&self.handle_of(name)?))
    }

    /// Ends the session and starts a new one now; answers with the status it reached.
    ///
    /// # Errors
    /// `unknown_server`, `server_disabled`, `server_misconfigured`.
    pub async fn reconnect(&self, name: &str, deadline: Deadline) -> Result<ServerStatus, Failure> {
        let server = self.handle_of(name)?;
        server.check_usable()?;
        self.inner.directory.check_open()?;
        let before = server.snapshot();
        if before.state == StateName::Disabled {
            return Err(refusal::draining(ErrorCode::ServerDisabled, server.name()));
        }
        if server.address().is_some() {
            server.reconnect(deadline).await?;
        } else {
            // No actor: it died and waits for its restart, which this brings forward.
            self.switch(&server, Switch::On, deadline).await?;
        }
        server
            .watch_until(deadline, |seen| seen.attempts_ended > before.attempts_ended)
            .await;
        Ok(self.status_of(&server))
    }

    /// Starts a disabled server.
    ///
    /// # Errors
    /// `unknown_server`, `server_misconfigured`.
    pub async fn enable(&self, name: &str, deadline: Deadline) -> Result<ServerStatus, Failure> {
        let server = self.handle_of(name)?;
        server.check_usable()?;
        let before = server.snapshot().attempts_ended;
        self.switch(&server, Switch::On, deadline).await?;
        let reached = |seen: &Snapshot| match seen.state {
            StateName::Ready
            | StateName::Degraded
            | StateName::Parked
            | StateName::Failed
            | StateName::Stopped => true,
            StateName::Configured => seen.listed,
            StateName::Connecting | StateName::Backoff | StateName::Draining => {
                seen.attempts_ended > before
            }
            StateName::Disabled => false,
        };
        server.watch_until(deadline, reached).await;
        Ok(self.status_of(&server))
    }

    /// Stops a server until it is enabled again.
    ///
    /// # Errors
    /// `unknown_server`.
    pub async fn disable(&self, name: &str, deadline: Deadline) -> Result<ServerStatus, Failure> {
        let server = self.handle_of(name)?;
        server.check_usable()?;
        self.switch(&server, Switch::Off, deadline).await?;
        server
            .watch_until(deadline, |seen| seen.state == StateName::Disabled)
            .await;
        Ok(self.status_of(&server))
    }

    /// Makes the servers what a configuration says: only what changed stops or starts, and calls
    /// that run end. Two at once come one after the other.
    ///
    /// # Errors
    /// `shutting_down`; `timeout` when the supervisor does not answer.
    pub async fn reload(&self, config: Arc<Config>) -> Result<ReloadReport, Failure> {
        let reloading = self.inner.address.send(Reload { config });
        match tokio::time::timeout(RELOAD_WITHIN, reloading).await {
            Ok(Ok(reloaded)) => reloaded,
            Ok(Err(_)) => Err(shutting_down()),
            Err(_) => Err(late()),
        }
    }

    /// How long connecting to a server may take; none for one that cannot be used.
    #[must_use]
    pub fn connect_timeout(&self, name: &str) -> Option<Duration> {
        let server = self.inner.directory.server(name)?;
        server.check_usable().ok()?;
        Some(server.connect_timeout())
    }

    /// Waits until every enabled server is ready or has failed once.
    pub async fn settled(&self, deadline: Deadline) {
        for server in self.inner.directory.servers() {
            server.watch_until(deadline, |seen| seen.settled()).await;
        }
    }

    /// Takes no new calls, waits for those that run, stops every server. Safe to call again.
    pub async fn drain(&self, calls: Duration) {
        let inner = &self.inner;
        inner.directory.begin_drain();
        let until = Deadline::after(calls);
        let stop_by = Deadline::at(until.instant() + inner.limits.stop_within);
        let draining = inner.address.send(DrainAll {
            until: until.instant(),
        });
        let mut arbiters = match tokio::time::timeout_at(stop_by.instant(), draining).await {
            Ok(Ok(arbiters)) => arbiters,
            // Somebody else drained it already.
            Ok(Err(_)) => return,
            Err(_) => {
                tracing::error!("the supervisor did not stop in time");
                return;
            }
        };
        let stopping = inner.address.send(StopSupervisor);
        if tokio::time::timeout_at(stop_by.instant(), stopping)
            .await
            .is_err()
        {
            tracing::error!("the supervisor does not answer");
            return;
        }
        arbiters.extend(inner.arbiter.lock().take());
        join(arbiters, Deadline::after(inner.limits.stop_within)).await;
    }

    /// Waits until a server takes calls and has listed its tools, or will not do so soon.
    ///
    /// # Errors
    /// `unknown_server`, `server_unavailable`, `server_disabled`, `server_misconfigured`.
    pub(crate) async fn await_ready(
        &self,
        server: &str,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let handle = self.handle_of(server)?;
        handle.check_usable()?;
        // One that connects when it is called is as good as ready.
        let takes_calls = |seen: &Snapshot| {
            let up = seen.state.outlook() == Outlook::Up;
            (up || seen.state == StateName::Configured) && seen.listed
        };
        let decided = |seen: &Snapshot| match seen.state.outlook() {
            Outlook::Up | Outlook::Soon => takes_calls(seen),
            Outlook::Down => true,
        };
        let seen = handle.watch_until(deadline, decided).await;
        if takes_calls(&seen) {
            return Ok(());
        }
        Err(refusal::not_ready(handle.name(), &seen))
    }

    /// The actor's own address.
    #[cfg(test)]
    pub(crate) fn address(&self) -> SupervisorAddress {
        self.inner.address.clone()
    }

    /// A server's own handle.
    #[cfg(test)]
    pub(crate) fn server_handle(&self, server: &str) -> ServerHandle {
        self.handle_of(server).unwrap()
    }

    fn status_of(&self, server: &ServerHandle) -> ServerStatus {
        status::of(&self.inner.directory, server)
    }

    fn handle_of(&self, server: &str) -> Result<ServerHandle, Failure> {
        self.inner.directory.server(server).ok_or_else(|| {
            Failure::new(
                ErrorCode::UnknownServer,
                format!("no server is named '{server}'"),
            )
        })
    }

    async fn switch(
        &self,
        server: &ServerHandle,
        to: Switch,
        deadline: Deadline,
    ) -> Result<(), Failure> {
        let message = SwitchServer {
            server: server.name().clone(),
            to,
        };
        let sending = self.inner.address.send(message);
        match tokio::time::timeout_at(deadline.instant(), sending).await {
            Ok(Ok(switched)) => switched,
            Ok(Err(_)) => Err(shutting_down()),
            Err(_) => Err(late()),
        }
    }

    /// Waits for a tool whose server has not listed its tools yet.
    async fn await_entry(&self, name: &str, deadline: Deadline) -> Result<Arc<Entry>, Failure> {
        let directory = &self.inner.directory;
        let likely = directory.likely_servers(name);
        let waiting = likely.iter().map(|server| server.listed(deadline));
        let likely = join_all(waiting).await;
        if let Some(entry) = directory.find(name) {
            return Ok(entry);
        }
        for server in &likely {
            server.check_usable()?;
            let snapshot = server.snapshot();
            if !snapshot.listed {
                return Err(refusal::not_ready(server.name(), &snapshot));
            }
        }
        Err(Failure::new(
            ErrorCode::UnknownTool,
            format!("no tool is named '{name}'; the list of tools names what there is"),
        ))
    }
}

/// Joins the threads of actors, for a while: one that never comes back does not hold up the end.
pub(crate) async fn join(arbiters: Vec<Arbiter>, until: Deadline) {
    if arbiters.is_empty() {
        return;
    }
    for arbiter in &arbiters {
        arbiter.stop();
    }
    let (done, joined) = oneshot::channel::<()>();
    // The runtime would wait for a worker of its own when it ends.
    let waiting = std::thread::Builder::new()
        .name("join-actors".to_owned())
        .spawn(move || {
            for arbiter in arbiters {
                if arbiter.join().is_err() {
                    tracing::error!("an actor's thread ended by a panic");
                }
            }
            drop(done);
        });
    if let Err(error) = waiting {
        tracing::error!(%error, "actor threads were not joined");
        return;
    }
    if tokio::time::timeout_at(until.instant(), joined)
        .await
        .is_err()
    {
        tracing::error!("an actor's thread does not end; it is left behind");
    }
}

fn shutting_down() -> Failure {
    Failure::new(ErrorCode::ShuttingDown, "Talaria is shutting down")
}

fn late() -> Failure {
    Failure::new(ErrorCode::Timeout, "the supervisor did not answer in time")
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn a_thread_that_never_ends_does_not_hold_up_the_end() {
        actix::System::new().block_on(async {
            let barrier = Arc::new(Barrier::new(2));
            let stuck = Arbiter::new();
            let held = Arc::clone(&barrier);
            assert!(stuck.spawn_fn(move || {
                held.wait();
                held.wait();
            }));
            barrier.wait();
            let since = talaria_types::runtime::now();
            join(vec![stuck], Deadline::after(Duration::from_millis(50))).await;
            assert!(since.elapsed() >= Duration::from_millis(50));
            barrier.wait();
        });
    }
}
