//! GIF: the first frame on its logical screen.

use gif::{ColorOutput, DecodeOptions, Decoder, MemoryLimit};

use super::intake::{Intake, Samples};
use super::{Decoded, Plan, check, fits, settle};
use crate::header::{self, GifFacts, damaged};
use crate::limits::{MAX_FRAMES_CHECKED, MAX_PIXELS, MAX_PIXELS_CHECKED};
use crate::refusal::Refusal;
use crate::watch::Watch;

/// First row and distance of the rows of the four passes of an interlaced frame.
const PASSES: [(usize, usize); 4] = [(0, 8), (4, 8), (2, 4), (1, 2)];
const WHITE: [u8; 3] = [u8::MAX; 3];

/// The place of a frame on the screen.
#[derive(Clone, Copy, Debug)]
struct Frame {
    left: usize,
    top: usize,
    width: usize,
    height: usize,
    is_interlaced: bool,
    transparent: Option<u8>,
}

pub(super) fn decode(bytes: &[u8], plan: &Plan, watch: &Watch) -> Result<Decoded, Refusal> {
    let facts = GifFacts::read(bytes).ok_or_else(|| damaged("the GIF header is broken"))?;
    let mut decoder = open(bytes)?;
    let frame = next_frame(&mut decoder)?.ok_or_else(|| damaged("the GIF holds no frame"))?;
    // The frame says its own size, whatever the screen's.
    check_frame(frame)?;
    if frame.is_interlaced {
        fits(header::pixels(side(frame.width), side(frame.height)), plan)?;
    }
    let palette: Vec<[u8; 3]> = {
        let palette = decoder.palette().map_err(|_error| broken())?;
        palette.as_chunks::<3>().0.to_vec()
    };
    let mut screen = Screen::new(plan, frame, palette);
    let mut problem = screen.read(&mut decoder, watch)?;
    if problem.is_none() && plan.is_whole() {
        problem = later_problem(&mut decoder, frame, watch)?.or_else(|| {
            facts
                .is_cut
                .then(|| "the file ends within a later frame".to_owned())
        });
    }
    settle(screen.intake, problem)
}

fn open(bytes: &[u8]) -> Result<Decoder<&[u8]>, Refusal> {
    let mut options = DecodeOptions::new();
    options.set_color_output(ColorOutput::Indexed);
    options.allow_unknown_blocks(true);
    let most = std::num::NonZeroU64::new(MAX_PIXELS);
    options.set_memory_limit(most.map_or(MemoryLimit::Unlimited, MemoryLimit::Bytes));
    options.read_info(bytes).map_err(|_error| broken())
}

fn check_frame(frame: Frame) -> Result<(), Refusal> {
    if frame.width == 0 || frame.height == 0 {
        return Ok(());
    }
    header::check_size(side(frame.width), side(frame.height))
}

fn side(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

fn broken() -> Refusal {
    damaged("the GIF does not decode: its data is cut short or broken")
}

fn next_frame(decoder: &mut Decoder<&[u8]>) -> Result<Option<Frame>, Refusal> {
    let frame = decoder.next_frame_info().map_err(|_error| broken())?;
    Ok(frame.map(|frame| Frame {
        left: usize::from(frame.left),
        top: usize::from(frame.top),
        width: usize::from(frame.width),
        height: usize::from(frame.height),
        is_interlaced: frame.interlaced,
        transparent: frame.transparent,
    }))
}

/// The logical screen with the first frame on it.
struct Screen {
    plan: Plan,
    frame: Frame,
    palette: Vec<[u8; 3]>,
    row: Vec<u8>,
    intake: Intake,
}

impl Screen {
    fn new(plan: &Plan, frame: Frame, palette: Vec<[u8; 3]>) -> Self {
        Self {
            plan: *plan,
            frame,
            palette,
            row: vec![u8::MAX; plan.width as usize * 3],
            intake: Intake::new(plan, Samples::Rgb, None),
        }
    }

    /// Reads the frame; the answer says what was wrong with it.
    fn read(
        &mut self,
        decoder: &mut Decoder<&[u8]>,
        watch: &Watch,
    ) -> Result<Option<String>, Refusal> {
        for _ in 0..self.frame.top.min(self.plan.height as usize) {
            self.put(None);
        }
        let problem = if self.frame.is_interlaced {
            self.read_interlaced(decoder, watch)?
        } else {
            self.read_rows(decoder, watch)?
        };
        if problem.is_none() {
            // Below the frame.
            while !self.intake.is_full() {
                self.put(None);
            }
        }
        Ok(problem)
    }

    fn read_rows(
        &mut self,
        decoder: &mut Decoder<&[u8]>,
        watch: &Watch,
    ) -> Result<Option<String>, Refusal> {
        let mut line = vec![0; self.frame.width];
        for row in 0..self.frame.height {
            if self.intake.is_full() {
                break;
            }
            check(watch, side(row))?;
            if let Some(problem) = read_line(decoder, &mut line) {
                return Ok(Some(problem));
            }
            self.put(Some(&line));
        }
        Ok(None)
    }

    fn read_interlaced(
        &mut self,
        decoder: &mut Decoder<&[u8]>,
        watch: &Watch,
    ) -> Result<Option<String>, Refusal> {
        let width = self.frame.width;
        let mut lines = vec![0; width * self.frame.height];
        let mut problem = None;
        let order = PASSES
            .iter()
            .flat_map(|(first, step)| (*first..self.frame.height).step_by(*step));
        for (count, row) in order.enumerate() {
            check(watch, side(count))?;
            let line = lines
                .get_mut(row * width..(row + 1) * width)
                .unwrap_or_default();
            problem = read_line(decoder, line);
            if problem.is_some() {
                // Half of the rows are needed to see anything.
                if count * 2 < self.frame.height {
                    return Ok(problem);
                }
                break;
            }
        }
        for line in lines.chunks_exact(width.max(1)) {
            self.put(Some(line));
        }
        if problem.is_some() {
            while !self.intake.is_full() {
                self.put(None);
            }
        }
        Ok(problem)
    }

    /// One row of the screen; outside of the frame it is white.
    fn put(&mut self, line: Option<&[u8]>) {
        if self.intake.is_full() {
            return;
        }
        self.row.fill(u8::MAX);
        if let Some(line) = line {
            let (row, _) = self.row.as_chunks_mut::<3>();
            for (pixel, index) in row.iter_mut().skip(self.frame.left).zip(line) {
                *pixel = if Some(*index) == self.frame.transparent {
                    WHITE
                } else {
                    self.palette
                        .get(usize::from(*index))
                        .copied()
                        .unwrap_or_default()
                };
            }
        }
        self.intake.push(&self.row);
    }
}

fn read_line(decoder: &mut Decoder<&[u8]>, line: &mut [u8]) -> Option<String> {
    match decoder.fill_buffer(line) {
        Ok(true) => None,
        Ok(false) => Some("the frame ends early".to_owned()),
        Err(_) => Some("its compressed data is broken".to_owned()),
    }
}

/// What is wrong with the frames behind the first, as far as they are looked at.
fn later_problem(
    decoder: &mut Decoder<&[u8]>,
    first: Frame,
    watch: &Watch,
) -> Result<Option<String>, Refusal> {
    let mut left = MAX_PIXELS_CHECKED;
    let mut line = vec![0; first.width.max(1)];
    for number in 2..=MAX_FRAMES_CHECKED + 1 {
        let problem = || Some(format!("frame {number} is damaged"));
        check(watch, 0)?;
        let Ok(frame) = next_frame(decoder) else {
            return Ok(problem());
        };
        let Some(frame) = frame else { break };
        let pixels = frame.width as u64 * frame.height as u64;
        let Some(rest) = left.checked_sub(pixels) else {
            break;
        };
        left = rest;
        line.resize(frame.width.max(1), 0);
        for _ in 0..frame.height {
            if frame.width > 0 && read_line(decoder, &mut line).is_some() {
                return Ok(problem());
            }
        }
    }
    Ok(None)
}
