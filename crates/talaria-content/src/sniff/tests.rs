//! Signatures of every format that changes what becomes of a block.

use super::{Class, Whole, decode_text, is_picture, sniff};

fn media_type(bytes: &[u8]) -> Option<&'static str> {
    sniff(bytes).map(|sniffed| sniffed.media_type)
}

fn zip_of(names: &[&str]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for name in names {
        bytes.extend_from_slice(b"PK\x03\x04\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0");
        bytes.extend_from_slice(&u16::try_from(name.len()).unwrap().to_le_bytes());
        bytes.extend_from_slice(&[0, 0]);
        bytes.extend_from_slice(name.as_bytes());
    }
    bytes
}

#[test]
fn tells_pictures_from_what_answers_in_their_place() {
    for picture in [
        b"\x89PNG\r\n\x1a\n".as_slice(),
        b"GIF89a",
        b"<?xml version=\"1.0\"?><svg xmlns=\"http://www.w3.org/2000/svg\"/>",
    ] {
        assert!(is_picture(picture), "{picture:?}");
    }
    for other in [
        b"".as_slice(),
        b"<!DOCTYPE html><title>Not found</title>",
        b"{\"error\":1}",
        b"%PDF-1.7\n",
    ] {
        assert!(!is_picture(other), "{other:?}");
    }
}

#[test]
fn knows_pictures() {
    let bitmap = [
        b"BM\x36\x0c\0\0\0\0\0\0\x36\0\0\0\x28\0\0\0".as_slice(),
        &[0; 40],
    ]
    .concat();
    let icon = [
        b"\0\0\x01\0\x01\0\x20\x20\0\0\0\0\x20\0".as_slice(),
        &[0; 16],
    ]
    .concat();
    for (bytes, expected) in [
        (b"\x89PNG\r\n\x1a\n".as_slice(), "image/png"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/gif"),
        (b"RIFF\x46\0\0\0WEBPVP8L", "image/webp"),
        (b"II*\0", "image/tiff"),
        (b"MM\0*", "image/tiff"),
        (&bitmap, "image/bmp"),
        (&icon, "image/vnd.microsoft.icon"),
        (b"\0\0\0\x18ftypheic\0\0\0\0mif1heic", "image/heic"),
        (b"\0\0\0\x18ftypmif1\0\0\0\0mif1avif", "image/avif"),
    ] {
        let sniffed = sniff(bytes).unwrap();
        assert_eq!(
            (sniffed.media_type, sniffed.class),
            (expected, Class::Raster)
        );
    }
}

#[test]
fn does_not_take_prose_for_a_picture() {
    for text in [
        "BMW sells cars and more of them every year",
        "MMXXV",
        "II. Chapter",
        "GIF87",
    ] {
        assert_eq!(media_type(text.as_bytes()), None, "{text}");
    }
}

#[test]
fn knows_sound_and_film() {
    for (bytes, expected, class) in [
        (
            b"RIFF\0\0\0\0WAVEfmt ".as_slice(),
            "audio/wav",
            Class::Audio,
        ),
        (b"OggS\0\x02", "audio/ogg", Class::Audio),
        (b"fLaC\0", "audio/flac", Class::Audio),
        (b"ID3\x04\0\0\0", "audio/mpeg", Class::Audio),
        (b"\0\0\0\x18ftypM4A \0\0\0\0", "audio/mp4", Class::Audio),
        (
            b"\0\0\0\x18ftypmp42\0\0\0\0mp42isom",
            "video/mp4",
            Class::Document,
        ),
        (
            b"\x1a\x45\xdf\xa3\x9f\x42\x82\x84webm",
            "video/webm",
            Class::Document,
        ),
    ] {
        let sniffed = sniff(bytes).unwrap();
        assert_eq!((sniffed.media_type, sniffed.class), (expected, class));
    }
    assert_eq!(media_type(b"\xff\xfet\0e\0x\0t\0"), None);
}

#[test]
fn looks_into_archives() {
    for (names, expected) in [
        (
            ["[Content_Types].xml", "word/document.xml"].as_slice(),
            "docx",
        ),
        (
            &["[Content_Types].xml", "_rels/.rels", "xl/workbook.xml"],
            "xlsx",
        ),
        (&["[Content_Types].xml", "ppt/presentation.xml"], "pptx"),
        (&["META-INF/MANIFEST.MF"], "jar"),
        (&["a.txt", "b/word/c"], "zip"),
    ] {
        let media_type = media_type(&zip_of(names)).unwrap();
        assert_eq!(crate::media_types::extension_of(media_type), Some(expected));
    }
    let mut open = zip_of(&["mimetype"]);
    open.extend_from_slice(b"application/vnd.oasis.opendocument.textPK");
    assert_eq!(
        media_type(&open),
        Some("application/vnd.oasis.opendocument.text")
    );
}

#[test]
fn knows_markup_by_its_first_tag() {
    for (text, expected) in [
        ("<!DOCTYPE html><p>", Some("text/html")),
        ("\n <HTML lang=en>", Some("text/html")),
        ("<!-- x --><html>", Some("text/html")),
        (
            "<svg xmlns='http://www.w3.org/2000/svg'/>",
            Some("image/svg+xml"),
        ),
        (
            "<?xml version='1.0'?>\n<!DOCTYPE svg PUBLIC ''><svg/>",
            Some("image/svg+xml"),
        ),
        (
            "\u{feff}<?xml version='1.0'?><note/>",
            Some("application/xml"),
        ),
        ("<note/>", None),
        ("<header>x</header>", None),
        ("a < b <html>", None),
    ] {
        assert_eq!(media_type(text.as_bytes()), expected, "{text}");
    }
}

#[test]
fn knows_documents() {
    assert_eq!(media_type(b"%PDF-1.4\n"), Some("application/pdf"));
    assert_eq!(media_type(b"{\\rtf1"), Some("application/rtf"));
    assert_eq!(
        media_type(b"SQLite format 3\0"),
        Some("application/vnd.sqlite3")
    );
    assert_eq!(media_type(b"hello"), None);
    assert_eq!(media_type(b""), None);
}

#[test]
fn decodes_text_by_its_mark() {
    assert_eq!(
        decode_text(b"\xef\xbb\xbfalpha", Whole::Yes).as_deref(),
        Some("alpha")
    );
    assert_eq!(
        decode_text(b"\xff\xfeg\0\xfc\0", Whole::Yes).as_deref(),
        Some("gü")
    );
    assert_eq!(
        decode_text(b"\xfe\xff\0g\0\xfc", Whole::Yes).as_deref(),
        Some("gü")
    );
    assert_eq!(decode_text(b"\0\xff\xd8", Whole::Yes), None);
    assert_eq!(decode_text(b"a\0b", Whole::Yes), None);
    assert_eq!(decode_text(b"\xff\xfeg\0\xfc", Whole::Yes), None);
}

#[test]
fn decodes_the_beginning_of_text() {
    assert_eq!(
        decode_text("grü".as_bytes().get(..3).unwrap(), Whole::No).as_deref(),
        Some("gr")
    );
    assert_eq!(
        decode_text(b"\xff\xfeg\0\xfc", Whole::No).as_deref(),
        Some("g")
    );
    assert_eq!(decode_text(b"gr\xffx", Whole::No), None);
}
