//! From a snapshot to what the surface shows.

use talaria_mcp::PeerInfo;

use crate::cleaned_words;
use crate::server::ServerHandle;
use crate::supervisor::ServerStatus;

/// The status of one server.
pub(crate) fn of(server: &ServerHandle) -> ServerStatus {
    let snapshot = server.snapshot();
    let (in_flight, pending) = server.load();
    let wait = snapshot.time_to_next_attempt();
    let peer = snapshot.peer.as_ref();
    ServerStatus {
        name: server.name().as_str().to_owned(),
        state: snapshot.state.as_str().to_owned(),
        transport: transport(server.network_transport()).to_owned(),
        protocol_version: peer.map(|peer| peer.protocol_version.clone()),
        server_info: peer.map(server_info),
        pid: peer.and_then(|peer| peer.pid),
        tools: snapshot.tools,
        in_flight,
        pending,
        restarts: snapshot.starts.saturating_sub(1),
        next_attempt_ms: wait.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX)),
        reason: snapshot.reason,
    }
}

/// The server's own words, so cleaned.
fn server_info(peer: &PeerInfo) -> String {
    cleaned_words(&format!("{} {}", peer.name, peer.version))
}

fn transport(network: &str) -> &'static str {
    match network {
        "pipe" => "stdio",
        "tcp" => "http",
        _ => "",
    }
}
