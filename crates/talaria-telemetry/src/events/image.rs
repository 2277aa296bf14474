//! Pictures in the pool that prepares them.

use std::time::Duration;

use crate::events::step;
use crate::metrics::{
    IMAGE_ENCODES, IMAGE_OUTPUT, IMAGE_PIXELS, IMAGE_PREPARED, IMAGE_QUEUE_WAIT, IMAGE_RUN,
};
use crate::recorder::installed;
use crate::recorder::series::{counter, histogram};

/// What a thread of the pool did with a picture.
#[derive(Clone, Copy, Debug)]
pub struct ImageJob {
    /// Format that came in.
    pub input: &'static str,
    /// Format that left; empty when nothing did.
    pub output: &'static str,
    /// `prepared`, `original`, or why there is no picture.
    pub outcome: &'static str,
    /// Pixels that came in.
    pub pixels: u64,
    /// Bytes that left.
    pub output_bytes: usize,
    /// Full encodes.
    pub encodes: u32,
    /// Time in the queue.
    pub waited: Duration,
    /// Time on the thread.
    pub took: Duration,
}

/// A thread of the pool is done with a picture.
pub fn image_job_ended(job: &ImageJob) {
    tracing::debug!(
        input = job.input,
        output = job.output,
        outcome = job.outcome,
        pixels = job.pixels,
        output_bytes = job.output_bytes,
        encodes = job.encodes,
        waited = job.waited.as_secs_f64(),
        seconds = job.took.as_secs_f64(),
        "picture done"
    );
    if job.outcome == "failed" {
        tracing::error!(
            input = job.input,
            pixels = job.pixels,
            "preparing a picture panicked"
        );
    }
    if installed().is_none() {
        return;
    }
    let labels = [job.input.into(), job.output.into(), job.outcome.into()];
    counter(&IMAGE_PREPARED, labels).increment(1);
    counter(&IMAGE_PIXELS, [job.input.into()]).increment(job.pixels);
    histogram(&IMAGE_QUEUE_WAIT, []).record(job.waited);
    histogram(&IMAGE_RUN, [job.input.into()]).record(job.took);
    if job.output_bytes > 0 {
        counter(&IMAGE_OUTPUT, [job.output.into()]).increment(step(job.output_bytes));
        histogram(&IMAGE_ENCODES, []).record(f64::from(job.encodes));
    }
}

/// A picture never reached a thread of the pool: `busy`, `late` or `abandoned`.
pub fn image_job_refused(outcome: &'static str) {
    if installed().is_some() {
        let labels = ["".into(), "".into(), outcome.into()];
        counter(&IMAGE_PREPARED, labels).increment(1);
    }
}

/// A thread of the pool could not be started.
pub fn image_thread_failed(number: usize, error: &std::io::Error) {
    tracing::error!(number, error = %error, "image thread not started");
}
