//! Rendered results before the types of the providers' own SDKs (`tests/peers/provider_formats.py`).

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Stdio};

use base64::Engine as _;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};
use talaria_content::{
    Area, Artifact, AttachOutcome, Delivery, FileBody, FileOutcome, FileRequest, Format, Gate,
    ImageDelivery, PlanRequest, ReadyImage, ReadyPicture, RenderOptions, ResultKind, plan, render,
    strip_images, text_only,
};
use talaria_types::{ArtifactId, RawResult, ServerName};

/// The formats that an SDK judges.
const JUDGED: [Format; 5] = [
    Format::Anthropic,
    Format::OpenaiResponses,
    Format::OpenaiChat,
    Format::Gemini,
    Format::Mcp,
];

/// What the judge says of one body.
#[derive(Debug, serde::Deserialize)]
struct Verdict {
    id: String,
    fault: Option<String>,
    images: Vec<Value>,
}

/// A body with the name of its case.
struct Case {
    id: String,
    format: Format,
    body: Value,
}

fn judge(cases: &[Case]) -> Vec<Verdict> {
    let python = crate::root().join(".peers/python/bin/python");
    assert!(python.exists(), "the SDKs are not installed: run .ci/peers");
    let mut child = Command::new(python)
        .arg(crate::root().join("tests/peers/provider_formats.py"))
        .env("PYTHONDONTWRITEBYTECODE", "1")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let input: String = cases
        .iter()
        .map(|case| {
            let Case { id, format, body } = case;
            format!(
                "{}\n",
                json!({"id": id, "format": format.as_str(), "body": body})
            )
        })
        .collect();
    let mut stdin = child.stdin.take().unwrap();
    let writer = std::thread::spawn(move || stdin.write_all(input.as_bytes()).unwrap());
    let output = child.wait_with_output().unwrap();
    writer.join().unwrap();
    assert!(output.status.success(), "the judge itself failed");
    let verdicts: Vec<Verdict> = String::from_utf8(output.stdout)
        .unwrap()
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    let ids: Vec<&str> = verdicts.iter().map(|verdict| verdict.id.as_str()).collect();
    let asked: Vec<&str> = cases.iter().map(|case| case.id.as_str()).collect();
    assert_eq!(ids, asked);
    verdicts
}

/// Real pictures of every type that leaves: type, bytes, size.
fn pictures() -> [(&'static str, Vec<u8>, u32, u32); 3] {
    let read = |path: &str| std::fs::read(crate::root().join(path)).unwrap();
    [
        ("image/png", crate::asset("screenshot.png"), 1280, 800),
        (
            "image/webp",
            read("tests/data/images/photo.webp"),
            2400,
            1600,
        ),
        (
            "image/jpeg",
            read("tests/data/images/photo_exif6.jpg"),
            2000,
            3000,
        ),
    ]
}

fn image(index: usize) -> Value {
    let (media_type, bytes, ..) = &pictures()[index];
    json!({"type": "image", "mimeType": media_type, "data": encode(bytes)})
}

fn encode(bytes: &[u8]) -> String {
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// The delivery of a result, every picture attached as it came.
fn deliver(format: Format, result: Value, folder: &Path) -> Delivery {
    let request = PlanRequest {
        kind: ResultKind::ToolCall,
        server: Some(ServerName::from("shots")),
        tool: Some("take".to_owned()),
        reader: talaria_content::ReaderTool::Missing,
        format,
        result_size_chars: 50_000,
        gate: Gate {
            open: true,
            mode: "auto".to_owned(),
            reason: "the model sees".to_owned(),
        },
        masker: talaria_content::Masker::default(),
    };
    let mut planned = plan(RawResult::from_json(result), request);
    let stored = planned
        .take_files()
        .into_iter()
        .map(|file| store(file, folder))
        .collect();
    let mut draft = planned.finish(stored);
    let mut attaching = draft.attaching();
    for candidate in attaching.next_wave() {
        let (media_type, bytes, width, height) = pictures()
            .into_iter()
            .find(|picture| picture.0 == candidate.media_type)
            .unwrap();
        let picture = ReadyPicture {
            images: vec![ReadyImage {
                media_type,
                bytes,
                width,
                height,
                area: Area {
                    x: 0,
                    y: 0,
                    width,
                    height,
                },
                scale_note: None,
            }],
            notes: Vec::new(),
            original_width: width,
            original_height: height,
        };
        attaching.report(candidate.index, AttachOutcome::Ready(picture));
    }
    draft.attach(attaching);
    draft.settle(Vec::new())
}

fn store(file: FileRequest, folder: &Path) -> FileOutcome {
    let FileBody::Bytes(bytes) = file.body else {
        panic!("nothing is staged here");
    };
    let id = ArtifactId::generate();
    FileOutcome::Stored(Artifact {
        path: folder.join(format!("{id} {}", file.name)),
        id,
        kind: file.kind,
        name: file.name,
        url: None,
        media_type: file.media_type,
        declared_type: file.declared_type,
        bytes: u64::try_from(bytes.len()).unwrap(),
        sha256: hex::encode(Sha256::digest(&bytes)),
        source_uri: file.source_uri,
    })
}

/// Results of every shape that a format treats on its own.
fn results() -> Vec<(&'static str, Value)> {
    let text = json!({"type": "text", "text": "captured"});
    let pdf = json!({"type": "resource", "resource": {
        "uri": "x://h/a b.pdf", "mimeType": "application/pdf", "blob": encode(b"%PDF-1.4\n%%EOF\n")}});
    vec![
        ("nothing", json!({"content": []})),
        (
            "blank text",
            json!({"content": [{"type": "text", "text": " \n"}]}),
        ),
        ("text", json!({"content": [text]})),
        ("one picture", json!({"content": [image(0)]})),
        (
            "three pictures",
            json!({"content": [text, image(0), image(1), image(2)]}),
        ),
        ("failed", json!({"isError": true, "content": [text]})),
        ("failed, no words", json!({"isError": true, "content": []})),
        (
            "failed with a picture",
            json!({"isError": true, "content": [text, image(0)]}),
        ),
        ("a file", json!({"content": [pdf]})),
        (
            "structure",
            json!({"content": [text], "structuredContent": {"a": [1, 2.5, null, "ü"]}}),
        ),
        ("a list as structure", json!({"structuredContent": [1, 2]})),
        (
            "vendor data",
            json!({"content": [text], "_meta": {"com.example/k": {"deep": true}}}),
        ),
        (
            "odd blocks",
            json!({"content": [null, 5, {"type": "hologram"}, {"type": "image"}]}),
        ),
    ]
}

fn options(image_delivery: ImageDelivery) -> RenderOptions {
    RenderOptions {
        call_id: Some("toolu_01A-b".to_owned()),
        tool_name: Some("mcp__shots__take".to_owned()),
        image_delivery,
    }
}

fn body(delivery: &Delivery, format: Format, image_delivery: ImageDelivery) -> Value {
    let rendered = render(delivery, format, &options(image_delivery));
    serde_json::from_str(&rendered.body).unwrap()
}

#[test]
fn sdks_take_every_body_and_its_pictures_decode() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    let mut expected = Vec::new();
    for format in JUDGED {
        for (name, result) in results() {
            let delivery = deliver(format, result, folder.path());
            for image_delivery in [ImageDelivery::ToolResult, ImageDelivery::UserMessage] {
                cases.push(Case {
                    id: format!("{} {name} {image_delivery:?}", format.as_str()),
                    format,
                    body: body(&delivery, format, image_delivery),
                });
                expected.push(
                    delivery
                        .attachments
                        .iter()
                        .map(|attachment| {
                            json!({
                                "media_type": attachment.media_type,
                                "width": attachment.width,
                                "height": attachment.height,
                            })
                        })
                        .collect::<Vec<_>>(),
                );
            }
        }
    }
    let mut pictures = 0;
    for (verdict, expected) in judge(&cases).into_iter().zip(expected) {
        assert_eq!(verdict.fault, None, "{}", verdict.id);
        assert_eq!(verdict.images, expected, "{}", verdict.id);
        pictures += verdict.images.len();
    }
    assert_eq!(pictures, JUDGED.len() * 2 * (1 + 3 + 1));
}

#[test]
fn g68_sdks_take_every_text_only_form() {
    let folder = tempfile::tempdir().unwrap();
    let mut cases = Vec::new();
    for format in JUDGED {
        for (name, result) in results() {
            let delivery = deliver(format, result, folder.path());
            for image_delivery in [ImageDelivery::ToolResult, ImageDelivery::UserMessage] {
                let stripped = strip_images(body(&delivery, format, image_delivery), format);
                cases.push(Case {
                    id: format!("{} {name} {image_delivery:?} stripped", format.as_str()),
                    format,
                    body: stripped.unwrap(),
                });
            }
            cases.push(Case {
                id: format!("{} {name} of the text-only delivery", format.as_str()),
                format,
                body: body(&text_only(delivery), format, ImageDelivery::ToolResult),
            });
        }
    }
    for verdict in judge(&cases) {
        assert_eq!(
            (verdict.fault, verdict.images.len()),
            (None, 0),
            "{}",
            verdict.id
        );
    }
}

/// Each is a good body with one fault.
#[test]
fn the_judge_refuses_what_a_provider_would() {
    let folder = tempfile::tempdir().unwrap();
    let good = |format: Format| {
        let result = json!({"content": [{"type": "text", "text": "t"}, image(0)]});
        body(
            &deliver(format, result, folder.path()),
            format,
            ImageDelivery::ToolResult,
        )
    };
    let faults: [(Format, &str, Value); 20] = [
        (Format::Anthropic, "/unknown", json!(1)),
        (Format::Anthropic, "/is_error", json!(true)),
        (Format::Anthropic, "/is_error", json!("false")),
        (Format::Anthropic, "/tool_use_id", json!("a b")),
        (Format::Anthropic, "/content/0/text", json!(" ")),
        (Format::Anthropic, "/content/0/unknown", json!(1)),
        (
            Format::Anthropic,
            "/content/1/source/media_type",
            json!("image/jpeg"),
        ),
        (Format::Anthropic, "/content/1/source/data", json!("AAAA")),
        (Format::OpenaiResponses, "/call_id", json!("")),
        (Format::OpenaiResponses, "/output/0/type", json!("text")),
        (
            Format::OpenaiResponses,
            "/output/1/image_url",
            json!("https://h/a.png"),
        ),
        (Format::OpenaiResponses, "/output/1/detail", json!("best")),
        (Format::OpenaiChat, "/0/role", json!("user")),
        (
            Format::OpenaiChat,
            "/0/content/1/image_url",
            json!("data:,"),
        ),
        (Format::OpenaiChat, "/0/is_error", json!(true)),
        (Format::Gemini, "/functionResponse/unknown", json!(1)),
        (Format::Gemini, "/functionResponse/name", json!("a b")),
        (
            Format::Gemini,
            "/functionResponse/parts/0/inlineData/mimeType",
            json!("image/gif"),
        ),
        (Format::Mcp, "/unknown", json!(1)),
        (Format::Mcp, "/content/0/type", json!("video")),
    ];
    let cases: Vec<Case> = faults
        .into_iter()
        .map(|(format, at, value)| {
            let mut body = good(format);
            let id = format!("{} {at} = {value}", format.as_str());
            let (parent, key) = at.rsplit_once('/').unwrap();
            body.pointer_mut(parent).unwrap()[key] = value;
            Case { id, format, body }
        })
        .collect();
    for verdict in judge(&cases) {
        assert!(verdict.fault.is_some(), "{} was taken", verdict.id);
    }
}
