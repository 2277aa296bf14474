//! HTTP surface of Talaria: routes, authentication, OpenAPI.
//!
//! One table names every route with its method, path and who may use it;
//! the server registers from it and the OpenAPI document is written from it. One function
//! answers every request: it names the request, checks `Host` and `Origin`, admits the caller,
//! runs the route, turns a failure into problem details and counts the exchange.

mod auth;
mod body;
mod disposition;
mod exchange;
#[cfg(test)]
mod fixtures;
mod glob;
mod json_text;
mod openapi;
mod operation;
mod origin;
mod picture;
mod problem;
mod query;
mod range;
mod reload;
mod routes;
mod server;
mod state;
#[cfg(test)]
mod surface_tests;
mod tagged;
mod wishes;

pub use json_text::{JsonFault, look_over};
pub use problem::Problem;
pub use reload::{ConfigProblem, Reload, ReloadRefusal, Reloading};
pub use server::{HttpServer, RunningServer, ServeError, ServeOptions, StopMode};
