//! Files outside of the store that a caller may name: only below roots the operator allowed.
//!
//! A path is resolved first, symbolic links included, and judged by where it really lies. Then
//! it is opened from its root one name at a time, following no link, so that nothing which is
//! changed in between leads elsewhere.

use std::fs::File;
use std::io;
use std::path::{Component, Path, PathBuf};

use talaria_types::ErrorCode;

use crate::directory::Directory;
use crate::error::StoreError;

/// Names of folders and files that hold secrets, wherever they lie.
const SECRET_NAMES: &[&str] = &[
    ".aws",
    ".azure",
    ".docker",
    ".gnupg",
    ".htpasswd",
    ".kube",
    ".netrc",
    ".npmrc",
    ".pgpass",
    ".pypirc",
    ".ssh",
    "authorized_keys",
    "mcp-tokens",
    "shadow",
];
/// Beginnings of names of files that hold secrets.
const SECRET_BEGINNINGS: &[&str] = &[".env", ".git-credentials", "credentials", "id_"];
/// Ends of names of files that hold keys.
const SECRET_ENDINGS: &[&str] = &[".jks", ".kdbx", ".key", ".keystore", ".p12", ".pem", ".pfx"];

/// The folders below which callers may name files.
#[derive(Clone, Debug, Default)]
pub struct AllowedRoots {
    roots: Vec<PathBuf>,
}

/// A file a caller named, open.
#[derive(Debug)]
pub struct LocalFile {
    /// For reading.
    pub file: File,
    /// Its size when it was opened.
    pub bytes: u64,
    /// Where it really lies.
    pub path: PathBuf,
}

impl AllowedRoots {
    /// Allows what lies below these folders.
    #[must_use]
    pub const fn new(roots: Vec<PathBuf>) -> Self {
        Self { roots }
    }

    /// Opens a regular file of at most `most` bytes.
    ///
    /// # Errors
    /// `path_refused` where the path is not absolute, climbs, leads out of every root or is of a
    /// kind that holds secrets; nothing is said of what lies there. `invalid_request` where an
    /// allowed path is no file, or is too large.
    pub fn open(&self, path: &Path, most: u64) -> Result<LocalFile, StoreError> {
        check_shape(path)?;
        let named = self.roots.iter().any(|root| path.starts_with(root));
        let resolved = path.canonicalize();
        let found = match &resolved {
            Ok(real) => self.below(real),
            Err(_) => None,
        };
        match (found, resolved) {
            (Some((root, rest)), Ok(real)) => open_below(&root, &rest, real, most),
            // Below a root, its absence may be told; elsewhere it is nobody's business.
            (None, Err(error)) if named => Err(unusable(&error)),
            (None | Some(_), Ok(_) | Err(_)) => Err(refused(
                "it does not lie below the media store or a folder of `talaria.images.allowed_roots`",
            )),
        }
    }

    /// The real root a real path lies below, and the way from there.
    fn below(&self, real: &Path) -> Option<(PathBuf, PathBuf)> {
        self.roots.iter().find_map(|root| {
            let root = root.canonicalize().ok()?;
            let rest = real.strip_prefix(&root).ok()?.to_owned();
            Some((root, rest))
        })
    }
}

/// Refuses what is not absolute or climbs, before the disk is asked anything.
pub(crate) fn check_shape(path: &Path) -> Result<(), StoreError> {
    if !path.is_absolute() {
        return Err(refused("it is not absolute"));
    }
    let climbs = path
        .components()
        .any(|component| component == Component::ParentDir);
    if climbs {
        return Err(refused("it contains `..`"));
    }
    Ok(())
}

fn open_below(root: &Path, rest: &Path, real: PathBuf, most: u64) -> Result<LocalFile, StoreError> {
    let names: Option<Vec<&str>> = rest
        .components()
        .map(|component| component.as_os_str().to_str())
        .collect();
    let names = names.ok_or_else(|| refused("it is not UTF-8"))?;
    if names.iter().any(|name| holds_secrets(name)) {
        return Err(refused("a file of that name may hold secrets"));
    }
    let (file, bytes) = walk(root, &names).map_err(|error| unusable(&error))?;
    if bytes > most {
        let detail = format!("the file has {bytes} bytes, the limit is {most}");
        return Err(StoreError::of_caller(ErrorCode::InvalidRequest, detail));
    }
    Ok(LocalFile {
        file,
        bytes,
        path: real,
    })
}

/// Opens folder after folder, then the file; a link anywhere on the way is an error.
fn walk(root: &Path, names: &[&str]) -> io::Result<(File, u64)> {
    let (name, folders) = names
        .split_last()
        .ok_or_else(|| io::Error::from(io::ErrorKind::IsADirectory))?;
    let mut directory = Directory::open_root(root)?;
    for folder in folders {
        directory = directory.folder(folder)?;
    }
    let (file, facts) = directory.open(name)?;
    Ok((file, facts.bytes))
}

fn holds_secrets(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_NAMES.contains(&name.as_str())
        || SECRET_BEGINNINGS.iter().any(|part| name.starts_with(part))
        || SECRET_ENDINGS.iter().any(|part| name.ends_with(part))
}

fn refused(why: &str) -> StoreError {
    StoreError::of_caller(
        ErrorCode::PathRefused,
        format!("the path is refused: {why}"),
    )
}

fn unusable(error: &io::Error) -> StoreError {
    let kind = error.kind();
    let why = if kind == io::ErrorKind::NotFound {
        "there is no such file"
    } else if kind == io::ErrorKind::PermissionDenied {
        "the service may not read it"
    } else {
        "it is no regular file"
    };
    StoreError::of_caller(
        ErrorCode::InvalidRequest,
        format!("the path cannot be used: {why}"),
    )
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;
    use std::os::unix::fs::symlink;

    use super::*;

    struct Scene {
        _folder: tempfile::TempDir,
        root: PathBuf,
        outside: PathBuf,
        roots: AllowedRoots,
    }

    fn scene() -> Scene {
        let folder = tempfile::tempdir().unwrap();
        let base = folder.path().canonicalize().unwrap();
        let (root, outside) = (base.join("allowed"), base.join("outside"));
        std::fs::create_dir_all(root.join("deep/er")).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        std::fs::write(root.join("deep/er/shot.png"), b"inside").unwrap();
        std::fs::write(outside.join("secret.png"), b"outside").unwrap();
        Scene {
            roots: AllowedRoots::new(vec![root.clone()]),
            _folder: folder,
            root,
            outside,
        }
    }

    fn code(scene: &Scene, path: &Path) -> ErrorCode {
        scene.roots.open(path, 1_000).unwrap_err().code
    }

    #[test]
    fn a_file_below_a_root_is_opened() {
        let scene = scene();
        let mut local = scene
            .roots
            .open(&scene.root.join("deep/er/shot.png"), 6)
            .unwrap();
        let mut read = Vec::new();
        local.file.read_to_end(&mut read).unwrap();
        assert_eq!((read.as_slice(), local.bytes), (b"inside".as_slice(), 6));
        assert_eq!(local.path, scene.root.join("deep/er/shot.png"));
    }

    #[test]
    fn a_link_that_stays_inside_is_resolved() {
        let scene = scene();
        symlink(scene.root.join("deep"), scene.root.join("link")).unwrap();
        let local = scene
            .roots
            .open(&scene.root.join("link/er/shot.png"), 1_000);
        assert_eq!(local.unwrap().path, scene.root.join("deep/er/shot.png"));
    }

    #[test]
    fn no_path_leads_out() {
        let scene = scene();
        symlink(&scene.outside, scene.root.join("way")).unwrap();
        symlink(
            scene.outside.join("secret.png"),
            scene.root.join("picture.png"),
        )
        .unwrap();
        let prefixed = PathBuf::from(format!("{}-evil", scene.root.display()));
        std::fs::create_dir(&prefixed).unwrap();
        std::fs::write(prefixed.join("shot.png"), b"beside").unwrap();
        for path in [
            scene.outside.join("secret.png"),
            scene.outside.join("absent.png"),
            scene.root.join("way/secret.png"),
            scene.root.join("picture.png"),
            scene.root.join("deep/../../outside/secret.png"),
            scene.root.join("deep/../deep/er/shot.png"),
            prefixed.join("shot.png"),
            PathBuf::from("/etc/passwd"),
            PathBuf::from("/proc/self/environ"),
            PathBuf::from("shot.png"),
            PathBuf::new(),
        ] {
            assert_eq!(
                code(&scene, &path),
                ErrorCode::PathRefused,
                "{}",
                path.display()
            );
        }
        let nowhere = AllowedRoots::default();
        let refused = nowhere
            .open(&scene.root.join("deep/er/shot.png"), 9)
            .unwrap_err();
        assert_eq!(refused.code, ErrorCode::PathRefused);
    }

    #[test]
    fn what_may_hold_secrets_is_refused() {
        let scene = scene();
        for name in [
            ".ssh/x.png",
            ".env",
            ".env.local",
            "id_rsa",
            "server.PEM",
            "tls.key",
            "Credentials.json",
        ] {
            let path = scene.root.join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, b"x").unwrap();
            assert_eq!(code(&scene, &path), ErrorCode::PathRefused, "{name}");
        }
    }

    #[test]
    fn what_is_no_file_is_told_below_a_root_only() {
        let scene = scene();
        let fifo = scene.root.join("pipe.png");
        nix::unistd::mkfifo(&fifo, nix::sys::stat::Mode::S_IRWXU).unwrap();
        for path in [
            scene.root.join("absent.png"),
            scene.root.join("deep"),
            scene.root.clone(),
            fifo,
        ] {
            assert_eq!(
                code(&scene, &path),
                ErrorCode::InvalidRequest,
                "{}",
                path.display()
            );
        }
        let large = scene
            .roots
            .open(&scene.root.join("deep/er/shot.png"), 5)
            .unwrap_err();
        assert!(large.detail.contains("6 bytes"), "{}", large.detail);
    }
}
