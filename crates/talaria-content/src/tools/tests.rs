//! What each provider is handed.

use proptest::prelude::*;
use serde_json::{Value, json};

use super::keywords::for_each;
use super::references::References;
use super::{ToolFormat, mend_input_schema, render_tools};

fn tool(schema: Value) -> Value {
    json!({
        "name": "mcp__s__t",
        "description": "Does it.",
        "inputSchema": mend_input_schema(schema).schema,
    })
}

fn rendered(schema: Value, format: ToolFormat) -> Value {
    render_tools([&tool(schema)], format)
}

fn openai(schema: Value) -> Value {
    rendered(schema, ToolFormat::Openai)[0]["function"]["parameters"].clone()
}

fn gemini(schema: Value) -> Value {
    rendered(schema, ToolFormat::Gemini)[0]["functionDeclarations"][0]["parameters"].clone()
}

fn property(schema: &Value) -> Value {
    json!({ "type": "object", "properties": { "x": schema } })
}

/// Every reference inside a schema.
fn references(schema: &Value) -> Vec<String> {
    match schema {
        Value::Object(members) => {
            let own = members.get("$ref").and_then(Value::as_str);
            let own = own.map(ToOwned::to_owned);
            own.into_iter()
                .chain(members.values().flat_map(references))
                .collect()
        }
        Value::Array(items) => items.iter().flat_map(references).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => Vec::new(),
    }
}

#[test]
fn every_provider_gets_its_own_shape() {
    let schema = json!({ "type": "object", "properties": { "a": { "type": "string" } } });
    let shape = |format| rendered(schema.clone(), format);
    assert_eq!(shape(ToolFormat::Mcp)[0]["inputSchema"], schema);
    assert_eq!(
        shape(ToolFormat::Openai),
        json!([{ "type": "function", "function": {
            "name": "mcp__s__t", "description": "Does it.", "parameters": schema,
        } }])
    );
    assert_eq!(
        shape(ToolFormat::OpenaiResponses),
        json!([{
            "type": "function", "name": "mcp__s__t", "description": "Does it.",
            "parameters": schema, "strict": false,
        }])
    );
    assert_eq!(
        shape(ToolFormat::Anthropic),
        json!([{ "name": "mcp__s__t", "description": "Does it.", "input_schema": schema }])
    );
    assert_eq!(
        shape(ToolFormat::Gemini),
        json!([{ "functionDeclarations": [
            { "name": "mcp__s__t", "description": "Does it.", "parameters": schema },
        ] }])
    );
    for format in ToolFormat::ALL {
        assert_eq!(ToolFormat::from_word(format.as_str()), Some(format));
        assert_eq!(render_tools([], format), json!([]));
    }
}

#[test]
fn a_tool_without_words_or_parameters_is_whole() {
    let bare = json!({ "name": "t", "title": "A title", "inputSchema": { "type": "object", "properties": {} } });
    assert_eq!(
        render_tools([&bare], ToolFormat::Gemini)[0]["functionDeclarations"],
        json!([{ "name": "t", "description": "A title" }])
    );
    let silent = json!({ "name": "t", "inputSchema": { "type": "object", "properties": {} } });
    assert_eq!(
        render_tools([&silent], ToolFormat::Gemini)[0]["functionDeclarations"][0]["description"],
        "t"
    );
    assert_eq!(
        render_tools([&silent], ToolFormat::Anthropic)[0].get("description"),
        None
    );
}

#[test]
fn fr_176_references_resolve_and_recursion_ends() {
    let schema = json!({
        "type": "object",
        "$defs": { "Q": { "type": "object", "properties": {
            "limit": { "type": "integer", "default": 20 }, "next": { "$ref": "#/$defs/Q" },
        } } },
        "properties": { "filter": { "$ref": "#/$defs/Q" } },
        "required": ["filter"],
        "additionalProperties": false,
    });
    for format in [ToolFormat::Mcp, ToolFormat::Openai, ToolFormat::Anthropic] {
        let text = rendered(schema.clone(), format).to_string();
        assert!(
            text.contains("\"limit\"") && text.contains("#/$defs/Q"),
            "{text}"
        );
    }
    let flat = gemini(schema);
    assert_eq!(references(&flat), Vec::<String>::new());
    assert_eq!(
        flat,
        json!({ "type": "object", "required": ["filter"], "properties": { "filter": {
            "type": "object", "properties": {
                "limit": { "type": "integer", "default": 20 }, "next": { "type": "object" },
            },
        } } })
    );
}

#[test]
fn fr_178_ghosts_are_not_required() {
    let mended = mend_input_schema(json!({
        "type": "object", "properties": { "x": { "type": "string" } }, "required": ["x", "ghost"],
    }));
    assert_eq!(mended.schema["required"], json!(["x"]));
    assert_eq!(mended.changes, ["`ghost` is required and no property"]);
    let nested = mend_input_schema(property(&json!({
        "type": "object", "properties": {}, "required": ["ghost"],
    })));
    assert_eq!(
        nested.changes,
        ["/properties/x: `ghost` is required and no property"]
    );
    let branches = json!({
        "type": "object",
        "properties": { "a": {}, "b": {} },
        "anyOf": [{ "required": ["a"] }, { "properties": { "b": { "type": "string" } }, "required": ["a", "b"] }],
    });
    assert_eq!(mend_input_schema(branches.clone()).schema, branches);
}

#[test]
fn older_drafts_become_the_current_one() {
    let mended = mend_input_schema(json!({
        "$schema": "http://json-schema.org/draft-04/schema#",
        "id": "kept",
        "definitions": { "a/b": { "type": "string" }, "N": { "type": "number" } },
        "properties": {
            "s": { "$ref": "#/definitions/a~1b" },
            "n": { "allOf": [{ "$ref": "#/definitions/N" }], "minimum": 1, "exclusiveMinimum": true },
            "t": { "type": "array", "items": [{ "type": "string" }], "additionalItems": false },
            "r": { "type": "String", "required": true },
            "w": "int",
            "z": null,
        },
    }));
    assert_eq!(
        mended.schema,
        json!({
            "id": "kept",
            "type": "object",
            "$defs": { "a/b": { "type": "string" }, "N": { "type": "number" } },
            "properties": {
                "s": { "$ref": "#/$defs/a~1b" },
                "n": { "allOf": [{ "$ref": "#/$defs/N" }], "exclusiveMinimum": 1 },
                "t": { "type": "array", "prefixItems": [{ "type": "string" }], "items": false },
                "r": { "type": "string" },
                "w": { "type": "integer" },
                "z": {},
            },
            "required": ["r"],
        })
    );
    assert_eq!(mended.changes, Vec::<String>::new());
}

#[test]
fn references_outside_and_nowhere_are_dropped() {
    let mended = mend_input_schema(json!({
        "$id": "https://me.example/schema",
        "$defs": { "loop": { "$ref": "#/$defs/loop" }, "ok": { "$anchor": "here", "type": "string" } },
        "properties": {
            "a": { "$ref": "https://evil.example/x.json", "description": "kept" },
            "b": { "$ref": "#/$defs/missing" },
            "c": { "$ref": "#/$defs/loop" },
            "d": { "$ref": "#here" },
            "e": { "$ref": "https://me.example/schema#/$defs/ok" },
            "f": { "$ref": "file:///etc/passwd" },
        },
    }));
    let properties = &mended.schema["properties"];
    assert_eq!(properties["a"], json!({ "description": "kept" }));
    assert_eq!(properties["b"], json!({}));
    assert_eq!(properties["c"], json!({}));
    assert_eq!(properties["d"], json!({ "$ref": "#here" }));
    assert_eq!(properties["e"], json!({ "$ref": "#/$defs/ok" }));
    assert_eq!(properties["f"], json!({}));
    assert_eq!(mended.changes.len(), 5, "{:?}", mended.changes);
}

#[test]
fn a_schema_that_is_none_is_an_empty_object() {
    let empty = json!({ "type": "object", "properties": {} });
    for odd in [
        json!(null),
        json!("string"),
        json!([]),
        json!({ "type": "string" }),
        json!({ "type": ["object", "null"], "properties": [] }),
        json!({ "properties": {}, "required": "x", "description": null }),
    ] {
        assert_eq!(mend_input_schema(odd.clone()).schema, empty, "{odd}");
    }
}

#[test]
fn a_schema_of_absurd_size_is_not_offered() {
    let empty = json!({ "type": "object", "properties": {} });
    let many = property(&json!({ "enum": vec![0; 10_001] }));
    let long = property(&json!({ "description": "x".repeat(1024 * 1024 + 1) }));
    for schema in [many, long] {
        let mended = mend_input_schema(schema);
        assert_eq!(mended.schema, empty);
        assert_eq!(
            mended.changes,
            ["the input schema is too large to be offered"]
        );
    }
}

#[test]
fn unions_at_the_top_are_folded() {
    let schema = json!({
        "oneOf": [
            { "type": "object", "properties": { "kind": { "const": "a" }, "x": { "type": "string" } }, "required": ["kind", "x"] },
            { "$ref": "#/$defs/B" },
            { "type": "null" },
        ],
        "properties": { "always": { "type": "boolean" } },
        "required": ["always"],
        "$defs": { "B": { "type": "object", "properties": { "kind": { "const": "b" } }, "required": ["kind"] } },
    });
    let flat = openai(schema.clone());
    assert_eq!(
        flat["properties"],
        json!({
            "always": { "type": "boolean" },
            "kind": { "type": "string", "enum": ["a", "b"] },
            "x": { "type": "string" },
        })
    );
    assert_eq!(flat["required"], json!(["always", "kind"]));
    for keyword in ["oneOf", "anyOf", "allOf", "$ref", "not", "enum"] {
        assert_eq!(flat.get(keyword), None, "{keyword}");
    }
    assert_eq!(
        gemini(schema)["properties"]["kind"]["enum"],
        json!(["a", "b"])
    );
    let by_reference = json!({ "$ref": "#/$defs/In", "$defs": { "In": { "properties": { "q": { "type": "string" } }, "required": ["q"] } } });
    let flat = openai(by_reference);
    assert_eq!(flat["properties"]["q"]["type"], "string");
    assert_eq!(flat["required"], json!(["q"]));
}

#[test]
fn unions_with_null_collapse() {
    let maybe = json!({ "anyOf": [{ "type": "string", "minLength": 1 }, { "type": "null" }], "default": null, "title": "X" });
    assert_eq!(
        openai(property(&maybe))["properties"]["x"],
        json!({ "type": "string", "minLength": 1, "title": "X" })
    );
    let mut needed = property(&maybe);
    needed["required"] = json!(["x"]);
    assert_eq!(
        openai(needed)["properties"]["x"],
        json!({ "type": ["string", "null"], "minLength": 1, "title": "X", "default": null })
    );
    let options = json!({ "oneOf": [{ "const": "a", "title": "A" }, { "const": "b" }, { "enum": ["b", "c"] }] });
    assert_eq!(
        openai(property(&options))["properties"]["x"],
        json!({ "type": "string", "enum": ["a", "b", "c"] })
    );
    let real = json!({ "anyOf": [{ "type": "string" }, { "type": "integer" }] });
    assert_eq!(openai(property(&real))["properties"]["x"], real);
}

#[test]
fn lists_have_items_and_tuples_are_lists() {
    let kinds = |schema: Value| openai(property(&schema))["properties"]["x"].clone();
    assert_eq!(
        kinds(json!({ "type": "array" })),
        json!({ "type": "array", "items": {} })
    );
    assert_eq!(
        kinds(json!({ "items": [{ "type": "number" }, { "type": "number" }] })),
        json!({ "type": "array", "items": { "type": "number" } })
    );
    assert_eq!(
        gemini(property(&json!({ "type": "array" })))["properties"]["x"],
        json!({ "type": "array", "items": { "type": "string" } })
    );
}

#[test]
fn anthropic_gets_keys_it_takes() {
    let schema = json!({
        "properties": { "ok.key-1": {}, "not ok": {}, "größe": {} },
        "required": ["ok.key-1", "not ok"],
    });
    let entry = rendered(schema, ToolFormat::Anthropic)[0]["input_schema"].clone();
    assert_eq!(
        entry,
        json!({ "type": "object", "properties": { "ok.key-1": {} }, "required": ["ok.key-1"] })
    );
}

#[test]
fn gemini_gets_its_few_keywords() {
    let written = |schema: Value| gemini(property(&schema))["properties"]["x"].clone();
    for (given, expected) in [
        (
            json!({ "type": ["string", "null"], "format": "uri", "examples": ["a"], "default": null }),
            json!({ "type": "string", "default": null, "nullable": true }),
        ),
        (
            json!({ "type": ["string", "integer"], "description": "id" }),
            json!({ "anyOf": [
                { "type": "string", "description": "id" }, { "type": "integer", "description": "id" },
            ] }),
        ),
        (
            json!({ "type": "integer", "enum": [1, 2] }),
            json!({ "type": "integer", "description": "(one of: 1, 2)" }),
        ),
        (
            json!({ "enum": ["a", "", null] }),
            json!({ "type": "string", "enum": ["a"] }),
        ),
        // Values of several types are told by type, and none is lost.
        (
            json!({ "enum": ["auto", 1, 2], "description": "d" }),
            json!({ "anyOf": [
                { "type": "string", "enum": ["auto"], "description": "d" },
                { "type": "integer", "description": "d (one of: 1, 2)" },
            ] }),
        ),
        (
            json!({ "type": ["string", "integer"], "enum": ["auto", 1, 2] }),
            json!({ "anyOf": [
                { "type": "string", "enum": ["auto"] },
                { "type": "integer", "description": "(one of: 1, 2)" },
            ] }),
        ),
        (
            json!({ "oneOf": [{ "const": "auto" }, { "const": 0.5 }, { "const": 1 }] }),
            json!({ "anyOf": [
                { "type": "string", "enum": ["auto"] },
                { "type": "number", "description": "(one of: 0.5, 1)" },
            ] }),
        ),
        (
            json!({ "type": "string", "enum": [1, 2] }),
            json!({ "type": "string", "description": "(one of: 1, 2)" }),
        ),
        (
            json!({ "type": ["integer", "boolean"], "enum": [1, 2] }),
            json!({ "type": "integer", "description": "(one of: 1, 2)" }),
        ),
        (
            json!({ "enum": [[1, 2], [3]] }),
            json!({ "type": "array", "items": { "type": "integer" }, "description": "(one of: [1,2], [3])" }),
        ),
        (
            json!({ "const": "a" }),
            json!({ "type": "string", "enum": ["a"] }),
        ),
        (json!({}), json!({ "type": "string" })),
        (json!(true), json!({ "type": "string" })),
        (
            json!({ "type": "object", "additionalProperties": { "type": "string" }, "required": ["k"] }),
            json!({ "type": "object" }),
        ),
        (
            json!({ "anyOf": [{ "type": "string", "enum": ["a"] }, { "type": "null" }], "description": "d" }),
            json!({ "type": "string", "enum": ["a"], "description": "d", "nullable": true }),
        ),
        (
            json!({ "oneOf": [{ "type": "string" }, { "type": "object", "properties": { "a": { "type": "boolean" } } }], "description": "d" }),
            json!({ "anyOf": [
                { "type": "string", "description": "d" },
                { "type": "object", "properties": { "a": { "type": "boolean" } }, "description": "d" },
            ] }),
        ),
        (
            json!({ "allOf": [{ "type": "string" }, { "maxLength": 3 }], "format": "date-time" }),
            json!({ "type": "string", "maxLength": 3, "format": "date-time" }),
        ),
    ] {
        assert_eq!(written(given.clone()), expected, "{given}");
    }
}

#[test]
fn keywords_of_the_wrong_type_reach_no_provider() {
    let odd = json!({
        "type": "integer", "minimum": "1", "maxLength": -1, "pattern": 7, "enum": [],
        "exclusiveMinimum": true, "maximum": 9,
    });
    let schema = json!({ "type": "object", "properties": { "x": odd }, "required": "x" });
    for held in [openai(schema.clone()), gemini(schema)] {
        let text = held.to_string();
        for gone in [
            "minimum",
            "maxLength",
            "pattern",
            "enum",
            "exclusive",
            "required",
        ] {
            assert!(!text.contains(&format!("\"{gone}")), "{gone}: {text}");
        }
        assert_eq!(held["properties"]["x"]["maximum"], 9, "{text}");
    }
}

#[test]
fn references_that_multiply_end() {
    let mut defs = serde_json::Map::new();
    for level in 0..30 {
        let next = json!({ "$ref": format!("#/$defs/d{}", level + 1) });
        defs.insert(
            format!("d{level}"),
            json!({ "type": "object", "properties": { "a": next, "b": next, "c": next } }),
        );
    }
    defs.insert("d30".to_owned(), json!({ "type": "string" }));
    let schema = json!({ "$defs": defs, "properties": { "x": { "$ref": "#/$defs/d0" } } });
    let flat = gemini(schema).to_string();
    assert!(flat.len() < 500_000, "{}", flat.len());
    let mutual = json!({
        "$defs": {
            "A": { "anyOf": [{ "$ref": "#/$defs/B" }, { "type": "null" }] },
            "B": { "allOf": [{ "$ref": "#/$defs/A" }] },
        },
        "properties": { "x": { "$ref": "#/$defs/A" } },
    });
    assert_eq!(references(&gemini(mutual)), Vec::<String>::new());
}

#[test]
fn unions_of_themselves_end() {
    let branches = vec![json!({ "$ref": "#" }); 12];
    for keyword in ["anyOf", "oneOf", "allOf"] {
        let schema = json!({ keyword: branches, "properties": { "x": { keyword: branches } } });
        for format in ToolFormat::ALL {
            let text = rendered(schema.clone(), format).to_string();
            assert!(text.len() < 100_000, "{keyword} {format:?}: {}", text.len());
        }
    }
}

/// Values that look like schemas, with references among them.
fn any_schema() -> impl Strategy<Value = Value> {
    let word = prop::sample::select(vec![
        "string",
        "Int",
        "object",
        "array",
        "null",
        "#",
        "#/$defs/a",
        "#/definitions/b",
        "#/properties/a",
        "#here",
        "https://h/x",
        "a",
        "b",
    ]);
    let key = prop::sample::select(vec![
        "type",
        "properties",
        "required",
        "items",
        "anyOf",
        "oneOf",
        "allOf",
        "$ref",
        "$defs",
        "definitions",
        "enum",
        "const",
        "a",
        "b",
        "default",
        "additionalProperties",
        "not",
        "$anchor",
        "$id",
        "prefixItems",
        "exclusiveMinimum",
        "minimum",
        "description",
    ]);
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        (-3..9_i64).prop_map(Value::from),
        word.prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 64, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key.clone(), inner), 0..6).prop_map(|members| {
                let members = members.into_iter();
                Value::Object(
                    members
                        .map(|(key, value)| (key.to_owned(), value))
                        .collect(),
                )
            }),
        ]
    })
}

proptest! {
    #[test]
    fn whatever_a_server_sends_becomes_a_schema(schema in any_schema()) {
        let mended = mend_input_schema(schema).schema;
        prop_assert_eq!(&mended["type"], "object");
        prop_assert!(mended["properties"].is_object());
        let lookup = References::new(&mended);
        let mut inside = mended.clone();
        let mut dangling = Vec::new();
        check_references(&mut inside, &lookup, &mut dangling);
        prop_assert!(dangling.is_empty(), "{dangling:?} in {mended}");
        prop_assert_eq!(&mend_input_schema(mended.clone()).schema, &mended);
        for format in ToolFormat::ALL {
            let tool = json!({ "name": "t", "inputSchema": mended });
            let text = render_tools([&tool], format).to_string();
            prop_assert!(text.len() < 2_000_000);
        }
    }
}

fn check_references(schema: &mut Value, lookup: &References<'_>, dangling: &mut Vec<String>) {
    let Value::Object(members) = schema else {
        return;
    };
    if let Some(reference) = members.get("$ref").and_then(Value::as_str)
        && !lookup.leads_somewhere(reference)
    {
        dangling.push(reference.to_owned());
    }
    for_each(members, &mut |_, _, inside| {
        check_references(inside, lookup, dangling);
    });
}
