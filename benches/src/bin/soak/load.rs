//! One client: calls of every kind, one after the other, each judged by its unique token.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use serde_json::{Value, json};
use talaria_testkit::service::{Answer, Service, http_client};
use tokio::time::Instant;

use crate::ledger::Ledger;
use crate::{DEMO, DOCUMENT_BYTES, LOCAL, REMOTE};

/// The limit of calls that never end on their own.
const GIVE_UP_MS: u64 = 150;
/// How often a long text repeats its token.
const LONG_TIMES: usize = 500;
/// When a caller goes away.
const LEAVE: Duration = Duration::from_millis(60);
/// Failures that are nobody's fault but that of whoever killed the server.
const HONEST: &[&str] = &[
    "connection_lost",
    "server_unavailable",
    "connect_failed",
    "server_busy",
    "busy",
    "circuit_open",
];

/// A client.
pub struct Load {
    service: Arc<Service>,
    ledger: Arc<Ledger>,
    dice: u64,
    pause: Duration,
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
enum Kind {
    Echo,
    Slow,
    /// The token many times over, some thousand characters.
    Long,
    File,
    /// The limit passes before the answer comes.
    Hang,
    /// The caller closes its connection.
    Leave,
}

impl Load {
    pub fn new(service: Arc<Service>, ledger: Arc<Ledger>, number: usize, pause: Duration) -> Self {
        Self {
            service,
            ledger,
            dice: 0x9e37_79b9_7f4a_7c15 ^ ((number as u64 + 1) << 32),
            pause,
        }
    }

    /// Calls until the time is up.
    pub async fn run(mut self, until: Instant) -> anyhow::Result<()> {
        let mut next = Instant::now();
        while next < until {
            tokio::time::sleep_until(next).await;
            next = Instant::now().max(next + self.pause);
            let kind = match self.roll(100) {
                0..74 => Kind::Echo,
                74..80 => Kind::Long,
                80..88 => Kind::Slow,
                88..94 => Kind::File,
                94..97 => Kind::Hang,
                _ => Kind::Leave,
            };
            self.call(kind).await?;
        }
        Ok(())
    }

    async fn call(&mut self, kind: Kind) -> anyhow::Result<()> {
        let token = self.ledger.token();
        let noting: Vec<&str> = LOCAL.into_iter().chain(REMOTE).collect();
        let server = match kind {
            Kind::Echo => {
                let all: Vec<&str> = noting.iter().copied().chain(DEMO).collect();
                all[self.roll(all.len())]
            }
            Kind::Slow | Kind::Long | Kind::File | Kind::Hang | Kind::Leave => {
                noting[self.roll(noting.len())]
            }
        };
        let tool = match kind {
            Kind::Echo | Kind::Long => "echo",
            Kind::Slow | Kind::Leave => "slow",
            Kind::File => "file",
            Kind::Hang => "hang",
        };
        let is_noted = noting.contains(&server) && matches!(tool, "echo" | "slow");
        let text = text_of(kind, token);
        let mut body = json!({"server": server, "name": tool, "arguments": {"text": text}});
        if matches!(kind, Kind::Hang) {
            body["timeout_ms"] = json!(GIVE_UP_MS);
        }
        if matches!(kind, Kind::Leave) {
            // A connection of its own, so that nobody else's is closed.
            let request = http_client()?
                .post(self.service.url("/v1/tools/call"))
                .json(&body)
                .send();
            if tokio::time::timeout(LEAVE, request).await.is_err() {
                self.ledger.given_up(token, is_noted);
                return Ok(());
            }
            // It failed sooner; that is told like every other answer, only nobody reads it.
            self.ledger.given_up(token, is_noted);
            return Ok(());
        }
        match self.service.post("/v1/tools/call", &body).await {
            Ok(answer) => self.judge(kind, token, is_noted, server, &answer),
            Err(error) => self
                .ledger
                .wrong(format!("{server} {kind:?}: no answer: {error:#}")),
        }
        Ok(())
    }

    fn judge(&self, kind: Kind, token: u64, is_noted: bool, server: &str, answer: &Answer) {
        let judged = match answer.status {
            200 => self.delivered(kind, token, is_noted, answer),
            _ => self.refused(kind, token, is_noted, answer),
        };
        if let Err(error) = judged {
            self.ledger
                .wrong(format!("{server} {kind:?} {token}: {error:#}"));
        }
    }

    fn delivered(
        &self,
        kind: Kind,
        token: u64,
        is_noted: bool,
        answer: &Answer,
    ) -> anyhow::Result<()> {
        let delivery = answer.ok()?;
        let is_right = match kind {
            Kind::Echo | Kind::Slow | Kind::Long => {
                delivery["text"] == text_of(kind, token).as_str()
            }
            Kind::File => delivery["artifacts"][0]["bytes"] == DOCUMENT_BYTES,
            Kind::Hang | Kind::Leave => false,
        };
        anyhow::ensure!(is_right, "another answer: {}", answer.excerpt());
        self.ledger.answered(token, is_noted);
        Ok(())
    }

    fn refused(
        &self,
        kind: Kind,
        token: u64,
        is_noted: bool,
        answer: &Answer,
    ) -> anyhow::Result<()> {
        let problem = answer.problem()?;
        let code = problem["code"].as_str().context("a code")?;
        if matches!(kind, Kind::Hang) && code == "timeout" {
            self.ledger.given_up(token, is_noted);
            return Ok(());
        }
        anyhow::ensure!(HONEST.contains(&code), "{problem}");
        let is_uncertain = problem["outcome_uncertain"] == Value::Bool(true);
        self.ledger.failed(token, is_noted, code, is_uncertain);
        Ok(())
    }

    /// A number below `sides`.
    fn roll(&mut self, sides: usize) -> usize {
        self.dice ^= self.dice << 13;
        self.dice ^= self.dice >> 7;
        self.dice ^= self.dice << 17;
        (self.dice % sides as u64) as usize
    }
}

/// What a server is asked to say.
fn text_of(kind: Kind, token: u64) -> String {
    match kind {
        Kind::Long => vec![token.to_string(); LONG_TIMES].join(" "),
        Kind::Echo | Kind::Slow | Kind::File | Kind::Hang | Kind::Leave => token.to_string(),
    }
}
