//! Requests for a description, typed, one kind for each API.

use std::fmt;
use std::sync::Arc;

use http::header::{AUTHORIZATION, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue};
use serde::{Serialize, Serializer};
use url::Url;

use super::backend::Backend;
use crate::ApiShape;

/// What a backend is asked.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The whole prompt.
    pub prompt: &'a str,
    /// The picture.
    pub picture: &'a Encoded,
    /// Sampling temperature.
    pub temperature: f64,
}

/// A picture as APIs take it.
#[derive(Clone, PartialEq, Eq)]
pub struct Encoded {
    /// Media type of the bytes.
    pub media_type: String,
    /// The bytes in base64.
    pub base64: Arc<str>,
}

impl fmt::Debug for Encoded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Encoded")
            .field("media_type", &self.media_type)
            .field("base64_bytes", &self.base64.len())
            .finish()
    }
}

/// A request without its transport.
pub(super) struct Request {
    pub(super) url: Url,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Tokens that Anthropic's API insists on bounding; no other API is given a bound.
const ANTHROPIC_MAX_TOKENS: u32 = 4_096;
/// The revision of Anthropic's API that is spoken.
const ANTHROPIC_VERSION: &str = "2023-06-01";
const ANTHROPIC_HOST: &str = "api.anthropic.com";
/// Azure takes its keys under a name of its own.
const AZURE_END: &str = ".openai.azure.com";
/// Beginnings of the names of `OpenAI`'s models that take no temperature.
const NO_TEMPERATURE: [&str; 4] = ["o1", "o3", "o4", "gpt-5"];

/// The request for a backend; without a temperature where it is known or has said to take none.
///
/// # Errors
/// What in the entry keeps it from being asked, in words.
pub(super) fn request(
    backend: &Backend,
    ask: &Ask<'_>,
    with_temperature: bool,
) -> Result<Request, String> {
    let temperature = Some(ask.temperature).filter(|_| with_temperature && takes_one(backend));
    let picture = ask.picture;
    let model = backend.model.as_str();
    let body = match backend.api {
        ApiShape::OpenaiChat => serde_json::to_vec(&Chat {
            model,
            messages: [ChatMessage {
                role: "user",
                content: (
                    ChatText {
                        r#type: "text",
                        text: ask.prompt,
                    },
                    ChatPicture {
                        r#type: "image_url",
                        image_url: ChatUrl {
                            url: DataUrl(picture),
                        },
                    },
                ),
            }],
            temperature,
        }),
        ApiShape::OpenaiResponses => serde_json::to_vec(&Responses {
            model,
            input: [ChatMessage {
                role: "user",
                content: (
                    ChatText {
                        r#type: "input_text",
                        text: ask.prompt,
                    },
                    ResponsesPicture {
                        r#type: "input_image",
                        image_url: DataUrl(picture),
                    },
                ),
            }],
            store: false,
            temperature,
        }),
        ApiShape::Anthropic => serde_json::to_vec(&Messages {
            model,
            max_tokens: ANTHROPIC_MAX_TOKENS,
            messages: [ChatMessage {
                role: "user",
                content: (
                    MessagesPicture {
                        r#type: "image",
                        source: MessagesSource {
                            r#type: "base64",
                            media_type: &picture.media_type,
                            data: &picture.base64,
                        },
                    },
                    ChatText {
                        r#type: "text",
                        text: ask.prompt,
                    },
                ),
            }],
            temperature,
        }),
        ApiShape::Gemini => serde_json::to_vec(&Generate {
            contents: [GenerateContent {
                role: "user",
                parts: (
                    GeneratePicture {
                        inline_data: GenerateData {
                            mime_type: &picture.media_type,
                            data: &picture.base64,
                        },
                    },
                    GenerateText { text: ask.prompt },
                ),
            }],
            generation_config: temperature.map(|temperature| GenerateConfig { temperature }),
        }),
        ApiShape::Bedrock => return Err("requests of Bedrock are not made here".to_owned()),
    };
    Ok(Request {
        url: operation(backend),
        headers: headers(backend)?,
        body: body.map_err(|error| error.to_string())?,
    })
}

fn takes_one(backend: &Backend) -> bool {
    let name = backend.model.rsplit('/').next().unwrap_or_default();
    let is_openai = matches!(
        backend.api,
        ApiShape::OpenaiChat | ApiShape::OpenaiResponses
    );
    !(is_openai && NO_TEMPERATURE.iter().any(|start| name.starts_with(start)))
}

/// The address that a request goes to. A bare host is given the usual version; an address that
/// names the operation already is left alone.
fn operation(backend: &Backend) -> Url {
    let mut url = backend.endpoint.clone();
    let path = url.path().trim_end_matches('/').to_owned();
    let under = |version: &str, operation: &str| {
        if path.ends_with(operation) {
            path.clone()
        } else if path.is_empty() {
            format!("{version}{operation}")
        } else {
            format!("{path}{operation}")
        }
    };
    let path = match backend.api {
        ApiShape::OpenaiChat | ApiShape::Bedrock => under("/v1", "/chat/completions"),
        ApiShape::OpenaiResponses => under("/v1", "/responses"),
        ApiShape::Anthropic if path.ends_with("/v1") => format!("{path}/messages"),
        ApiShape::Anthropic if path.ends_with("/messages") => path,
        ApiShape::Anthropic => format!("{path}/v1/messages"),
        ApiShape::Gemini => {
            let name = backend.model.strip_prefix("models/");
            let name = name.unwrap_or(&backend.model);
            under("/v1beta", &format!("/models/{name}:generateContent"))
        }
    };
    url.set_path(&path);
    url
}

fn headers(backend: &Backend) -> Result<HeaderMap, String> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    if backend.api == ApiShape::Anthropic {
        let version = HeaderValue::from_static(ANTHROPIC_VERSION);
        headers.insert(HeaderName::from_static("anthropic-version"), version);
    }
    let Some(key) = &backend.key else {
        return Ok(headers);
    };
    let secret = |text: String| {
        let mut value = HeaderValue::try_from(text).map_err(|_holds_the_key| {
            "the key holds characters a header cannot carry".to_owned()
        })?;
        value.set_sensitive(true);
        Ok::<_, String>(value)
    };
    let host = backend.endpoint.host_str().unwrap_or_default();
    let plain = match backend.api {
        ApiShape::Anthropic => Some("x-api-key"),
        ApiShape::Gemini => Some("x-goog-api-key"),
        ApiShape::OpenaiChat | ApiShape::OpenaiResponses | ApiShape::Bedrock => {
            host.ends_with(AZURE_END).then_some("api-key")
        }
    };
    if let Some(name) = plain {
        headers.insert(
            HeaderName::from_static(name),
            secret(key.expose().to_owned())?,
        );
    }
    // Others that speak Anthropic's API want the key where OpenAI has it.
    let is_copy = backend.api == ApiShape::Anthropic && host != ANTHROPIC_HOST;
    if plain.is_none() || is_copy {
        let value = secret(format!("Bearer {}", key.expose()))?;
        headers.insert(AUTHORIZATION, value);
    }
    Ok(headers)
}

/// Writes itself as a data URL without being one in memory first.
struct DataUrl<'a>(&'a Encoded);

impl Serialize for DataUrl<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Encoded { media_type, base64 } = self.0;
        serializer.collect_str(&format_args!("data:{media_type};base64,{base64}"))
    }
}

#[derive(Serialize)]
struct Chat<'a> {
    model: &'a str,
    messages: [ChatMessage<(ChatText<'a>, ChatPicture<'a>)>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize)]
struct ChatMessage<C> {
    role: &'static str,
    content: C,
}

#[derive(Serialize)]
struct ChatText<'a> {
    r#type: &'static str,
    text: &'a str,
}

#[derive(Serialize)]
struct ChatPicture<'a> {
    r#type: &'static str,
    image_url: ChatUrl<'a>,
}

#[derive(Serialize)]
struct ChatUrl<'a> {
    url: DataUrl<'a>,
}

#[derive(Serialize)]
struct Responses<'a> {
    model: &'a str,
    input: [ChatMessage<(ChatText<'a>, ResponsesPicture<'a>)>; 1],
    store: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize)]
struct ResponsesPicture<'a> {
    r#type: &'static str,
    image_url: DataUrl<'a>,
}

#[derive(Serialize)]
struct Messages<'a> {
    model: &'a str,
    max_tokens: u32,
    messages: [ChatMessage<(MessagesPicture<'a>, ChatText<'a>)>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    temperature: Option<f64>,
}

#[derive(Serialize)]
struct MessagesPicture<'a> {
    r#type: &'static str,
    source: MessagesSource<'a>,
}

#[derive(Serialize)]
struct MessagesSource<'a> {
    r#type: &'static str,
    media_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Generate<'a> {
    contents: [GenerateContent<'a>; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    generation_config: Option<GenerateConfig>,
}

#[derive(Serialize)]
struct GenerateContent<'a> {
    role: &'static str,
    parts: (GeneratePicture<'a>, GenerateText<'a>),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GeneratePicture<'a> {
    inline_data: GenerateData<'a>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GenerateData<'a> {
    mime_type: &'a str,
    data: &'a str,
}

#[derive(Serialize)]
struct GenerateText<'a> {
    text: &'a str,
}

#[derive(Serialize)]
struct GenerateConfig {
    temperature: f64,
}

#[cfg(test)]
mod tests;
