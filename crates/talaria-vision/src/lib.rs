//! Whether pictures reach a model: one gate for every source, with its reasons.
//!
//! [`gate`] is the truth table and nothing else. [`Gatekeeper`] puts the questions to it: what
//! the operator says, what the catalogue says, what a server of this machine or network says,
//! and what the live route takes in a tool result. Any failure closes the gate.

mod api;
mod table;

mod catalogue;
mod class;
mod limits;
mod live_route;
mod lookup;
mod model_name;
mod route_facts;

mod local;
mod probe;
mod refusals;
mod tls;

pub mod describe;
pub mod fetch;

mod explanation;
mod gatekeeper;
mod listing;

pub use api::ApiShape;
pub use catalogue::{Catalogue, CatalogueError};
pub use class::RouteClass;
pub use explanation::{Answer, Explanation, Step};
pub use gatekeeper::{Decision, GateQuestion, Gatekeeper, ImageSource};
pub use limits::ProviderLimits;
pub use listing::KnownModel;
pub use table::{Cause, gate};
