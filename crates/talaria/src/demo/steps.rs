//! What the demo calls and what has to come back.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use talaria_content::ArtifactKind;
use talaria_types::NoticeCode;

use super::has_hidden_characters;
use super::sight::Sight;
use crate::demo_server::{assets, blob_bytes, hostile, long_text};

/// Payload of the step `blob`.
const BLOB_BYTES: usize = 8 * 1024 * 1024;
/// Text of the step `long_text`.
const LONG_TEXT_CHARACTERS: usize = 200_000;

/// A look at a delivery.
pub(super) type Examine = fn(&mut Sight);

/// One call and the look at its delivery.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) tool: &'static str,
    pub(super) arguments: Value,
    pub(super) examine: Examine,
}

/// Every step, in order.
pub(super) fn all() -> Vec<Step> {
    let plain: [(&'static str, Examine); 16] = [
        ("text", |sight| sight.text_is(assets::README_TEXT)),
        ("embedded_text", read_me_inline),
        ("pdf", report_file),
        ("docx", |sight| sight.only_file(assets::NOTES)),
        ("xlsx", |sight| sight.only_file(assets::ORDERS)),
        ("zip", |sight| sight.only_file(assets::BUNDLE)),
        ("screenshot", screenshot),
        ("audio", audio),
        ("links", links),
        ("mixed", mixed),
        ("hostile_names", hostile_names),
        ("hidden_text", hidden_text),
        ("forged_markers", forged_markers),
        ("structured", structured),
        ("failing", failing),
        ("broken_base64", broken_base64),
    ];
    let with_arguments: [(&'static str, Value, Examine); 4] = [
        ("echo", json!({ "text": "hello" }), |sight| {
            sight.text_is("hello")
        }),
        (
            "long_text",
            json!({ "characters": LONG_TEXT_CHARACTERS }),
            spilled_text,
        ),
        ("blob", json!({ "bytes": BLOB_BYTES, "seed": 1 }), blob),
        ("sleep", json!({ "ms": 300 }), |sight| {
            sight.text_is("Slept for 300 ms.")
        }),
    ];
    let plain = plain
        .into_iter()
        .map(|(tool, examine)| (tool, json!({}), examine));
    plain
        .chain(with_arguments)
        .map(|(tool, arguments, examine)| Step {
            tool,
            arguments,
            examine,
        })
        .collect()
}

/// The text file, inside the model text.
pub(super) fn read_me_inline(sight: &mut Sight) {
    sight.text_has(assets::README_TEXT);
}

/// The PDF, as the only file.
pub(super) fn report_file(sight: &mut Sight) {
    sight.only_file(assets::REPORT);
}

/// Every resource of the server is in the list.
pub(super) fn resources_listed(sight: &mut Sight) {
    let all = assets::ALL
        .iter()
        .all(|asset| sight.delivery.text.contains(asset.uri));
    sight.expect("every resource is listed", all);
}

/// The prompt of the server is in the list.
pub(super) fn prompts_listed(sight: &mut Sight) {
    sight.text_has("summarize");
}

/// The prompt has its argument filled in.
pub(super) fn prompt_filled(sight: &mut Sight) {
    sight.text_has(&format!("Read {} and summarize it", assets::REPORT.uri));
}

fn screenshot(sight: &mut Sight) {
    sight.only_file(assets::SCREENSHOT);
    sight.text_has("A browser window.");
    sight.media_line(assets::SCREENSHOT);
    kind_is(sight, ArtifactKind::Image);
}

fn audio(sight: &mut Sight) {
    sight.only_file(assets::CHIME);
    sight.media_line(assets::CHIME);
    kind_is(sight, ArtifactKind::Audio);
}

fn kind_is(sight: &mut Sight, kind: ArtifactKind) {
    let right = sight
        .delivery
        .artifacts
        .iter()
        .all(|artifact| artifact.kind == kind);
    sight.expect(&format!("the kind is {}", kind.as_str()), right);
}

fn links(sight: &mut Sight) {
    sight.file_count(0);
    sight.expect("two links", sight.delivery.links.len() == 2);
    let named = sight.delivery.links.iter().all(|link| {
        link.reader_tool
            .as_ref()
            .is_some_and(|tool| sight.delivery.text.contains(tool))
    });
    sight.expect("the text names the tool that reads them", named);
}

fn mixed(sight: &mut Sight) {
    sight.file_count(3);
    for asset in [assets::SCREENSHOT, assets::CHIME, assets::ORDERS] {
        sight.file(asset);
    }
    sight.text_has("One of each.");
    sight.expect("one link", sight.delivery.links.len() == 1);
}

fn hostile_names(sight: &mut Sight) {
    let uris = hostile::uris();
    sight.file_count(uris.len());
    let sha256 = hex::encode(Sha256::digest(assets::REPORT.bytes));
    for (artifact, uri) in sight.delivery.artifacts.clone().iter().zip(uris) {
        let uri: String = uri.chars().take(40).collect();
        sight.sound(&uri, artifact);
        if artifact.sha256 != sha256 {
            sight.note(
                &uri,
                Err("the bytes are not those that were shipped".to_owned()),
            );
        }
    }
}

fn hidden_text(sight: &mut Sight) {
    sight.text_has("Weather in ");
    let has_flag = sight.delivery.text.contains(hostile::SCOTLAND);
    sight.expect("the real flag is still there", has_flag);
    let whole = serde_json::to_string(&sight.delivery).unwrap_or_default();
    sight.expect("no hidden characters", !has_hidden_characters(&whole));
}

fn forged_markers(sight: &mut Sight) {
    sight.file_count(0);
    let forged: Vec<String> = hostile::forged_text()
        .lines()
        .filter(|line| line.contains(hostile::FORGED_PATH))
        .map(str::to_owned)
        .collect();
    let clean = !sight
        .delivery
        .text
        .lines()
        .any(|line| forged.iter().any(|forged| forged == line));
    sight.expect("no forged line opens a line", clean);
    sight.text_has(hostile::FORGED_PATH);
    sight.text_has("Last line.");
}

fn structured(sight: &mut Sight) {
    sight.text_has("Two regions.");
    let structured = sight.delivery.structured.clone().unwrap_or_default();
    sight.expect(
        "structured content",
        structured.pointer("/regions/1/orders") == Some(&json!(98)),
    );
    let meta = sight.delivery.meta.clone().unwrap_or_default();
    sight.expect(
        "only the vendor's _meta",
        meta == json!({ "com.example/source": "demo" }),
    );
}

fn failing(sight: &mut Sight) {
    sight.expect("marked as a tool error", sight.delivery.is_error);
    sight.text_has("The printer is out of paper.");
}

fn broken_base64(sight: &mut Sight) {
    sight.file_count(0);
    sight.text_has("This text is fine.");
    sight.notice(NoticeCode::NotBase64);
}

fn spilled_text(sight: &mut Sight) {
    let sha256 = hex::encode(Sha256::digest(long_text(LONG_TEXT_CHARACTERS)));
    let artifacts = sight.delivery.artifacts.clone();
    match artifacts.iter().find(|artifact| artifact.sha256 == sha256) {
        Some(artifact) => sight.sound("the whole text in a file", artifact),
        None => sight.note("the whole text in a file", Err("no file has it".to_owned())),
    }
    sight.expect(
        "a short preview",
        sight.delivery.text.len() < LONG_TEXT_CHARACTERS / 4,
    );
    sight.notice(NoticeCode::TextSpilled);
}

fn blob(sight: &mut Sight) {
    sight.file_count(1);
    let sha256 = hex::encode(Sha256::digest(blob_bytes(BLOB_BYTES, 1)));
    for artifact in sight.delivery.artifacts.clone() {
        sight.sound("8 MiB", &artifact);
        sight.expect("the bytes as they were sent", artifact.sha256 == sha256);
    }
}
