//! What Talaria's own tests stand on: scripted MCP servers and vision endpoints that can lie, the
//! service started as a real process, and waits for a condition with a deadline.
//!
//! Nothing here uses the code under test: a scripted server writes its JSON-RPC by hand, and the
//! harness talks to the service as any agent would.

pub mod exposition;
pub mod field_cases;
pub mod holdings;
pub mod look;
mod loopback;
pub mod payload;
pub mod pictures;
pub mod process;
pub mod records;
pub mod samples;
pub mod script;
pub mod server;
pub mod service;
pub mod vision;
pub mod wait;

pub use holdings::{Holdings, Slack};
pub use look::{Look, PictureForm};
pub use payload::PayloadSpec;
pub use pictures::SeenPicture;
pub use records::{Record, RecordKind, Records};
pub use script::{Action, Part, Script};
pub use server::{HttpServer, serve_stdio};
pub use service::{Answer, Programs, Service, ServiceBuilder};
pub use vision::{Gate, Place, RefusingPort, Reply, VisionEndpoint};
pub use wait::wait_for;
