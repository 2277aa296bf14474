//! A service with one server that has a fault, and the three situations in which it comes.

use std::cell::Cell;
use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::exposition::Exposition;
use talaria_testkit::script::{HttpScript, text_result};
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{
    Action, Answer, Holdings, HttpServer, Record, RecordKind, Script, Service, Slack, programs,
    wait_for,
};
use tempfile::TempDir;

use crate::outcome::{Fault, LONG};

/// Rounds after the first; what leaks once in each shows.
const ROUNDS: usize = 2;
/// The id of the server's own request that shows how far it has come.
const PING: i64 = 77_001;

/// What carries the messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// A child process.
    Stdio,
    /// Streamable HTTP whose answers are JSON bodies.
    HttpJson,
    /// Streamable HTTP whose answers are event streams.
    HttpEvents,
    /// The older HTTP+SSE.
    Older,
}

/// The running service and its server `s`.
pub struct Stage {
    pub service: Service,
    pub http: Option<HttpServer>,
    gate: PathBuf,
    _folder: TempDir,
}

/// Meets a fault in every situation, again and again, and counts what is left behind.
pub async fn run(transport: Transport, fault: &Fault) {
    let stage = Stage::of(transport, &fault.actions).await;
    stage.rounds(fault).await;
    stage.stop().await;
}

impl Stage {
    /// A server with the tools `fault`, `held`, which waits before it does the same, `later`,
    /// which does it after its answer, and `echo`, which works.
    pub async fn of(transport: Transport, actions: &[Action]) -> Self {
        let http = match transport {
            Transport::Stdio => None,
            Transport::HttpJson => Some(HttpScript::default()),
            Transport::HttpEvents => Some(HttpScript {
                sse: true,
                ..HttpScript::default()
            }),
            Transport::Older => Some(Script::new("s").legacy().http),
        };
        Self::with(actions, http).await
    }

    /// The same over HTTP as it is spoken here.
    pub async fn over_http(actions: &[Action], http: HttpScript) -> Self {
        Self::with(actions, Some(http)).await
    }

    async fn with(actions: &[Action], http: Option<HttpScript>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let gate = folder.path().join("gate");
        let hold = Action::AwaitFile { path: gate.clone() };
        let said = Action::Answer {
            result: text_result("for now"),
        };
        let ping = Action::Request {
            id: PING,
            method: "ping".to_owned(),
            params: json!({}),
        };
        let held = [hold.clone()].into_iter().chain(actions.iter().cloned());
        let later = [said, hold].into_iter().chain(actions.iter().cloned());
        let script = Script::new("s")
            .text_tool("echo", "echoed")
            .on_call("fault", actions.iter().cloned())
            .on_call("held", held)
            .on_call("later", later.chain([ping]));
        let builder = Service::builder(programs!())
            .unwrap()
            .set(&["talaria", "limits", "message_bytes"], "1MiB");
        let (builder, http) = match http {
            None => (builder.stdio("s", script).unwrap(), None),
            Some(http) => {
                let server = HttpServer::start(script.with_http(http)).unwrap();
                (builder.http("s", &server), Some(server))
            }
        };
        Self {
            service: builder.start().await.unwrap(),
            http,
            gate,
            _folder: folder,
        }
    }

    /// Meets the fault in every situation, again and again, and counts what is left behind.
    pub async fn rounds(&self, fault: &Fault) {
        let mut before = None;
        for _ in 0..=ROUNDS {
            self.in_flight(fault).await;
            self.queued(fault).await;
            if self.http.is_none() {
                self.idle(fault).await;
            }
            if before.is_none() {
                before = Some(self.at_rest().await);
            }
        }
        let before = before.unwrap();
        let given_back = self.service.wait_given_back(before, Slack::QUIET).await;
        given_back.unwrap();
    }

    /// The fault comes instead of an answer.
    async fn in_flight(&self, fault: &Fault) {
        let life = self.life().await;
        let before = self.service.metrics().await.unwrap();
        let (answer, took) = timed(self.call("fault", fault.limit())).await;
        fault.judge(&answer, took);
        self.assert_recovered(life, fault.replaced).await;

        let after = self.service.metrics().await.unwrap();
        let rose = |name: &str, labels: &[(&str, &str)]| {
            after.sum(name, labels) - before.sum(name, labels)
        };
        let operations = "mcp_client_operation_duration_seconds_count";
        let tool = [("server", "s"), ("gen_ai_tool_name", "fault")];
        let counted = rose(operations, &tool);
        // A session that has ended may cost the call a second attempt, never a third.
        assert!((1.0..=2.0).contains(&counted), "{counted} operations");
        let errors: f64 = fault
            .error_types()
            .iter()
            .map(|code| rose(operations, &[tool[0], tool[1], ("error_type", code)]))
            .sum();
        assert_eq!(errors > 0.0, !fault.error_types().is_empty(), "{errors}");
        if let Some((name, labels)) = fault.counted {
            assert!(rose(name, labels) >= 1.0, "{name} {labels:?}");
        }
        if fault.replaced && self.http.is_none() {
            let reconnects = rose("talaria_server_reconnects_total", &[("server", "s")]);
            assert_eq!(reconnects, 1.0);
        }
    }

    /// The fault comes while another call waits, which must have its answer all the same.
    async fn queued(&self, fault: &Fault) {
        let life = self.life().await;
        let seen = self.received("held");
        let held = timed(self.call("held", fault.limit()));
        let waiting = async {
            self.wait_received("held", seen + 1).await;
            let release = async {
                self.wait_load(1, 1).await;
                std::fs::write(&self.gate, "").unwrap();
            };
            tokio::join!(self.call("echo", LONG), release).0
        };
        let ((held, took), echo) = tokio::join!(held, waiting);
        std::fs::remove_file(&self.gate).unwrap();
        // The time it was held does not count against it.
        fault.judge(&held, took);
        assert_eq!(echo.ok().unwrap()["text"], "echoed");
        self.assert_recovered(life, fault.replaced).await;
    }

    /// The fault comes when nothing was asked.
    async fn idle(&self, fault: &Fault) {
        let life = self.life().await;
        let pings = self.pings();
        let said = self.call("later", LONG).await.ok().unwrap();
        assert_eq!(said["text"], "for now");
        std::fs::write(&self.gate, "").unwrap();
        let ends = fault.replaced_idle || self.never_goes_on(fault);
        if !ends {
            wait_for("the end of the fault", PATIENCE, || async {
                let now = self.pings();
                if now > pings { Ok(()) } else { Err(now) }
            })
            .await
            .unwrap();
        }
        if fault.replaced_idle {
            wait_for("another process", PATIENCE, || async {
                let now = self.life().await;
                if now == life { Err(now) } else { Ok(()) }
            })
            .await
            .unwrap();
        }
        std::fs::remove_file(&self.gate).unwrap();
        self.assert_recovered(life, fault.replaced_idle).await;
    }

    fn never_goes_on(&self, fault: &Fault) -> bool {
        let stops = |action: &Action| matches!(action, Action::Hang | Action::AwaitCancel);
        fault.actions.iter().any(stops)
    }

    /// The server is ready, answers, and nothing is left over.
    pub async fn assert_recovered(&self, life: u64, replaced: bool) {
        let echoed = self.call("echo", LONG).await;
        assert_eq!(echoed.status, 200, "{}", echoed.excerpt());
        assert_eq!(echoed.ok().unwrap()["text"], "echoed");
        self.service
            .wait_state("s", "ready", PATIENCE)
            .await
            .unwrap();
        assert_eq!(self.life().await != life, replaced, "a new life?");
        self.wait_load(0, 0).await;
        let metrics = self.service.metrics().await.unwrap();
        let of_s = |name: &str| metrics.sum(name, &[("server", "s")]);
        assert_eq!(of_s("talaria_server_up"), 1.0);
        assert_eq!(of_s("talaria_server_in_flight"), 0.0);
        assert_eq!(of_s("talaria_server_pending"), 0.0);
        assert_one_state(&metrics, "ready");
    }

    /// Calls a tool of the server.
    pub async fn call(&self, tool: &str, limit: Duration) -> Answer {
        let limit = u64::try_from(limit.as_millis()).unwrap();
        let body = json!({"server": "s", "name": tool, "timeout_ms": limit});
        self.service.post("/v1/tools/call", &body).await.unwrap()
    }

    /// What changes when a new process or session serves: the process, or how many sessions
    /// there were.
    pub async fn life(&self) -> u64 {
        match &self.http {
            Some(server) => u64::try_from(server.records().count_of("initialize")).unwrap(),
            None => {
                let status = self.service.server("s").await.unwrap();
                status["pid"].as_u64().unwrap_or(0)
            }
        }
    }

    /// Everything the server received.
    pub fn records(&self) -> Vec<Record> {
        match &self.http {
            Some(server) => server.records().all(),
            None => self.service.records("s").unwrap(),
        }
    }

    /// How many calls of a tool the server received.
    pub fn received(&self, tool: &str) -> usize {
        let records = self.records();
        let calls = records
            .iter()
            .filter(|record| record.kind == RecordKind::Message && record.calls(tool));
        calls.count()
    }

    pub async fn wait_received(&self, tool: &str, count: usize) {
        wait_for("the call at the server", PATIENCE, || async {
            let now = self.received(tool);
            if now >= count { Ok(()) } else { Err(now) }
        })
        .await
        .unwrap();
    }

    async fn wait_load(&self, in_flight: u64, pending: u64) {
        wait_for("the load of the server", PATIENCE, || async {
            let status: Value = self.service.server("s").await.unwrap();
            let now = (status["in_flight"].as_u64(), status["pending"].as_u64());
            let fits = now == (Some(in_flight), Some(pending));
            if fits { Ok(()) } else { Err(status) }
        })
        .await
        .unwrap();
    }

    fn pings(&self) -> usize {
        let records = self.records();
        let answered = records.iter().filter(|record| record.message["id"] == PING);
        answered.count()
    }

    /// What the service holds once it has come to rest.
    pub async fn at_rest(&self) -> Holdings {
        let last = Cell::new(None);
        wait_for("the service to come to rest", PATIENCE, || async {
            let now = self.service.holdings().await.unwrap();
            if last.replace(Some(now)) == Some(now) {
                Ok(now)
            } else {
                Err(now)
            }
        })
        .await
        .unwrap()
    }

    /// Stops the service; nothing it started is left.
    pub async fn stop(self) {
        self.service.terminate().unwrap();
        let status = self.service.wait_exit(PATIENCE).await.unwrap();
        assert!(status.success(), "{status}");
        self.service
            .wait_no_processes(Duration::from_secs(5))
            .await
            .unwrap();
    }
}

/// The server is in this state and in no other.
pub fn assert_one_state(metrics: &Exposition, state: &str) {
    let all = metrics.sum("talaria_server_state", &[("server", "s")]);
    let one = metrics.sum("talaria_server_state", &[("server", "s"), ("state", state)]);
    assert_eq!((all, one), (1.0, 1.0), "{state}");
}

/// Runs something and says how long it took.
pub async fn timed<T>(work: impl Future<Output = T>) -> (T, Duration) {
    let started = talaria_types::runtime::now();
    let value = work.await;
    (value, started.elapsed())
}
