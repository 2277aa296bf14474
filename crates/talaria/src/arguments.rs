//! The command line.

mod image;

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use talaria_content::Format;
use talaria_types::Route;

pub use self::image::{ImageCommand, PrepareArguments, TilesArgument};

/// Talaria, the delivery runtime between MCP servers and models.
#[derive(Debug, Parser)]
#[command(name = "talaria", version, after_help = exit_codes(), max_term_width = 100)]
pub struct Arguments {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
    /// Print data as JSON.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the service.
    Serve(ServeArguments),
    /// Run the service with a built-in MCP server, call every tool and check what arrives.
    Demo(DemoArguments),
    /// Call a tool and print its delivery.
    Call(CallArguments),
    /// Deliver a CallToolResult from a file.
    Deliver(DeliverArguments),
    /// Show the MCP servers and their state.
    Servers(TargetArguments),
    /// Have the service read its configuration again.
    Reload(ReloadArguments),
    /// Connect to one configured server and check what it offers and delivers.
    Test(TestArguments),
    /// Make pictures ready for a model.
    #[command(subcommand)]
    Image(ImageCommand),
    /// Show which models get pictures, or explain the answer for one route.
    Models(ModelsArguments),
    /// Check or show the configuration.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Kill registered process groups when Talaria is gone.
    #[command(name = talaria_mcp::guard::GUARD_SUBCOMMAND, hide = true)]
    Guard,
    /// Prepare one drawing for the service.
    #[command(name = talaria_image::DRAW_SUBCOMMAND, hide = true)]
    Draw,
    /// Serve the demo tools over stdio.
    #[command(name = crate::demo_server::DEMO_SERVER_SUBCOMMAND, hide = true)]
    DemoServer,
}

/// Where the configuration is.
#[derive(Clone, Debug, Default, Args)]
pub struct ConfigArguments {
    /// Configuration file; otherwise TALARIA_CONFIG, then ~/.talaria/config.yaml, then defaults.
    #[arg(long, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Folder of the cache and the logs, instead of `talaria.home`.
    #[arg(long, value_name = "DIR")]
    pub home: Option<PathBuf>,
}

/// `serve`.
#[derive(Debug, Args)]
pub struct ServeArguments {
    /// Where the configuration is.
    #[command(flatten)]
    pub config: ConfigArguments,
    /// Address to listen on, instead of `talaria.listen`; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS")]
    pub listen: Option<std::net::SocketAddr>,
}

/// `demo`.
#[derive(Debug, Args)]
pub struct DemoArguments {
    /// Put the files into this folder; otherwise into a fresh one under the system's temp folder.
    #[arg(long, value_name = "DIR")]
    pub home: Option<PathBuf>,
    /// Remove the fresh folder at the end.
    #[arg(long, conflicts_with = "home")]
    pub clean: bool,
}

/// Which service answers.
#[derive(Clone, Debug, Default, Args)]
pub struct TargetArguments {
    /// Base URL of the running service; otherwise TALARIA_URL, then the local default.
    /// The bearer token comes from TALARIA_TOKEN.
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "home", "standalone"])]
    pub url: Option<String>,
    /// Do the work in this process instead of asking a service; implied by --config and --home.
    #[arg(long)]
    pub standalone: bool,
    /// Where the configuration is.
    #[command(flatten)]
    pub config: ConfigArguments,
}

/// `reload`.
#[derive(Debug, Args)]
pub struct ReloadArguments {
    /// Base URL of the running service; otherwise TALARIA_URL, then the local default.
    /// The bearer token comes from TALARIA_TOKEN.
    #[arg(long, value_name = "URL")]
    pub url: Option<String>,
}

/// `call`.
#[derive(Debug, Args)]
pub struct CallArguments {
    /// Public name of the tool, or its own name together with --server.
    pub tool: String,
    /// Arguments as a JSON object; `-` reads them from stdin.
    #[arg(default_value = "{}")]
    pub arguments: String,
    /// Server that has the tool.
    #[arg(long)]
    pub server: Option<String>,
    /// Seconds after which the call is given up.
    #[arg(long, value_name = "SECONDS")]
    pub timeout: Option<u64>,
    /// Who reads the delivery, and in which form.
    #[command(flatten)]
    pub reader: ReaderArguments,
    /// Which service answers.
    #[command(flatten)]
    pub target: TargetArguments,
}

/// `deliver`.
#[derive(Debug, Args)]
pub struct DeliverArguments {
    /// File with a CallToolResult as JSON; `-` is stdin.
    pub file: PathBuf,
    /// Server the result came from; names the tool that reads its links.
    #[arg(long)]
    pub server: Option<String>,
    /// Who reads the delivery, and in which form.
    #[command(flatten)]
    pub reader: ReaderArguments,
    /// Which service answers; without --url and TALARIA_URL this process does the work.
    #[command(flatten)]
    pub target: TargetArguments,
}

/// Who reads a delivery, and in which form.
#[derive(Clone, Debug, Default, Args)]
pub struct ReaderArguments {
    /// Form of the answer; anything but `talaria` is printed as it comes.
    #[arg(long, default_value = "talaria")]
    pub format: FormatArgument,
    /// The model that reads it; decides whether pictures become pixels.
    #[arg(long, value_name = "PROVIDER/MODEL", value_parser = route)]
    pub route: Option<Route>,
    /// The provider's id of the tool call; the forms of Anthropic and OpenAI need one.
    #[arg(long, value_name = "ID")]
    pub call_id: Option<String>,
}

/// `test`.
#[derive(Debug, Args)]
pub struct TestArguments {
    /// Configured name of the server.
    pub name: String,
    /// Tool to call, by the server's own name for it.
    #[arg(long)]
    pub tool: Option<String>,
    /// Arguments of the tool as a JSON object.
    #[arg(
        long = "args",
        value_name = "JSON",
        default_value = "{}",
        requires = "tool"
    )]
    pub arguments: String,
    /// Seconds after which the test is given up.
    #[arg(long, value_name = "SECONDS", default_value_t = 120)]
    pub timeout: u64,
    /// Where the configuration is.
    #[command(flatten)]
    pub config: ConfigArguments,
}

/// `models`.
#[derive(Debug, Args)]
pub struct ModelsArguments {
    /// Explain the answer for this route: PROVIDER/MODEL, the model as the provider spells it.
    #[arg(long, value_name = "PROVIDER/MODEL", conflicts_with = "provider")]
    pub route: Option<String>,
    /// API shape of the route, for example `openai-chat` or `anthropic`.
    #[arg(long, value_name = "SHAPE", requires = "route")]
    pub api: Option<String>,
    /// List the models of this provider only.
    #[arg(long)]
    pub provider: Option<String>,
    /// Where the configuration is.
    #[command(flatten)]
    pub config: ConfigArguments,
}

/// `config`.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print every problem of the configuration.
    Check(ConfigArguments),
    /// Print the configuration as it is understood, without its secrets.
    Show(ConfigArguments),
}

/// The formats, as words of the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum FormatArgument {
    /// The delivery: a readable account of it, or all of it with --json.
    #[default]
    Talaria,
    /// The shape of the Hermes agent.
    Hermes,
    /// What the model reads, alone.
    Text,
    /// A `tool_result` block of Anthropic's Messages API.
    Anthropic,
    /// A `function_call_output` item of OpenAI's Responses API.
    OpenaiResponses,
    /// Messages of OpenAI's Chat Completions API.
    OpenaiChat,
    /// A `functionResponse` part of the Gemini API.
    Gemini,
    /// A `CallToolResult` of the Model Context Protocol.
    Mcp,
}

impl From<FormatArgument> for Format {
    fn from(format: FormatArgument) -> Self {
        match format {
            FormatArgument::Talaria => Self::Talaria,
            FormatArgument::Hermes => Self::Hermes,
            FormatArgument::Text => Self::Text,
            FormatArgument::Anthropic => Self::Anthropic,
            FormatArgument::OpenaiResponses => Self::OpenaiResponses,
            FormatArgument::OpenaiChat => Self::OpenaiChat,
            FormatArgument::Gemini => Self::Gemini,
            FormatArgument::Mcp => Self::Mcp,
        }
    }
}

/// `PROVIDER/MODEL`; the model may hold more slashes.
fn route(text: &str) -> Result<Route, String> {
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(Route {
            provider: provider.to_owned(),
            model: model.to_owned(),
            api: None,
        }),
        Some(_) | None => Err("write it as PROVIDER/MODEL".to_owned()),
    }
}

fn exit_codes() -> String {
    let mut text = "Exit codes:".to_owned();
    for exit in crate::exit::Exit::ALL {
        text.push_str(&format!("\n  {}  {}", exit.number(), exit.meaning()));
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, Parser};

    use super::{Arguments, Command};

    #[test]
    fn definition_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn help_documents_the_exit_codes_and_hides_inner_commands() {
        let help = Arguments::command().render_help().to_string();
        assert!(help.contains("3  the service does not answer"));
        assert!(!help.contains("__") && !help.contains("demo-server"));
    }

    #[test]
    fn a_route_is_a_provider_and_a_model() {
        let model = |text: &str| super::route(text).map(|route| (route.provider, route.model));
        let openrouter = ("openrouter".to_owned(), "xiaomi/mimo-v2".to_owned());
        assert_eq!(model("openrouter/xiaomi/mimo-v2"), Ok(openrouter));
        for wrong in ["", "anthropic", "/model", "anthropic/"] {
            assert!(model(wrong).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn json_may_follow_the_command() {
        let arguments = Arguments::parse_from(["talaria", "call", "mcp__a__b", "{}", "--json"]);
        assert!(arguments.json);
        assert!(matches!(arguments.command, Command::Call(call) if call.tool == "mcp__a__b"));
    }

    #[test]
    fn a_url_and_a_config_exclude_each_other() {
        let both = [
            "talaria", "servers", "--url", "http://a", "--config", "c.yaml",
        ];
        assert!(Arguments::try_parse_from(both).is_err());
    }
}
