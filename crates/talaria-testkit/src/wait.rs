//! Waiting for a condition with a deadline; never a bare sleep.

use std::fmt::Debug;
use std::future::Future;
use std::time::Duration;

use talaria_types::Deadline;

/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(10);

/// Looks again and again until the condition holds or the time is up.
///
/// The look answers `Ok` with the value waited for, or `Err` with what it saw instead; the last
/// of these is reported when the time is up.
///
/// # Errors
/// The time is up.
pub async fn wait_for<T, S, F>(
    what: &str,
    within: Duration,
    mut look: impl FnMut() -> F,
) -> anyhow::Result<T>
where
    F: Future<Output = Result<T, S>>,
    S: Debug,
{
    let deadline = Deadline::after(within);
    loop {
        match look().await {
            Ok(value) => return Ok(value),
            Err(status) if deadline.expired() => {
                anyhow::bail!("waited {within:?} for {what}; last status: {status:?}");
            }
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn reports_the_last_status_when_the_time_is_up() {
        let mut looks = 0;
        let error = wait_for("nothing", Duration::from_millis(25), || {
            looks += 1;
            std::future::ready(Err::<(), _>(looks))
        })
        .await
        .unwrap_err();
        assert_eq!(error.to_string(), "waited 25ms for nothing; last status: 4");
    }

    #[tokio::test(start_paused = true)]
    async fn answers_as_soon_as_the_condition_holds() {
        let mut looks = 0;
        let value = wait_for("three", Duration::from_secs(1), || {
            looks += 1;
            std::future::ready(if looks == 3 { Ok(looks) } else { Err(looks) })
        })
        .await
        .unwrap();
        assert_eq!(value, 3);
    }
}
