//! MCP client through rmcp: stdio and Streamable HTTP transports with bounded, tolerant framing,
//! payload staging and a guard process against orphans.
//!
//! Results stay raw: the transport keeps each `result` as small JSON plus payload handles and
//! lets only the handshake be typed. All waits are bounded by what the caller passes in.

pub mod guard;
pub mod session;
pub mod wire;

pub use guard::Guard;
pub use session::{
    ClosedBy, ConnectOptions, PeerInfo, Rpc, RpcLimits, Session, SessionEvent, connect,
};
