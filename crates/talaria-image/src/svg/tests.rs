//! What is drawn, and what is refused before it is.
//!
//! The hostile documents are small; the times they would take are hours.

use super::*;
use crate::decode::{Need, decode};
use crate::watch::Watch;

fn render(text: &str, max_side: u32) -> Result<Raster, Refusal> {
    let header = header::read(text.as_bytes())?;
    let need = Need {
        max_side,
        region: None,
    };
    decode(text.as_bytes(), &header, &need, &Watch::never()).map(|decoded| decoded.raster)
}

fn refused(text: &str) -> RefusalKind {
    render(text, 1568).unwrap_err().kind
}

fn at(raster: &Raster, x: u32, y: u32) -> [u8; 3] {
    let place = (y * raster.width + x) as usize * 3;
    raster.pixels[place..place + 3].try_into().unwrap()
}

fn svg(inside: &str) -> String {
    format!(
        "<svg xmlns='http://www.w3.org/2000/svg' xmlns:xlink='http://www.w3.org/1999/xlink' \
         width='400' height='300'>{inside}</svg>"
    )
}

#[test]
fn draws_shapes_on_white() {
    let raster = render(
        &svg("<rect x='100' width='50' height='60' fill='#c80000'/>"),
        1568,
    )
    .unwrap();
    assert_eq!((raster.width, raster.height), (400, 300));
    assert_eq!(at(&raster, 10, 10), [255; 3]);
    assert_eq!(at(&raster, 120, 30), [200, 0, 0]);
}

#[test]
fn draws_large_documents_at_the_size_of_the_fit() {
    let text = "<svg xmlns='http://www.w3.org/2000/svg' width='40000' height='20000'>\
                <rect width='20000' height='20000' fill='blue'/></svg>";
    let raster = render(text, 1568).unwrap();
    assert_eq!((raster.width, raster.height), (1568, 784));
    assert_eq!(at(&raster, 780, 10), [0, 0, 255]);
    assert_eq!(at(&raster, 788, 10), [255; 3]);
}

#[test]
fn draws_a_region_as_if_cut_out() {
    let text = svg("<rect x='100' y='100' width='50' height='60' fill='#c80000'/>");
    let region = Rect {
        x: 90,
        y: 95,
        width: 20,
        height: 10,
    };
    let raster = draw(text.as_bytes(), (400, 300), region, 1568).unwrap();
    assert_eq!((raster.width, raster.height), (20, 10));
    assert_eq!(at(&raster, 9, 9), [255; 3]);
    assert_eq!(at(&raster, 10, 4), [255; 3]);
    assert_eq!(at(&raster, 11, 6), [200, 0, 0]);
}

#[test]
fn sets_text_in_the_bundled_font() {
    for family in ["Arial", "serif", "monospace", ""] {
        let text = svg(&format!(
            "<text x='20' y='100' font-size='80' font-family='{family}'>Hi Ж</text>"
        ));
        let raster = render(&text, 1568).unwrap();
        let dark = raster.pixels.chunks(3).filter(|pixel| pixel[0] < 80);
        assert!(dark.count() > 1_000, "{family}");
    }
}

#[test]
fn draws_pictures_of_data_urls_with_their_clip() {
    let mut png = Vec::new();
    let mut encoder = ::png::Encoder::new(&mut png, 2, 1);
    encoder.set_color(::png::ColorType::Rgba);
    let mut writer = encoder.write_header().unwrap();
    writer
        .write_image_data(&[0, 0, 200, 255, 0, 0, 0, 0])
        .unwrap();
    writer.finish().unwrap();
    let data = base64(&png);
    let text = svg(&format!(
        "<clipPath id='c'><rect width='100' height='50'/></clipPath>\
         <rect width='400' height='300' fill='#ffff00'/>\
         <g clip-path='url(#c)' opacity='1'><image width='200' height='100' \
         preserveAspectRatio='none' image-rendering='optimizeSpeed' \
         xlink:href='data:image/png;base64,{data}'/></g>\
         <rect x='300' width='10' height='10' fill='#00ff00'/>"
    ));
    let raster = render(&text, 1568).unwrap();
    assert_eq!(at(&raster, 50, 20), [0, 0, 200]);
    assert_eq!(at(&raster, 50, 80), [255, 255, 0], "clipped");
    assert_eq!(at(&raster, 150, 20), [255, 255, 0], "transparent");
    assert_eq!(at(&raster, 305, 5), [0, 255, 0]);
}

/// Six bits at a time.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::new();
    for part in bytes.chunks(3) {
        let mut word = [0; 4];
        word[1..=part.len()].copy_from_slice(part);
        let word = u32::from_be_bytes(word);
        for place in 0..=part.len() {
            let index = word >> (18 - 6 * place) & 63;
            text.push(char::from(LETTERS[index as usize]));
        }
    }
    while !text.len().is_multiple_of(4) {
        text.push('=');
    }
    text
}

#[test]
fn opens_no_file_and_no_address() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../tests/data/images/web1080.png"
    );
    assert!(std::fs::exists(path).unwrap());
    for href in [path, &format!("file://{path}"), "http://127.0.0.1:9/x.png"] {
        let text = svg(&format!(
            "<image width='400' height='300' xlink:href='{href}'/>"
        ));
        let raster = render(&text, 1568).unwrap();
        assert!(raster.pixels.iter().all(|level| *level == 255), "{href}");
    }
    let text = format!(
        "<!DOCTYPE svg [<!ENTITY x SYSTEM 'file://{path}'>]>{}",
        svg("<text y='50'>&x;</text>")
    );
    assert_ne!(
        render(&text, 1568).map(|_| ()),
        Ok(()),
        "external entities are errors"
    );
}

#[test]
fn refuses_patterns_inside_patterns() {
    let mut inside = String::from("<rect width='400' height='300' fill='url(#p0)'/>");
    for level in 0..40 {
        inside.push_str(&format!("<pattern id='p{level}' width='.5' height='.5'>"));
        for x in 0..10 {
            inside.push_str(&format!(
                "<rect x='{x}' width='90' height='90' fill='url(#p{})'/>",
                level + 1
            ));
        }
        inside.push_str("</pattern>");
    }
    let text = svg(&inside);
    assert!(text.len() < 40_000);
    assert_eq!(refused(&text), RefusalKind::TooComplex);
}

#[test]
fn refuses_use_of_use() {
    let mut inside = String::from("<g id='a0'><rect width='1' height='1'/></g>");
    for level in 1..30 {
        let reference = format!("<use xlink:href='#a{}'/>", level - 1);
        inside.push_str(&format!("<g id='a{level}'>{}</g>", reference.repeat(10)));
    }
    assert_eq!(refused(&svg(&inside)), RefusalKind::TooComplex);
}

#[test]
fn refuses_entities_that_grow() {
    let mut entities = String::from("<!ENTITY a0 '<rect width=\"1\" height=\"1\"/>'>");
    for level in 1..10 {
        entities.push_str(&format!(
            "<!ENTITY a{level} '{}'>",
            format!("&a{};", level - 1).repeat(10)
        ));
    }
    // The XML reader itself stops at these.
    let text = format!("<!DOCTYPE svg [{entities}]>{}", svg("&a9;"));
    assert_eq!(refused(&text), RefusalKind::Damaged);
    let long = "x".repeat(50_000);
    let text = format!(
        "<!DOCTYPE svg [<!ENTITY a '{long}'>]>{}",
        svg(&format!("<text>{}</text>", "&a;".repeat(10_000)))
    );
    assert_eq!(refused(&text), RefusalKind::TooComplex);
}

#[test]
fn refuses_what_only_costs_pixels() {
    let layers = "<g opacity='.9'>".repeat(60)
        + "<rect x='-9999' y='-9999' width='99999' height='99999'/>"
        + &"</g>".repeat(60);
    let large = |inside: &str| {
        format!("<svg xmlns='http://www.w3.org/2000/svg' width='1500' height='1500'>{inside}</svg>")
    };
    let whole = "width='1500' height='1500'";
    for (name, inside) in [
        ("layers", layers),
        (
            "gradients",
            format!(
                "<linearGradient id='g'><stop stop-color='red'/><stop offset='1'/></linearGradient>{}",
                format!("<rect {whole} fill='url(#g)'/>").repeat(800)
            ),
        ),
        (
            "turbulence",
            format!(
                "<filter id='f' x='0' y='0' width='1' height='1'><feTurbulence numOctaves='50' baseFrequency='.1'/></filter><rect {whole} filter='url(#f)'/>"
            ),
        ),
        (
            "morphology",
            format!(
                "<filter id='f'><feMorphology radius='200'/></filter><rect {whole} filter='url(#f)'/>"
            ),
        ),
        (
            "huge tile",
            format!(
                "<pattern id='p' patternUnits='userSpaceOnUse' width='30000' height='30000'><rect {whole}/></pattern><rect {whole} fill='url(#p)'/>"
            ),
        ),
        (
            "masks",
            format!(
                "<mask id='m'><rect {whole} fill='white'/></mask>{}",
                format!("<rect {whole} mask='url(#m)'/>").repeat(100)
            ),
        ),
        (
            "dashes",
            format!(
                "<path d='M0 0L1500 1500' stroke='red' stroke-dasharray='.001'/>{}",
                ""
            )
            .repeat(50),
        ),
        (
            "edges",
            format!("<path d='M0 0{}' />", "L0 1500L9 0".repeat(20_000)),
        ),
    ] {
        assert_eq!(refused(&large(&inside)), RefusalKind::TooComplex, "{name}");
    }
}

#[test]
fn refuses_deep_nesting_and_circles_end() {
    let deep = "<g>".repeat(50_000) + &"</g>".repeat(50_000);
    assert_eq!(refused(&svg(&deep)), RefusalKind::TooComplex);
    let circle = svg(
        "<pattern id='p' width='9' height='9' patternUnits='userSpaceOnUse'>\
         <rect width='9' height='9' fill='url(#p)'/></pattern>\
         <g id='a'><use xlink:href='#a'/></g><rect width='9' height='9' fill='url(#p)'/>",
    );
    assert!(render(&circle, 1568).is_ok());
}

#[test]
fn takes_what_drawing_programs_write() {
    let mut inside = String::from("<style>");
    for index in 0..30 {
        inside.push_str(&format!(".s{index}{{fill:url(#g{index});stroke:#000}}"));
    }
    inside.push_str("</style>");
    for index in 0..30 {
        inside.push_str(&format!(
            "<linearGradient id='g{index}'><stop stop-color='red'/><stop offset='1'/></linearGradient>"
        ));
    }
    for index in 0..2_000 {
        let (x, y) = (index % 80 * 5, index / 80 * 12);
        inside.push_str(&format!(
            "<g><path class='s{}' d='M{x} {y}c1 2 3 4 5 6s2 1 4 4L{x} {y}z'/></g>",
            index % 30
        ));
    }
    assert!(render(&svg(&inside), 1568).is_ok());
}

#[test]
fn refuses_text_that_would_be_read_again_and_again() {
    // Each of these would take the reader minutes to years.
    let brackets = svg(&"<".repeat(1_000_000));
    let attributes: String = (0..100_000).map(|index| format!(" a{index}=''")).collect();
    let attributes = svg(&format!("<rect{attributes}/>"));
    let selectors = "a,".repeat(20_000);
    let declarations = "fill:red;".repeat(20_000);
    let style = svg(&format!(
        "<style>{selectors}b{{{declarations}}}</style><rect/>"
    ));
    for text in [brackets, attributes, style] {
        assert_eq!(refused(&text), RefusalKind::TooComplex);
    }
}

#[test]
fn takes_its_size_from_its_view() {
    let text = "<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 30,20'/>";
    assert_eq!(size(text.as_bytes()).unwrap(), (30, 20));
    let text = "<svg xmlns='http://www.w3.org/2000/svg' width='1in' height='2in'/>";
    assert_eq!(size(text.as_bytes()).unwrap(), (96, 192));
}
