//! Descriptions when the primary backend is down: the chain goes on to a tool of the demo server.
//! Nothing here leaves this machine.

use std::net::Ipv4Addr;

use anyhow::Context;
use serde::Deserialize;
use serde_json::json;
use talaria_config::{BackendConfig, Config, Endpoint, McpFallback};
use talaria_types::Route;
use tokio::net::TcpSocket;

use super::sight::Sight;
use super::{Demo, SERVER, words};
use crate::demo_server::assets;
use crate::exit::CommandError;

/// The tool that stands in for a model.
const TOOL: &str = "understand_image";

/// What `/v1/vision/analyze` answers, as far as the demo looks at it.
#[derive(Debug, Deserialize)]
struct Analysis {
    analysis: String,
    via: String,
    attempts: Vec<Attempt>,
}

#[derive(Debug, Deserialize)]
struct Attempt {
    via: String,
    outcome: String,
}

/// A port of this machine that refuses every connection as long as this lives.
#[derive(Debug)]
pub(crate) struct RefusingPort {
    /// Bound, but never listening.
    _socket: TcpSocket,
}

/// Gives a configuration a primary backend that refuses every connection, and the demo server as
/// the one to ask then.
///
/// # Errors
/// There is no free port.
pub(crate) fn configure(config: &mut Config) -> Result<RefusingPort, CommandError> {
    let socket = TcpSocket::new_v4().context("make a socket")?;
    let any_port = (Ipv4Addr::LOCALHOST, 0).into();
    socket.bind(any_port).context("take a port")?;
    let address = socket.local_addr().context("learn the port")?;
    config.vision.aux = BackendConfig {
        provider: Some("custom".to_owned()),
        model: Some("out-of-order".to_owned()),
        base_url: Some(Endpoint::from(format!("http://{address}/v1"))),
        ..BackendConfig::at("auxiliary.vision")
    };
    let tool = McpFallback::new("auxiliary.vision.mcp_fallback[0]", SERVER, TOOL);
    config.vision.mcp_fallback = vec![tool];
    // As the file would say it: a backend is named, and models that see get pixels all the same.
    config.gate.explicit_aux = true;
    config.gate.prefer_native = true;
    Ok(RefusingPort { _socket: socket })
}

impl Demo<'_> {
    /// Every step about descriptions.
    pub(super) async fn failover(&mut self) {
        self.described_result().await;
        self.looking_tool().await;
        self.analysis().await;
    }

    /// The picture of a tool, for a model that does not see.
    async fn described_result(&mut self) {
        let delivery = self.call_for("screenshot", blind()).await;
        self.look("description", delivery, described).await;
    }

    /// The tool by which such a model looks again.
    async fn looking_tool(&mut self) {
        let Some(path) = self.screenshot() else {
            self.checks.fail("vision_analyze", "there is no picture");
            return;
        };
        let call = json!({
            "tool": "vision_analyze",
            "arguments": { "image_url": format!("MEDIA:{path}"), "question": "How large is it?" },
            "route": blind(),
        });
        let delivery = self.posted("vision_analyze", "/v1/tools/call", &call).await;
        self.look("vision_analyze", delivery, |sight| {
            sight.text_has("Question: How large is it?");
            described(sight);
        })
        .await;
    }

    /// A description for its own sake, with everybody who was asked.
    async fn analysis(&mut self) {
        let Some(path) = self.screenshot() else {
            self.checks.fail("analysis", "there is no picture");
            return;
        };
        let request = json!({ "image": { "path": path }, "prompt": "How many bytes has it?" });
        let answer: Result<Analysis, CommandError> =
            self.client.post_json("/v1/vision/analyze", &request).await;
        let found = match answer {
            Err(error) => Err(words(&error)),
            Ok(answer) => judged(&answer),
        };
        self.checks.note("analysis: failover", found);
    }

    fn screenshot(&self) -> Option<String> {
        let mut files = self.files.iter();
        let screenshot = files.find(|file| file.bytes == assets::SCREENSHOT.bytes.len() as u64)?;
        Some(screenshot.path.display().to_string())
    }
}

/// A delivery whose picture is told in the words of the demo server.
fn described(sight: &mut Sight) {
    sight.expect("no pixels", sight.delivery.attachments.is_empty());
    sight.text_has("1280 pixels wide and 800 high");
    let vision = sight.delivery.vision.clone();
    let description = vision.and_then(|vision| vision.descriptions.into_iter().next());
    let answer = description.and_then(|description| {
        Some(Analysis {
            analysis: description.text?,
            via: description.via?,
            attempts: serde_json::from_value(description.attempts).ok()?,
        })
    });
    let found = match answer {
        Some(answer) => judged(&answer),
        None => Err("it is not described".to_owned()),
    };
    sight.note("failover", found);
}

/// The course of an analysis in words: the primary failed, the fallback answered.
fn judged(answer: &Analysis) -> Result<String, String> {
    let course: Vec<String> = answer
        .attempts
        .iter()
        .map(|attempt| format!("{}: {}", attempt.via, attempt.outcome))
        .collect();
    let course = course.join(", ");
    let is_fallback = answer.via == fallback() && answer.analysis.contains("1280 pixels wide");
    let primary_failed = answer
        .attempts
        .first()
        .is_some_and(|attempt| attempt.via != fallback() && attempt.outcome != "answered");
    if is_fallback && primary_failed {
        Ok(course)
    } else {
        Err(format!("{course}; {:?}", answer.analysis))
    }
}

fn fallback() -> String {
    format!("mcp:{SERVER}/{TOOL}")
}

fn blind() -> Route {
    Route {
        provider: "deepseek".to_owned(),
        model: "deepseek-chat".to_owned(),
        api: None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn answer(via: &str, attempts: &Value) -> Analysis {
        let answer = json!({
            "analysis": "A picture, 1280 pixels wide", "via": via, "attempts": attempts,
        });
        serde_json::from_value(answer).unwrap()
    }

    #[test]
    fn only_a_failover_passes() {
        let primary = json!({ "via": "custom/out-of-order", "outcome": "unreachable" });
        let fallback = json!({ "via": "mcp:demo/understand_image", "outcome": "answered" });
        let via = "mcp:demo/understand_image";
        assert!(judged(&answer(via, &json!([primary, fallback]))).is_ok());
        assert!(judged(&answer(via, &json!([fallback]))).is_err());
        assert!(judged(&answer("custom/out-of-order", &json!([primary]))).is_err());
    }
}
