//! JPEG: colours as Pillow reads them, reduction, damage.

use super::*;
use crate::orient::Orientation;

#[test]
fn reads_the_colours_that_pillow_reads() {
    let decoded = full(&picture("photo12.jpg")).unwrap();
    assert_eq!(decoded.damage, None);
    let places = [
        (10, 10, [90, 130, 200]),
        (1333, 1000, [131, 155, 181]),
        (2000, 1500, [152, 167, 172]),
        (3993, 2995, [169, 174, 118]),
    ];
    assert_near(&decoded.raster, &places, 2);
}

#[test]
fn reads_cmyk_as_pillow_does() {
    let bytes = picture("photo_cmyk.jpg");
    let (header, decoded) = read(&bytes, 1568, None).unwrap();
    assert!(!header.is_plain);
    let places = [
        (10, 10, [87, 126, 194]),
        (600, 400, [122, 153, 179]),
        (900, 600, [152, 164, 165]),
        (1793, 1195, [107, 115, 70]),
    ];
    assert_near(&decoded.raster, &places, 3);
}

#[test]
fn knows_how_a_photo_was_held() {
    let bytes = picture("photo_exif6.jpg");
    let (header, decoded) = read(&bytes, 4000, None).unwrap();
    assert_eq!(header.orientation, Orientation::QuarterRight);
    assert_eq!((header.width, header.height), (2000, 3000));
    assert_eq!(header.upright_size(), (3000, 2000));
    assert!(!header.is_plain);
    let places = [(10, 10, [89, 127, 198]), (1993, 2995, [161, 168, 114])];
    assert_near(&decoded.raster, &places, 2);
}

#[test]
fn averages_large_photos_while_they_are_decoded() {
    let bytes = picture("photo12.jpg");
    let whole = full(&bytes).unwrap().raster;
    // By the discrete cosine transform a factor may come closer to the fit.
    let close = if cfg!(feature = "c-decoders") { 2 } else { 1 };
    for (max_side, factor) in [(1568, 2), (800, 4), (400, 8), (1700, close)] {
        let small = read(&bytes, max_side, None).unwrap().1.raster;
        assert_eq!(
            (small.width, small.height),
            (4000 / factor, 3000 / factor),
            "{max_side}"
        );
        let (mut apart, mut levels) = (0_u32, 0_u32);
        for (x, y) in (0..small.width)
            .step_by(37)
            .flat_map(|x| (0..small.height).step_by(41).map(move |y| (x, y)))
        {
            let mut sum = [0_u32; 3];
            for (dx, dy) in (0..factor).flat_map(|dx| (0..factor).map(move |dy| (dx, dy))) {
                let colour = at(&whole, x * factor + dx, y * factor + dy);
                for (sum, level) in sum.iter_mut().zip(colour) {
                    *sum += u32::from(level);
                }
            }
            let area = factor * factor;
            let mean = sum.map(|sum| low((sum + area / 2) / area));
            let is = at(&small, x, y);
            for (is, due) in is.iter().zip(mean) {
                apart += u32::from(is.abs_diff(due));
                levels += 1;
            }
        }
        assert!(apart < levels, "{max_side}: {apart} of {levels} levels");
    }
}

#[test]
fn cuts_a_region_out_at_full_size() {
    let bytes = picture("photo12.jpg");
    let whole = full(&bytes).unwrap().raster;
    let region = Rect {
        x: 1001,
        y: 2003,
        width: 300,
        height: 200,
    };
    let part = read(&bytes, 1568, Some(region)).unwrap().1.raster;
    assert_eq!((part.width, part.height), (300, 200));
    for (x, y) in [(0, 0), (299, 0), (0, 199), (150, 100), (299, 199)] {
        let due = at(&whole, 1001 + x, 2003 + y);
        assert_near(&part, &[(x, y, due)], 1);
    }
}

#[test]
fn fr_021_shows_what_is_left_of_a_cut_photo() {
    let bytes = picture("photo12.jpg");
    let whole = full(&bytes).unwrap().raster;
    let (header, decoded) = read(&bytes[..1_500_000], 4000, None).unwrap();
    assert!(!header.is_plain, "a cut file never leaves as it is");
    let damage = decoded.damage.unwrap();
    assert!(damage.contains("ends early"), "{damage}");
    for (x, y) in [(10, 10), (3000, 1000)] {
        assert_near(&decoded.raster, &[(x, y, at(&whole, x, y))], 1);
    }
    assert_eq!(at(&decoded.raster, 10, 2990), [255; 3]);
}

#[test]
fn refuses_a_photo_that_is_cut_before_anything_shows() {
    let bytes = picture("photo12.jpg");
    for length in [3, 20, 200, 700, 20_000] {
        assert_eq!(refusal(&bytes[..length]), RefusalKind::Damaged, "{length}");
    }
}

#[test]
fn notices_that_only_the_end_is_missing() {
    let bytes = picture("photo_cmyk.jpg");
    let decoded = full(&bytes[..bytes.len() - 2]).unwrap();
    assert!(decoded.damage.unwrap().contains("end"));
}

#[test]
fn never_lets_an_odd_photo_leave_as_it_is() {
    let bytes = picture("photo_exif6.jpg");
    // Without its orientation it would be plain.
    let app1 = usize::from(u16::from_be_bytes([bytes[22], bytes[23]]));
    assert_eq!(bytes[20..22], [0xff, 0xe1]);
    let mut upright = bytes[..20].to_vec();
    upright.extend_from_slice(&bytes[22 + app1..]);
    let plain = |bytes: &[u8]| {
        let (header, decoded) = read(bytes, 4000, None).unwrap();
        header.is_plain
            && decoded.damage.is_none()
            && crate::decode::is_exact(bytes, &header, &Watch::never()).unwrap()
    };
    assert!(plain(&upright));
    let with = |at: usize, put: &[u8]| {
        let mut odd = upright.clone();
        odd.splice(at..at, put.iter().copied());
        odd
    };
    assert!(!plain(&with(20, &[0x41; 9])), "bytes between segments");
    assert!(
        !plain(&with(20, b"\xff\xe2\0\x08MPF\0..")),
        "several pictures"
    );
    let mut version = upright.clone();
    version[11] = 9;
    assert!(!plain(&version), "a version nobody knows");
    let mut taller = upright.clone();
    let frame = (0..upright.len())
        .find(|at| upright[*at..].starts_with(&[0xff, 0xc0]))
        .unwrap();
    taller[frame + 5] += 1;
    assert!(!plain(&taller), "more rows than there are");
    let mut zeros = upright.clone();
    let middle = upright.len() / 2;
    zeros[middle..middle + 40_000].fill(0);
    assert!(!plain(&zeros), "a hole in the scan");
}
