//! The commands, and what they share.

mod call;
mod config;
mod deliver;
mod demo;
mod image;
mod models;
mod reload;
mod serve;
mod servers;
mod test;

use std::collections::BTreeMap;
use std::future::Future;
use std::io::Read;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Map, Value};
use talaria_http::look_over;
use talaria_telemetry::logging::{self, LogFormat, LogGuard};
use talaria_types::runtime;

use crate::arguments::{Arguments, Command, ConfigCommand, ImageCommand, TargetArguments};
use crate::client::{ServiceClient, URL_VARIABLE};
use crate::demo_server;
use crate::exit::{CommandError, Exit};
use crate::output::Output;

/// Variable with the filter of the log.
pub const LOG_VARIABLE: &str = "TALARIA_LOG";
/// What a command that prints its own findings logs.
const QUIET: &str = "error";

/// How long a worker of the blocking pool waits for more. Shorter than the pause between two
/// looks at the configuration, which would otherwise wake each of several in turn and keep all.
const IDLE_WORKER: Duration = Duration::from_secs(1);

/// What every command gets.
#[derive(Debug)]
struct Surroundings {
    environment: BTreeMap<String, String>,
    output: Output,
}

impl Surroundings {
    /// Sets the log up; `usual` is the filter unless the environment has one.
    fn log(&self, format: LogFormat, usual: Option<&str>) -> Result<LogGuard, CommandError> {
        let filter = self
            .environment
            .get(LOG_VARIABLE)
            .map(String::as_str)
            .or(usual);
        logging::init(format, filter)
            .map_err(|error| CommandError::usage(format!("{:#}", anyhow::Error::new(error))))
    }

    /// Sets up the log of a command that prints its own findings.
    fn quiet_log(&self) -> Result<LogGuard, CommandError> {
        self.log(LogFormat::Human, Some(QUIET))
    }

    /// The service that a command shall ask, or none when it works in its own process.
    fn service(&self, target: &TargetArguments) -> Result<Option<ServiceClient>, CommandError> {
        let config = &target.config;
        if target.standalone || config.config.is_some() || config.home.is_some() {
            return Ok(None);
        }
        ServiceClient::from_environment(target.url.as_deref(), &self.environment).map(Some)
    }

    /// As [`Self::service`], for a command that prefers its own process.
    fn named_service(
        &self,
        target: &TargetArguments,
    ) -> Result<Option<ServiceClient>, CommandError> {
        if target.url.is_some() || self.environment.contains_key(URL_VARIABLE) {
            return self.service(target);
        }
        Ok(None)
    }
}

/// Runs a command to its end.
///
/// # Errors
/// Whatever keeps it from doing its work, with the exit code.
pub fn run(arguments: Arguments) -> Result<Exit, CommandError> {
    let output = if arguments.json {
        Output::Json
    } else {
        Output::Human
    };
    let surroundings = Surroundings {
        environment: runtime::environment(),
        output,
    };
    match arguments.command {
        Command::Guard => {
            talaria_mcp::guard::run().context("run the guard")?;
            Ok(Exit::Ok)
        }
        Command::Draw => {
            talaria_image::draw().context("draw")?;
            Ok(Exit::Ok)
        }
        Command::DemoServer => run_demo_server(),
        Command::Config(ConfigCommand::Check(config)) => config::check(&surroundings, &config),
        Command::Config(ConfigCommand::Show(config)) => config::show(&surroundings, &config),
        Command::Image(ImageCommand::Prepare(prepare)) => {
            image::prepare_files(&surroundings, &prepare)
        }
        Command::Serve(serve) => {
            crate::allocator::bound(&surroundings.environment);
            on_system(serve::run(&surroundings, serve))
        }
        Command::Demo(demo) => on_system(demo::run(&surroundings, demo)),
        Command::Call(call) => on_system(call::run(&surroundings, call)),
        Command::Deliver(deliver) => on_system(deliver::run(&surroundings, deliver)),
        Command::Reload(arguments) => on_system(reload::run(&surroundings, arguments)),
        Command::Servers(target) => on_system(servers::run(&surroundings, target)),
        Command::Models(models) => on_system(models::run(&surroundings, models)),
        Command::Test(test) => on_system(test::run(&surroundings, test)),
    }
}

/// Runs a future on a new actix system.
fn on_system(
    command: impl Future<Output = Result<Exit, CommandError>>,
) -> Result<Exit, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .thread_keep_alive(IDLE_WORKER)
        .build()
        .context("start a runtime")?;
    actix::System::with_tokio_rt(|| runtime).block_on(command)
}

fn run_demo_server() -> Result<Exit, CommandError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .context("start a runtime")?;
    runtime.block_on(demo_server::serve_stdio())?;
    Ok(Exit::Ok)
}

/// Reads the JSON object of a tool's arguments; `-` is stdin.
fn tool_arguments(text: &str) -> Result<Map<String, Value>, CommandError> {
    let text = if text == "-" {
        String::from_utf8_lossy(&read_stdin()?).into_owned()
    } else {
        text.to_owned()
    };
    look_over(text.as_bytes())
        .map_err(|fault| CommandError::usage(format!("the arguments of the tool hold {fault}")))?;
    match serde_json::from_str(&text) {
        Ok(Value::Object(arguments)) => Ok(arguments),
        Ok(_) => Err(CommandError::usage(
            "the arguments of a tool are a JSON object",
        )),
        Err(error) => Err(CommandError::usage(format!(
            "the arguments of the tool are not JSON: {error}"
        ))),
    }
}

fn read_stdin() -> Result<Vec<u8>, CommandError> {
    let mut bytes = Vec::new();
    std::io::stdin()
        .lock()
        .read_to_end(&mut bytes)
        .context("read stdin")?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::tool_arguments;
    use crate::exit::Exit;

    #[test]
    fn tool_arguments_are_a_json_object() {
        assert_eq!(tool_arguments(r#"{"a": 1}"#).unwrap().len(), 1);
        let huge = r#"{"id": 123456789012345678901234567890}"#;
        for text in ["[]", "1", "{", "", huge] {
            assert_eq!(
                tool_arguments(text).unwrap_err().exit(),
                Exit::Usage,
                "{text:?}"
            );
        }
    }
}
