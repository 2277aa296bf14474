//! `POST /v1/images/deliver`: one picture, through the same gate as those of a tool's result.

use std::collections::BTreeMap;

use actix_web::{HttpResponse, web};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use talaria_actors::PictureRequest;
use talaria_vision::ImageSource;

use crate::body::{self, JsonRequest};
use crate::exchange::Asked;
use crate::picture::{self, Image};
use crate::problem::Rejection;
use crate::query;
use crate::routes::answer;
use crate::wishes::Wishes;

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

/// Delivers a picture that came with the request.
pub(super) async fn deliver(
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Rejection> {
    asked.state.accept_work()?;
    query::read(asked.request, &[])?;
    let (request, _large) = body::read_json::<ImageRequest>(asked, payload).await?;
    let granted = request.wishes.grant(asked)?;
    let picture = PictureRequest {
        source: request.source.as_source(),
        question: picture::question("question", request.question)?,
        region: request.region.map(picture::region).transpose()?,
        format: granted.format,
        images: granted.images,
        input: request.image.open(asked, &granted.context).await?,
    };
    let delivered = asked
        .state
        .delivery
        .deliver_picture(&granted.context, picture)
        .await?;
    answer(asked, granted, delivered, None, false).await
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
