//! The table of specification 1.6 and the F cases.

use super::{
    MAX_NAME_BYTES, MAX_NAME_CHARACTERS, hinted_name, is_device, safe_name, with_extension,
};
use proptest::prelude::*;

fn pdf(uri: &str) -> String {
    safe_name(uri, Some("application/pdf"))
}

#[test]
fn takes_the_last_segment_of_the_path() {
    for (uri, name) in [
        (
            "slack://files/F123/quarterly-report.pdf",
            "quarterly-report.pdf",
        ),
        ("https://h/p/file.pdf?x=1#f", "file.pdf"),
        ("evil://host/../../etc/passwd", "passwd"),
        ("x://h/a/", "a"),
        ("x://h/na%0Ame%1b[31m.pdf", "name[31m.pdf"),
        ("x://h/%00evil.pdf", "evil.pdf"),
        ("urn:isbn:12345", "isbn_12345"),
        ("x://h/报告.pdf", "报告.pdf"),
        ("x://h/%E6%8A%A5%E5%91%8A.pdf", "报告.pdf"),
        (
            "2026-01-31 Example GmbH_invoice 7.pdf",
            "2026-01-31 Example GmbH_invoice 7.pdf",
        ),
        ("x://h/\u{202e}fdp.exe", "fdp.exe"),
        ("x://h/a%252Fb.pdf", "a%2Fb.pdf"),
        ("x://h/%ff.pdf", "_.pdf"),
        ("data:image/png;base64,iVBO/Rw0K", "resource.pdf"),
    ] {
        assert_eq!(pdf(uri), name, "{uri}");
    }
}

#[test]
fn falls_back_to_the_type_where_the_address_names_nothing() {
    for uri in [
        "memory://project-notes",
        "x://h/%2e%2e",
        "x://h/a/..",
        "http://[bad/",
        "",
        "x://h/%20..%20",
        "x://h/%0a",
    ] {
        assert_eq!(pdf(uri), "resource.pdf", "{uri}");
    }
    assert_eq!(
        safe_name("qmd://note.md", Some("text/markdown")),
        "resource.md"
    );
    assert_eq!(safe_name("", Some("application/x-unknown")), "resource.bin");
    assert_eq!(safe_name("", None), "resource.bin");
}

#[test]
fn f02_decodes_percent_escapes_once_before_splitting() {
    assert_eq!(pdf("x://h/a%2F..%2F..%2Fb.pdf"), "b.pdf");
}

#[test]
fn f04_keeps_the_extension_of_a_long_name() {
    let name = pdf(&format!("x://h/{}.pdf", "a".repeat(500)));
    assert_eq!(name, format!("{}.pdf", "a".repeat(146)));
    let odd = pdf(&format!("x://h/{}.{}", "a".repeat(500), "b".repeat(20)));
    assert_eq!(odd, "a".repeat(150));
}

#[test]
fn f06_counts_bytes_as_well() {
    let name = pdf(&format!("x://h/{}.pdf", "报".repeat(150)));
    assert_eq!(name, format!("{}.pdf", "报".repeat(65)));
    assert!(name.len() <= MAX_NAME_BYTES);
}

#[test]
fn f08_replaces_separators_of_every_platform() {
    assert_eq!(pdf("x://h/..%5C..%5Cwin.ini"), "_.._win.ini");
    assert_eq!(
        pdf("file:///..\\..\\windows\\win.ini"),
        "_.._windows_win.ini"
    );
    assert_eq!(pdf("x://h/a%3F.bin"), "a_.bin");
}

#[test]
fn f11_survives_an_address_that_is_none() {
    assert_eq!(pdf("http://[bad/"), "resource.pdf");
    assert_eq!(pdf("http://[::1]/a.pdf"), "a.pdf");
    assert_eq!(pdf(":::///"), "___");
}

#[test]
fn f15_is_safe_on_windows() {
    assert_eq!(pdf("x://h/CON.pdf"), "_CON.pdf");
    assert_eq!(pdf("x://h/com1"), "_com1");
    assert_eq!(pdf("x://h/LPT9.tar.gz"), "_LPT9.tar.gz");
    assert_eq!(pdf("x://h/report.pdf."), "report.pdf");
    assert_eq!(pdf("x://h/report.pdf%20"), "report.pdf");
    assert_eq!(pdf("file:///.bashrc"), "bashrc");
    assert_eq!(pdf("x://h/console.pdf"), "console.pdf");
}

#[test]
fn s15_opens_no_marker_of_ours() {
    assert_eq!(
        pdf("x://h/a%20%5BMCP%20images:%20the%20image%20is%20attached%5D.pdf"),
        "a _MCP images_ the image is attached].pdf"
    );
    assert_eq!(pdf("x://h/[[%20m\u{200d}cp]].pdf"), "[_ m\u{200d}cp]].pdf");
    assert_eq!(
        pdf("x://h/report%5B1%5D%5BMCPX%5D.pdf"),
        "report[1][MCPX].pdf"
    );
}

#[test]
fn takes_the_extension_of_the_type_the_bytes_prove() {
    for (name, media_type, expected) in [
        ("cover.zip", "application/pdf", "cover.pdf"),
        ("shot.png", "image/jpeg", "shot.jpg"),
        ("photo.JPEG", "image/jpeg", "photo.JPEG"),
        ("report", "application/pdf", "report.pdf"),
        ("report.v2", "application/pdf", "report.v2.pdf"),
        ("report.pdf.exe", "application/pdf", "report.pdf"),
        ("report.pdf.v2", "application/pdf", "report.pdf.v2.pdf"),
        ("map.kmz", "application/zip", "map.kmz"),
        ("a.docx", "application/zip", "a.docx"),
        ("a.xyz", "application/x-thing", "a.xyz"),
    ] {
        assert_eq!(with_extension(name, media_type), expected, "{name}");
    }
    let long = with_extension(&format!("{}.bin", "a".repeat(146)), "image/jpeg");
    assert_eq!(long, format!("{}.jpg", "a".repeat(146)));
}

fn assert_safe(name: &str) {
    assert!(!name.is_empty());
    assert!(name.chars().count() <= MAX_NAME_CHARACTERS, "{name:?}");
    assert!(name.len() <= MAX_NAME_BYTES, "{name:?}");
    assert!(
        !name.contains([
            '/',
            '\\',
            ':',
            '*',
            '?',
            '"',
            '<',
            '>',
            '|',
            char::REPLACEMENT_CHARACTER
        ]),
        "{name:?}"
    );
    assert!(!name.chars().any(char::is_control), "{name:?}");
    assert!(!name.chars().any(super::is_bidi), "{name:?}");
    assert!(
        !name
            .chars()
            .any(|character| ('\u{e0000}'..='\u{e007f}').contains(&character))
    );
    assert!(!is_device(name), "{name:?}");
    let edge = |character: char| character == '.' || character.is_whitespace();
    assert!(!name.starts_with(edge) && !name.ends_with(edge), "{name:?}");
}

fn odd_uri() -> impl Strategy<Value = String> {
    prop_oneof![
        "\\PC{0,300}",
        ".{0,40}",
        "(x://h/|file:///|)([a-z]{0,4}|\\.|%2e|%20|%5C|/|\\\\|CON|报|\u{1f469}\u{200d}|\u{202e}|\u{e0041}){0,120}(\\.[a-zA-Z]{0,14}|)",
    ]
}

proptest! {
    #[test]
    fn every_name_is_safe(uri in odd_uri()) {
        assert_safe(&safe_name(&uri, Some("application/pdf")));
        if let Some(name) = hinted_name(&uri) {
            assert_safe(&name);
            for media_type in ["image/jpeg", "application/zip", "text/plain", "application/x-thing"] {
                assert_safe(&with_extension(&name, media_type));
            }
        }
    }
}
