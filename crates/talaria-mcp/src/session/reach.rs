//! From configuration to a session over HTTP: which of its two forms a server speaks.

use std::sync::Arc;

use rmcp::service::ClientLifecycleMode;
use talaria_config::{HttpConfig, HttpKind, ProtocolWish};
use talaria_types::Failure;

use super::connect::{
    discover_silence, handshake_failure, intake, lifecycle, out_of_time, session, shake_hands,
};
use super::shared::Ending;
use super::{ConnectOptions, Session};
use crate::habits::Habit;
use crate::http::{self, Agent, NotOpened, Received, Reception};

/// Reaches a server over HTTP.
///
/// # Errors
/// Those of [`super::connect`].
pub(super) async fn reach(
    options: &ConnectOptions,
    config: &HttpConfig,
) -> Result<Session, Failure> {
    let (setup, environment) = (config.clone(), Arc::clone(&options.environment));
    let prepare = move || Agent::new(&setup, &environment);
    let agent = options.blocking.run(options.deadline, prepare).await??;
    let habit = options.habits.of(&options.server, &options.transport);
    let learn = |habit| {
        options
            .habits
            .learn(&options.server, &options.transport, habit);
    };
    let habit = match config.kind {
        HttpKind::Sse => return legacy(options, agent).await.map_err(|not| not.failure),
        HttpKind::Auto if habit.is_legacy_http => match legacy(options, agent.clone()).await {
            Ok(session) => return Ok(session),
            Err(NotOpened {
                is_foreign: true, ..
            }) => {
                // It has learnt a newer way, as servers do, and is asked anew.
                let changed = Habit {
                    is_legacy_http: false,
                    ..habit
                };
                learn(changed);
                changed
            }
            Err(NotOpened { failure, .. }) => return Err(failure),
        },
        HttpKind::Auto | HttpKind::Streamable => habit,
    };
    let (failure, received) = match streamable(options, agent.clone(), habit).await {
        Ok(session) => {
            let in_vain = session.shared.intake.calls.was_discover_in_vain();
            learn(Habit {
                is_streamable: true,
                has_spoken: true,
                is_not_asked: habit.is_not_asked || in_vain,
                ..habit
            });
            return Ok(session);
        }
        Err(failed) => failed,
    };
    let Some(received) = received.filter(|_| !options.deadline.expired()) else {
        return Err(failure);
    };
    if habit.is_streamable && received.may_be_legacy() {
        // Should that go on, the next attempt looks further.
        learn(Habit {
            is_streamable: false,
            ..habit
        });
    } else if may_fall_back(options, config) && received.may_be_legacy() {
        match legacy(options, agent.clone()).await {
            Ok(session) => {
                tracing::info!(server = %options.server, "the server speaks the older HTTP+SSE");
                learn(Habit {
                    is_legacy_http: true,
                    has_spoken: true,
                    ..Habit::default()
                });
                return Ok(session);
            }
            Err(NotOpened { failure, .. }) => tracing::debug!(
                server = %options.server,
                error = %failure,
                "the server does not speak the older HTTP+SSE either"
            ),
        }
    }
    if config.skip_preflight || habit.has_spoken {
        return Err(failure);
    }
    Err(what_it_is(&agent, received).await.unwrap_or(failure))
}

/// Configured headers might go astray with a transport that posts to an address it is told.
const fn may_fall_back(options: &ConnectOptions, config: &HttpConfig) -> bool {
    matches!(config.kind, HttpKind::Auto)
        && !config.strict_redirect_headers
        && !matches!(options.protocol, ProtocolWish::Stateless)
}

/// A page instead of an endpoint, if that is what stands there.
async fn what_it_is(agent: &Agent, received: Received) -> Option<Failure> {
    let media_type = match received {
        Received::Foreign(media_type) => media_type,
        Received::Refused(status) if status.is_client_error() => http::look_at(agent).await?,
        Received::Refused(_) | Received::Opaque => return None,
    };
    Some(http::not_mcp(&media_type))
}

async fn streamable(
    options: &ConnectOptions,
    agent: Agent,
    habit: Habit,
) -> Result<Session, (Failure, Option<Received>)> {
    let intake = intake(options);
    let ending = Ending::new();
    let reception = Reception::default();
    let silence = discover_silence(options.deadline);
    let transport = http::open(agent, &intake, silence, &reception);
    let mode = lifecycle(options.protocol, habit);
    match shake_hands(transport, mode, &ending, options.deadline).await {
        Ok(running) => Ok(session(options, intake, running, ending, None)),
        Err(error) => Err((
            handshake_failure(options, &intake, error.as_ref()),
            reception.take(),
        )),
    }
}

async fn legacy(options: &ConnectOptions, agent: Agent) -> Result<Session, NotOpened> {
    let intake = intake(options);
    let ending = Ending::new();
    let opening = http::open_legacy(agent, &intake, ending.stop.child_token());
    let transport = tokio::time::timeout_at(options.deadline.instant(), opening)
        .await
        .map_err(|_elapsed| out_of_time())??;
    let mode = ClientLifecycleMode::Initialize;
    match shake_hands(transport, mode, &ending, options.deadline).await {
        Ok(running) => Ok(session(options, intake, running, ending, None)),
        Err(error) => Err(handshake_failure(options, &intake, error.as_ref()).into()),
    }
}
