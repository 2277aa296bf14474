//! The published table of tools: public name to server and raw name.

use serde_json::Value;
use talaria_types::ServerName;

/// A tool as callers see it.
#[derive(Clone, Debug)]
pub struct PublicTool {
    /// Public name, at most 64 characters.
    pub name: String,
    /// Server that has it.
    pub server: ServerName,
    /// Raw name on that server, or the utility.
    pub target: ToolTarget,
    /// The definition in the MCP shape (`name`, `description`, `inputSchema`, …), sanitised.
    pub definition: Value,
}

/// What a public name stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ToolTarget {
    /// A tool of the server, by its raw name.
    Tool(String),
    /// One of our utilities over the server's resources and prompts.
    Utility(Utility),
}

/// The utility tools (specification 1.15).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Utility {
    /// `…__list_resources`.
    ListResources,
    /// `…__read_resource`.
    ReadResource,
    /// `…__list_prompts`.
    ListPrompts,
    /// `…__get_prompt`.
    GetPrompt,
}
