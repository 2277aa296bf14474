//! WebP: a still, or the first frame of an animation.

use std::io::Cursor;

use image_webp::{DecodingError, WebPDecoder};

use super::intake::{Intake, Samples};
use super::{Decoded, Plan, check, fits, settle};
use crate::colour::{Conversion, Space};
use crate::header::{self, WebpFacts, damaged};
use crate::limits::{MAX_DECODER_BYTES, MAX_FRAMES_CHECKED, MAX_PIXELS_CHECKED};
use crate::refusal::Refusal;
use crate::watch::Watch;

pub(super) fn decode(bytes: &[u8], plan: &Plan, watch: &Watch) -> Result<Decoded, Refusal> {
    let facts = WebpFacts::read(bytes).ok_or_else(|| damaged("the WebP header is broken"))?;
    if facts.sound_frames == 0 {
        return Err(damaged(
            "the WebP's first frame is not of the size that the file claims",
        ));
    }
    fits(facts.decoder_bytes(), plan)?;
    let conversion = facts
        .profile()
        .and_then(|profile| Conversion::from_icc(profile, Space::Rgb));
    #[cfg(feature = "c-decoders")]
    if facts.frames == 1
        && let Some(decoded) = by_libwebp(bytes, plan, conversion.as_ref())
    {
        return decoded;
    }
    let mut decoder = WebPDecoder::new(Cursor::new(bytes)).map_err(|error| broken(&error))?;
    decoder.set_memory_limit(usize::try_from(MAX_DECODER_BYTES).unwrap_or(usize::MAX));
    if decoder.dimensions() != (plan.width, plan.height) {
        return Err(damaged("the WebP's chunks do not agree on its size"));
    }
    let samples = if decoder.has_alpha() {
        Samples::Rgba
    } else {
        Samples::Rgb
    };
    let row = plan.width as usize * samples.channels();
    let mut pixels = vec![0; row * plan.height as usize];
    check(watch, 0)?;
    if decoder.is_animated() {
        decoder.read_frame(&mut pixels).map(|_shown| ())
    } else {
        decoder.read_image(&mut pixels)
    }
    .map_err(|error| broken(&error))?;
    let mut intake = Intake::new(plan, samples, conversion);
    for row in pixels.chunks_exact(row) {
        intake.push(row);
    }
    let problem = if facts.frames > 1 {
        later_problem(&mut decoder, &facts, &mut pixels, watch)?
    } else {
        None
    };
    settle(intake, problem)
}

/// A still; none where the other decoder has to look.
#[cfg(feature = "c-decoders")]
fn by_libwebp(
    bytes: &[u8],
    plan: &Plan,
    conversion: Option<&Conversion>,
) -> Option<Result<Decoded, Refusal>> {
    let image = webp::Decoder::new(bytes).decode()?;
    ((image.width(), image.height()) == (plan.width, plan.height)).then_some(())?;
    let samples = if image.is_alpha() {
        Samples::Rgba
    } else {
        Samples::Rgb
    };
    let mut intake = Intake::new(plan, samples, conversion.cloned());
    for row in image.chunks_exact(plan.width as usize * samples.channels()) {
        intake.push(row);
    }
    Some(settle(intake, None))
}

fn broken(error: &DecodingError) -> Refusal {
    let words = if matches!(error, DecodingError::IoError(_)) {
        "the file ends early"
    } else {
        "its compressed data is broken"
    };
    damaged(format!("the WebP does not decode: {words}"))
}

/// What is wrong with the frames behind the first, as far as they are looked at.
fn later_problem(
    decoder: &mut WebPDecoder<Cursor<&[u8]>>,
    facts: &WebpFacts<'_>,
    canvas: &mut [u8],
    watch: &Watch,
) -> Result<Option<String>, Refusal> {
    let pixels = header::pixels(facts.width, facts.height).max(1);
    let affordable = u32::try_from(MAX_PIXELS_CHECKED / pixels).unwrap_or(u32::MAX);
    let last = facts
        .sound_frames
        .min(affordable.min(MAX_FRAMES_CHECKED) + 1);
    for number in 2..=last {
        check(watch, 0)?;
        match decoder.read_frame(canvas) {
            Ok(_) => {}
            Err(DecodingError::NoMoreFrames) => return Ok(None),
            Err(_) => return Ok(Some(format!("frame {number} is damaged"))),
        }
    }
    let first_unsound = facts.sound_frames + 1;
    Ok((facts.sound_frames < facts.frames).then(|| format!("frame {first_unsound} is damaged")))
}
