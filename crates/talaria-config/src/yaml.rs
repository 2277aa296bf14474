//! YAML text to a tree of values, within bounds.

use serde_json::Value;
use serde_saphyr::{DuplicateKeyPolicy, options};

use crate::defaults::MAX_FILE_BYTES;

/// Deepest nesting.
const MAX_DEPTH: usize = 32;
/// Most values, anchors expanded included.
const MAX_NODES: usize = 100_000;

/// Reads one YAML document; an empty one is an empty map.
///
/// Errors name line and column and never quote the line, which may hold a secret.
pub(crate) fn parse(text: &str) -> Result<Value, String> {
    if text.len() > MAX_FILE_BYTES {
        return Err(format!("the file is larger than {MAX_FILE_BYTES} bytes"));
    }
    let options = options! {
        budget: serde_saphyr::budget! {
            max_depth: MAX_DEPTH,
            max_nodes: MAX_NODES,
            max_events: 4 * MAX_NODES,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_documents: 1,
            max_merge_keys: 1_000,
        },
        duplicate_keys: DuplicateKeyPolicy::Error,
        leading_zero_numbers_as_strings: true,
        underscored_numbers_as_strings: true,
        strict_booleans: true,
        with_snippet: false,
    };
    match serde_saphyr::from_str_with_options::<Value>(text, options) {
        Ok(Value::Null) => Ok(Value::Object(serde_json::Map::new())),
        Ok(value) => Ok(value),
        Err(error) => Err(format!("not readable as YAML: {error}")),
    }
}
