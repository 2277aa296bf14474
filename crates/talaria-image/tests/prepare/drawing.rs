//! Pictures drawn by tests, and decoders that are not ours.

use talaria_image::{Picture, PictureFormat, Prepared, Refusal, Target, Watch};

/// RGB pixels.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Canvas {
    pub(crate) width: u32,
    pub(crate) height: u32,
    pub(crate) pixels: Vec<u8>,
}

impl Canvas {
    pub(crate) fn drawn(width: u32, height: u32, colour: impl Fn(u32, u32) -> [u8; 3]) -> Self {
        let places = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
        Self {
            width,
            height,
            pixels: places.flat_map(|(x, y)| colour(x, y)).collect(),
        }
    }

    /// Soft shapes with the noise of a sensor: what a camera makes.
    pub(crate) fn photo(width: u32, height: u32, noise: u8) -> Self {
        Self::drawn(width, height, |x, y| {
            let (u, v) = (f64::from(x) / 97.0, f64::from(y) / 71.0);
            let grain = random(x, y) % (noise + 1);
            [
                (u + v.sin()).sin(),
                (v - u.cos()).cos(),
                (u * 0.7 - v).sin(),
            ]
            .map(|wave| ((wave * 100.0 + 120.0) as u8).saturating_add(grain))
        })
    }

    /// Letters, or what looks like them from afar: short strokes in lines on white.
    pub(crate) fn page(width: u32, height: u32) -> Self {
        Self::drawn(width, height, |x, y| {
            let (line, row) = (y / 18, y % 18);
            let (letter, column) = (x / 8, x % 8);
            let shape = random(letter % 211, line);
            let is_margin = x > width * 6 / 10 || line % 4 == 3;
            let is_blank = is_margin || row < 4 || column > 5 || letter % 7 == 6;
            let is_ink = shape >> (column / 2 + row / 6) & 1 == 1 && (column + row) % 3 < 2;
            match (is_blank, is_ink) {
                (false, true) if letter % 29 < 4 => [200, 20, 30],
                (false, true) => [random(x, y) % 24; 3],
                _ => [255; 3],
            }
        })
    }

    pub(crate) fn png(&self) -> Vec<u8> {
        let mut file = Vec::new();
        let mut encoder = png::Encoder::new(&mut file, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        let mut writer = encoder.write_header().unwrap();
        writer.write_image_data(&self.pixels).unwrap();
        writer.finish().unwrap();
        file
    }

    pub(crate) fn jpeg(&self, quality: u8) -> Vec<u8> {
        let mut file = Vec::new();
        jpeg_encoder::Encoder::new(&mut file, quality)
            .encode(
                &self.pixels,
                self.width as u16,
                self.height as u16,
                jpeg_encoder::ColorType::Rgb,
            )
            .unwrap();
        file
    }

    pub(crate) fn at(&self, x: u32, y: u32) -> [u8; 3] {
        let start = (y * self.width + x) as usize * 3;
        self.pixels[start..start + 3].try_into().unwrap()
    }

    /// Mean difference of all levels to another picture of the same size.
    pub(crate) fn distance(&self, other: &Self) -> f64 {
        assert_eq!((self.width, self.height), (other.width, other.height));
        let pairs = self.pixels.iter().zip(&other.pixels);
        let sum: u64 = pairs.map(|(a, b)| u64::from(a.abs_diff(*b))).sum();
        sum as f64 / self.pixels.len() as f64
    }
}

/// A GIF of so many frames of one pixel.
pub(crate) fn gif(frames: u32) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = gif::Encoder::new(&mut file, 1, 1, &[200, 10, 10, 0, 0, 0]).unwrap();
    for number in 0..frames {
        let frame = gif::Frame {
            width: 1,
            height: 1,
            buffer: vec![(number % 2) as u8].into(),
            ..gif::Frame::default()
        };
        encoder.write_frame(&frame).unwrap();
    }
    drop(encoder);
    file
}

/// A byte that looks random and is not.
pub(crate) fn random(x: u32, y: u32) -> u8 {
    let mut state = x.wrapping_mul(0x9e37_79b9) ^ y.wrapping_mul(0x85eb_ca6b);
    state = (state ^ state >> 15).wrapping_mul(0x2c1b_3c6d);
    state = (state ^ state >> 12).wrapping_mul(0x297a_2d39);
    (state >> 11) as u8
}

pub(crate) fn prepare(bytes: &[u8], target: &Target) -> Result<Prepared, Refusal> {
    talaria_image::prepare(bytes, target, &Watch::never())
}

/// The only picture of what was prepared.
pub(crate) fn only(prepared: &Prepared) -> &Picture {
    assert_eq!(prepared.pictures.len(), 1);
    &prepared.pictures[0]
}

/// Decodes with a decoder that shares nothing with our writers; fails on what a provider refuses.
pub(crate) fn decoded(picture: &Picture) -> Canvas {
    let bytes = &picture.bytes;
    let canvas = match picture.format {
        PictureFormat::Png => decoded_png(bytes),
        PictureFormat::Jpeg => {
            assert_eq!(bytes[..3], [0xff, 0xd8, 0xff]);
            let mut decoder =
                zune_jpeg::JpegDecoder::new(zune_core::bytestream::ZCursor::new(bytes));
            let pixels = decoder.decode().unwrap();
            let info = decoder.info().unwrap();
            Canvas {
                width: info.width.into(),
                height: info.height.into(),
                pixels: as_rgb(pixels, usize::from(info.width) * usize::from(info.height)),
            }
        }
        PictureFormat::WebP => {
            assert_eq!((&bytes[..4], &bytes[8..12]), (&b"RIFF"[..], &b"WEBP"[..]));
            let mut decoder = image_webp::WebPDecoder::new(std::io::Cursor::new(bytes)).unwrap();
            let (width, height) = decoder.dimensions();
            let mut pixels = vec![0; decoder.output_buffer_size().unwrap()];
            decoder.read_image(&mut pixels).unwrap();
            Canvas {
                width,
                height,
                pixels,
            }
        }
    };
    assert_eq!(
        (canvas.width, canvas.height),
        (picture.width, picture.height)
    );
    canvas
}

fn decoded_png(bytes: &[u8]) -> Canvas {
    assert_eq!(bytes[..8], *b"\x89PNG\r\n\x1a\n");
    let mut decoder = png::Decoder::new(std::io::Cursor::new(bytes));
    decoder.set_transformations(png::Transformations::EXPAND);
    let mut reader = decoder.read_info().unwrap();
    let mut pixels = vec![0; reader.output_buffer_size().unwrap()];
    let info = reader.next_frame(&mut pixels).unwrap();
    reader.finish().unwrap();
    pixels.truncate(info.buffer_size());
    Canvas {
        width: info.width,
        height: info.height,
        pixels: as_rgb(pixels, info.width as usize * info.height as usize),
    }
}

fn as_rgb(pixels: Vec<u8>, count: usize) -> Vec<u8> {
    if pixels.len() == count {
        return pixels.into_iter().flat_map(|grey| [grey; 3]).collect();
    }
    assert_eq!(pixels.len(), count * 3);
    pixels
}
