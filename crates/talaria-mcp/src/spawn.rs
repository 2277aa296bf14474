//! How a stdio server is started: its program, its environment, its process.

mod launcher;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use nix::unistd::{AccessFlags, access};
use talaria_types::{ErrorCode, Failure};
use tokio::process::{Child, Command};

/// Variables of ours that a server may see (specification 6.3), beside `XDG_*` and its own.
const ALLOWED: [&str; 8] = [
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "TERM", "SHELL", "TMPDIR",
];

const DEFAULT_PATH: &str = "/usr/local/bin:/usr/bin:/bin";

/// Where programs are looked for after the PATH: services often run with a short one.
const FALLBACKS: [&str; 3] = ["/usr/local/bin", "/opt/homebrew/bin", "~/.local/bin"];

/// What is started, ready for the operating system.
#[derive(Clone, Debug)]
pub(crate) struct Launch {
    program: PathBuf,
    args: Vec<String>,
    environment: BTreeMap<String, String>,
    directory: Option<PathBuf>,
}

/// What the configuration says of it.
#[derive(Clone, Debug)]
pub(crate) struct LaunchRequest {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: BTreeMap<String, String>,
    pub(crate) cwd: Option<PathBuf>,
}

impl Launch {
    /// Finds the program. Looks at the disk.
    pub(crate) fn prepare(
        request: LaunchRequest,
        ours: &BTreeMap<String, String>,
    ) -> Result<Self, Failure> {
        let environment = environment(ours, request.env);
        let home = environment.get("HOME").map(PathBuf::from);
        let directory = request.cwd.map(|path| expand(&path, home.as_deref()));
        let program = find(
            &request.command,
            &environment,
            home.as_deref(),
            directory.as_deref(),
        )?;
        if let Some(directory) = directory.as_deref().filter(|directory| !directory.is_dir()) {
            let detail = format!(
                "the working directory {} does not exist",
                directory.display()
            );
            return Err(Failure::new(ErrorCode::ConnectFailed, detail));
        }
        let behind =
            launcher::look_behind(&program, &request.args, &environment, directory.as_deref());
        let (program, args) = match behind {
            Some(behind) => (behind.program, behind.args),
            None => (program, request.args),
        };
        Ok(Self {
            program,
            args,
            environment,
            directory,
        })
    }

    /// Starts it in a process group of its own, with pipes.
    pub(crate) fn start(&self) -> std::io::Result<Child> {
        let mut command = Command::new(&self.program);
        command
            .args(&self.args)
            .env_clear()
            .envs(&self.environment)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0)
            .kill_on_drop(true);
        if let Some(directory) = &self.directory {
            command.current_dir(directory);
        }
        command.spawn()
    }

    pub(crate) fn program(&self) -> &Path {
        &self.program
    }
}

fn environment(
    ours: &BTreeMap<String, String>,
    own: BTreeMap<String, String>,
) -> BTreeMap<String, String> {
    let mut environment: BTreeMap<String, String> = ours
        .iter()
        .filter(|(name, _)| ALLOWED.contains(&name.as_str()) || name.starts_with("XDG_"))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    environment.extend(own);
    environment
        .entry("PATH".to_owned())
        .or_insert_with(|| DEFAULT_PATH.to_owned());
    environment
}

fn find(
    command: &str,
    environment: &BTreeMap<String, String>,
    home: Option<&Path>,
    directory: Option<&Path>,
) -> Result<PathBuf, Failure> {
    let expanded = expand(Path::new(command), home);
    if expanded.components().count() > 1 || command.contains('/') {
        let program = match directory {
            Some(directory) => directory.join(expanded),
            None => expanded,
        };
        return if is_executable(&program) {
            Ok(program)
        } else {
            Err(not_found(format!(
                "the command {command} is not an executable file"
            )))
        };
    }
    let path = environment
        .get("PATH")
        .map(String::as_str)
        .unwrap_or_default();
    let fallbacks = FALLBACKS
        .iter()
        .map(|folder| expand(Path::new(folder), home));
    std::env::split_paths(path)
        .filter(|folder| !folder.as_os_str().is_empty())
        .chain(fallbacks)
        .map(|folder| folder.join(&expanded))
        .find(|program| is_executable(program))
        .ok_or_else(|| {
            not_found(format!(
                "the command {command} was not found in the PATH {path}"
            ))
        })
}

fn not_found(detail: String) -> Failure {
    Failure::new(ErrorCode::CommandNotFound, detail)
}

fn is_executable(program: &Path) -> bool {
    program.is_file() && access(program, AccessFlags::X_OK).is_ok()
}

/// Puts the home folder in the place of a leading `~`.
fn expand(path: &Path, home: Option<&Path>) -> PathBuf {
    match (path.strip_prefix("~"), home) {
        (Ok(rest), Some(home)) if rest.as_os_str().is_empty() => home.to_path_buf(),
        (Ok(rest), Some(home)) => home.join(rest),
        (Ok(_) | Err(_), _) => path.to_path_buf(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs
            .iter()
            .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
            .collect()
    }

    fn request(command: &str) -> LaunchRequest {
        LaunchRequest {
            command: command.to_owned(),
            args: Vec::new(),
            env: BTreeMap::new(),
            cwd: None,
        }
    }

    #[test]
    fn only_allowed_variables_and_the_servers_own_are_passed_on() {
        let ours = map(&[
            ("PATH", "/usr/bin:/bin"),
            ("HOME", "/home/u"),
            ("XDG_CACHE_HOME", "/c"),
            ("OPENAI_API_KEY", "secret"),
            ("LD_PRELOAD", "x"),
        ]);
        let found = environment(&ours, map(&[("TOKEN", "t"), ("HOME", "/other")]));
        assert_eq!(
            found,
            map(&[
                ("PATH", "/usr/bin:/bin"),
                ("HOME", "/other"),
                ("XDG_CACHE_HOME", "/c"),
                ("TOKEN", "t")
            ])
        );
    }

    #[test]
    fn a_command_is_looked_up_in_the_filtered_path() {
        let ours = map(&[("PATH", "/nowhere:/bin:/usr/bin")]);
        let launch = Launch::prepare(request("sh"), &ours).unwrap();
        assert!(launch.program().ends_with("sh"), "{:?}", launch.program());
        assert!(launch.program().is_absolute());
    }

    #[test]
    fn a_command_that_does_not_exist_is_named() {
        let ours = map(&[("PATH", "/bin")]);
        for command in [
            "no-such-program-4711",
            "/bin/no-such-program-4711",
            "~/no-such-4711",
        ] {
            let failure = Launch::prepare(request(command), &ours).unwrap_err();
            assert_eq!(failure.code(), ErrorCode::CommandNotFound);
            assert!(failure.detail().contains(command), "{}", failure.detail());
        }
    }

    #[test]
    fn a_working_directory_that_does_not_exist_is_named() {
        let ours = map(&[("PATH", "/bin"), ("HOME", "/no-home-4711")]);
        let request = LaunchRequest {
            cwd: Some("~/work".into()),
            ..request("sh")
        };
        let failure = Launch::prepare(request, &ours).unwrap_err();
        assert!(
            failure.detail().contains("/no-home-4711/work"),
            "{}",
            failure.detail()
        );
    }

    #[test]
    fn the_home_folder_stands_for_a_tilde_at_the_start_only() {
        let home = Some(Path::new("/home/u"));
        assert_eq!(
            expand(Path::new("~/bin/x"), home),
            Path::new("/home/u/bin/x")
        );
        assert_eq!(expand(Path::new("~"), home), Path::new("/home/u"));
        assert_eq!(expand(Path::new("/a/~/b"), home), Path::new("/a/~/b"));
        assert_eq!(expand(Path::new("~other/x"), home), Path::new("~other/x"));
    }
}
