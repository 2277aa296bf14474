//! The scripted MCP server: reads a script, does what it says, speaks stdio or Streamable HTTP.
//!
//! Its JSON-RPC is written by hand because it must be able to lie.

mod engine;
mod http;
mod stdio;

pub use http::HttpServer;
pub(crate) use http::{read_request, watch_for_end};
pub use stdio::serve_stdio;
