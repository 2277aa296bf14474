//! `talaria deliver`.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Map, Value};
use talaria_actors::{DeliverOptions, Delivered, ImageWishes};
use talaria_config::Config;
use talaria_content::{ReaderTool, RenderOptions, ResultKind, render};
use talaria_http::look_over;
use talaria_types::{CallContext, Deadline, RawResult, ServerName};

use super::call::{check_call_id, print_delivery};
use super::{Surroundings, read_stdin};
use crate::arguments::DeliverArguments;
use crate::client::{ServiceClient, reader};
use crate::configuration;
use crate::engine::Engine;
use crate::exit::{CommandError, Exit};
use crate::output::with_progress;

/// How long a delivery may take.
const TIMEOUT: Duration = Duration::from_secs(300);

/// Delivers a result from a file and prints the delivery.
pub(super) async fn run(
    surroundings: &Surroundings,
    arguments: DeliverArguments,
) -> Result<Exit, CommandError> {
    let _log = surroundings.quiet_log()?;
    let result = read(&arguments.file)?;
    let format = arguments.reader.format.into();
    check_call_id(format, arguments.reader.call_id.as_deref())?;
    let body = match surroundings.named_service(&arguments.target)? {
        Some(client) => with_progress("delivering", ask(&client, &result, &arguments)).await?,
        None => {
            let loaded = configuration::load(&arguments.target.config, &surroundings.environment)?;
            // A delivery with its pictures is no guest for the stack.
            let deliver = Box::pin(deliver_here(loaded.config, result, &arguments));
            with_progress("delivering", deliver).await?
        }
    };
    print_delivery(surroundings.output, format, &body)
}

fn read(file: &Path) -> Result<Vec<u8>, CommandError> {
    if file == Path::new("-") {
        return read_stdin();
    }
    std::fs::read(file)
        .map_err(|error| CommandError::usage(format!("{} cannot be read: {error}", file.display())))
}

async fn ask(
    client: &ServiceClient,
    result: &[u8],
    arguments: &DeliverArguments,
) -> Result<String, CommandError> {
    look_over(result).map_err(|fault| CommandError::usage(format!("the result holds {fault}")))?;
    let result: Value = serde_json::from_slice(result)
        .map_err(|error| CommandError::usage(format!("the result is not JSON: {error}")))?;
    let mut body = Map::from_iter([("result".to_owned(), result)]);
    let asked = &arguments.reader;
    reader(
        &mut body,
        asked.format.into(),
        asked.route.as_ref(),
        asked.call_id.as_deref(),
    );
    if let Some(server) = &arguments.server {
        body.insert("server".to_owned(), server.clone().into());
    }
    client.post("/v1/results/deliver", &body.into()).await
}

async fn deliver_here(
    config: Config,
    result: Vec<u8>,
    arguments: &DeliverArguments,
) -> Result<String, CommandError> {
    let engine = Engine::open(Arc::new(config), None);
    let mut ctx = CallContext::new(Deadline::after(TIMEOUT));
    ctx.route = arguments.reader.route.clone();
    let scrubbed = engine.delivery.read_body(&ctx, result, "").await?;
    let raw = scrubbed
        .result
        .unwrap_or_else(|| RawResult::from_json(Value::Null));
    let format = arguments.reader.format.into();
    let options = DeliverOptions {
        kind: ResultKind::ToolCall,
        server: arguments.server.as_deref().map(ServerName::from),
        tool: None,
        reader: ReaderTool::Missing,
        format,
        images: ImageWishes::default(),
    };
    let delivered = engine.delivery.deliver(&ctx, raw, options).await;
    engine.close().await;
    let Delivered {
        delivery,
        image_delivery,
    } = delivered?;
    let options = RenderOptions {
        call_id: arguments.reader.call_id.clone(),
        tool_name: delivery.tool.clone(),
        image_delivery,
    };
    Ok(render(&delivery, format, &options).body)
}
