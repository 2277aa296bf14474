//! The Talaria service and its command line.

pub mod arguments;
pub mod demo_server;
pub mod exit;
pub mod inspection;
pub mod output;
pub mod table;

use std::process::ExitCode;

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
