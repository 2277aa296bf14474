//! The output type: what an agent gets for one result (design §5 and §10).

use std::path::PathBuf;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use talaria_types::{ArtifactId, DeliveryId, NoticeCode};

/// What an agent gets for one result. Absent values are null or empty lists, never missing keys.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Delivery {
    /// `dlv_` and a ULID.
    pub id: DeliveryId,
    /// What the model reads. Never holds base64 of a payload.
    pub text: String,
    /// Images as pixels.
    pub attachments: Vec<Attachment>,
    /// Every file of this call.
    pub artifacts: Vec<Artifact>,
    /// Resource links, never fetched.
    pub links: Vec<Link>,
    /// `structuredContent` after the duplicate rule.
    pub structured: Option<Value>,
    /// Vendor `_meta`.
    pub meta: Option<Value>,
    /// The tool said that it failed.
    pub is_error: bool,
    /// Everything dropped, refused, truncated or changed.
    pub notices: Vec<Notice>,
    /// Whether pixels may go to this route, and why.
    pub gate: Gate,
    /// Descriptions, where somebody was asked for one.
    pub vision: Option<Vision>,
    /// Raw server name.
    pub server: Option<String>,
    /// Raw tool name.
    pub tool: Option<String>,
    /// From request to delivery.
    pub elapsed_ms: u64,
    /// What the format `hermes` needs besides.
    #[serde(skip)]
    pub(crate) hermes: HermesParts,
    /// The fate of each block received, in order.
    #[serde(skip)]
    pub blocks: Vec<BlockRecord>,
    /// Whether formats `text` and `hermes` mark it as data of others.
    #[serde(skip)]
    pub(crate) is_untrusted: bool,
}

impl Delivery {
    /// Lets formats `text` and `hermes` put it into an element that says that it is data, not
    /// instructions (specification 1.12).
    #[must_use]
    pub fn untrusted(mut self) -> Self {
        self.is_untrusted = true;
        self
    }
}

/// The joined text and extras as Hermes would serialise them.
#[derive(Clone, Debug, Default)]
pub(crate) struct HermesParts {
    /// The answer, where the delivery was planned for that format.
    pub(crate) body: Option<String>,
    /// What is said about the pictures, where there are any.
    pub(crate) picture_notes: Option<String>,
}

/// One image as pixels.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Attachment {
    /// The file it was made from.
    pub artifact: ArtifactId,
    /// Media type of `data`.
    pub media_type: String,
    /// Base64.
    pub data: String,
    /// Pixels.
    pub width: u32,
    /// Pixels.
    pub height: u32,
    /// Pixels of the original.
    pub original_width: u32,
    /// Pixels of the original.
    pub original_height: u32,
    /// How to map coordinates back.
    pub scale_note: Option<String>,
    /// The part of the original it shows.
    pub area: Area,
}

impl Attachment {
    /// The whole as an address.
    pub(crate) fn data_url(&self) -> String {
        format!("data:{};base64,{}", self.media_type, self.data)
    }
}

/// A rectangle of the original, upright, in pixels.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Area {
    /// From the left.
    pub x: u32,
    /// From the top.
    pub y: u32,
    /// Extent.
    pub width: u32,
    /// Extent.
    pub height: u32,
}

/// What a file is to the agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ArtifactKind {
    /// PDF, Office, archive or anything else.
    Document,
    /// A picture.
    Image,
    /// Sound.
    Audio,
    /// Long text spilled to a file.
    Text,
}

impl ArtifactKind {
    /// The word used in JSON and labels.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Document => "document",
            Self::Image => "image",
            Self::Audio => "audio",
            Self::Text => "text",
        }
    }
}

/// One stored file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Artifact {
    /// `art_` and a ULID.
    pub id: ArtifactId,
    /// What it is.
    pub kind: ArtifactKind,
    /// Safe file name for people.
    pub name: String,
    /// Real absolute path on the machine Talaria runs on.
    pub path: PathBuf,
    /// Where another machine reads it.
    pub url: Option<String>,
    /// Sniffed.
    pub media_type: String,
    /// What the server said.
    pub declared_type: Option<String>,
    /// Size.
    pub bytes: u64,
    /// Lower-case hex.
    pub sha256: String,
    /// Where the server said it comes from.
    pub source_uri: Option<String>,
}

/// One resource link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Link {
    /// The address, sanitised.
    pub uri: String,
    /// Its name, or one made from the address.
    pub name: String,
    /// Declared type.
    pub media_type: Option<String>,
    /// Raw size in bytes.
    pub size: Option<u64>,
    /// What the server says of it.
    pub description: Option<String>,
    /// The registered tool that reads it, or null.
    pub reader_tool: Option<String>,
}

/// One thing that was dropped, refused, truncated or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Notice {
    /// Stable code.
    pub code: NoticeCode,
    /// One line.
    pub message: String,
    /// Index of the block concerned.
    pub block: Option<usize>,
}

/// The pixel gate's answer for this delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Gate {
    /// Whether pixels may be attached.
    pub open: bool,
    /// `auto`, `native` or `text`.
    pub mode: String,
    /// In words an operator understands.
    pub reason: String,
}

/// What became of the pictures that somebody was asked to describe.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Vision {
    /// In block order.
    pub descriptions: Vec<ImageDescription>,
}

/// One picture in words, or why it is not.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ImageDescription {
    /// The picture.
    pub artifact: ArtifactId,
    /// The description.
    pub text: Option<String>,
    /// The backend that gave it: `openai/gpt-4o-mini`, `mcp:MiniMax/understand_image`.
    pub via: Option<String>,
    /// How to map coordinates in the text back to the original.
    pub scale_note: Option<String>,
    /// Whether the text is only what the backend thought on its way to no answer.
    pub is_reasoning: bool,
    /// Everybody who was asked, in order.
    pub attempts: Value,
    /// Why there is no text.
    pub error: Option<DescriptionError>,
}

/// Why a picture is not described.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DescriptionError {
    /// Stable code.
    pub code: NoticeCode,
    /// One line: the first failure, and the last.
    pub message: String,
}

/// What became of one received block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockRecord {
    /// `text`, `image`, `audio`, `resource`, `resource_link`, `unknown`.
    pub kind: &'static str,
    /// Its fate.
    pub fate: BlockFate,
}

/// The fates; their sum equals the blocks received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockFate {
    /// Its content is in the model text or the links.
    Delivered,
    /// It is a file.
    Saved,
    /// It is text in a spill file.
    Spilled,
    /// It was refused with a notice.
    Refused(NoticeCode),
}
