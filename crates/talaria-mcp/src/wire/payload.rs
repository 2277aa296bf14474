//! Decodes one payload string out of the message buffer into the sink.

use talaria_content::base64_guard::{Base64Guard, Decoded};
use talaria_types::{PayloadError, PayloadRefusal, PayloadSink, PayloadWriter, StagedPayload};

use super::text::{Unescaped, unescape};

/// Shorter strings stay inline: a handle would cost more than it saves.
pub(crate) const MIN_PAYLOAD_BYTES: usize = 16 * 1024;

/// Encoded bytes decoded at a time; bounds what one payload takes beside the message.
const PIECE_BYTES: usize = 64 * 1024;

/// Runs between escapes that are worth decoding where they lie.
const DIRECT_RUN_BYTES: usize = 1024;

/// Decodes the inside of a JSON string without unescaping it as a whole.
pub(super) fn stage(
    raw: &[u8],
    sink: &dyn PayloadSink,
) -> Result<(StagedPayload, Decoded), PayloadRefusal> {
    let mut stage = Stage {
        guard: Base64Guard::new(),
        decoded: Vec::with_capacity(PIECE_BYTES),
        sink,
        writer: None,
    };
    let mut scratch = Vec::new();
    let mut rest = raw;
    while !rest.is_empty() {
        let run = rest
            .iter()
            .position(|byte| *byte == b'\\')
            .unwrap_or(rest.len());
        let (plain, escaped) = rest.split_at(run);
        rest = escaped;
        if plain.len() >= DIRECT_RUN_BYTES {
            stage.push(&scratch)?;
            scratch.clear();
            stage.push(plain)?;
        } else {
            scratch.extend_from_slice(plain);
        }
        if !rest.is_empty() {
            let (character, end) = match unescape(rest, 0) {
                Some((Unescaped::Char(character), end)) => (character, end),
                // The guard refuses it with the reason.
                Some((Unescaped::LoneSurrogate, end)) => (char::REPLACEMENT_CHARACTER, end),
                None => ('\\', 1),
            };
            scratch.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
            rest = rest.get(end..).unwrap_or_default();
        }
        if scratch.len() >= PIECE_BYTES || rest.is_empty() {
            stage.push(&scratch)?;
            scratch.clear();
        }
    }
    stage.finish()
}

struct Stage<'a> {
    guard: Base64Guard,
    decoded: Vec<u8>,
    sink: &'a dyn PayloadSink,
    writer: Option<Box<dyn PayloadWriter>>,
}

impl Stage<'_> {
    fn push(&mut self, encoded: &[u8]) -> Result<(), PayloadRefusal> {
        for piece in encoded.chunks(PIECE_BYTES) {
            self.guard.push(piece, &mut self.decoded)?;
            self.write().map_err(not_stored)?;
        }
        Ok(())
    }

    fn write(&mut self) -> Result<(), PayloadError> {
        if self.decoded.is_empty() {
            return Ok(());
        }
        let writer = match self.writer.as_mut() {
            Some(writer) => writer,
            None => self.writer.insert(self.sink.begin()?),
        };
        writer.write(&self.decoded)?;
        self.decoded.clear();
        Ok(())
    }

    fn finish(mut self) -> Result<(StagedPayload, Decoded), PayloadRefusal> {
        let guard = std::mem::replace(&mut self.guard, Base64Guard::new());
        let decoded = guard.finish(&mut self.decoded)?;
        self.write().map_err(not_stored)?;
        let writer = self.writer.take().ok_or(PayloadRefusal::Empty)?;
        Ok((writer.finish().map_err(not_stored)?, decoded))
    }
}

fn not_stored(error: PayloadError) -> PayloadRefusal {
    PayloadRefusal::NotStored {
        code: error.code,
        detail: error.detail,
    }
}
