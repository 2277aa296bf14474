//! Decoding of the test pictures, of damaged ones and of hostile ones.

mod gif;
mod hostile;
mod jpeg;
mod others;
mod png;

use super::{Decoded, Need, Rect, decode};
use crate::header::{self, Header};
use crate::raster::{Layout, Raster};
use crate::refusal::{Refusal, RefusalKind};
use crate::watch::Watch;

/// A picture of the test data.
fn picture(name: &str) -> Vec<u8> {
    let path = format!(
        "{}/../../tests/data/images/{name}",
        env!("CARGO_MANIFEST_DIR")
    );
    std::fs::read(path).unwrap()
}

fn read(bytes: &[u8], max_side: u32, region: Option<Rect>) -> Result<(Header, Decoded), Refusal> {
    let header = header::read(bytes)?;
    let need = Need { max_side, region };
    let decoded = decode(bytes, &header, &need, &Watch::never())?;
    let raster = &decoded.raster;
    let size = raster.width as usize * raster.height as usize * raster.layout.channels();
    assert_eq!(raster.pixels.len(), size);
    Ok((header, decoded))
}

/// The whole picture without any reduction.
fn full(bytes: &[u8]) -> Result<Decoded, Refusal> {
    read(bytes, u32::MAX / 2, None).map(|(_, decoded)| decoded)
}

fn refusal(bytes: &[u8]) -> RefusalKind {
    full(bytes).unwrap_err().kind
}

/// The low byte.
const fn low(value: u32) -> u8 {
    value.to_le_bytes()[0]
}

/// The colour at a place, grey as three equal levels.
fn at(raster: &Raster, x: u32, y: u32) -> [u8; 3] {
    let place = (y * raster.width + x) as usize;
    match raster.layout {
        Layout::Grey => [raster.pixels[place]; 3],
        Layout::Rgb => raster.pixels[place * 3..place * 3 + 3].try_into().unwrap(),
    }
}

/// Fails where a colour is further than `distance` levels from the one another decoder gives.
fn assert_near(raster: &Raster, places: &[(u32, u32, [u8; 3])], distance: u8) {
    for (x, y, expected) in places {
        let is = at(raster, *x, *y);
        let far = is
            .iter()
            .zip(expected)
            .any(|(a, b)| a.abs_diff(*b) > distance);
        assert!(!far, "{x},{y}: {is:?}, not {expected:?}");
    }
}
