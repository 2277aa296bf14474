//! `POST /v1/images/deliver`: one picture, through the same gate as those of a tool's result.

use std::collections::BTreeMap;
use std::fmt;

use actix_web::{HttpResponse, web};
use schemars::JsonSchema;
use serde::de::{IgnoredAny, Visitor};
use serde::{Deserialize, Deserializer};
use talaria_actors::{PictureInput, PictureRequest};
use talaria_content::base64_guard::decode;
use talaria_image::Region;
use talaria_types::PayloadRefusal;
use talaria_vision::ImageSource;

use crate::body::{self, JsonRequest};
use crate::exchange::Asked;
use crate::problem::Rejection;
use crate::query;
use crate::routes::answer;
use crate::wishes::Wishes;

/// Longest question, in bytes.
const MAX_QUESTION_BYTES: usize = 64 * 1024;

/// Body of `POST /v1/images/deliver`.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct ImageRequest {
    /// What the picture was made for: `vision_analyze`, `browser`, `computer_use` or `mcp`.
    source: Source,
    /// The picture.
    image: Image,
    /// What the model shall find out.
    #[serde(default)]
    question: Option<String>,
    /// `[x1, y1, x2, y2]` in pixels of the upright picture: the part that is wanted, cut out
    /// before anything is scaled.
    #[serde(default)]
    region: Option<[i64; 4]>,
    #[serde(flatten)]
    wishes: Wishes,
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: BTreeMap<String, IgnoredAny>,
}

impl JsonRequest for ImageRequest {
    const OWN_KEYS: &'static [&'static str] = &["source", "image", "question", "region"];
    const SHARED_KEYS: &'static [&'static str] = Wishes::KEYS;

    fn unknown(&self) -> Option<&str> {
        self.unknown.keys().next().map(String::as_str)
    }
}

/// Where a picture comes from.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum Source {
    /// The agent looks at a picture of its own.
    VisionAnalyze,
    /// A capture of a browser.
    Browser,
    /// A capture of a screen.
    ComputerUse,
    /// A picture of an MCP server.
    Mcp,
}

/// A picture, in exactly one way.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Image {
    /// A file of a delivery, or below a folder of `talaria.images.allowed_roots`.
    #[serde(default)]
    path: Option<String>,
    /// Base64, also as a `data:` URL; at most 50 MiB of picture.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    data: Option<Data>,
    /// Not fetched in this version.
    #[serde(default)]
    url: Option<String>,
}

/// Bytes, decoded while the body is read, so that the base64 is not kept beside them.
struct Data(Result<(Vec<u8>, Option<String>), PayloadRefusal>);

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok((bytes, _)) => write!(f, "Data({} bytes)", bytes.len()),
            Err(refusal) => f.debug_tuple("Data").field(refusal).finish(),
        }
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(DataVisitor)
    }
}

struct DataVisitor;

impl Visitor<'_> for DataVisitor {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("base64")
    }

    fn visit_str<E>(self, text: &str) -> Result<Data, E> {
        Ok(Data(
            decode(text).map(|(bytes, decoded)| (bytes, decoded.data_url_type)),
        ))
    }
}

/// Delivers a picture that came with the request.
pub(super) async fn deliver(
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Rejection> {
    asked.state.accept_work()?;
    query::read(asked.request, &[])?;
    let (request, _large) = body::read_json::<ImageRequest>(asked, payload).await?;
    let granted = request.wishes.grant(asked)?;
    let question = request
        .question
        .filter(|question| !question.trim().is_empty());
    if question
        .as_ref()
        .is_some_and(|it| it.len() > MAX_QUESTION_BYTES)
    {
        let detail = format!("`question` must have at most {MAX_QUESTION_BYTES} bytes");
        return Err(Rejection::invalid(detail));
    }
    let picture = PictureRequest {
        source: request.source.as_source(),
        question,
        region: request.region.map(region).transpose()?,
        format: granted.format,
        images: granted.images,
        input: match (request.image.path, request.image.data, request.image.url) {
            (Some(path), None, None) => at_path(asked, &granted.context, path).await?,
            (None, Some(Data(data)), None) => {
                let (bytes, declared) = data.map_err(|refusal| unusable(&refusal))?;
                PictureInput::Bytes(bytes, declared)
            }
            (None, None, Some(_)) => {
                return Err(Rejection::invalid(
                    "`image.url` is not fetched in this version; \
                     send the bytes as `image.data` or name a file by `image.path`",
                ));
            }
            (None, None, None) | (Some(_), _, _) | (None, Some(_), Some(_)) => {
                return Err(Rejection::invalid(
                    "`image` must have exactly one of `path`, `data` and `url`",
                ));
            }
        },
    };
    let delivered = asked
        .state
        .delivery
        .deliver_picture(&granted.context, picture)
        .await?;
    answer(asked, granted, delivered, None, false).await
}

/// The file of a path. One of the media store belongs to the token whose call made it.
async fn at_path(
    asked: &Asked<'_>,
    context: &talaria_types::CallContext,
    path: String,
) -> Result<PictureInput, Rejection> {
    let input = asked.state.delivery.open_picture(context, path).await?;
    if let PictureInput::Stored(record) = &input {
        asked.caller.need_artifact(record)?;
    }
    Ok(input)
}

fn region([x1, y1, x2, y2]: [i64; 4]) -> Result<Region, Rejection> {
    if x2 <= x1 || y2 <= y1 {
        return Err(Rejection::invalid(
            "`region` is empty: it must be [x1, y1, x2, y2] with x1 < x2 and y1 < y2",
        ));
    }
    Ok(Region { x1, y1, x2, y2 })
}

impl Source {
    const fn as_source(self) -> ImageSource {
        match self {
            Self::VisionAnalyze => ImageSource::VisionAnalyze,
            Self::Browser => ImageSource::Browser,
            Self::ComputerUse => ImageSource::ComputerUse,
            Self::Mcp => ImageSource::Mcp,
        }
    }
}

/// What is wrong with the data, in words for its sender.
fn unusable(refusal: &PayloadRefusal) -> Rejection {
    let why = match refusal {
        PayloadRefusal::Empty => "is empty".to_owned(),
        PayloadRefusal::NotBase64 { reason } => format!("is not base64: {reason}"),
        PayloadRefusal::Address { .. } => {
            "is an address, and addresses are not fetched in this version".to_owned()
        }
        PayloadRefusal::TooLarge { bytes, exact } => {
            let about = if *exact { "" } else { "about " };
            format!("has {about}{bytes} bytes; the limit is 50 MiB")
        }
        PayloadRefusal::NotStored { detail, .. } => detail.clone(),
    };
    Rejection::invalid(format!("`image.data` {why}"))
}
