//! Pictures as a provider would read them: decoded here by crates of others, never by ours.

use std::io::Cursor;

use anyhow::{Context as _, bail, ensure};
use image::codecs::gif::GifDecoder;
use image::codecs::png::PngDecoder;
use image::codecs::webp::WebPDecoder;
use image::{AnimationDecoder as _, DynamicImage, ImageFormat, RgbaImage};

/// Brightness from which a pixel of a test picture counts as white.
const WHITE: u8 = 200;
const PNG: &str = "image/png";
const GIF: &str = "image/gif";
const WEBP: &str = "image/webp";

/// A picture decoded whole.
#[derive(Clone, Debug)]
pub struct SeenPicture {
    /// By its bytes.
    pub media_type: &'static str,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// 1 for a still.
    pub frames: usize,
    /// Whether the file has an alpha channel or a transparent colour.
    pub has_alpha: bool,
    pixels: RgbaImage,
}

impl SeenPicture {
    /// Reads a file of one of the four types that providers take.
    ///
    /// # Errors
    /// It is of another type, is cut off, or does not decode.
    pub fn decode(bytes: &[u8]) -> anyhow::Result<Self> {
        let format = image::guess_format(bytes).context("no picture by its bytes")?;
        let media_type = format.to_mime_type();
        let is_complete = match media_type {
            PNG => bytes.ends_with(b"IEND\xaeB`\x82"),
            "image/jpeg" => bytes.ends_with(&[0xff, 0xd9]),
            GIF => bytes.ends_with(&[0x3b]),
            WEBP => riff_length(bytes) == Some(bytes.len()),
            other => bail!("{other} is no type that providers take"),
        };
        ensure!(is_complete, "the {media_type} is cut off");
        let decoded = image::load_from_memory_with_format(bytes, format)?;
        Ok(Self {
            media_type,
            width: decoded.width(),
            height: decoded.height(),
            frames: frames(bytes, media_type)?,
            has_alpha: decoded.color().has_alpha(),
            pixels: decoded.to_rgba8(),
        })
    }

    /// Red, green, blue and alpha of a pixel; `None` outside of the picture.
    #[must_use]
    pub fn pixel(&self, x: u32, y: u32) -> Option<[u8; 4]> {
        self.pixels.get_pixel_checked(x, y).map(|pixel| pixel.0)
    }

    /// The pixel in the middle.
    #[must_use]
    pub fn centre(&self) -> Option<[u8; 4]> {
        self.pixel(self.width / 2, self.height / 2)
    }

    /// The pixels in the four corners.
    #[must_use]
    pub fn corners(&self) -> Vec<[u8; 4]> {
        let (right, lower) = (self.width.saturating_sub(1), self.height.saturating_sub(1));
        [(0, 0), (right, 0), (0, lower), (right, lower)]
            .into_iter()
            .filter_map(|(x, y)| self.pixel(x, y))
            .collect()
    }

    /// White upright bars that the middle row crosses.
    #[must_use]
    pub fn bars(&self) -> usize {
        let row: Vec<bool> = (0..self.width)
            .filter_map(|x| self.pixel(x, self.height / 2))
            .map(|[red, green, blue, _]| red.min(green).min(blue) > WHITE)
            .collect();
        let begins = row
            .windows(2)
            .filter(|pair| matches!(pair, [false, true]))
            .count();
        begins + usize::from(row.first() == Some(&true))
    }
}

/// A PNG of one colour.
///
/// # Errors
/// It cannot be encoded.
pub fn plain_png(width: u32, height: u32, colour: [u8; 3]) -> anyhow::Result<Vec<u8>> {
    encode(
        &image::RgbImage::from_pixel(width, height, image::Rgb(colour)).into(),
        ImageFormat::Png,
    )
}

/// A grey PNG of one shade; large ones take a byte a pixel to make.
///
/// # Errors
/// It cannot be encoded.
pub fn plain_grey_png(width: u32, height: u32, shade: u8) -> anyhow::Result<Vec<u8>> {
    let drawn = image::GrayImage::from_pixel(width, height, image::Luma([shade]));
    encode(&drawn.into(), ImageFormat::Png)
}

/// A PNG whose pixels are made from their place.
///
/// # Errors
/// It cannot be encoded.
pub fn drawn_png(
    width: u32,
    height: u32,
    colour: impl Fn(u32, u32) -> [u8; 3],
) -> anyhow::Result<Vec<u8>> {
    let drawn = image::RgbImage::from_fn(width, height, |x, y| image::Rgb(colour(x, y)));
    encode(&drawn.into(), ImageFormat::Png)
}

/// A PNG of noise, which no encoder makes smaller; `seed` makes each another.
///
/// # Errors
/// It cannot be encoded.
pub fn noise_png(width: u32, height: u32, seed: u64) -> anyhow::Result<Vec<u8>> {
    encode(&noise(width, height, seed).into(), ImageFormat::Png)
}

/// A JPEG of noise.
///
/// # Errors
/// It cannot be encoded.
pub fn noise_jpeg(width: u32, height: u32, seed: u64) -> anyhow::Result<Vec<u8>> {
    encode(&noise(width, height, seed).into(), ImageFormat::Jpeg)
}

fn noise(width: u32, height: u32, seed: u64) -> image::RgbImage {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    image::RgbImage::from_fn(width, height, |_, _| {
        // Xorshift: noise that is the same in every run.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let [red, green, blue, ..] = state.to_le_bytes();
        image::Rgb([red, green, blue])
    })
}

fn encode(picture: &DynamicImage, format: ImageFormat) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Cursor::new(Vec::new());
    picture.write_to(&mut bytes, format)?;
    Ok(bytes.into_inner())
}

fn frames(bytes: &[u8], media_type: &str) -> anyhow::Result<usize> {
    let reader = Cursor::new(bytes);
    let frames = match media_type {
        GIF => GifDecoder::new(reader)?.into_frames(),
        PNG if PngDecoder::new(Cursor::new(bytes))?.is_apng()? => {
            PngDecoder::new(reader)?.apng()?.into_frames()
        }
        WEBP if WebPDecoder::new(Cursor::new(bytes))?.has_animation() => {
            WebPDecoder::new(reader)?.into_frames()
        }
        _ => return Ok(1),
    };
    Ok(frames.collect_frames()?.len())
}

/// The length of a RIFF file as it says itself.
fn riff_length(bytes: &[u8]) -> Option<usize> {
    let length: [u8; 4] = bytes.get(4..8)?.try_into().ok()?;
    usize::try_from(u32::from_le_bytes(length))
        .ok()?
        .checked_add(8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drawn_picture_is_seen_as_it_was_drawn() {
        let bars = drawn_png(
            64,
            64,
            |x, _| if x % 20 < 8 { [255; 3] } else { [9, 80, 9] },
        );
        let seen = SeenPicture::decode(&bars.unwrap()).unwrap();
        assert_eq!(
            (seen.media_type, seen.width, seen.height),
            ("image/png", 64, 64)
        );
        assert_eq!((seen.bars(), seen.frames), (4, 1));
        assert_eq!(seen.centre(), Some([9, 80, 9, 255]));
        assert_eq!(seen.corners().len(), 4);
    }

    #[test]
    fn a_cut_picture_is_none() {
        for whole in [
            noise_png(40, 40, 1).unwrap(),
            noise_jpeg(40, 40, 1).unwrap(),
        ] {
            assert!(SeenPicture::decode(&whole).is_ok());
            assert!(SeenPicture::decode(&whole[..whole.len() - 20]).is_err());
        }
        assert!(SeenPicture::decode(b"<svg xmlns=\"http://www.w3.org/2000/svg\"/>").is_err());
    }
}
