//! What fits, what does not and what is told of it.

use serde_json::{Value, json};

use super::*;

fn verdict(schema: &Value, arguments: &Value) -> Verdict {
    let check = ArgumentCheck::of(schema).unwrap();
    check.check(schema, arguments.as_object().unwrap())
}

#[track_caller]
fn fits(schema: &Value, arguments: &Value) {
    assert_eq!(verdict(schema, arguments), Verdict::Fits, "{arguments}");
}

#[track_caller]
fn refused(schema: &Value, arguments: &Value, words: &str) {
    assert_eq!(
        verdict(schema, arguments),
        Verdict::Refused(words.to_owned()),
        "{arguments}"
    );
}

/// A schema with one property.
#[expect(clippy::needless_pass_by_value, reason = "takes what `json!` makes")]
fn one(schema: Value) -> Value {
    json!({ "type": "object", "properties": { "x": schema } })
}

#[test]
fn what_is_missing_is_named() {
    let schema = json!({
        "type": "object",
        "properties": { "path": { "type": "string" }, "limit": { "type": "integer" } },
        "required": ["path"],
    });
    fits(&schema, &json!({ "path": "a" }));
    fits(&schema, &json!({ "path": "a", "limit": 3, "more": true }));
    refused(&schema, &json!({}), "/path: is required and missing");
    refused(
        &schema,
        &json!({ "limit": "3" }),
        "/path: is required and missing; /limit: expected integer, got string",
    );
}

#[test]
fn what_has_a_default_may_be_left_out() {
    // As playwright's `browser_take_screenshot` says it.
    let schema = json!({
        "type": "object",
        "properties": {
            "scale": {"type": "string", "enum": ["css", "device"], "default": "css"},
            "name": {"type": "string"},
        },
        "required": ["scale", "name"],
    });
    fits(&schema, &json!({"name": "a"}));
    refused(&schema, &json!({}), "/name: is required and missing");
}

#[test]
fn null_stands_for_what_may_be_left_out() {
    let schema = json!({
        "type": "object",
        "properties": {"n": {"type": "integer"}, "path": {"type": "string"}},
        "required": ["path"],
    });
    fits(&schema, &json!({"path": "a", "n": null}));
    refused(
        &schema,
        &json!({"path": null}),
        "/path: expected string, got null",
    );
    refused(
        &schema,
        &json!({"path": "a", "n": "1"}),
        "/n: expected integer, got string",
    );
}

#[test]
fn values_that_were_given_are_not_told() {
    let schema = one(json!({ "enum": ["a", "b"] }));
    refused(
        &schema,
        &json!({ "x": "s3cret" }),
        "/x: must be one of \"a\", \"b\"",
    );
    let schema = one(json!({ "type": "string", "pattern": "^[a-z]+$", "maxLength": 5 }));
    refused(
        &schema,
        &json!({ "x": "S3CRET" }),
        "/x: must have at most 5 characters",
    );
    refused(
        &schema,
        &json!({ "x": "S3" }),
        "/x: must match the pattern ^[a-z]+$",
    );
    fits(&schema, &json!({ "x": "abc" }));
}

#[test]
fn names_that_are_not_known_are_refused_where_the_schema_says_so() {
    let schema = json!({
        "type": "object",
        "properties": { "path": {}, "limit": {} },
        "additionalProperties": false,
    });
    refused(
        &schema,
        &json!({ "pth": 1 }),
        "/pth: is not known; known are path, limit",
    );
    let none = json!({ "type": "object", "properties": {}, "additionalProperties": false });
    refused(
        &none,
        &json!({ "a/b~c": 1 }),
        "/a~1b~0c: is not known; there are none",
    );
}

#[test]
fn numbers_are_compared_as_numbers() {
    let whole = one(json!({ "type": "integer", "minimum": 1, "maximum": 10 }));
    fits(&whole, &json!({ "x": 5.0 }));
    refused(
        &whole,
        &json!({ "x": 5.5 }),
        "/x: expected integer, got number",
    );
    refused(&whole, &json!({ "x": 0 }), "/x: must be at least 1");
    refused(&whole, &json!({ "x": 11 }), "/x: must be at most 10");
    let strict = one(json!({ "exclusiveMinimum": 0, "exclusiveMaximum": 1 }));
    refused(&strict, &json!({ "x": 0 }), "/x: must be more than 0");
    refused(&strict, &json!({ "x": 1 }), "/x: must be less than 1");
    let old = one(json!({ "minimum": 0, "exclusiveMinimum": true }));
    refused(&old, &json!({ "x": 0 }), "/x: must be more than 0");
    let steps = one(json!({ "multipleOf": 0.1 }));
    fits(&steps, &json!({ "x": 0.3 }));
    refused(
        &steps,
        &json!({ "x": 0.35 }),
        "/x: must be a multiple of 0.1",
    );
    fits(&one(json!({ "const": 1 })), &json!({ "x": 1.0 }));
}

#[test]
fn lists_are_walked() {
    let schema = one(json!({ "type": "array", "items": { "type": "string" }, "minItems": 1 }));
    fits(&schema, &json!({ "x": ["a"] }));
    refused(
        &schema,
        &json!({ "x": [] }),
        "/x: must have at least 1 items",
    );
    refused(
        &schema,
        &json!({ "x": ["a", 1] }),
        "/x/1: expected string, got number",
    );
    let pair = one(json!({ "prefixItems": [{ "type": "string" }], "items": false }));
    fits(&pair, &json!({ "x": ["a"] }));
    refused(&pair, &json!({ "x": ["a", 1] }), "/x/1: is not allowed");
    let old = one(json!({ "items": [{ "type": "string" }], "additionalItems": false }));
    refused(&old, &json!({ "x": ["a", 1] }), "/x/1: is not allowed");
    let unique = one(json!({ "uniqueItems": true }));
    refused(
        &unique,
        &json!({ "x": [1, 1.0] }),
        "/x: must not hold an item twice",
    );
}

#[test]
fn alternatives_are_tried() {
    let schema = one(json!({ "anyOf": [{ "type": "string" }, { "type": "null" }] }));
    fits(&schema, &json!({ "x": null }));
    refused(
        &schema,
        &json!({ "x": 1 }),
        "/x: expected string or null, got number",
    );
    let both = one(json!({ "oneOf": [{ "type": "integer" }, { "type": "number" }] }));
    fits(&both, &json!({ "x": 1 }));
    let nullable = one(json!({ "type": "string", "nullable": true }));
    fits(&nullable, &json!({ "x": null }));
    let either = json!({
        "type": "object",
        "properties": { "id": { "type": "string" }, "url": { "type": "string" } },
        "anyOf": [{ "required": ["id"] }, { "required": ["url"] }],
    });
    fits(&either, &json!({ "url": "x" }));
    refused(&either, &json!({}), "/: fits none of 2 alternatives");
    let conditional = json!({
        "type": "object",
        "if": { "properties": { "kind": { "const": "file" } }, "required": ["kind"] },
        "then": { "required": ["path"] },
        "not": { "required": ["forbidden"] },
    });
    fits(&conditional, &json!({ "kind": "other" }));
    refused(
        &conditional,
        &json!({ "kind": "file" }),
        "/path: is required and missing",
    );
    refused(
        &conditional,
        &json!({ "forbidden": 1 }),
        "/: is of a kind that is not allowed",
    );
}

#[test]
fn fr_176_references_that_lead_round_in_a_circle_end() {
    let schema = json!({
        "type": "object",
        "$defs": { "Q": {
            "type": "object",
            "properties": { "limit": { "type": "integer" }, "next": { "$ref": "#/$defs/Q" } },
        } },
        "properties": { "filter": { "$ref": "#/$defs/Q" } },
        "required": ["filter"],
    });
    fits(
        &schema,
        &json!({ "filter": { "next": { "next": { "limit": 1 } } } }),
    );
    refused(
        &schema,
        &json!({ "filter": { "next": { "limit": "1" } } }),
        "/filter/next/limit: expected integer, got string",
    );
    let itself = json!({ "type": "object", "properties": { "x": { "$ref": "#/properties/x" } } });
    assert_eq!(verdict(&itself, &json!({ "x": 1 })), Verdict::TooCostly);
}

#[test]
fn a_schema_that_is_none_or_leads_outside_is_not_enforced() {
    for (schema, why) in [
        (json!("text"), Unusable::Malformed),
        (one(json!({ "type": "any" })), Unusable::Malformed),
        (one(json!({ "required": true })), Unusable::Malformed),
        (one(json!({ "properties": [] })), Unusable::Malformed),
        (one(json!({ "anyOf": {} })), Unusable::Malformed),
        (
            one(json!({ "$ref": "https://example.com/s" })),
            Unusable::RefersOutside,
        ),
        (
            one(json!({ "$ref": "#/$defs/none" })),
            Unusable::RefersOutside,
        ),
        (
            one(json!({ "$ref": "other.json#/x" })),
            Unusable::RefersOutside,
        ),
        (one(json!({ "$dynamicRef": "#x" })), Unusable::RefersOutside),
    ] {
        assert_eq!(ArgumentCheck::of(&schema).unwrap_err(), why, "{schema}");
    }
}

#[test]
fn a_hostile_schema_costs_no_more_than_it_may() {
    let mut definitions = Map::new();
    for level in 0..40 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        definitions.insert(format!("d{level}"), json!({ "anyOf": [next, next] }));
    }
    definitions.insert("d40".to_owned(), json!({ "type": "string" }));
    let schema = json!({
        "type": "object",
        "$defs": definitions,
        "properties": { "x": { "$ref": "#/$defs/d0" } },
    });
    assert_eq!(verdict(&schema, &json!({ "x": 1 })), Verdict::TooCostly);
    let slow = one(json!({ "type": "string", "pattern": "^(a+)+$" }));
    let text = format!("{}b", "a".repeat(10_000));
    refused(
        &slow,
        &json!({ "x": text }),
        "/x: must match the pattern ^(a+)+$",
    );
    let huge = one(json!({ "type": "string", "pattern": "(((a{900}){900}){900})" }));
    fits(&huge, &json!({ "x": "b" }));
    let ahead = one(json!({ "type": "string", "pattern": "^(?!x)" }));
    fits(&ahead, &json!({ "x": "x" }));
    let mut deep = json!({ "type": "string" });
    for _ in 0..100 {
        deep = json!({ "not": deep });
    }
    assert_eq!(ArgumentCheck::of(&deep).unwrap_err(), Unusable::TooLarge);
}

#[test]
fn a_pattern_for_names_that_cannot_be_read_makes_the_check_milder() {
    let schema = json!({
        "type": "object",
        "patternProperties": { "^x-": { "type": "string" } },
        "additionalProperties": false,
    });
    fits(&schema, &json!({ "x-a": "b" }));
    refused(
        &schema,
        &json!({ "x-a": 1 }),
        "/x-a: expected string, got number",
    );
    refused(
        &schema,
        &json!({ "y": 1 }),
        "/y: is not known; there are none",
    );
    let unreadable = json!({
        "type": "object",
        "patternProperties": { "^(?!x)": { "type": "string" } },
        "additionalProperties": false,
    });
    fits(&unreadable, &json!({ "y": 1 }));
}

#[test]
fn before_2019_a_reference_stands_alone() {
    let schema = |dialect: &str| {
        json!({
            "$schema": dialect,
            "type": "object",
            "definitions": { "any": {} },
            "properties": { "x": { "$ref": "#/definitions/any", "type": "string" } },
        })
    };
    fits(
        &schema("http://json-schema.org/draft-07/schema#"),
        &json!({ "x": 1 }),
    );
    refused(
        &schema("https://json-schema.org/draft/2020-12/schema"),
        &json!({ "x": 1 }),
        "/x: expected string, got number",
    );
}
