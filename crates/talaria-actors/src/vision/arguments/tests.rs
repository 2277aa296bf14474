//! Arguments by the schemas that tools of the field have.

use std::collections::BTreeSet;

use serde_json::json;
use talaria_config::ImageForm;

use super::*;

fn tool() -> McpFallback {
    McpFallback::new("auxiliary.vision.mcp_fallback[0]", "eyes", "look")
}

fn planned(definition: &Value) -> ToolPlan {
    plan(&tool(), definition, Reach::Local).unwrap()
}

/// The arguments, with a word for the form in place of the picture.
fn sent(definition: &Value, reach: Reach) -> Value {
    let plan = plan(&tool(), definition, reach).unwrap();
    let picture = format!("{:?}", plan.form);
    Value::Object(plan.arguments(picture, "image/png", "What?"))
}

fn schema(properties: &Value, required: &[&str]) -> Value {
    json!({ "name": "t", "inputSchema": {
        "type": "object", "properties": properties, "required": required,
    } })
}

#[test]
fn the_question_is_never_lost() {
    let text = || json!({ "type": "string" });
    let texts = || json!({ "type": "array", "items": { "type": "string" } });
    let data = json!({ "type": "string", "description": "data URI" });
    let mut by_reference = schema(
        &json!({ "img": { "$ref": "#/$defs/Img" }, "q": text() }),
        &["img", "q"],
    );
    by_reference["inputSchema"]["$defs"] = json!({ "Img": data });
    for (definition, wanted) in [
        (
            schema(
                &json!({ "filepath": text(), "prompts": texts() }),
                &["filepath", "prompts"],
            ),
            json!({ "prompts": ["What?"], "filepath": "Path" }),
        ),
        (by_reference, json!({ "q": "What?", "img": "DataUrl" })),
        (
            schema(
                &json!({ "photo": text(), "focus": text(), "photo_format": text() }),
                &["photo", "focus"],
            ),
            json!({ "focus": "What?", "photo": "Path" }),
        ),
        // What may be left out is not guessed at.
        (
            schema(&json!({ "photo": text(), "title": text() }), &["photo"]),
            json!({ "photo": "Path" }),
        ),
    ] {
        assert_eq!(sent(&definition, Reach::Local), wanted, "{definition}");
    }
}

#[test]
fn fr_203_arguments_follow_the_schema_of_each_tool() {
    let text = || json!({ "type": "string" });
    let described = |words: &str| json!({ "type": "string", "description": words });
    let cases = [
        (
            schema(
                &json!({ "prompt": text(), "image_source": described("Local file path or remote URL") }),
                &["image_source", "prompt"],
            ),
            json!({ "prompt": "What?", "image_source": "Path" }),
        ),
        (
            schema(
                &json!({ "image_url": described("URL or data URL"), "prompt": text() }),
                &["image_url", "prompt"],
            ),
            json!({ "prompt": "What?", "image_url": "DataUrl" }),
        ),
        (
            schema(
                &json!({ "image": described("absolute path"), "question": text() }),
                &["image", "question"],
            ),
            json!({ "question": "What?", "image": "Path" }),
        ),
        (
            schema(
                &json!({ "imagePath": text(), "instruction": text() }),
                &["imagePath"],
            ),
            json!({ "instruction": "What?", "imagePath": "Path" }),
        ),
        (
            schema(
                &json!({ "image_base64": text(), "mime_type": text(), "query": text() }),
                &["image_base64"],
            ),
            json!({ "query": "What?", "mime_type": "image/png", "image_base64": "Base64" }),
        ),
    ];
    for (definition, expected) in cases {
        assert_eq!(sent(&definition, Reach::Local), expected, "{definition}");
    }
}

#[test]
fn fr_204_a_tool_that_takes_no_path_gets_a_data_url() {
    let words = "HTTP/HTTPS URL or data: URL of the image. Local paths are not supported.";
    let definition = schema(
        &json!({ "image_url": { "type": "string", "description": words }, "prompt": { "type": "string" } }),
        &["image_url"],
    );
    assert_eq!(planned(&definition).form, Form::DataUrl);
}

#[test]
fn fr_205_the_words_of_the_tool_count_where_the_argument_has_none() {
    let text = || json!({ "type": "string" });
    let mut definition = schema(&json!({ "prompt": text(), "image_source": text() }), &[]);
    definition["description"] =
        json!("Only jpeg, png, webp. image_source: URL or local file path.");
    assert_eq!(planned(&definition).form, Form::Path);
    definition["description"] = json!("Takes a base64-encoded picture, without the data: prefix.");
    assert_eq!(planned(&definition).form, Form::Base64);
}

#[test]
fn without_a_word_the_place_of_the_server_decides() {
    let definition = schema(&json!({ "image": {}, "prompt": {} }), &[]);
    let form = |reach| plan(&tool(), &definition, reach).unwrap().form;
    assert_eq!(form(Reach::Local), Form::Path);
    assert_eq!(form(Reach::Remote), Form::DataUrl);
}

#[test]
fn a_path_leaves_the_machine_only_where_that_is_allowed() {
    let definition = schema(
        &json!({ "image_path": { "type": "string" } }),
        &["image_path"],
    );
    let remote = |tool: &McpFallback| plan(tool, &definition, Reach::Remote);
    assert_eq!(remote(&tool()).unwrap().form, Form::DataUrl);
    let asked = McpFallback {
        image_form: ImageForm::Path,
        ..tool()
    };
    let refused = remote(&asked).unwrap_err();
    assert_eq!(refused.kind, FaultKind::Misconfigured);
    assert!(
        refused.words.contains("mcp_fallback[0].allow_remote_path"),
        "{refused}"
    );
    let allowed = McpFallback {
        allow_remote_path: true,
        ..asked
    };
    assert_eq!(remote(&allowed).unwrap().form, Form::Path);
}

#[test]
fn configured_names_count_where_they_are_declared() {
    let text = || json!({ "type": "string" });
    let definition = schema(
        &json!({ "a": text(), "b": text(), "image": text(), "prompt": text() }),
        &[],
    );
    let configured = McpFallback {
        prompt_arg: Some("a".to_owned()),
        image_arg: Some("b".to_owned()),
        image_form: ImageForm::Data,
        ..tool()
    };
    let plan_of = |definition: &Value| {
        let plan = plan(&configured, definition, Reach::Local).unwrap();
        Value::Object(plan.arguments("x".to_owned(), "image/png", "What?"))
    };
    assert_eq!(plan_of(&definition), json!({ "a": "What?", "b": "x" }));
    let other = schema(&json!({ "image": text(), "prompt": text() }), &[]);
    assert_eq!(plan_of(&other), json!({ "prompt": "What?", "image": "x" }));
    // A tool that declares nothing is taken at the operator's word.
    let nothing = json!({ "name": "t", "inputSchema": { "type": "object", "properties": {} } });
    assert_eq!(plan_of(&nothing), json!({ "a": "What?", "b": "x" }));
    let usual = plan(&tool(), &nothing, Reach::Local).unwrap();
    let usual = usual.arguments("x".to_owned(), "image/png", "What?");
    assert_eq!(
        Value::Object(usual),
        json!({ "prompt": "What?", "image_source": "x" })
    );
}

#[test]
fn whatever_is_required_is_filled_and_nothing_else_is_sent() {
    let definition = schema(
        &json!({
            "images": { "type": "array", "items": { "type": "string" }, "description": "URLs" },
            "user_prompt": { "anyOf": [{ "type": "string" }, { "type": "null" }] },
            "detail": { "enum": ["low", "high"] },
            "model": { "type": "string", "default": "m" },
            "max_tokens": { "type": "integer", "minimum": 1 },
            "stream": { "type": "boolean" },
            "tags": { "type": "array", "items": { "type": "integer" } },
            "options": { "type": "object" },
            "image_type": { "type": "string" },
            "ratio": { "type": ["number", "null"] },
            "left": { "type": "string" },
            "not_required": { "type": "string" },
        }),
        &[
            "images",
            "detail",
            "model",
            "max_tokens",
            "stream",
            "tags",
            "options",
            "image_type",
            "ratio",
            "left",
        ],
    );
    let expected = json!({
        "images": ["DataUrl"], "user_prompt": "What?", "detail": "low", "model": "m",
        "max_tokens": 1, "stream": false, "tags": [], "options": {}, "image_type": "image/png",
        "ratio": 0, "left": "",
    });
    let sent = sent(&definition, Reach::Local);
    assert_eq!(sent, expected);
    let keys: BTreeSet<_> = sent.as_object().unwrap().keys().collect();
    assert_eq!(keys.len(), 11);
}

#[test]
fn a_tool_without_a_place_for_a_picture_is_told_so() {
    let definition = schema(
        &json!({ "city": { "type": "string" }, "image_width": { "type": "string" } }),
        &[],
    );
    let fault = plan(&tool(), &definition, Reach::Local).unwrap_err();
    assert!(fault.words.contains("image_arg"), "{fault}");
}

#[test]
fn names_are_read_in_every_style() {
    for name in [
        "imagePath",
        "image_path",
        "image-path",
        "Image Path",
        "image.path",
    ] {
        assert_eq!(words(name), ["image", "path"], "{name}");
    }
}

mod whatever_a_schema_holds {
    use proptest::prelude::*;

    use super::*;

    fn name() -> impl Strategy<Value = String> {
        let known = prop::sample::select(vec![
            "image",
            "image_url",
            "path",
            "prompt",
            "question",
            "mime_type",
            "data",
            "x",
            "text",
        ]);
        prop_oneof![4 => known.prop_map(ToOwned::to_owned), 1 => "\\PC{0,8}"]
    }

    fn property() -> impl Strategy<Value = Value> {
        let kind = prop::sample::select(vec!["string", "array", "integer", "object", "null", "?"]);
        let words = prop::sample::select(vec![
            "",
            "a path",
            "no path, please",
            "data URL",
            "base64 of the image",
            "http URL",
            "ü",
        ]);
        (kind, words, any::<bool>()).prop_map(|(kind, words, has_default)| {
            let mut schema = json!({ "type": kind, "description": words });
            if has_default {
                schema["default"] = json!("d");
            }
            schema
        })
    }

    proptest! {
        #[test]
        fn nothing_undeclared_is_sent_and_everything_required_is(
            declared in prop::collection::vec((name(), property()), 1..8),
            required in prop::collection::vec(any::<prop::sample::Index>(), 0..5),
            is_local in any::<bool>(),
        ) {
            let names: Vec<String> = declared.iter().map(|(name, _)| name.clone()).collect();
            let required: Vec<&str> = required.iter().map(|it| it.get(&names).as_str()).collect();
            let properties: Value = Value::Object(declared.into_iter().collect());
            let definition = schema(&properties, &required);
            let reach = if is_local { Reach::Local } else { Reach::Remote };
            if let Ok(plan) = plan(&tool(), &definition, reach) {
                prop_assert!(is_local || plan.form != Form::Path);
                let sent = plan.arguments("picture".to_owned(), "image/png", "What?");
                for name in sent.keys() {
                    prop_assert!(properties.get(name).is_some(), "{} is not declared", name);
                }
                for name in required {
                    prop_assert!(sent.contains_key(name), "{} is missing", name);
                }
                let text = Value::Object(sent).to_string();
                prop_assert_eq!(text.matches("picture").count(), 1);
            }
        }
    }
}
