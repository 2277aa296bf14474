//! The rows of specification 1.7 and cases B02 to B15, as far as the decoder decides them.

use super::{Base64Guard, Decoded, MAX_PAYLOAD_BYTES, MAX_PAYLOAD_CHARACTERS, decode};
use proptest::prelude::*;
use talaria_types::PayloadRefusal;

fn bytes(text: &str) -> Vec<u8> {
    decode(text).unwrap().0
}

fn reason(text: &str) -> String {
    let refusal = decode(text).unwrap_err();
    let PayloadRefusal::NotBase64 { reason } = refusal else {
        panic!("{text}: {refusal:?}")
    };
    reason
}

#[test]
fn b02_decodes_with_and_without_blanks() {
    for text in [
        "aGVsbG8=",
        "aGVsbG8=\n",
        " aGVs\r\n bG8\t=\x0c",
        "aG VsbG8 =",
        "\naGVsbG8=",
    ] {
        assert_eq!(bytes(text), b"hello", "{text:?}");
    }
}

#[test]
fn b03_accepts_missing_padding() {
    assert_eq!(bytes("aGVsbG8"), b"hello");
    assert_eq!(bytes("aGVsbG8h"), b"hello!");
}

#[test]
fn b04_refuses_characters_of_no_alphabet() {
    assert_eq!(reason("%%%%"), "it holds the character `%`");
    assert_eq!(
        reason("aGVs\0bG8="),
        "it holds the control character U+0000"
    );
    assert_eq!(reason("aGVsbG8é"), "it holds a character that is not ASCII");
}

#[test]
fn b05_refuses_the_empty_string() {
    for text in ["", " \r\n\t", "data:image/png;base64,"] {
        assert_eq!(decode(text).unwrap_err(), PayloadRefusal::Empty, "{text:?}");
    }
}

#[test]
fn b07_refuses_data_after_the_padding() {
    for text in ["aGU=aGU=", "aGVsbG8=zzzz", "aGU==a"] {
        assert_eq!(reason(text), "data after the padding", "{text}");
    }
}

#[test]
fn refuses_wrong_padding() {
    for text in ["aGVsbG8==", "====", "=", "aGVs=", "aGVs====", "aG="] {
        assert_eq!(reason(text), "the padding is wrong", "{text}");
    }
}

#[test]
fn refuses_a_left_over_character() {
    for text in ["a", "AAAAA"] {
        assert_eq!(
            reason(text),
            "one character is left over at the end",
            "{text}"
        );
    }
}

#[test]
fn b08_decodes_the_url_safe_alphabet() {
    assert_eq!(bytes("-_-_"), [0xfb, 0xff, 0xbf]);
    assert_eq!(bytes("a-_b"), bytes("a+/b"));
    assert_eq!(
        reason("a-/b"),
        "the standard and the url-safe alphabet are mixed"
    );
    assert_eq!(
        reason("AAAA++++----"),
        "the standard and the url-safe alphabet are mixed"
    );
}

#[test]
fn accepts_stray_trailing_bits() {
    let (bytes, decoded) = decode("AB==").unwrap();
    assert_eq!(bytes, [0]);
    assert!(!decoded.canonical);
}

#[test]
fn b09_takes_a_data_prefix_off() {
    let (bytes, decoded) = decode("Data:Image/PNG;charset=x;BASE64,aGVsbG8=").unwrap();
    assert_eq!(bytes, b"hello");
    assert_eq!(
        decoded,
        Decoded {
            data_url_type: Some("image/png".to_owned()),
            canonical: false,
            bytes: 5
        }
    );
    assert_eq!(
        decode("data:;base64,aGVsbG8=").unwrap().1.data_url_type,
        None
    );
}

#[test]
fn refuses_a_data_prefix_without_base64() {
    for text in [
        "data:image/png,iVBORw0KGgo",
        "data:image/png;base64",
        "data:",
        "data:aGVsbG8=",
    ] {
        assert_eq!(
            reason(text),
            "it starts like a data: URL but `;base64,` is missing",
            "{text}"
        );
    }
}

#[test]
fn shows_an_address_and_does_not_decode_it() {
    for text in [
        "https://images.example.invalid/cat.png",
        "HTTP://x",
        " http://h/a?b=c,d\n",
    ] {
        assert_eq!(
            decode(text).unwrap_err(),
            PayloadRefusal::Address {
                url: text.trim().to_owned()
            }
        );
    }
    assert_eq!(
        reason("https://h/a and b"),
        "it starts with an address and goes on as text"
    );
    assert_eq!(bytes("httphttp").len(), 6);
    assert_eq!(bytes("data").len(), 3);
}

#[test]
fn knows_canonical_strings() {
    for (text, canonical) in [
        ("aGVsbG8=", true),
        ("aGVs", true),
        ("aGVsbG8", false),
        ("aGVs\nbG8=", false),
        ("-_-_", false),
        ("+/+/", true),
    ] {
        assert_eq!(decode(text).unwrap().1.canonical, canonical, "{text}");
    }
}

fn encoded_length(bytes: u64) -> usize {
    usize::try_from(bytes.div_ceil(3) * 4).unwrap()
}

fn encoded_zeros(bytes: u64) -> String {
    let mut text = "A".repeat(encoded_length(bytes));
    let padding = usize::try_from((3 - bytes % 3) % 3).unwrap();
    text.truncate(text.len() - padding);
    text.push_str(&"=".repeat(padding));
    text
}

#[test]
fn b11_b12_draws_the_line_at_fifty_mebibytes() {
    let fits = encoded_zeros(MAX_PAYLOAD_BYTES);
    assert_eq!(fits.len(), 69_905_068);
    assert_eq!(length(&bytes(&fits)), MAX_PAYLOAD_BYTES);

    let one_more = encoded_zeros(MAX_PAYLOAD_BYTES + 1);
    assert_eq!(one_more.len(), 69_905_068);
    assert_eq!(
        decode(&one_more).unwrap_err(),
        PayloadRefusal::TooLarge {
            bytes: 52_428_801,
            exact: true
        }
    );

    let two_more = encoded_zeros(MAX_PAYLOAD_BYTES + 2);
    assert_eq!(two_more.len(), 69_905_072);
    assert_eq!(
        decode(&two_more).unwrap_err(),
        PayloadRefusal::TooLarge {
            bytes: 52_428_804,
            exact: false
        }
    );
    let mut out = Vec::new();
    let refusal = Base64Guard::new()
        .push(two_more.as_bytes(), &mut out)
        .unwrap_err();
    assert!(
        matches!(refusal, PayloadRefusal::TooLarge { exact: false, .. }),
        "{refusal:?}"
    );
}

#[test]
fn b14_counts_no_blanks() {
    let text = encoded_zeros(MAX_PAYLOAD_BYTES);
    let lines: Vec<&str> = text
        .as_bytes()
        .chunks(76)
        .map(|line| std::str::from_utf8(line).unwrap())
        .collect();
    let wrapped = lines.join("\r\n");
    assert!(wrapped.len() as u64 > MAX_PAYLOAD_CHARACTERS + 1_000_000);
    assert_eq!(length(&bytes(&wrapped)), MAX_PAYLOAD_BYTES);
}

fn length(bytes: &[u8]) -> u64 {
    bytes.len() as u64
}

fn in_pieces(text: &[u8], cuts: &[usize]) -> Result<(Vec<u8>, Decoded), PayloadRefusal> {
    let mut guard = Base64Guard::new();
    let mut out = Vec::new();
    let mut rest = text;
    for cut in cuts {
        let (piece, behind) = rest.split_at(cut % (rest.len() + 1));
        guard.push(piece, &mut out)?;
        rest = behind;
    }
    guard.push(rest, &mut out)?;
    let decoded = guard.finish(&mut out)?;
    Ok((out, decoded))
}

fn odd_text() -> impl Strategy<Value = String> {
    prop_oneof![
        "[A-Za-z0-9+/]{0,40}={0,3}",
        "[A-Za-z0-9_-]{0,40}={0,2}",
        "[ \t\r\nA-Za-z0-9+/_=-]{0,60}",
        "(data|DATA|dat|http|https)(:|://|)[a-z/;,]{0,12}(;base64,)?[A-Za-z0-9+/]{0,24}={0,2}",
        ".{0,30}",
    ]
}

proptest! {
    #[test]
    fn decoding_does_not_depend_on_the_pieces(
        text in odd_text(),
        cuts in proptest::collection::vec(0_usize..40, 0..8),
    ) {
        prop_assert_eq!(in_pieces(text.as_bytes(), &cuts), in_pieces(text.as_bytes(), &[]));
    }

    #[test]
    fn what_is_encoded_is_decoded(content in proptest::collection::vec(any::<u8>(), 1..200)) {
        use base64::Engine as _;
        let text = base64::engine::general_purpose::STANDARD.encode(&content);
        let (bytes, decoded) = decode(&text).unwrap();
        prop_assert_eq!(&bytes, &content);
        prop_assert!(decoded.canonical);
        let url_safe = base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(&content);
        prop_assert_eq!(&decode(&url_safe).unwrap().0, &content);
    }

    #[test]
    fn canonical_means_that_encoding_gives_the_string_back(text in odd_text()) {
        use base64::Engine as _;
        if let Ok((bytes, decoded)) = decode(&text) {
            let again = base64::engine::general_purpose::STANDARD.encode(&bytes);
            prop_assert_eq!(decoded.canonical, again == text);
            prop_assert_eq!(decoded.bytes, length(&bytes));
        }
    }
}
