//! Finds the answer of a model in the shapes of all APIs: what is asked for one way is answered
//! another way by more than one endpoint.

use serde_json::{Map, Value};

/// How an answer ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Finish {
    /// Nothing says so.
    #[default]
    Unknown,
    /// The model said all it had to say.
    Complete,
    /// It was cut off.
    Cut,
    /// It was withheld.
    Filtered,
    /// It ended in an error.
    Error,
}

/// The texts of an answer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Found {
    pub(super) text: String,
    pub(super) reasoning: String,
    pub(super) refusal: String,
    pub(super) finish: Finish,
    /// Whether there is a place for a text, be it empty.
    pub(super) has_place: bool,
}

/// Keys under which single-purpose endpoints answer.
const PLAIN_KEYS: [&str; 9] = [
    "content",
    "text",
    "response",
    "answer",
    "result",
    "description",
    "analysis",
    "generated_text",
    "output_text",
];
/// Keys under which models think aloud.
const THOUGHT_KEYS: [&str; 4] = ["reasoning_content", "reasoning", "thinking", "thought"];

/// The texts of an answer.
pub(super) fn find(value: &Value) -> Found {
    let mut found = Found::default();
    let Some(root) = value.as_object() else {
        return found;
    };
    let is_known = ["choices", "candidates", "output", "message"]
        .iter()
        .any(|key| root.contains_key(*key));
    chat(root, &mut found);
    responses(root, &mut found);
    gemini(root, &mut found);
    ollama(root, &mut found);
    if !is_known {
        plain(root, &mut found);
        if let Some(inner) = root.get("data").filter(|_| found.text.is_empty()) {
            match inner {
                Value::Object(inner) => plain(inner, &mut found),
                Value::String(_) => take(inner, &mut found),
                Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
            }
        }
    }
    found
}

/// `OpenAI`'s Chat Completions and what imitates them.
fn chat(root: &Map<String, Value>, found: &mut Found) {
    for choice in items(root, "choices") {
        let message = choice.get("message").or_else(|| choice.get("delta"));
        let message = message.unwrap_or(choice);
        let mut one = Found::default();
        if let Some(content) = message.get("content") {
            take(content, &mut one);
        }
        if let Some(text) = choice.get("text") {
            take(text, &mut one);
        }
        one.refusal.push_str(text_of(message, "refusal"));
        thoughts(message, &mut one);
        one.finish = finish(text_of(choice, "finish_reason"));
        let is_better = found.text.trim().is_empty();
        if is_better {
            one.has_place |= found.has_place;
            *found = one;
        }
    }
}

/// `OpenAI`'s Responses.
fn responses(root: &Map<String, Value>, found: &mut Found) {
    for item in items(root, "output") {
        match item {
            Value::String(_) => take(item, found),
            Value::Object(map) if text_of(item, "type") == "reasoning" => {
                for key in ["summary", "content"] {
                    for part in map.get(key).and_then(Value::as_array).into_iter().flatten() {
                        found.reasoning.push_str(text_of(part, "text"));
                    }
                }
            }
            Value::Object(map) => {
                if let Some(content) = map.get("content") {
                    take(content, found);
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => {}
        }
    }
    if let Some(output @ Value::String(_)) = root.get("output") {
        take(output, found);
    }
    if found.text.is_empty()
        && let Some(text) = root.get("output_text")
    {
        take(text, found);
    }
    if root.contains_key("output") {
        let details = root.get("incomplete_details");
        let reason = details.map(|it| text_of(it, "reason")).unwrap_or_default();
        found.finish = match root.get("status").and_then(Value::as_str) {
            Some("completed") => Finish::Complete,
            Some("incomplete") if reason.contains("filter") => Finish::Filtered,
            Some("incomplete") => Finish::Cut,
            Some("failed" | "cancelled") => Finish::Error,
            Some(_) | None => Finish::Unknown,
        };
    }
}

/// Google's `generateContent`.
fn gemini(root: &Map<String, Value>, found: &mut Found) {
    let feedback = root.get("promptFeedback");
    let blocked = feedback
        .map(|it| text_of(it, "blockReason"))
        .unwrap_or_default();
    if !blocked.is_empty() {
        found.refusal = format!("the prompt was blocked: {blocked}");
        found.finish = Finish::Filtered;
    }
    if let Some(candidate) = items(root, "candidates").next() {
        if let Some(parts) = candidate.get("content").and_then(|it| it.get("parts")) {
            take(parts, found);
        }
        found.finish = finish(text_of(candidate, "finishReason"));
    }
}

/// Ollama's own API.
fn ollama(root: &Map<String, Value>, found: &mut Found) {
    let Some(message @ Value::Object(map)) = root.get("message") else {
        return;
    };
    if let Some(content) = map.get("content") {
        take(content, found);
    }
    thoughts(message, found);
    found.finish = finish(
        root.get("done_reason")
            .and_then(Value::as_str)
            .unwrap_or_default(),
    );
}

/// Anthropic's Messages, and endpoints that answer with one text.
fn plain(root: &Map<String, Value>, found: &mut Found) {
    for key in PLAIN_KEYS {
        if let Some(value @ (Value::String(_) | Value::Array(_))) = root.get(key)
            && found.text.is_empty()
        {
            take(value, found);
        }
    }
    for key in ["stop_reason", "done_reason", "finish_reason"] {
        if found.finish == Finish::Unknown {
            found.finish = finish(root.get(key).and_then(Value::as_str).unwrap_or_default());
        }
    }
}

/// Takes the texts of a content: a text, or a list of texts and parts.
fn take(content: &Value, found: &mut Found) {
    match content {
        Value::String(text) => {
            found.has_place = true;
            found.text.push_str(text);
        }
        Value::Array(parts) => {
            for part in parts {
                take_part(part, found);
            }
        }
        Value::Object(_) => take_part(content, found),
        Value::Null => found.has_place = true,
        Value::Bool(_) | Value::Number(_) => {}
    }
}

fn take_part(part: &Value, found: &mut Found) {
    let text = text_of(part, "text");
    let is_thought = part.get("thought").and_then(Value::as_bool) == Some(true);
    match text_of(part, "type") {
        _ if is_thought => found.reasoning.push_str(text),
        "thinking" | "reasoning" | "reasoning_text" | "redacted_thinking" => {
            found.reasoning.push_str(text_of(part, "thinking"));
            found.reasoning.push_str(text);
        }
        "refusal" => found.refusal.push_str(text_of(part, "refusal")),
        "tool_use" | "function_call" | "tool_call" => {}
        _ => {
            if let Value::String(text) = part {
                found.has_place = true;
                found.text.push_str(text);
            } else if part.get("text").is_some() {
                found.has_place = true;
                found.text.push_str(text);
            }
        }
    }
}

fn thoughts(message: &Value, found: &mut Found) {
    for key in THOUGHT_KEYS {
        let thought = text_of(message, key);
        // The same thoughts stand under two keys with some providers.
        if found.reasoning.is_empty() {
            found.reasoning.push_str(thought);
        }
    }
    if found.reasoning.is_empty() {
        let details = message.get("reasoning_details").and_then(Value::as_array);
        for detail in details.into_iter().flatten() {
            found.reasoning.push_str(text_of(detail, "text"));
            found.reasoning.push_str(text_of(detail, "summary"));
        }
    }
    // An answer with thoughts and no word of its own has a place for one.
    found.has_place |= !found.reasoning.is_empty();
}

/// The end of an answer in the words of any API.
fn finish(word: &str) -> Finish {
    match word.to_ascii_lowercase().as_str() {
        "stop" | "end_turn" | "stop_sequence" | "eos" | "eos_token" | "completed" | "complete"
        | "end" => Finish::Complete,
        "length"
        | "max_tokens"
        | "max_output_tokens"
        | "model_context_window_exceeded"
        | "model_length" => Finish::Cut,
        "content_filter" | "refusal" | "safety" | "recitation" | "blocklist"
        | "prohibited_content" | "spii" | "image_safety" | "sensitive" => Finish::Filtered,
        "error" | "network_error" | "malformed_response" => Finish::Error,
        _ => Finish::Unknown,
    }
}

fn items<'a>(root: &'a Map<String, Value>, key: &str) -> impl Iterator<Item = &'a Value> {
    root.get(key)
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
}

fn text_of<'a>(value: &'a Value, key: &str) -> &'a str {
    value.get(key).and_then(Value::as_str).unwrap_or_default()
}
