//! The fault matrix: everything a server can do wrong, met while it is idle, while the call is in
//! flight and while another call waits; over stdio and over HTTP.
//!
//! For each the caller's outcome, the server's next state, the metrics, and that nothing leaks.

mod http;
mod http_idle;
mod older;
mod outcome;
mod stage;
mod starts;
mod stdio;
