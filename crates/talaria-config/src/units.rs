//! Durations and sizes as people write them.

use std::time::Duration;

use crate::defaults::MAX_DURATION;

const SIZE_UNITS: [(&str, u64); 9] = [
    ("TiB", 1 << 40),
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("TB", 1_000_000_000_000),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

/// A duration with its unit: `500ms`, `180s`, `10m`, `1h 30m`, `24h`, `7d`.
pub(crate) fn parse_duration(text: &str) -> Option<Duration> {
    let text = text.trim();
    if !text.ends_with(|last: char| last.is_ascii_alphabetic()) {
        return None;
    }
    humantime::parse_duration(text)
        .ok()
        .filter(|duration| *duration <= MAX_DURATION)
}

/// Seconds, fractions allowed.
pub(crate) fn parse_seconds(seconds: f64) -> Option<Duration> {
    Duration::try_from_secs_f64(seconds)
        .ok()
        .filter(|duration| *duration <= MAX_DURATION)
}

/// The shortest form [`parse_duration`] reads back.
pub(crate) fn show_duration(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

/// A size with its unit, whole numbers only: `64KiB`, `96 MiB`, `10GB`.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let text = text.trim();
    let digits_end = text.find(|c: char| !c.is_ascii_digit())?;
    let (digits, unit) = text.split_at(digits_end);
    let unit = unit.trim_start();
    let (_, factor) = SIZE_UNITS
        .iter()
        .find(|(name, _)| name.eq_ignore_ascii_case(unit))?;
    digits.parse::<u64>().ok()?.checked_mul(*factor)
}

/// The size in the largest binary unit that divides it.
pub(crate) fn show_size(bytes: u64) -> String {
    let binary = SIZE_UNITS.iter().filter(|(name, _)| name.contains('i'));
    for (name, factor) in binary {
        if bytes > 0 && bytes.is_multiple_of(*factor) {
            return format!("{}{name}", bytes / factor);
        }
    }
    format!("{bytes}B")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        let seconds = |text| parse_duration(text).map(|duration| duration.as_secs_f64());
        assert_eq!(seconds("180s"), Some(180.0));
        assert_eq!(seconds(" 24h "), Some(86_400.0));
        assert_eq!(seconds("1h 30m"), Some(5_400.0));
        assert_eq!(seconds("500ms"), Some(0.5));
        for wrong in [
            "",
            "180",
            "s",
            "-1s",
            "1 fortnight",
            "900y",
            "99999999999999999999s",
        ] {
            assert_eq!(seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn seconds_outside_the_clock_are_refused() {
        assert_eq!(parse_seconds(0.25), Some(Duration::from_millis(250)));
        for wrong in [-1.0, f64::NAN, f64::INFINITY, 1e12] {
            assert_eq!(parse_seconds(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_need_a_unit() {
        assert_eq!(parse_size("10GiB"), Some(10 << 30));
        assert_eq!(parse_size("64 kib"), Some(64 << 10));
        assert_eq!(parse_size("5MB"), Some(5_000_000));
        for wrong in ["", "10", "GiB", "1.5GiB", "-1B", "10Gib!", "99999999999TiB"] {
            assert_eq!(parse_size(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn shown_values_read_back() {
        for bytes in [0, 1, 1_000, 65_536, 160 << 20, 10 << 30, u64::MAX] {
            assert_eq!(parse_size(&show_size(bytes)), Some(bytes));
        }
        for seconds in [1, 59, 60, 3_600, 86_400, 90_061] {
            let duration = Duration::from_secs(seconds);
            assert_eq!(parse_duration(&show_duration(duration)), Some(duration));
        }
    }
}
