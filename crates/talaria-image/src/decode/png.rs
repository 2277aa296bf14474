//! PNG, row by row.

mod mosaic;

use std::io::Cursor;

use png::{BitDepth, ColorType, DecodeOptions, Decoder, Limits, Reader, Transformations};

use self::mosaic::{Mosaic, PASSES, Pass};
use super::intake::{Intake, Samples};
use super::{Decoded, Plan, check, settle};
use crate::colour::Conversion;
use crate::header::{PngFacts, damaged};
use crate::refusal::{Refusal, RefusalKind};
use crate::watch::Watch;

/// Bytes the decoder may hold: rows and small chunks.
const DECODER_BYTES: usize = 16 << 20;

type Source<'a> = Reader<Cursor<&'a [u8]>>;

/// One attempt: what came, how much of it, and what stopped it.
struct Attempt {
    decoded: Result<Decoded, Refusal>,
    share: u32,
    has_failed: bool,
}

pub(super) fn decode(bytes: &[u8], plan: &Plan, watch: &Watch) -> Result<Decoded, Refusal> {
    let facts = PngFacts::read(bytes).ok_or_else(|| damaged("the PNG header is broken"))?;
    let conversion = facts
        .profile()
        .and_then(|profile| Conversion::from_icc(&profile, facts.space()));
    let strict = attempt(bytes, plan, conversion.as_ref(), watch, Checksums::Matter);
    if !strict.has_failed || is_final(&strict.decoded) {
        return strict.decoded;
    }
    let lenient = attempt(bytes, plan, conversion.as_ref(), watch, Checksums::Ignored);
    if !lenient.has_failed {
        return lenient.decoded.map(|decoded| Decoded {
            damage: Some("a checksum is wrong".to_owned()),
            ..decoded
        });
    }
    if lenient.share > strict.share {
        lenient.decoded
    } else {
        strict.decoded
    }
}

/// Whether another attempt would end the same way.
fn is_final(decoded: &Result<Decoded, Refusal>) -> bool {
    matches!(decoded, Err(refusal) if refusal.kind != RefusalKind::Damaged)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Checksums {
    Matter,
    Ignored,
}

fn attempt(
    bytes: &[u8],
    plan: &Plan,
    conversion: Option<&Conversion>,
    watch: &Watch,
    checksums: Checksums,
) -> Attempt {
    let mut reader = match open(bytes, checksums) {
        Ok(reader) => reader,
        Err(error) => {
            return Attempt {
                decoded: Err(broken(&error)),
                share: 0,
                has_failed: true,
            };
        }
    };
    let Some(samples) = samples(&reader) else {
        return Attempt {
            decoded: Err(damaged("the PNG has an odd colour type")),
            share: 0,
            has_failed: true,
        };
    };
    if reader.info().interlaced {
        mosaic(&mut reader, plan, samples, conversion, watch)
    } else {
        rows(&mut reader, plan, samples, conversion, watch)
    }
}

fn open(bytes: &[u8], checksums: Checksums) -> Result<Source<'_>, png::DecodingError> {
    let mut options = DecodeOptions::default();
    options.set_ignore_text_chunk(true);
    options.set_ignore_iccp_chunk(true);
    if checksums == Checksums::Ignored {
        options.set_ignore_checksums(true);
    }
    let mut decoder = Decoder::new_with_options(Cursor::new(bytes), options);
    decoder.set_limits(Limits {
        bytes: DECODER_BYTES,
    });
    decoder.set_transformations(Transformations::EXPAND | Transformations::STRIP_16);
    decoder.read_info()
}

fn samples(reader: &Source<'_>) -> Option<Samples> {
    match reader.output_color_type() {
        (ColorType::Grayscale, BitDepth::Eight) => Some(Samples::Grey),
        (ColorType::GrayscaleAlpha, BitDepth::Eight) => Some(Samples::GreyAlpha),
        (ColorType::Rgb, BitDepth::Eight) => Some(Samples::Rgb),
        (ColorType::Rgba, BitDepth::Eight) => Some(Samples::Rgba),
        _ => None,
    }
}

fn rows(
    reader: &mut Source<'_>,
    plan: &Plan,
    samples: Samples,
    conversion: Option<&Conversion>,
    watch: &Watch,
) -> Attempt {
    let mut intake = Intake::new(plan, samples, conversion.cloned());
    let mut line = vec![0; plan.width as usize * samples.channels()];
    let mut problem = None;
    while !intake.is_full() {
        if let Err(refusal) = check(watch, intake.rows_taken()) {
            return Attempt {
                decoded: Err(refusal),
                share: 0,
                has_failed: true,
            };
        }
        let read = match intake.open_row() {
            Some(row) => {
                let read = reader.read_row(row);
                if matches!(read, Ok(Some(_))) {
                    intake.row_written();
                }
                read
            }
            None => {
                let read = reader.read_row(&mut line);
                if matches!(read, Ok(Some(_))) {
                    intake.push(&line);
                }
                read
            }
        };
        match read {
            Ok(Some(_)) => {}
            Ok(None) => break,
            Err(error) => {
                problem = Some(words(&error));
                break;
            }
        }
    }
    // What stands behind the rows counts as well: checksums, later frames, the end.
    if problem.is_none() && plan.is_whole() {
        problem = end_problem(reader);
    }
    let share = intake.rows_taken();
    Attempt {
        has_failed: problem.is_some() || share < intake.rows_due(),
        share,
        decoded: settle(intake, problem),
    }
}

fn mosaic(
    reader: &mut Source<'_>,
    plan: &Plan,
    samples: Samples,
    conversion: Option<&Conversion>,
    watch: &Watch,
) -> Attempt {
    let mut mosaic = Mosaic::new(plan, samples, conversion.cloned());
    let mut problem = None;
    let mut share = 0;
    for pass in &PASSES {
        match read_pass(reader, &mut mosaic, pass, plan, watch) {
            Ok(()) => share += 1,
            Err(PassProblem::Refused(refusal)) => {
                return Attempt {
                    decoded: Err(refusal),
                    share: 0,
                    has_failed: true,
                };
            }
            Err(PassProblem::Broken(words)) => {
                problem = Some(words);
                break;
            }
        }
    }
    let problem = problem.or_else(|| end_problem(reader));
    Attempt {
        has_failed: problem.is_some(),
        share,
        decoded: mosaic.finish(problem),
    }
}

enum PassProblem {
    Refused(Refusal),
    Broken(String),
}

fn read_pass(
    reader: &mut Source<'_>,
    mosaic: &mut Mosaic,
    pass: &Pass,
    plan: &Plan,
    watch: &Watch,
) -> Result<(), PassProblem> {
    let columns = pass.columns(plan.width);
    let size = plan.width as usize * reader_channels(reader);
    let mut line = vec![0; size];
    let used = columns as usize * reader_channels(reader);
    // A pass without columns has no rows in the file either.
    let rows = if columns == 0 {
        0
    } else {
        pass.rows(plan.height)
    };
    for row in 0..rows {
        check(watch, row).map_err(PassProblem::Refused)?;
        match reader.read_row(&mut line) {
            Ok(Some(_)) => mosaic.put(pass, row, line.get(..used).unwrap_or_default()),
            Ok(None) => return Err(PassProblem::Broken("the file ends early".to_owned())),
            Err(error) => return Err(PassProblem::Broken(words(&error))),
        }
    }
    mosaic.complete(pass);
    Ok(())
}

fn reader_channels(reader: &Source<'_>) -> usize {
    reader.output_color_type().0.samples()
}

fn end_problem(reader: &mut Source<'_>) -> Option<String> {
    reader.finish().err().map(|error| match error {
        png::DecodingError::IoError(_) => "the end of the file is missing".to_owned(),
        other @ (png::DecodingError::Format(_)
        | png::DecodingError::Parameter(_)
        | png::DecodingError::LimitsExceeded) => words(&other),
    })
}

fn broken(error: &png::DecodingError) -> Refusal {
    match error {
        png::DecodingError::LimitsExceeded => Refusal {
            kind: RefusalKind::TooLarge,
            detail: "the PNG needs more memory to decode than is allowed".to_owned(),
        },
        other @ (png::DecodingError::IoError(_)
        | png::DecodingError::Format(_)
        | png::DecodingError::Parameter(_)) => {
            damaged(format!("the PNG does not decode: {}", words(other)))
        }
    }
}

/// The error without the decoder's names.
fn words(error: &png::DecodingError) -> String {
    match error {
        png::DecodingError::IoError(_) => "the file ends early".to_owned(),
        png::DecodingError::LimitsExceeded => "it needs too much memory".to_owned(),
        png::DecodingError::Format(_) | png::DecodingError::Parameter(_) => {
            "its compressed data is broken".to_owned()
        }
    }
}
