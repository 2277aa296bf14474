//! What each fuzz target does with its input and what must hold afterwards.
//!
//! The targets and the corpus test of the workspace share these bodies.
#![allow(dead_code, reason = "each target uses one body")]

use std::path::PathBuf;
use std::time::SystemTime;

use serde_json::Value;
use talaria_content::base64_guard::{self, Base64Guard};
use talaria_content::{
    Area, Artifact, ArtifactKind, AttachOutcome, Candidate, FileBody, FileOutcome, FileRequest,
    Format, Gate, PlanRequest, ReaderTool, ReadyImage, ReadyPicture, RenderOptions, ResultKind,
    names, plan, render, strip_images,
};
use talaria_image::{NoteKind, Region, Target, Tiling, Watch};
use talaria_mcp::framing::{Frame, LineFramer};
use talaria_mcp::wire;
use talaria_types::{
    ArtifactId, ErrorCode, NoticeCode, PayloadError, PayloadSink, PayloadWriter, ServerName,
    StagedPayload,
};
use talaria_vision::describe::{HttpReply, MAX_WORDS_BYTES, Verdict, read_reply};

/// Limit of a line in the target `frame`.
const LINE: usize = 64 * 1024;

/// A sink that counts and keeps the head only.
#[derive(Debug)]
struct Memory;

struct Writer {
    bytes: u64,
    head: Vec<u8>,
}

impl PayloadSink for Memory {
    fn begin(&self) -> Result<Box<dyn PayloadWriter>, PayloadError> {
        Ok(Box::new(Writer {
            bytes: 0,
            head: Vec::new(),
        }))
    }
}

impl PayloadWriter for Writer {
    fn write(&mut self, decoded: &[u8]) -> Result<(), PayloadError> {
        self.bytes += decoded.len() as u64;
        let room = talaria_types::payload::HEAD_BYTES.saturating_sub(self.head.len());
        self.head
            .extend_from_slice(&decoded[..room.min(decoded.len())]);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<StagedPayload, PayloadError> {
        let mut sha256 = [0; 32];
        sha256[..8].copy_from_slice(&self.bytes.to_le_bytes());
        Ok(StagedPayload::new(
            PathBuf::new(),
            self.bytes,
            sha256,
            self.head,
        ))
    }
}

/// Lines of a stream, then each as a message.
pub(crate) fn frame(data: &[u8]) {
    // The first byte decides how the stream is cut into chunks.
    let (step, stream) = data
        .split_first()
        .map_or((1, data), |(step, rest)| (usize::from(*step) + 1, rest));
    let mut framer = LineFramer::new(LINE);
    let mut seen = 0_u64;
    let mut frames = Vec::new();
    for chunk in stream.chunks(step) {
        framer.push(chunk);
        while let Some(frame) = framer.next_frame() {
            frames.push(frame);
        }
    }
    framer.finish();
    while let Some(frame) = framer.next_frame() {
        frames.push(frame);
    }
    for frame in frames {
        match frame {
            Frame::Line(line) | Frame::Cut(line) => {
                assert!(!line.is_empty() && line.len() <= LINE);
                seen += line.len() as u64;
                for place in ["", "/result"] {
                    if let Ok(read) = wire::scrub(&line, place, &Memory) {
                        check_scrubbed(&line, place, &read);
                    }
                }
            }
            Frame::OversizeBegan { .. } => {}
            Frame::OversizeEnded { bytes, .. } => {
                assert!(bytes > LINE as u64);
                seen += bytes;
            }
        }
    }
    assert!(seen <= stream.len() as u64);
}

fn check_scrubbed(line: &[u8], place: &str, read: &wire::Scrubbed) {
    let Some(result) = &read.result else { return };
    for pointer in result.payloads.keys() {
        assert_eq!(
            result.json.pointer(pointer),
            Some(&Value::String(String::new())),
            "{pointer}"
        );
    }
    // What needed no mending and holds no payload reads as any JSON reader reads it.
    if place.is_empty()
        && result.payloads.is_empty()
        && result.notes.is_empty()
        && let Ok(plain) = serde_json::from_slice::<Value>(line)
    {
        assert_eq!(result.json, plain);
    }
}

/// A result through all rules, in every format, with files that store and files that fail.
pub(crate) fn result(data: &[u8]) {
    let (choice, text) = data
        .split_first()
        .map_or((0, data), |(choice, rest)| (*choice, rest));
    let kinds = [
        ResultKind::ToolCall,
        ResultKind::ToolCall,
        ResultKind::ReadResource,
        ResultKind::GetPrompt,
        ResultKind::ListResources,
        ResultKind::ListPrompts,
    ];
    let format = Format::ALL[usize::from(choice) % Format::ALL.len()];
    let stores = choice & 0x40 == 0;
    let kind = kinds[usize::from(choice) / 3 % kinds.len()].clone();
    let Ok(read) = wire::scrub(text, "", &Memory) else {
        return;
    };
    let Some(raw) = read.result else { return };
    let received = match (&kind, raw.json.get("content").and_then(Value::as_array)) {
        (ResultKind::ToolCall, Some(blocks)) if raw.json.get("toolResult").is_none() => {
            Some(blocks.len())
        }
        _ => None,
    };

    let request = PlanRequest {
        kind,
        server: Some(ServerName::from("fuzz")),
        tool: Some("tool".to_owned()),
        reader: ReaderTool::Missing,
        format,
        result_size_chars: 2_000,
        gate: Gate {
            open: choice & 0x80 == 0,
            mode: "auto".to_owned(),
            reason: "fuzz".to_owned(),
        },
        masker: talaria_content::Masker::default(),
    };
    let mut planned = plan(raw, request);
    let outcomes = store(planned.take_files(), stores, 0);
    let mut draft = planned.finish(outcomes);
    let mut attaching = draft.attaching();
    loop {
        let wave = attaching.next_wave();
        if wave.is_empty() {
            break;
        }
        for candidate in wave {
            attaching.report(candidate.index, outcome(&candidate));
        }
    }
    draft.attach(attaching);
    let spills = store(draft.take_spills(), stores, 1_000);
    let delivery = draft.settle(spills);

    if let Some(received) = received {
        assert_eq!(delivery.blocks.len(), received, "every block has one fate");
    }
    check_text(&delivery.text, &delivery.artifacts);
    for value in [&delivery.structured, &delivery.meta].into_iter().flatten() {
        assert_no_hidden(&value.to_string());
    }
    for artifact in &delivery.artifacts {
        check_name(&artifact.name);
    }
    if format == Format::Talaria {
        assert!(
            !delivery.text.trim().is_empty(),
            "a delivery says something"
        );
    }
    assert!(delivery.attachments.len() <= 4, "four pictures at most");
    for format in Format::ALL {
        let rendered = render(&delivery, format, &RenderOptions::default());
        if rendered.content_type == "application/json" {
            let body: Value = serde_json::from_str(&rendered.body).expect("a JSON body");
            let stripped = strip_images(body, format).expect("a body of ours");
            let again = strip_images(stripped.clone(), format).expect("a stripped body of ours");
            assert_eq!(
                again, stripped,
                "taking pictures out twice is the same as once"
            );
        }
    }
}

/// Two pictures of three are made ready.
fn outcome(candidate: &Candidate) -> AttachOutcome {
    if candidate.index % 3 == 2 {
        return AttachOutcome::Refused {
            code: NoticeCode::ImageNotDecodable,
            detail: "it ends early".to_owned(),
        };
    }
    let area = Area {
        x: 0,
        y: 0,
        width: 64,
        height: 64,
    };
    AttachOutcome::Ready(ReadyPicture {
        images: vec![ReadyImage {
            media_type: "image/png",
            bytes: candidate.index.to_string().into_bytes(),
            width: 32,
            height: 32,
            area,
            scale_note: Some("multiply coordinates by 2.00".to_owned()),
        }],
        notes: Vec::new(),
        original_width: 64,
        original_height: 64,
    })
}

fn store(requests: Vec<FileRequest>, stores: bool, first: usize) -> Vec<FileOutcome> {
    requests
        .into_iter()
        .enumerate()
        .map(|(index, request)| {
            check_name(&request.name);
            if !stores && index % 2 == 0 {
                return FileOutcome::Failed {
                    code: ErrorCode::MediaUnavailable,
                    detail: "no room".to_owned(),
                };
            }
            let bytes = match &request.body {
                FileBody::Bytes(bytes) => bytes.len() as u64,
                FileBody::Staged(staged) => staged.bytes,
            };
            FileOutcome::Stored(Artifact {
                id: ArtifactId::generate(),
                kind: request.kind,
                path: PathBuf::from(format!(
                    "/cache/{}_{:012}",
                    prefix(request.kind),
                    first + index
                )),
                name: request.name,
                url: None,
                media_type: request.media_type,
                declared_type: request.declared_type,
                bytes,
                sha256: format!("{:064}", first + index),
                source_uri: request.source_uri,
            })
        })
        .collect()
}

fn prefix(kind: ArtifactKind) -> &'static str {
    match kind {
        ArtifactKind::Document => "doc",
        ArtifactKind::Image => "img",
        ArtifactKind::Audio => "audio",
        ArtifactKind::Text => "text",
    }
}

fn check_text(text: &str, artifacts: &[Artifact]) {
    assert_no_hidden(text);
    for c in text.chars() {
        assert!(
            !c.is_control() || matches!(c, '\n' | '\t'),
            "control {c:?} in {text:?}"
        );
    }
    for line in text.lines() {
        if let Some(path) = line.trim_start().strip_prefix("MEDIA:") {
            let own = artifacts
                .iter()
                .any(|artifact| artifact.path.as_os_str() == path);
            assert!(
                own,
                "a MEDIA: line that names no file of this call: {line:?}"
            );
        }
    }
}

/// TAG characters stand only behind a black flag.
fn assert_no_hidden(text: &str) {
    let mut in_flag = false;
    for c in text.chars() {
        let tag = ('\u{e0000}'..='\u{e007f}').contains(&c);
        assert!(!tag || in_flag, "a hidden character in {text:?}");
        in_flag = c == '\u{1f3f4}' || (tag && in_flag);
    }
}

fn check_name(name: &str) {
    assert!(!name.is_empty() && name != "." && name != "..");
    assert!(name.chars().count() <= 150 && name.len() <= 200, "{name:?}");
    assert!(
        !name.starts_with(['.', ' ']) && !name.ends_with(['.', ' ']),
        "{name:?}"
    );
    let forbidden = |c: char| {
        c.is_control()
            || matches!(c, '/' | '\\' | ':' | '*' | '?' | '"' | '<' | '>' | '|')
            || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
            || ('\u{e0000}'..='\u{e007f}').contains(&c)
    };
    assert!(!name.chars().any(forbidden), "{name:?}");
}

/// Any address and type give a safe name.
pub(crate) fn file_name(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    let (uri, media_type) = text
        .split_once('\n')
        .map_or((&*text, None), |(uri, kind)| (uri, Some(kind)));
    check_name(&names::safe_name(uri, media_type));
}

/// The guard answers the same however its input is cut, and never more than the input holds.
pub(crate) fn base64(data: &[u8]) {
    let (step, encoded) = data
        .split_first()
        .map_or((1, data), |(step, rest)| (usize::from(*step) + 1, rest));
    let run = |step: usize| {
        let mut guard = Base64Guard::new();
        let mut out = Vec::new();
        for piece in encoded.chunks(step) {
            guard.push(piece, &mut out)?;
        }
        guard.finish(&mut out).map(|decoded| (out, decoded))
    };
    let whole = run(encoded.len().max(1));
    assert_eq!(run(step), whole);
    if let Ok((bytes, decoded)) = &whole {
        assert_eq!(bytes.len() as u64, decoded.bytes);
        assert!(!bytes.is_empty() && bytes.len() <= encoded.len());
    }
    if let Ok(text) = std::str::from_utf8(encoded) {
        assert_eq!(base64_guard::decode(text).is_ok(), whole.is_ok());
    }
}

/// A picture as it arrives; the first byte chooses what it has to become.
///
/// What comes out is within the limits, is what its type says, and decodes without a complaint.
pub(crate) fn prepare(data: &[u8]) {
    let (choice, bytes) = data
        .split_first()
        .map_or((0, data), |(choice, rest)| (*choice, rest));
    let tilings = [
        Tiling::Off,
        Tiling::Auto { most: 4 },
        Tiling::On { most: 3 },
    ];
    let region = Region {
        x1: -3,
        y1: 1,
        x2: 40,
        y2: 20,
    };
    let target = Target {
        budget: if choice & 1 == 0 { 262_144 } else { 65_536 },
        max_side: if choice & 2 == 0 { 1_568 } else { 64 },
        webp: choice & 4 == 0,
        region: (choice & 8 != 0).then_some(region),
        tiling: tilings[usize::from(choice >> 4) % tilings.len()],
    };
    let watch = Watch::never();
    let prepared = match talaria_image::prepare(bytes, &target, &watch) {
        Ok(prepared) => prepared,
        Err(refusal) => {
            assert!(!refusal.detail.is_empty());
            return;
        }
    };
    assert!((1..=4).contains(&prepared.pictures.len()));
    let most = u64::from(target.max_side.max(32));
    for picture in &prepared.pictures {
        let prefix = format!("data:{};base64,", picture.format.media_type());
        let url = prefix.len() + picture.bytes.len().div_ceil(3) * 4;
        assert!(url <= target.budget, "{url} characters");
        let long = u64::from(picture.width.max(picture.height));
        assert!(long <= most, "{}×{}", picture.width, picture.height);
        let facts = talaria_image::inspect(&picture.bytes).expect("a picture");
        assert_eq!((facts.width, facts.height), (picture.width, picture.height));
        assert_eq!(
            format!("image/{}", facts.format.as_str()),
            picture.format.media_type()
        );
        let again = Target {
            budget: 4_194_304,
            ..Target::default()
        };
        let again = talaria_image::prepare(&picture.bytes, &again, &watch).expect("it decodes");
        let complaint = again
            .notes
            .iter()
            .find(|note| note.kind == NoteKind::Damaged);
        assert_eq!(complaint, None);
    }
}

/// An answer of a backend that describes pictures; the first byte chooses its status.
///
/// Only successes hold a description, and one that somebody can see; a body that is cut, or that
/// tells an error, never does.
pub(crate) fn vision_reply(data: &[u8]) {
    let (choice, body) = data
        .split_first()
        .map_or((0, data), |(choice, rest)| (*choice, rest));
    let statuses = [200, 400, 401, 404, 429, 500, 502, 302];
    let status = statuses[usize::from(choice) % statuses.len()];
    let header = String::from_utf8_lossy(&body[..body.len().min(40)]);
    let verdict = |status: u16, body: &[u8]| {
        let verdict = read_reply(&HttpReply {
            status,
            retry_after: (choice & 8 != 0).then_some(&*header),
            retry_after_ms: (choice & 16 != 0).then_some(&*header),
            body,
            now: SystemTime::UNIX_EPOCH,
        });
        check_verdict(status, &verdict);
        verdict
    };
    let whole = verdict(status, body);
    let Ok(mut json) = serde_json::from_slice::<Value>(body) else {
        return;
    };
    assert_eq!(
        verdict(status, body),
        whole,
        "the same answer is judged the same"
    );
    if let Some(map) = json.as_object_mut() {
        let cut = body.trim_ascii();
        let cut = verdict(200, &cut[..cut.len() - 1]);
        assert!(matches!(cut, Verdict::Failed(_)), "{cut:?}");
        map.insert("error".to_owned(), "it broke".into());
        let told = verdict(200, json.to_string().as_bytes());
        assert!(matches!(told, Verdict::Failed(_)), "{told:?}");
    }
}

fn check_verdict(status: u16, verdict: &Verdict) {
    match verdict {
        Verdict::Answer(text) | Verdict::Reasoned(text) => {
            assert!((200..300).contains(&status));
            let is_something = |c: char| !c.is_whitespace() && !c.is_control();
            assert!(text.chars().any(is_something), "{text:?}");
        }
        Verdict::Failed(fault) => {
            assert!(fault.words.len() <= MAX_WORDS_BYTES);
            assert!(!fault.words.chars().any(char::is_control), "{fault:?}");
            assert_eq!(fault.status, Some(status));
            let code = fault.provider_code.as_deref().unwrap_or_default();
            assert!(code.len() <= 64 && code.is_ascii(), "{fault:?}");
        }
    }
}
