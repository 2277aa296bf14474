//! What `/metrics` must show after the demo.

use crate::check::Checks;

/// Sums of the families that the demo moves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Counters {
    calls: f64,
    received: f64,
    settled: f64,
    refused: f64,
    saved_files: f64,
    saved_bytes: f64,
}

impl Counters {
    /// Reads Prometheus' text format.
    pub(super) fn read(text: &str) -> Self {
        let calls = "mcp_client_operation_duration_seconds_count";
        Self {
            calls: sum(text, calls, "mcp_method_name=\"tools/call\""),
            received: sum(text, "talaria_blocks_received_total", ""),
            settled: sum(text, "talaria_blocks_settled_total", ""),
            refused: sum(text, "talaria_blocks_settled_total", "fate=\"refused\""),
            saved_files: sum(text, "talaria_media_saved_files_total", ""),
            saved_bytes: sum(text, "talaria_media_saved_bytes_total", ""),
        }
    }

    /// Checks that what happened since `before` was counted.
    pub(super) fn compare(&self, before: &Self, checks: &mut Checks) {
        let moved = [
            ("calls", self.calls - before.calls),
            ("blocks received", self.received - before.received),
            ("blocks refused", self.refused - before.refused),
            ("files saved", self.saved_files - before.saved_files),
            ("bytes saved", self.saved_bytes - before.saved_bytes),
        ];
        for (what, by) in moved {
            let found = if by > 0.0 {
                Ok(format!("{by} more"))
            } else {
                Err("unmoved".to_owned())
            };
            checks.note(format!("metrics: {what}"), found);
        }
        let (received, settled) = (self.received, self.settled);
        #[expect(clippy::float_cmp, reason = "both are whole numbers of blocks")]
        let found = if received == settled {
            Ok(format!("{settled} of {received}"))
        } else {
            Err(format!("{settled} of {received}"))
        };
        checks.note("metrics: every block is accounted for", found);
    }
}

/// Adds up the series of a family whose labels hold a text.
fn sum(text: &str, family: &str, label: &str) -> f64 {
    text.lines()
        .filter_map(|line| line.strip_prefix(family))
        .filter(|rest| rest.starts_with(['{', ' ']) && rest.contains(label))
        .filter_map(|rest| rest.rsplit(' ').next()?.parse::<f64>().ok())
        .fold(0.0, std::ops::Add::add)
}

#[cfg(test)]
mod tests {
    use super::Counters;
    use crate::check::Checks;

    const PAGE: &str = "# TYPE talaria_blocks_received_total counter\n\
        talaria_blocks_received_total{kind=\"text\"} 4\n\
        talaria_blocks_received_total{kind=\"image\"} 2\n\
        talaria_blocks_settled_total{kind=\"text\",fate=\"delivered\"} 4\n\
        talaria_blocks_settled_total{kind=\"image\",fate=\"refused\",code=\"not_base64\"} 2\n\
        talaria_media_saved_files_total{kind=\"image\"} 1\n\
        talaria_media_saved_bytes_total{kind=\"image\"} 1000\n\
        mcp_client_operation_duration_seconds_count{mcp_method_name=\"tools/call\",server=\"demo\"} 3\n\
        mcp_client_operation_duration_seconds_count{mcp_method_name=\"tools/list\",server=\"demo\"} 9\n";

    #[test]
    fn reads_sums_over_labels() {
        let expected = Counters {
            calls: 3.0,
            received: 6.0,
            settled: 6.0,
            refused: 2.0,
            saved_files: 1.0,
            saved_bytes: 1000.0,
        };
        assert_eq!(Counters::read(PAGE), expected);
    }

    #[test]
    fn unmoved_and_unaccounted_counters_fail() {
        let before = Counters::read(PAGE);
        let after = Counters {
            calls: 4.0,
            settled: 5.0,
            ..before
        };
        let mut checks = Checks::default();
        after.compare(&before, &mut checks);
        let failed: Vec<&str> = checks
            .all()
            .iter()
            .filter(|check| !check.passed)
            .map(|check| check.subject.as_str())
            .collect();
        assert_eq!(
            failed,
            [
                "metrics: blocks received",
                "metrics: blocks refused",
                "metrics: files saved",
                "metrics: bytes saved",
                "metrics: every block is accounted for",
            ]
        );
    }
}
