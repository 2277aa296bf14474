//! `POST /v1/reload`.

use std::time::Duration;

use actix_web::{HttpResponse, web};
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::{Map, Value};
use talaria_types::{ErrorCode, Failure};

use crate::body;
use crate::exchange::Asked;
use crate::problem::Rejection;
use crate::query;
use crate::reload::{ConfigProblem, ReloadRefusal};
use crate::routes::json;

/// How long reading the file and changing the servers may take; no server is waited for.
const RELOAD_WITHIN: Duration = Duration::from_secs(60);

/// What a refused reload says besides the problem itself.
#[derive(Debug, Serialize, JsonSchema)]
pub(crate) struct ReloadProblems {
    /// Everything that is wrong with the file.
    problems: Vec<ConfigProblem>,
}

/// Reads the configuration again and reports what changed.
pub(super) async fn reload(
    asked: &Asked<'_>,
    payload: &mut web::Payload,
) -> Result<HttpResponse, Rejection> {
    query::read(asked.request, &[])?;
    body::read_nothing(asked, payload).await?;
    asked.state.accept_work()?;
    let Some(reload) = &asked.state.reload else {
        let detail = "this service runs without a configuration file; there is nothing to read";
        return Err(Failure::new(ErrorCode::ConfigInvalid, detail).into());
    };
    match tokio::time::timeout(RELOAD_WITHIN, reload.reload()).await {
        Ok(Ok(report)) => json(&report),
        Ok(Err(refusal)) => Err(refused(refusal)),
        Err(_) => Err(Failure::new(ErrorCode::Timeout, "the reload did not end in time").into()),
    }
}

fn refused(refusal: ReloadRefusal) -> Rejection {
    let ReloadRefusal { failure, problems } = refusal;
    let members = serde_json::to_value(ReloadProblems { problems });
    let members = match members {
        Ok(Value::Object(members)) => members,
        Ok(_) | Err(_) => Map::new(),
    };
    Rejection::from(*failure).with_members(members)
}
