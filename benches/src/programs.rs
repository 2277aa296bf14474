//! The programs under load: built in the profile of the bench itself.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use talaria_testkit::Programs;

/// Builds the service and the scripted server with cargo and says where they are.
///
/// # Errors
/// They do not build.
pub fn build() -> anyhow::Result<Programs> {
    let here = std::env::current_exe()?;
    let folder = here.parent().context("the folder of this program")?;
    let release = !cfg!(debug_assertions);
    let mut cargo = Command::new(env!("CARGO"));
    // The whole workspace, so that features unify as in the build of this program.
    cargo.args(["build", "--quiet", "--workspace", "--bins"]);
    if release {
        cargo.arg("--release");
    }
    // The folder of this program is `<target>/<profile>`.
    let target = folder.parent().context("the target folder")?;
    let status = cargo
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")))
        .env("CARGO_TARGET_DIR", target)
        .status()?;
    ensure!(status.success(), "the programs do not build");
    Ok(Programs {
        talaria: leaked(folder.join("talaria"))?,
        server: leaked(folder.join("scripted-server"))?,
    })
}

/// The paths live as long as the program, like those cargo gives to tests.
fn leaked(path: PathBuf) -> anyhow::Result<&'static str> {
    ensure!(path.exists(), "{} was not built", path.display());
    let path = path
        .into_os_string()
        .into_string()
        .ok()
        .context("a path that is UTF-8")?;
    Ok(Box::leak(path.into_boxed_str()))
}
