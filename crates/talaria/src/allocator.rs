//! How many arenas the allocator of glibc keeps.
//!
//! Each is a heap that keeps its high-water mark, threads are spread over all of them, and by
//! default there are eight for each processor. Here every server has a thread that comes and goes
//! with it, so after some minutes all of them are filled: one per processor holds half the memory
//! under the same load, and is level from the start.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;

/// Bounds the arenas; glibc reads it before `main`.
const ARENAS: &str = "MALLOC_ARENA_MAX";
/// Another way to say the same.
const TUNABLES: &str = "GLIBC_TUNABLES";
const ARENAS_TUNABLE: &str = "glibc.malloc.arena_max";

/// Starts this program anew, as the same process, with one arena per processor. Does nothing
/// where the operator has said how many, or where the allocator is another; comes back where the
/// program cannot be started anew, which then runs as it is.
pub fn bound(environment: &BTreeMap<String, String>) {
    if let Some(arenas) = wanted(environment) {
        restart(arenas);
    }
}

fn wanted(environment: &BTreeMap<String, String>) -> Option<NonZeroUsize> {
    let is_said = environment.contains_key(ARENAS)
        || environment
            .get(TUNABLES)
            .is_some_and(|tunables| tunables.contains(ARENAS_TUNABLE));
    (cfg!(all(target_os = "linux", target_env = "gnu")) && !is_said)
        .then(|| std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN))
}

#[cfg(unix)]
fn restart(arenas: NonZeroUsize) {
    use std::os::unix::process::CommandExt;

    let Ok(program) = std::env::current_exe() else {
        return;
    };
    let mut words = std::env::args_os();
    let mut command = std::process::Command::new(&program);
    if let Some(name) = words.next() {
        command.arg0(name);
    }
    let error = command.args(words).env(ARENAS, arenas.to_string()).exec();
    crate::output::print_error_line(&format!(
        "warning: the number of the allocator's arenas stays as it is: {}: {error}",
        program.display()
    ));
}

#[cfg(not(unix))]
const fn restart(_arenas: NonZeroUsize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_operator_said_is_left_alone() {
        let said = |name: &str, value: &str| BTreeMap::from([(name.to_owned(), value.to_owned())]);
        assert_eq!(wanted(&said(ARENAS, "7")), None);
        let tunable = said(TUNABLES, "glibc.malloc.arena_max=3:glibc.malloc.check=1");
        assert_eq!(wanted(&tunable), None);
    }
}
