//! Vendor `_meta`: what the protocol does not reserve (specification 1.9, design decision 7).

use serde_json::{Map, Value};

use crate::sanitise::strip_value;

/// The whole field is dropped above this.
pub(crate) const MAX_META_BYTES: usize = 16 * 1024;

/// Keys without a prefix that carry protocol plumbing.
const BARE: &[&str] = &["progressToken", "traceparent", "tracestate", "baggage"];

/// What remains of a `_meta` field.
#[derive(Debug, PartialEq)]
pub(crate) enum Meta {
    /// No vendor keys.
    Nothing,
    /// Something that is no object; it is ignored.
    NoObject,
    /// Vendor keys.
    Kept(Value),
    /// Too much of them.
    TooLarge {
        /// Length of the field as JSON.
        bytes: usize,
    },
}

/// Keeps vendor keys. TAG characters go first, so that they cannot disguise a reserved key.
pub(crate) fn vendor_keys(mut meta: Value) -> Meta {
    strip_value(&mut meta);
    let members = match meta {
        Value::Object(members) => members,
        Value::Null => return Meta::Nothing,
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Meta::NoObject;
        }
    };
    let kept: Map<String, Value> = members
        .into_iter()
        .filter(|(key, _)| !is_reserved(key))
        .collect();
    if kept.is_empty() {
        return Meta::Nothing;
    }
    let kept = Value::Object(kept);
    let bytes = kept.to_string().len();
    if bytes > MAX_META_BYTES {
        Meta::TooLarge { bytes }
    } else {
        Meta::Kept(kept)
    }
}

/// Whether either published rule reserves a key: 2025-06-18 a reserved label that another label
/// follows, 2025-11-25 a reserved second label.
fn is_reserved(key: &str) -> bool {
    if BARE.contains(&key) {
        return true;
    }
    let Some((prefix, _)) = key.split_once('/') else {
        return false;
    };
    let labels: Vec<String> = prefix
        .split('.')
        .map(|label| label.trim().to_ascii_lowercase())
        .collect();
    let reserved = |label: &String| matches!(label.as_str(), "modelcontextprotocol" | "mcp");
    let followed = labels
        .split_last()
        .is_some_and(|(_, before)| before.iter().any(reserved));
    followed || labels.get(1).is_some_and(reserved)
}

#[cfg(test)]
mod tests {
    use super::{MAX_META_BYTES, Meta, is_reserved, vendor_keys};
    use serde_json::json;

    #[test]
    fn m02_drops_the_field_where_every_key_is_reserved() {
        let meta = json!({"modelcontextprotocol.io/x": 1, "mcp.dev/y": 2});
        assert_eq!(vendor_keys(meta), Meta::Nothing);
    }

    #[test]
    fn m03_keeps_a_reserved_word_in_the_last_place() {
        let meta = json!({"com.example.mcp/x": 1, "tools.mcp.com/y": 2});
        assert_eq!(
            vendor_keys(meta),
            Meta::Kept(json!({"com.example.mcp/x": 1}))
        );
    }

    #[test]
    fn m04_knows_both_published_rules() {
        for key in [
            "io.modelcontextprotocol/x",
            "dev.mcp/x",
            "com.mcp.tools/z",
            "tools.mcp.com/q",
            "modelcontextprotocol.io/x",
            "MCP.dev/x",
            "io.ModelContextProtocol/x",
            "progressToken",
            "traceparent",
            "tracestate",
            "baggage",
        ] {
            assert!(is_reserved(key), "{key}");
        }
        for key in [
            "com.example/handoff",
            "com.example.mcp/x",
            "plain-key",
            "/leading-slash",
            "mcp/x",
            "modelcontextprotocol/x",
            "mcp",
            "com.example/mcp.dev/x",
        ] {
            assert!(!is_reserved(key), "{key}");
        }
    }

    #[test]
    fn a_tag_character_disguises_no_key() {
        let meta = json!({"mc\u{e0061}p.dev/x": 1, "com.e/h": "w\u{e0061}"});
        assert_eq!(vendor_keys(meta), Meta::Kept(json!({"com.e/h": "w"})));
    }

    #[test]
    fn ignores_what_is_no_object() {
        assert_eq!(vendor_keys(json!("not-an-object")), Meta::NoObject);
        assert_eq!(vendor_keys(json!(null)), Meta::Nothing);
        assert_eq!(vendor_keys(json!({})), Meta::Nothing);
    }

    #[test]
    fn drops_the_field_above_its_limit() {
        let fits = json!({"k": "x".repeat(MAX_META_BYTES - 8)});
        assert!(matches!(vendor_keys(fits), Meta::Kept(_)));
        let over = json!({"k": "x".repeat(MAX_META_BYTES - 7)});
        assert_eq!(
            vendor_keys(over),
            Meta::TooLarge {
                bytes: MAX_META_BYTES + 1
            }
        );
    }
}
