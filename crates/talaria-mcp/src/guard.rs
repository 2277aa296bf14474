//! The guard process: kills every registered process group when Talaria itself is gone
//! (design decision 23).

use std::path::Path;

/// Handle to the running guard. Cheap to clone; registering never blocks a loop.
#[derive(Clone, Debug)]
pub struct Guard {}

impl Guard {
    /// Starts `program GUARD_SUBCOMMAND` as the guard, in its own process group.
    ///
    /// # Errors
    /// The process cannot be started.
    pub fn start(program: &Path) -> std::io::Result<Self> {
        let _ = program;
        todo!()
    }
}

/// Hidden subcommand of the binary that runs [`run`].
pub const GUARD_SUBCOMMAND: &str = "__guard";

/// The guard's main loop: reads `+PGID` and `-PGID` lines from stdin until end of file, then
/// kills what is still registered.
///
/// # Errors
/// Stdin cannot be read.
pub fn run() -> std::io::Result<()> {
    todo!()
}
