//! Whatever comes in, what leaves keeps the budget and opens elsewhere.

use proptest::prelude::*;
use talaria_image::{PictureFormat, Target, Tiling};

use crate::drawing::{Canvas, decoded, prepare, random};

/// Pictures between a clean page and pure noise.
fn canvas(width: u32, height: u32, kind: u8, noise: u8) -> Canvas {
    match kind {
        0 => Canvas::page(width, height),
        1 => Canvas::photo(width, height, noise),
        2 => Canvas::drawn(width, height, |x, y| {
            [random(x, y), random(x + 7_000, y), random(x, y + 7_000)]
        }),
        _ => Canvas::drawn(width, height, |x, y| {
            if x < width / 2 {
                [random(x, y) / 8 + 100; 3]
            } else {
                [(y / 9) as u8, 255, 0]
            }
        }),
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn the_budget_is_kept_and_the_picture_opens(
        (width, height) in (1_u32..700, 1_u32..700),
        kind in 0_u8..4,
        noise in 0_u8..60,
        budget in prop_oneof![64_usize << 10..80 << 10, 80_usize << 10..4 << 20],
        max_side in 64_u32..1_568,
        webp: bool,
        is_jpeg: bool,
        is_tiled: bool,
    ) {
        let canvas = canvas(width, height, kind, noise);
        let bytes = if is_jpeg { canvas.jpeg(85) } else { canvas.png() };
        let tiling = if is_tiled { Tiling::On { most: 4 } } else { Tiling::Off };
        let target = Target { budget, max_side, webp, region: None, tiling };
        let prepared = prepare(&bytes, &target).unwrap();
        prop_assert!((1..=4).contains(&prepared.pictures.len()));
        for picture in &prepared.pictures {
            prop_assert!(picture.url_length() <= budget);
            prop_assert!(picture.width.max(picture.height) <= max_side);
            prop_assert!(picture.width.min(picture.height) >= 32);
            prop_assert!(webp || picture.format != PictureFormat::WebP);
            // Never larger than the original, but for the padding.
            prop_assert!(picture.width <= width.max(32) && picture.height <= height.max(32));
            decoded(picture);
        }
    }
}
