//! Cases about describing a picture: the chain of backends and tools they tell of, as scripts,
//! and what those were asked while the case ran.

use std::collections::BTreeMap;
use std::time::Duration;

use anyhow::{Context as _, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{FieldCase, expand};
use crate::look::{Look, PictureForm};
use crate::pictures;
use crate::script::{self, Action, Script, text_result};
use crate::vision::{Asked, Place, Reply};

/// What the helpers of a case were asked.
#[derive(Clone, Debug, Default)]
pub struct Sightings {
    /// Requests by the name of the backend, in order.
    pub backends: BTreeMap<String, Vec<Asked>>,
    /// Most requests that one backend had open at the same time.
    pub peak: usize,
    /// Calls of vision tools: the definition and the arguments.
    pub tools: Vec<(Value, Value)>,
    /// The question that was asked.
    pub question: String,
}

impl Sightings {
    /// Every picture that a backend was handed.
    #[must_use]
    pub fn pictures(&self) -> Vec<Vec<u8>> {
        let asked = self.backends.values().flatten();
        asked.flat_map(Asked::pictures).collect()
    }
}

/// One way a case runs: as it stands, or one of its variants.
#[derive(Clone, Debug)]
pub struct VisionRun {
    /// The content of the result that is delivered.
    pub content: Vec<Value>,
    /// The chain in order.
    pub links: Vec<CaseLink>,
    /// A call that yields the picture, instead of a result that is handed over.
    pub call: Option<(String, String)>,
    /// The timeout of each backend.
    pub timeout: Option<Duration>,
}

/// One link of a case's chain.
#[derive(Clone, Debug)]
pub enum CaseLink {
    /// An HTTP endpoint.
    Backend {
        /// Its name, also that of its model.
        name: String,
        /// What it answers; `None` where it refuses every connection.
        replies: Option<Vec<Reply>>,
    },
    /// A tool of an MCP server.
    Tool {
        /// The server's name.
        server: String,
        /// The tool's definition.
        definition: Value,
        /// What the server is.
        script: Box<Script>,
    },
}

impl VisionRun {
    /// Every way the case runs, as it stands first.
    ///
    /// # Errors
    /// The case says something that is not understood here.
    pub fn of(case: &FieldCase) -> anyhow::Result<Vec<Self>> {
        let input = &case.input;
        if let Some(server) = input.get("server").and_then(Value::as_str) {
            return Ok(vec![one_server(server, input)?]);
        }
        let mut inputs = vec![input.clone()];
        for variant in input["variants"].as_array().into_iter().flatten() {
            inputs.push(varied(input, variant)?);
        }
        if let Some(Value::String(variant)) = input["variants"].get(0)
            && !variant.contains("never")
        {
            bail!("variant {variant}");
        }
        inputs.iter().map(Self::read).collect()
    }

    fn read(input: &Value) -> anyhow::Result<Self> {
        let count = input["images"].as_u64().unwrap_or(1);
        let mut content = vec![input["image"].clone()];
        for index in 1..count {
            let shade = u8::try_from(index * 30)?;
            let picture = pictures::plain_png(64, 64, [shade; 3])?;
            let data = STANDARD.encode(picture);
            content.push(json!({"type": "image", "mimeType": "image/png", "data": data}));
        }
        let chain = input["chain"].as_array().context("no chain")?;
        let seconds = input.pointer("/config/vision_timeout_s");
        Ok(Self {
            content,
            links: chain.iter().map(link).collect::<anyhow::Result<_>>()?,
            call: None,
            timeout: seconds.and_then(Value::as_u64).map(Duration::from_secs),
        })
    }
}

/// The input as one of its variants has it.
fn varied(input: &Value, variant: &Value) -> anyhow::Result<Value> {
    let mut input = input.clone();
    let chain = input.get_mut("chain").and_then(Value::as_array_mut);
    let chain = chain.context("no chain")?;
    let (link, key, value) = match variant {
        Value::Array(_) => (chain.first_mut(), "endpoint_replies", variant.clone()),
        Value::String(state) => (chain.last_mut(), "server_state", json!(state)),
        Value::Object(members) => {
            let wanted = members.get("retry_after");
            let wanted = wanted.with_context(|| format!("variant {variant}"))?;
            let header = json!({"Retry-After": wanted});
            let first = chain
                .first_mut()
                .and_then(|link| link.pointer_mut("/endpoint_replies/0"));
            (first, "headers", header)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => bail!("variant {variant}"),
    };
    let members = link.and_then(Value::as_object_mut).context("no link")?;
    members.insert(key.to_owned(), value);
    Ok(input)
}

fn link(link: &Value) -> anyhow::Result<CaseLink> {
    let name = link["name"].as_str().context("a link without a name")?;
    if let Some(replies) = link.get("endpoint_replies") {
        return Ok(CaseLink::Backend {
            name: name.to_owned(),
            replies: endpoint(replies)?,
        });
    }
    let definition = match (link.get("tool_schema"), link.get("tool")) {
        (Some(definition), _) => definition.clone(),
        (None, Some(tool)) => named(script::understand_image(), tool),
        (None, None) => script::understand_image(),
    };
    let tool = name_of(&definition)?;
    let answer = tool_conduct(link["replies"].as_str().unwrap_or_default(), &definition)?;
    let mut script = Script::new(name)
        .on_call(tool, [answer])
        .with_tools(vec![definition.clone()]);
    if let Some(state) = link["server_state"].as_str() {
        let start = if state.contains("never") {
            Action::Hang
        } else {
            let mut words = state.split(' ').rev();
            let seconds = words.find_map(|word| word.parse::<u64>().ok());
            let ms = seconds.with_context(|| state.to_owned())? * 1_000;
            Action::Delay { ms }
        };
        script = script.at_start([start]);
    }
    Ok(CaseLink::Tool {
        server: name.to_owned(),
        definition,
        script: Box::new(script),
    })
}

/// The definition under another name.
fn named(mut definition: Value, name: &Value) -> Value {
    if let Some(members) = definition.as_object_mut() {
        members.insert("name".to_owned(), name.clone());
    }
    definition
}

fn name_of(definition: &Value) -> anyhow::Result<&str> {
    let name = definition.get("name").and_then(Value::as_str);
    name.context("a tool without a name")
}

/// What an endpoint answers; `None` where it refuses.
fn endpoint(replies: &Value) -> anyhow::Result<Option<Vec<Reply>>> {
    match replies {
        Value::String(words) if words.contains("refused") => Ok(None),
        Value::String(words) => Ok(Some(vec![conduct(words)?])),
        Value::Array(items) => {
            let replies = items.iter().map(|item| match item.as_str() {
                Some(words) => conduct(words),
                None => reply(&expand(item)?),
            });
            replies.collect::<anyhow::Result<_>>().map(Some)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Object(_) => {
            bail!("endpoint_replies: {replies}")
        }
    }
}

/// An endpoint's conduct told in words.
fn conduct(words: &str) -> anyhow::Result<Reply> {
    if words.contains("never answers") {
        return Ok(Reply::stalled());
    }
    if words.contains("reset") {
        return Ok(Reply::raw(200, "").reset_at(Place::Start));
    }
    if words.contains("closes the connection") {
        return Ok(Reply::raw(200, "").closed_at(Place::Start));
    }
    bail!("an endpoint that {words}")
}

fn reply(reply: &Value) -> anyhow::Result<Reply> {
    let status = u16::try_from(reply["status"].as_u64().context("no status")?)?;
    let mut made = match (reply.get("raw_body"), reply.get("body")) {
        (Some(Value::String(raw)), _) | (None, Some(Value::String(raw))) => {
            Reply::raw(status, raw.clone())
        }
        (None, Some(body)) => Reply::json(status, body),
        (None, None) => Reply::raw(status, ""),
        (Some(other), _) => bail!("raw_body {other}"),
    };
    for (name, value) in reply["headers"].as_object().into_iter().flatten() {
        let value = value.as_str().context("a header that is no text")?;
        made = match value.strip_prefix("an HTTP date ") {
            Some(when) => {
                let mut words = when.split(' ');
                let seconds = words.find_map(|word| word.parse().ok());
                let seconds = seconds.with_context(|| value.to_owned())?;
                made.with_date(name, Duration::from_secs(seconds))
            }
            None => made.with_header(name, value),
        };
    }
    Ok(made)
}

/// A tool's conduct told in words.
fn tool_conduct(words: &str, definition: &Value) -> anyhow::Result<Action> {
    let answer = super::checks::quoted(words)
        .into_iter()
        .find(|word| word.ends_with("-OK"))
        .unwrap_or("FALLBACK-OK");
    let result = text_result(answer);
    let form = match words {
        _ if words.is_empty() || words.starts_with("text ") => {
            return Ok(Action::Answer { result });
        }
        _ if words.contains("data:image/") => PictureForm::DataUrl,
        _ if words.contains("as a file") => PictureForm::File,
        _ => bail!("a tool that {words}"),
    };
    let properties = definition.pointer("/inputSchema/properties");
    let mut arguments = properties.and_then(Value::as_object).into_iter().flatten();
    let argument = arguments.find(|(name, _)| name.contains("image"));
    let (argument, _) = argument.context("no argument for a picture")?;
    Ok(Action::Look(Look {
        argument: argument.clone(),
        form,
        result,
    }))
}

/// One server whose tool yields a picture that another tool of it describes.
fn one_server(words: &str, input: &Value) -> anyhow::Result<VisionRun> {
    let quoted = super::checks::quoted(words);
    let (Some(server), Some(answer)) = (quoted.first(), quoted.get(1)) else {
        bail!("a server that is {words}");
    };
    let call = input["call"].as_str().context("no call")?;
    let definition = script::understand_image();
    let tool = name_of(&definition)?;
    anyhow::ensure!(words.contains(tool), "no vision tool in {words}");
    let image = |shade: u8| -> anyhow::Result<Value> {
        let picture = STANDARD.encode(pictures::plain_png(64, 64, [shade; 3])?);
        Ok(json!({"type": "image", "mimeType": "image/png", "data": picture}))
    };
    let mut described = vec![json!({"type": "text", "text": answer})];
    if words.contains("also contains a PNG") {
        described.push(image(200)?);
    }
    let script = Script::new(server)
        .tool(call, json!({"content": [image(20)?]}))
        .tool(tool, json!({ "content": described }))
        .with_tools(vec![definition.clone(), script::tool(call)]);
    Ok(VisionRun {
        content: Vec::new(),
        links: vec![CaseLink::Tool {
            server: (*server).to_owned(),
            definition,
            script: Box::new(script),
        }],
        call: Some(((*server).to_owned(), call.to_owned())),
        timeout: None,
    })
}
