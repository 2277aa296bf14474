//! `Content-Disposition` for any file name (RFC 6266 with RFC 8187).

use actix_web::http::header::HeaderValue;

/// The header that makes a browser save a file under a name instead of showing it.
pub(crate) fn attachment(name: &str) -> HeaderValue {
    let plain: String = name.chars().map(plain_character).collect();
    let mut value = format!("attachment; filename=\"{plain}\"");
    if plain != name {
        value.push_str("; filename*=UTF-8''");
        for byte in name.bytes() {
            if is_attribute_character(byte) {
                value.push(char::from(byte));
            } else {
                value.push_str(&format!("%{byte:02X}"));
            }
        }
    }
    HeaderValue::from_str(&value).unwrap_or_else(|_| HeaderValue::from_static("attachment"))
}

/// What old clients read: printable ASCII that needs no escape. A percent sign is left out,
/// because some of them decode it.
const fn plain_character(character: char) -> char {
    match character {
        '"' | '\\' | '%' => '_',
        ' '..='~' => character,
        _ => '_',
    }
}

/// `attr-char` of RFC 8187.
const fn is_attribute_character(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
        || matches!(
            byte,
            b'!' | b'#' | b'$' | b'&' | b'+' | b'-' | b'.' | b'^' | b'_' | b'`' | b'|' | b'~'
        )
}

#[cfg(test)]
mod tests {
    use super::attachment;

    #[test]
    fn names_a_file_for_old_and_new_clients() {
        for (name, expected) in [
            ("report.pdf", "attachment; filename=\"report.pdf\""),
            ("two words.pdf", "attachment; filename=\"two words.pdf\""),
            (
                "résumé.pdf",
                "attachment; filename=\"r_sum_.pdf\"; filename*=UTF-8''r%C3%A9sum%C3%A9.pdf",
            ),
            (
                "a\"b\\c.txt",
                "attachment; filename=\"a_b_c.txt\"; filename*=UTF-8''a%22b%5Cc.txt",
            ),
            (
                "50%.txt",
                "attachment; filename=\"50_.txt\"; filename*=UTF-8''50%25.txt",
            ),
            (
                "x\r\nSet-Cookie: a",
                "attachment; filename=\"x__Set-Cookie: a\"; \
                 filename*=UTF-8''x%0D%0ASet-Cookie%3A%20a",
            ),
            ("", "attachment; filename=\"\""),
        ] {
            assert_eq!(attachment(name).to_str().unwrap(), expected);
        }
    }
}
