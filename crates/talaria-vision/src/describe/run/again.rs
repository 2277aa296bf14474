//! Which faults make it worth asking a link again.

use std::time::Duration;

use super::LAST_PATIENCE;
use crate::describe::verdict::FaultKind;

/// Pause before a link is asked again where there is no other to ask meanwhile.
const PAUSE: Duration = Duration::from_secs(1);
/// The longest wait for a link that asks for one, while another link could be asked.
const PATIENCE: Duration = Duration::from_secs(5);

/// A link that took longer than this to fail is not asked again while another one could be: it
/// would take as long again.
const QUICK: Duration = Duration::from_secs(5);

/// Whether a link is asked again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Again {
    /// It is not.
    No,
    /// With fewer bytes.
    Smaller,
    /// After a pause.
    After(Duration),
}

/// What a fault makes of the link it came from. A pause is made only where there is nobody else
/// to ask meanwhile, and a wait the link asks for only where it is short.
pub(super) fn again(
    kind: FaultKind,
    retry_after: Option<Duration>,
    took: Duration,
    is_last: bool,
) -> Again {
    let patience = if is_last { LAST_PATIENCE } else { PATIENCE };
    let pause = if is_last { PAUSE } else { Duration::ZERO };
    let is_quick = is_last || took <= QUICK;
    match (kind, retry_after) {
        (FaultKind::TooLarge, _) => Again::Smaller,
        (FaultKind::RateLimited | FaultKind::ServerError, Some(wait)) if wait <= patience => {
            Again::After(wait)
        }
        (FaultKind::RateLimited | FaultKind::ServerError, Some(_)) => Again::No,
        (FaultKind::ServerError | FaultKind::Unreachable, _) if is_quick => Again::After(pause),
        (FaultKind::Empty | FaultKind::ReasoningOnly, _) if is_quick => {
            Again::After(Duration::ZERO)
        }
        (FaultKind::RateLimited, None) if is_last => Again::After(PAUSE),
        (FaultKind::Timeout, _) if is_last => Again::After(Duration::ZERO),
        _ => Again::No,
    }
}
