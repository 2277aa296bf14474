//! `GET /v1/events`: what changes, as server-sent events.

use std::convert::Infallible;
use std::time::Duration;

use actix_web::HttpResponse;
use actix_web::http::{Method, header};
use actix_web::web::Bytes;
use futures_util::stream::{self, Stream};
use schemars::JsonSchema;
use serde::Serialize;
use talaria_actors::feed::{ConfigReloadedEvent, ServerStateEvent, ToolsChangedEvent};
use talaria_actors::{Event, EventId, Heard, Listener, SupervisorHandle};

use crate::auth::Caller;
use crate::exchange::Asked;
use crate::problem::Rejection;
use crate::query;

/// A comment follows so long after the last word, so that proxies do not give up the connection.
const HEARTBEAT: Duration = Duration::from_secs(15);
/// Milliseconds after which a client that lost the connection comes back.
const COME_BACK_AFTER: u32 = 2000;
/// Where a client says what it heard last.
const LAST_EVENT_ID: &str = "last-event-id";

/// What stands after `data:`, by the word after `event:`.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum EventData {
    /// `server_state`.
    ServerState(ServerStateEvent),
    /// `tools_changed`.
    ToolsChanged(ToolsChangedEvent),
    /// `config_reloaded`.
    ConfigReloaded(ConfigReloadedEvent),
    /// `resync`: events were missed, so look at everything anew.
    Resync {
        /// The version of the tool list.
        version: u64,
    },
}

impl From<Event> for EventData {
    fn from(event: Event) -> Self {
        match event {
            Event::ServerState(state) => Self::ServerState(state),
            Event::ToolsChanged(tools) => Self::ToolsChanged(tools),
            Event::ConfigReloaded(config) => Self::ConfigReloaded(config),
        }
    }
}

/// Tells what changes until the caller goes or the service is stopped.
pub(super) fn listen(asked: &Asked<'_>) -> Result<HttpResponse, Rejection> {
    query::read(asked.request, &[])?;
    asked.state.accept_work()?;
    let last = asked.request.headers().get(LAST_EVENT_ID);
    // One that is no text is of no run of this service: the caller is told to look anew.
    let last = last.map(|last| last.to_str().unwrap_or_default());
    let listener = asked.state.supervisor.listen(last)?;
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, "text/event-stream"));
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    // Proxies that gather answers would hold the events back.
    response.insert_header(("x-accel-buffering", "no"));
    if asked.request.method() == Method::HEAD {
        return Ok(response.finish());
    }
    let telling = Telling {
        listener,
        caller: asked.caller.clone(),
        supervisor: asked.state.supervisor.clone(),
        begun: false,
    };
    Ok(response.streaming(telling.stream()))
}

/// One caller that is told.
struct Telling {
    listener: Listener,
    caller: Caller,
    supervisor: SupervisorHandle,
    begun: bool,
}

impl Telling {
    fn stream(self) -> impl Stream<Item = Result<Bytes, Infallible>> {
        stream::unfold(self, |mut telling| async move {
            let said = telling.next().await?;
            Some((Ok(Bytes::from(said)), telling))
        })
    }

    async fn next(&mut self) -> Option<String> {
        if !self.begun {
            self.begun = true;
            // The place in the order, so that whoever loses the connection misses nothing.
            let id = self.listener.position();
            return Some(format!("retry: {COME_BACK_AFTER}\nid: {id}\n\n"));
        }
        // A caller that may see nothing of what happens still hears that we are there.
        let heartbeat = tokio::time::sleep(HEARTBEAT);
        tokio::pin!(heartbeat);
        loop {
            let heard = tokio::select! {
                biased;
                heard = self.listener.next() => heard?,
                () = &mut heartbeat => return Some(": still here\n\n".to_owned()),
            };
            match heard {
                Heard::Missed(id) => {
                    let version = self.supervisor.version();
                    return Some(block(id, "resync", &EventData::Resync { version }));
                }
                Heard::Event(id, event) => {
                    let Some(event) = event.seen_by(|server| self.caller.may_use(server)) else {
                        continue;
                    };
                    let kind = event.kind();
                    return Some(block(id, kind, &event.into()));
                }
            }
        }
    }
}

/// One event. JSON holds no line breaks, so the data is one line.
fn block(id: EventId, kind: &str, data: &EventData) -> String {
    // Texts, lists and numbers always make JSON.
    let data = serde_json::to_string(data).unwrap_or_default();
    format!("id: {id}\nevent: {kind}\ndata: {data}\n\n")
}
