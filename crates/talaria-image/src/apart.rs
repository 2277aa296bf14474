//! Drawings (SVG) are prepared in a process of their own, which may be lost.
//!
//! Drawing is the one kind of decoding whose cost and depth nobody can tell beforehand: a hundred
//! bytes can draw for minutes or overflow a stack. The process limits its own processor time and
//! memory; whatever ends it costs that one picture (ADR 0002).

use std::io::{self, Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdout, Command, Stdio};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, setrlimit};
use serde_json::Deserializer;

use crate::limits::{MAX_DRAWING_ANSWER, MAX_DRAWING_MEMORY, MAX_DRAWING_SECONDS};
use crate::prepared::Prepared;
use crate::refusal::{Refusal, RefusalKind};
use crate::target::Target;
use crate::watch::Watch;

/// The hidden subcommand of the program that runs [`draw`].
pub const DRAW_SUBCOMMAND: &str = "__draw";

/// How often the parent looks whether anybody still waits.
const GLANCE: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 20_000_000,
};

/// The life of the child: limits itself, reads a target and a picture, answers the outcome.
///
/// # Errors
/// Input and output; the parent then sees no answer.
pub fn draw() -> io::Result<()> {
    let at_most = |most| Rlimit {
        current: Some(most),
        maximum: Some(most),
    };
    setrlimit(Resource::Cpu, at_most(MAX_DRAWING_SECONDS))?;
    setrlimit(Resource::Data, at_most(MAX_DRAWING_MEMORY))?;
    // A crash here is expected and nothing to keep a picture of.
    setrlimit(Resource::Core, at_most(0))?;
    let mut input = Vec::new();
    io::stdin().lock().read_to_end(&mut input)?;
    let mut reader = Deserializer::from_slice(&input).into_iter::<Target>();
    let target = reader.next().transpose()?.unwrap_or_default();
    let picture = input.get(reader.byte_offset()..).unwrap_or_default();
    let outcome = crate::prepare(picture, &target, &Watch::never());
    let mut answer = io::stdout().lock();
    serde_json::to_writer(&mut answer, &outcome)?;
    answer.flush()
}

/// Prepares a drawing in a child; `program` knows [`DRAW_SUBCOMMAND`].
pub(crate) fn prepare(
    program: &Path,
    bytes: &[u8],
    target: &Target,
    watch: &Watch,
) -> Result<Prepared, Refusal> {
    let mut child = start(program).map_err(|error| Refusal {
        kind: RefusalKind::Failed,
        detail: format!("no process could be started to draw the SVG: {error}"),
    })?;
    let answer = converse(&mut child, bytes, target, watch);
    // It has ended, or is of no use any more; either way it is reaped here.
    drop(child.kill());
    drop(child.wait());
    answer
}

fn start(program: &Path) -> io::Result<Child> {
    Command::new(program)
        .arg(DRAW_SUBCOMMAND)
        .env_clear()
        .current_dir("/")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

fn converse(
    child: &mut Child,
    bytes: &[u8],
    target: &Target,
    watch: &Watch,
) -> Result<Prepared, Refusal> {
    // The child reads everything before it answers, and its processor time bounds how long it
    // may take for that.
    if let Some(mut input) = child.stdin.take() {
        let sent = serde_json::to_writer(&mut input, target)
            .map_err(io::Error::from)
            .and_then(|()| input.write_all(bytes));
        sent.map_err(|_lost| lost())?;
    }
    let mut output = child.stdout.take().ok_or_else(lost)?;
    let answer = read(&mut output, watch)?;
    serde_json::from_slice::<Result<Prepared, Refusal>>(&answer).map_err(|_cut| lost())?
}

/// Everything the child says, while somebody waits for it.
fn read(output: &mut ChildStdout, watch: &Watch) -> Result<Vec<u8>, Refusal> {
    let mut answer = Vec::new();
    let mut piece = vec![0; 64 * 1024];
    loop {
        if watch.is_over() {
            return Err(Refusal {
                kind: RefusalKind::Abandoned,
                detail: "nobody waited for the drawing any more".to_owned(),
            });
        }
        let mut waiting = [PollFd::new(output, PollFlags::IN)];
        match poll(&mut waiting, Some(&GLANCE)) {
            Ok(0) | Err(rustix::io::Errno::INTR) => continue,
            Ok(_) => {}
            Err(_fault) => return Err(lost()),
        }
        let count = output.read(&mut piece).map_err(|_fault| lost())?;
        answer.extend_from_slice(piece.get(..count).unwrap_or_default());
        if count == 0 || answer.len() > MAX_DRAWING_ANSWER {
            return Ok(answer);
        }
    }
}

/// The child ended without an answer.
fn lost() -> Refusal {
    Refusal {
        kind: RefusalKind::TooComplex,
        detail: format!(
            "the SVG costs too much to draw: over {MAX_DRAWING_SECONDS} s of processor time or \
             {} MiB of memory",
            MAX_DRAWING_MEMORY / 1024 / 1024
        ),
    }
}
