//! A store for the rules to save into, and the way from a result to its delivery.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;
use sha2::{Digest as _, Sha256};
use talaria_content::base64_guard::decode;
use talaria_content::{
    Area, Artifact, ArtifactKind, AttachOutcome, BlockFate, Delivery, Draft, FileBody, FileOutcome,
    FileRequest, Format, Gate, Masker, PlanRequest, ReaderTool, ReadyImage, ReadyPicture,
    RenderOptions, Rendered, ResultKind, plan,
};
use talaria_types::{ArtifactId, ErrorCode, Payload, RawResult, StagedPayload};
use tempfile::TempDir;

/// A store in a temporary folder.
#[derive(Debug)]
pub(crate) struct Bench {
    folder: TempDir,
    count: Cell<usize>,
    pub(crate) request: PlanRequest,
    /// Whether payloads arrive in the staging area, as the wire layer leaves them.
    pub(crate) staged: bool,
    /// Whether the disk refuses every file.
    pub(crate) full: bool,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Self {
            folder: TempDir::new().unwrap(),
            count: Cell::new(0),
            request: PlanRequest {
                kind: ResultKind::ToolCall,
                server: None,
                tool: None,
                reader: ReaderTool::Missing,
                format: Format::Talaria,
                result_size_chars: 50_000,
                gate: Gate {
                    open: true,
                    mode: "auto".to_owned(),
                    reason: "test".to_owned(),
                },
                masker: Masker::default(),
            },
            staged: false,
            full: false,
        }
    }

    pub(crate) fn of(kind: ResultKind) -> Self {
        let mut bench = Self::new();
        bench.request.kind = kind;
        bench
    }

    pub(crate) fn format(format: Format) -> Self {
        let mut bench = Self::new();
        bench.request.format = format;
        bench
    }

    /// The rule behind format `hermes`, without the model's budget.
    pub(crate) fn hermes() -> Self {
        let mut bench = Self::format(Format::Hermes);
        bench.request.result_size_chars = usize::MAX;
        bench
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn deliver(&self, result: Value) -> Delivery {
        let raw = if self.staged {
            self.stage(result)
        } else {
            RawResult::from_json(result)
        };
        self.deliver_raw(raw)
    }

    pub(crate) fn deliver_raw(&self, raw: RawResult) -> Delivery {
        self.settle(self.draft_raw(raw))
    }

    fn draft_raw(&self, raw: RawResult) -> Draft {
        let mut plan = plan(raw, self.request.clone());
        let texts = plan
            .texts_to_read()
            .iter()
            .map(|text| std::fs::read(&text.path).ok())
            .collect();
        plan.put_texts(texts);
        let outcomes = plan
            .take_files()
            .into_iter()
            .map(|file| self.save(file))
            .collect();
        plan.finish(outcomes)
    }

    /// A result with its files stored.
    pub(crate) fn draft(&self, result: Value) -> Draft {
        self.draft_raw(RawResult::from_json(result))
    }

    /// Bounds the text of a draft.
    pub(crate) fn settle(&self, mut draft: Draft) -> Delivery {
        let spills = draft
            .take_spills()
            .into_iter()
            .map(|file| self.save(file))
            .collect();
        draft.settle(spills)
    }

    /// The answer in format `hermes` as a value.
    pub(crate) fn hermes_answer(result: Value) -> Value {
        let delivery = Self::hermes().deliver(result);
        serde_json::from_str(&render(&delivery, Format::Hermes).body).unwrap()
    }

    fn save(&self, request: FileRequest) -> FileOutcome {
        if self.full {
            return FileOutcome::Failed {
                code: ErrorCode::MediaUnavailable,
                detail: "the disk is full".to_owned(),
            };
        }
        let number = self.count.get();
        self.count.set(number + 1);
        let kind = request.kind;
        let (folder, prefix) = match kind {
            ArtifactKind::Document => ("documents", "doc"),
            ArtifactKind::Image => ("images", "img"),
            ArtifactKind::Audio => ("audio", "audio"),
            ArtifactKind::Text => ("spillover", "text"),
        };
        let file_name = match request.named {
            true => format!("{prefix}_{number:012x}_{}", request.name),
            false => {
                let extension = request.name.rsplit('.').next().unwrap();
                format!("{prefix}_{number:012x}.{extension}")
            }
        };
        let folder = self.folder().join(folder);
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(file_name);
        match request.body {
            FileBody::Bytes(bytes) => std::fs::write(&path, bytes).unwrap(),
            FileBody::Staged(mut staged) => {
                std::fs::rename(staged.take_path().unwrap(), &path).unwrap();
            }
        }
        let bytes = std::fs::read(&path).unwrap();
        FileOutcome::Stored(Artifact {
            id: ArtifactId::generate(),
            kind,
            name: request.name,
            url: None,
            media_type: request.media_type,
            declared_type: request.declared_type,
            bytes: bytes.len() as u64,
            sha256: hex::encode(Sha256::digest(&bytes)),
            source_uri: request.source_uri,
            path,
        })
    }

    /// Takes payload strings out of the JSON as the wire layer does, whatever their length.
    pub(crate) fn stage(&self, mut json: Value) -> RawResult {
        let mut payloads = BTreeMap::new();
        self.stage_value(&mut json, "", &mut payloads);
        RawResult {
            json,
            payloads,
            ..RawResult::default()
        }
    }

    fn stage_value(&self, value: &mut Value, at: &str, payloads: &mut BTreeMap<String, Payload>) {
        match value {
            Value::Array(items) => {
                for (index, item) in items.iter_mut().enumerate() {
                    self.stage_value(item, &format!("{at}/{index}"), payloads);
                }
            }
            Value::Object(members) => {
                for (key, member) in members.iter_mut() {
                    let at = format!("{at}/{}", key.replace('~', "~0").replace('/', "~1"));
                    match (key.as_str(), member.as_str()) {
                        ("data" | "blob", Some(text)) => {
                            let payload = match decode(text) {
                                Ok((bytes, _)) => Payload::Staged(self.staged_file(&bytes)),
                                Err(refusal) => Payload::Refused(refusal),
                            };
                            *member = "".into();
                            payloads.insert(at, payload);
                        }
                        _ => self.stage_value(member, &at, payloads),
                    }
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    pub(crate) fn staged_file(&self, bytes: &[u8]) -> StagedPayload {
        let number = self.count.get();
        self.count.set(number + 1);
        let folder = self.folder().join("staging");
        std::fs::create_dir_all(&folder).unwrap();
        let path = folder.join(number.to_string());
        std::fs::write(&path, bytes).unwrap();
        let head = bytes
            .iter()
            .copied()
            .take(talaria_types::payload::HEAD_BYTES)
            .collect();
        StagedPayload::new(path, bytes.len() as u64, Sha256::digest(bytes).into(), head)
    }
}

/// A rendered delivery, without anything of a provider.
pub(crate) fn render(delivery: &Delivery, format: Format) -> Rendered {
    talaria_content::render(delivery, format, &RenderOptions::default())
}

/// An image block that holds these bytes.
pub(crate) fn image(bytes: &[u8]) -> Value {
    serde_json::json!({"type": "image", "mimeType": "image/png", "data": encode(bytes)})
}

/// The delivery of a result, each picture made ready as the digits of its number.
pub(crate) fn with_pixels(bench: &Bench, result: Value) -> Delivery {
    let mut draft = bench.draft(result);
    let mut attaching = draft.attaching();
    for candidate in attaching.next_wave() {
        let picture = ready(&candidate.index.to_string());
        attaching.report(candidate.index, AttachOutcome::Ready(picture));
    }
    draft.attach(attaching);
    bench.settle(draft)
}

/// The names of the notices of a delivery.
pub(crate) fn codes(delivery: &Delivery) -> Vec<&'static str> {
    delivery
        .notices
        .iter()
        .map(|notice| notice.code.as_str())
        .collect()
}

/// The fates of the blocks of a delivery.
pub(crate) fn fates(delivery: &Delivery) -> Vec<BlockFate> {
    delivery.blocks.iter().map(|block| block.fate).collect()
}

/// The bytes of the only file of a delivery, and the file.
pub(crate) fn only_file(delivery: &Delivery) -> (&Artifact, Vec<u8>) {
    let [artifact] = delivery.artifacts.as_slice() else {
        panic!("{:#?}", delivery.artifacts);
    };
    (artifact, std::fs::read(&artifact.path).unwrap())
}

pub(crate) fn encode(bytes: &[u8]) -> String {
    use base64::Engine as _;
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

/// A PNG by its first bytes, different for each number.
pub(crate) fn picture(number: usize) -> Vec<u8> {
    [PNG, number.to_string().as_bytes()].concat()
}

/// A picture made ready whose file is `pixels`.
pub(crate) fn ready(pixels: &str) -> ReadyPicture {
    ReadyPicture {
        images: vec![ReadyImage {
            media_type: "image/png",
            bytes: pixels.as_bytes().to_vec(),
            width: 64,
            height: 64,
            area: Area {
                x: 0,
                y: 0,
                width: 128,
                height: 128,
            },
            scale_note: None,
        }],
        notes: Vec::new(),
        original_width: 128,
        original_height: 128,
    }
}

/// A PNG of one pixel.
pub(crate) const PNG: &[u8] =
    b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x01\0\0\0\x01\x08\x06\0\0\0\x1f\x15\xc4\
    \x89\0\0\0\rIDATx\x9cc\xf8\xcf\xc0\xf0\x1f\0\x05\0\x01\xff\x89\x99=\x1d\0\0\0\0IEND\xaeB`\x82";
pub(crate) const JPEG: &[u8] = b"\xff\xd8\xff\xe0\0\x10JFIF\0\x01\x01\0\0\x01\0\x01\0\0\xff\xd9";
pub(crate) const PDF: &[u8] =
    b"%PDF-1.4\n1 0 obj<</Type/Catalog>>endobj\ntrailer<</Root 1 0 R>>\n%%EOF\n";
