//! What servers do and what is configured about them, seen from outside: names, schemas, lists,
//! sessions, secrets and the configuration.

mod arguments;
mod auth;
mod breaker;
mod config;
mod fairness;
mod field;
mod guarded;
mod keepalive;
mod lazy;
mod listening;
mod lists;
mod reload;
mod schemas;
mod secrets;
mod sessions;
mod stage;
mod transports;
mod trees;
