//! PNG: every colour type, interlacing, reduction, damage.

use ::png::{BitDepth, ColorType, Encoder, Filter};

use super::*;

/// A PNG of `bytes` as they are laid out.
fn encode(width: u32, height: u32, colour: ColorType, depth: BitDepth, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, width, height);
    encoder.set_color(colour);
    encoder.set_depth(depth);
    if colour == ColorType::Indexed {
        encoder.set_palette(vec![200, 0, 0, 0, 0, 0, 9, 9, 9, 255, 255, 255]);
        encoder.set_trns(vec![0, 255, 255, 255]);
    }
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(bytes).unwrap();
    writer.finish().unwrap();
    out
}

fn gradient(width: u32, height: u32) -> Vec<u8> {
    (0..height)
        .flat_map(|y| (0..width).flat_map(move |x| [low(x), low(y), low(x ^ y)]))
        .collect()
}

#[test]
fn reads_screenshots_exactly() {
    let decoded = full(&picture("desk1080.png")).unwrap();
    assert_eq!(decoded.damage, None);
    let places = [
        (10, 10, [94, 132, 203]),
        (640, 360, [255, 255, 255]),
        (960, 540, [114, 132, 151]),
        (1913, 1075, [152, 154, 102]),
    ];
    assert_near(&decoded.raster, &places, 0);
}

#[test]
fn reads_every_colour_type() {
    for (colour, depth, row, expected) in [
        (
            ColorType::Grayscale,
            BitDepth::One,
            &[0b0100_0000][..],
            [[0; 3], [255; 3]],
        ),
        (
            ColorType::Grayscale,
            BitDepth::Four,
            &[0x0f],
            [[0; 3], [255; 3]],
        ),
        (
            ColorType::Grayscale,
            BitDepth::Sixteen,
            &[0x12, 0x34, 0xab, 0xcd],
            [[0x12; 3], [0xab; 3]],
        ),
        (
            ColorType::GrayscaleAlpha,
            BitDepth::Eight,
            &[7, 255, 7, 0],
            [[7; 3], [255; 3]],
        ),
        (
            ColorType::Rgb,
            BitDepth::Sixteen,
            &[1, 0, 2, 0, 3, 0, 4, 0, 5, 0, 6, 0],
            [[1, 2, 3], [4, 5, 6]],
        ),
        (
            ColorType::Rgba,
            BitDepth::Eight,
            &[1, 2, 3, 255, 1, 2, 3, 0],
            [[1, 2, 3], [255; 3]],
        ),
        (
            ColorType::Rgba,
            BitDepth::Sixteen,
            &[1, 0, 2, 0, 3, 0, 255, 255, 1, 0, 2, 0, 3, 0, 0, 0],
            [[1, 2, 3], [255; 3]],
        ),
        // The first entry of the palette is transparent.
        (
            ColorType::Indexed,
            BitDepth::Two,
            &[0b0001_0000],
            [[255; 3], [0; 3]],
        ),
    ] {
        let bytes = encode(2, 1, colour, depth, row);
        let (header, decoded) = read(&bytes, 1568, None).unwrap();
        let is: [[u8; 3]; 2] = [at(&decoded.raster, 0, 0), at(&decoded.raster, 1, 0)];
        assert_eq!(is, expected, "{colour:?} {depth:?}");
        assert_eq!(header.is_plain, depth != BitDepth::Sixteen);
        let has_alpha = matches!(
            colour,
            ColorType::Rgba | ColorType::GrayscaleAlpha | ColorType::Indexed
        );
        assert_eq!(header.has_alpha, has_alpha, "{colour:?}");
        assert_eq!(decoded.damage, None);
    }
}

#[test]
fn averages_very_large_pictures_while_they_are_decoded() {
    let bytes = encode(
        700,
        300,
        ColorType::Rgb,
        BitDepth::Eight,
        &gradient(700, 300),
    );
    let small = read(&bytes, 100, None).unwrap().1.raster;
    assert_eq!((small.width, small.height), (234, 100));
    // Columns 30 to 32, rows 60 to 62.
    assert_eq!(at(&small, 10, 20)[..2], [31, 61]);
}

#[test]
fn fr_022_takes_a_picture_without_its_end() {
    let bytes = encode(64, 64, ColorType::Rgb, BitDepth::Eight, &gradient(64, 64));
    let whole = full(&bytes).unwrap();
    let (header, decoded) = read(&bytes[..bytes.len() - 12], 1568, None).unwrap();
    assert!(!header.is_plain);
    assert_eq!(decoded.raster, whole.raster);
    assert!(decoded.damage.unwrap().contains("end"));
}

#[test]
fn fr_023_ignores_what_stands_behind_the_end() {
    let mut bytes = encode(64, 64, ColorType::Rgb, BitDepth::Eight, &gradient(64, 64));
    let whole = full(&bytes).unwrap();
    bytes.extend_from_slice(b"trailing bytes");
    let (header, decoded) = read(&bytes, 1568, None).unwrap();
    assert!(!header.is_plain, "the tail does not leave");
    assert_eq!(decoded, whole);
}

#[test]
fn fr_024_shows_the_upper_part_or_nothing() {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, 300, 300);
    encoder.set_color(ColorType::Rgb);
    encoder.set_filter(Filter::NoFilter);
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&gradient(300, 300)).unwrap();
    writer.finish().unwrap();
    let whole = full(&out).unwrap().raster;
    for part in [1, 2, 5, 50, 90] {
        let cut = &out[..out.len() * part / 100];
        match full(cut) {
            Ok(decoded) => {
                assert!(part > 10, "{part} % of the file");
                let damage = decoded.damage.unwrap();
                assert!(damage.contains("ends early"), "{damage}");
                assert_eq!(at(&decoded.raster, 100, 10), at(&whole, 100, 10));
                assert_eq!(at(&decoded.raster, 100, 299), [255; 3]);
            }
            Err(refusal) => {
                assert!(part < 50, "{part}: {refusal}");
                assert_eq!(refusal.kind, RefusalKind::Damaged);
            }
        }
    }
}

#[test]
fn reads_past_wrong_checksums_and_says_so() {
    let mut bytes = encode(64, 64, ColorType::Rgb, BitDepth::Eight, &gradient(64, 64));
    let whole = full(&bytes).unwrap().raster;
    // The checksum of the pixels stands in front of the end.
    let place = bytes.len() - 13;
    bytes[place] ^= 0xff;
    let decoded = full(&bytes).unwrap();
    assert_eq!(decoded.raster, whole);
    assert!(decoded.damage.unwrap().contains("checksum"));
}

#[test]
fn refuses_claims_before_anything_is_allocated() {
    assert_eq!(refusal(&picture("bomb_hdr.png")), RefusalKind::TooLarge);
    assert_eq!(refusal(&picture("bomb_real.png")), RefusalKind::TooLarge);
    let mut bytes = encode(1, 1, ColorType::Grayscale, BitDepth::Eight, &[0]);
    bytes[16..24].copy_from_slice(&[0, 0, 0xea, 0x60, 0, 0, 0xea, 0x60]);
    assert_eq!(refusal(&bytes), RefusalKind::TooLarge);
    bytes[16..24].fill(0);
    assert_eq!(refusal(&bytes), RefusalKind::Damaged);
}

#[test]
fn stops_when_nobody_waits() {
    let bytes = picture("web1080.png");
    let header = header::read(&bytes).unwrap();
    let need = Need {
        max_side: 1568,
        region: None,
    };
    let stopped = decode(&bytes, &header, &need, &Watch::new(|| true));
    assert_eq!(stopped.unwrap_err().kind, RefusalKind::Abandoned);
}
