//! What an MCP tool is told: which of its arguments take the picture and the question, and in
//! which form the picture goes there (design decision 27). Pure.
//!
//! Names come from the tool's own input schema. Nothing is sent that the schema does not declare,
//! and everything it requires is filled.

mod form;
mod schema;

use serde_json::{Map, Value};
use talaria_config::McpFallback;
use talaria_vision::describe::{Fault, FaultKind};

use form::{Told, words};
use schema::Property;

pub(super) use form::Form;

/// Words of names and descriptions that mean a picture.
const PICTURE: &[&str] = &[
    "image",
    "images",
    "img",
    "photo",
    "photograph",
    "pic",
    "picture",
    "pictures",
    "screenshot",
];
/// Words of names that mean where or how a picture is.
const CARRIER: &[&str] = &[
    "b64", "base64", "data", "file", "filename", "filepath", "input", "link", "path", "source",
    "src", "uri", "url",
];
/// Words of names that mean something else, whatever stands beside them.
const OTHER: &[&str] = &[
    "count",
    "detail",
    "extension",
    "format",
    "height",
    "id",
    "mime",
    "mimetype",
    "quality",
    "size",
    "type",
    "width",
];
/// Words of names that mean the type of a picture.
const TYPE: &[&str] = &["format", "mime", "mimetype", "type"];
/// Words of names that mean a question, the best first.
const QUESTION: &[&str] = &[
    "prompt",
    "prompts",
    "question",
    "questions",
    "query",
    "q",
    "instruction",
    "instructions",
    "request",
    "ask",
    "task",
    "message",
    "text",
];

/// Where a server is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// On this machine: it reads our files.
    Local,
    /// Behind HTTP.
    Remote,
}

/// How a tool is called.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ToolPlan {
    /// How the picture is put.
    pub(super) form: Form,
    image: Slot,
    question: Option<Slot>,
    media_type: Option<String>,
    fills: Map<String, Value>,
}

/// An argument that takes a text.
#[derive(Clone, Debug, PartialEq)]
struct Slot {
    name: String,
    /// It takes a list of texts.
    is_list: bool,
}

impl Slot {
    fn of(property: &Property<'_>) -> Self {
        Self {
            name: property.name.to_owned(),
            is_list: property.is_list,
        }
    }

    fn fill(self, text: Value, arguments: &mut Map<String, Value>) {
        let value = if self.is_list {
            Value::Array(vec![text])
        } else {
            text
        };
        arguments.insert(self.name, value);
    }
}

impl ToolPlan {
    /// The arguments of the call.
    pub(super) fn arguments(
        self,
        picture: String,
        media_type: &str,
        question: &str,
    ) -> Map<String, Value> {
        let mut arguments = self.fills;
        if let Some(slot) = self.question {
            slot.fill(Value::from(question), &mut arguments);
        }
        if let Some(name) = self.media_type {
            arguments.insert(name, Value::from(media_type));
        }
        self.image.fill(Value::from(picture), &mut arguments);
        arguments
    }
}

/// Reads a tool's definition.
///
/// # Errors
/// No argument takes a picture, one that is required cannot be filled, or the configured form may
/// not be used.
pub(super) fn plan(
    tool: &McpFallback,
    definition: &Value,
    reach: Reach,
) -> Result<ToolPlan, Fault> {
    let properties = schema::properties(definition);
    if properties.is_empty() {
        return bare(tool, definition, reach);
    }
    let question = question(tool, &properties);
    let image = image(tool, &properties, question).ok_or_else(|| {
        misconfigured(&format!(
            "no argument of the tool takes a picture; `{}.image_arg` can name one",
            tool.path
        ))
    })?;
    let told = Told::of(image.name, image.description).or(description(definition));
    let form = form::choose(tool, &told, reach)?;
    let media_type = properties
        .iter()
        .find(|it| it.name != image.name && it.takes_text && has(it.name, TYPE))
        .filter(|it| it.is_required || form == Form::Base64);
    let mut plan = ToolPlan {
        form,
        image: Slot::of(image),
        question: question.map(Slot::of),
        media_type: media_type
            .filter(|it| it.fixed().is_none())
            .map(|it| it.name.to_owned()),
        fills: Map::new(),
    };
    for property in properties.iter().filter(|it| it.is_required) {
        let name = property.name;
        let is_filled = name == plan.image.name
            || plan.question.as_ref().is_some_and(|slot| slot.name == name)
            || plan.media_type.as_deref() == Some(name);
        if !is_filled {
            plan.fills.insert(name.to_owned(), property.filling());
        }
    }
    Ok(plan)
}

/// A tool that declares nothing is called as MiniMax's is.
fn bare(tool: &McpFallback, definition: &Value, reach: Reach) -> Result<ToolPlan, Fault> {
    let slot = |configured: &Option<String>, usual: &str| Slot {
        name: configured.clone().unwrap_or_else(|| usual.to_owned()),
        is_list: false,
    };
    let image = slot(&tool.image_arg, "image_source");
    let told = Told::of(&image.name, "").or(description(definition));
    Ok(ToolPlan {
        form: form::choose(tool, &told, reach)?,
        image,
        question: Some(slot(&tool.prompt_arg, "prompt")),
        media_type: None,
        fills: Map::new(),
    })
}

/// The argument of the question: the configured one where it is declared, else the likeliest.
fn question<'a>(tool: &McpFallback, properties: &'a [Property<'a>]) -> Option<&'a Property<'a>> {
    let configured = tool.prompt_arg.as_deref();
    if let Some(named) = properties.iter().find(|it| Some(it.name) == configured) {
        return Some(named);
    }
    let candidates = properties.iter().filter(|it| {
        it.takes_text && tool.image_arg.as_deref() != Some(it.name) && !has(it.name, PICTURE)
    });
    let rank = |property: &Property<'_>| {
        let words = words(property.name);
        QUESTION
            .iter()
            .position(|word| words.iter().any(|it| it == word))
    };
    let named = candidates.clone().filter_map(|it| Some((rank(it)?, it)));
    let best = named.min_by_key(|(rank, _)| *rank).map(|(_, it)| it);
    best.or_else(|| {
        let mut asking = candidates.clone().filter(|it| {
            let description = it.description.to_lowercase();
            ["question", "prompt", "what to"]
                .iter()
                .any(|word| description.contains(word))
        });
        asking.next()
    })
    .or_else(|| {
        // What is required and says nothing of a picture can only be the question.
        let mut left = candidates.filter(|it| {
            let about_picture = [OTHER, CARRIER].iter().any(|known| has(it.name, known));
            let described = words(it.description);
            it.is_required
                && it.fixed().is_none()
                && !about_picture
                && !described
                    .iter()
                    .any(|word| PICTURE.contains(&word.as_str()))
        });
        left.next()
    })
}

/// The argument of the picture: the configured one where it is declared, else the likeliest.
fn image<'a>(
    tool: &McpFallback,
    properties: &'a [Property<'a>],
    question: Option<&Property<'_>>,
) -> Option<&'a Property<'a>> {
    let configured = tool.image_arg.as_deref();
    if let Some(named) = properties.iter().find(|it| Some(it.name) == configured) {
        return Some(named);
    }
    let asked = question.map(|it| it.name);
    let candidates = properties
        .iter()
        .filter(|it| it.takes_text && Some(it.name) != asked && !has(it.name, OTHER));
    let mut best: Option<(u32, &Property<'_>)> = None;
    for property in candidates {
        let score = likelihood(property);
        if score > best.map_or(0, |(score, _)| score) {
            best = Some((score, property));
        }
    }
    best.map(|(_, property)| property)
}

/// How likely an argument takes the picture; 0 where nothing hints at it.
fn likelihood(property: &Property<'_>) -> u32 {
    let mut score = 0;
    if has(property.name, PICTURE) {
        score += 16;
    }
    if has(property.name, CARRIER) {
        score += 6;
    }
    if words(property.description)
        .iter()
        .any(|word| PICTURE.contains(&word.as_str()))
    {
        score += 8;
    }
    if score > 0 && property.is_required {
        score += 3;
    }
    if score > 0 && property.is_list {
        score -= 1;
    }
    score
}

/// Whether one of these words is part of a name.
fn has(name: &str, known: &[&str]) -> bool {
    words(name)
        .iter()
        .any(|word| known.contains(&word.as_str()))
}

fn description(definition: &Value) -> &str {
    let text = definition.get("description").and_then(Value::as_str);
    schema::beginning(text.unwrap_or_default())
}

fn misconfigured(words: &str) -> Fault {
    Fault::new(FaultKind::Misconfigured, words)
}

#[cfg(test)]
mod tests;
