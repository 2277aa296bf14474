//! The one error that crosses crate boundaries on the way to a caller.
//!
//! A [`Failure`] has a permanent code, a sentence for the caller and, kept apart, the source
//! for the log. HTTP status and retry advice follow from the class of the code, here and only
//! here (design decision 24).

use std::error::Error;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ServerName;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $class:ident;)*) => {
        /// Permanent codes of transport-level errors. `docs/errors.md` has a row for each.
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
            JsonSchema,
        )]
        pub enum ErrorCode {
            $($(#[$doc])* #[serde(rename = $text)] $variant,)*
        }

        impl ErrorCode {
            /// Every code, in the order of the documentation.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The permanent snake-case text.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }

            /// The class that decides status and retry.
            #[must_use]
            pub const fn class(self) -> ErrorClass {
                match self { $(Self::$variant => ErrorClass::$class,)* }
            }
        }
    };
}

error_codes! {
    /// The request body or a parameter is not what the route takes.
    InvalidRequest = "invalid_request", BadRequest;
    /// The arguments do not fit the tool's input schema; nothing was sent.
    InvalidArguments = "invalid_arguments", BadRequest;
    /// The request body is larger than `talaria.limits.body_bytes`, or holds too many values.
    BodyTooLarge = "body_too_large", TooLarge;
    /// No or an unknown bearer token.
    Unauthorized = "unauthorized", Unauthorized;
    /// The token lacks the scope or the server is not among its servers.
    Forbidden = "forbidden", Forbidden;
    /// The Host or Origin header is not allowed (DNS rebinding).
    OriginRefused = "origin_refused", Forbidden;
    /// The path names no file that callers may hand over.
    PathRefused = "path_refused", Forbidden;
    /// No such route.
    NotFound = "not_found", NotFound;
    /// The route exists with another method.
    MethodNotAllowed = "method_not_allowed", MethodNotAllowed;
    /// No tool has that public name.
    UnknownTool = "unknown_tool", NotFound;
    /// No server has that name.
    UnknownServer = "unknown_server", NotFound;
    /// No artifact has that id, or it has expired.
    UnknownArtifact = "unknown_artifact", NotFound;
    /// The server is disabled in the configuration or by an operator.
    ServerDisabled = "server_disabled", Conflict;
    /// The server's entry in the configuration is not usable.
    ServerMisconfigured = "server_misconfigured", Conflict;
    /// The program of a server is not there.
    CommandNotFound = "command_not_found", Conflict;
    /// The configuration file cannot be used; the one before it stays in force.
    ConfigInvalid = "config_invalid", Conflict;
    /// The server's pending queue is full.
    ServerBusy = "server_busy", Busy;
    /// An internal queue is full.
    Busy = "busy", Busy;
    /// The call's deadline passed.
    Timeout = "timeout", Timeout;
    /// Connecting or initialising took longer than `connect_timeout`.
    ConnectTimeout = "connect_timeout", Timeout;
    /// The caller went away.
    Cancelled = "cancelled", Cancelled;
    /// The server is not connected.
    ServerUnavailable = "server_unavailable", Unavailable;
    /// Too many calls failed in a row; for a while none is sent.
    CircuitOpen = "circuit_open", Unavailable;
    /// The connection ended while the call ran.
    ConnectionLost = "connection_lost", Upstream;
    /// The server could not be started or reached.
    ConnectFailed = "connect_failed", Upstream;
    /// The server wants credentials it was not given.
    ServerUnauthorized = "server_unauthorized", Upstream;
    /// The server answered with a JSON-RPC error.
    ServerError = "server_error", Upstream;
    /// A message of the server is larger than `talaria.limits.message_bytes`, or holds too many
    /// values.
    MessageTooLarge = "message_too_large", Upstream;
    /// A message of the server is not JSON-RPC, or was cut.
    MalformedMessage = "malformed_message", Upstream;
    /// No backend that describes pictures is configured.
    VisionNotConfigured = "vision_not_configured", Conflict;
    /// Every backend of the vision chain failed.
    VisionFailed = "vision_failed", Upstream;
    /// The vision chain ran out of time.
    VisionTimeout = "vision_timeout", Timeout;
    /// The rules against requests into other networks forbid the URL of a picture.
    UrlBlocked = "url_blocked", Forbidden;
    /// The URL of a picture cannot be reached, or answers with an error.
    UrlUnreachable = "url_unreachable", Upstream;
    /// What was named as a picture is none.
    NotAnImage = "not_an_image", BadRequest;
    /// Talaria is draining and takes no new calls.
    ShuttingDown = "shutting_down", Unavailable;
    /// The media store cannot be read or written.
    MediaUnavailable = "media_unavailable", Unavailable;
    /// Something broke inside Talaria.
    Internal = "internal", Internal;
}

impl ErrorCode {
    /// Whether the same request may succeed later without running a tool twice, as far as the
    /// code alone tells.
    ///
    /// A server that answered with an error, or asks for credentials, answers the same way the
    /// next time, and its tool may have run before it did.
    #[must_use]
    pub const fn retryable(self) -> bool {
        !self.is_the_servers_word() && self.class().retryable()
    }

    /// The server was asked and refused.
    const fn is_the_servers_word(self) -> bool {
        matches!(self, Self::ServerError | Self::ServerUnauthorized)
    }
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The class of an [`ErrorCode`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorClass {
    /// The caller's request is wrong.
    BadRequest,
    /// The caller's request is too large.
    TooLarge,
    /// The caller did not authenticate.
    Unauthorized,
    /// The caller may not do this.
    Forbidden,
    /// The thing asked for does not exist.
    NotFound,
    /// The method is not the route's.
    MethodNotAllowed,
    /// The state of the thing forbids it.
    Conflict,
    /// A bounded queue is full.
    Busy,
    /// A deadline passed.
    Timeout,
    /// The MCP server failed.
    Upstream,
    /// A part of the service is not there at the moment.
    Unavailable,
    /// The caller went away.
    Cancelled,
    /// A defect of Talaria.
    Internal,
}

impl ErrorClass {
    /// The HTTP status of the class.
    #[must_use]
    pub const fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::Unauthorized => 401,
            Self::Forbidden => 403,
            Self::NotFound => 404,
            Self::MethodNotAllowed => 405,
            Self::Conflict => 409,
            Self::TooLarge => 413,
            Self::Busy => 429,
            Self::Cancelled => 499,
            Self::Internal => 500,
            Self::Upstream => 502,
            Self::Unavailable => 503,
            Self::Timeout => 504,
        }
    }

    /// Whether the same request may succeed later, as far as the class alone tells.
    const fn retryable(self) -> bool {
        match self {
            Self::Busy | Self::Timeout | Self::Upstream | Self::Unavailable => true,
            Self::BadRequest
            | Self::TooLarge
            | Self::Unauthorized
            | Self::Forbidden
            | Self::NotFound
            | Self::MethodNotAllowed
            | Self::Conflict
            | Self::Cancelled
            | Self::Internal => false,
        }
    }
}

/// Longest hint when to try again: what a server asks for beyond it is no hint, and may be a number
/// that callers cannot hold.
const MAX_RETRY_AFTER: Duration = Duration::from_secs(24 * 60 * 60);

/// A transport-level failure of a request.
///
/// `Display` is the sentence for the caller; the source is for the log. `Debug` leaves the
/// server's own words out, because they may hold secrets.
#[derive(Clone)]
pub struct Failure {
    code: ErrorCode,
    detail: String,
    server: Option<ServerName>,
    server_words: Option<String>,
    outcome_uncertain: bool,
    retry_after: Option<Duration>,
    source: Option<Arc<dyn Error + Send + Sync>>,
}

impl Failure {
    /// A failure with its code and a sentence that helps the caller.
    #[must_use]
    pub fn new(code: ErrorCode, detail: impl Into<String>) -> Self {
        Self {
            code,
            detail: detail.into(),
            server: None,
            server_words: None,
            outcome_uncertain: false,
            retry_after: None,
            source: None,
        }
    }

    /// Puts words before the sentence, such as whom it is about.
    #[must_use]
    pub fn with_context(mut self, context: impl fmt::Display) -> Self {
        self.detail = format!("{context}: {}", self.detail);
        self
    }

    /// Names the MCP server concerned.
    #[must_use]
    pub fn on_server(mut self, server: &ServerName) -> Self {
        self.server = Some(server.clone());
        self
    }

    /// Adds the server's own words; they are redacted and capped where they are shown.
    #[must_use]
    pub fn with_server_words(mut self, words: impl Into<String>) -> Self {
        self.server_words = Some(words.into());
        self
    }

    /// Changes the sentence and the server's words, for example to take secrets out.
    #[must_use]
    pub fn map_words(mut self, change: impl Fn(&str) -> String) -> Self {
        self.detail = change(&self.detail);
        self.server_words = self.server_words.as_deref().map(change);
        self
    }

    /// Marks that the call may have been executed (design decision 21).
    #[must_use]
    pub const fn outcome_uncertain(mut self) -> Self {
        self.outcome_uncertain = true;
        self
    }

    /// Says when a retry makes sense, at most a day from now.
    #[must_use]
    pub const fn retry_after(mut self, wait: Duration) -> Self {
        self.retry_after = Some(if wait.as_secs() < MAX_RETRY_AFTER.as_secs() {
            wait
        } else {
            MAX_RETRY_AFTER
        });
        self
    }

    /// Keeps the cause for the log.
    #[must_use]
    pub fn caused_by(mut self, source: impl Error + Send + Sync + 'static) -> Self {
        self.source = Some(Arc::new(source));
        self
    }

    /// The permanent code.
    #[must_use]
    pub const fn code(&self) -> ErrorCode {
        self.code
    }

    /// The sentence for the caller.
    #[must_use]
    pub fn detail(&self) -> &str {
        &self.detail
    }

    /// The server concerned.
    #[must_use]
    pub const fn server(&self) -> Option<&ServerName> {
        self.server.as_ref()
    }

    /// The server's own words, as received.
    #[must_use]
    pub fn server_words(&self) -> Option<&str> {
        self.server_words.as_deref()
    }

    /// Whether the call may have been executed.
    #[must_use]
    pub const fn is_outcome_uncertain(&self) -> bool {
        self.outcome_uncertain
    }

    /// When a retry makes sense.
    #[must_use]
    pub const fn retry_hint(&self) -> Option<Duration> {
        self.retry_after
    }

    /// Whether the caller may send the same request again without risk of running it twice.
    #[must_use]
    pub const fn retryable(&self) -> bool {
        let hinted = self.retry_after.is_some() && self.code.class().retryable();
        (hinted || self.code.retryable()) && !self.outcome_uncertain
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = self.server_words.as_ref().map(String::len);
        f.debug_struct("Failure")
            .field("code", &self.code)
            .field("detail", &self.detail)
            .field("server", &self.server)
            .field("server_words_bytes", &words)
            .field("outcome_uncertain", &self.outcome_uncertain)
            .field("retry_after", &self.retry_after)
            .field("source", &self.source)
            .finish()
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.detail)
    }
}

impl Error for Failure {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.source
            .as_deref()
            .map(|source| source as &(dyn Error + 'static))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hint_when_to_try_again_is_bounded() {
        let hint = |wait| {
            Failure::new(ErrorCode::Busy, "")
                .retry_after(wait)
                .retry_hint()
        };
        let usual = Duration::from_millis(1_500);
        assert_eq!(hint(usual), Some(usual));
        assert_eq!(hint(Duration::MAX), Some(MAX_RETRY_AFTER));
    }

    #[test]
    fn debug_output_leaves_the_servers_words_out() {
        let failure = Failure::new(ErrorCode::ServerError, "it answered with an error")
            .with_server_words("token=hunter2");
        let shown = format!("{failure:?}");
        assert!(shown.contains("ServerError") && shown.contains("it answered"));
        assert!(!shown.contains("hunter2"), "{shown}");
    }

    #[test]
    fn what_a_server_refused_is_retried_only_when_it_says_when() {
        for code in [ErrorCode::ServerError, ErrorCode::ServerUnauthorized] {
            let refused = Failure::new(code, "no");
            assert!(!refused.retryable());
            let later = refused.retry_after(Duration::from_secs(1));
            assert!(later.retryable());
            assert!(!later.outcome_uncertain().retryable());
        }
        let wrong = Failure::new(ErrorCode::InvalidRequest, "no");
        assert!(!wrong.retry_after(Duration::from_secs(1)).retryable());
    }
}
