//! Regions, tiles, and what notes say of them.

use proptest::prelude::*;
use talaria_image::{Area, NoteKind, RefusalKind, Region, Target, Tiling};

use crate::drawing::{Canvas, decoded, only, prepare};

const fn region(x1: i64, y1: i64, x2: i64, y2: i64) -> Target {
    Target {
        budget: 262_144,
        max_side: 1_568,
        webp: true,
        region: Some(Region { x1, y1, x2, y2 }),
        tiling: Tiling::Off,
    }
}

/// Every pixel tells where it is.
fn map(width: u32, height: u32) -> Canvas {
    Canvas::drawn(width, height, |x, y| [(x / 16) as u8, (y / 16) as u8, 80])
}

#[test]
fn a_region_is_cut_before_anything_is_scaled() {
    let map = map(3_000, 2_000);
    let prepared = prepare(&map.png(), &region(1_000, 500, 1_100, 580)).unwrap();
    let picture = only(&prepared);
    assert_eq!((picture.width, picture.height), (100, 80));
    assert_eq!(
        picture.scale_note.as_deref(),
        Some("add 1000 to x and 500 to y to get coordinates of the original")
    );
    let part = Canvas::drawn(100, 80, |x, y| map.at(x + 1_000, y + 500));
    assert_eq!(decoded(picture).distance(&part), 0.0);
    assert_eq!(prepared.notes[0].kind, NoteKind::Cropped);
}

#[test]
fn a_region_is_held_inside_the_picture() {
    let prepared = prepare(&map(300, 200).png(), &region(-50, 150, 9_999, 9_999)).unwrap();
    let area = Area {
        x: 0,
        y: 150,
        width: 300,
        height: 50,
    };
    assert_eq!(only(&prepared).area, area);
}

#[test]
fn a_region_of_nothing_is_refused() {
    let png = map(300, 200).png();
    for (x1, y1, x2, y2) in [
        (0, 0, 0, 10),
        (300, 0, 400, 10),
        (10, 10, 5, 20),
        (0, -9, 9, 0),
    ] {
        let refusal = prepare(&png, &region(x1, y1, x2, y2)).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::BadRegion, "{}", refusal.detail);
    }
}

#[test]
fn a_region_of_everything_keeps_the_bytes() {
    let png = map(300, 200).png();
    let prepared = prepare(&png, &region(0, 0, 300, 200)).unwrap();
    assert!(only(&prepared).is_original);
}

#[test]
fn a_scaled_region_says_factor_and_offset() {
    let prepared = prepare(&map(4_000, 2_000).png(), &region(800, 0, 4_000, 2_000)).unwrap();
    let picture = only(&prepared);
    assert_eq!((picture.width, picture.height), (1_568, 980));
    assert_eq!(
        picture.scale_note.as_deref(),
        Some(
            "downscaled from 3200×2000 to 1568×980; multiply coordinates by 2.04, then add 800 \
             to x and 0 to y"
        )
    );
}

#[test]
fn a_tall_page_of_text_is_tiled_and_says_so() {
    let png = Canvas::page(1_200, 7_000).png();
    let single = prepare(&png, &Target::default()).unwrap();
    let kinds: Vec<NoteKind> = single.notes.iter().map(|note| note.kind).collect();
    assert_eq!(kinds, [NoteKind::Downscaled, NoteKind::HardToRead]);
    let way_out = &single.notes[1].text;
    for word in ["`region`", "POST /v1/images/deliver", "`tiles: auto`"] {
        assert!(way_out.contains(word), "{way_out}");
    }

    let target = Target {
        tiling: Tiling::Auto { most: 4 },
        ..Target::default()
    };
    let tiled = prepare(&png, &target).unwrap();
    assert_eq!(tiled.pictures.len(), 4);
    let kinds: Vec<NoteKind> = tiled.notes.iter().map(|note| note.kind).collect();
    assert_eq!(kinds, [NoteKind::Tiled]);
    for picture in &tiled.pictures {
        assert!(picture.url_length() <= 262_144);
        assert!(picture.width.max(picture.height) <= 1_568);
        decoded(picture);
    }
    assert!(tiled.pictures.windows(2).all(|pair| {
        let end = pair[0].area.y + pair[0].area.height;
        pair[1].area.y + 40 < end
    }));
}

#[test]
fn photos_and_readable_screens_are_not_tiled_by_auto() {
    let auto = Target {
        tiling: Tiling::Auto { most: 4 },
        ..Target::default()
    };
    for canvas in [Canvas::photo(4_000, 3_000, 6), Canvas::page(1_920, 1_080)] {
        only(&prepare(&canvas.png(), &auto).unwrap());
    }
    let on = Target {
        tiling: Tiling::On { most: 2 },
        ..Target::default()
    };
    let cut = prepare(&Canvas::photo(4_000, 3_000, 6).jpeg(70), &on).unwrap();
    assert_eq!(cut.pictures.len(), 2);
}

#[test]
fn tiles_show_their_part_of_the_picture() {
    let map = map(2_000, 1_000);
    let target = Target {
        max_side: 1_100,
        tiling: Tiling::On { most: 4 },
        ..Target::default()
    };
    let prepared = prepare(&map.png(), &target).unwrap();
    assert_eq!(prepared.pictures.len(), 2);
    for picture in &prepared.pictures {
        let area = picture.area;
        assert_eq!((picture.width, picture.height), (area.width, area.height));
        let part = Canvas::drawn(area.width, area.height, |x, y| {
            map.at(x + area.x, y + area.y)
        });
        // Colours may go, places may not.
        assert!(decoded(picture).distance(&part) < 6.0);
    }
}

/// Its PNG takes more bytes than that of the whole picture.
#[test]
fn a_region_of_a_small_file_loses_nothing() {
    let map = map(300, 200);
    let prepared = prepare(&map.png(), &region(5, 0, 132, 161)).unwrap();
    let shown = decoded(only(&prepared));
    assert_eq!(
        [shown.at(0, 0), shown.at(126, 160)],
        [map.at(5, 0), map.at(131, 160)]
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn any_region_shows_exactly_itself(
        x1 in -40_i64..320, y1 in -40_i64..220, width in 1_i64..200, height in 1_i64..200,
    ) {
        let map = map(300, 200);
        let (x2, y2) = (x1 + width, y1 + height);
        let is_empty = x2 <= 0 || y2 <= 0 || x1 >= 300 || y1 >= 200;
        match prepare(&map.png(), &region(x1, y1, x2, y2)) {
            Err(refusal) => {
                prop_assert!(is_empty);
                prop_assert_eq!(refusal.kind, RefusalKind::BadRegion);
            }
            Ok(prepared) => {
                prop_assert!(!is_empty);
                let picture = only(&prepared);
                let area = picture.area;
                prop_assert_eq!(i64::from(area.x), x1.max(0));
                prop_assert_eq!(i64::from(area.y), y1.max(0));
                prop_assert_eq!(i64::from(area.x + area.width), x2.min(300));
                prop_assert_eq!(i64::from(area.y + area.height), y2.min(200));
                prop_assert_eq!(picture.width, area.width.max(32));
                let shown = decoded(picture);
                for (x, y) in [(0, 0), (area.width - 1, 0), (0, area.height - 1)] {
                    prop_assert_eq!(shown.at(x, y), map.at(x + area.x, y + area.y));
                }
            }
        }
    }
}
