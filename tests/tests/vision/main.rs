//! Describing pictures through the whole service: the chain of backends and tools, its deadline,
//! what is shared and remembered, where pictures may come from, and what nobody must see.

mod chain;
mod deadline;
mod field_cases;
mod health;
mod hedging;
mod last_link;
mod locks;
mod metrics;
mod pictures;
mod rebinding;
mod scene;
mod secrets;
mod shapes;
mod sharing;
mod sources;
mod ssrf;
mod stopping;
mod surface;
