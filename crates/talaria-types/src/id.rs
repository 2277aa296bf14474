//! Newtypes for the identifiers that travel through Talaria.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use ulid::Ulid;

macro_rules! generated_id {
    ($(#[$doc:meta])* $name:ident, $prefix:literal) => {
        $(#[$doc])*
        #[derive(
            Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
        )]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// Makes a new id: the prefix and a ULID (128 bits, 80 of them random).
            #[must_use]
            pub fn generate() -> Self {
                Self(format!(concat!($prefix, "{}"), Ulid::generate()))
            }

            /// Accepts a string of the right shape: the prefix and 26 Crockford characters.
            #[must_use]
            pub fn parse(text: &str) -> Option<Self> {
                let ulid = text.strip_prefix($prefix)?;
                Ulid::from_string(ulid).ok()?;
                Some(Self(text.to_owned()))
            }

            /// The id as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

generated_id!(
    /// One request to Talaria, as it appears in logs and error bodies.
    RequestId,
    "req_"
);
generated_id!(
    /// One delivery handed to an agent.
    DeliveryId,
    "dlv_"
);
generated_id!(
    /// One file in the media store. The id names no path.
    ArtifactId,
    "art_"
);

macro_rules! shared_name {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl $name {
            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                Self(text.into())
            }
        }

        impl From<&str> for $name {
            fn from(text: &str) -> Self {
                Self(text.into())
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.0.as_ref().to_owned()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), &*self.0)
            }
        }
    };
}

shared_name!(
    /// The raw name of an MCP server, the key under `mcp_servers`.
    ServerName
);
shared_name!(
    /// What the caller calls its conversation; the key of per-session counters.
    SessionKey
);
shared_name!(
    /// The configured name of the bearer token a request came with.
    TokenName
);
