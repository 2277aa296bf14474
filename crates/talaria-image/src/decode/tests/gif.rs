//! GIF: the logical screen, many frames, damaged frames.

use std::borrow::Cow;

use ::gif::{Encoder, Frame};

use super::*;

const RED: [u8; 3] = [200, 0, 0];
const PALETTE: [u8; 9] = [200, 0, 0, 0, 200, 0, 0, 0, 200];

/// Frames of one colour each, as large as the screen.
fn animation(width: u16, height: u16, frames: usize) -> Vec<u8> {
    let mut out = Vec::new();
    let mut encoder = Encoder::new(&mut out, width, height, &PALETTE).unwrap();
    for index in 0..frames {
        let colour = (index % 3).to_le_bytes()[0];
        let pixels = vec![colour; usize::from(width) * usize::from(height)];
        let mut frame = Frame::from_indexed_pixels(width, height, pixels, None);
        // Incompressible codes are not needed here.
        frame.palette = None;
        encoder.write_frame(&frame).unwrap();
    }
    drop(encoder);
    out
}

#[test]
fn reads_the_first_frame_as_pillow_does() {
    let (header, decoded) = read(&picture("anim.gif"), 1568, None).unwrap();
    assert_eq!((header.frames, header.is_animated), (8, true));
    assert!(!header.is_plain);
    assert_eq!(decoded.damage, None);
    let places = [
        (10, 10, [89, 138, 198]),
        (266, 200, [129, 150, 183]),
        (400, 300, [146, 170, 172]),
        (793, 595, [126, 138, 90]),
    ];
    assert_near(&decoded.raster, &places, 0);
}

#[test]
fn composes_a_small_frame_on_the_logical_screen() {
    for interlaced in [false, true] {
        let mut out = Vec::new();
        let mut encoder = Encoder::new(&mut out, 12, 20, &PALETTE).unwrap();
        let mut pixels = vec![0; 4 * 10];
        pixels[4 * 9] = 1;
        let frame = Frame {
            left: 10,
            top: 5,
            width: 4,
            height: 10,
            interlaced,
            transparent: Some(1),
            buffer: Cow::Owned(if interlaced {
                interlace(&pixels, 4, 10)
            } else {
                pixels
            }),
            ..Frame::default()
        };
        encoder.write_frame(&frame).unwrap();
        drop(encoder);
        let (header, decoded) = read(&out, 1568, None).unwrap();
        assert_eq!((header.width, header.height), (12, 20));
        assert!(header.has_alpha);
        assert_eq!(decoded.damage, None);
        let white = [255; 3];
        let places = [
            (0, 0, white),
            (9, 8, white),
            (10, 5, RED),
            (11, 13, RED),
            (10, 14, white),
            (11, 14, RED),
            (11, 15, white),
        ];
        assert_near(&decoded.raster, &places, 0);
    }
}

/// Rows in the order in which an interlaced frame stores them.
fn interlace(pixels: &[u8], width: usize, height: usize) -> Vec<u8> {
    [(0, 8), (4, 8), (2, 4), (1, 2)]
        .into_iter()
        .flat_map(|(first, step)| (first..height).step_by(step))
        .flat_map(|row| pixels[row * width..(row + 1) * width].to_vec())
        .collect()
}

#[test]
fn counts_ten_thousand_frames_without_decoding_them() {
    let bytes = animation(64, 64, 10_000);
    let (header, decoded) = read(&bytes, 1568, None).unwrap();
    assert_eq!(header.frames, 10_000);
    assert_eq!(at(&decoded.raster, 0, 0), RED);
    assert_eq!(decoded.damage, None);
}

#[test]
fn e26_shows_the_first_frame_of_a_damaged_animation_and_says_so() {
    let bytes = animation(64, 64, 5);
    // The third frame: a code size that no decoder knows.
    let starts: Vec<usize> = (0..bytes.len())
        .filter(|at| bytes[*at..].starts_with(&[0x2c, 0, 0, 0, 0, 64, 0, 64, 0]))
        .collect();
    assert_eq!(starts.len(), 5);
    let mut broken = bytes.clone();
    broken[starts[2] + 10] = 99;
    let decoded = full(&broken).unwrap();
    assert_eq!(at(&decoded.raster, 5, 5), RED);
    assert_eq!(decoded.damage.unwrap(), "frame 3 is damaged");
    // Cut within the fourth frame.
    let decoded = full(&bytes[..starts[3] + 14]).unwrap();
    assert_eq!(at(&decoded.raster, 63, 63), RED);
    assert!(decoded.damage.unwrap().contains("frame"));
}

#[test]
fn shows_the_upper_part_of_a_cut_frame() {
    let bytes = picture("anim.gif");
    let decoded = full(&bytes[..200_000]).unwrap();
    let damage = decoded.damage.unwrap();
    assert!(damage.contains("upper"), "{damage}");
    assert_near(&decoded.raster, &[(10, 10, [89, 138, 198])], 0);
    assert_eq!(at(&decoded.raster, 10, 599), [255; 3]);
    assert_eq!(refusal(&bytes[..5_000]), RefusalKind::Damaged);
}

#[test]
fn refuses_a_screen_over_the_limit() {
    let mut bytes = animation(4, 4, 1);
    bytes[6..10].copy_from_slice(&[0x60, 0xea, 0x60, 0xea]);
    assert_eq!(refusal(&bytes), RefusalKind::TooLarge);
}

#[test]
fn refuses_a_frame_larger_than_any_screen() {
    let mut bytes = animation(10, 10, 1);
    let at = (0..bytes.len())
        .find(|at| bytes[*at..].starts_with(&[0x2c, 0, 0, 0, 0, 10, 0, 10, 0]))
        .unwrap();
    bytes[at + 5..at + 9].fill(0xff);
    // Interlaced, so that all of it would be held.
    bytes[at + 9] |= 0x40;
    assert_eq!(refusal(&bytes), RefusalKind::TooLarge);
}
