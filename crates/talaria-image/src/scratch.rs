//! Memory of pictures that a thread keeps for its next picture.
//!
//! Getting tens of megabytes from the system for every picture, page by page, and giving them
//! back takes a fifth of the time of preparing a screenshot.

use std::cell::RefCell;

use fast_image_resize::Resizer;

/// Most bytes of each kind that a thread keeps: a decoded 4K screen and what it is fitted to.
const MOST_KEPT: usize = 32 << 20;
/// Buffers below so many bytes are not worth keeping.
const LEAST_KEPT: usize = 64 << 10;

#[derive(Default)]
struct Scratch {
    bytes: Shelf<u8>,
    keys: Shelf<u16>,
    resizer: Resizer,
}

thread_local! {
    static SCRATCH: RefCell<Scratch> = RefCell::default();
}

/// An empty buffer with room for so many bytes.
pub(crate) fn bytes(capacity: usize) -> Vec<u8> {
    empty(with(|scratch| scratch.bytes.take(capacity)), capacity)
}

/// A buffer of so many bytes of whatever: for work that writes all of them.
pub(crate) fn used(length: usize) -> Vec<u8> {
    let mut buffer = with(|scratch| scratch.bytes.take(length)).unwrap_or_default();
    buffer.resize(length, 0);
    buffer
}

/// An empty buffer with room for so many palette keys.
pub(crate) fn keys(capacity: usize) -> Vec<u16> {
    empty(with(|scratch| scratch.keys.take(capacity)), capacity)
}

/// Keeps a buffer of [`bytes`] for the next picture.
pub(crate) fn keep_bytes(buffer: Vec<u8>) {
    with(|scratch| scratch.bytes.put(buffer));
}

/// Keeps a buffer of [`keys`] for the next picture.
pub(crate) fn keep_keys(buffer: Vec<u16>) {
    with(|scratch| scratch.keys.put(buffer));
}

/// The thread's resizer, which keeps its own buffers.
pub(crate) fn with_resizer<T>(work: impl FnOnce(&mut Resizer) -> T) -> T {
    let mut resizer = with(|scratch| std::mem::take(&mut scratch.resizer)).unwrap_or_default();
    let done = work(&mut resizer);
    with(|scratch| scratch.resizer = resizer);
    done
}

/// Gives back what this thread keeps.
pub(crate) fn release() {
    with(|scratch| *scratch = Scratch::default());
}

/// `None` where the thread ends, and its memory with it.
fn with<T>(work: impl FnOnce(&mut Scratch) -> T) -> Option<T> {
    SCRATCH
        .try_with(|scratch| scratch.try_borrow_mut().ok().map(|mut it| work(&mut it)))
        .ok()
        .flatten()
}

/// A kept buffer, or a new one, without what it held.
fn empty<T>(kept: Option<Vec<T>>, capacity: usize) -> Vec<T> {
    let mut buffer = kept.unwrap_or_default();
    buffer.clear();
    buffer.reserve(capacity);
    buffer
}

/// Buffers of one kind, with what they held last.
struct Shelf<T>(Vec<Vec<T>>);

impl<T> Default for Shelf<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Shelf<T> {
    /// The smallest buffer that is large enough.
    fn take(&mut self, capacity: usize) -> Vec<T> {
        let fitting = self.0.iter().enumerate();
        let fitting = fitting.filter(|(_, buffer)| buffer.capacity() >= capacity);
        let smallest = fitting.min_by_key(|(_, buffer)| buffer.capacity());
        match smallest.map(|(index, _)| index) {
            Some(index) if capacity * size_of::<T>() >= LEAST_KEPT => self.0.remove(index),
            _ => Vec::with_capacity(capacity),
        }
    }

    /// Keeps a buffer; the oldest make room for it.
    fn put(&mut self, buffer: Vec<T>) {
        let size = |buffer: &Vec<T>| buffer.capacity() * size_of::<T>();
        let own = size(&buffer);
        if !(LEAST_KEPT..=MOST_KEPT).contains(&own) {
            return;
        }
        self.0.push(buffer);
        let mut total: usize = self.0.iter().map(size).sum();
        self.0.retain(|buffer| {
            let is_kept = total <= MOST_KEPT;
            if !is_kept {
                total -= size(buffer);
            }
            is_kept
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kept() -> Vec<usize> {
        let sizes = with(|scratch| scratch.bytes.0.iter().map(Vec::capacity).collect());
        sizes.unwrap_or_default()
    }

    #[test]
    fn a_buffer_serves_again_the_smallest_that_is_large_enough() {
        for size in [1 << 20, 3 << 20] {
            keep_bytes(vec![7; size]);
        }
        let buffer = bytes(900_000);
        assert!(buffer.is_empty() && buffer.capacity() == 1 << 20);
        assert_eq!(kept(), [3 << 20]);
        assert_eq!(used(2 << 20).len(), 2 << 20);
        assert!(kept().is_empty());
        keep_bytes(buffer);
        release();
        assert!(kept().is_empty());
    }

    #[test]
    fn what_is_kept_is_bounded_and_the_oldest_goes_first() {
        for size in [30 << 20, 1 << 20, 2 << 20, 40 << 20, 100] {
            keep_bytes(Vec::with_capacity(size));
        }
        assert_eq!(kept(), [1 << 20, 2 << 20]);
        release();
    }

    #[test]
    fn a_small_wish_takes_no_large_buffer() {
        keep_bytes(Vec::with_capacity(1 << 20));
        assert_eq!(bytes(100).capacity(), 100);
        assert_eq!(kept(), [1 << 20]);
        release();
    }
}
