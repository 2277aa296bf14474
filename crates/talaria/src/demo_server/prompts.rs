//! The demo server's prompt.

use rmcp::handler::server::wrapper::Parameters;
use rmcp::model::{PromptMessage, Role};
use rmcp::{prompt, prompt_router};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::DemoServer;

/// Arguments of `summarize`.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub(super) struct SummarizeArguments {
    /// Address of the file to summarize.
    uri: String,
}

#[prompt_router(router = "prompts", vis = "pub(super)")]
impl DemoServer {
    /// Asks for a summary of one of the files.
    #[prompt(
        name = "summarize",
        description = "Asks for a summary of one of the files."
    )]
    fn summarize(
        &self,
        Parameters(arguments): Parameters<SummarizeArguments>,
    ) -> Vec<PromptMessage> {
        vec![PromptMessage::new_text(
            Role::User,
            format!(
                "Read {} and summarize it in three sentences.",
                arguments.uri
            ),
        )]
    }
}
