//! Numbers out of bytes that may end anywhere.

/// Two bytes, most significant first.
pub(crate) fn be16(bytes: &[u8], at: usize) -> Option<u16> {
    take(bytes, at).map(u16::from_be_bytes)
}

/// Four bytes, most significant first.
pub(crate) fn be32(bytes: &[u8], at: usize) -> Option<u32> {
    take(bytes, at).map(u32::from_be_bytes)
}

/// Two bytes, least significant first.
pub(crate) fn le16(bytes: &[u8], at: usize) -> Option<u16> {
    take(bytes, at).map(u16::from_le_bytes)
}

/// Three bytes, least significant first.
pub(crate) fn le24(bytes: &[u8], at: usize) -> Option<u32> {
    let [a, b, c] = take(bytes, at)?;
    Some(u32::from_le_bytes([a, b, c, 0]))
}

/// Four bytes, least significant first.
pub(crate) fn le32(bytes: &[u8], at: usize) -> Option<u32> {
    take(bytes, at).map(u32::from_le_bytes)
}

fn take<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..at.checked_add(N)?)?.try_into().ok()
}
