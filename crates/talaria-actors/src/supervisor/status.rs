//! From a snapshot to what the surface shows.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use talaria_content::injection::{Finding, scan_text};
use talaria_mcp::PeerInfo;

use crate::cleaned_words;
use crate::directory::Directory;
use crate::directory::definition::INSTRUCTIONS;
use crate::server::ServerHandle;
use crate::server::snapshot::BreakerState;
use crate::supervisor::{BreakerStatus, Outage, ServerStatus};

/// Findings that are shown of one server.
const FINDINGS: usize = 32;
/// Characters of instructions that are looked through for a status.
const LOOKED_THROUGH: usize = 4096;

/// The status of one server.
pub(crate) fn of(directory: &Directory, server: &ServerHandle) -> ServerStatus {
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
        next_attempt_ms: wait.map(milliseconds),
        since: snapshot.since.map(rfc_3339),
        stale: snapshot.stale,
        down_since: snapshot.down_since.map(rfc_3339),
        needs_reauth: snapshot.needs_reauth,
        findings: findings(directory, server, peer),
        breaker: BreakerStatus {
            state: snapshot.breaker.as_str().to_owned(),
            retry_after_ms: retry_after(snapshot.breaker).map(milliseconds),
        },
        reason: snapshot.reason,
    }
}

/// What its instructions and its tools say that is meant to steer a model.
fn findings(directory: &Directory, server: &ServerHandle, peer: Option<&PeerInfo>) -> Vec<Finding> {
    let instructions = peer.and_then(|peer| peer.instructions.as_deref());
    let start = |words: &str| words.chars().take(LOOKED_THROUGH).collect::<String>();
    let mut findings =
        instructions.map_or_else(Vec::new, |words| scan_text(INSTRUCTIONS, &start(words)));
    findings.truncate(FINDINGS);
    let room = FINDINGS.saturating_sub(findings.len());
    findings.extend(directory.findings(server.name(), room));
    findings
}

/// The outage of a server whose tools stay listed, if it has one.
pub(crate) fn outage(server: &ServerHandle) -> Option<Outage> {
    server.look(|shown| {
        let is_down = shown.stale || shown.state.is_outage();
        is_down.then(|| Outage {
            server: server.name().as_str().to_owned(),
            state: shown.state.as_str().to_owned(),
            down_since: shown.down_since.map(rfc_3339),
        })
    })
}

/// How long an open breaker lets nothing through.
fn retry_after(breaker: BreakerState) -> Option<Duration> {
    let now = talaria_types::runtime::now().into_std();
    match breaker {
        BreakerState::Open { until } => Some(until.saturating_duration_since(now)),
        BreakerState::Closed | BreakerState::HalfOpen => None,
    }
}

fn milliseconds(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

/// A time as `2026-11-30T21:05:00Z`.
fn rfc_3339(time: SystemTime) -> String {
    let seconds = time
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Days from the first of March of year 0, in eras of 400 years (Hinnant's algorithm).
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 {
        shifted_month + 3
    } else {
        shifted_month - 9
    };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    let (hour, minute) = (second / 3_600, second / 60 % 60);
    let second = second % 60;
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The server's own words, so cleaned.
fn server_info(peer: &PeerInfo) -> String {
    cleaned_words(&format!("{} {}", peer.name, peer.version))
}

fn transport(network: &str) -> &'static str {
    match network {
        "pipe" => "stdio",
        "tcp" | "unix" => "http",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_in_rfc_3339() {
        let at = |seconds| rfc_3339(UNIX_EPOCH + Duration::from_secs(seconds));
        assert_eq!(at(0), "1970-01-01T00:00:00Z");
        assert_eq!(at(951_782_400), "2000-02-29T00:00:00Z");
        assert_eq!(at(1_709_251_199), "2024-02-29T23:59:59Z");
        assert_eq!(at(1_798_761_599), "2026-12-31T23:59:59Z");
    }
}
