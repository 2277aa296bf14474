//! Scripted MCP servers for the actor tests: sessions that answer, hold, die, lie or panic.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use talaria_mcp::{ClosedBy, PeerInfo, Rpc, RpcLimits, SessionEvent};
use talaria_types::{Deadline, ErrorCode, Failure, RawResult};
use tokio::sync::{Notify, mpsc, watch};

use crate::upstream::{ConnectRequest, Connector, Job, Upstream};

/// Every scripted server, by name. Unknown names get a server with one tool, `echo`.
#[derive(Clone, Debug, Default)]
pub(crate) struct Fleet {
    servers: Arc<Mutex<BTreeMap<String, FakeServer>>>,
}

impl Fleet {
    /// The server of that name.
    pub(crate) fn server(&self, name: &str) -> FakeServer {
        self.servers
            .lock()
            .entry(name.to_owned())
            .or_default()
            .clone()
    }
}

impl Connector for Fleet {
    fn connect(&self, request: ConnectRequest) -> Job<Result<Arc<dyn Upstream>, Failure>> {
        self.server(request.config.name.as_str()).connect(request)
    }
}

/// How an attempt to connect ends, where it does not succeed at once.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Connect {
    Fail(ErrorCode),
    Hang,
    Panic,
    /// Succeeds after this time.
    Take(Duration),
}

/// What a tool does when it is called.
#[derive(Clone, Debug)]
pub(crate) enum Behaviour {
    /// Answers with its arguments.
    Echo,
    /// Answers with this result.
    Say(Value),
    /// Answers after this time.
    Take(Duration),
    /// Answers once released.
    Hold(Arc<Notify>),
    /// The process dies on receiving it.
    Die,
    /// The process is found dead before anything is written.
    FoundDead,
    /// Panics in the client's code.
    Panic,
    /// Heeds neither deadline nor cancellation.
    Deaf,
    /// Fails, and the session stays.
    Fail(ErrorCode),
}

/// What becomes of a ping.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Pings {
    Answer,
    Refuse,
    Swallow,
    Lose,
}

/// What the server saw.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Seen {
    Connected,
    Listed,
    Pinged,
    Called(String),
    Cancelled(String),
    Read(String),
    Prompted(Value),
    Closed,
}

/// One scripted server.
#[derive(Clone, Debug)]
pub(crate) struct FakeServer {
    script: Arc<Mutex<Script>>,
}

#[derive(Debug)]
struct Script {
    peer: PeerInfo,
    pages: Vec<Value>,
    endless: bool,
    list_failure: Option<ErrorCode>,
    swallows_lists: bool,
    pings: Pings,
    connects: VecDeque<Connect>,
    behaviours: BTreeMap<String, Behaviour>,
    seen: Vec<Seen>,
    /// Of every call, in order.
    arguments: Vec<Value>,
    live: Option<Live>,
    open: usize,
    most_open: usize,
}

#[derive(Clone, Debug)]
struct Live {
    events: mpsc::Sender<SessionEvent>,
    ended: watch::Sender<Option<ClosedBy>>,
}

impl Default for FakeServer {
    fn default() -> Self {
        let script = Script {
            peer: PeerInfo {
                name: "fake".to_owned(),
                version: "1".to_owned(),
                protocol_version: "2025-11-25".to_owned(),
                tools: true,
                resources: false,
                prompts: false,
                instructions: None,
                pid: Some(4711),
            },
            pages: vec![json!([{ "name": "echo" }])],
            endless: false,
            list_failure: None,
            swallows_lists: false,
            pings: Pings::Answer,
            connects: VecDeque::new(),
            behaviours: BTreeMap::new(),
            seen: Vec::new(),
            arguments: Vec::new(),
            live: None,
            open: 0,
            most_open: 0,
        };
        Self {
            script: Arc::new(Mutex::new(script)),
        }
    }
}

impl FakeServer {
    /// Offers these tools, all of them on one page.
    pub(crate) fn offer(&self, tools: &[&str]) {
        let tools = tools.iter().map(|name| json!({ "name": name })).collect();
        self.script.lock().pages = vec![tools];
    }

    /// Offers these pages of tool definitions.
    pub(crate) fn offer_pages(&self, pages: Vec<Value>) {
        self.script.lock().pages = pages;
    }

    /// The last page names itself as the next one.
    pub(crate) fn list_endlessly(&self) {
        self.script.lock().endless = true;
    }

    /// Every list fails from now on, or no longer.
    pub(crate) fn fail_lists(&self, code: Option<ErrorCode>) {
        self.script.lock().list_failure = code;
    }

    /// No list is answered from now on, or they are again.
    pub(crate) fn swallow_lists(&self, swallows: bool) {
        self.script.lock().swallows_lists = swallows;
    }

    /// What becomes of pings from now on.
    pub(crate) fn treat_pings(&self, pings: Pings) {
        self.script.lock().pings = pings;
    }

    /// Advertises resources and prompts.
    pub(crate) fn with_resources_and_prompts(&self) {
        let mut script = self.script.lock();
        script.peer.resources = true;
        script.peer.prompts = true;
    }

    /// The next attempts to connect end like this.
    pub(crate) fn next_connects(&self, connects: impl IntoIterator<Item = Connect>) {
        self.script.lock().connects.extend(connects);
    }

    /// What a tool does from now on.
    pub(crate) fn behave(&self, tool: &str, behaviour: Behaviour) {
        self.script
            .lock()
            .behaviours
            .insert(tool.to_owned(), behaviour);
    }

    /// Makes a tool hold until the answer is notified.
    pub(crate) fn hold(&self, tool: &str) -> Arc<Notify> {
        let release = Arc::new(Notify::new());
        self.behave(tool, Behaviour::Hold(Arc::clone(&release)));
        release
    }

    /// Everything seen so far.
    pub(crate) fn seen(&self) -> Vec<Seen> {
        self.script.lock().seen.clone()
    }

    /// How often this was seen.
    pub(crate) fn count(&self, what: &Seen) -> usize {
        self.script
            .lock()
            .seen
            .iter()
            .filter(|seen| *seen == what)
            .count()
    }

    /// The arguments of every call seen so far.
    pub(crate) fn arguments(&self) -> Vec<Value> {
        self.script.lock().arguments.clone()
    }

    /// Calls of a tool seen so far.
    pub(crate) fn calls(&self, tool: &str) -> usize {
        self.count(&Seen::Called(tool.to_owned()))
    }

    /// Sessions open at the same time, at most so far.
    pub(crate) fn most_sessions(&self) -> usize {
        self.script.lock().most_open
    }

    /// Sessions open now.
    pub(crate) fn open_sessions(&self) -> usize {
        self.script.lock().open
    }

    /// The process dies.
    pub(crate) fn kill(&self) {
        self.end(ClosedBy::ChildExit("signal: 9 (SIGKILL)".to_owned()));
    }

    /// Says that its tools changed.
    pub(crate) fn say_tools_changed(&self) {
        let live = self.script.lock().live.clone().expect("a live session");
        live.events
            .try_send(SessionEvent::ToolsChanged)
            .expect("room for an event");
    }

    fn end(&self, by: ClosedBy) {
        let mut script = self.script.lock();
        if let Some(live) = script.live.take() {
            script.open -= 1;
            live.ended.send_replace(Some(by));
        }
    }

    /// Ends one session, which need not be the latest.
    fn end_session(&self, ended: &watch::Sender<Option<ClosedBy>>) {
        let mut script = self.script.lock();
        let is_latest = |live: &Live| live.ended.same_channel(ended);
        if script.live.as_ref().is_some_and(is_latest) {
            script.live = None;
        }
        script.open -= 1;
        ended.send_replace(Some(ClosedBy::Us));
    }

    fn see(&self, what: Seen) {
        self.script.lock().seen.push(what);
    }

    fn connect(&self, request: ConnectRequest) -> Job<Result<Arc<dyn Upstream>, Failure>> {
        let server = self.clone();
        Box::pin(async move {
            let step = server.script.lock().connects.pop_front();
            match step {
                None => {}
                Some(Connect::Fail(code)) => {
                    return Err(Failure::new(code, "scripted refusal")
                        .with_server_words("module not found\n token=hunter2secret"));
                }
                Some(Connect::Hang) => {
                    tokio::time::sleep_until(request.deadline.instant()).await;
                    return Err(Failure::new(ErrorCode::ConnectTimeout, "never answered"));
                }
                Some(Connect::Panic) => panic!("scripted panic while connecting"),
                Some(Connect::Take(time)) => tokio::time::sleep(time).await,
            }
            let ended = watch::Sender::new(None);
            let mut script = server.script.lock();
            script.live = Some(Live {
                events: request.events,
                ended: ended.clone(),
            });
            script.open += 1;
            script.most_open = script.most_open.max(script.open);
            script.seen.push(Seen::Connected);
            let peer = script.peer.clone();
            drop(script);
            Ok(Arc::new(FakeSession {
                server,
                peer,
                ended,
            }) as Arc<dyn Upstream>)
        })
    }
}

#[derive(Clone, Debug)]
struct FakeSession {
    server: FakeServer,
    peer: PeerInfo,
    ended: watch::Sender<Option<ClosedBy>>,
}

impl Upstream for FakeSession {
    fn peer(&self) -> &PeerInfo {
        &self.peer
    }

    fn request(&self, rpc: Rpc, limits: RpcLimits) -> Job<Result<RawResult, Failure>> {
        let session = self.clone();
        Box::pin(async move { session.answer(rpc, limits).await })
    }

    fn closed(&self) -> Job<ClosedBy> {
        let mut ended = self.ended.subscribe();
        Box::pin(async move {
            let by = ended
                .wait_for(Option::is_some)
                .await
                .expect("the sender lives")
                .clone();
            by.expect("waited for it")
        })
    }

    fn close(&self, _: Deadline) -> Job<()> {
        let session = self.clone();
        Box::pin(async move {
            session.server.see(Seen::Closed);
            if session.ended.borrow().is_none() {
                session.server.end_session(&session.ended);
            }
        })
    }
}

impl FakeSession {
    async fn answer(&self, rpc: Rpc, limits: RpcLimits) -> Result<RawResult, Failure> {
        if self.ended.borrow().is_some() {
            return Err(Failure::new(
                ErrorCode::ConnectionLost,
                "found dead, nothing was sent",
            ));
        }
        match rpc {
            Rpc::ListTools { cursor } => {
                if self.server.script.lock().swallows_lists {
                    self.server.see(Seen::Listed);
                    return overdue(&limits).await;
                }
                self.list(cursor)
            }
            Rpc::CallTool { name, arguments } => {
                self.call(name, Value::Object(arguments), limits).await
            }
            Rpc::ListResources { cursor } => Ok(self.page("resources", cursor.is_some())),
            Rpc::ListPrompts { cursor } => Ok(self.page("prompts", cursor.is_some())),
            Rpc::ReadResource { uri } => {
                self.server.see(Seen::Read(uri.clone()));
                Ok(RawResult::from_json(
                    json!({ "contents": [{ "uri": uri, "text": "x" }] }),
                ))
            }
            Rpc::GetPrompt { arguments, .. } => {
                self.server.see(Seen::Prompted(Value::Object(arguments)));
                Ok(RawResult::from_json(json!({ "messages": [] })))
            }
            Rpc::Ping => self.ping(&limits).await,
        }
    }

    async fn ping(&self, limits: &RpcLimits) -> Result<RawResult, Failure> {
        self.server.see(Seen::Pinged);
        let pings = self.server.script.lock().pings;
        match pings {
            Pings::Answer => Ok(RawResult::from_json(json!({}))),
            Pings::Refuse => Ok(RawResult::default()),
            Pings::Swallow => overdue(limits).await,
            Pings::Lose => Err(Failure::new(ErrorCode::ConnectionLost, "refused")),
        }
    }

    fn list(&self, cursor: Option<String>) -> Result<RawResult, Failure> {
        let mut script = self.server.script.lock();
        script.seen.push(Seen::Listed);
        if let Some(code) = script.list_failure {
            return Err(Failure::new(code, "scripted failure of the list"));
        }
        let index: usize = cursor.map_or(0, |cursor| cursor.parse().expect("our own cursor"));
        let last = script.pages.len() - 1;
        let mut result = json!({ "tools": script.pages[index] });
        if index < last {
            result["nextCursor"] = json!((index + 1).to_string());
        } else if script.endless {
            result["nextCursor"] = json!(last.to_string());
        }
        Ok(RawResult::from_json(result))
    }

    /// Two pages with one item each.
    fn page(&self, key: &str, second: bool) -> RawResult {
        let name = if second { "second" } else { "first" };
        let mut json = json!({ key: [{ "name": name }] });
        if !second || self.server.script.lock().endless {
            json["nextCursor"] = json!("2");
        }
        RawResult {
            wire_bytes: 10,
            ..RawResult::from_json(json)
        }
    }

    async fn call(
        &self,
        tool: String,
        arguments: Value,
        limits: RpcLimits,
    ) -> Result<RawResult, Failure> {
        let behaviour = self.server.script.lock().behaviours.get(&tool).cloned();
        let behaviour = behaviour.unwrap_or(Behaviour::Echo);
        if let Behaviour::FoundDead = behaviour {
            self.server.behave(&tool, Behaviour::Echo);
            self.server.kill();
            return Err(Failure::new(
                ErrorCode::ConnectionLost,
                "found dead, nothing was sent",
            ));
        }
        self.server.see(Seen::Called(tool.clone()));
        if matches!(behaviour, Behaviour::Deaf) {
            return std::future::pending().await;
        }
        if let Behaviour::Fail(code) = behaviour {
            return Err(Failure::new(code, "scripted failure of a call"));
        }
        self.server.script.lock().arguments.push(arguments.clone());
        let echo = json!({ "content": [{ "type": "text", "text": arguments.to_string() }] });
        let said = if let Behaviour::Say(result) = &behaviour {
            result.clone()
        } else {
            echo
        };
        let work = async {
            match behaviour {
                Behaviour::Echo
                | Behaviour::Say(_)
                | Behaviour::FoundDead
                | Behaviour::Fail(_)
                | Behaviour::Deaf => {}
                Behaviour::Take(time) => tokio::time::sleep(time).await,
                Behaviour::Hold(release) => release.notified().await,
                Behaviour::Die => {
                    self.server.kill();
                    std::future::pending::<()>().await;
                }
                Behaviour::Panic => panic!("scripted panic during a call"),
            }
        };
        let idle = tokio::time::sleep(limits.idle);
        let overdue = tokio::time::sleep_until(limits.deadline.instant());
        tokio::select! {
            () = work => Ok(RawResult::from_json(said)),
            _ = self.closed() => Err(
                Failure::new(ErrorCode::ConnectionLost, "the transport ended").outcome_uncertain()
            ),
            () = limits.cancel.cancelled() => {
                self.server.see(Seen::Cancelled(tool));
                Err(Failure::new(ErrorCode::Cancelled, "cancelled").outcome_uncertain())
            }
            () = idle => self.timed_out(tool),
            () = overdue => self.timed_out(tool),
        }
    }

    fn timed_out(&self, tool: String) -> Result<RawResult, Failure> {
        self.server.see(Seen::Cancelled(tool));
        Err(Failure::new(ErrorCode::Timeout, "no answer").outcome_uncertain())
    }
}

/// No answer comes.
async fn overdue(limits: &RpcLimits) -> Result<RawResult, Failure> {
    tokio::time::sleep_until(limits.deadline.instant()).await;
    Err(Failure::new(ErrorCode::Timeout, "no answer"))
}
