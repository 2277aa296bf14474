//! The scripted MCP server over stdio: its one argument is the file with the script.

use std::path::PathBuf;

use talaria_testkit::{Script, serve_stdio};

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let path = std::env::args_os().nth(1).map(PathBuf::from);
    let path = path.ok_or_else(|| anyhow::anyhow!("usage: scripted-server SCRIPT.json"))?;
    serve_stdio(Script::read(&path)?).await
}
