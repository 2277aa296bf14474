//! What the demo server can say of a picture without any model: what is measured of its file.

use std::path::Path;

/// What is true of a picture file, or why nothing is.
pub(super) fn look(path: &Path) -> Result<String, String> {
    if !path.is_absolute() {
        return Err(format!("{} is no absolute path", path.display()));
    }
    let bytes = std::fs::read(path)
        .map_err(|error| format!("{} cannot be read: {error}", path.display()))?;
    let (Ok(kind), Ok(size)) = (imagesize::image_type(&bytes), imagesize::blob_size(&bytes)) else {
        return Err(format!("{} is no picture", path.display()));
    };
    Ok(format!(
        "A picture in format {kind:?}, {} pixels wide and {} high, in {} bytes. (The demo server \
         has no model: this is measured, not seen.)",
        size.width,
        size.height,
        bytes.len()
    ))
}
