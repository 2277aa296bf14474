//! Pixels taken out again (design decision 17, case G68).

use serde_json::{Value, json};
use talaria_content::{
    AttachOutcome, Delivery, Format, ImageDelivery, RenderOptions, strip_images, text_only,
};
use talaria_types::NoticeCode;

use crate::bench::{Bench, encode, image, picture, ready, with_pixels};

const OUT: &str = "[MCP images: the pixels of ";

fn shots(bench: &Bench) -> Delivery {
    let text = json!({"type": "text", "text": "captured"});
    let result = json!({"content": [text, image(&picture(0)), image(&picture(1))]});
    with_pixels(bench, result)
}

fn options(image_delivery: ImageDelivery) -> RenderOptions {
    RenderOptions {
        call_id: Some("call_1".to_owned()),
        tool_name: Some("take".to_owned()),
        image_delivery,
    }
}

fn body(delivery: &Delivery, format: Format, image_delivery: ImageDelivery) -> Value {
    let body = talaria_content::render(delivery, format, &options(image_delivery)).body;
    if format == Format::Text {
        return Value::String(body);
    }
    serde_json::from_str(&body).unwrap()
}

#[test]
fn g68_a_delivery_becomes_text() {
    let before = shots(&Bench::new());
    let after = text_only(before.clone());
    assert_eq!(after.attachments.len(), 0);
    assert!(!after.gate.open && after.gate.reason.contains("taken out"));
    assert_eq!(
        after.notices.last().unwrap().code,
        NoticeCode::ImageTextOnly
    );
    let lines: Vec<&str> = after.text.lines().collect();
    assert_eq!(lines[..3].join("\n"), before.text);
    assert!(lines[3].starts_with("[MCP images: the pixels of 2 images were taken out"));
    for (line, artifact) in lines[4..].iter().zip(&before.artifacts) {
        let path = artifact.path.display();
        assert_eq!(*line, format!("- MEDIA:{path}: 128×128 pixels"));
    }
    assert_eq!(lines.len(), 6);
}

#[test]
fn taking_out_twice_is_the_same_as_once() {
    let once = text_only(shots(&Bench::new()));
    let json = |delivery: &Delivery| serde_json::to_value(delivery).unwrap();
    assert_eq!(json(&text_only(once.clone())), json(&once));
    for format in Format::ALL {
        for image_delivery in [ImageDelivery::ToolResult, ImageDelivery::UserMessage] {
            let before = body(&shots(&Bench::format(format)), format, image_delivery);
            let once = strip_images(before.clone(), format).unwrap();
            assert_eq!(
                strip_images(once.clone(), format).unwrap(),
                once,
                "{format:?}"
            );
            let text = once.to_string();
            assert!(
                !text.contains("base64") && !text.contains(&encode(b"0")),
                "{text}"
            );
            assert_eq!(text.contains(OUT), format != Format::Text, "{text}");
            assert!(text.contains("captured"), "{text}");
        }
    }
}

#[test]
fn what_was_said_about_pixels_is_said_no_more() {
    let bench = Bench::new();
    let result = json!({"content": [image(&picture(0)), image(&picture(1)), image(&picture(2))]});
    let mut draft = bench.draft(result);
    let mut attaching = draft.attaching();
    for candidate in attaching.next_wave() {
        let outcome = match candidate.index {
            1 => AttachOutcome::Refused {
                code: NoticeCode::ImageNotDecodable,
                detail: "it ends early".to_owned(),
            },
            number => {
                let mut picture = ready(&number.to_string());
                picture.notes = vec![talaria_content::ImageNote {
                    code: NoticeCode::ImageDownscaled,
                    text: "multiply coordinates by 2.00".to_owned(),
                }];
                AttachOutcome::Ready(picture)
            }
        };
        attaching.report(candidate.index, outcome);
    }
    draft.attach(attaching);
    let before = bench.settle(draft);
    assert!(before.text.contains("2 of 3 images attached") && before.text.contains("2.00"));
    let after = text_only(before).text;
    assert!(
        !after.contains("attached;") && !after.contains("2.00"),
        "{after}"
    );
    assert!(
        after.contains(": not attached: it ends early (image_not_decodable)"),
        "{after}"
    );
    assert_eq!(after.matches("[MCP images: ").count(), 1, "{after}");
}

#[test]
fn tiles_of_one_picture_are_one_file() {
    let mut delivery = shots(&Bench::new());
    let tile = delivery.attachments[0].clone();
    delivery.attachments.push(tile);
    let text = text_only(delivery).text;
    assert!(text.contains("pixels of 2 images"), "{text}");
    assert_eq!(text.matches("- MEDIA:").count(), 2, "{text}");
}

#[test]
fn a_delivery_without_pixels_keeps_its_words() {
    let bench = Bench::new();
    let before = bench.deliver(json!({"content": [{"type": "text", "text": "t"}]}));
    assert!(before.gate.open);
    let after = text_only(before.clone());
    assert!(!after.gate.open && after.gate.reason.contains("had no pixels"));
    assert_eq!((after.text, after.notices.len()), (before.text, 0));
}

#[test]
fn a_delivery_survives_its_own_json() {
    for format in [Format::Talaria, Format::Hermes] {
        let mut bench = Bench::format(format);
        bench.request.tool = Some("take".to_owned());
        let before = serde_json::to_value(shots(&bench)).unwrap();
        let read: Delivery = serde_json::from_value(before.clone()).unwrap();
        assert_eq!(serde_json::to_value(&read).unwrap(), before);
    }
    let mut newer = serde_json::to_value(shots(&Bench::new())).unwrap();
    newer["later"] = json!({"a": [1]});
    newer["attachments"][0]["later"] = json!(true);
    let read: Delivery = serde_json::from_value(newer).unwrap();
    assert_eq!(read.attachments.len(), 2);
}

#[test]
fn a_picture_without_a_file_is_still_told() {
    let mut delivery = shots(&Bench::new());
    delivery.artifacts.clear();
    let text = text_only(delivery).text;
    assert!(
        text.contains("- a picture of 128×128 pixels that names no file"),
        "{text}"
    );
}

#[test]
fn anthropic_becomes_one_text() {
    let before = shots(&Bench::format(Format::Anthropic));
    let after = strip_images(
        body(&before, Format::Anthropic, ImageDelivery::ToolResult),
        Format::Anthropic,
    )
    .unwrap();
    let content = after["content"].as_array().unwrap();
    assert_eq!(
        (content.len(), &after["tool_use_id"]),
        (1, &json!("call_1"))
    );
    let text = content[0]["text"].as_str().unwrap();
    let end = format!("{}\n{OUT}2 images were taken out", before.text);
    assert!(text.starts_with(&end), "{text}");
}

#[test]
fn openai_chat_loses_the_user_message_and_the_list() {
    for image_delivery in [ImageDelivery::ToolResult, ImageDelivery::UserMessage] {
        let before = body(
            &shots(&Bench::format(Format::OpenaiChat)),
            Format::OpenaiChat,
            image_delivery,
        );
        let after = strip_images(before, Format::OpenaiChat).unwrap();
        let [message] = after.as_array().unwrap().as_slice() else {
            panic!("{after}")
        };
        assert!(
            message["content"].as_str().unwrap().contains(OUT),
            "{after}"
        );
    }
}

#[test]
fn hermes_gets_the_json_inside_of_its_envelope() {
    let before = shots(&Bench::hermes());
    let envelope = body(&before, Format::Hermes, ImageDelivery::ToolResult);
    let after = strip_images(envelope, Format::Hermes).unwrap();
    let result = after["result"].as_str().unwrap();
    assert!(
        result.starts_with(&format!("{}\n{OUT}2 images", before.text)),
        "{after}"
    );
    assert_eq!(after.as_object().unwrap().len(), 1);
}

#[test]
fn mcp_and_gemini_keep_everything_else() {
    let mcp = body(
        &shots(&Bench::format(Format::Mcp)),
        Format::Mcp,
        ImageDelivery::ToolResult,
    );
    let after = strip_images(mcp, Format::Mcp).unwrap();
    let kinds: Vec<&str> = after["content"]
        .as_array()
        .unwrap()
        .iter()
        .map(|block| block["type"].as_str().unwrap())
        .collect();
    assert_eq!(kinds, ["text", "resource_link", "resource_link"]);
    let gemini = body(
        &shots(&Bench::format(Format::Gemini)),
        Format::Gemini,
        ImageDelivery::ToolResult,
    );
    let after = strip_images(gemini, Format::Gemini).unwrap();
    assert!(after["functionResponse"].get("parts").is_none());
    assert_eq!(after["functionResponse"]["id"], "call_1");
}

#[test]
fn mcp_loses_embedded_pictures_and_keeps_other_resources() {
    let blob = |media_type: &str| json!({"type": "resource", "resource": {"uri": "x://a", "mimeType": media_type, "blob": "AAAA"}});
    let words = json!({"type": "resource", "resource": {"uri": "x://b", "mimeType": "image/svg+xml", "text": "<svg/>"}});
    let content = json!([
        blob("image/png"),
        words,
        blob("application/pdf"),
        blob("Image/JPEG")
    ]);
    let body = json!({"content": content, "isError": false});
    let after = strip_images(body, Format::Mcp).unwrap();
    let kept = after["content"].as_array().unwrap();
    let text = kept[0]["text"].as_str().unwrap();
    assert!(text.starts_with(&format!("{OUT}2 images")), "{text}");
    assert_eq!(kept[1..], [words, blob("application/pdf")]);
    assert_eq!(strip_images(after.clone(), Format::Mcp).unwrap(), after);
}

#[test]
fn a_body_that_names_no_file_sends_nobody_to_look_for_one() {
    let url = json!({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}});
    let image = json!({"type": "image", "data": "AAAA", "mimeType": "image/png"});
    for (named, words) in [
        (false, "a chart"),
        (false, "see MEDIA:/x"),
        (true, "a chart\nMEDIA:/x"),
    ] {
        let answer = json!({"result": words}).to_string();
        let text = json!({"type": "text", "text": words});
        let source = json!({"type": "image", "source": {}});
        for (format, body) in [
            (Format::Mcp, json!({"content": [text, image]})),
            (
                Format::Anthropic,
                json!({"type": "tool_result", "tool_use_id": "t", "content": [text, source]}),
            ),
            (
                Format::Hermes,
                json!({"_multimodal": true, "text_summary": answer, "content": [{"type": "text", "text": answer}, url]}),
            ),
        ] {
            let after = strip_images(body, format).unwrap().to_string();
            let sends = after.contains("see the MEDIA: lines");
            assert_eq!(sends, named, "{after}");
            assert_eq!(
                after.contains("it names no files of them"),
                !named,
                "{after}"
            );
        }
    }
}

#[test]
fn foreign_bodies_are_refused_in_words() {
    let image = json!({"type": "image", "source": {}});
    let url = json!({"type": "image_url", "image_url": {"url": "data:,"}});
    let user = json!({"role": "user", "content": [{"type": "text", "text": "hi"}, url]});
    let tool = json!({"role": "tool", "tool_call_id": "c", "content": "t"});
    for (format, body) in [
        (Format::Talaria, json!({"text": "t"})),
        (Format::Text, json!({})),
        (Format::Hermes, json!([])),
        (Format::Hermes, json!({"_multimodal": true})),
        (
            Format::Hermes,
            json!({"_multimodal": true, "text_summary": "no JSON", "content": []}),
        ),
        (
            Format::Hermes,
            json!({"_multimodal": true, "text_summary": "{}", "content": [{"type": "audio"}]}),
        ),
        (Format::Hermes, json!({"other": 1})),
        (Format::Anthropic, json!({"type": "text", "text": "t"})),
        (
            Format::Anthropic,
            json!({"type": "tool_result", "content": [image]}),
        ),
        (
            Format::Anthropic,
            json!({"type": "tool_result", "tool_use_id": "t"}),
        ),
        (
            Format::Anthropic,
            json!({"type": "tool_result", "tool_use_id": "t", "content": [{"type": "document"}]}),
        ),
        (
            Format::Anthropic,
            json!({"type": "tool_result", "tool_use_id": "t", "content": [5, image]}),
        ),
        (Format::OpenaiResponses, json!({"type": "message"})),
        (
            Format::OpenaiResponses,
            json!({"type": "function_call_output", "call_id": "c", "output": {}}),
        ),
        (
            Format::OpenaiResponses,
            json!({"type": "function_call_output", "call_id": "c", "output": [{"type": "input_file"}]}),
        ),
        (Format::OpenaiChat, json!({})),
        (Format::OpenaiChat, json!([])),
        (Format::OpenaiChat, json!([user])),
        (Format::OpenaiChat, json!([tool, user])),
        (Format::OpenaiChat, json!([tool, tool])),
        (Format::OpenaiChat, json!([tool, user, tool])),
        (Format::Gemini, json!({"text": "t"})),
        (
            Format::Gemini,
            json!({"functionResponse": {"name": "n", "response": {}}}),
        ),
        (
            Format::Gemini,
            json!({"functionResponse": {"name": "n", "response": {"output": "t"}, "parts": [{"fileData": {}}]}}),
        ),
        (Format::Mcp, json!({"content": [{"type": "video"}]})),
        (
            Format::Mcp,
            json!({"content": [{"type": "text", "text": 5}, {"type": "image"}]}),
        ),
        (Format::Mcp, json!("x")),
    ] {
        let error = strip_images(body.clone(), format).expect_err(&body.to_string());
        let start = format!("this is no body of format `{}`", format.as_str());
        assert!(error.to_string().starts_with(&start), "{error}");
    }
}

#[test]
fn answers_of_hermes_without_pictures_stay_as_they_are() {
    for body in [
        json!({"result": "t", "structuredContent": {"a": 1}}),
        json!({"error": "e"}),
        json!({"resources": []}),
    ] {
        assert_eq!(strip_images(body.clone(), Format::Hermes).unwrap(), body);
    }
}
