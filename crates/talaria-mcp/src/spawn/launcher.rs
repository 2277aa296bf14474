//! Looks through `npx`: a launcher that stays resident costs two processes and a second.
//!
//! Only what `npx` would certainly do is done in its place: run a package that is in its cache
//! already. Everything else is left to it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use serde_json::Value;

/// Flags that change nothing about what runs.
const HARMLESS: [&str; 5] = ["-y", "--yes", "-q", "--quiet", "--prefer-offline"];

/// What stands behind a launcher.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Behind {
    pub(super) program: PathBuf,
    pub(super) args: Vec<String>,
}

/// Finds the program that `npx` would start with these arguments. Looks at the disk.
pub(super) fn look_behind(
    program: &Path,
    args: &[String],
    environment: &BTreeMap<String, String>,
    directory: Option<&Path>,
) -> Option<Behind> {
    if program.file_name()? != "npx" {
        return None;
    }
    // A project of its own comes first with npx.
    if directory.is_some_and(|directory| directory.join("node_modules").exists()) {
        return None;
    }
    let at = args
        .iter()
        .position(|arg| !HARMLESS.contains(&arg.as_str()))?;
    let (package, version) = parse_spec(args.get(at)?)?;
    let program = newest_cached(&cache(environment)?, package, version)?;
    Some(Behind {
        program,
        args: args.get(at + 1..)?.to_vec(),
    })
}

/// `name`, `@scope/name`, or either with an exact version. A tag or a range has to be looked up.
fn parse_spec(spec: &str) -> Option<(&str, Option<&str>)> {
    if spec.starts_with('-') || spec.contains([':', '\\']) {
        return None;
    }
    let (name, version) = match spec.rfind('@').filter(|at| *at > 0) {
        Some(at) => (spec.get(..at)?, Some(spec.get(at + 1..)?)),
        None => (spec, None),
    };
    let is_exact = |version: &str| {
        version.split('.').count() == 3
            && version.split('.').all(|part| part.parse::<u64>().is_ok())
    };
    let depth = if name.starts_with('@') { 2 } else { 1 };
    let is_plain = name.split('/').count() == depth && !name.contains("..");
    (is_plain && version.is_none_or(is_exact)).then_some((name, version))
}

fn cache(environment: &BTreeMap<String, String>) -> Option<PathBuf> {
    let configured = environment.get("npm_config_cache").map(PathBuf::from);
    let npm = configured.or_else(|| Some(Path::new(environment.get("HOME")?).join(".npm")))?;
    Some(npm.join("_npx"))
}

fn newest_cached(cache: &Path, package: &str, version: Option<&str>) -> Option<PathBuf> {
    let entries = std::fs::read_dir(cache).ok()?;
    entries
        .filter_map(|entry| {
            let folder = entry.ok()?.path();
            let asked_for = read_json(&folder.join("package.json"))?;
            asked_for.get("dependencies")?.get(package)?;
            let program = cached_program(&folder.join("node_modules"), package, version)?;
            let changed = std::fs::metadata(&folder)
                .and_then(|folder| folder.modified())
                .ok()?;
            Some((changed, program))
        })
        .max()
        .map(|(_, program)| program)
}

fn cached_program(modules: &Path, package: &str, version: Option<&str>) -> Option<PathBuf> {
    let manifest = read_json(&modules.join(package).join("package.json"))?;
    let found = manifest.get("version").and_then(Value::as_str)?;
    if version.is_some_and(|version| version != found) {
        return None;
    }
    let own_name = package.rsplit('/').next()?;
    let name = match manifest.get("bin")? {
        Value::String(_) => own_name,
        Value::Object(programs) if programs.len() == 1 => programs.keys().next()?,
        Value::Object(programs) => programs.get_key_value(own_name)?.0,
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) => return None,
    };
    if name.contains(['/', '\\']) {
        return None;
    }
    let program = modules.join(".bin").join(name);
    super::is_executable(&program).then_some(program)
}

fn read_json(path: &Path) -> Option<Value> {
    serde_json::from_slice(&std::fs::read(path).ok()?).ok()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use serde_json::json;

    use super::*;

    fn cached(home: &Path, hash: &str, package: &str, version: &str, bin: &Value) {
        let folder = home.join(".npm/_npx").join(hash);
        let own = folder.join("node_modules").join(package);
        let programs = folder.join("node_modules/.bin");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::create_dir_all(&programs).unwrap();
        let asked = json!({ "dependencies": { package: "^1" } });
        std::fs::write(folder.join("package.json"), asked.to_string()).unwrap();
        let manifest = json!({ "name": package, "version": version, "bin": bin });
        std::fs::write(own.join("package.json"), manifest.to_string()).unwrap();
        let own_name = package.rsplit('/').next().unwrap().to_owned();
        let names: Vec<String> = bin.as_object().map_or_else(
            || vec![own_name],
            |programs| programs.keys().cloned().collect(),
        );
        for name in names {
            let program = programs.join(name);
            std::fs::write(&program, "#!/bin/sh\n").unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
    }

    fn behind(home: &Path, args: &[&str]) -> Option<(String, Vec<String>)> {
        let environment =
            BTreeMap::from([("HOME".to_owned(), home.to_string_lossy().into_owned())]);
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let found = look_behind(Path::new("/usr/bin/npx"), &args, &environment, None)?;
        let inside = found.program.strip_prefix(home.join(".npm/_npx")).ok()?;
        Some((inside.to_string_lossy().into_owned(), found.args))
    }

    #[test]
    fn a_cached_package_is_started_itself() {
        let home = tempfile::tempdir().unwrap();
        cached(
            home.path(),
            "a1",
            "@scope/server-x",
            "1.2.3",
            &json!({ "mcp-server-x": "x.js" }),
        );
        cached(home.path(), "b2", "plain", "0.0.1", &json!("run.js"));
        cached(
            home.path(),
            "c3",
            "two",
            "0.0.1",
            &json!({ "other": "o.js", "two": "t.js" }),
        );
        for (args, program, rest) in [
            (
                &["-y", "@scope/server-x", "--stdio", "-y"][..],
                "a1/node_modules/.bin/mcp-server-x",
                &["--stdio", "-y"][..],
            ),
            (
                &["@scope/server-x@1.2.3"],
                "a1/node_modules/.bin/mcp-server-x",
                &[],
            ),
            (&["--yes", "plain"], "b2/node_modules/.bin/plain", &[]),
            (&["two", "a"], "c3/node_modules/.bin/two", &["a"]),
        ] {
            let rest: Vec<String> = rest.iter().map(|arg| (*arg).to_owned()).collect();
            assert_eq!(
                behind(home.path(), args),
                Some((program.to_owned(), rest)),
                "{args:?}"
            );
        }
    }

    #[test]
    fn what_npx_would_have_to_look_up_is_left_to_it() {
        let home = tempfile::tempdir().unwrap();
        cached(home.path(), "a1", "server", "1.2.3", &json!("x.js"));
        cached(
            home.path(),
            "b2",
            "many",
            "1.0.0",
            &json!({ "a": "a.js", "b": "b.js" }),
        );
        cached(
            home.path(),
            "c3",
            "evil",
            "1.0.0",
            &json!({ "../../x": "a.js" }),
        );
        for args in [
            &["-y", "server@latest"][..],
            &["server@^1.0.0"],
            &["server@1.2.4"],
            &["-p", "server", "server"],
            &["--package=server", "server"],
            &["unknown"],
            &["many"],
            &["evil"],
            &["./server"],
            &["github:x/server"],
            &["-y"],
            &[],
        ] {
            assert_eq!(behind(home.path(), args), None, "{args:?}");
        }
    }
}
