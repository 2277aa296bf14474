//! The demo: calls every tool of the demo server through a running service and checks what
//! arrives.

mod counters;
mod failover;
mod pixels;
mod sight;
mod steps;

use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};
use talaria_content::{Artifact, Delivery, Format, Link};
use talaria_types::Deadline;
use talaria_types::runtime::BlockingPool;

use crate::check::Checks;
use crate::client::{CallRequest, ServiceClient};
use crate::demo_server::{assets, hostile};
use crate::exit::{CommandError, Exit};
use crate::table::{Table, bytes, shorten};

use counters::Counters;
pub(crate) use failover::configure as configure_failover;
use sight::Sight;
use steps::{Examine, Step};

/// Name of the demo server in the demo's configuration.
pub const SERVER: &str = "demo";

/// Columns of a name or a type in the report.
const NAME_WIDTH: usize = 32;
/// How long the checks of one delivery may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);

/// What the demo found.
#[derive(Debug, Serialize)]
pub struct DemoReport {
    /// Address of the service.
    pub service: String,
    /// Folder of the files.
    pub home: PathBuf,
    /// Whether every check passed.
    pub passed: bool,
    /// The checks.
    pub checks: Checks,
    /// Every file that was delivered.
    pub files: Vec<Artifact>,
}

impl DemoReport {
    /// The exit code it means.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        if self.passed {
            Exit::Ok
        } else {
            Exit::CheckFailed
        }
    }

    /// The report as people read it.
    #[must_use]
    pub fn render(&self) -> String {
        let mut files = Table::new(&["FILE", "TYPE", "SIZE", "PATH"]);
        for file in &self.files {
            files.row(&[
                shorten(&file.name, NAME_WIDTH),
                shorten(&file.media_type, NAME_WIDTH),
                bytes(file.bytes),
                file.path.display().to_string(),
            ]);
        }
        format!(
            "Service {}\nFiles   {}\n\n{}\n{}\n{}\n",
            self.service,
            self.home.display(),
            self.checks.render(),
            files.render(),
            self.checks.verdict()
        )
    }
}

/// One run of the demo against a service.
#[derive(Debug)]
pub struct Demo<'a> {
    client: &'a ServiceClient,
    home: PathBuf,
    blocking: BlockingPool,
    checks: Checks,
    files: Vec<Artifact>,
}

impl<'a> Demo<'a> {
    /// A run against a service whose files are under `home`.
    #[must_use]
    pub fn new(client: &'a ServiceClient, home: &Path, blocking: BlockingPool) -> Self {
        let (checks, files) = (Checks::default(), Vec::new());
        Self {
            client,
            home: home.to_owned(),
            blocking,
            checks,
            files,
        }
    }

    /// Calls every tool and checks what arrives.
    ///
    /// # Errors
    /// The service does not answer at all.
    pub async fn run(mut self) -> Result<DemoReport, CommandError> {
        let before = Counters::read(&self.client.get_text("/metrics").await?);
        self.tool_list().await;
        // First, while nobody knows yet that the primary backend is down.
        Box::pin(self.failover()).await;
        for step in steps::all() {
            self.step(step).await;
        }
        Box::pin(self.pixels()).await;
        self.utilities().await;
        self.unknown_tool().await;
        self.download().await;
        let after = Counters::read(&self.client.get_text("/metrics").await?);
        after.compare(&before, &mut self.checks);
        Ok(DemoReport {
            service: self.client.base().to_string(),
            home: self.home,
            passed: self.checks.failed() == 0,
            checks: self.checks,
            files: self.files,
        })
    }

    /// Every tool that the steps call is offered.
    async fn tool_list(&mut self) {
        let found = match self.client.get::<Value>("/v1/tools").await {
            Ok(list) => {
                let listed = list.to_string();
                let missing: Vec<&str> = steps::all()
                    .iter()
                    .map(|step| step.tool)
                    .filter(|tool| !listed.contains(&format!("\"{}\"", public(tool))))
                    .collect();
                if missing.is_empty() {
                    Ok("every tool is offered".to_owned())
                } else {
                    Err(format!("missing: {}", missing.join(", ")))
                }
            }
            Err(error) => Err(words(&error)),
        };
        self.checks.note("tools", found);
    }

    async fn step(&mut self, step: Step) {
        let Some(delivery) = self.call(step.tool, step.arguments).await else {
            return;
        };
        let links = delivery.links.clone();
        self.examine(step.tool, delivery, step.examine).await;
        for link in links {
            self.follow(step.tool, link).await;
        }
    }

    /// Calls a tool; a failure becomes a failed check.
    async fn call(&mut self, tool: &str, arguments: Value) -> Option<Delivery> {
        match self.request(&public(tool), arguments).await {
            Ok(delivery) => Some(delivery),
            Err(error) => {
                self.checks.fail(tool, words(&error));
                None
            }
        }
    }

    async fn request(&self, public_name: &str, arguments: Value) -> Result<Delivery, CommandError> {
        let arguments = arguments.as_object().cloned().unwrap_or_default();
        let request = CallRequest {
            tool: public_name.to_owned(),
            server: None,
            arguments,
            format: Format::Talaria,
            route: None,
            call_id: None,
            timeout: Some(Duration::from_secs(60)),
        };
        self.client
            .post_json("/v1/tools/call", &request.body())
            .await
    }

    /// Looks at a delivery and its files, off the loop.
    async fn examine(&mut self, tool: &'static str, delivery: Delivery, examine: Examine) {
        self.files.extend(delivery.artifacts.iter().cloned());
        let mut sight = Sight::new(tool, delivery, self.home.join("cache"));
        let job = move || {
            examine(&mut sight);
            sight.into_checks()
        };
        match self.blocking.run(Deadline::after(CHECK_TIMEOUT), job).await {
            Ok(checks) => self.checks.extend(checks),
            Err(failure) => self.checks.fail(tool, failure.to_string()),
        }
    }

    /// Reads a link with the tool that the delivery names.
    async fn follow(&mut self, tool: &'static str, link: Link) {
        let subject = format!("{tool}: link {}", link.name);
        let Some(reader) = &link.reader_tool else {
            self.checks.fail(subject, "no tool reads it");
            return;
        };
        match self.request(reader, json!({ "uri": link.uri })).await {
            Ok(delivery) => match assets::find(&link.uri) {
                Some(asset) if asset == assets::README => {
                    self.examine(tool, delivery, steps::read_me_inline).await;
                }
                Some(_) => self.examine(tool, delivery, steps::report_file).await,
                None => self.checks.fail(subject, "the server ships no such file"),
            },
            Err(error) => self.checks.fail(subject, words(&error)),
        }
    }

    /// The utilities over resources and prompts.
    async fn utilities(&mut self) {
        let calls: [(&'static str, Value, Examine); 3] = [
            ("list_resources", json!({}), steps::resources_listed),
            ("list_prompts", json!({}), steps::prompts_listed),
            (
                "get_prompt",
                json!({ "name": "summarize", "arguments": { "uri": assets::REPORT.uri } }),
                steps::prompt_filled,
            ),
        ];
        for (tool, arguments, examine) in calls {
            if let Some(delivery) = self.call(tool, arguments).await {
                self.examine(tool, delivery, examine).await;
            }
        }
    }

    /// An unknown tool is a clear error.
    async fn unknown_tool(&mut self) {
        let found = match self
            .request("mcp__demo__no_such_tool", Value::Object(Map::new()))
            .await
        {
            Err(error) if error.to_string().starts_with("unknown_tool: ") => {
                Ok("refused as unknown_tool".to_owned())
            }
            Err(error) => Err(words(&error)),
            Ok(_) => Err("it was answered".to_owned()),
        };
        self.checks.note("unknown tool", found);
    }

    /// An artifact can be fetched from its URL by an agent on another machine.
    async fn download(&mut self) {
        let report = self
            .files
            .iter()
            .find(|file| file.name == assets::REPORT.name)
            .cloned();
        let found = match report {
            Some(Artifact { url: Some(url), .. }) => match self.client.get_bytes(&url).await {
                Ok(body) if body == assets::REPORT.bytes => {
                    Ok(format!("the same bytes from {url}"))
                }
                Ok(body) => Err(format!("{} other bytes from {url}", body.len())),
                Err(error) => Err(words(&error)),
            },
            Some(_) => Err("the artifact has no URL".to_owned()),
            None => Err("there is no artifact to fetch".to_owned()),
        };
        self.checks.note("download", found);
    }
}

/// Public name of one of the demo server's tools.
fn public(tool: &str) -> String {
    format!("mcp__{SERVER}__{tool}")
}

/// An error in one line.
fn words(error: &CommandError) -> String {
    error.lines().join(" ")
}

/// Whether a text holds TAG characters outside the flag that must survive.
fn has_hidden_characters(text: &str) -> bool {
    text.replace(hostile::SCOTLAND, "")
        .chars()
        .any(|letter| ('\u{E0000}'..='\u{E007F}').contains(&letter))
}
