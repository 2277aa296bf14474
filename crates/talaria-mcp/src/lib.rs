//! MCP client through rmcp: transports over stdio, Streamable HTTP and the older HTTP+SSE with
//! bounded, tolerant framing, payload staging and a guard process against orphans.
//!
//! Results stay raw: the transport keeps each `result` as small JSON plus payload handles and
//! lets only the handshake be typed. All waits are bounded by what the caller passes in.

pub mod session;
pub mod wire;

mod habits;
mod http;
mod intake;
mod oversize;
mod packages;
mod process;
mod spawn;
mod sse;
mod stderr_log;
mod stdio;
#[cfg(test)]
mod testing;

pub mod framing;
pub mod guard;

pub use guard::Guard;
pub use habits::Habits;
pub use packages::PackageCheck;
pub use session::{
    ClosedBy, ConnectOptions, ForeignModule, PeerInfo, Rpc, RpcLimits, Session, SessionEvent,
    connect,
};
