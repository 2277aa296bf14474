//! Tool lists in the shapes of providers (specification 4.9, design §7).
//!
//! Every list starts from definitions in the MCP shape whose input schema was mended
//! ([`mend_input_schema`]). What a provider cannot take is said in other words or left out; the
//! arguments that come back fit the original all the same, or are refused there.

mod gemini;
mod keywords;
mod mend;
mod plain;
mod references;
#[cfg(test)]
mod tests;

use serde_json::{Map, Value, json};

pub use mend::{Mended, mend_input_schema};

/// Whom a tool list is for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolFormat {
    /// The Model Context Protocol.
    #[default]
    Mcp,
    /// OpenAI's Chat Completions API.
    Openai,
    /// OpenAI's Responses API.
    OpenaiResponses,
    /// Anthropic's Messages API.
    Anthropic,
    /// The Gemini API.
    Gemini,
}

impl ToolFormat {
    /// Every format, in the order of the documentation.
    pub const ALL: [Self; 5] = [
        Self::Mcp,
        Self::Openai,
        Self::OpenaiResponses,
        Self::Anthropic,
        Self::Gemini,
    ];

    /// The word used in requests.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::Openai => "openai",
            Self::OpenaiResponses => "openai-responses",
            Self::Anthropic => "anthropic",
            Self::Gemini => "gemini",
        }
    }

    /// The format of a word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == word)
    }
}

/// The list that goes under `tools` of a provider's request. The tools are in the MCP shape,
/// under the names they are called by.
#[must_use]
pub fn render_tools<'a>(tools: impl IntoIterator<Item = &'a Value>, format: ToolFormat) -> Value {
    let tools = tools.into_iter();
    match format {
        ToolFormat::Mcp => tools.cloned().collect(),
        ToolFormat::Openai => tools.filter_map(openai_chat).collect(),
        ToolFormat::OpenaiResponses => tools.filter_map(openai_responses).collect(),
        ToolFormat::Anthropic => tools.filter_map(anthropic).collect(),
        ToolFormat::Gemini => {
            let declarations: Vec<Value> = tools.filter_map(gemini_declaration).collect();
            if declarations.is_empty() {
                json!([])
            } else {
                json!([{ "functionDeclarations": declarations }])
            }
        }
    }
}

fn openai_chat(tool: &Value) -> Option<Value> {
    let mut function = named(tool)?;
    function.insert(
        "parameters".to_owned(),
        plain::schema(at(tool, "/inputSchema")),
    );
    Some(json!({ "type": "function", "function": function }))
}

/// Strict mode is the default there and takes next to no schema, so that it is switched off.
fn openai_responses(tool: &Value) -> Option<Value> {
    let mut function = Map::new();
    function.insert("type".to_owned(), Value::from("function"));
    function.extend(named(tool)?);
    function.insert(
        "parameters".to_owned(),
        plain::schema(at(tool, "/inputSchema")),
    );
    function.insert("strict".to_owned(), Value::Bool(false));
    Some(Value::Object(function))
}

fn anthropic(tool: &Value) -> Option<Value> {
    let mut entry = named(tool)?;
    let schema = plain::with_plain_keys(plain::schema(at(tool, "/inputSchema")));
    entry.insert("input_schema".to_owned(), schema);
    Some(Value::Object(entry))
}

/// A declaration without parameters has none: the API refuses an object without properties.
fn gemini_declaration(tool: &Value) -> Option<Value> {
    let mut function = named(tool)?;
    if !function.contains_key("description") {
        let name = function.get("name").cloned().unwrap_or_default();
        function.insert("description".to_owned(), name);
    }
    if let Some(parameters) = gemini::parameters(at(tool, "/inputSchema")) {
        function.insert("parameters".to_owned(), parameters);
    }
    Some(Value::Object(function))
}

/// Name and description; a title stands in for the latter.
fn named(tool: &Value) -> Option<Map<String, Value>> {
    let mut entry = Map::new();
    entry.insert("name".to_owned(), at(tool, "/name").as_str()?.into());
    let titles = [
        at(tool, "/description"),
        at(tool, "/title"),
        at(tool, "/annotations/title"),
    ];
    let told = titles
        .into_iter()
        .filter_map(Value::as_str)
        .find(|text| !text.trim().is_empty());
    if let Some(told) = told {
        entry.insert("description".to_owned(), told.into());
    }
    Some(entry)
}

/// What stands at a place of a definition; null where nothing does.
fn at<'a>(tool: &'a Value, place: &str) -> &'a Value {
    tool.pointer(place).unwrap_or(&Value::Null)
}
