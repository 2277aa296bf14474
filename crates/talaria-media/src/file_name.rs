//! Folders and file names: where an artifact lies below the root, and what it is called there.
//!
//! Names arrive safe from the content rules; this module relies on nothing and defends again.

use std::path::Path;
use std::sync::Arc;

use talaria_content::ArtifactKind;
use ulid::Ulid;

/// Bytes of a name, prefix not counted; with the longest prefix it stays under 255.
const MAX_NAME_BYTES: usize = 200;
/// Characters of an extension without its dot that are worth keeping.
const MAX_EXTENSION_CHARS: usize = 12;
/// Hexadecimal digits that tell two files of one name apart.
const HEX_DIGITS: usize = 12;

/// A folder of the store. The order is that of the documentation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Folder {
    Images,
    Audio,
    Documents,
    Spillover,
}

impl Folder {
    pub(crate) const ALL: [Self; 4] = [Self::Images, Self::Audio, Self::Documents, Self::Spillover];

    pub(crate) const fn of(kind: ArtifactKind) -> Self {
        match kind {
            ArtifactKind::Image => Self::Images,
            ArtifactKind::Audio => Self::Audio,
            ArtifactKind::Document => Self::Documents,
            ArtifactKind::Text => Self::Spillover,
        }
    }

    pub(crate) const fn kind(self) -> ArtifactKind {
        match self {
            Self::Images => ArtifactKind::Image,
            Self::Audio => ArtifactKind::Audio,
            Self::Documents => ArtifactKind::Document,
            Self::Spillover => ArtifactKind::Text,
        }
    }

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Images => "images",
            Self::Audio => "audio",
            Self::Documents => "documents",
            Self::Spillover => "spillover",
        }
    }

    const fn prefix(self) -> &'static str {
        match self {
            Self::Images => "img_",
            Self::Audio => "audio_",
            Self::Documents => "doc_",
            Self::Spillover => "text_",
        }
    }
}

/// Where a file lies: the folder and its name there.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Location {
    pub(crate) folder: Folder,
    pub(crate) file: Arc<str>,
}

impl Location {
    /// A fresh random place for an artifact with a safe `name`.
    pub(crate) fn fresh(folder: Folder, name: &str, named: bool) -> Self {
        // Forty-eight of the eighty random bits of a ULID.
        let random = Ulid::generate().random() & 0xffff_ffff_ffff;
        let prefix = folder.prefix();
        let file = if named {
            format!("{prefix}{random:012x}_{name}")
        } else {
            let extension = extension(name).unwrap_or_default();
            format!("{prefix}{random:012x}{extension}")
        };
        Self {
            folder,
            file: file.into(),
        }
    }

    /// The place a path relative to the root names, where the store could have made it.
    pub(crate) fn of_path(below: &Path) -> Option<Self> {
        let mut names = below.components().map(|name| name.as_os_str().to_str());
        let (folder, file) = (names.next()??, names.next()??);
        let folder = Folder::ALL
            .into_iter()
            .find(|known| known.name() == folder)?;
        names
            .next()
            .is_none()
            .then(|| Self::parse(folder, file))
            .flatten()
    }

    /// Accepts only a name this store could have given; anything else is not ours to touch.
    pub(crate) fn parse(folder: Folder, file: &str) -> Option<Self> {
        let rest = file.strip_prefix(folder.prefix())?;
        let (digits, tail) = rest.split_at_checked(HEX_DIGITS)?;
        let hex = digits
            .bytes()
            .all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
        let shape = tail.is_empty() || tail.starts_with(['_', '.']);
        let plain = !tail.chars().any(is_forbidden) && file.len() < 255;
        (hex && shape && plain).then(|| Self {
            folder,
            file: file.into(),
        })
    }
}

/// Makes any string a name that can be one path component below the root.
pub(crate) fn safe_name(name: &str) -> String {
    let cleaned: String = name.chars().filter(|c| !is_forbidden(*c)).collect();
    let cleaned = cleaned.trim();
    if cleaned.is_empty() || cleaned.chars().all(|c| c == '.') {
        return "file".to_owned();
    }
    if cleaned.len() <= MAX_NAME_BYTES {
        return cleaned.to_owned();
    }
    let extension = extension(cleaned).unwrap_or_default();
    let stem = cleaned.strip_suffix(extension).unwrap_or(cleaned);
    let mut end = MAX_NAME_BYTES
        .saturating_sub(extension.len())
        .min(stem.len());
    while !stem.is_char_boundary(end) {
        end = end.saturating_sub(1);
    }
    let stem = stem.get(..end).unwrap_or_default();
    format!("{stem}{extension}")
}

/// The last extension with its dot, when it looks like one.
fn extension(name: &str) -> Option<&str> {
    let dot = name.rfind('.')?;
    let (_, extension) = name.split_at_checked(dot)?;
    let length = extension.chars().count().saturating_sub(1);
    ((1..=MAX_EXTENSION_CHARS).contains(&length)).then_some(extension)
}

fn is_forbidden(character: char) -> bool {
    matches!(character, '/' | '\\') || character.is_control()
}

#[cfg(test)]
mod tests {
    use std::path::{Component, Path};

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn unnamed_files_keep_only_the_extension() {
        let location = Location::fresh(Folder::Images, "image.png", false);
        assert_eq!(location.file.len(), "img_".len() + 12 + ".png".len());
        assert!(location.file.starts_with("img_") && location.file.ends_with(".png"));
        assert!(Location::fresh(Folder::Audio, "sound", false).file.len() == "audio_".len() + 12);
    }

    #[test]
    fn named_files_carry_the_name_behind_the_digits() {
        let location = Location::fresh(Folder::Documents, "a b.pdf", true);
        assert!(location.file.starts_with("doc_") && location.file.ends_with("_a b.pdf"));
    }

    #[test]
    fn f06_long_names_keep_their_extension_and_stay_under_255_bytes() {
        let name = safe_name(&format!("{}.pdf", "报".repeat(150)));
        assert!(
            name.len() <= MAX_NAME_BYTES && name.ends_with("报.pdf"),
            "{name}"
        );
        assert!(Location::fresh(Folder::Audio, &name, true).file.len() < 255);
    }

    #[test]
    fn names_that_are_no_names_become_one() {
        for hostile in ["", ".", "..", "...", "/", "\\", "\0", " \n ", "../..", "//"] {
            assert_eq!(safe_name(hostile), "file", "{hostile:?}");
        }
        assert_eq!(safe_name("../../etc/passwd"), "....etcpasswd");
    }

    #[test]
    fn foreign_names_are_not_recognised() {
        let foreign = [
            "notes.txt",
            "doc_",
            "doc_0123456789ab",
            "img_0123456789AB.png",
            "img_0123456789a",
            "img_0123456789abc.png",
            "img_0123456789ab_../x",
            "img_0123456789é",
        ];
        for name in foreign {
            assert_eq!(Location::parse(Folder::Images, name), None, "{name}");
        }
        assert!(Location::parse(Folder::Images, "img_0123456789ab.png").is_some());
    }

    proptest! {
        #[test]
        fn any_name_is_one_component_that_is_recognised_again(
            name in "(\\PC|[./\\\\\u{0}\n\u{202e}]){0,300}",
            folder in prop::sample::select(Folder::ALL.to_vec()),
            named: bool,
        ) {
            let name = safe_name(&name);
            prop_assert!(!name.is_empty() && name.len() <= MAX_NAME_BYTES);
            for text in [&name, &*Location::fresh(folder, &name, named).file] {
                let components: Vec<_> = Path::new(text).components().collect();
                prop_assert!(matches!(components[..], [Component::Normal(only)] if only == text));
            }
            let location = Location::fresh(folder, &name, named);
            prop_assert!(location.file.len() < 255);
            prop_assert_eq!(Location::parse(folder, &location.file), Some(location));
        }
    }
}
