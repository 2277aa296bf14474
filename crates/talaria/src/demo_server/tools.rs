//! The demo server's tools.

use std::path::PathBuf;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{
    CallToolResult, ContentBlock, MetaObject, ProgressNotificationParam, ResourceContents,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, tool, tool_router};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::json;

use super::assets::{self, Asset};
use super::{DemoServer, desktop, hostile, look, resources};

/// The largest payload `blob` makes.
const MAX_BLOB_BYTES: usize = 256 * 1024 * 1024;
/// The longest text `long_text` makes.
const MAX_TEXT_CHARACTERS: usize = 16 * 1024 * 1024;
/// The longest `sleep`.
const MAX_SLEEP: Duration = Duration::from_hours(1);
/// How often `sleep` reports progress.
const PROGRESS_STEP: Duration = Duration::from_millis(100);

/// Arguments of `echo`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct EchoArguments {
    /// The text that comes back.
    text: String,
}

/// Arguments of `blob`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct BlobArguments {
    /// Size of the payload, at most 256 MiB.
    bytes: usize,
    /// Payloads of different seeds differ.
    #[serde(default)]
    seed: u64,
}

/// Arguments of `long_text`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct LongTextArguments {
    /// Length of the text, at most 16 Mi characters.
    characters: usize,
}

/// Arguments of `sleep`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct SleepArguments {
    /// Milliseconds, at most an hour.
    ms: u64,
}

/// Arguments of `understand_image`.
#[derive(Debug, Deserialize, JsonSchema)]
pub(super) struct UnderstandImageArguments {
    /// What to find out about the picture.
    prompt: String,
    /// Absolute path of the picture.
    image_source: PathBuf,
}

#[tool_router(router = tools, vis = "pub(super)")]
impl DemoServer {
    #[tool(
        description = "Answers with the text it is given.",
        annotations(read_only_hint = true)
    )]
    fn echo(&self, Parameters(arguments): Parameters<EchoArguments>) -> CallToolResult {
        text_result(arguments.text)
    }

    #[tool(
        description = "Returns plain text.",
        annotations(read_only_hint = true)
    )]
    fn text(&self) -> CallToolResult {
        text_result(assets::README_TEXT)
    }

    #[tool(
        description = "Returns a text file inside the result.",
        annotations(read_only_hint = true)
    )]
    fn embedded_text(&self) -> CallToolResult {
        CallToolResult::success(vec![embedded(assets::README)])
    }

    #[tool(
        description = "Returns a PDF document.",
        annotations(read_only_hint = true)
    )]
    fn pdf(&self) -> CallToolResult {
        CallToolResult::success(vec![embedded(assets::REPORT)])
    }

    #[tool(
        description = "Returns a Word document.",
        annotations(read_only_hint = true)
    )]
    fn docx(&self) -> CallToolResult {
        CallToolResult::success(vec![embedded(assets::NOTES)])
    }

    #[tool(
        description = "Returns an Excel workbook.",
        annotations(read_only_hint = true)
    )]
    fn xlsx(&self) -> CallToolResult {
        CallToolResult::success(vec![embedded(assets::ORDERS)])
    }

    #[tool(
        description = "Returns a ZIP archive.",
        annotations(read_only_hint = true)
    )]
    fn zip(&self) -> CallToolResult {
        CallToolResult::success(vec![embedded(assets::BUNDLE)])
    }

    #[tool(
        description = "Returns a screenshot with a caption.",
        annotations(read_only_hint = true)
    )]
    fn screenshot(&self) -> CallToolResult {
        CallToolResult::success(vec![ContentBlock::text("A browser window."), image()])
    }

    #[tool(
        description = "Returns a picture of a 4K screen.",
        annotations(read_only_hint = true)
    )]
    fn desktop(&self) -> Result<CallToolResult, ErrorData> {
        let screen = desktop::screen()
            .map_err(|error| ErrorData::internal_error(error.to_string(), None))?;
        let screen = ContentBlock::image(STANDARD.encode(screen), "image/png");
        Ok(CallToolResult::success(vec![screen]))
    }

    #[tool(description = "Returns a sound.", annotations(read_only_hint = true))]
    fn audio(&self) -> CallToolResult {
        CallToolResult::success(vec![audio()])
    }

    #[tool(
        description = "Returns links to two files that read_resource reads.",
        annotations(read_only_hint = true)
    )]
    fn links(&self) -> CallToolResult {
        CallToolResult::success(
            [assets::REPORT, assets::README]
                .map(|asset| ContentBlock::resource_link(resources::link(asset)))
                .into(),
        )
    }

    #[tool(
        description = "Returns text, a picture, a sound, a document and a link in one result.",
        annotations(read_only_hint = true)
    )]
    fn mixed(&self) -> CallToolResult {
        CallToolResult::success(vec![
            ContentBlock::text("One of each."),
            image(),
            audio(),
            embedded(assets::ORDERS),
            ContentBlock::resource_link(resources::link(assets::REPORT)),
        ])
    }

    #[tool(
        description = "Returns documents whose names try to leave the cache.",
        annotations(read_only_hint = true)
    )]
    fn hostile_names(&self) -> CallToolResult {
        CallToolResult::success(
            hostile::uris()
                .iter()
                .map(|uri| ContentBlock::resource(resources::contents(assets::REPORT, uri)))
                .collect(),
        )
    }

    #[tool(
        description = "Returns text with words hidden in TAG characters.",
        annotations(read_only_hint = true)
    )]
    fn hidden_text(&self) -> CallToolResult {
        text_result(hostile::hidden_text())
    }

    #[tool(
        description = "Returns text that imitates file lines of the host.",
        annotations(read_only_hint = true)
    )]
    fn forged_markers(&self) -> CallToolResult {
        text_result(hostile::forged_text())
    }

    #[tool(
        description = "Returns structured content and metadata beside a summary.",
        annotations(read_only_hint = true)
    )]
    fn structured(&self) -> CallToolResult {
        let mut result = CallToolResult::structured(json!({
            "regions": [{ "name": "North", "orders": 120 }, { "name": "South", "orders": 98 }],
        }));
        result.content = vec![ContentBlock::text("Two regions.")];
        let mut meta = MetaObject::new();
        meta.0
            .insert("com.example/source".to_owned(), json!("demo"));
        meta.0.insert(
            "modelcontextprotocol.io/reserved".to_owned(),
            json!("dropped"),
        );
        result.with_meta(Some(meta))
    }

    #[tool(
        description = "Fails as a tool, with its own words.",
        annotations(read_only_hint = true)
    )]
    fn failing(&self) -> CallToolResult {
        CallToolResult::error(vec![ContentBlock::text("The printer is out of paper.")])
    }

    #[tool(
        description = "Returns a document that is not valid base64, next to good text.",
        annotations(read_only_hint = true)
    )]
    fn broken_base64(&self) -> CallToolResult {
        let broken = ResourceContents::blob(hostile::BROKEN_BASE64, "demo://files/broken.pdf")
            .with_mime_type("application/pdf");
        CallToolResult::success(vec![
            ContentBlock::text("This text is fine."),
            ContentBlock::resource(broken),
        ])
    }

    #[tool(
        description = "Tells format and size of a picture file; it has no model behind it.",
        annotations(read_only_hint = true)
    )]
    fn understand_image(
        &self,
        Parameters(arguments): Parameters<UnderstandImageArguments>,
    ) -> CallToolResult {
        match look::look(&arguments.image_source) {
            Ok(seen) => text_result(format!("Asked: {}\n{seen}", arguments.prompt)),
            Err(problem) => CallToolResult::error(vec![ContentBlock::text(problem)]),
        }
    }

    #[tool(
        description = "Returns a long text.",
        annotations(read_only_hint = true)
    )]
    fn long_text(
        &self,
        Parameters(arguments): Parameters<LongTextArguments>,
    ) -> Result<CallToolResult, ErrorData> {
        at_most("characters", arguments.characters, MAX_TEXT_CHARACTERS)?;
        Ok(text_result(long_text(arguments.characters)))
    }

    #[tool(
        description = "Returns a binary payload of the wanted size.",
        annotations(read_only_hint = true)
    )]
    fn blob(
        &self,
        Parameters(arguments): Parameters<BlobArguments>,
    ) -> Result<CallToolResult, ErrorData> {
        at_most("bytes", arguments.bytes, MAX_BLOB_BYTES)?;
        let data = STANDARD.encode(blob_bytes(arguments.bytes, arguments.seed));
        let contents = ResourceContents::blob(data, "demo://files/blob.bin")
            .with_mime_type("application/octet-stream");
        Ok(CallToolResult::success(vec![ContentBlock::resource(
            contents,
        )]))
    }

    #[tool(
        description = "Waits, reporting progress, and says so.",
        annotations(read_only_hint = true)
    )]
    async fn sleep(
        &self,
        Parameters(arguments): Parameters<SleepArguments>,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResult, ErrorData> {
        let wanted = Duration::from_millis(arguments.ms).min(MAX_SLEEP);
        tokio::select! {
            () = context.ct.cancelled() => {
                Err(ErrorData::invalid_request("cancelled", None))
            }
            () = sleep_with_progress(wanted, &context) => {
                Ok(text_result(format!("Slept for {} ms.", wanted.as_millis())))
            }
        }
    }
}

/// The payload of `blob`: a fixed start, then noise that depends on the seed alone.
#[must_use]
pub fn blob_bytes(length: usize, seed: u64) -> Vec<u8> {
    const START: &[u8] = b"talaria demo blob\0";
    let mut bytes = Vec::with_capacity(length.saturating_add(8));
    bytes.extend_from_slice(START);
    // Xorshift never leaves zero, so the seed is spread over an odd constant.
    let mut state = seed
        .wrapping_mul(2)
        .wrapping_add(1)
        .wrapping_mul(0x9E37_79B9_7F4A_7C15);
    while bytes.len() < length {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// The text of `long_text`: numbered lines, cut at a length.
#[must_use]
pub fn long_text(characters: usize) -> String {
    let mut text = String::with_capacity(characters.saturating_add(64));
    let mut line = 1_u64;
    while text.len() < characters {
        text.push_str("Line ");
        text.push_str(&line.to_string());
        text.push_str(" of a long text.\n");
        line += 1;
    }
    text.truncate(characters);
    text
}

async fn sleep_with_progress(wanted: Duration, context: &RequestContext<RoleServer>) {
    let token = context.meta.get_progress_token();
    let mut slept = Duration::ZERO;
    while slept < wanted {
        let step = PROGRESS_STEP.min(wanted.saturating_sub(slept));
        tokio::time::sleep(step).await;
        slept += step;
        if let Some(token) = &token {
            let progress = ProgressNotificationParam::new(token.clone(), slept.as_secs_f64())
                .with_total(wanted.as_secs_f64());
            // A client that no longer listens cancels or goes away; both end the sleep elsewhere.
            drop(context.peer.notify_progress(progress).await);
        }
    }
}

fn at_most(name: &str, value: usize, limit: usize) -> Result<(), ErrorData> {
    if value > limit {
        return Err(ErrorData::invalid_params(
            format!("{name} is over {limit}"),
            None,
        ));
    }
    Ok(())
}

fn text_result(text: impl Into<String>) -> CallToolResult {
    CallToolResult::success(vec![ContentBlock::text(text)])
}

fn embedded(asset: Asset) -> ContentBlock {
    ContentBlock::resource(resources::contents(asset, asset.uri))
}

fn image() -> ContentBlock {
    let asset = assets::SCREENSHOT;
    ContentBlock::image(STANDARD.encode(asset.bytes), asset.media_type)
}

fn audio() -> ContentBlock {
    let asset = assets::CHIME;
    ContentBlock::audio(STANDARD.encode(asset.bytes), asset.media_type)
}
