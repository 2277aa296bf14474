//! Shared vocabulary of Talaria: ids, call context, deadlines, failures and the payload seam.
//!
//! Everything here is small data; the only behaviour is what keeps that data well formed.

pub mod context;
pub mod deadline;
pub mod failure;
pub mod id;
pub mod metadata;
pub mod notice;
pub mod payload;
pub mod raw;
pub mod runtime;

pub use context::{CallContext, Route};
pub use deadline::Deadline;
pub use failure::{ErrorClass, ErrorCode, Failure};
pub use id::{ArtifactId, DeliveryId, RequestId, ServerName, SessionKey, TokenName};
pub use notice::NoticeCode;
pub use payload::{
    Payload, PayloadError, PayloadRefusal, PayloadSink, PayloadWriter, StagedPayload,
};
pub use raw::{RawResult, WireNote};
