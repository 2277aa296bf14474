//! The script of a scripted MCP server: what it does with each message, as data.
//!
//! A script travels as JSON, so the same one drives a child process and an HTTP server inside
//! the test. Every list of action lists is read by call: the first call takes the first list,
//! the second the second, and the last list repeats.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::look::{Look, PictureForm};
use crate::payload::PayloadSpec;

/// What a scripted server is and does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Script {
    /// `serverInfo.name`.
    pub name: String,
    /// The revision answered to `initialize`; the one asked for when absent.
    #[serde(default)]
    pub protocol_version: Option<String>,
    /// The capabilities advertised.
    #[serde(default = "tools_only")]
    pub capabilities: Value,
    /// Tool definitions; one per entry of `calls` when absent.
    #[serde(default)]
    pub tools: Option<Vec<Value>>,
    /// Done before the first message is read (stdio only).
    #[serde(default)]
    pub at_start: Vec<Action>,
    /// Instead of the built-in answer of a method.
    #[serde(default)]
    pub methods: BTreeMap<String, Vec<Vec<Action>>>,
    /// Per tool name: what `tools/call` does.
    #[serde(default)]
    pub calls: BTreeMap<String, Vec<Vec<Action>>>,
    /// Nothing that is received is kept; for runs of many calls.
    #[serde(default)]
    pub is_forgetful: bool,
    /// Every message received is appended here as one line of JSON; the count of calls then
    /// survives a restart of the server.
    #[serde(default)]
    pub record: Option<PathBuf>,
    /// Lives on after its stdin ended.
    #[serde(default)]
    pub ignore_end_of_input: bool,
    /// Lives on after SIGTERM.
    #[serde(default)]
    pub ignore_sigterm: bool,
    /// How it speaks HTTP.
    #[serde(default)]
    pub http: HttpScript,
}

/// How a scripted server speaks Streamable HTTP.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct HttpScript {
    /// Answers are event streams rather than JSON bodies.
    pub sse: bool,
    /// `initialize` opens a session whose id every later request must carry.
    pub sessions: bool,
    /// The bearer token every request must carry.
    pub token: Option<String>,
    /// Status and body of a GET; an open event stream when absent.
    pub get: Option<(u16, String)>,
    /// Header and body leave in two writes with Nagle's algorithm on.
    pub split_writes: bool,
    /// Speaks the older HTTP+SSE transport and nothing else: a GET opens the event stream, whose
    /// first event tells this place, with `{session}` for the session's id.
    pub legacy: Option<String>,
}

impl Default for HttpScript {
    fn default() -> Self {
        Self {
            sse: false,
            sessions: true,
            token: None,
            get: Some((405, String::new())),
            split_writes: false,
            legacy: None,
        }
    }
}

/// One thing a server does while it serves a message.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Action {
    /// Answers the request with a result.
    Answer {
        /// The `result` member.
        result: Value,
    },
    /// Answers the request with an error.
    Fail {
        /// JSON-RPC code.
        code: i64,
        /// Message.
        message: String,
    },
    /// Writes a message exactly as given. Stdio adds the line end; HTTP sends it as the body or
    /// as one event.
    Send {
        /// The pieces of the message.
        parts: Vec<Part>,
        /// How it is written.
        #[serde(default)]
        pace: Pace,
    },
    /// Sends a notification.
    Notify {
        /// Its method.
        method: String,
        /// Its params.
        params: Value,
    },
    /// Sends a progress notification for the request.
    Progress {
        /// `progress`.
        progress: u64,
    },
    /// Sends a request of the server's own.
    Request {
        /// Its id.
        id: i64,
        /// Its method.
        method: String,
        /// Its params.
        params: Value,
    },
    /// Waits until the client has answered so many requests of the server.
    AwaitReplies {
        /// Answers since the start.
        count: usize,
    },
    /// Waits until the client has cancelled this request.
    AwaitCancel,
    /// Waits until a file exists; the test makes it when the server may go on.
    AwaitFile {
        /// The file.
        path: PathBuf,
    },
    /// Waits.
    Delay {
        /// Milliseconds.
        ms: u64,
    },
    /// Answers the request as a server without a script would.
    Usual,
    /// Does the same things many times over.
    Repeat {
        /// How often.
        times: usize,
        /// What.
        actions: Vec<Action>,
    },
    /// Never goes on.
    Hang,
    /// Never goes on if another request is being served.
    HangIfBusy,
    /// Answers with the text of an argument.
    Echo {
        /// The argument.
        argument: String,
        /// Where each text is noted before it is answered, one a line.
        #[serde(default)]
        journal: Option<PathBuf>,
    },
    /// Looks at a picture among the arguments and answers with what it sees.
    Look(Look),
    /// Replaces the tool list.
    SetTools {
        /// The definitions.
        tools: Vec<Value>,
    },
    /// What only a child process can do.
    Process(ProcessAction),
    /// What only an HTTP server can do.
    Http(HttpAction),
}

/// What only a scripted child process can do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ProcessAction {
    /// Writes bytes that are not a message: no line end follows.
    Write {
        /// The pieces.
        parts: Vec<Part>,
    },
    /// Writes lines to stderr.
    Stderr {
        /// At least so many bytes.
        bytes: usize,
    },
    /// Ends the process, whatever else runs.
    Exit {
        /// Exit code.
        code: u8,
    },
    /// Starts a child that ignores SIGTERM and SIGHUP and does not end on its own.
    Grandchild,
    /// Closes stdout and lives on.
    CloseStdout,
}

/// What only a scripted HTTP server can do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpAction {
    /// Answers the request with this and nothing else.
    Answer {
        /// Status.
        status: u16,
        /// Headers besides the length.
        headers: Vec<(String, String)>,
        /// Body.
        body: String,
    },
    /// Resets the TCP connection.
    Reset,
    /// Ends the sending half of the connection in the middle of the answer.
    HalfClose,
    /// Forgets every session.
    ForgetSessions,
    /// Writes this into the event stream of the answer, exactly as it stands.
    Events {
        /// The pieces.
        parts: Vec<Part>,
    },
    /// Sends a notification to every open event stream of a GET.
    Announce {
        /// Its method.
        method: String,
    },
}

impl From<ProcessAction> for Action {
    fn from(action: ProcessAction) -> Self {
        Self::Process(action)
    }
}

impl From<HttpAction> for Action {
    fn from(action: HttpAction) -> Self {
        Self::Http(action)
    }
}

/// One piece of a message.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Part {
    /// Text as it is.
    Text(String),
    /// The id of the request, as it came.
    Id,
    /// Bytes given as base64; they need not be text.
    Bytes(String),
    /// A text many times over.
    Repeat {
        /// The text.
        unit: String,
        /// How often.
        count: usize,
    },
    /// The base64 of a generated payload.
    Payload(PayloadSpec),
}

/// How fast a message is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Pace {
    /// As fast as it goes.
    #[default]
    Fast,
    /// Byte by byte with a pause of a millisecond after each.
    Drip,
}

impl Script {
    /// A server with tools that does nothing yet.
    #[must_use]
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            protocol_version: None,
            capabilities: tools_only(),
            tools: None,
            at_start: Vec::new(),
            is_forgetful: false,
            methods: BTreeMap::new(),
            calls: BTreeMap::new(),
            record: None,
            ignore_end_of_input: false,
            ignore_sigterm: false,
            http: HttpScript::default(),
        }
    }

    /// A tool that does the same on every call.
    #[must_use]
    pub fn on_call(mut self, tool: &str, actions: impl IntoIterator<Item = Action>) -> Self {
        self.calls
            .entry(tool.to_owned())
            .or_default()
            .push(actions.into_iter().collect());
        self
    }

    /// A tool that answers with a result.
    #[must_use]
    pub fn tool(self, tool: &str, result: Value) -> Self {
        self.on_call(tool, [Action::Answer { result }])
    }

    /// A vision tool that takes the picture in this form and answers with one text, in which
    /// `{seen}` becomes what it sees.
    #[must_use]
    pub fn vision_tool(self, tool: &str, argument: &str, form: PictureForm, text: &str) -> Self {
        let look = Look {
            argument: argument.to_owned(),
            form,
            result: text_result(text),
        };
        self.on_call(tool, [Action::Look(look)])
    }

    /// A tool that answers with one text.
    #[must_use]
    pub fn text_tool(self, tool: &str, text: &str) -> Self {
        self.tool(tool, text_result(text))
    }

    /// What a method does on its next call not yet described.
    #[must_use]
    pub fn on_method(mut self, method: &str, actions: impl IntoIterator<Item = Action>) -> Self {
        self.methods
            .entry(method.to_owned())
            .or_default()
            .push(actions.into_iter().collect());
        self
    }

    /// What is done before the first message is read.
    #[must_use]
    pub fn at_start(mut self, actions: impl IntoIterator<Item = Action>) -> Self {
        self.at_start.extend(actions);
        self
    }

    /// The capabilities advertised.
    #[must_use]
    pub fn with_capabilities(mut self, capabilities: Value) -> Self {
        self.capabilities = capabilities;
        self
    }

    /// The tool definitions, instead of one per scripted call.
    #[must_use]
    pub fn with_tools(mut self, tools: Vec<Value>) -> Self {
        self.tools = Some(tools);
        self
    }

    /// A server of the revision without sessions and handshake: it answers `server/discover`
    /// and takes no `initialize`.
    #[must_use]
    pub fn modern(mut self) -> Self {
        let result = json!({
            "supportedVersions": ["2026-07-28"],
            "capabilities": self.capabilities,
        });
        self.http.sessions = false;
        self.on_method("server/discover", [Action::Answer { result }])
            .on_method("subscriptions/listen", [Action::Hang])
            .on_method(
                "initialize",
                [Action::Fail {
                    code: -32601,
                    message: "there is no initialize".to_owned(),
                }],
            )
    }

    /// A server of the older HTTP+SSE transport.
    #[must_use]
    pub fn legacy(mut self) -> Self {
        self.http.legacy = Some("/messages?session={session}".to_owned());
        self
    }

    /// The protocol revision answered.
    #[must_use]
    pub fn with_protocol(mut self, revision: &str) -> Self {
        self.protocol_version = Some(revision.to_owned());
        self
    }

    /// Where messages are recorded.
    #[must_use]
    pub fn recorded_in(mut self, path: &Path) -> Self {
        self.record = Some(path.to_owned());
        self
    }

    /// How HTTP is spoken.
    #[must_use]
    pub fn with_http(mut self, http: HttpScript) -> Self {
        self.http = http;
        self
    }

    /// The tool definitions in force at the start.
    #[must_use]
    pub fn tool_definitions(&self) -> Vec<Value> {
        self.tools
            .clone()
            .unwrap_or_else(|| self.calls.keys().map(|name| tool(name)).collect())
    }

    /// Reads a script from a file.
    ///
    /// # Errors
    /// The file cannot be read or is not a script.
    pub fn read(path: &Path) -> anyhow::Result<Self> {
        let text = std::fs::read(path).with_context(|| format!("read {}", path.display()))?;
        serde_json::from_slice(&text).with_context(|| format!("parse {}", path.display()))
    }

    /// Writes the script to a file.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> anyhow::Result<()> {
        std::fs::write(path, serde_json::to_vec_pretty(self)?)
            .with_context(|| format!("write {}", path.display()))
    }
}

/// A minimal tool definition.
#[must_use]
pub fn tool(name: &str) -> Value {
    json!({"name": name, "description": format!("Does {name}."),
           "inputSchema": {"type": "object", "properties": {}}})
}

/// The definition of the tool `understand_image` as MiniMax's server has it.
#[must_use]
pub fn understand_image() -> Value {
    let source = "The source location of the image: a local file path or a URL. \
                  Only jpeg, png, webp are supported.";
    json!({
        "name": "understand_image",
        "description": "Looks at a picture and answers a question about it.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "prompt": {"type": "string", "description": "A text prompt."},
                "image_source": {"type": "string", "description": source},
            },
            "required": ["prompt", "image_source"],
        },
    })
}

/// A result with one text block.
#[must_use]
pub fn text_result(text: &str) -> Value {
    json!({"content": [{"type": "text", "text": text}]})
}

/// A result with these blocks.
#[must_use]
pub fn blocks(blocks: &Value) -> Value {
    json!({ "content": blocks })
}

/// An answer of which only the text around the result is fixed: `before` and `after` stand
/// around the payload inside the `result` member.
#[must_use]
pub fn payload_answer(before: &str, payload: PayloadSpec, after: &str) -> Action {
    Action::Send {
        parts: vec![
            Part::Text("{\"jsonrpc\":\"2.0\",\"id\":".to_owned()),
            Part::Id,
            Part::Text(format!(",\"result\":{before}")),
            Part::Payload(payload),
            Part::Text(format!("{after}}}")),
        ],
        pace: Pace::Fast,
    }
}

/// An answer with one embedded document of generated bytes, written as servers in the wild do
/// with the Python or Rust SDK: the id first.
#[must_use]
pub fn document_answer(uri: &str, payload: PayloadSpec) -> Action {
    payload_answer(
        &format!(
            "{{\"content\":[{{\"type\":\"resource\",\"resource\":{{\"uri\":\"{uri}\",\
             \"mimeType\":\"application/octet-stream\",\"blob\":\""
        ),
        payload,
        "\"}}]}",
    )
}

/// The same answer with the payload before every other field and the id at the very end, as the
/// TypeScript SDK writes it.
#[must_use]
pub fn document_answer_id_last(uri: &str, payload: PayloadSpec) -> Action {
    Action::Send {
        parts: vec![
            Part::Text("{\"result\":{\"content\":[{\"resource\":{\"blob\":\"".to_owned()),
            Part::Payload(payload),
            Part::Text(format!(
                "\",\"uri\":\"{uri}\",\"mimeType\":\"application/octet-stream\"}},\
                 \"type\":\"resource\"}}]}},\"jsonrpc\":\"2.0\",\"id\":"
            )),
            Part::Id,
            Part::Text("}".to_owned()),
        ],
        pace: Pace::Fast,
    }
}

/// A message of plain text in which `{id}` stands for the request's id.
#[must_use]
pub fn raw(text: &str) -> Action {
    Action::Send {
        parts: parts(text),
        pace: Pace::Fast,
    }
}

/// The same text without a line end.
#[must_use]
pub fn raw_unfinished(text: &str) -> Action {
    ProcessAction::Write { parts: parts(text) }.into()
}

/// An HTTP answer of a status and a body.
#[must_use]
pub fn http_status(status: u16, body: &str) -> Action {
    HttpAction::Answer {
        status,
        headers: Vec::new(),
        body: body.to_owned(),
    }
    .into()
}

/// Splits a text at `{id}`.
#[must_use]
pub fn parts(text: &str) -> Vec<Part> {
    let mut parts = Vec::new();
    for (index, piece) in text.split("{id}").enumerate() {
        if index > 0 {
            parts.push(Part::Id);
        }
        parts.push(Part::Text(piece.to_owned()));
    }
    parts
}

/// The capabilities of a server with tools and nothing else.
fn tools_only() -> Value {
    json!({"tools": {"listChanged": true}})
}
