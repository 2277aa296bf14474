//! `talaria call`.

use std::time::Duration;

use serde_json::Value;
use talaria_actors::Delivered;
use talaria_config::Config;
use talaria_content::{Delivery, Format, RenderOptions, render};
use talaria_types::{CallContext, Deadline, Failure};

use super::{Surroundings, tool_arguments};
use crate::account::account;
use crate::arguments::CallArguments;
use crate::client::{CallRequest, ServiceClient};
use crate::configuration;
use crate::engine::Standalone;
use crate::exit::{CommandError, Exit};
use crate::output::{Output, print_text, with_progress};

/// How long servers may take to start in this process.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Calls a tool and prints what it delivers.
pub(super) async fn run(
    surroundings: &Surroundings,
    arguments: CallArguments,
) -> Result<Exit, CommandError> {
    let _log = surroundings.quiet_log()?;
    let request = CallRequest {
        tool: arguments.tool,
        server: arguments.server,
        arguments: tool_arguments(&arguments.arguments)?,
        format: arguments.reader.format.into(),
        route: arguments.reader.route,
        call_id: arguments.reader.call_id,
        timeout: arguments.timeout.map(Duration::from_secs),
    };
    check_call_id(request.format, request.call_id.as_deref())?;
    let what = format!("calling {}", request.tool);
    let body = match surroundings.service(&arguments.target)? {
        Some(client) => with_progress(&what, ask(&client, &request)).await?,
        None => {
            let config = configuration::load(&arguments.target.config, &surroundings.environment)?;
            // A delivery with its pictures is no guest for the stack.
            let call = Box::pin(call_here(surroundings, config.config, &request));
            with_progress(&what, call).await?
        }
    };
    print_delivery(surroundings.output, request.format, &body)
}

async fn ask(client: &ServiceClient, request: &CallRequest) -> Result<String, CommandError> {
    client.post("/v1/tools/call", &request.body()).await
}

/// Starts the servers in this process, calls, and stops them.
async fn call_here(
    surroundings: &Surroundings,
    mut config: Config,
    request: &CallRequest,
) -> Result<String, CommandError> {
    if let Some(wanted) = &request.server {
        config.servers.retain(|name, _| name.as_str() == wanted);
    }
    let limit = request
        .timeout
        .unwrap_or(config.talaria.calls.max_call_duration);
    let mut ctx = CallContext::new(Deadline::after(limit));
    ctx.route = request.route.clone();
    let deadline = Deadline::after(START_TIMEOUT);
    let here = Standalone::start(config, &surroundings.environment, deadline).await?;
    let delivered = call_on(&here, &ctx, request).await;
    here.stop().await;
    let delivered = delivered?;
    let options = RenderOptions {
        call_id: request.call_id.clone(),
        tool_name: Some(request.tool.clone()),
        image_delivery: delivered.image_delivery,
    };
    Ok(render(&delivered.delivery, request.format, &options).body)
}

async fn call_on(
    here: &Standalone,
    ctx: &CallContext,
    request: &CallRequest,
) -> Result<Delivered, Failure> {
    let tool = match &request.server {
        Some(server) => here.supervisor.resolve(server, &request.tool)?.name,
        None => request.tool.clone(),
    };
    let arguments = request.arguments.clone();
    here.call(ctx, &tool, arguments, request.format).await
}

/// The formats of some providers are none without the id of the call.
pub(super) fn check_call_id(format: Format, call_id: Option<&str>) -> Result<(), CommandError> {
    match format.call_id_fault(call_id) {
        Some(fault) => Err(CommandError::usage(fault)),
        None => Ok(()),
    }
}

/// Prints a delivery as the caller wants it and derives the exit code.
pub(super) fn print_delivery(
    output: Output,
    format: Format,
    body: &str,
) -> Result<Exit, CommandError> {
    match format {
        Format::Talaria => {
            let delivery: Delivery = serde_json::from_str(body)
                .map_err(|error| anyhow::Error::new(error).context("read the delivery"))?;
            output.print(&delivery, account)?;
            Ok(if delivery.is_error {
                Exit::CheckFailed
            } else {
                Exit::Ok
            })
        }
        Format::Hermes
        | Format::Text
        | Format::Anthropic
        | Format::OpenaiResponses
        | Format::OpenaiChat
        | Format::Gemini
        | Format::Mcp => {
            let end = if body.ends_with('\n') { "" } else { "\n" };
            print_text(&format!("{body}{end}"))?;
            let failed = format == Format::Hermes && is_hermes_error(body);
            Ok(if failed { Exit::CheckFailed } else { Exit::Ok })
        }
    }
}

/// Whether a body in the shape of Hermes is the error of a tool. The format `text` cannot tell.
fn is_hermes_error(body: &str) -> bool {
    let body: Result<Value, _> = serde_json::from_str(body);
    body.is_ok_and(|body| body.get("error").is_some_and(Value::is_string))
}

#[cfg(test)]
mod tests {
    use super::is_hermes_error;

    #[test]
    fn only_an_error_of_its_shape_is_one() {
        assert!(is_hermes_error(r#"{"error": "out of paper"}"#));
        assert!(!is_hermes_error(r#"{"result": "{\"error\": \"quoted\"}"}"#));
        assert!(!is_hermes_error("error"));
    }
}
