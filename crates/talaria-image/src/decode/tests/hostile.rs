//! Files that claim or unpack to far more than they hold.

use ::png::{BitDepth, ColorType, Encoder};

use super::*;

/// A grey picture of one colour; its compressed pixels are a thousandth of what they unpack to.
fn one_colour(width: u32, height: u32) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, width, height);
    encoder.set_color(ColorType::Grayscale);
    encoder.set_depth(BitDepth::One);
    let mut writer = encoder.write_header().unwrap();
    let row = vec![0xff; width.div_ceil(8) as usize];
    writer
        .write_image_data(&row.repeat(height as usize))
        .unwrap();
    writer.finish().unwrap();
    out
}

/// The first chunk of a type: where it starts and its data.
fn chunk<'a>(bytes: &'a [u8], kind: &[u8]) -> (usize, &'a [u8]) {
    let at = (0..bytes.len())
        .find(|at| bytes[*at..].starts_with(kind))
        .unwrap();
    let length = u32::from_be_bytes(bytes[at - 4..at].try_into().unwrap()) as usize;
    (at - 4, &bytes[at + 4..at + 4 + length])
}

fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| {
            (crc >> 1) ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 }
        })
    })
}

/// A small picture with one more chunk in front of its pixels.
fn with_chunk(kind: &[u8; 4], data: &[u8]) -> Vec<u8> {
    let whole = one_colour(64, 64);
    let (at, _) = chunk(&whole, b"IDAT");
    let mut body = kind.to_vec();
    body.extend_from_slice(data);
    let mut out = whole[..at].to_vec();
    out.extend_from_slice(&u32::try_from(data.len()).unwrap().to_be_bytes());
    out.extend_from_slice(&body);
    out.extend_from_slice(&crc(&body).to_be_bytes());
    out.extend_from_slice(&whole[at..]);
    out
}

/// 60 MB of one byte, packed.
fn packed() -> Vec<u8> {
    let large = one_colour(60_000, 8_000);
    let packed = chunk(&large, b"IDAT").1.to_vec();
    assert!(packed.len() < 200_000);
    packed
}

#[test]
fn unpacks_no_more_of_a_profile_than_a_profile_can_be() {
    let mut profile = b"name\0\0".to_vec();
    profile.extend_from_slice(&packed());
    let (header, decoded) = read(&with_chunk(b"iCCP", &profile), 1568, None).unwrap();
    assert!(!header.is_plain, "the profile does not leave");
    assert_eq!(decoded.damage, None);
    assert_eq!(at(&decoded.raster, 9, 9), [255; 3]);
}

#[test]
fn unpacks_no_text() {
    let mut text = b"name\0\0".to_vec();
    text.extend_from_slice(&packed());
    let (header, decoded) = read(&with_chunk(b"zTXt", &text), 1568, None).unwrap();
    assert!(!header.is_plain, "the text does not leave");
    assert_eq!(decoded.damage, None);
    assert_eq!(at(&decoded.raster, 9, 9), [255; 3]);
}

#[test]
fn e17_decodes_a_hundred_million_pixels_and_no_more() {
    let (header, decoded) = read(&one_colour(10_000, 10_000), 1568, None).unwrap();
    assert_eq!((header.width, header.height), (10_000, 10_000));
    assert_eq!(
        (decoded.raster.width, decoded.raster.height),
        (3_334, 3_334)
    );
    assert!(decoded.raster.pixels.iter().all(|level| *level == 255));
    assert_eq!(refusal(&one_colour(10_001, 10_000)), RefusalKind::TooLarge);
}

#[test]
fn refuses_sixty_thousand_by_sixty_thousand_in_every_format() {
    const SIDE: u32 = 60_000;
    let le = SIDE.to_le_bytes();
    let be = SIDE.to_be_bytes();
    let canvas = (SIDE - 1).to_le_bytes();

    let mut png = one_colour(1, 1);
    png[16..20].copy_from_slice(&be);
    png[20..24].copy_from_slice(&be);

    let mut jpeg = b"\xff\xd8\xff\xc0\0\x11\x08".to_vec();
    jpeg.extend_from_slice(&[be[2], be[3], be[2], be[3]]);
    jpeg.extend_from_slice(b"\x03\x01\x22\0\x02\x11\x01\x03\x11\x01");
    jpeg.extend_from_slice(b"\xff\xda\0\x0c\x03\x01\0\x02\x11\x03\x11\0\x3f\0....\xff\xd9");

    let mut gif = b"GIF89a".to_vec();
    gif.extend_from_slice(&[le[0], le[1], le[0], le[1], 0x80, 0, 0, 0, 0, 0, 0, 0, 0]);
    gif.extend_from_slice(&[0x2c, 0, 0, 0, 0, le[0], le[1], le[0], le[1], 0, 2, 0, 0x3b]);

    let mut webp = b"RIFF\x30\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0".to_vec();
    webp.extend_from_slice(&canvas[..3]);
    webp.extend_from_slice(&canvas[..3]);
    webp.extend_from_slice(b"VP8L\x12\0\0\0\x2f\xff\xff\xff\x0f");
    webp.extend_from_slice(&[0; 13]);

    let mut bitmap = b"BM\x46\0\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".to_vec();
    bitmap.extend_from_slice(&le);
    bitmap.extend_from_slice(&le);
    bitmap.extend_from_slice(&[1, 0, 24, 0]);
    bitmap.extend_from_slice(&[0; 40]);

    let mut icon = b"\0\0\x01\0\x01\0\0\0\0\0\x01\0\x20\0\x28\0\0\0\x16\0\0\0\x28\0\0\0".to_vec();
    icon.extend_from_slice(&le);
    icon.extend_from_slice(&(SIDE * 2).to_le_bytes());
    icon.extend_from_slice(&[1, 0, 32, 0]);
    icon.extend_from_slice(&[0; 24]);

    let mut tiff = b"II*\0\x08\0\0\0\x08\0".to_vec();
    for (tag, value) in [
        (256_u16, SIDE),
        (257, SIDE),
        (258, 8),
        (259, 1),
        (262, 1),
        (273, 8),
        (278, SIDE),
        (279, 9),
    ] {
        tiff.extend_from_slice(&tag.to_le_bytes());
        tiff.extend_from_slice(&[4, 0, 1, 0, 0, 0]);
        tiff.extend_from_slice(&value.to_le_bytes());
    }
    tiff.extend_from_slice(&[0; 4]);

    for (name, bytes) in [
        ("png", png),
        ("jpeg", jpeg),
        ("gif", gif),
        ("bitmap", bitmap),
        ("icon", icon),
        ("tiff", tiff),
    ] {
        assert_eq!(refusal(&bytes), RefusalKind::TooLarge, "{name}");
    }
    // The picture inside contradicts the canvas, which is enough.
    assert_eq!(refusal(&webp), RefusalKind::Damaged);
}

#[test]
fn refuses_a_progressive_jpeg_of_too_many_scans() {
    let mut jpeg = b"\xff\xd8\xff\xc2\0\x0b\x08\x10\0\x10\0\x01\x01\x11\0".to_vec();
    for _ in 0..1_000 {
        jpeg.extend_from_slice(b"\xff\xda\0\x08\x01\x01\0\0\0\0");
    }
    jpeg.extend_from_slice(b"\xff\xd9");
    assert_eq!(refusal(&jpeg), RefusalKind::TooLarge);
}

#[test]
fn counts_the_pixels_that_are_delivered_as_memory_too() {
    // A bitmap of run lengths: a few bytes, 100,000,000 pixels.
    let mut bitmap = b"BM\0\0\0\0\0\0\0\0\x3e\0\0\0\x28\0\0\0".to_vec();
    bitmap.extend_from_slice(&10_000_u32.to_le_bytes());
    bitmap.extend_from_slice(&10_000_u32.to_le_bytes());
    bitmap.extend_from_slice(&[1, 0, 8, 0, 1, 0, 0, 0]);
    bitmap.extend_from_slice(&[0; 12]);
    bitmap.extend_from_slice(&[2, 0, 0, 0, 0, 0, 0, 0]);
    bitmap.extend_from_slice(&[0, 0, 0, 0, 255, 255, 255, 0]);
    bitmap.extend_from_slice(&[0, 1]);
    assert!(read(&bitmap, 1568, None).is_ok());
    assert_eq!(refusal(&bitmap), RefusalKind::TooLarge);
}
