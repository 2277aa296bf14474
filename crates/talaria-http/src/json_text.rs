//! Looks over a JSON text before values are made of it: what would be changed by that, and what
//! would take too much memory. Whether it is JSON at all is the parser's to say.

use std::fmt;

use talaria_config::defaults::MAX_JSON_VALUES;

/// Digits of a number that are shown.
const SHOWN_DIGITS: usize = 40;

/// Why no values are made of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum JsonFault {
    /// It holds more values than are read.
    TooMany,
    /// An integer that no 64-bit type holds: it would become another number.
    HugeInteger {
        /// How it begins.
        digits: String,
        /// Line, from 1.
        line: usize,
        /// Column in bytes, from 1.
        column: usize,
    },
}

impl fmt::Display for JsonFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooMany => write!(f, "more than {MAX_JSON_VALUES} JSON values"),
            Self::HugeInteger {
                digits,
                line,
                column,
            } => write!(
                f,
                "the integer {digits} at line {line} column {column}, which no 64-bit number \
                 holds and which would be changed on the way; if its digits matter, send them as \
                 a string"
            ),
        }
    }
}

/// Finds the first reason not to make values of a JSON text, in one pass that stores nothing.
///
/// # Errors
/// The fault. Numbers with a fraction or an exponent are floating point to everybody, and pass.
pub fn look_over(text: &[u8]) -> Result<(), JsonFault> {
    let mut values = 0_usize;
    let mut at = 0;
    while let Some(byte) = text.get(at) {
        let end = match byte {
            b'"' => after_string(text, at),
            b'-' | b'0'..=b'9' => after_number(text, at)?,
            b't' | b'f' | b'n' => after(text, at, u8::is_ascii_alphabetic),
            b'{' | b'[' => at + 1,
            _ => {
                at += 1;
                continue;
            }
        };
        if !(*byte == b'"' && is_key(text, end)) {
            values += 1;
        }
        if values > MAX_JSON_VALUES {
            return Err(JsonFault::TooMany);
        }
        at = end;
    }
    Ok(())
}

fn after_string(text: &[u8], start: usize) -> usize {
    let mut at = start + 1;
    loop {
        let rest = text.get(at..).unwrap_or_default();
        let Some(found) = rest.iter().position(|byte| matches!(byte, b'"' | b'\\')) else {
            return text.len();
        };
        at += found;
        if text.get(at) == Some(&b'"') {
            return at + 1;
        }
        at += 2;
    }
}

/// Whether the string that ended is a key.
fn is_key(text: &[u8], end: usize) -> bool {
    let next = after(text, end, u8::is_ascii_whitespace);
    text.get(next) == Some(&b':')
}

fn after_number(text: &[u8], start: usize) -> Result<usize, JsonFault> {
    let end = after(text, start, |byte| {
        byte.is_ascii_digit() || b"+-.eE".contains(byte)
    });
    let token = text.get(start..end).unwrap_or_default();
    let token = std::str::from_utf8(token).unwrap_or_default();
    let is_whole = !token.contains(['.', 'e', 'E']);
    if is_whole && token.parse::<i64>().is_err() && token.parse::<u64>().is_err() {
        let before = text.get(..start).unwrap_or_default();
        let line_start = before.iter().rposition(|byte| *byte == b'\n');
        return Err(JsonFault::HugeInteger {
            digits: shown(token),
            line: before.iter().filter(|byte| **byte == b'\n').count() + 1,
            column: start - line_start.map_or(0, |newline| newline + 1) + 1,
        });
    }
    Ok(end)
}

fn after(text: &[u8], start: usize, goes_on: impl Fn(&u8) -> bool) -> usize {
    let rest = text.get(start..).unwrap_or_default();
    let length = rest.iter().position(|byte| !goes_on(byte));
    start + length.unwrap_or(rest.len())
}

fn shown(token: &str) -> String {
    match token.get(..SHOWN_DIGITS) {
        Some(head) if token.len() > SHOWN_DIGITS => format!("{head}…"),
        Some(_) | None => token.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    #[test]
    fn finds_integers_that_would_change_and_no_others() {
        for text in [
            r#"{"a": [18446744073709551615, -9223372036854775808, 0, -0, 1e30, 0.1]}"#,
            r#"{"123456789012345678901234567890": "123456789012345678901234567890 \" 99999999999999999999"}"#,
            r#""\\""#,
            "",
        ] {
            assert_eq!(look_over(text.as_bytes()), Ok(()), "{text}");
        }
        for (text, digits, place) in [
            (
                r#"{"id":18446744073709551616}"#,
                "18446744073709551616",
                (1, 7),
            ),
            (
                "{\"s\": \"\\\\\",\n  \"id\": -9223372036854775809}",
                "-9223372036854775809",
                (2, 9),
            ),
            (
                "[1, [99999999999999999999]]",
                "99999999999999999999",
                (1, 6),
            ),
        ] {
            let (line, column) = place;
            let digits = digits.to_owned();
            let fault = JsonFault::HugeInteger {
                digits,
                line,
                column,
            };
            assert_eq!(look_over(text.as_bytes()), Err(fault), "{text}");
        }
    }

    #[test]
    fn shows_the_beginning_of_a_very_long_integer() {
        let text = "9".repeat(1_000_000);
        let fault = look_over(text.as_bytes()).unwrap_err().to_string();
        assert!(fault.contains(&format!("{}…", "9".repeat(40))), "{fault}");
        assert!(fault.len() < 250, "{fault}");
    }

    #[test]
    fn counts_values_and_not_keys() {
        for element in ["0", "\"x\"", "null", "{}", "[]", "\"a\\\"b\""] {
            let list = |values: usize| {
                let elements = vec![element; values];
                format!("[{}]", elements.join(" ,"))
            };
            assert_eq!(look_over(list(MAX_JSON_VALUES - 1).as_bytes()), Ok(()));
            assert_eq!(
                look_over(list(MAX_JSON_VALUES).as_bytes()),
                Err(JsonFault::TooMany),
                "{element}"
            );
        }
        let members = vec!["\"key\" : 1"; MAX_JSON_VALUES - 1].join(",");
        assert_eq!(look_over(format!("{{{members}}}").as_bytes()), Ok(()));
    }

    #[test]
    fn what_passes_is_read_as_it_was_written() {
        let text = r#"{"a":[18446744073709551615,-9223372036854775808,true,null,"x"],"b":{}}"#;
        look_over(text.as_bytes()).unwrap();
        let value: Value = serde_json::from_str(text).unwrap();
        assert_eq!(value.to_string(), text);
    }
}
