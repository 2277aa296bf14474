//! The Talaria service and its command line.
//!
//! The program is a library with a binary of one call, so that the test packages can build the
//! same program beside their tests.

pub mod arguments;
pub mod commands;
pub mod exit;

pub mod configuration;
pub mod engine;
pub mod service;
pub mod signals;

pub mod account;
pub mod allocator;
pub mod check;
pub mod client;
pub mod demo;
pub mod demo_server;
pub mod describers;
pub mod inspection;
pub mod output;
pub mod reload;
pub mod server_test;
pub mod table;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;

/// Runs the program.
#[must_use]
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => {
            // `--help` and `--version` come this way too and are no failure.
            drop(error.print());
            let usage = exit::Exit::Usage.into();
            return if error.use_stderr() {
                usage
            } else {
                ExitCode::SUCCESS
            };
        }
    };
    match commands::run(arguments) {
        Ok(exit) => exit.into(),
        Err(error) => {
            for line in error.lines() {
                output::print_error_line(&format!("error: {line}"));
            }
            error.exit().into()
        }
    }
}
