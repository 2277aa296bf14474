//! WebP, bitmaps, icons, TIFF, and what is not decoded.

use ::tiff::encoder::{Compression, TiffEncoder, colortype};
use image::ExtendedColorType;
use image::codecs::bmp::BmpEncoder;
use image_webp::{ColorType, WebPEncoder};

use super::*;
use crate::orient::Orientation;
use crate::prepared::SourceFormat;

/// 40 × 30, three frames of red, green and half-transparent blue, lossless.
const ANIMATED_WEBP: &str = "52494646b400000057454250565038580a000000120000002700001d0000414e494d06000000000000000000414e4d46280000000000000000002700001d0000000000025650384c0f0000002f274007000710458efe0722a2ff0100414e4d46280000000000000000002700001d0000000000005650384c0f0000002f274007000750e488fe0722a2ff0100414e4d46280000000000000000002700001d0000000000025650384c0f0000002f27400710071051e4020622a2ff0100";
/// 8 × 6, transparent but for one pixel, lossy.
const ALPHA_WEBP: &str = "524946469200000057454250565038580a00000010000000070000050000414c50480c000000010f30ff1111621022fa1f0856503820600000005002009d012a0800060000800825940274ba00778e83e0584f9b0000fefffeb87d962bb2fcbab6c6ebdd2e7b2ed3ea7c7fffdc9917fee8e923e651c7f11efc3ff0ba8411b718eafec554f7a9d737fb883fbffff3bb966c5859b35fe8b4bc0000";

fn gradient(width: u32, height: u32) -> Vec<u8> {
    (0..height)
        .flat_map(|y| (0..width).flat_map(move |x| [low(x), low(y), 77]))
        .collect()
}

#[test]
fn reads_lossy_webp() {
    let (header, decoded) = read(&picture("photo.webp"), 4000, None).unwrap();
    assert!(header.is_plain && !header.has_alpha);
    let places = [
        (10, 10, [89, 130, 198]),
        (800, 533, [128, 151, 177]),
        (1200, 800, [96, 108, 61]),
        (2393, 1595, [154, 161, 104]),
    ];
    assert_near(&decoded.raster, &places, 2);
}

#[test]
fn reads_lossless_webp() {
    let mut bytes = Vec::new();
    WebPEncoder::new(&mut bytes)
        .encode(&gradient(70, 50), 70, 50, ColorType::Rgb8)
        .unwrap();
    let (header, decoded) = read(&bytes, 1568, None).unwrap();
    assert!(header.is_plain);
    assert_eq!(decoded.raster.pixels, gradient(70, 50));
}

#[test]
fn lays_transparent_webp_on_white() {
    let bytes = hex::decode(ALPHA_WEBP).unwrap();
    let (header, decoded) = read(&bytes, 1568, None).unwrap();
    assert!(header.has_alpha);
    assert_eq!(at(&decoded.raster, 0, 0), [255; 3]);
    assert_near(&decoded.raster, &[(3, 3, [200, 100, 50])], 60);
}

#[test]
fn shows_the_first_frame_of_animated_webp() {
    let bytes = hex::decode(ANIMATED_WEBP).unwrap();
    let (header, decoded) = read(&bytes, 1568, None).unwrap();
    assert_eq!((header.frames, header.is_animated), (3, true));
    assert!(!header.is_plain);
    assert_eq!(decoded.damage, None);
    assert_eq!(at(&decoded.raster, 20, 15), [200, 0, 0]);
}

#[test]
fn e26_notices_a_damaged_frame_of_animated_webp() {
    let mut bytes = hex::decode(ANIMATED_WEBP).unwrap();
    let starts: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(b"ANMF"))
        .collect();
    // The signature of the third frame's picture.
    bytes[starts[2] + 8 + 16 + 8] = 0;
    let decoded = full(&bytes).unwrap();
    assert_eq!(at(&decoded.raster, 20, 15), [200, 0, 0]);
    assert_eq!(decoded.damage.unwrap(), "frame 3 is damaged");
    // The first frame has to be sound.
    bytes[starts[0] + 8 + 16 + 8] = 0;
    assert_eq!(refusal(&bytes), RefusalKind::Damaged);
}

#[test]
fn refuses_webp_whose_picture_is_larger_than_its_canvas() {
    let mut bytes = hex::decode(ALPHA_WEBP).unwrap();
    let at = (0..bytes.len())
        .find(|at| bytes[*at..].starts_with(b"VP8 "))
        .unwrap();
    bytes[at + 14..at + 18].copy_from_slice(&[0xff, 0x3f, 0xff, 0x3f]);
    assert_eq!(refusal(&bytes), RefusalKind::Damaged);
}

#[test]
fn refuses_webp_that_is_cut() {
    let bytes = picture("photo.webp");
    for length in [20, 40, 1000, 200_000] {
        assert_eq!(refusal(&bytes[..length]), RefusalKind::Damaged, "{length}");
    }
}

#[test]
fn reads_bitmaps() {
    let mut bytes = Vec::new();
    BmpEncoder::new(&mut bytes)
        .encode(&gradient(33, 20), 33, 20, ExtendedColorType::Rgb8)
        .unwrap();
    let (header, decoded) = read(&bytes, 1568, None).unwrap();
    assert_eq!(header.format, SourceFormat::Bmp);
    assert!(!header.is_plain);
    assert_eq!(decoded.raster.pixels, gradient(33, 20));
    bytes[18..26].copy_from_slice(&[0x60, 0xea, 0, 0, 0x60, 0xea, 0, 0]);
    assert_eq!(refusal(&bytes), RefusalKind::TooLarge);
}

/// An icon of pictures that its directory gives these sides.
fn icon(entries: &[(u8, Vec<u8>)]) -> Vec<u8> {
    let mut out = vec![0, 0, 1, 0, low(u32::try_from(entries.len()).unwrap()), 0];
    let mut start = u32::try_from(6 + 16 * entries.len()).unwrap();
    for (side, data) in entries {
        let length = u32::try_from(data.len()).unwrap();
        out.extend_from_slice(&[*side, *side, 0, 0, 1, 0, 32, 0]);
        out.extend_from_slice(&length.to_le_bytes());
        out.extend_from_slice(&start.to_le_bytes());
        start += length;
    }
    out.extend(entries.iter().flat_map(|(_, data)| data.clone()));
    out
}

/// A picture of one colour without its file header, with a mask that hides nothing.
fn icon_bitmap(side: u32, colour: [u8; 3]) -> Vec<u8> {
    let mut out = Vec::new();
    out.extend_from_slice(&40_u32.to_le_bytes());
    out.extend_from_slice(&side.to_le_bytes());
    out.extend_from_slice(&(side * 2).to_le_bytes());
    out.extend_from_slice(&[1, 0, 32, 0]);
    out.extend_from_slice(&[0; 24]);
    for _ in 0..side * side {
        let [red, green, blue] = colour;
        out.extend_from_slice(&[blue, green, red, 255]);
    }
    out.extend(vec![0; (side.div_ceil(32) * 4 * side) as usize]);
    out
}

#[test]
fn shows_the_largest_picture_of_an_icon() {
    let mut png = Vec::new();
    let mut writer = ::png::Encoder::new(&mut png, 256, 256)
        .write_header()
        .unwrap();
    writer.write_image_data(&vec![90; 256 * 256]).unwrap();
    writer.finish().unwrap();
    let small = (16, icon_bitmap(16, [1, 2, 3]));
    let middle = (48, icon_bitmap(48, [200, 100, 50]));
    let (header, decoded) = read(&icon(&[small.clone(), middle.clone()]), 1568, None).unwrap();
    assert_eq!((header.width, header.height), (48, 48));
    assert_eq!(at(&decoded.raster, 9, 9), [200, 100, 50]);
    let (header, decoded) = read(&icon(&[small, (0, png), middle]), 1568, None).unwrap();
    assert_eq!((header.width, header.height), (256, 256));
    assert_eq!(at(&decoded.raster, 255, 255), [90; 3]);
}

#[test]
fn reads_tiff_of_every_compression() {
    for compression in [
        Compression::Uncompressed,
        Compression::Lzw,
        Compression::Deflate(::tiff::encoder::DeflateLevel::Fast),
        Compression::Packbits,
    ] {
        let mut out = std::io::Cursor::new(Vec::new());
        let mut encoder = TiffEncoder::new(&mut out)
            .unwrap()
            .with_compression(compression);
        for _ in 0..3 {
            let mut page = encoder.new_image::<colortype::RGB8>(60, 40).unwrap();
            page.rows_per_strip(7).unwrap();
            page.write_data(&gradient(60, 40)).unwrap();
        }
        let (header, decoded) = read(out.get_ref(), 1568, None).unwrap();
        assert_eq!((header.frames, header.is_animated), (3, false));
        assert_eq!(header.orientation, Orientation::Upright);
        assert_eq!(decoded.damage, None);
        assert_eq!(decoded.raster.pixels, gradient(60, 40));
    }
}

#[test]
fn reads_deep_and_grey_tiff() {
    let mut out = std::io::Cursor::new(Vec::new());
    TiffEncoder::new(&mut out)
        .unwrap()
        .write_image::<colortype::Gray16>(2, 1, &[0x1234, 0xabcd])
        .unwrap();
    assert_eq!(full(out.get_ref()).unwrap().raster.pixels, [0x12, 0xab]);
}

#[test]
fn shows_what_is_left_of_a_cut_tiff() {
    let mut out = std::io::Cursor::new(Vec::new());
    let mut encoder = TiffEncoder::new(&mut out).unwrap();
    let mut page = encoder.new_image::<colortype::RGB8>(60, 40).unwrap();
    page.rows_per_strip(4).unwrap();
    page.write_data(&gradient(60, 40)).unwrap();
    let mut bytes = out.into_inner();
    // The seventh strip lies beyond the end of the file.
    let offsets = header::tiff::open(&bytes)
        .unwrap()
        .get_tag_u32_vec(::tiff::tags::Tag::StripOffsets)
        .unwrap();
    let seventh = offsets[6].to_le_bytes();
    let offset = (0..bytes.len())
        .rfind(|at| bytes[*at..].starts_with(&seventh))
        .unwrap();
    bytes[offset..offset + 4].fill(0xff);
    let decoded = full(&bytes).unwrap();
    assert!(decoded.damage.unwrap().contains("60 %"));
    assert_eq!(at(&decoded.raster, 7, 23), [7, 23, 77]);
    assert_eq!(at(&decoded.raster, 7, 24), [255; 3]);
}

#[test]
fn names_formats_it_does_not_decode() {
    for (bytes, name) in [
        (picture("photo.avif"), "AVIF"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic".to_vec(), "HEIC"),
        (b"8BPS\0\x01".to_vec(), "Photoshop"),
    ] {
        let refusal = full(&bytes).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::Unsupported);
        assert!(refusal.detail.contains(name), "{refusal}");
    }
    assert_eq!(refusal(b"Screenshot saved."), RefusalKind::NotAnImage);
    assert_eq!(refusal(b""), RefusalKind::NotAnImage);
}

#[test]
fn survives_every_cut_of_every_format() {
    let mut icon_bytes = icon(&[(16, icon_bitmap(16, [1, 2, 3]))]);
    let mut bitmap = Vec::new();
    BmpEncoder::new(&mut bitmap)
        .encode(&gradient(33, 20), 33, 20, ExtendedColorType::Rgb8)
        .unwrap();
    let mut page = std::io::Cursor::new(Vec::new());
    TiffEncoder::new(&mut page)
        .unwrap()
        .write_image::<colortype::RGB8>(20, 20, &gradient(20, 20))
        .unwrap();
    for whole in [
        &mut icon_bytes,
        &mut bitmap,
        page.get_mut(),
        &mut hex::decode(ANIMATED_WEBP).unwrap(),
        &mut hex::decode(ALPHA_WEBP).unwrap(),
    ] {
        for length in (0..whole.len()).step_by(3) {
            let _either = full(&whole[..length]);
        }
        // And with every byte wrong once.
        for at in (0..whole.len().min(400)).step_by(2) {
            let kept = whole[at];
            whole[at] ^= 0xff;
            let _either = full(whole);
            whole[at] = kept;
        }
    }
}

#[test]
fn reads_palette_tiff() {
    for (bits, byte) in [(8_u16, vec![0, 1, 2, 3]), (2, vec![0b0001_1011])] {
        let mut tiff = b"II*\0\x08\0\0\0\x09\0".to_vec();
        let after = 10 + 9 * 12 + 4_u32;
        let colours = 1 << bits;
        let pixels = u32::try_from(byte.len()).unwrap();
        for (tag, kind, count, value) in [
            (256_u16, 3_u8, 1_u32, 4_u32),
            (257, 3, 1, 1),
            (258, 3, 1, u32::from(bits)),
            (259, 3, 1, 1),
            (262, 3, 1, 3),
            (273, 4, 1, after + 6 * colours),
            (278, 3, 1, 1),
            (279, 4, 1, pixels),
            (320, 3, 3 * colours, after),
        ] {
            tiff.extend_from_slice(&tag.to_le_bytes());
            tiff.extend_from_slice(&[kind, 0]);
            tiff.extend_from_slice(&count.to_le_bytes());
            tiff.extend_from_slice(&value.to_le_bytes());
        }
        tiff.extend_from_slice(&[0; 4]);
        for channel in 0..3_u8 {
            for index in 0..colours {
                tiff.extend_from_slice(&[0, low(index).wrapping_mul(10).wrapping_add(channel)]);
            }
        }
        tiff.extend_from_slice(&byte);
        let decoded = full(&tiff).unwrap();
        let expected = [0, 1, 2, 10, 11, 12, 20, 21, 22, 30, 31, 32];
        assert_eq!(decoded.raster.pixels, expected, "{bits}");
    }
}
