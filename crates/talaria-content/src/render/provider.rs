//! Tool results as the APIs of model providers take them.
//!
//! A text alone travels as a string wherever the API allows that, because many compatible backends
//! know no list there; no part is ever blank, because Anthropic's API refuses blank ones.

use std::borrow::Cow;

use serde_json::{Map, Value, json};

use crate::delivery::{Attachment, Delivery};
use crate::sanitise::field;

use super::{ImageDelivery, NO_OUTPUT, RenderOptions};

/// The first line of a failed result where the format has no flag for it.
pub(crate) const FAILED: &str = "[MCP tool error: the tool reported that it failed]";
/// How a user message that only carries pictures of a tool result begins.
pub(crate) const USER_MESSAGE: &str = "[MCP images of the tool call";
/// Longest tool name that Gemini takes.
const MAX_NAME_CHARACTERS: usize = 128;

/// A `tool_result` block. The API refuses pictures in one that is flagged as failed, so that there
/// words say it.
pub(super) fn anthropic(delivery: &Delivery, options: &RenderOptions) -> Value {
    let is_flagged = delivery.is_error && delivery.attachments.is_empty();
    let text = if is_flagged {
        spoken(delivery)
    } else {
        told(delivery)
    };
    let mut content = vec![json!({ "type": "text", "text": text })];
    content.extend(delivery.attachments.iter().map(|attachment| {
        json!({ "type": "image", "source": {
            "type": "base64",
            "media_type": attachment.media_type,
            "data": attachment.data,
        } })
    }));
    json!({
        "type": "tool_result",
        "tool_use_id": call_id(delivery, options),
        "content": content,
        "is_error": is_flagged,
    })
}

/// A `function_call_output` item.
pub(super) fn openai_responses(delivery: &Delivery, options: &RenderOptions) -> Value {
    let text = told(delivery);
    let output = if delivery.attachments.is_empty() {
        json!(text)
    } else {
        let mut parts = vec![json!({ "type": "input_text", "text": text })];
        parts.extend(delivery.attachments.iter().map(|attachment| {
            json!({
                "type": "input_image",
                "image_url": attachment.data_url(),
                "detail": "auto",
            })
        }));
        parts.into()
    };
    json!({
        "type": "function_call_output",
        "call_id": call_id(delivery, options),
        "output": output,
    })
}

/// A list of messages: the `tool` message, and the `user` message with its pictures where the
/// route takes them only there.
pub(super) fn openai_chat(delivery: &Delivery, options: &RenderOptions) -> Value {
    let text = told(delivery);
    let id = call_id(delivery, options);
    let pictures: Vec<Value> = delivery.attachments.iter().map(image_part).collect();
    let text_part = |text: &str| json!({ "type": "text", "text": text });
    let content = match options.image_delivery {
        ImageDelivery::ToolResult if !pictures.is_empty() => {
            let mut parts = vec![text_part(&text)];
            parts.extend(pictures.iter().cloned());
            Value::from(parts)
        }
        ImageDelivery::ToolResult | ImageDelivery::UserMessage => json!(text),
    };
    let mut messages = vec![json!({ "role": "tool", "tool_call_id": id, "content": content })];
    if options.image_delivery == ImageDelivery::UserMessage && !pictures.is_empty() {
        let count = match pictures.len() {
            1 => "1 image".to_owned(),
            count => format!("{count} images, in the order of their paths"),
        };
        let mut parts = vec![text_part(&format!(
            "{USER_MESSAGE} {}: {count}]",
            field(&id)
        ))];
        parts.extend(pictures);
        messages.push(json!({ "role": "user", "content": parts }));
    }
    messages.into()
}

fn image_part(attachment: &Attachment) -> Value {
    json!({ "type": "image_url", "image_url": { "url": attachment.data_url(), "detail": "auto" } })
}

/// A part with a `functionResponse`, pictures in its `parts`.
pub(super) fn gemini(delivery: &Delivery, options: &RenderOptions) -> Value {
    let mut response = Map::new();
    if let Some(id) = &options.call_id {
        response.insert("id".to_owned(), json!(id));
    }
    response.insert("name".to_owned(), tool_name(delivery, options).into());
    let key = if delivery.is_error { "error" } else { "output" };
    response.insert("response".to_owned(), json!({ key: spoken(delivery) }));
    if !delivery.attachments.is_empty() {
        let parts: Vec<Value> = delivery
            .attachments
            .iter()
            .map(|attachment| {
                json!({ "inlineData": {
                    "mimeType": attachment.media_type,
                    "data": attachment.data,
                } })
            })
            .collect();
        response.insert("parts".to_owned(), parts.into());
    }
    json!({ "functionResponse": response })
}

/// The name that the model called, in characters that a name may have.
fn tool_name(delivery: &Delivery, options: &RenderOptions) -> String {
    let name = options.tool_name.as_deref().or(delivery.tool.as_deref());
    let name: String = name
        .unwrap_or_default()
        .chars()
        .take(MAX_NAME_CHARACTERS)
        .map(|character| match character {
            'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '.' | ':' | '-' => character,
            _ => '_',
        })
        .collect();
    if name.is_empty() {
        return "tool".to_owned();
    }
    name
}

fn call_id(delivery: &Delivery, options: &RenderOptions) -> String {
    let own = || delivery.id.to_string();
    options.call_id.clone().unwrap_or_else(own)
}

/// The text, never blank.
pub(super) fn spoken(delivery: &Delivery) -> Cow<'_, str> {
    if delivery.text.trim().is_empty() {
        return Cow::Borrowed(NO_OUTPUT);
    }
    Cow::Borrowed(&delivery.text)
}

/// The text, which says of a failed result that it failed.
fn told(delivery: &Delivery) -> Cow<'_, str> {
    let text = spoken(delivery);
    if delivery.is_error {
        return Cow::Owned(format!("{FAILED}\n{text}"));
    }
    text
}
