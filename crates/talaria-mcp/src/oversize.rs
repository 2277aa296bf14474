//! What is kept of a message over the limit while the rest of it is thrown away.

/// Both ends of an oversize message: enough to find whose answer it is.
#[derive(Debug)]
pub(crate) struct Oversize {
    /// How it begins.
    pub(crate) head: Vec<u8>,
    /// How it ends, as far as it has come.
    pub(crate) tail: Vec<u8>,
    /// Its length so far.
    pub(crate) bytes: u64,
    tail_bytes: usize,
}

impl Oversize {
    /// Begins with what had been collected when the limit was passed.
    pub(crate) fn began(collected: &[u8], head_bytes: usize, tail_bytes: usize) -> Self {
        let head = collected
            .get(..head_bytes.min(collected.len()))
            .unwrap_or_default();
        let mut this = Self {
            head: head.to_vec(),
            tail: Vec::new(),
            bytes: 0,
            tail_bytes,
        };
        this.grow(collected);
        this
    }

    /// Takes the next bytes.
    pub(crate) fn grow(&mut self, piece: &[u8]) {
        self.bytes = self
            .bytes
            .saturating_add(u64::try_from(piece.len()).unwrap_or(u64::MAX));
        let end = piece
            .get(piece.len().saturating_sub(self.tail_bytes)..)
            .unwrap_or_default();
        self.tail.extend_from_slice(end);
        let surplus = self.tail.len().saturating_sub(self.tail_bytes);
        self.tail.drain(..surplus);
    }
}
