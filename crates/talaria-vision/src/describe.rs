//! Descriptions of pictures for models that cannot see: backends, their answers, the chain.
//!
//! [`Chain::resolve`] says who may be asked. A [`Verdict`] is what one attempt came to;
//! everything that decides what happens next looks at nothing else. [`Run`] is the course of one
//! description, [`Health`] what is remembered of the links between them; both are pure.

mod backend;
mod client;
mod preset;
mod reply;
mod request;
mod resolve;

mod health;
mod prompt;
mod run;
mod verdict;

pub use backend::{Backend, Link};
pub use client::BackendClient;
pub use health::{Blocked, BreakerState, HadTime, Health, Identity};
pub use prompt::{asked, prompt, tool_prompt};
pub use reply::{HttpReply, read_reply, read_text};
pub use request::{Ask, Encoded};
pub use resolve::Chain;
pub use run::{Attempt, End, HopReason, Order, Outcome, Record, Run, Size, Terms};
pub use verdict::{Fault, FaultKind, MAX_WORDS_BYTES, Origin, Verdict};
