//! The built-in MCP server behind `talaria demo`: every content kind, from real bytes.
//!
//! It speaks over stdio as a hidden subcommand of this binary, so that the demo, the benches and
//! the tests need nothing that is not in it.

pub mod assets;
pub mod desktop;
pub mod hostile;
mod look;
mod prompts;
mod resources;
mod tools;

use std::fmt;

use anyhow::Context;
use rmcp::handler::server::router::prompt::PromptRouter;
use rmcp::handler::server::router::tool::ToolRouter;
use rmcp::model::{
    Implementation, ListResourcesResult, PaginatedRequestParams, ReadResourceRequestParams,
    ReadResourceResponse, ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{
    ErrorData, RoleServer, ServerHandler, ServiceExt, prompt_handler, tool_handler,
    transport::stdio_pipes,
};

pub use tools::{blob_bytes, long_text};

/// Hidden subcommand of the binary that runs [`serve_stdio`].
pub const DEMO_SERVER_SUBCOMMAND: &str = "demo-server";

/// The server. It has no state: every tool answers from bytes in the binary.
pub struct DemoServer {
    tool_router: ToolRouter<Self>,
    prompt_router: PromptRouter<Self>,
}

impl fmt::Debug for DemoServer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DemoServer").finish_non_exhaustive()
    }
}

impl DemoServer {
    /// The server with all its tools, resources and prompts.
    #[must_use]
    pub fn new() -> Self {
        Self {
            tool_router: Self::tools(),
            prompt_router: Self::prompts(),
        }
    }
}

impl Default for DemoServer {
    fn default() -> Self {
        Self::new()
    }
}

#[tool_handler(router = self.tool_router)]
#[prompt_handler(router = self.prompt_router)]
impl ServerHandler for DemoServer {
    fn get_info(&self) -> ServerConfig {
        let capabilities = ServerCapabilities::builder()
            .enable_tools()
            .enable_resources()
            .enable_prompts()
            .build();
        ServerConfig::new(capabilities)
            .with_server_info(Implementation::new(
                "talaria-demo",
                env!("CARGO_PKG_VERSION"),
            ))
            .with_instructions("Returns one example of everything a tool result can hold.")
    }

    async fn list_resources(
        &self,
        _request: Option<PaginatedRequestParams>,
        _context: RequestContext<RoleServer>,
    ) -> Result<ListResourcesResult, ErrorData> {
        Ok(ListResourcesResult::with_all_items(resources::list()))
    }

    async fn read_resource(
        &self,
        request: ReadResourceRequestParams,
        _context: RequestContext<RoleServer>,
    ) -> Result<ReadResourceResponse, ErrorData> {
        resources::read(&request.uri).map(Into::into)
    }
}

/// Serves one client over stdin and stdout until it goes away.
///
/// # Errors
/// The handshake fails or the pipes break.
pub async fn serve_stdio() -> anyhow::Result<()> {
    let service = DemoServer::new()
        .serve(stdio_pipes())
        .await
        .context("serve the demo tools over stdio")?;
    service
        .waiting()
        .await
        .context("serve the demo tools to the end")?;
    Ok(())
}

#[cfg(test)]
mod tests;
