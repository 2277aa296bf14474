//! Looking through megabytes for a byte that is hardly ever there.

/// How many bytes are looked at before asking whether one was found.
const STRIDE: usize = 256;

/// Whether a byte is one of those looked for. Asking once per stride lets the compiler look at
/// many bytes at a time.
pub(crate) fn any(bytes: &[u8], is_wanted: impl Fn(u8) -> bool) -> bool {
    bytes.chunks(STRIDE).any(|stride| {
        stride
            .iter()
            .fold(false, |found, byte| found | is_wanted(*byte))
    })
}

#[cfg(test)]
mod tests {
    use super::any;

    #[test]
    fn finds_a_byte_anywhere() {
        for length in [1, 255, 256, 257, 1000] {
            let mut bytes = vec![b'a'; length];
            assert!(!any(&bytes, |byte| byte == b'b'));
            *bytes.last_mut().unwrap() = b'b';
            assert!(any(&bytes, |byte| byte == b'b'), "{length}");
        }
        assert!(!any(&[], |_| true));
    }
}
