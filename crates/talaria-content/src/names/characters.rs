//! Which characters may stand in a file name, and which cannot be seen.

/// The character as it may stand in a name: itself, an underscore in its place, or nothing.
pub(super) fn allowed(character: char) -> Option<char> {
    match character {
        '\\' | '/' | ':' | '*' | '?' | '"' | '<' | '>' | '|' => Some('_'),
        char::REPLACEMENT_CHARACTER => Some('_'),
        '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{200b}' => None,
        '\u{e0000}'..='\u{e007f}' => None,
        _ if character.is_control() || is_bidi(character) || is_noncharacter(character) => None,
        _ => Some(character),
    }
}

/// Whether a character only makes sense before another one, so that no name is cut behind it.
pub(super) const fn joins(character: char) -> bool {
    matches!(character, '\u{200d}')
}

/// Characters that turn the direction of what follows.
pub(crate) const fn is_bidi(character: char) -> bool {
    matches!(
        character,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// Characters without a glyph that could hide the start of a word.
pub(crate) const fn is_invisible(character: char) -> bool {
    is_bidi(character)
        || matches!(
            character,
            '\u{00ad}'
                | '\u{034f}'
                | '\u{115f}'
                | '\u{1160}'
                | '\u{17b4}'
                | '\u{17b5}'
                | '\u{180b}'..='\u{180f}'
                | '\u{200b}'..='\u{200d}'
                | '\u{2060}'..='\u{2064}'
                | '\u{206a}'..='\u{206f}'
                | '\u{3164}'
                | '\u{fe00}'..='\u{fe0f}'
                | '\u{feff}'
                | '\u{ffa0}'
                | '\u{fff0}'..='\u{fffb}'
                | '\u{1d173}'..='\u{1d17a}'
                | '\u{e0100}'..='\u{e01ef}'
        )
}

fn is_noncharacter(character: char) -> bool {
    let code = u32::from(character);
    (0xfdd0..=0xfdef).contains(&code) || code & 0xfffe == 0xfffe
}
