//! The program under test, built here so that integration tests find it beside themselves.

use std::process::ExitCode;

fn main() -> ExitCode {
    talaria::main()
}
