//! Resource links: shown with the tool that reads them, never fetched (specification 1.13).

use talaria_types::NoticeCode;

use crate::base64_guard::decode;
use crate::delivery::{BlockFate, Link};
use crate::fields::{self, Object};
use crate::names::hinted_name;
use crate::plan::ReaderTool;
use crate::plan::lines::{Audience, PartContent};
use crate::plan::planner::{Planner, Refusal};
use crate::sanitise::{address, field, one_line};

use super::declared;
use super::resource::how_to_read;

/// Longest name of a link.
const MAX_NAME_CHARACTERS: usize = 1_000;
/// Longest description of a link.
const MAX_DESCRIPTION_CHARACTERS: usize = 4_000;

/// Whether a block is a link: by its type, or because it only has an address.
pub(super) fn is_link(kind: &str, object: &Object) -> bool {
    let has_address = fields::words(object, &["uri"]).is_some();
    let has_resource = object.get("resource").is_some_and(|inner| !inner.is_null());
    (kind == "resource_link" && (has_address || !has_resource))
        || (has_address && !has_resource && !object.contains_key("blob") && kind != "text")
}

impl Planner {
    pub(super) fn read_link(&mut self, index: usize, object: &Object) {
        let Some(uri) = fields::words(object, &["uri"]) else {
            self.refuse_link(index, object);
            return;
        };
        if !self.is_hermes()
            && let Some(resource) = inline_resource(uri, object)
        {
            self.read_resource(index, resource, "/link");
            return;
        }
        let reader = self.request.reader.clone();
        let mut link = read(uri, object, &reader);
        let description = link.description.as_mut();
        let mut is_cut = cut(&mut link.name, MAX_NAME_CHARACTERS);
        is_cut |= description.is_some_and(|text| cut(text, MAX_DESCRIPTION_CHARACTERS));
        if is_cut {
            self.notices.add(
                NoticeCode::TextTruncated,
                Some(index),
                "the name or the description of a resource link is too long and was cut",
            );
        }
        let line = line(&link, &reader);
        self.record(index, BlockFate::Delivered);
        self.has_usable_text = true;
        self.links.push(link);
        self.push(Some(index), Audience::Everybody, PartContent::Own(line));
    }

    /// In format `hermes` such a link leaves nothing (case C26).
    fn refuse_link(&mut self, index: usize, object: &Object) {
        let name = fields::words(object, &["name", "title"])
            .map(|name| format!(": name={}", field(name)))
            .unwrap_or_default();
        self.refuse(Refusal {
            index,
            code: NoticeCode::EmptyLink,
            message: format!("MCP resource link dropped, it has no address{name}"),
            is_usable: false,
            audience: Audience::NotHermes,
        });
    }
}

/// A link that holds what it points to: a resource under another name.
fn inline_resource(uri: &str, object: &Object) -> Option<Object> {
    let is_data = uri
        .get(..5)
        .is_some_and(|scheme| scheme.eq_ignore_ascii_case("data:"));
    if !is_data || decode(uri).is_err() {
        return None;
    }
    let mut resource = Object::new();
    resource.insert("blob".to_owned(), uri.into());
    for name in ["name", "title", "mimeType"] {
        if let Some(value) = object.get(name) {
            resource.insert(name.to_owned(), value.clone());
        }
    }
    Some(resource)
}

/// The link as data: clean values, a name in any case.
fn read(uri: &str, object: &Object, reader: &ReaderTool) -> Link {
    let uri = one_line(uri);
    let name = fields::words(object, &["name", "title"])
        .map(one_line)
        .filter(|name| !name.is_empty())
        .or_else(|| hinted_name(&uri))
        .unwrap_or_else(|| uri.clone());
    Link {
        name,
        media_type: declared(object),
        size: fields::size(object, &["size"]),
        description: fields::words(object, &["description"])
            .map(one_line)
            .filter(|description| !description.is_empty()),
        reader_tool: match reader {
            ReaderTool::Registered(tool) => Some(tool.clone()),
            ReaderTool::Missing => None,
        },
        uri,
    }
}

/// Cuts a text to so many characters; whether it was longer.
fn cut(text: &mut String, most: usize) -> bool {
    let end = text.char_indices().nth(most).map(|(at, _)| at);
    if let Some(end) = end {
        text.truncate(end);
        text.push('…');
    }
    end.is_some()
}

/// The link as one line for the model.
fn line(link: &Link, reader: &ReaderTool) -> String {
    let mut line = format!(
        "[MCP resource link: uri={}, name={}",
        address(&link.uri),
        field(&link.name)
    );
    if let Some(media_type) = &link.media_type {
        line.push_str(&format!(", mimeType={}", field(media_type)));
    }
    if let Some(size) = link.size {
        line.push_str(&format!(", size={size}"));
    }
    if let Some(description) = &link.description {
        line.push_str(&format!(", description={}", field(description)));
    }
    line.push_str(&format!(" — {}]", how_to_read(reader)));
    line
}
