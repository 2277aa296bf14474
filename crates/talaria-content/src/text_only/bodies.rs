//! Pictures taken out of rendered bodies, format by format.
//!
//! A body comes back from an agent, so that it may be anything: what is not as it was rendered is
//! refused in words rather than passed on half understood.

use serde_json::{Map, Value, json};

use crate::delivery::Delivery;
use crate::render::hermes::add_notes;
use crate::render::{Format, USER_MESSAGE};
use crate::untrusted;

use super::{Files, retold, text_only};

/// How the media types of pictures begin.
const PICTURES: &str = "image/";

type Object = Map<String, Value>;

/// The body without pictures, or what is odd about it.
pub(super) fn strip(body: Value, format: Format) -> Result<Value, String> {
    match format {
        Format::Talaria => talaria(body),
        Format::Text if body.is_string() => Ok(body),
        Format::Text => Err("the body is no string".to_owned()),
        Format::Hermes => hermes(body),
        Format::Anthropic => anthropic(body),
        Format::OpenaiResponses => openai_responses(body),
        Format::OpenaiChat => openai_chat(body),
        Format::Gemini => gemini(body),
        Format::Mcp => mcp(body),
    }
}

fn talaria(body: Value) -> Result<Value, String> {
    let delivery: Delivery = serde_json::from_value(body).map_err(|error| error.to_string())?;
    serde_json::to_value(text_only(delivery)).map_err(|error| error.to_string())
}

/// The JSON inside of the envelope, with the notes about its pictures inside of that.
fn hermes(body: Value) -> Result<Value, String> {
    if body.as_str().and_then(untrusted::unwrap).is_some() {
        return Ok(body);
    }
    let mut envelope = object(body, "the body")?;
    if envelope.get("_multimodal").is_none() {
        let is_answer = ["result", "error", "_meta"]
            .iter()
            .chain(&["resources", "prompts", "messages"])
            .any(|key| envelope.contains_key(*key));
        return match is_answer {
            true => Ok(Value::Object(envelope)),
            false => Err("it has neither `_multimodal` nor `result` nor `error`".to_owned()),
        };
    }
    let summary = string(envelope.get("text_summary"), "`text_summary`")?;
    let marked = untrusted::unwrap(summary);
    let source = marked.map(|(source, _)| source.to_owned());
    let summary = marked.map_or(summary, |(_, inside)| inside);
    let parsed: Value = serde_json::from_str(summary)
        .map_err(|error| format!("`text_summary` is no JSON: {error}"))?;
    let mut answer = object(parsed, "the JSON in `text_summary`")?;
    let Parts { texts, pictures } = parts(
        list(envelope.remove("content"), "`content`")?,
        "text",
        "image_url",
    )?;
    if pictures > 0 {
        let notes = texts.get(1).map_or("", String::as_str);
        let notes = untrusted::unwrap(notes).map_or(notes, |(_, inside)| inside);
        let result = answer.get("result").and_then(Value::as_str);
        let files = Files::named_in(result);
        add_notes(&mut answer, &retold(notes, pictures, &files));
    }
    let answer = Value::Object(answer);
    Ok(match source {
        Some(source) => untrusted::wrap(&answer.to_string(), &source).into(),
        None => answer,
    })
}

fn anthropic(body: Value) -> Result<Value, String> {
    let mut block = object(body, "the body")?;
    expect(&block, "type", "tool_result")?;
    string(block.get("tool_use_id"), "`tool_use_id`")?;
    let content = match block.get_mut("content") {
        Some(Value::String(_)) => return Ok(Value::Object(block)),
        Some(content) => content.take(),
        None => return Err("`content` is missing".to_owned()),
    };
    let content = list(Some(content), "`content`")?;
    let has_pictures = content
        .iter()
        .any(|part| part.get("type").is_some_and(|kind| kind == "image"));
    let content = if has_pictures {
        let found = parts(content, "text", "image")?;
        vec![json!({ "type": "text", "text": found.text_only(found.pictures) })]
    } else {
        parts(content.clone(), "text", "image")?;
        content
    };
    block.insert("content".to_owned(), content.into());
    Ok(Value::Object(block))
}

fn openai_responses(body: Value) -> Result<Value, String> {
    let mut item = object(body, "the body")?;
    expect(&item, "type", "function_call_output")?;
    string(item.get("call_id"), "`call_id`")?;
    if !item.get("output").is_some_and(Value::is_string) {
        let output = list(item.get_mut("output").map(Value::take), "`output`")?;
        let found = parts(output, "input_text", "input_image")?;
        let text = found.text_only(found.pictures);
        item.insert("output".to_owned(), text.into());
    }
    Ok(Value::Object(item))
}

fn openai_chat(body: Value) -> Result<Value, String> {
    let mut messages = list(Some(body), "the body")?.into_iter();
    let mut tool = object(messages.next().unwrap_or_default(), "the first message")?;
    expect(&tool, "role", "tool")?;
    string(tool.get("tool_call_id"), "`tool_call_id`")?;
    let mut pictures = 0;
    if let Some(user) = messages.next() {
        pictures += pictures_of_user(user)?;
    }
    if messages.next().is_some() {
        return Err("it has more than two messages".to_owned());
    }
    let text = match tool.get_mut("content").map(Value::take) {
        Some(Value::String(text)) => match pictures {
            0 => text,
            _ => without_pictures(&text, pictures),
        },
        content => {
            let found = parts(list(content, "`content`")?, "text", "image_url")?;
            pictures += found.pictures;
            found.text_only(pictures)
        }
    };
    tool.insert("content".to_owned(), text.into());
    Ok(json!([tool]))
}

/// The pictures in the user message that follows a tool message of ours.
fn pictures_of_user(message: Value) -> Result<usize, String> {
    let mut message = object(message, "the second message")?;
    expect(&message, "role", "user")?;
    let content = list(message.remove("content"), "`content` of the second message")?;
    let found = parts(content, "text", "image_url")?;
    match found.texts.as_slice() {
        [text] if text.starts_with(USER_MESSAGE) => Ok(found.pictures),
        _ => Err("the second message is not one that only carries pictures".to_owned()),
    }
}

fn gemini(body: Value) -> Result<Value, String> {
    let mut part = object(body, "the body")?;
    let response = part.get_mut("functionResponse").map(Value::take);
    let mut response = object(response.unwrap_or_default(), "`functionResponse`")?;
    string(response.get("name"), "`functionResponse.name`")?;
    let mut pictures = 0;
    if let Some(media) = response.remove("parts") {
        for media in list(Some(media), "`functionResponse.parts`")? {
            let media_type = media
                .pointer("/inlineData/mimeType")
                .and_then(Value::as_str);
            if !media_type.is_some_and(|media_type| media_type.starts_with("image/")) {
                return Err("one of `functionResponse.parts` is no picture".to_owned());
            }
            pictures += 1;
        }
    }
    let words = response
        .get_mut("response")
        .and_then(Value::as_object_mut)
        .and_then(|words| {
            let key = if words.contains_key("error") {
                "error"
            } else {
                "output"
            };
            words.get_mut(key)
        });
    match words {
        Some(Value::String(text)) => {
            if pictures > 0 {
                *text = without_pictures(text, pictures);
            }
        }
        _ => return Err("`functionResponse.response` holds no text".to_owned()),
    }
    part.insert("functionResponse".to_owned(), response.into());
    Ok(Value::Object(part))
}

fn mcp(body: Value) -> Result<Value, String> {
    let mut result = object(body, "the body")?;
    let content = list(result.get_mut("content").map(Value::take), "`content`")?;
    let mut pictures = 0;
    let mut kept = Vec::with_capacity(content.len());
    for block in content {
        match block.get("type").and_then(Value::as_str) {
            Some("image") => pictures += 1,
            Some("resource") if is_picture(&block) => pictures += 1,
            Some("text" | "audio" | "resource" | "resource_link") => kept.push(block),
            Some(_) | None => return Err("a block of `content` has no known `type`".to_owned()),
        }
    }
    if pictures > 0 {
        let words = kept.iter().filter_map(|block| block.get("text"));
        let files = Files::named_in(words.filter_map(Value::as_str));
        let text = kept.iter_mut().find_map(|block| block.get_mut("text"));
        match text {
            Some(Value::String(text)) => *text = retold(text, pictures, &files),
            Some(_) => return Err("a text block holds no text".to_owned()),
            None => {
                let text = retold("", pictures, &files);
                kept.insert(0, json!({ "type": "text", "text": text }));
            }
        }
    }
    result.insert("content".to_owned(), kept.into());
    Ok(Value::Object(result))
}

/// Whether an embedded resource is a picture.
fn is_picture(block: &Value) -> bool {
    let text = |key| block.pointer(key).and_then(Value::as_str);
    let media_type = text("/resource/mimeType").unwrap_or_default().trim_start();
    let is_image = media_type
        .get(..PICTURES.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(PICTURES));
    is_image && block.pointer("/resource/blob").is_some()
}

/// A text that names its files itself, where it names them.
fn without_pictures(text: &str, pictures: usize) -> String {
    retold(text, pictures, &Files::named_in([text]))
}

/// Parts of a body: their texts in order, and how many pictures there are.
struct Parts {
    texts: Vec<String>,
    pictures: usize,
}

impl Parts {
    /// All texts in one, which says so where pictures were taken out.
    fn text_only(&self, pictures: usize) -> String {
        let text = self.texts.join("\n");
        match pictures {
            0 => text,
            _ => without_pictures(&text, pictures),
        }
    }
}

fn parts(list: Vec<Value>, text_type: &str, picture_type: &str) -> Result<Parts, String> {
    let mut found = Parts {
        texts: Vec::new(),
        pictures: 0,
    };
    for mut part in list {
        let kind = part.get("type").and_then(Value::as_str);
        if kind == Some(picture_type) {
            found.pictures += 1;
        } else if kind == Some(text_type) {
            match part.get_mut("text").map(Value::take) {
                Some(Value::String(text)) => found.texts.push(text),
                _ => return Err(format!("a part of type `{text_type}` holds no text")),
            }
        } else {
            return Err(format!(
                "a part is neither of type `{text_type}` nor `{picture_type}`"
            ));
        }
    }
    Ok(found)
}

fn object(value: Value, what: &str) -> Result<Object, String> {
    if let Value::Object(object) = value {
        return Ok(object);
    }
    Err(format!("{what} is no object"))
}

fn list(value: Option<Value>, what: &str) -> Result<Vec<Value>, String> {
    match value {
        Some(Value::Array(list)) => Ok(list),
        Some(_) | None => Err(format!("{what} is no list")),
    }
}

fn string<'a>(value: Option<&'a Value>, what: &str) -> Result<&'a str, String> {
    value
        .and_then(Value::as_str)
        .ok_or_else(|| format!("{what} is no string"))
}

fn expect(object: &Object, key: &str, word: &str) -> Result<(), String> {
    match object.get(key).and_then(Value::as_str) {
        Some(found) if found == word => Ok(()),
        _ => Err(format!("`{key}` is not `{word}`")),
    }
}
