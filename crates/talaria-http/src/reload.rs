//! How the surface asks for the configuration to be read again.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use schemars::JsonSchema;
use serde::Serialize;
use talaria_actors::ReloadReport;
use talaria_types::Failure;

/// The outcome of a reload, when it is there.
pub type Reloading = Pin<Box<dyn Future<Output = Result<ReloadReport, ReloadRefusal>> + Send>>;

/// Whoever reads the configuration again.
pub trait Reload: fmt::Debug + Send + Sync {
    /// Reads it, and makes the servers what it says. Two at once come one after the other.
    fn reload(&self) -> Reloading;
}

/// Why a reload changed nothing.
#[derive(Clone, Debug)]
pub struct ReloadRefusal {
    /// The reason as a whole.
    pub failure: Box<Failure>,
    /// Everything that is wrong with the file.
    pub problems: Vec<ConfigProblem>,
}

/// One thing that is wrong with a configuration.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
pub struct ConfigProblem {
    /// Path of the key; empty for the file as a whole.
    pub path: String,
    /// What is wrong and what would be right.
    pub message: String,
}

impl From<Failure> for ReloadRefusal {
    fn from(failure: Failure) -> Self {
        Self {
            failure: Box::new(failure),
            problems: Vec::new(),
        }
    }
}
