//! Cases of the specification.

use talaria_image::{NoteKind, PictureFormat, RefusalKind, SourceFormat, Target, inspect};

use crate::drawing::{Canvas, decoded, gif, only, prepare, random};

/// Characters of the `data:` URL of a JPEG, computed as a provider would see it.
fn url_length(media_type: &str, bytes: usize) -> usize {
    format!("data:{media_type};base64,").len() + bytes.div_ceil(3) * 4
}

#[test]
fn e09_a_photo_over_the_budget_becomes_a_jpeg_within_it() {
    let photo = Canvas::photo(1_000, 1_000, 1);
    let png = photo.png();
    assert!(
        url_length("image/png", png.len()) > 262_144,
        "{}",
        png.len()
    );
    let prepared = prepare(&png, &Target::default()).unwrap();
    let picture = only(&prepared);
    assert_eq!(picture.format, PictureFormat::Jpeg);
    assert_eq!((picture.width, picture.height), (1_000, 1_000));
    assert!(url_length("image/jpeg", picture.bytes.len()) <= 262_144);
    assert!(decoded(picture).distance(&photo) < 4.0);
    assert!(prepared.notes.is_empty(), "same size, nothing to note");
}

/// A JPEG of exactly so many bytes: comments fill it up.
fn jpeg_of(length: usize) -> Vec<u8> {
    let mut jpeg = Canvas::photo(400, 300, 3).jpeg(60);
    while jpeg.len() < length {
        let missing = length - jpeg.len();
        let segment = missing.min(60_000);
        let segment = if missing - segment < 4 {
            segment.min(missing).max(4)
        } else {
            segment
        };
        let mut comment = vec![0xff, 0xfe];
        comment.extend(((segment - 2) as u16).to_be_bytes());
        comment.resize(segment, b' ');
        jpeg.splice(2..2, comment);
    }
    assert_eq!(jpeg.len(), length);
    jpeg
}

#[test]
fn e10_the_real_url_length_decides_whether_bytes_pass() {
    for (length, passes) in [
        (196_533, true),
        (196_560, true),
        (196_590, true),
        (196_591, false),
    ] {
        let jpeg = jpeg_of(length);
        let prepared = prepare(&jpeg, &Target::default()).unwrap();
        let picture = only(&prepared);
        assert_eq!(picture.is_original, passes, "{length}");
        assert_eq!(picture.bytes == jpeg, passes, "{length}");
        assert!(url_length("image/jpeg", picture.bytes.len()) <= 262_144);
    }
}

#[test]
fn e12_sizes_and_factors_of_the_table() {
    let table = [
        ((1_500, 40), (1_500, 40), None),
        (
            (1_570, 1_570),
            (1_568, 1_568),
            Some("multiply coordinates by 1.00"),
        ),
        (
            (1_600, 900),
            (1_568, 882),
            Some("multiply coordinates by 1.02"),
        ),
        (
            (1_920, 1_080),
            (1_568, 882),
            Some("multiply coordinates by 1.22"),
        ),
        (
            (3_000, 2_000),
            (1_568, 1_045),
            Some("multiply coordinates by 1.91"),
        ),
        (
            (2_000, 127),
            (1_568, 100),
            Some("multiply coordinates by 1.28 (x) and 1.27 (y)"),
        ),
        (
            (3_000, 100),
            (1_568, 52),
            Some("multiply coordinates by 1.91 (x) and 1.92 (y)"),
        ),
    ];
    for ((width, height), size, factor) in table {
        let canvas = Canvas::drawn(width, height, |x, _| [(x / 8 % 256) as u8, 90, 20]);
        let prepared = prepare(&canvas.png(), &Target::default()).unwrap();
        let picture = only(&prepared);
        assert_eq!((picture.width, picture.height), size, "{width}×{height}");
        match (factor, &picture.scale_note) {
            (Some(factor), Some(note)) => assert!(note.ends_with(factor), "{note}"),
            (None, None) => assert!(picture.is_original),
            other => panic!("{width}×{height}: {other:?}"),
        }
    }
}

#[test]
fn e12_thin_pictures_are_padded_never_enlarged() {
    for (size, shown, padded) in [
        ((2_000, 30), (1_568, 24), (1_568, 32)),
        ((1_569, 10), (1_568, 10), (1_568, 32)),
        ((100, 20_000), (8, 1_568), (32, 1_568)),
        ((60_000, 64), (1_568, 2), (1_568, 32)),
        ((1, 1), (1, 1), (32, 32)),
    ] {
        let canvas = Canvas::drawn(size.0, size.1, |_, _| [10, 20, 200]);
        let prepared = prepare(&canvas.png(), &Target::default()).unwrap();
        let picture = only(&prepared);
        assert_eq!((picture.width, picture.height), padded, "{size:?}");
        let pixels = decoded(picture);
        assert_eq!(pixels.at(shown.0 - 1, shown.1 - 1), [10, 20, 200]);
        assert_eq!(pixels.at(padded.0 - 1, padded.1 - 1), [255; 3]);
        assert!(
            prepared
                .notes
                .iter()
                .any(|note| note.kind == NoteKind::Padded)
        );
    }
}

#[test]
fn e16_animations_become_a_padded_still_of_their_first_frame() {
    for frames in [100, 101] {
        let prepared = prepare(&gif(frames), &Target::default()).unwrap();
        assert_eq!(prepared.source.format, SourceFormat::Gif);
        let picture = only(&prepared);
        assert_eq!((picture.width, picture.height), (32, 32));
        assert_eq!(picture.format, PictureFormat::Png);
        assert_eq!(decoded(picture).at(0, 0), [200, 10, 10]);
        let kinds: Vec<NoteKind> = prepared.notes.iter().map(|note| note.kind).collect();
        assert_eq!(kinds, [NoteKind::FirstFrame, NoteKind::Padded]);
        let words = format!("the first of {frames} frames");
        assert!(
            prepared.notes[0].text.contains(&words),
            "{:?}",
            prepared.notes
        );
    }
}

/// A PNG of one colour, one bit per pixel.
fn vast(width: u32, height: u32) -> Vec<u8> {
    let mut file = Vec::new();
    let mut encoder = png::Encoder::new(&mut file, width, height);
    encoder.set_color(png::ColorType::Grayscale);
    encoder.set_depth(png::BitDepth::One);
    let mut writer = encoder.write_header().unwrap();
    let pixels = vec![0xff; width.div_ceil(8) as usize * height as usize];
    writer.write_image_data(&pixels).unwrap();
    writer.finish().unwrap();
    file
}

#[test]
fn e17_the_largest_picture_is_prepared_and_one_column_more_is_refused() {
    let prepared = prepare(&vast(10_000, 10_000), &Target::default()).unwrap();
    let picture = only(&prepared);
    assert_eq!((picture.width, picture.height), (1_568, 1_568));
    assert_eq!(decoded(picture).at(700, 700), [255; 3]);
    let refusal = prepare(&vast(10_001, 10_000), &Target::default()).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::TooLarge);
}

#[test]
fn what_fits_keeps_its_bytes() {
    let canvas = Canvas::photo(300, 200, 2);
    for bytes in [canvas.png(), canvas.jpeg(80)] {
        let prepared = prepare(&bytes, &Target::default()).unwrap();
        let picture = only(&prepared);
        assert!(picture.is_original);
        assert_eq!((&picture.bytes, prepared.encodes), (&bytes, 0));
        assert_eq!((&picture.scale_note, prepared.notes.len()), (&None, 0));
    }
}

/// A JPEG that says it lies on its side.
fn turned(mut jpeg: Vec<u8>) -> Vec<u8> {
    let exif =
        b"\xff\xe1\0\x22Exif\0\0MM\0*\0\0\0\x08\0\x01\x01\x12\0\x03\0\0\0\x01\0\x06\0\0\0\0\0\0";
    jpeg.splice(2..2, exif.iter().copied());
    jpeg
}

#[test]
fn what_must_be_turned_does_not_grow() {
    for quality in [60, 80, 95] {
        let jpeg = turned(Canvas::photo(640, 400, 4).jpeg(quality));
        let prepared = prepare(&jpeg, &Target::default()).unwrap();
        let picture = only(&prepared);
        assert_eq!((picture.width, picture.height), (400, 640));
        assert!(picture.bytes.len() <= jpeg.len(), "{quality}");
    }
}

#[test]
fn dithered_greys_keep_their_greys() {
    let dithered = Canvas::drawn(2_100, 1_330, |x, y| {
        [if u32::from(random(x, y)) < x * 255 / 2_100 {
            255
        } else {
            0
        }; 3]
    });
    let prepared = prepare(&dithered.png(), &Target::default()).unwrap();
    let shown = decoded(only(&prepared));
    let greys = shown
        .pixels
        .iter()
        .filter(|level| (60..200).contains(*level));
    assert!(greys.count() * 4 > shown.pixels.len(), "thresholded");
}

#[test]
fn damaged_bytes_never_pass() {
    let mut jpeg = Canvas::photo(300, 200, 2).jpeg(80);
    jpeg.truncate(jpeg.len() * 3 / 4);
    let prepared = prepare(&jpeg, &Target::default()).unwrap();
    let picture = only(&prepared);
    assert!(!picture.is_original);
    decoded(picture);
    assert!(
        prepared
            .notes
            .iter()
            .any(|note| note.kind == NoteKind::Damaged)
    );
}

#[test]
fn text_becomes_a_png_of_full_size() {
    let page = Canvas::page(1_920, 1_080);
    for (budget, webp) in [(262_144, true), (131_072, false), (65_536, true)] {
        let target = Target {
            budget,
            webp,
            ..Target::default()
        };
        let prepared = prepare(&page.png(), &target).unwrap();
        let picture = only(&prepared);
        assert_eq!(picture.format, PictureFormat::Png, "{budget}");
        assert!(url_length("image/png", picture.bytes.len()) <= budget);
        let least = if budget > 65_536 { 1_568 } else { 1_200 };
        assert!(picture.width >= least, "{budget}: {}", picture.width);
        decoded(picture);
    }
}

#[test]
fn a_photo_leaves_as_webp_only_where_the_route_takes_it() {
    let photo = Canvas::photo(1_500, 1_500, 24).png();
    let formats = [true, false].map(|webp| {
        let target = Target {
            budget: 65_536,
            webp,
            ..Target::default()
        };
        let prepared = prepare(&photo, &target).unwrap();
        let picture = only(&prepared);
        assert!(url_length(picture.format.media_type(), picture.bytes.len()) <= 65_536);
        decoded(picture);
        picture.format
    });
    assert_eq!(formats, [PictureFormat::WebP, PictureFormat::Jpeg]);
}

#[test]
fn few_colours_leave_without_loss() {
    let flag = Canvas::drawn(2_000, 1_500, |x, y| {
        if (x / 100 + y / 100) % 2 == 0 {
            [255, 0, 0]
        } else {
            [0, 0, 255]
        }
    });
    let target = Target {
        max_side: 4_000,
        budget: 16_000,
        ..Target::default()
    };
    let prepared = prepare(&flag.png(), &target).unwrap();
    let picture = only(&prepared);
    assert_eq!(decoded(picture).distance(&flag), 0.0);
}

#[test]
fn a_budget_that_nothing_fits_is_refused() {
    let target = Target {
        budget: 200,
        ..Target::default()
    };
    let refusal = prepare(&Canvas::photo(500, 500, 60).png(), &target).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::OverBudget);
}

#[test]
fn work_stops_when_nobody_waits() {
    let over = talaria_image::Watch::new(|| true);
    let png = Canvas::page(400, 300).png();
    let refusal = talaria_image::prepare(&png, &Target::default(), &over).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Abandoned);
}

#[test]
fn facts_are_read_without_decoding() {
    let facts = inspect(&vast(9_000, 8_000)).unwrap();
    assert_eq!(
        (facts.format, facts.width, facts.height, facts.frames),
        (SourceFormat::Png, 9_000, 8_000, 1)
    );
}
