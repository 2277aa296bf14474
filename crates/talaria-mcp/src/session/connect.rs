//! From configuration to a live session.

use std::sync::Arc;
use std::time::Duration;

use rmcp::model::{ProtocolVersion, ServerPeerInfo};
use rmcp::service::{
    ClientCacheConfig, ClientInitializeError, ClientLifecycleMode, RoleClient, RunningService,
    serve_client_with_lifecycle_and_ct,
};
use rmcp::transport::IntoTransport;
use talaria_config::{ProtocolWish, TransportConfig};
use talaria_content::visible_line;
use talaria_telemetry::events;
use talaria_types::{Deadline, ErrorCode, Failure, runtime};

use super::diagnosis::ForeignModule;
use super::handler::Handler;
use super::request::about;
use super::shared::{Ending, Labels, Shared};
use super::{ClosedBy, ConnectOptions, PeerInfo, Session, listen, reach};
use crate::habits::Habit;
use crate::intake::Intake;
use crate::intake::calls::Kind;
use crate::process::Process;
use crate::spawn::{Launch, LaunchRequest};
use crate::stderr_log::{self, LastWords, StderrLog};
use crate::stdio::{self, PipeEnds};

/// rmcp's own patience with `server/discover`; ours is shorter where the deadline is near.
const DISCOVER_SILENCE: Duration = Duration::from_secs(10);

/// How long the exit status of a process and the end of its output wait for each other.
const SETTLE_WAIT: Duration = Duration::from_millis(500);

/// How shells and `env` end when the command they were to run does not exist.
const NO_SUCH_COMMAND: &str = "exit status: 127";

/// How much is shown of what a server calls itself.
const MAX_LABEL_CHARACTERS: usize = 120;

/// How long a process has whose session is over and that nobody gave another deadline.
const STOP_WAIT: Duration = Duration::from_secs(4);

/// Starts the server or reaches it, and performs the handshake.
///
/// # Errors
/// `connect_failed`, `connect_timeout`, `server_unauthorized`; `command_not_found`;
/// `server_misconfigured` where the address is no MCP endpoint or the package is known malware.
/// Nothing is left running.
pub async fn connect(options: ConnectOptions) -> Result<Session, Failure> {
    let connecting = async {
        match &options.transport {
            TransportConfig::Stdio {
                command,
                args,
                env,
                cwd,
            } => {
                let request = LaunchRequest {
                    command: command.clone(),
                    args: args.clone(),
                    env: env.clone(),
                    cwd: cwd.clone(),
                };
                Box::pin(start(&options, request)).await
            }
            TransportConfig::Http(config) => Box::pin(reach::reach(&options, config)).await,
        }
    };
    connecting
        .await
        .map_err(|failure| about(&options.server, failure))
}

async fn start(options: &ConnectOptions, request: LaunchRequest) -> Result<Session, Failure> {
    if let Some(packages) = &options.packages {
        let (command, args) = (&request.command, &request.args);
        packages
            .check(command, args, options.deadline, &options.blocking)
            .await?;
    }
    let environment = Arc::clone(&options.environment);
    let prepare = move || Launch::prepare(request, &environment);
    let launch = options.blocking.run(options.deadline, prepare).await??;
    let habit = options.habits.of(&options.server, &options.transport);
    let not_asked = Habit {
        is_not_asked: true,
        ..habit
    };
    let learn = || {
        options
            .habits
            .learn(&options.server, &options.transport, not_asked);
    };
    let mode = lifecycle(options.protocol, habit);
    let is_auto = options.protocol == ProtocolWish::Auto;
    match start_once(options, &launch, mode).await {
        Ok(session) => {
            if is_auto && session.shared.intake.calls.was_discover_in_vain() {
                learn();
            }
            Ok(session)
        }
        // It cannot stand the question, so it is started again and not asked.
        Err(Started {
            died_at_discover: true,
            ..
        }) if is_auto => {
            tracing::debug!(server = %options.server, "the server died of server/discover");
            let mode = lifecycle(options.protocol, not_asked);
            let session = start_once(options, &launch, mode)
                .await
                .map_err(|started| started.failure)?;
            learn();
            Ok(session)
        }
        Err(started) => Err(started.failure),
    }
}

/// A start that came to nothing.
struct Started {
    failure: Failure,
    died_at_discover: bool,
}

async fn start_once(
    options: &ConnectOptions,
    launch: &Launch,
    mode: ClientLifecycleMode,
) -> Result<Session, Started> {
    let not_started = |error: std::io::Error| {
        let detail = format!("{} cannot be started ({error})", launch.program().display());
        // The file is there, so it is the interpreter in its first line that is not.
        let code = if error.kind() == std::io::ErrorKind::NotFound {
            ErrorCode::CommandNotFound
        } else {
            ErrorCode::ConnectFailed
        };
        Started {
            failure: Failure::new(code, detail).caused_by(error),
            died_at_discover: false,
        }
    };
    let mut child = launch.start().map_err(not_started)?;
    let pipes = (child.stdin.take(), child.stdout.take(), child.stderr.take());
    let process = Process::watch(child, options.guard.clone()).map_err(not_started)?;
    let (Some(stdin), Some(stdout), Some(stderr)) = pipes else {
        return Err(not_started(std::io::ErrorKind::BrokenPipe.into()));
    };
    let header = format!("{} started, pid {}", options.server, process.pid);
    let log = StderrLog::new(options.stderr_log.clone(), options.stderr_log_bytes);
    let words = stderr_log::follow(stderr, log, &header, options.blocking.clone());
    let intake = intake(options);
    let ending = Ending::new();
    let ends = pipe_ends(&ending);
    let silence = discover_silence(options.deadline);
    let transport = stdio::open(stdout, stdin, &intake, &ends, silence);
    match shake_hands(transport, mode, &ending, options.deadline).await {
        Ok(running) => {
            let labels = labels(options);
            drop(runtime::spawn(
                "mcp_session",
                watch_process(process.clone(), ending.clone(), labels),
            ));
            Ok(session(options, intake, running, ending, Some(process)))
        }
        Err(error) => {
            let is_closed = matches!(error, Some(ClientInitializeError::ConnectionClosed(_)));
            let died_at_discover = is_closed && intake.calls.is_asked(Kind::Discover);
            let failure = handshake_failure(options, &intake, error.as_ref());
            let failure = bury(process, &words, failure).await;
            Err(Started {
                // What cannot be loaded now cannot be loaded without the question either.
                died_at_discover: died_at_discover && !is_foreign_module(&failure),
                failure,
            })
        }
    }
}

/// Ends a process whose handshake failed and says what it said itself.
async fn bury(process: Process, words: &LastWords, failure: Failure) -> Failure {
    let by_itself = tokio::time::timeout(SETTLE_WAIT / 2, process.exited()).await;
    process.stop(Deadline::after(Duration::ZERO));
    let status = process.exited().await;
    // What it answered says more than how it went afterwards.
    let has_answered = failure.server_words().is_some();
    if by_itself.is_err() || has_answered || failure.code() != ErrorCode::ConnectFailed {
        return failure;
    }
    words.complete(SETTLE_WAIT).await;
    let code = if status == NO_SUCH_COMMAND {
        ErrorCode::CommandNotFound
    } else {
        ErrorCode::ConnectFailed
    };
    let detail = format!("its process ended during the handshake ({status})");
    let text = words.text();
    let failure = match ForeignModule::in_words(&text) {
        Some(cause) => {
            let detail = format!("{detail}: {}", ForeignModule::ADVICE);
            Failure::new(code, detail).caused_by(cause)
        }
        None => Failure::new(code, detail),
    };
    if text.is_empty() {
        failure
    } else {
        failure.with_server_words(text)
    }
}

fn is_foreign_module(failure: &Failure) -> bool {
    let cause = std::error::Error::source(failure);
    cause.is_some_and(<dyn std::error::Error>::is::<ForeignModule>)
}

/// Which handshake is performed.
pub(super) fn lifecycle(wish: ProtocolWish, habit: Habit) -> ClientLifecycleMode {
    let preferred_versions = vec![ProtocolVersion::LATEST];
    match wish {
        ProtocolWish::Stateless => ClientLifecycleMode::Discover { preferred_versions },
        ProtocolWish::Auto if !habit.is_not_asked => ClientLifecycleMode::Auto {
            preferred_versions,
            legacy_version: Some(ProtocolVersion::LATEST_WITH_INITIALIZE),
        },
        ProtocolWish::Auto | ProtocolWish::Legacy => ClientLifecycleMode::Initialize,
    }
}

pub(super) fn discover_silence(deadline: Deadline) -> Duration {
    DISCOVER_SILENCE.min(deadline.remaining() / 3)
}

pub(super) type Running = RunningService<RoleClient, Handler>;

/// The handshake within the deadline; the error is `None` when that passed.
pub(super) async fn shake_hands<T, E, A>(
    transport: T,
    mode: ClientLifecycleMode,
    ending: &Ending,
    deadline: Deadline,
) -> Result<Running, Option<ClientInitializeError>>
where
    T: IntoTransport<RoleClient, E, A>,
    E: std::error::Error + Send + Sync + 'static,
{
    // A child token, because rmcp cancels its token whenever its loop ends.
    let token = ending.stop.child_token();
    let serving = serve_client_with_lifecycle_and_ct(Handler, transport, mode, token);
    match tokio::time::timeout_at(deadline.instant(), Box::pin(serving)).await {
        Ok(Ok(running)) => {
            running
                .peer()
                .set_response_cache_config(ClientCacheConfig::disabled())
                .await;
            Ok(running)
        }
        Ok(Err(error)) => Err(Some(error)),
        Err(_) => Err(None),
    }
}

pub(super) fn session(
    options: &ConnectOptions,
    intake: Arc<Intake>,
    running: Running,
    ending: Ending,
    process: Option<Process>,
) -> Session {
    let peer = running.peer().clone();
    let pid = process.as_ref().map(|process| process.pid);
    let peer_info = peer.peer_info();
    let info = describe(peer_info.as_deref(), pid);
    let labels = labels(options);
    let is_process = process.is_some();
    let loop_ending = ending.clone();
    drop(runtime::spawn("mcp_session_loop", async move {
        let reason = running.waiting().await;
        tracing::debug!(server = %labels.server, ?reason, "session loop ended");
        loop_ending.stopped.cancel();
        if !is_process {
            let cause = ClosedBy::Transport("the transport ended".to_owned());
            loop_ending.tell(&labels, cause);
        }
    }));
    if let Some(peer_info) = peer_info {
        listen::begin(&peer, &peer_info, &ending);
    }
    let transport = options.transport.network_transport();
    Session {
        shared: Arc::new(Shared {
            intake,
            peer,
            info,
            transport,
            ending,
            process,
        }),
    }
}

/// A session over pipes whose other ends are in the test.
#[cfg(test)]
pub(super) async fn over_pipes<R, W>(
    options: &ConnectOptions,
    reader: R,
    writer: W,
) -> Result<Session, Failure>
where
    R: tokio::io::AsyncRead + Send + Unpin + 'static,
    W: tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let intake = intake(options);
    let ending = Ending::new();
    let ends = pipe_ends(&ending);
    let transport = stdio::open(
        reader,
        writer,
        &intake,
        &ends,
        discover_silence(options.deadline),
    );
    match shake_hands(
        transport,
        lifecycle(options.protocol, Habit::default()),
        &ending,
        options.deadline,
    )
    .await
    {
        Ok(running) => Ok(session(options, intake, running, ending, None)),
        Err(error) => Err(handshake_failure(options, &intake, error.as_ref())),
    }
}

/// Finds out how a process and its pipes end, and ends what is left of them.
async fn watch_process(process: Process, ending: Ending, labels: Labels) {
    let cause = tokio::select! {
        // How it ended by itself says more than that we gave it up afterwards.
        biased;
        status = process.exited() => {
            // What it said before it went is still in the pipe.
            drop(tokio::time::timeout(SETTLE_WAIT, ending.output_ended.cancelled()).await);
            ClosedBy::ChildExit(status)
        }
        () = output_or_loop_ended(&ending) => {
            match tokio::time::timeout(SETTLE_WAIT, process.exited()).await {
                Ok(status) => ClosedBy::ChildExit(status),
                Err(_) => ClosedBy::Transport("it closed its output".to_owned()),
            }
        }
        () = ending.stop.cancelled() => ClosedBy::Us,
    };
    ending.tell(&labels, cause);
    // Whoever closed the session has said until when.
    process.stop_unless_stopping(Deadline::after(STOP_WAIT));
}

fn pipe_ends(ending: &Ending) -> PipeEnds {
    PipeEnds {
        closing: ending.stop.child_token(),
        output_ended: ending.output_ended.clone(),
    }
}

async fn output_or_loop_ended(ending: &Ending) {
    tokio::select! {
        () = ending.output_ended.cancelled() => {}
        () = ending.stopped.cancelled() => {}
    }
}

pub(super) fn handshake_failure(
    options: &ConnectOptions,
    intake: &Intake,
    error: Option<&ClientInitializeError>,
) -> Failure {
    let known = intake.calls.handshake_failure();
    match (known, error) {
        (Some(known), _) if known.code() == ErrorCode::ServerUnauthorized => known,
        (_, None) => {
            events::deadline_exceeded("connect");
            out_of_time()
        }
        (Some(known), Some(_)) => {
            let failure = failed(format!("the handshake failed: {}", known.detail()));
            match known.server_words() {
                Some(words) => failure.with_server_words(words),
                None => failure,
            }
        }
        (None, Some(ClientInitializeError::NoCompatibleProtocolVersion { .. })) => {
            failed("it speaks no protocol revision that Talaria knows")
        }
        (None, Some(error)) => {
            tracing::debug!(server = %options.server, %error, "handshake failed");
            failed("it ended the connection or gave no usable answer to the handshake")
        }
    }
}

pub(super) fn out_of_time() -> Failure {
    let detail = "it did not complete the handshake in time (`connect_timeout`)";
    Failure::new(ErrorCode::ConnectTimeout, detail)
}

fn failed(detail: impl Into<String>) -> Failure {
    Failure::new(ErrorCode::ConnectFailed, detail)
}

pub(super) fn intake(options: &ConnectOptions) -> Arc<Intake> {
    Arc::new(Intake::new(
        options.server.clone(),
        options.message_bytes,
        Arc::clone(&options.sink),
        options.blocking.clone(),
        options.events.clone(),
    ))
}

fn labels(options: &ConnectOptions) -> Labels {
    Labels {
        server: options.server.clone(),
        transport: options.transport.network_transport(),
    }
}

fn describe(peer: Option<&ServerPeerInfo>, pid: Option<u32>) -> PeerInfo {
    let name = peer.and_then(|peer| peer.server_info.as_ref());
    let offers = peer.map(|peer| &peer.capabilities);
    PeerInfo {
        name: name.map_or_else(|| "unknown".to_owned(), |name| label(&name.name)),
        version: name.map_or_else(|| "unknown".to_owned(), |name| label(&name.version)),
        protocol_version: peer
            .map(|peer| label(peer.protocol_version.as_str()))
            .unwrap_or_default(),
        tools: offers.is_some_and(|offers| offers.tools.is_some()),
        resources: offers.is_some_and(|offers| offers.resources.is_some()),
        prompts: offers.is_some_and(|offers| offers.prompts.is_some()),
        instructions: peer.and_then(|peer| peer.instructions.clone()),
        pid,
    }
}

/// What a server calls itself, as an operator reads it in a table.
fn label(text: &str) -> String {
    visible_line(text)
        .chars()
        .take(MAX_LABEL_CHARACTERS)
        .collect()
}
