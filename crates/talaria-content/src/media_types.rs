//! Our own table of media types and file extensions (specification 1.6).

/// One file extension and its type. The first row of a type names its usual extension.
#[derive(Clone, Copy, Debug)]
struct Row(&'static str, &'static str);

/// Row order decides which extension a type gets.
const TABLE: &[Row] = &[
    // Documents.
    Row("pdf", "application/pdf"),
    Row(
        "docx",
        "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    ),
    Row(
        "xlsx",
        "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    ),
    Row(
        "pptx",
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    ),
    Row("doc", "application/msword"),
    Row("xls", "application/vnd.ms-excel"),
    Row("ppt", "application/vnd.ms-powerpoint"),
    Row("msg", "application/vnd.ms-outlook"),
    Row("odt", "application/vnd.oasis.opendocument.text"),
    Row("ods", "application/vnd.oasis.opendocument.spreadsheet"),
    Row("odp", "application/vnd.oasis.opendocument.presentation"),
    Row("epub", "application/epub+zip"),
    Row("rtf", "application/rtf"),
    Row("ps", "application/postscript"),
    Row("eps", "application/postscript"),
    // Archives.
    Row("zip", "application/zip"),
    Row("gz", "application/gzip"),
    Row("tgz", "application/gzip"),
    Row("tar", "application/x-tar"),
    Row("7z", "application/x-7z-compressed"),
    Row("bz2", "application/x-bzip2"),
    Row("xz", "application/x-xz"),
    Row("zst", "application/zstd"),
    Row("rar", "application/vnd.rar"),
    Row("jar", "application/java-archive"),
    Row("apk", "application/vnd.android.package-archive"),
    // Text.
    Row("txt", "text/plain"),
    Row("text", "text/plain"),
    Row("log", "text/plain"),
    Row("ini", "text/plain"),
    Row("conf", "text/plain"),
    Row("cfg", "text/plain"),
    Row("md", "text/markdown"),
    Row("markdown", "text/markdown"),
    Row("html", "text/html"),
    Row("htm", "text/html"),
    Row("xhtml", "application/xhtml+xml"),
    Row("css", "text/css"),
    Row("csv", "text/csv"),
    Row("tsv", "text/tab-separated-values"),
    Row("js", "text/javascript"),
    Row("mjs", "text/javascript"),
    Row("ics", "text/calendar"),
    Row("vcf", "text/vcard"),
    Row("py", "text/x-python"),
    Row("rs", "text/x-rust"),
    Row("c", "text/x-c"),
    Row("h", "text/x-c"),
    Row("java", "text/x-java"),
    Row("sh", "text/x-shellscript"),
    Row("diff", "text/x-diff"),
    Row("patch", "text/x-diff"),
    Row("json", "application/json"),
    Row("geojson", "application/geo+json"),
    Row("jsonld", "application/ld+json"),
    Row("ipynb", "application/x-ipynb+json"),
    Row("jsonl", "application/jsonl"),
    Row("ndjson", "application/x-ndjson"),
    Row("xml", "application/xml"),
    Row("xsd", "application/xml"),
    Row("xsl", "application/xslt+xml"),
    Row("rss", "application/rss+xml"),
    Row("atom", "application/atom+xml"),
    Row("yaml", "application/yaml"),
    Row("yml", "application/yaml"),
    Row("toml", "application/toml"),
    Row("sql", "application/sql"),
    Row("eml", "message/rfc822"),
    // Pictures.
    Row("png", "image/png"),
    Row("apng", "image/apng"),
    Row("jpg", "image/jpeg"),
    Row("jpeg", "image/jpeg"),
    Row("jpe", "image/jpeg"),
    Row("jfif", "image/jpeg"),
    Row("gif", "image/gif"),
    Row("webp", "image/webp"),
    Row("bmp", "image/bmp"),
    Row("dib", "image/bmp"),
    Row("tiff", "image/tiff"),
    Row("tif", "image/tiff"),
    Row("ico", "image/vnd.microsoft.icon"),
    Row("heic", "image/heic"),
    Row("heif", "image/heif"),
    Row("avif", "image/avif"),
    Row("jxl", "image/jxl"),
    Row("jp2", "image/jp2"),
    Row("svg", "image/svg+xml"),
    Row("psd", "image/vnd.adobe.photoshop"),
    Row("tga", "image/x-tga"),
    Row("ppm", "image/x-portable-pixmap"),
    // Sound.
    Row("wav", "audio/wav"),
    Row("mp3", "audio/mpeg"),
    Row("m4a", "audio/mp4"),
    Row("m4b", "audio/mp4"),
    Row("oga", "audio/ogg"),
    Row("ogg", "audio/ogg"),
    Row("flac", "audio/flac"),
    Row("aac", "audio/aac"),
    Row("opus", "audio/opus"),
    Row("weba", "audio/webm"),
    Row("aiff", "audio/aiff"),
    Row("aif", "audio/aiff"),
    Row("mid", "audio/midi"),
    Row("midi", "audio/midi"),
    Row("amr", "audio/amr"),
    // Film.
    Row("mp4", "video/mp4"),
    Row("m4v", "video/mp4"),
    Row("mov", "video/quicktime"),
    Row("webm", "video/webm"),
    Row("mkv", "video/x-matroska"),
    Row("avi", "video/x-msvideo"),
    Row("ogv", "video/ogg"),
    Row("mpg", "video/mpeg"),
    Row("mpeg", "video/mpeg"),
    Row("flv", "video/x-flv"),
    Row("wmv", "video/x-ms-wmv"),
    // The rest.
    Row("wasm", "application/wasm"),
    Row("sqlite", "application/vnd.sqlite3"),
    Row("db", "application/vnd.sqlite3"),
    Row("exe", "application/vnd.microsoft.portable-executable"),
    Row("dll", "application/vnd.microsoft.portable-executable"),
    Row("woff", "font/woff"),
    Row("woff2", "font/woff2"),
    Row("ttf", "font/ttf"),
    Row("otf", "font/otf"),
    Row("deb", "application/vnd.debian.binary-package"),
    Row("rpm", "application/x-rpm"),
    Row("parquet", "application/vnd.apache.parquet"),
    Row("bin", "application/octet-stream"),
];

/// Other spellings of the types above.
const ALIASES: &[(&str, &str)] = &[
    ("application/x-pdf", "application/pdf"),
    ("application/x-zip", "application/zip"),
    ("application/x-zip-compressed", "application/zip"),
    ("application/zip-compressed", "application/zip"),
    ("application/x-gzip", "application/gzip"),
    ("application/x-tgz", "application/gzip"),
    ("application/x-rar-compressed", "application/vnd.rar"),
    ("application/x-rar", "application/vnd.rar"),
    ("application/x-rtf", "application/rtf"),
    ("text/rtf", "application/rtf"),
    ("text/json", "application/json"),
    ("application/x-json", "application/json"),
    ("text/xml", "application/xml"),
    ("text/yaml", "application/yaml"),
    ("text/x-yaml", "application/yaml"),
    ("application/x-yaml", "application/yaml"),
    ("text/x-markdown", "text/markdown"),
    ("application/javascript", "text/javascript"),
    ("application/x-javascript", "text/javascript"),
    ("application/csv", "text/csv"),
    ("image/jpg", "image/jpeg"),
    ("image/pjpeg", "image/jpeg"),
    ("image/x-png", "image/png"),
    ("application/png", "image/png"),
    ("application/jpeg", "image/jpeg"),
    ("image/x-bmp", "image/bmp"),
    ("image/x-ms-bmp", "image/bmp"),
    ("image/tif", "image/tiff"),
    ("image/x-icon", "image/vnd.microsoft.icon"),
    ("image/ico", "image/vnd.microsoft.icon"),
    ("image/svg", "image/svg+xml"),
    ("image/heic-sequence", "image/heic"),
    ("image/heif-sequence", "image/heif"),
    ("audio/x-wav", "audio/wav"),
    ("audio/wave", "audio/wav"),
    ("audio/vnd.wave", "audio/wav"),
    ("audio/mp3", "audio/mpeg"),
    ("audio/x-mp3", "audio/mpeg"),
    ("audio/m4a", "audio/mp4"),
    ("audio/x-m4a", "audio/mp4"),
    ("audio/x-flac", "audio/flac"),
    ("audio/x-aac", "audio/aac"),
    ("audio/aacp", "audio/aac"),
    ("audio/x-aiff", "audio/aiff"),
    ("video/x-m4v", "video/mp4"),
    ("video/avi", "video/x-msvideo"),
    ("application/font-woff", "font/woff"),
    ("application/x-sqlite3", "application/vnd.sqlite3"),
];

/// Types that say nothing: the same as no declaration.
const GENERIC: &[&str] = &[
    "application/octet-stream",
    "binary/octet-stream",
    "application/binary",
    "application/unknown",
    "application/x-binary",
    "unknown/unknown",
];

/// Formats that are a ZIP archive inside.
const ZIP_BASED: &[&str] = &[
    "application/zip",
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document",
    "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    "application/vnd.openxmlformats-officedocument.presentationml.presentation",
    "application/vnd.oasis.opendocument.text",
    "application/vnd.oasis.opendocument.spreadsheet",
    "application/vnd.oasis.opendocument.presentation",
    "application/epub+zip",
    "application/java-archive",
    "application/vnd.android.package-archive",
];

/// Formats that are an OLE container inside.
const OLE_BASED: &[&str] = &[
    "application/msword",
    "application/vnd.ms-excel",
    "application/vnd.ms-powerpoint",
    "application/vnd.ms-outlook",
];

/// `type/subtype` in lower case without parameters; `None` when it is not of that shape.
pub(crate) fn base(declared: &str) -> Option<String> {
    let base = declared
        .split(';')
        .next()
        .unwrap_or_default()
        .trim()
        .to_ascii_lowercase();
    let (kind, subtype) = base.split_once('/')?;
    let is_token = |part: &str| {
        !part.is_empty()
            && part.len() <= 127
            && part
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || b"!#$&^_.+-*".contains(&byte))
    };
    (is_token(kind) && is_token(subtype)).then_some(base)
}

/// The usual spelling of a type.
pub(crate) fn usual(media_type: &str) -> &str {
    ALIASES
        .iter()
        .find(|(alias, _)| *alias == media_type)
        .map_or(media_type, |(_, usual)| usual)
}

/// Whether a declared type says nothing.
pub(crate) fn is_generic(media_type: &str) -> bool {
    GENERIC.contains(&media_type)
}

/// The usual extension of a type, without the dot.
pub(crate) fn extension_of(media_type: &str) -> Option<&'static str> {
    let media_type = usual(media_type);
    TABLE
        .iter()
        .find(|Row(_, of)| *of == media_type)
        .map(|Row(extension, _)| *extension)
}

/// The type of an extension, given without the dot and in any case.
pub(crate) fn type_of(extension: &str) -> Option<&'static str> {
    TABLE
        .iter()
        .find(|Row(of, _)| of.eq_ignore_ascii_case(extension))
        .map(|Row(_, of)| *of)
}

/// Whether an extension may stand for a type: it is one of its own, or one of a format built
/// on it.
pub(crate) fn extension_fits(extension: &str, media_type: &str) -> bool {
    let media_type = usual(media_type);
    match type_of(extension) {
        Some(of) => of == media_type || refines(of, media_type),
        None => is_container(media_type),
    }
}

fn is_known(media_type: &str) -> bool {
    TABLE.iter().any(|Row(_, of)| *of == media_type)
}

/// Whether `finer` is a format built on `coarse`, so that bytes of the one look like the other.
pub(crate) fn refines(finer: &str, coarse: &str) -> bool {
    let finer = usual(finer);
    match usual(coarse) {
        "application/zip" => {
            ZIP_BASED.contains(&finer)
                || finer.ends_with("+zip")
                || (finer.starts_with("application/vnd.") && !is_known(finer))
        }
        "application/x-ole-storage" => OLE_BASED.contains(&finer),
        "application/xml" => finer.ends_with("+xml") || is_textual(finer),
        "text/html" => is_textual(finer),
        "image/png" => finer == "image/apng",
        "image/heif" => matches!(finer, "image/heic" | "image/avif"),
        "audio/ogg" => matches!(finer, "audio/opus" | "video/ogg" | "audio/vorbis"),
        "video/webm" => matches!(finer, "audio/webm" | "video/x-matroska"),
        "video/mp4" => matches!(finer, "audio/mp4" | "video/quicktime" | "audio/aac"),
        "audio/mp4" => matches!(finer, "audio/aac"),
        _ => false,
    }
}

/// Whether files of many kinds are stored in this format.
fn is_container(media_type: &str) -> bool {
    matches!(
        media_type,
        "application/zip"
            | "application/gzip"
            | "application/x-ole-storage"
            | "application/xml"
            | "text/html"
            | "text/x-shellscript"
            | "image/tiff"
    )
}

/// Whether content of this type is text that a model can read as it is.
pub(crate) fn is_textual(media_type: &str) -> bool {
    let media_type = usual(media_type);
    if media_type == "image/svg+xml" {
        return false;
    }
    media_type.starts_with("text/")
        || media_type.ends_with("+json")
        || media_type.ends_with("+xml")
        || matches!(
            media_type,
            "application/json"
                | "application/jsonl"
                | "application/x-ndjson"
                | "application/xml"
                | "application/yaml"
                | "application/toml"
                | "application/sql"
        )
}

/// Whether files of this picture type start with bytes that [`crate::sniff`] knows, so that
/// bytes it does not know are no such picture.
pub(crate) fn is_recognised_picture(media_type: &str) -> bool {
    matches!(
        usual(media_type),
        "image/png"
            | "image/apng"
            | "image/jpeg"
            | "image/gif"
            | "image/webp"
            | "image/bmp"
            | "image/tiff"
            | "image/vnd.microsoft.icon"
            | "image/heic"
            | "image/heif"
            | "image/avif"
            | "image/jxl"
            | "image/jp2"
            | "image/svg+xml"
            | "image/vnd.adobe.photoshop"
    )
}

#[cfg(test)]
mod tests {
    use super::{base, extension_fits, extension_of, is_textual, type_of};

    #[test]
    fn reads_the_base_of_a_declared_type() {
        assert_eq!(
            base("IMAGE/PNG; charset=binary").as_deref(),
            Some("image/png")
        );
        assert_eq!(
            base(" audio/ogg;codecs=opus ").as_deref(),
            Some("audio/ogg")
        );
        for text in ["", "png", "image/", "/png", "a/b/c", "image/p ng", "x]\n/y"] {
            assert_eq!(base(text), None, "{text:?}");
        }
    }

    #[test]
    fn names_the_usual_extension_of_a_type() {
        for (media_type, extension) in [
            ("image/jpg", "jpg"),
            ("image/jpeg", "jpg"),
            ("image/tiff", "tiff"),
            ("text/xml", "xml"),
            ("application/xml", "xml"),
            ("audio/mpeg", "mp3"),
            ("audio/mp4", "m4a"),
            ("audio/ogg", "oga"),
            ("text/markdown", "md"),
        ] {
            assert_eq!(extension_of(media_type), Some(extension), "{media_type}");
        }
        assert_eq!(extension_of("application/x-unknown"), None);
    }

    #[test]
    fn knows_types_of_extensions_in_any_case() {
        assert_eq!(type_of("PDF"), Some("application/pdf"));
        assert_eq!(type_of("nothing"), None);
    }

    #[test]
    fn lets_formats_keep_their_own_extension() {
        assert!(extension_fits("docx", "application/zip"));
        assert!(extension_fits("kmz", "application/zip"));
        assert!(extension_fits("JPEG", "image/jpeg"));
        assert!(!extension_fits("pdf", "application/zip"));
        assert!(!extension_fits("png", "image/jpeg"));
        assert!(!extension_fits("v2", "application/pdf"));
    }

    #[test]
    fn tells_readable_types() {
        for media_type in [
            "text/plain",
            "application/json",
            "application/problem+json",
            "text/xml",
        ] {
            assert!(is_textual(media_type), "{media_type}");
        }
        for media_type in [
            "application/pdf",
            "image/svg+xml",
            "application/octet-stream",
        ] {
            assert!(!is_textual(media_type), "{media_type}");
        }
    }
}
