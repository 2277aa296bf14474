//! What a model may be shown of a server's words (design decisions 6 and 8).
//!
//! Three passes in an order in which none can undo another: TAG characters first, then escape
//! sequences and control characters, then the starts of lines. Every pass hands a clean text
//! through untouched.

mod fields;
mod line_starts;
mod tags;
mod terminal;
mod values;

use std::borrow::Cow;

pub use fields::visible_line;
pub(crate) use fields::{address, field, one_line};
pub use tags::strip_tags;
pub use terminal::strip_terminal;
pub use values::strip_value;
pub(crate) use values::{json_line, map_strings};

pub(crate) use line_starts::{LineStart, opens_marker};

/// A server's words as a model may read them: no TAG characters, no escape sequences, no control
/// characters but newline and tab, no line that opens like a line of ours.
#[must_use]
pub fn model_text(text: &str) -> Cow<'_, str> {
    clean(text, LineStart::Yes)
}

/// The same for words that may follow something on their first line.
pub(crate) fn clean(text: &str, start: LineStart) -> Cow<'_, str> {
    let text = strip_tags(text);
    let text = and_then(text, strip_terminal);
    and_then(text, |text| line_starts::neutralise(text, start))
}

/// One more pass over a text that may still be the original.
fn and_then<'a>(text: Cow<'a, str>, pass: impl Fn(&str) -> Cow<'_, str>) -> Cow<'a, str> {
    match text {
        Cow::Borrowed(text) => match pass(text) {
            Cow::Borrowed(_) => Cow::Borrowed(text),
            Cow::Owned(changed) => Cow::Owned(changed),
        },
        Cow::Owned(text) => match pass(&text) {
            Cow::Borrowed(_) => Cow::Owned(text),
            Cow::Owned(changed) => Cow::Owned(changed),
        },
    }
}

#[cfg(test)]
mod tests;
