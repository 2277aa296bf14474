//! `POST /v1/results/downgrade`: the text-only form of a delivery, for an agent whose provider
//! refused its pictures (design decision 17).

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use actix_web::http::header;
use actix_web::{HttpResponse, web};
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use talaria_content::{Delivery, Format, RenderOptions, Rendered, render, strip_images, text_only};
use talaria_types::Route;

use crate::body::{self, JsonRequest};
use crate::exchange::Asked;
use crate::problem::Rejection;
use crate::query;
use crate::routes::soon;
use crate::wishes::{self, Wishes};

/// What a provider answers that refuses a request as it is.
const CLIENT_ERRORS: RangeInclusive<u16> = 400..=499;
/// What it answers where nobody says.
const REFUSED: u16 = 400;
/// The one of them that says nothing of what its API takes: the request was too large.
const TOO_LARGE: u16 = 413;

/// Body of `POST /v1/results/downgrade`: a delivery, or the body that was rendered from it.
#[derive(Debug, Deserialize, JsonSchema)]
#[schemars(extend("additionalProperties" = false))]
pub(crate) struct DowngradeRequest {
    /// A delivery in format `talaria`.
    #[serde(default)]
    delivery: Option<Box<Delivery>>,
    /// A body in the format that `format` names.
    #[serde(default)]
    body: Option<Value>,
    /// The format of `body`, and of the answer; `talaria` when absent.
    #[serde(default)]
    format: Option<String>,
    /// The provider's tool-use id, for a delivery that is rendered in a provider's format.
    #[serde(default)]
    call_id: Option<String>,
    /// The name under which the model called the tool, likewise.
    #[serde(default)]
    tool: Option<String>,
    /// The route whose provider refused.
    #[serde(default)]
    route: Option<Route>,
    /// The caller's conversation.
    #[serde(default)]
    session: Option<String>,
    /// The status the provider answered; 400 when absent.
    #[serde(default)]
    status: Option<u16>,
    /// Whether later deliveries of this session and route shall carry no pictures. Needs a status
    /// of 400 to 499, of which 413 is never remembered.
    #[serde(default)]
    remember: Option<bool>,
    #[serde(flatten)]
    #[schemars(skip)]
    unknown: BTreeMap<String, IgnoredAny>,
}

impl JsonRequest for DowngradeRequest {
    const OWN_KEYS: &'static [&'static str] = &[
        "delivery", "body", "format", "call_id", "tool", "route", "session", "status", "remember",
    ];

    fn unknown(&self) -> Option<&str> {
        self.unknown.keys().next().map(String::as_str)
    }
}

/// Takes the pictures out, and remembers the refusal where that is asked for.
pub(super) async fn downgrade(
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Rejection> {
    asked.state.accept_work()?;
    query::read(asked.request, &[])?;
    let (request, _large) = body::read_json::<DowngradeRequest>(asked, payload).await?;
    let DowngradeRequest {
        delivery,
        body,
        format,
        call_id,
        tool,
        route,
        session,
        status,
        remember,
        ..
    } = request;
    let format = format
        .as_deref()
        .map_or(Ok(Format::default()), wishes::format)?;
    let work = Work::of(delivery, body)?;
    if let Some(fault) = work.call_id_fault(format, call_id.as_deref()) {
        return Err(Rejection::invalid(fault));
    }
    if remember == Some(true) && (route.is_none() || session.is_none()) {
        return Err(Rejection::invalid(
            "`remember` needs `route` and `session`: they are what is remembered",
        ));
    }
    wishes::bounded("tool", tool.as_deref())?;
    let status = status.unwrap_or(REFUSED);
    if remember == Some(true) && !CLIENT_ERRORS.contains(&status) {
        return Err(Rejection::invalid(format!(
            "`remember` needs a `status` of 400 to 499, with which a provider refuses a request; \
             {status} says nothing of pictures"
        )));
    }
    let wishes = Wishes {
        route,
        session,
        call_id,
        ..Wishes::default()
    };
    let granted = wishes.grant(asked)?;
    let options = RenderOptions {
        call_id: granted.call_id,
        tool_name: tool.or_else(|| work.tool()),
        ..RenderOptions::default()
    };
    let blocking = &asked.state.blocking;
    let rendered = blocking.run(soon(), move || work.without_pictures(format, &options));
    let rendered = rendered.await??;
    if remember == Some(true) && status != TOO_LARGE {
        asked.state.delivery.remember_refusal(&granted.context);
    }
    let mut response = HttpResponse::Ok();
    response.insert_header((header::CONTENT_TYPE, rendered.content_type));
    response.insert_header((header::CACHE_CONTROL, "no-store"));
    Ok(response.body(rendered.body))
}

/// What the pictures are taken out of.
enum Work {
    Delivery(Box<Delivery>),
    Body(Value),
}

impl Work {
    fn of(delivery: Option<Box<Delivery>>, body: Option<Value>) -> Result<Self, Rejection> {
        match (delivery, body) {
            (Some(delivery), None) => Ok(Self::Delivery(delivery)),
            (None, Some(body)) => Ok(Self::Body(body)),
            (None, None) | (Some(_), Some(_)) => Err(Rejection::invalid(
                "send either `delivery`, in format `talaria`, or `body`, in the format that \
                 `format` names",
            )),
        }
    }

    /// A delivery is rendered anew; a body has the id already.
    fn call_id_fault(&self, format: Format, call_id: Option<&str>) -> Option<String> {
        match self {
            Self::Delivery(_) => format.call_id_fault(call_id),
            Self::Body(_) => None,
        }
    }

    fn tool(&self) -> Option<String> {
        match self {
            Self::Delivery(delivery) => delivery.tool.clone(),
            Self::Body(_) => None,
        }
    }

    fn without_pictures(
        self,
        format: Format,
        options: &RenderOptions,
    ) -> Result<Rendered, Rejection> {
        match self {
            Self::Delivery(delivery) => Ok(render(&text_only(*delivery), format, options)),
            Self::Body(body) => {
                let body = strip_images(body, format)
                    .map_err(|error| Rejection::invalid(format!("`body`: {error}")))?;
                Ok(Rendered {
                    content_type: "application/json",
                    body: body.to_string(),
                })
            }
        }
    }
}
