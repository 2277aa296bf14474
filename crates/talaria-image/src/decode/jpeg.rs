//! JPEG, one row of blocks at a time.

mod planes;
#[cfg(feature = "c-decoders")]
mod turbo;

use zune_core::bytestream::ZCursor;
use zune_core::colorspace::ColorSpace;
use zune_core::options::DecoderOptions;
use zune_jpeg::{JpegDecoder, RawImcuRowStatus};

use self::planes::{Geometry, Stripe, Weaver};
use super::intake::{Intake, Samples};
use super::{Decoded, Plan, check, fits, settle};
use crate::colour::Conversion;
use crate::header::{JpegFacts, damaged};
use crate::limits::{MAX_DECODER_BYTES, MAX_SCANS, MAX_SIDE};
use crate::refusal::Refusal;
use crate::watch::Watch;

/// Components at most.
const COMPONENTS: usize = 4;
const CUT: &str = "the file ends early";
const BROKEN: &str = "its compressed data is broken in places";

pub(super) fn decode(bytes: &[u8], plan: &Plan, watch: &Watch) -> Result<Decoded, Refusal> {
    let facts = JpegFacts::read(bytes).ok_or_else(|| damaged("the JPEG header is broken"))?;
    let conversion = facts
        .profile()
        .and_then(|profile| Conversion::from_icc(&profile, facts.space()));
    #[cfg(feature = "c-decoders")]
    if let Some(decoded) = turbo::decode(bytes, plan, &facts, conversion.as_ref()) {
        return Ok(decoded);
    }
    let geometry = Geometry::new(&facts.components);
    if let Some(geometry) = geometry
        && (facts.has_end || !facts.is_buffered())
    {
        let source = Source {
            bytes,
            facts: &facts,
            geometry: &geometry,
            conversion: conversion.as_ref(),
        };
        let mut woven = weave(&source, plan, Tolerance::None, watch)?;
        if woven.problem.is_some() {
            let is_broken = woven.problem == Some(BROKEN);
            woven = weave(&source, plan, Tolerance::All, watch)?;
            // What is tolerated here others refuse, so it is said.
            woven.problem = woven.problem.or_else(|| is_broken.then_some(BROKEN));
        }
        // Stripes of few bits may stop short of an end that is there.
        let is_whole_file = facts.has_end && woven.problem == Some(CUT);
        if is_whole_file && let Ok(decoded) = whole(bytes, plan, &facts, conversion.clone(), watch)
        {
            return Ok(decoded);
        }
        if woven.rows > 0 || !facts.is_buffered() {
            return woven.finish(&facts);
        }
    }
    whole(bytes, plan, &facts, conversion, watch)
}

/// What came out row by row.
struct Woven {
    intake: Intake,
    rows: u32,
    problem: Option<&'static str>,
}

impl Woven {
    fn finish(self, facts: &JpegFacts<'_>) -> Result<Decoded, Refusal> {
        let problem = self
            .problem
            .or_else(|| (!facts.has_end).then_some("the end of the file is missing"));
        settle(self.intake, problem.map(str::to_owned))
    }
}

/// What is known of a file before its planes are taken.
struct Source<'a> {
    bytes: &'a [u8],
    facts: &'a JpegFacts<'a>,
    geometry: &'a Geometry,
    conversion: Option<&'a Conversion>,
}

/// What the decoder may pass over.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Tolerance {
    None,
    All,
}

/// Takes planes off the decoder as they come, reduced by a power of two.
fn weave(
    source: &Source<'_>,
    plan: &Plan,
    tolerance: Tolerance,
    watch: &Watch,
) -> Result<Woven, Refusal> {
    let facts = source.facts;
    let reduction = reduction(plan);
    let reduced = reduced(plan, reduction);
    fits(
        if facts.is_buffered() {
            facts.coefficient_bytes()
        } else {
            0
        },
        &reduced,
    )?;
    let intake = Intake::new(&reduced, samples(facts), source.conversion.cloned());
    let mut woven = Woven {
        intake,
        rows: 0,
        problem: None,
    };
    let options = options().set_strict_mode(tolerance == Tolerance::None);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(source.bytes), options);
    let asked = watch.clone();
    decoder.set_cancel(move || asked.is_over());
    if decoder.decode_headers().is_err() {
        woven.problem = Some(BROKEN);
        return Ok(woven);
    }
    let mut raw = decoder.raw_output();
    let count = facts.components.len();
    let layout = raw.layout().filter(|_| raw.num_components() == Some(count));
    let Some(layout) = layout else {
        woven.problem = Some(BROKEN);
        return Ok(woven);
    };
    let widths: Vec<usize> = layout.iter().take(count).map(|plane| plane.width).collect();
    let mut weaver = Weaver::new(facts, source.geometry, reduction, reduced.width);
    let mut stripe = Stripe::new(&widths, &facts.components);
    loop {
        check(watch, 0)?;
        let status = {
            let mut planes: Vec<&mut [u8]> = stripe.planes().collect();
            raw.decode_next_imcu_row(&mut planes, &widths)
        };
        match status {
            Ok(RawImcuRowStatus::RowReady { rows_written }) => {
                let rows: &[usize; COMPONENTS] = &rows_written;
                stripe.set_rows(rows);
                stripe = weaver.take(stripe, &mut woven.intake);
                woven.rows += 1;
            }
            Ok(RawImcuRowStatus::Complete) => break,
            Ok(_) => {
                woven.problem = Some(CUT);
                break;
            }
            Err(_) => {
                check(watch, 0)?;
                woven.problem = Some(BROKEN);
                break;
            }
        }
        if woven.intake.is_full() {
            break;
        }
    }
    weaver.finish(&mut woven.intake);
    Ok(woven)
}

/// Whether the file is so exact that every decoder takes it: one scan that holds as many rows of
/// blocks as the frame claims, and nothing else. In doubt it is not.
///
/// Behind the end of a picture the decoder makes up what is missing.
/// Without that end it stops within the last row of blocks; earlier if there are too few, and not
/// at all if bytes are left over.
pub(super) fn is_exact(bytes: &[u8], watch: &Watch) -> Result<bool, Refusal> {
    let Some(facts) = JpegFacts::read(bytes).filter(|facts| !facts.is_buffered()) else {
        return Ok(false);
    };
    let (Some(scan), Some(geometry)) = (bytes.get(..facts.end), Geometry::new(&facts.components))
    else {
        return Ok(false);
    };
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(scan), options());
    if decoder.decode_headers().is_err() {
        return Ok(false);
    }
    let mut raw = decoder.raw_output();
    let count = facts.components.len();
    let Some(layout) = raw.layout() else {
        return Ok(false);
    };
    let widths: Vec<usize> = layout.iter().take(count).map(|plane| plane.width).collect();
    let mut stripe = Stripe::new(&widths, &facts.components);
    let mut rows = 0;
    loop {
        check(watch, 0)?;
        let mut planes: Vec<&mut [u8]> = stripe.planes().collect();
        match raw.decode_next_imcu_row(&mut planes, &widths) {
            Ok(RawImcuRowStatus::RowReady { .. }) => rows += 1,
            Ok(RawImcuRowStatus::Complete) | Err(_) => return Ok(false),
            Ok(_) => return Ok(rows + 1 == geometry.stripes(facts.height)),
        }
    }
}

/// By what planes are averaged before they become pixels.
/// What is left is at least a quarter larger than the fit.
fn reduction(plan: &Plan) -> u32 {
    if !plan.is_whole() {
        return 1;
    }
    let long = plan.width.max(plan.height);
    [8, 4, 2]
        .into_iter()
        .find(|factor| u64::from(long / factor) * 4 >= u64::from(plan.max_side) * 5)
        .unwrap_or(1)
}

/// The plan for rows that were reduced already.
fn reduced(plan: &Plan, reduction: u32) -> Plan {
    if reduction == 1 {
        return *plan;
    }
    let width = plan.width.div_ceil(reduction);
    let height = plan.height.div_ceil(reduction);
    reduced_to(plan, width, height)
}

fn reduced_to(plan: &Plan, width: u32, height: u32) -> Plan {
    Plan {
        width,
        height,
        crop: super::Rect {
            x: 0,
            y: 0,
            width,
            height,
        },
        max_side: plan.max_side,
        factor: 1,
    }
}

/// Decodes at once what cannot be taken row by row: odd sampling, or several scans without end.
fn whole(
    bytes: &[u8],
    plan: &Plan,
    facts: &JpegFacts<'_>,
    conversion: Option<Conversion>,
    watch: &Watch,
) -> Result<Decoded, Refusal> {
    let samples = samples(facts);
    let size = crate::header::pixels(plan.width, plan.height) * samples.channels() as u64;
    // The coefficients of all scans are held as well.
    if size.saturating_mul(3) > MAX_DECODER_BYTES {
        return Err(damaged(
            "the JPEG is damaged and too large to look for what is left of it",
        ));
    }
    let space = match samples {
        Samples::Grey | Samples::GreyAlpha => ColorSpace::Luma,
        Samples::Rgb | Samples::Rgba => ColorSpace::RGB,
        Samples::Cmyk => ColorSpace::CMYK,
    };
    let options = options().jpeg_set_out_colorspace(space);
    let mut decoder = JpegDecoder::new_with_options(ZCursor::new(bytes), options);
    let asked = watch.clone();
    decoder.set_cancel(move || asked.is_over());
    let decoded = decoder.decode();
    check(watch, 0)?;
    let pixels =
        decoded.map_err(|_error| damaged(format!("the JPEG does not decode: {BROKEN}")))?;
    let row = plan.width as usize * samples.channels();
    if pixels.len() != row * plan.height as usize {
        return Err(damaged("the JPEG does not decode to what its header says"));
    }
    let mut intake = Intake::new(plan, samples, conversion);
    for row in pixels.chunks_exact(row) {
        intake.push(row);
    }
    let problem = (!facts.has_end).then(|| CUT.to_owned());
    let decoded = settle(intake, problem)?;
    if decoded.damage.is_some() && super::is_one_colour(&decoded.raster) {
        return Err(damaged(
            "the JPEG is cut off before any of it can be decoded",
        ));
    }
    Ok(decoded)
}

fn samples(facts: &JpegFacts<'_>) -> Samples {
    match facts.components.len() {
        1 => Samples::Grey,
        3 => Samples::Rgb,
        _ => Samples::Cmyk,
    }
}

fn options() -> DecoderOptions {
    DecoderOptions::default()
        .set_strict_mode(false)
        .set_max_width(MAX_SIDE as usize)
        .set_max_height(MAX_SIDE as usize)
        .jpeg_set_max_scans(MAX_SCANS)
}
