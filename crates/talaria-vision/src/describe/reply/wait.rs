//! How long a provider asks to wait.

use std::time::{Duration, SystemTime};

/// The pause where a provider asks for one and does not say which.
const NORMAL: Duration = Duration::from_secs(1);
/// Longest wait that is told; nobody waits this long.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The wait in the headers `retry-after`, a number of seconds or a date, and `retry-after-ms`.
/// A value that is neither means the normal pause.
pub(super) fn of_headers(
    seconds: Option<&str>,
    millis: Option<&str>,
    now: SystemTime,
) -> Option<Duration> {
    let exact = millis.and_then(|text| text.trim().parse::<u64>().ok());
    if let Some(millis) = exact {
        return Some(Duration::from_millis(millis).min(LONGEST));
    }
    let text = seconds?.trim();
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
    let wait = match number {
        Some(number) => Duration::try_from_secs_f64(number).ok().or_else(|| {
            // More seconds than a clock can count.
            (number > 0.0).then_some(LONGEST)
        }),
        None => httpdate::parse_http_date(text)
            .ok()
            .map(|date| date.duration_since(now).unwrap_or_default()),
    };
    Some(wait.unwrap_or(NORMAL).min(LONGEST))
}

/// Google's `retryDelay`: `12s`, `0.5s`.
pub(super) fn of_google(text: &str) -> Option<Duration> {
    let seconds = text.trim().strip_suffix('s')?.parse::<f64>().ok()?;
    Duration::try_from_secs_f64(seconds)
        .ok()
        .map(|wait| wait.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(text: &str) -> Option<Duration> {
        of_headers(Some(text), None, now())
    }

    fn now() -> SystemTime {
        httpdate::parse_http_date("Sun, 06 Nov 1994 08:49:37 GMT").unwrap()
    }

    #[test]
    fn fr_190_numbers_and_dates_are_honoured() {
        for (text, seconds) in [
            ("2", 2),
            ("0", 0),
            (" 30 ", 30),
            ("Sun, 06 Nov 1994 08:49:39 GMT", 2),
            ("Sunday, 06-Nov-94 08:49:40 GMT", 3),
            ("Sun, 06 Nov 1994 08:00:00 GMT", 0),
        ] {
            assert_eq!(wait(text), Some(Duration::from_secs(seconds)), "{text}");
        }
        assert_eq!(wait("0.5"), Some(Duration::from_millis(500)));
        assert_eq!(of_headers(None, None, now()), None);
        assert_eq!(
            of_headers(Some("9"), Some("250"), now()),
            Some(Duration::from_millis(250))
        );
    }

    #[test]
    fn fr_190_values_that_mean_nothing_are_the_normal_pause() {
        for text in ["2abc", "-5", "", "soon", "NaN", "inf", "-0.1", "2 s", "１"] {
            assert_eq!(wait(text), Some(NORMAL), "{text}");
        }
        assert_eq!(of_headers(Some("-5"), Some("x"), now()), Some(NORMAL));
    }

    #[test]
    fn waits_are_bounded() {
        for text in [
            "1e300",
            "999999999999999999999",
            "Fri, 31 Dec 9999 23:59:59 GMT",
        ] {
            assert_eq!(wait(text), Some(LONGEST), "{text}");
        }
        assert_eq!(of_google("12s"), Some(Duration::from_secs(12)));
        assert_eq!(of_google("-1s"), None);
        assert_eq!(of_google("12"), None);
    }
}
