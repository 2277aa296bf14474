//! What becomes of a number's digits.

/// Whether no 64-bit type would change the number: fractions do as they always did.
pub(super) fn fits(token: &str) -> bool {
    token.contains(['.', 'e', 'E']) || token.parse::<i64>().is_ok() || token.parse::<u64>().is_ok()
}

/// Whether the token is a number by the JSON grammar, of whatever size.
pub(super) fn is_number(token: &str) -> bool {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = token.strip_prefix('-').unwrap_or(token);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let (whole, fraction) = match mantissa.split_once('.') {
        Some((whole, fraction)) => (whole, Some(fraction)),
        None => (mantissa, None),
    };
    digits(whole)
        && (whole == "0" || !whole.starts_with('0'))
        && fraction.is_none_or(digits)
        && exponent.is_none_or(|text| digits(text.strip_prefix(['+', '-']).unwrap_or(text)))
}
