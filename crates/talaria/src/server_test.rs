//! Tests one configured server: connects, counts what it offers, calls a tool on the path of the
//! service and checks every file that comes of it.

use std::time::Duration;

use serde::Serialize;
use serde_json::{Map, Value, json};
use talaria_actors::{PublicTool, ServerStatus, ToolTarget, Utility};
use talaria_config::{ServerConfig, TransportConfig};
use talaria_content::{Artifact, Delivery, Format, Link};
use talaria_types::{CallContext, Deadline, ErrorCode, Failure};

use crate::account::account;
use crate::check::Checks;
use crate::engine::Standalone;
use crate::exit::Exit;
use crate::inspection::{Inspection, inspect};
use crate::table::{bytes, count};

/// How long the check of one file may take.
const CHECK_TIMEOUT: Duration = Duration::from_secs(60);

/// What a test found.
#[derive(Debug, Serialize)]
pub struct TestReport {
    /// Configured name.
    pub server: String,
    /// How it is reached; no values of headers or of the environment.
    pub transport: String,
    /// Its state after the test began.
    pub status: Option<ServerStatus>,
    /// Names of its tools.
    pub tools: Vec<String>,
    /// Resources it lists; none where it does not offer any.
    pub resources: Option<usize>,
    /// Prompts it lists; none where it does not offer any.
    pub prompts: Option<usize>,
    /// Whether every check passed.
    pub passed: bool,
    /// The checks.
    pub checks: Checks,
    /// What the tool delivered.
    pub delivery: Option<Delivery>,
    /// What was found out about its files and those of its links.
    pub files: Vec<InspectedFile>,
}

/// A delivered file and what was read from it.
#[derive(Debug, Serialize)]
pub struct InspectedFile {
    /// The file.
    pub artifact: Artifact,
    /// What was found.
    pub inspection: Inspection,
}

/// The tool to call.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// The server's own name for it.
    pub tool: String,
    /// Arguments.
    pub arguments: Map<String, Value>,
}

impl TestReport {
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
        let delivery = self
            .delivery
            .as_ref()
            .map(|delivery| format!("{}\n", account(delivery)));
        format!(
            "Server {}, {}\n\n{}{}\n{}\n",
            self.server,
            self.transport,
            delivery.unwrap_or_default(),
            self.checks.render(),
            self.checks.verdict()
        )
    }
}

/// One run of the test.
#[derive(Debug)]
pub struct ServerTest<'a> {
    here: &'a Standalone,
    deadline: Deadline,
    report: TestReport,
}

impl<'a> ServerTest<'a> {
    /// A test of a server that was started.
    #[must_use]
    pub fn new(here: &'a Standalone, server: &ServerConfig, deadline: Deadline) -> Self {
        let report = TestReport {
            server: server.name.as_str().to_owned(),
            transport: describe(&server.transport),
            status: None,
            tools: Vec::new(),
            resources: None,
            prompts: None,
            passed: false,
            checks: Checks::default(),
            delivery: None,
            files: Vec::new(),
        };
        Self {
            here,
            deadline,
            report,
        }
    }

    /// Connects, counts, and calls the tool if there is one to call.
    pub async fn run(mut self, call: Option<ToolCall>) -> TestReport {
        if self.connect() {
            self.list().await;
            if let Some(call) = call {
                self.call(call).await;
            }
        }
        self.report.passed = self.report.checks.failed() == 0;
        self.report
    }

    fn connect(&mut self) -> bool {
        let found = match self.here.supervisor.server(&self.report.server) {
            Ok(status) => {
                let found = connection(&status);
                self.report.status = Some(status);
                found
            }
            Err(failure) => Err(words(&failure)),
        };
        let connected = found.is_ok();
        self.report.checks.note("connect", found);
        connected
    }

    async fn list(&mut self) {
        let tools = self.own_tools();
        for tool in &tools {
            if let ToolTarget::Tool(name) = &tool.target {
                self.report.tools.push(name.clone());
            }
        }
        let number = self.report.tools.len();
        self.report.checks.pass("tools", count(number, "tool"));
        self.report.resources = self
            .count(&tools, Utility::ListResources, "resources", "resource")
            .await;
        self.report.prompts = self
            .count(&tools, Utility::ListPrompts, "prompts", "prompt")
            .await;
    }

    /// Everything the server offers, our utilities over it included.
    fn own_tools(&self) -> Vec<PublicTool> {
        let mut tools = self.here.supervisor.tools();
        tools.retain(|tool| tool.server.as_str() == self.report.server);
        tools
    }

    /// Counts the entries of a list, where the server has one.
    async fn count(
        &mut self,
        tools: &[PublicTool],
        utility: Utility,
        key: &'static str,
        noun: &str,
    ) -> Option<usize> {
        let Some(tool) = tools
            .iter()
            .find(|tool| tool.target == ToolTarget::Utility(utility))
        else {
            self.report.checks.pass(key, "not offered");
            return None;
        };
        let ctx = CallContext::new(self.deadline);
        match self
            .here
            .supervisor
            .call_tool(ctx, &tool.name, Map::new())
            .await
        {
            Ok(answer) => {
                let entries = answer
                    .raw
                    .json
                    .get(key)
                    .and_then(Value::as_array)
                    .map_or(0, Vec::len);
                self.report.checks.pass(key, count(entries, noun));
                Some(entries)
            }
            Err(failure) => {
                self.report.checks.fail(key, words(&failure));
                None
            }
        }
    }

    async fn call(&mut self, call: ToolCall) {
        let subject = format!("call {}", call.tool);
        let public = match self
            .here
            .supervisor
            .resolve(&self.report.server, &call.tool)
        {
            Ok(tool) => tool.name,
            Err(failure) => return self.report.checks.fail(subject, words(&failure)),
        };
        match self.deliver(&public, call.arguments).await {
            Ok(delivery) => {
                let found = outcome(&delivery);
                self.report.checks.note(subject, found);
                self.inspect_all(&delivery.artifacts).await;
                for link in &delivery.links {
                    self.follow(link).await;
                }
                self.report.delivery = Some(delivery);
            }
            Err(failure) => self.report.checks.fail(subject, words(&failure)),
        }
    }

    async fn deliver(
        &self,
        public_name: &str,
        arguments: Map<String, Value>,
    ) -> Result<Delivery, Failure> {
        let ctx = CallContext::new(self.deadline);
        self.here
            .call(&ctx, public_name, arguments, Format::Talaria)
            .await
            .map(|delivered| delivered.delivery)
    }

    /// Reads a link with the tool that the delivery names for it.
    async fn follow(&mut self, link: &Link) {
        let subject = format!("link {}", link.name);
        let Some(reader) = &link.reader_tool else {
            self.report
                .checks
                .fail(subject, "the server offers nothing that reads it");
            return;
        };
        let mut arguments = Map::new();
        arguments.insert("uri".to_owned(), json!(link.uri));
        match self.deliver(reader, arguments).await {
            Ok(delivery) => {
                self.report.checks.note(subject, outcome(&delivery));
                self.inspect_all(&delivery.artifacts).await;
            }
            Err(failure) => self.report.checks.fail(subject, words(&failure)),
        }
    }

    async fn inspect_all(&mut self, artifacts: &[Artifact]) {
        for artifact in artifacts {
            let looked_at = artifact.clone();
            let deadline = Deadline::after(CHECK_TIMEOUT);
            let looked = self
                .here
                .engine
                .blocking
                .run(deadline, move || inspect(&looked_at))
                .await;
            let subject = format!("file {}", artifact.name);
            match looked {
                Ok(inspection) => {
                    let found = format!("{}, {}", bytes(artifact.bytes), inspection.summary());
                    let found = if inspection.is_sound() {
                        Ok(found)
                    } else {
                        Err(found)
                    };
                    self.report.checks.note(subject, found);
                    let artifact = artifact.clone();
                    self.report.files.push(InspectedFile {
                        artifact,
                        inspection,
                    });
                }
                Err(failure) if failure.code() == ErrorCode::Internal => {
                    // A reader gave up on the file in a panic; that is a finding about the file.
                    self.report
                        .checks
                        .fail(subject, "the file breaks the reader of its type");
                }
                Err(failure) => self.report.checks.fail(subject, words(&failure)),
            }
        }
    }
}

/// How a server is reached, in words without secrets: arguments and query strings may hold some.
fn describe(transport: &TransportConfig) -> String {
    match transport {
        TransportConfig::Stdio {
            command, args, env, ..
        } => format!(
            "stdio: {command}, {}, {}",
            count(args.len(), "argument"),
            count(env.len(), "variable")
        ),
        TransportConfig::Http(http) => {
            let shown = reqwest::Url::parse(&http.url).map_or_else(
                |_| "an address that is no URL".to_owned(),
                |url| format!("{}{}", url.origin().ascii_serialization(), url.path()),
            );
            format!("http: {shown}, {}", count(http.headers.len(), "header"))
        }
    }
}

fn connection(status: &ServerStatus) -> Result<String, String> {
    if !status.is_up() {
        let reason = status.reason.as_deref().unwrap_or("no reason known");
        return Err(format!("{}: {reason}", status.state));
    }
    let program = status
        .server_info
        .as_deref()
        .unwrap_or("a server without a name");
    let revision = status.protocol_version.as_deref().unwrap_or("unknown");
    Ok(format!("{program}, protocol {revision}"))
}

/// What a delivery says about the call as a whole.
fn outcome(delivery: &Delivery) -> Result<String, String> {
    let found = format!(
        "{}, {}, {}, {} of text, {} ms",
        count(delivery.artifacts.len(), "file"),
        count(delivery.links.len(), "link"),
        count(delivery.notices.len(), "notice"),
        bytes(u64::try_from(delivery.text.len()).unwrap_or(u64::MAX)),
        delivery.elapsed_ms
    );
    if delivery.is_error {
        Err(format!("the tool answered with an error; {found}"))
    } else {
        Ok(found)
    }
}

fn words(failure: &Failure) -> String {
    format!("{}: {}", failure.code(), failure.detail())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use talaria_config::{HttpConfig, TransportConfig};

    use super::describe;

    #[test]
    fn a_transport_is_described_without_its_secrets() {
        let secret = || BTreeMap::from([("KEY".to_owned(), "s3cret".to_owned())]);
        let stdio = TransportConfig::Stdio {
            command: "npx".to_owned(),
            args: vec!["--token".to_owned(), "s3cret".to_owned()],
            env: secret(),
            cwd: None,
        };
        assert_eq!(describe(&stdio), "stdio: npx, 2 arguments, 1 variable");
        let url = "https://user:s3cret@example.com:8443/mcp?token=s3cret".to_owned();
        let http = TransportConfig::Http(Box::new(HttpConfig {
            headers: secret(),
            ..HttpConfig::new(url)
        }));
        assert_eq!(
            describe(&http),
            "http: https://example.com:8443/mcp, 1 header"
        );
    }
}
