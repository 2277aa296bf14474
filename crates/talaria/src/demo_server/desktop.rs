//! A picture of a 4K screen, drawn here because it would be large in the binary: two windows full
//! of lines that look like writing.

use png::{BitDepth, ColorType, Encoder, EncodingError};

/// Pixels of a 4K screen.
pub const WIDTH: u32 = 3_840;
/// Pixels of a 4K screen.
pub const HEIGHT: u32 = 2_160;

/// Desk, window, title bar, ink, ink of another colour.
const PALETTE: [[u8; 3]; 5] = [
    [38, 70, 83],
    [250, 250, 247],
    [42, 157, 143],
    [33, 37, 41],
    [193, 62, 40],
];
const DESK: u8 = 0;
const PAPER: u8 = 1;
const BAR: u8 = 2;
const INK: u8 = 3;
const RED: u8 = 4;

/// A window by its left and right edge; both hang from the same height.
const WINDOWS: [(u32, u32); 2] = [(120, 1_860), (1_980, 3_720)];
const TOP: u32 = 120;
const BOTTOM: u32 = 2_040;
const BAR_HEIGHT: u32 = 72;
const MARGIN: u32 = 48;
/// Height of a line with its gap, and of its letters.
const LINE: u32 = 40;
const LETTER: (u32, u32) = (18, 26);

/// The picture as a PNG.
///
/// # Errors
/// It cannot be encoded.
pub fn screen() -> Result<Vec<u8>, EncodingError> {
    let mut bytes = Vec::new();
    let mut encoder = Encoder::new(&mut bytes, WIDTH, HEIGHT);
    encoder.set_color(ColorType::Indexed);
    encoder.set_depth(BitDepth::Four);
    encoder.set_palette(PALETTE.concat());
    let pairs = (0..HEIGHT).flat_map(|y| {
        (0..WIDTH)
            .step_by(2)
            .map(move |x| (colour(x, y) << 4) | colour(x + 1, y))
    });
    let mut writer = encoder.write_header()?;
    writer.write_image_data(&pairs.collect::<Vec<u8>>())?;
    writer.finish()?;
    Ok(bytes)
}

fn colour(x: u32, y: u32) -> u8 {
    let window = WINDOWS
        .iter()
        .find(|(left, right)| (*left..*right).contains(&x));
    let Some((left, right)) = window.filter(|_| (TOP..BOTTOM).contains(&y)) else {
        return DESK;
    };
    if y < TOP + BAR_HEIGHT {
        return BAR;
    }
    let inside = (left + MARGIN..right - MARGIN).contains(&x)
        && (TOP + BAR_HEIGHT + MARGIN..BOTTOM - MARGIN).contains(&y);
    if !inside {
        return PAPER;
    }
    writing(x - left - MARGIN, y - TOP - BAR_HEIGHT - MARGIN)
}

/// Letters made from strokes of three pixels; where one stands is decided by its place.
fn writing(x: u32, y: u32) -> u8 {
    let (line, column) = (y / LINE, x / LETTER.0);
    let letter = scatter(line.wrapping_mul(977).wrapping_add(column));
    let is_gap = letter.is_multiple_of(6) || column > 40 + scatter(line) % 48;
    let (dx, dy) = (x % LETTER.0 / 3, y % LINE / 3);
    if is_gap || dx >= 5 || dy >= LETTER.1 / 3 {
        return PAPER;
    }
    let stroke = scatter(
        letter
            .wrapping_add(dx.wrapping_mul(31))
            .wrapping_add(dy * 7),
    );
    match (stroke % 2, line % 9) {
        (0, _) => PAPER,
        (_, 0) => RED,
        _ => INK,
    }
}

/// A number that looks like chance and is the same in every run.
const fn scatter(seed: u32) -> u32 {
    let mixed = (seed ^ 0x9e37_79b9).wrapping_mul(0x85eb_ca6b);
    (mixed ^ (mixed >> 13)).wrapping_mul(0xc2b2_ae35) >> 8
}
