//! PNG: indexed colours through libdeflate, true colours through the `png` crate.

use libdeflater::{CompressionLvl, Compressor, Crc};

use super::failed;
use crate::palette::{Indices, Palette};
use crate::raster::{Layout, Raster};
use crate::refusal::Refusal;
use crate::scratch;

/// Effort of the deflater, 0 to 12.
const LEVEL: i32 = 5;
const SIGNATURE: [u8; 8] = [0x89, b'P', b'N', b'G', b'\r', b'\n', 0x1a, b'\n'];
/// Colour type 3 of the header chunk: one palette index per pixel.
const INDEXED: u8 = 3;

/// Writes a picture with a palette.
///
/// # Errors
/// When the deflater fails, which is a fault of ours.
pub(crate) fn indexed(picture: Indices<'_>, palette: &Palette) -> Result<Vec<u8>, Refusal> {
    let depth = depth(palette.colours.len());
    let packed = packed(picture, depth, palette);
    let mut compressor = Compressor::new(CompressionLvl::new(LEVEL).unwrap_or_default());
    let mut body = scratch::used(compressor.zlib_compress_bound(packed.len()));
    let length = compressor
        .zlib_compress(&packed, &mut body)
        .map_err(|error| failed("PNG", &error))?;
    body.truncate(length);
    scratch::keep_bytes(packed);

    let mut file = Vec::with_capacity(length.saturating_add(1_024));
    file.extend(SIGNATURE);
    let mut header = Vec::with_capacity(13);
    for side in [picture.width(), picture.height()] {
        header.extend(number(side)?.to_be_bytes());
    }
    header.extend([depth, INDEXED, 0, 0, 0]);
    chunk(&mut file, *b"IHDR", &header)?;
    chunk(&mut file, *b"PLTE", palette.colours.as_flattened())?;
    chunk(&mut file, *b"IDAT", &body)?;
    chunk(&mut file, *b"IEND", &[])?;
    scratch::keep_bytes(body);
    Ok(file)
}

/// Bits per pixel that so many colours need.
const fn depth(colours: usize) -> u8 {
    match colours {
        0..=2 => 1,
        3..=4 => 2,
        5..=16 => 4,
        _ => 8,
    }
}

/// Rows as the deflater gets them: no filter, indices packed from the left.
fn packed(picture: Indices<'_>, depth: u8, palette: &Palette) -> Vec<u8> {
    let per_byte = usize::from(8 / depth);
    let row = picture.width().div_ceil(per_byte).saturating_add(1);
    let mut packed = scratch::bytes(row.saturating_mul(picture.height()));
    for row in picture.rows() {
        packed.push(0);
        match depth {
            8 => packed.extend(row.iter().map(|&key| palette.index(key))),
            4 => packed.extend(row.chunks(2).map(|pair| match *pair {
                [left, right] => palette.index(left) << 4 | palette.index(right),
                [left] => palette.index(left) << 4,
                _ => 0,
            })),
            _ => packed.extend(row.chunks(per_byte).map(|pixels| {
                let mut byte = 0;
                let mut shift = 8;
                for &key in pixels {
                    shift -= depth;
                    byte |= palette.index(key) << shift;
                }
                byte
            })),
        }
    }
    packed
}

fn chunk(file: &mut Vec<u8>, kind: [u8; 4], body: &[u8]) -> Result<(), Refusal> {
    let length = number(body.len())?;
    let mut crc = Crc::new();
    crc.update(&kind);
    crc.update(body);
    file.extend(length.to_be_bytes());
    file.extend(kind);
    file.extend(body);
    file.extend(crc.sum().to_be_bytes());
    Ok(())
}

fn number(length: usize) -> Result<u32, Refusal> {
    u32::try_from(length).map_err(|error| failed("PNG", &error))
}

/// Writes a picture without any loss.
///
/// # Errors
/// When the raster does not hold what its size says, which is a fault of ours.
pub(crate) fn true_colour(raster: &Raster) -> Result<Vec<u8>, Refusal> {
    let mut file = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut file, raster.width, raster.height);
    encoder.set_color(match raster.layout {
        Layout::Grey => ::png::ColorType::Grayscale,
        Layout::Rgb => ::png::ColorType::Rgb,
    });
    encoder.set_depth(::png::BitDepth::Eight);
    encoder.set_compression(::png::Compression::Balanced);
    let mut writer = encoder
        .write_header()
        .map_err(|error| failed("PNG", &error))?;
    writer
        .write_image_data(&raster.pixels)
        .map_err(|error| failed("PNG", &error))?;
    writer.finish().map_err(|error| failed("PNG", &error))?;
    Ok(file)
}
