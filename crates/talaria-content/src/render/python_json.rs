//! JSON as Python writes it: a blank after each comma and colon, characters as they are.

use std::io::{self, Write};

use serde::Serialize as _;
use serde_json::Value;
use serde_json::ser::{Formatter, Serializer};

struct Blanks;

impl Formatter for Blanks {
    fn begin_array_value<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        separate(out, first)
    }

    fn begin_object_key<W: ?Sized + Write>(&mut self, out: &mut W, first: bool) -> io::Result<()> {
        separate(out, first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, out: &mut W) -> io::Result<()> {
        out.write_all(b": ")
    }
}

fn separate<W: ?Sized + Write>(out: &mut W, first: bool) -> io::Result<()> {
    if first { Ok(()) } else { out.write_all(b", ") }
}

/// Writes a value; writing to memory cannot fail.
pub(super) fn to_string(value: &Value) -> String {
    let mut out = Vec::new();
    match value.serialize(&mut Serializer::with_formatter(&mut out, Blanks)) {
        Ok(()) => String::from_utf8(out).unwrap_or_default(),
        Err(_) => value.to_string(),
    }
}
