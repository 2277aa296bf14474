//! Small real files for results: each opens in the program it is made for.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

/// A PNG of one pixel.
pub const PNG_1X1: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

/// A PDF of one empty page.
pub const PDF: &[u8] = b"%PDF-1.4\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n\
2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n\
3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 72 72]>>endobj\n\
trailer<</Root 1 0 R>>\n%%EOF\n";

/// An HTML page as a failing server puts it where a picture belongs.
pub const HTML: &[u8] =
    b"<!DOCTYPE html>\n<html><head><title>502</title></head><body>Bad gateway</body></html>\n";

/// The bytes of [`PNG_1X1`].
///
/// # Panics
/// Never: the constant is base64.
#[must_use]
pub fn png() -> Vec<u8> {
    STANDARD.decode(PNG_1X1).unwrap_or_default()
}

/// A JPEG head and end: enough for every program that goes by magic numbers.
#[must_use]
pub fn jpeg() -> Vec<u8> {
    let mut bytes = vec![0xFF, 0xD8, 0xFF, 0xE0, 0x00, 0x10];
    bytes.extend_from_slice(b"JFIF\0\x01\x01\0\0\x01\0\x01\0\0");
    bytes.extend_from_slice(&[0xFF, 0xD9]);
    bytes
}

/// A WAV of eight silent samples.
#[must_use]
pub fn wav() -> Vec<u8> {
    let mut bytes = b"RIFF\x2c\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0".to_vec();
    bytes.extend_from_slice(&8000_u32.to_le_bytes());
    bytes.extend_from_slice(&8000_u32.to_le_bytes());
    bytes.extend_from_slice(&[1, 0, 8, 0]);
    bytes.extend_from_slice(b"data\x08\0\0\0");
    bytes.extend_from_slice(&[0x80; 8]);
    bytes
}

/// The base64 of bytes.
#[must_use]
pub fn base64(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// A text shifted into the range of TAG characters, invisible to people.
#[must_use]
pub fn tags(text: &str) -> String {
    text.bytes()
        .filter_map(|byte| char::from_u32(0xE_0000 + u32::from(byte)))
        .collect()
}
