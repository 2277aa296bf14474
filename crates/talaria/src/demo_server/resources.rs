//! The demo server's resources: the files of [`assets`](super::assets).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::ErrorData;
use rmcp::model::{ReadResourceResult, Resource, ResourceContents};

use super::assets::{self, Asset};

/// Every file as a listing entry.
pub(super) fn list() -> Vec<Resource> {
    assets::ALL.into_iter().map(link).collect()
}

/// Reads a file: text as text, everything else as a blob.
pub(super) fn read(uri: &str) -> Result<ReadResourceResult, ErrorData> {
    let Some(asset) = assets::find(uri) else {
        return Err(ErrorData::resource_not_found("no such file", None));
    };
    Ok(ReadResourceResult::new(vec![contents(asset, asset.uri)]))
}

/// A file as an entry of a listing or a link in a result.
pub(super) fn link(asset: Asset) -> Resource {
    let size = u64::try_from(asset.bytes.len()).unwrap_or(u64::MAX);
    Resource::new(asset.uri, asset.name)
        .with_description(asset.description)
        .with_mime_type(asset.media_type)
        .with_size(size)
}

/// A file as embedded contents under an address.
pub(super) fn contents(asset: Asset, uri: &str) -> ResourceContents {
    match std::str::from_utf8(asset.bytes) {
        Ok(text) if asset.media_type.starts_with("text/") => ResourceContents::text(text, uri),
        Ok(_) | Err(_) => ResourceContents::blob(STANDARD.encode(asset.bytes), uri),
    }
    .with_mime_type(asset.media_type)
}
