//! Large payloads made on the fly, so that a script stays small and the server's memory flat.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use anyhow::{Context, bail};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};

/// Bytes of one generated block: a multiple of 3, so that blocks encode independently, and of
/// 57, so that 76-character lines (MIME) end where a block ends.
const BLOCK: usize = 57 * 1024;
/// Characters of one line of wrapped base64.
const LINE: usize = 76;

/// A payload described by its size.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PayloadSpec {
    /// Decoded bytes.
    pub bytes: usize,
    /// First bytes, for example a magic number.
    #[serde(default)]
    pub head: String,
    /// How the base64 is written inside the JSON string.
    #[serde(default)]
    pub spelling: Spelling,
}

/// How base64 is written inside a JSON string.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Spelling {
    /// As it is.
    #[default]
    Plain,
    /// `\n` after every 76 characters, as MIME encoders do.
    Wrapped,
    /// `/` as `\/`, as PHP does.
    EscapedSlash,
}

impl PayloadSpec {
    /// A payload of a number of bytes, plainly spelled.
    #[must_use]
    pub const fn of(bytes: usize) -> Self {
        Self {
            bytes,
            head: String::new(),
            spelling: Spelling::Plain,
        }
    }

    /// The same payload beginning with `head`.
    #[must_use]
    pub fn with_head(mut self, head: &str) -> Self {
        head.clone_into(&mut self.head);
        self
    }

    /// The same payload spelled otherwise.
    #[must_use]
    pub const fn spelled(mut self, spelling: Spelling) -> Self {
        self.spelling = spelling;
        self
    }

    /// The base64 text, piece by piece, as it stands inside a JSON string.
    pub fn encoded(&self) -> impl Iterator<Item = Vec<u8>> + Send {
        let spelling = self.spelling;
        let total = self.bytes;
        self.decoded().scan(0_usize, move |done, block| {
            *done += block.len();
            Some(spell(STANDARD.encode(&block), spelling, *done < total).into_bytes())
        })
    }

    /// The decoded bytes, block by block.
    pub fn decoded(&self) -> impl Iterator<Item = Vec<u8>> + Send {
        let template = template();
        let head = self.head.clone().into_bytes();
        let bytes = self.bytes;
        (0..bytes.div_ceil(BLOCK)).map(move |index| {
            let mut block = template.clone();
            let stamp = if index == 0 {
                head.clone()
            } else {
                index.to_be_bytes().to_vec()
            };
            for (place, value) in block.iter_mut().zip(stamp) {
                *place = value;
            }
            block.truncate(bytes.saturating_sub(index * BLOCK));
            block
        })
    }

    /// The decoded bytes at once; for small payloads.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        self.decoded().flatten().collect()
    }

    /// Compares a file with the payload byte by byte.
    ///
    /// # Errors
    /// The file cannot be read, or differs; the error says where.
    pub fn compare_file(&self, path: &Path) -> anyhow::Result<()> {
        let mut file = File::open(path).with_context(|| format!("open {}", path.display()))?;
        let mut offset = 0_usize;
        for block in self.decoded() {
            let mut found = vec![0_u8; block.len()];
            file.read_exact(&mut found)
                .with_context(|| format!("{} ends within the block at {offset}", path.display()))?;
            if found != block {
                bail!(
                    "{} differs within the block at byte {offset}",
                    path.display()
                );
            }
            offset += block.len();
        }
        let mut rest = [0_u8; 1];
        if file.read(&mut rest)? != 0 {
            bail!("{} is longer than {} bytes", path.display(), self.bytes);
        }
        Ok(())
    }
}

/// Writes one block's base64 in the wanted spelling.
fn spell(encoded: String, spelling: Spelling, more: bool) -> String {
    match spelling {
        Spelling::Plain => encoded,
        Spelling::EscapedSlash => encoded.replace('/', "\\/"),
        Spelling::Wrapped => {
            let mut out = String::with_capacity(encoded.len() + encoded.len() / LINE * 2 + 2);
            for (position, character) in encoded.chars().enumerate() {
                if position > 0 && position % LINE == 0 {
                    out.push_str("\\n");
                }
                out.push(character);
            }
            if more {
                out.push_str("\\n");
            }
            out
        }
    }
}

/// One block of noise. Printable never, so that nobody takes it for text.
fn template() -> Vec<u8> {
    let mut state = 0x9E37_79B9_7F4A_7C15_u64;
    let mut block = Vec::with_capacity(BLOCK + 8);
    while block.len() < BLOCK {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        block.extend_from_slice(&state.to_be_bytes());
    }
    block.truncate(BLOCK);
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_encode_to_the_base64_of_the_whole() {
        for bytes in [0, 1, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 2] {
            let spec = PayloadSpec::of(bytes).with_head("%PDF-1.7");
            let text: Vec<u8> = spec.encoded().flatten().collect();
            assert_eq!(
                STANDARD.decode(text).unwrap(),
                spec.to_vec(),
                "{bytes} bytes"
            );
        }
    }

    #[test]
    fn spellings_decode_to_the_same_bytes() {
        for spelling in [Spelling::Wrapped, Spelling::EscapedSlash] {
            let spec = PayloadSpec::of(2 * BLOCK + 100).spelled(spelling);
            let json: Vec<u8> = spec.encoded().flatten().collect();
            let quoted = format!("\"{}\"", String::from_utf8(json).unwrap());
            let text: String = serde_json::from_str(&quoted).unwrap();
            let lines: Vec<&str> = text.split('\n').collect();
            assert!(
                lines
                    .iter()
                    .all(|line| spelling == Spelling::EscapedSlash || line.len() <= 76)
            );
            assert!(spelling == Spelling::EscapedSlash || lines.len() > 1000);
            assert!(spelling == Spelling::Wrapped || quoted.contains("\\/"));
            assert_eq!(
                STANDARD.decode(text.replace('\n', "")).unwrap(),
                spec.to_vec()
            );
        }
    }

    #[test]
    fn a_file_that_differs_is_told() {
        let spec = PayloadSpec::of(BLOCK + 10);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        let mut bytes = spec.to_vec();
        std::fs::write(&path, &bytes).unwrap();
        spec.compare_file(&path).unwrap();
        bytes[BLOCK + 3] ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert!(
            spec.compare_file(&path)
                .unwrap_err()
                .to_string()
                .contains("differs")
        );
        bytes[BLOCK + 3] ^= 1;
        bytes.push(0);
        std::fs::write(&path, &bytes).unwrap();
        assert!(
            spec.compare_file(&path)
                .unwrap_err()
                .to_string()
                .contains("longer")
        );
    }
}
