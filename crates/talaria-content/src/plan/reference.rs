//! Payloads inside structured content and `_meta`, and what is put in their place.

use serde_json::Value;

use crate::repeats::{Piece, Repeats};

use super::lines::SettledFile;
use super::shapes::Located;

/// What to put in the place of a string.
#[derive(Debug)]
pub(super) struct Patch {
    pub(super) root: Root,
    /// RFC 6901, relative to the root.
    pub(super) pointer: String,
    pub(super) pieces: Vec<Piece>,
}

/// Which value a patch belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Root {
    /// `structuredContent`.
    Structured,
    /// `_meta`.
    Meta,
}

/// Finds repeats in every string of a value and empties those strings.
pub(super) fn cut_value(
    root: Root,
    located: Option<&mut Located>,
    repeats: &Repeats<'_>,
    patches: &mut Vec<Patch>,
) {
    if let Some(located) = located {
        let mut walk = Walk {
            root,
            repeats,
            patches,
            path: Vec::new(),
        };
        walk.visit(&mut located.value);
    }
}

struct Walk<'a> {
    root: Root,
    repeats: &'a Repeats<'a>,
    patches: &'a mut Vec<Patch>,
    path: Vec<String>,
}

impl Walk<'_> {
    fn visit(&mut self, value: &mut Value) {
        match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
            Value::String(text) => {
                if let Some(pieces) = self.repeats.cut(text) {
                    text.clear();
                    let pointer = self.path.concat();
                    self.patches.push(Patch {
                        root: self.root,
                        pointer,
                        pieces,
                    });
                }
            }
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.path.push(format!("/{index}"));
                    self.visit(item);
                    self.path.pop();
                }
            }
            Value::Object(members) => {
                for (key, member) in members.iter_mut() {
                    self.path
                        .push(format!("/{}", key.replace('~', "~0").replace('/', "~1")));
                    self.visit(member);
                    self.path.pop();
                }
            }
        }
    }
}

/// Puts the references in, now that the files have their paths.
pub(super) fn apply(
    root: Root,
    located: Option<Located>,
    patches: &[Patch],
    files: &[SettledFile],
) -> Option<Value> {
    let mut value = located?.value;
    for patch in patches.iter().filter(|patch| patch.root == root) {
        if let Some(place) = value.pointer_mut(&patch.pointer) {
            let text: String = patch
                .pieces
                .iter()
                .map(|piece| text_of(piece, files))
                .collect();
            *place = Value::String(text);
        }
    }
    Some(value)
}

/// A piece in words.
pub(super) fn text_of(piece: &Piece, files: &[SettledFile]) -> String {
    let path = |file: usize| files.get(file).and_then(|file| file.path.as_deref());
    match piece {
        Piece::Words(words) => words.clone(),
        Piece::Repeat(file) => match path(*file) {
            Some(path) => format!("(base64 left out: the same bytes as {path})"),
            None => {
                "(base64 left out: the same bytes as a file that could not be stored)".to_owned()
            }
        },
        Piece::Moved(file) => match path(*file) {
            Some(path) => format!("(base64 left out: saved to {path})"),
            None => "(base64 left out: it could not be stored as a file)".to_owned(),
        },
        Piece::Refused(reason) => format!("(base64 left out: {reason})"),
    }
}
