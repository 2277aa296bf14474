//! `vision_analyze`: the tool by which a model looks at a picture itself. It belongs to no server
//! and is called like any tool; one gate decides whether its answer is pixels or a description.

use actix_web::HttpResponse;
use serde_json::{Map, Value, json};
use talaria_actors::PictureRequest;
use talaria_config::ImageInputMode;
use talaria_vision::ImageSource;

use crate::exchange::Asked;
use crate::picture::{self, Image};
use crate::problem::Rejection;
use crate::query::unknown_key;
use crate::routes::answer;
use crate::state::AppState;
use crate::wishes::Granted;

/// Its public name.
pub(super) const NAME: &str = "vision_analyze";

const ARGUMENTS: [&str; 4] = ["image_url", "image", "question", "region"];

/// Its definition, as `GET /v1/tools` lists it.
pub(super) fn definition() -> Value {
    json!({
        "name": NAME,
        "title": "Look at a picture",
        "description": "Looks at a picture and answers a question about it: a file named by a \
                        MEDIA: line of an earlier result, an http or https address, or a data \
                        URL. Returns the picture itself where you can see pictures, else what \
                        another model sees in it.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "image_url": {
                    "type": "string",
                    "description": "Absolute path of the picture (as in a MEDIA: line), http(s) \
                                    address, or data URL.",
                },
                "question": {
                    "type": "string",
                    "description": "What to find out about the picture.",
                },
                "region": {
                    "type": "array",
                    "items": { "type": "integer" },
                    "minItems": 4,
                    "maxItems": 4,
                    "description": "Only this part of the picture: [x1, y1, x2, y2] in pixels of \
                                    the original. Makes small details readable.",
                },
            },
            "required": ["image_url", "question"],
        },
        "annotations": { "readOnlyHint": true, "openWorldHint": true },
    })
}

/// Whether the tool is offered: it is meant by its name, and has something to give, be it a
/// description or pixels.
pub(super) fn is_offered(state: &AppState) -> bool {
    let has_something =
        state.delivery.has_vision() || state.config.gate.mode != ImageInputMode::Text;
    has_something && is_meant(state, NAME)
}

/// Whether a name means this tool. A server whose tools have no prefix may have one of that name,
/// which then is meant.
pub(super) fn is_meant(state: &AppState, tool: &str) -> bool {
    tool == NAME && state.supervisor.find_tool(NAME).is_none()
}

/// Delivers the picture that the arguments name.
pub(super) async fn call(
    asked: &Asked<'_>,
    granted: Granted,
    arguments: Map<String, Value>,
) -> Result<HttpResponse, Rejection> {
    let Arguments {
        image,
        question,
        region,
    } = Arguments::read(arguments)?;
    let picture = PictureRequest {
        source: ImageSource::VisionAnalyze,
        question: picture::question("arguments.question", question)?,
        region: region.map(picture::region).transpose()?,
        format: granted.format,
        images: granted.images,
        input: Image::named(&image).open(asked, &granted.context).await?,
    };
    let delivered = asked
        .state
        .delivery
        .deliver_picture(&granted.context, picture)
        .await?;
    answer(asked, granted, delivered, Some(NAME.to_owned()), false).await
}

/// What a model sent.
#[derive(Debug, PartialEq, Eq)]
struct Arguments {
    image: String,
    question: Option<String>,
    region: Option<[i64; 4]>,
}

impl Arguments {
    fn read(mut arguments: Map<String, Value>) -> Result<Self, Rejection> {
        if let Some(key) = arguments
            .keys()
            .find(|key| !ARGUMENTS.contains(&key.as_str()))
        {
            let detail = unknown_key("argument", key, &ARGUMENTS);
            return Err(Rejection::invalid(format!("`{NAME}`: {detail}")));
        }
        let image_url = text(&mut arguments, "image_url")?;
        let image = match (image_url, text(&mut arguments, "image")?) {
            (Some(image), None) | (None, Some(image)) => image,
            (Some(image), Some(same)) if image == same => image,
            (None, None) => return Err(wrong("image_url", "is missing: name the picture")),
            (Some(_), Some(_)) => {
                return Err(wrong(
                    "image_url",
                    "and `image` name two pictures; name one",
                ));
            }
        };
        Ok(Self {
            image,
            question: text(&mut arguments, "question")?,
            region: corners(arguments.remove("region"))?,
        })
    }
}

/// A text; null and blank are as good as absent.
fn text(arguments: &mut Map<String, Value>, key: &str) -> Result<Option<String>, Rejection> {
    match arguments.remove(key) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text).filter(|text| !text.trim().is_empty())),
        Some(Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_)) => {
            Err(wrong(key, "must be a string"))
        }
    }
}

fn corners(region: Option<Value>) -> Result<Option<[i64; 4]>, Rejection> {
    let is_blank = |it: &Value| it.is_null() || it.as_array().is_some_and(Vec::is_empty);
    let Some(region) = region.filter(|it| !is_blank(it)) else {
        return Ok(None);
    };
    serde_json::from_value(region)
        .map(Some)
        .map_err(|_no_region| wrong("region", "must be [x1, y1, x2, y2] in whole pixels"))
}

fn wrong(key: &str, what: &str) -> Rejection {
    Rejection::invalid(format!("`{NAME}`: `arguments.{key}` {what}"))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::{ARGUMENTS, Arguments, definition};

    fn read(arguments: &Value) -> Result<Arguments, String> {
        let arguments = arguments.as_object().unwrap().clone();
        Arguments::read(arguments).map_err(|rejection| rejection.failure().detail().to_owned())
    }

    #[test]
    fn a_model_names_the_picture_by_either_argument() {
        for arguments in [
            json!({ "image_url": "/a.png" }),
            json!({ "image": "/a.png", "question": " ", "region": [] }),
            json!({ "image": "/a.png", "image_url": "/a.png", "region": null }),
            json!({ "image": null, "image_url": "/a.png" }),
        ] {
            let expected = Arguments {
                image: "/a.png".to_owned(),
                question: None,
                region: None,
            };
            assert_eq!(read(&arguments), Ok(expected), "{arguments}");
        }
        let full = json!({ "image_url": "/a.png", "question": "what?", "region": [0, 1, 2, 3] });
        let full = read(&full).unwrap();
        assert_eq!(full.question.as_deref(), Some("what?"));
        assert_eq!(full.region, Some([0, 1, 2, 3]));
    }

    #[test]
    fn wrong_arguments_are_told_by_name() {
        for (arguments, words) in [
            (json!({}), "`arguments.image_url` is missing"),
            (
                json!({ "image_url": "" }),
                "`arguments.image_url` is missing",
            ),
            (
                json!({ "image_url": 1 }),
                "`arguments.image_url` must be a string",
            ),
            (
                json!({ "image_url": "/a.png", "image": "/b.png" }),
                "name two pictures",
            ),
            (
                json!({ "image_url": "/a.png", "qestion": "?" }),
                "did you mean `question`?",
            ),
            (
                json!({ "image_url": "/a.png", "region": [0, 0, 1] }),
                "`arguments.region` must be [x1, y1, x2, y2]",
            ),
        ] {
            let detail = read(&arguments).unwrap_err();
            assert!(detail.contains(words), "{arguments}: {detail}");
        }
    }

    #[test]
    fn the_definition_names_arguments_that_are_read() {
        let definition = definition();
        let properties = definition["inputSchema"]["properties"].as_object().unwrap();
        assert!(
            properties
                .keys()
                .all(|key| ARGUMENTS.contains(&key.as_str()))
        );
        for required in definition["inputSchema"]["required"].as_array().unwrap() {
            assert!(properties.contains_key(required.as_str().unwrap()));
        }
    }
}
