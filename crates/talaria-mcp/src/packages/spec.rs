//! Which packages a launcher is about to run, read off its command line.

use std::path::Path;

/// Where packages come from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Ecosystem {
    Npm,
    PyPi,
}

impl Ecosystem {
    /// The name OSV has for it.
    pub(super) const fn as_str(self) -> &'static str {
        match self {
            Self::Npm => "npm",
            Self::PyPi => "PyPI",
        }
    }
}

/// A package, and its version where that is certain.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Package {
    pub(super) ecosystem: Ecosystem,
    pub(super) name: String,
    pub(super) version: Option<String>,
}

/// How a launcher reads its arguments.
struct Launcher {
    ecosystem: Ecosystem,
    /// Options that name the package; what stands behind the options is a command of it then.
    sources: &'static [&'static str],
    /// Options that name a further package.
    extras: &'static [&'static str],
    /// Other options that take a value.
    valued: &'static [&'static str],
}

const NPX: Launcher = Launcher {
    ecosystem: Ecosystem::Npm,
    sources: &["-p", "--package"],
    extras: &[],
    valued: &[
        "--cache",
        "-c",
        "--call",
        "--loglevel",
        "--node-options",
        "--prefix",
        "--registry",
        "--userconfig",
        "-w",
        "--workspace",
    ],
};

const UVX: Launcher = Launcher {
    ecosystem: Ecosystem::PyPi,
    sources: &["--from"],
    extras: &["--with", "-w"],
    valued: &[
        "--allow-insecure-host",
        "--build-constraints",
        "-b",
        "--cache-dir",
        "--color",
        "--config-file",
        "--constraints",
        "-c",
        "--default-index",
        "--directory",
        "--env-file",
        "--exclude-newer",
        "--extra-index-url",
        "--find-links",
        "-f",
        "--index",
        "--index-strategy",
        "--index-url",
        "-i",
        "--keyring-provider",
        "--link-mode",
        "--overrides",
        "--prerelease",
        "--project",
        "--python",
        "-p",
        "--python-platform",
        "--refresh-package",
        "--reinstall-package",
        "--resolution",
        "--upgrade-package",
        "-P",
        "--with-editable",
        "--with-requirements",
    ],
};

const PIPX: Launcher = Launcher {
    ecosystem: Ecosystem::PyPi,
    sources: &["--spec"],
    extras: &["--with"],
    valued: &[
        "--backend",
        "--fetch-missing-python",
        "--index-url",
        "-i",
        "--pip-args",
        "--python",
    ],
};

/// The packages that this command line runs.
pub(super) fn packages(command: &str, args: &[String]) -> Vec<Package> {
    let name = Path::new(command)
        .file_stem()
        .and_then(|name| name.to_str());
    let words: Vec<&str> = args.iter().map(String::as_str).collect();
    let (launcher, words) = match (name, words.as_slice()) {
        (Some("npx" | "bunx"), words)
        | (Some("npm"), ["exec" | "x", words @ ..])
        | (Some("pnpm" | "yarn"), ["dlx", words @ ..]) => (&NPX, words),
        (Some("uvx"), words) | (Some("uv"), ["tool", "run", words @ ..]) => (&UVX, words),
        (Some("pipx"), ["run", words @ ..]) => (&PIPX, words),
        _ => return Vec::new(),
    };
    launcher.packages(words)
}

impl Launcher {
    fn packages(&self, words: &[&str]) -> Vec<Package> {
        let (mut sources, mut extras) = (Vec::new(), Vec::new());
        let mut runs = None;
        let mut words = words.iter().copied();
        while let Some(word) = words.next() {
            if !word.starts_with('-') {
                runs = Some(word);
                break;
            }
            if word == "--" {
                runs = words.next();
                break;
            }
            let (option, value) = match word.split_once('=') {
                Some((option, value)) => (option, Some(value)),
                None => (word, None),
            };
            if self.sources.contains(&option) {
                sources.extend(value.or_else(|| words.next()));
            } else if self.extras.contains(&option) {
                extras.extend(
                    value
                        .or_else(|| words.next())
                        .into_iter()
                        .flat_map(|list| list.split(',')),
                );
            } else if value.is_none() && self.valued.contains(&option) {
                words.next();
            }
        }
        if sources.is_empty() {
            sources.extend(runs);
        }
        let specs = sources.into_iter().chain(extras);
        specs.filter_map(|spec| self.read(spec.trim())).collect()
    }

    fn read(&self, spec: &str) -> Option<Package> {
        let (name, version) = match self.ecosystem {
            Ecosystem::Npm => npm(spec)?,
            Ecosystem::PyPi => python(spec)?,
        };
        Some(Package {
            ecosystem: self.ecosystem,
            name,
            version: version.map(str::to_owned),
        })
    }
}

/// `name`, `@scope/name`, either with `@version`. Addresses and paths are no packages of npm.
fn npm(spec: &str) -> Option<(String, Option<&str>)> {
    let (name, version) = match spec.rfind('@').filter(|at| *at > 0) {
        Some(at) => (spec.get(..at)?, spec.get(at + 1..)),
        None => (spec, None),
    };
    let depth = if name.starts_with('@') { 2 } else { 1 };
    let is_name = |part: &str| {
        !part.is_empty()
            && !part.starts_with('.')
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"-_.~@".contains(&byte))
    };
    let is_package = name.split('/').count() == depth && name.split('/').all(is_name);
    is_package.then(|| (name.to_owned(), version.filter(|version| is_exact(version))))
}

/// `name`, with extras in brackets, with `==version` or, as uvx takes it, `@version`. Names are
/// compared as PEP 503 says.
fn python(spec: &str) -> Option<(String, Option<&str>)> {
    let end = spec
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.')))
        .unwrap_or(spec.len());
    let (name, rest) = (spec.get(..end)?, spec.get(end..)?);
    let rest = match rest
        .strip_prefix('[')
        .and_then(|extras| extras.split_once(']'))
    {
        Some((_, rest)) => rest.trim(),
        None => rest.trim(),
    };
    let is_bound = rest.is_empty() || rest.starts_with(['=', '@', '<', '>', '~', '!', ';', ',']);
    if name.is_empty() || !is_bound || rest.contains("://") {
        return None;
    }
    let version = rest.strip_prefix("==").or_else(|| rest.strip_prefix('@'));
    let version = version.map(str::trim).filter(|version| is_exact(version));
    let mut normal = String::with_capacity(name.len());
    for part in name.split(['-', '_', '.']).filter(|part| !part.is_empty()) {
        if !normal.is_empty() {
            normal.push('-');
        }
        normal.push_str(&part.to_ascii_lowercase());
    }
    Some((normal, version))
}

/// A version, as against a range or a tag: every version may be run then.
fn is_exact(version: &str) -> bool {
    version.starts_with(|c: char| c.is_ascii_digit())
        && version
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b".+-_!".contains(&byte))
        && version.contains('.')
        && !version
            .split('.')
            .any(|part| part.eq_ignore_ascii_case("x"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(line: &str) -> Vec<String> {
        let mut words = line.split(' ').map(str::to_owned);
        let command = words.next().unwrap();
        let args: Vec<String> = words.collect();
        packages(&command, &args)
            .into_iter()
            .map(|package| {
                let version = package.version.map(|version| format!(" {version}"));
                let ecosystem = package.ecosystem.as_str();
                format!(
                    "{ecosystem} {}{}",
                    package.name,
                    version.unwrap_or_default()
                )
            })
            .collect()
    }

    #[test]
    fn packages_are_read_off_the_command_lines_of_launchers() {
        for (line, expected) in [
            ("npx -y @scope/server --stdio", &["npm @scope/server"][..]),
            ("npx -y @scope/server@1.2.3", &["npm @scope/server 1.2.3"]),
            ("/usr/bin/npx server@latest", &["npm server"]),
            ("npx server@^1.2.0", &["npm server"]),
            ("npx server@1", &["npm server"]),
            (
                "npx -p pkg -p other@2.0.0 cmd",
                &["npm pkg", "npm other 2.0.0"],
            ),
            ("npx --package=@a/b -- cmd --flag", &["npm @a/b"]),
            ("npx --registry https://r.example pkg", &["npm pkg"]),
            ("npx -- pkg -p arg", &["npm pkg"]),
            ("npx pkg -p arg", &["npm pkg"]),
            ("npx github:user/repo", &[]),
            ("npx ./local", &[]),
            ("npx https://x.example/p.tgz", &[]),
            ("npm exec -- pkg@1.0.0", &["npm pkg 1.0.0"]),
            ("npm install pkg", &[]),
            ("bunx pkg", &["npm pkg"]),
            ("pnpm dlx pkg", &["npm pkg"]),
            ("uvx mcp-server-time", &["PyPI mcp-server-time"]),
            ("uvx Mcp_Server.Time@1.0.0", &["PyPI mcp-server-time 1.0.0"]),
            ("uvx --from pkg[cli]==2.1 tool", &["PyPI pkg 2.1"]),
            (
                "uvx --python 3.12 --with a,b==1.0 tool",
                &["PyPI tool", "PyPI a", "PyPI b 1.0"],
            ),
            ("uvx --from git+https://x.example/r tool", &[]),
            ("uvx pkg>=1.0", &["PyPI pkg"]),
            ("uv tool run pkg", &["PyPI pkg"]),
            ("uv run server.py", &[]),
            ("pipx run --spec pkg==1.0 tool", &["PyPI pkg 1.0"]),
            ("pipx run pkg", &["PyPI pkg"]),
            ("pipx install pkg", &[]),
            ("node server.js", &[]),
            ("npx", &[]),
        ] {
            assert_eq!(found(line), expected, "{line}");
        }
    }
}
