//! A bounded queue between callers and threads.

use std::collections::VecDeque;
use std::time::Duration;

use parking_lot::{Condvar, Mutex, MutexGuard};
use talaria_telemetry::events;
use tokio::sync::watch;

use super::job::Job;
use super::{PoolRefusal, QUEUE};

/// How long a thread without a job keeps the memory of its last one.
const REST_AFTER: Duration = Duration::from_secs(2);

/// Jobs that wait, and how many run.
pub(super) struct Queue {
    state: Mutex<State>,
    /// Wakes threads for a job or for the end.
    work: Condvar,
    capacity: usize,
    /// Jobs in work.
    running: watch::Sender<usize>,
}

struct State {
    jobs: VecDeque<Job>,
    is_open: bool,
}

impl Queue {
    pub(super) fn new(capacity: usize) -> Self {
        events::queue_depth(QUEUE, 0, capacity);
        Self {
            state: Mutex::new(State {
                jobs: VecDeque::new(),
                is_open: true,
            }),
            work: Condvar::new(),
            capacity,
            running: watch::Sender::new(0),
        }
    }

    /// Takes a job in, or says why not: full, or closed.
    pub(super) fn push(&self, job: Job) -> Result<(), PoolRefusal> {
        let mut state = self.state.lock();
        if !state.is_open {
            return Err(refused(PoolRefusal::Abandoned));
        }
        if state.jobs.len() >= self.capacity {
            // Those whose caller has gone need no place.
            state
                .jobs
                .retain(|job| job.still_wanted().map_err(refused).is_ok());
        }
        if state.jobs.len() >= self.capacity {
            events::queue_refused(QUEUE);
            return Err(refused(PoolRefusal::Busy));
        }
        state.jobs.push_back(job);
        events::queue_depth(QUEUE, state.jobs.len(), self.capacity);
        drop(state);
        self.work.notify_one();
        Ok(())
    }

    /// Waits for a job; `None` when the queue is closed. Calls `rest` where none comes for a
    /// while, once.
    pub(super) fn next(&self, rest: impl FnOnce()) -> Option<Job> {
        let mut rest = Some(rest);
        let mut state = self.state.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                events::queue_depth(QUEUE, state.jobs.len(), self.capacity);
                self.running.send_modify(|running| *running += 1);
                return Some(job);
            }
            if !state.is_open {
                return None;
            }
            if rest.is_none() {
                self.work.wait(&mut state);
            } else if self.work.wait_for(&mut state, REST_AFTER).timed_out() {
                MutexGuard::unlocked(&mut state, || rest.take().map(|rest| rest()));
            }
        }
    }

    /// A job that [`Self::next`] handed out has ended.
    pub(super) fn done(&self) {
        self.running
            .send_modify(|running| *running = running.saturating_sub(1));
    }

    /// Takes no more jobs and drops those that wait; their callers hear that at once.
    pub(super) fn close(&self) {
        let mut state = self.state.lock();
        state.is_open = false;
        let dropped = std::mem::take(&mut state.jobs);
        events::queue_depth(QUEUE, 0, self.capacity);
        drop(state);
        self.work.notify_all();
        for job in dropped {
            job.answer(Err(refused(PoolRefusal::Abandoned)));
        }
    }

    /// Waits until no job runs.
    pub(super) async fn idle(&self) {
        let mut running = self.running.subscribe();
        // The sender lives as long as this queue, so waiting does not fail.
        drop(running.wait_for(|running| *running == 0).await);
    }

    pub(super) fn waiting(&self) -> usize {
        self.state.lock().jobs.len()
    }

    pub(super) fn running(&self) -> usize {
        *self.running.borrow()
    }
}

/// Counts a job that never reaches a thread.
fn refused(refusal: PoolRefusal) -> PoolRefusal {
    events::image_job_refused(refusal.as_str());
    refusal
}
