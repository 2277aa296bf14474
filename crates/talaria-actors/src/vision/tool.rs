//! A link that is a tool of an MCP server: called through the supervisor as everybody's calls are,
//! with its own deadline, and with no lock of any server held meanwhile.

use std::path::{Path, PathBuf};
use std::time::Duration;

use talaria_config::McpFallback;
use talaria_content::{ArtifactKind, FileBody, FileRequest, NoAnswer, tool_answer_text};
use talaria_media::{MediaStore, OpenArtifact};
use talaria_types::runtime::BlockingPool;
use talaria_types::{ArtifactId, CallContext, Deadline, ErrorCode, Failure};
use talaria_vision::describe::{Fault, FaultKind, Verdict, read_text, tool_prompt};

use super::arguments::{self, Form, Reach};
use super::picture::{Darkroom, Ready, unsendable};
use super::workshop::Sitting;
use crate::chain::reason;
use crate::server::refusal::is_the_queues;
use crate::supervisor::SupervisorHandle;

/// How long a server that is not connected is waited for.
const CONNECTING: Duration = Duration::from_secs(5);
/// What an attempt leaves of its time for the words of the server's actor.
const LAST_WORDS: Duration = Duration::from_millis(100);
/// Longest answer of a tool.
const MAX_ANSWER_BYTES: usize = 1024 * 1024;
/// The question where neither the caller nor the configuration has one.
const DESCRIBE: &str = "Describe this image completely and precisely: everything that is to be \
seen, how it is arranged, and all text word for word.";

/// Calls tools of MCP servers.
#[derive(Clone, Debug)]
pub(super) struct ToolDesk {
    pub(super) supervisor: SupervisorHandle,
    pub(super) store: MediaStore,
    pub(super) blocking: BlockingPool,
}

/// A picture in the form that a tool takes.
#[derive(Debug)]
struct Handed {
    text: String,
    /// Keeps the file where the tool finds it.
    file: Option<ShownFile>,
}

/// A file that lies there for a tool.
#[derive(Debug)]
enum ShownFile {
    /// The artifact itself; it stays as long as this is open.
    Lent(Box<OpenArtifact>),
    /// A copy made for this call.
    Copy(Copy),
}

/// A file of the store that goes away with this.
#[derive(Debug)]
struct Copy {
    store: MediaStore,
    id: Option<ArtifactId>,
    path: PathBuf,
    url: Option<String>,
}

impl ToolDesk {
    /// Asks a tool.
    pub(super) async fn ask(
        &self,
        tool: &McpFallback,
        sitting: &Sitting<'_>,
        ready: &Ready,
        darkroom: &Darkroom,
        deadline: Deadline,
    ) -> Verdict {
        match self.call(tool, sitting, ready, darkroom, deadline).await {
            Ok(verdict) => verdict,
            Err(fault) => Verdict::Failed(fault),
        }
    }

    async fn call(
        &self,
        tool: &McpFallback,
        sitting: &Sitting<'_>,
        ready: &Ready,
        darkroom: &Darkroom,
        deadline: Deadline,
    ) -> Result<Verdict, Fault> {
        let server = tool.server.as_str();
        let ready_by = Deadline::after(CONNECTING).earlier(deadline);
        let connected = self.supervisor.await_ready(server, ready_by).await;
        connected.map_err(|failure| fault(&failure))?;
        let public = self.supervisor.resolve(server, &tool.tool);
        let public = public.map_err(|failure| fault(&failure))?;
        let plan = arguments::plan(tool, &public.definition, self.reach(server))?;
        let handed = match plan.form {
            Form::Base64 => {
                let encoded = darkroom.encoded(ready, deadline).await?;
                Handed::text(encoded.base64.to_string())
            }
            Form::DataUrl => {
                let encoded = darkroom.encoded(ready, deadline).await?;
                let (media_type, base64) = (&encoded.media_type, &encoded.base64);
                Handed::text(format!("data:{media_type};base64,{base64}"))
            }
            Form::Path => self.show(sitting, ready, deadline).await?.by_path()?,
            Form::Url => self.copy(ready, deadline).await?.by_address()?,
        };
        let default = tool.prompt.as_deref().unwrap_or(DESCRIBE);
        let question = tool_prompt(sitting.question.prompt.as_deref(), default);
        let arguments = plan.arguments(handed.text, ready.media_type(), question);
        let ctx = CallContext {
            // The operator named this very tool for this very purpose.
            approved: true,
            cancel: sitting.ctx.cancel.child_token(),
            request_id: sitting.ctx.request_id.clone(),
            ..CallContext::new(early(deadline))
        };
        let called = self
            .supervisor
            .call_tool(ctx, &public.name, arguments)
            .await;
        if let Some(ShownFile::Copy(copy)) = handed.file {
            copy.remove(&self.blocking).await;
        }
        let is_late = |failure: &Failure| failure.code() == ErrorCode::Timeout;
        if called.as_ref().is_err_and(is_late) && deadline.remaining() <= LAST_WORDS {
            // The attempt has all of its time, whatever its end took to be told.
            tokio::time::sleep_until(deadline.instant()).await;
        }
        let raw = called.map_err(|failure| fault(&failure))?.raw;
        let patterns = tool.failure_patterns.clone();
        let reading = self.blocking.run(deadline, move || {
            let text = tool_answer_text(raw)?;
            if text.len() > MAX_ANSWER_BYTES {
                let words = format!("{} bytes; at most {MAX_ANSWER_BYTES} are taken", text.len());
                return Ok(Verdict::failed(FaultKind::Oversize, &words));
            }
            let is_failure = patterns.iter().any(|pattern| pattern.is_match(&text));
            Ok::<_, NoAnswer>(if is_failure {
                Verdict::failed(FaultKind::PatternMatched, &text)
            } else {
                read_text(&text)
            })
        });
        match reading.await.map_err(|failure| fault(&failure))? {
            Ok(verdict) => Ok(verdict),
            Err(NoAnswer::Failed(words)) => Err(Fault::new(FaultKind::ToolError, &words)),
            Err(NoAnswer::Empty) => Err(Fault::new(FaultKind::Empty, "")),
        }
    }

    /// Where a server is, by how it is reached.
    fn reach(&self, server: &str) -> Reach {
        match self.supervisor.server(server) {
            Ok(status) if status.transport == "stdio" => Reach::Local,
            Ok(_) | Err(_) => Reach::Remote,
        }
    }

    /// A file with exactly the bytes that are shown, under a name that tells their type.
    async fn show(
        &self,
        sitting: &Sitting<'_>,
        ready: &Ready,
        deadline: Deadline,
    ) -> Result<ShownFile, Fault> {
        let original = &sitting.question.picture;
        if ready.picture().is_original
            && let Some(id) = original.artifact.clone()
            && has_ending(&original.path, ready.picture().format.as_str())
        {
            let store = self.store.clone();
            let reading = self.blocking.run(deadline, move || store.read(&id)).await;
            if let Ok(Ok(open)) = reading {
                return Ok(ShownFile::Lent(Box::new(open)));
            }
        }
        self.copy(ready, deadline).await.map(ShownFile::Copy)
    }

    async fn copy(&self, ready: &Ready, deadline: Deadline) -> Result<Copy, Fault> {
        let picture = std::sync::Arc::clone(ready.picture());
        let store = self.store.clone();
        let saving = self.blocking.run(deadline, move || {
            let request = FileRequest {
                kind: ArtifactKind::Image,
                name: format!("picture.{}", ending(picture.format.as_str())),
                named: false,
                media_type: picture.format.media_type().to_owned(),
                declared_type: None,
                source_uri: None,
                body: FileBody::Bytes(picture.bytes.clone()),
            };
            let saved = store.save(request, None)?;
            Ok::<_, talaria_media::StoreError>(Copy {
                store,
                id: Some(saved.id),
                path: saved.path,
                url: saved.url,
            })
        });
        let saved = saving
            .await
            .map_err(|failure| unsendable(failure.detail()))?;
        saved.map_err(|error| unsendable(&error.detail))
    }
}

impl Handed {
    const fn text(text: String) -> Self {
        Self { text, file: None }
    }
}

impl ShownFile {
    fn path(&self) -> &Path {
        match self {
            Self::Lent(open) => &open.record.artifact.path,
            Self::Copy(copy) => &copy.path,
        }
    }

    fn by_path(self) -> Result<Handed, Fault> {
        let path = self.path().to_str().map(ToOwned::to_owned);
        Ok(Handed {
            text: path.ok_or_else(|| unsendable("its path is not UTF-8"))?,
            file: Some(self),
        })
    }
}

impl Copy {
    fn by_address(self) -> Result<Handed, Fault> {
        let url = self.url.clone().ok_or_else(|| {
            unsendable("artifacts have no address; `talaria.media.public_url` can give one")
        })?;
        Ok(Handed {
            text: url,
            file: Some(ShownFile::Copy(self)),
        })
    }

    /// Removes the file, on a worker.
    async fn remove(mut self, blocking: &BlockingPool) {
        let Some(id) = self.id.take() else {
            return;
        };
        let store = self.store.clone();
        let within = Deadline::after(CONNECTING);
        let removing = blocking.run(within, move || store.delete(&id));
        if !matches!(removing.await, Ok(Ok(()))) {
            tracing::debug!("a picture for a tool stays until it expires");
        }
    }
}

impl Drop for Copy {
    /// The call was given up. Nothing can be awaited here, so the one file is removed on this very
    /// loop.
    fn drop(&mut self) {
        if let Some(id) = self.id.take()
            && self.store.delete(&id).is_err()
        {
            tracing::debug!("a picture for a tool stays until it expires");
        }
    }
}

/// The ending of files of a format.
fn ending(format: &str) -> &str {
    match format {
        "jpeg" => "jpg",
        other => other,
    }
}

fn has_ending(path: &Path, format: &str) -> bool {
    let found = path.extension().and_then(|it| it.to_str());
    found.is_some_and(|found| found == ending(format) || found == format)
}

/// A little before the end of an attempt, so that the server's actor can still say why there is no
/// answer: whether the call was sent is known to nobody else.
fn early(deadline: Deadline) -> Deadline {
    let margin = (deadline.remaining() / 20).min(LAST_WORDS);
    let instant = deadline.instant();
    Deadline::at(instant.checked_sub(margin).unwrap_or(instant))
}

/// What codes of failed calls mean for a link; any other one is an error of the tool.
const KINDS: &[(ErrorCode, FaultKind)] = &[
    (ErrorCode::ServerUnavailable, FaultKind::NotConnected),
    (ErrorCode::ServerDisabled, FaultKind::NotConnected),
    (ErrorCode::CircuitOpen, FaultKind::NotConnected),
    (ErrorCode::CommandNotFound, FaultKind::Misconfigured),
    (ErrorCode::ConnectFailed, FaultKind::NotConnected),
    (ErrorCode::ConnectTimeout, FaultKind::NotConnected),
    (ErrorCode::ShuttingDown, FaultKind::NotConnected),
    (ErrorCode::ConnectionLost, FaultKind::Unreachable),
    (ErrorCode::Timeout, FaultKind::Timeout),
    (ErrorCode::ServerBusy, FaultKind::RateLimited),
    (ErrorCode::Busy, FaultKind::RateLimited),
    (ErrorCode::UnknownTool, FaultKind::UnknownTool),
    (ErrorCode::UnknownServer, FaultKind::Misconfigured),
    (ErrorCode::ServerMisconfigured, FaultKind::Misconfigured),
    (ErrorCode::ServerUnauthorized, FaultKind::Auth),
    (ErrorCode::MessageTooLarge, FaultKind::Oversize),
    (ErrorCode::MalformedMessage, FaultKind::Malformed),
];

/// Why a call came to nothing, in the words of the chain.
fn fault(failure: &Failure) -> Fault {
    let known = KINDS.iter().find(|(code, _)| *code == failure.code());
    let kind = known.map_or(FaultKind::ToolError, |(_, kind)| *kind);
    let fault = Fault::new(kind, &reason(failure));
    if is_the_queues(failure) {
        fault.in_our_queue()
    } else {
        fault
    }
}
