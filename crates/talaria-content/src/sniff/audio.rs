//! Sound: the signatures that prove it, and the container table of specification 1.4.

use super::{Sniffed, audio, document};

/// Sound that the first bytes prove wherever it comes from. The two-byte frame marks of MP3 and
/// AAC prove nothing: UTF-16 text starts alike.
pub(super) fn by_signature(head: &[u8]) -> Option<Sniffed> {
    match head {
        [b'O', b'g', b'g', b'S', rest @ ..] => {
            let start = rest.get(..128).unwrap_or(rest);
            let holds = |mark: &[u8]| start.windows(mark.len()).any(|window| window == mark);
            if holds(b"\x80theora") {
                return document("video/ogg");
            }
            audio("audio/ogg")
        }
        [b'f', b'L', b'a', b'C', ..] => audio("audio/flac"),
        [b'I', b'D', b'3', 2..=4, _, _, ..] => audio("audio/mpeg"),
        [b'M', b'T', b'h', b'd', 0, 0, 0, 6, ..] => audio("audio/midi"),
        [
            b'F',
            b'O',
            b'R',
            b'M',
            _,
            _,
            _,
            _,
            b'A',
            b'I',
            b'F',
            b'F' | b'C',
            ..,
        ] => audio("audio/aiff"),
        [b'#', b'!', b'A', b'M', b'R', ..] => audio("audio/amr"),
        _ => None,
    }
}

/// The extension of an audio block by its container; `None` leaves it to the declared type.
/// Such a block claims to be sound, so two bytes are enough here.
pub(crate) fn container_extension(head: &[u8]) -> Option<(&'static str, &'static str)> {
    match head {
        [_, _, _, _, b'f', b't', b'y', b'p', ..] => Some(("m4a", "audio/mp4")),
        [b'O', b'g', b'g', b'S', ..] => Some(("ogg", "audio/ogg")),
        [b'f', b'L', b'a', b'C', ..] => Some(("flac", "audio/flac")),
        [b'I', b'D', b'3', ..] => Some(("mp3", "audio/mpeg")),
        [
            b'R',
            b'I',
            b'F',
            b'F',
            _,
            _,
            _,
            _,
            b'W',
            b'A',
            b'V',
            b'E',
            ..,
        ] => Some(("wav", "audio/wav")),
        [0xff, mark, ..] if mark & 0xf6 == 0xf0 => Some(("aac", "audio/aac")),
        [0xff, mark, ..] if mark & 0xe0 == 0xe0 => Some(("mp3", "audio/mpeg")),
        [0x1a, 0x45, 0xdf, 0xa3, ..] => Some(("webm", "audio/webm")),
        _ => None,
    }
}
