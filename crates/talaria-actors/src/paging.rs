//! Follows the cursors of a list request, at most 50 pages and never in a circle.

use std::collections::BTreeSet;

use serde_json::{Map, Value};
use talaria_mcp::{Rpc, RpcLimits};
use talaria_types::{Failure, Payload, RawResult};

use crate::upstream::Upstream;

/// Pages read of one list.
pub(crate) const MAX_PAGES: usize = 50;
/// Bytes read of one list; the page that crosses it is the last.
const MAX_BYTES: u64 = 64 * 1024 * 1024;

/// What is listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Listing {
    /// `tools/list`.
    Tools,
    /// `resources/list`.
    Resources,
    /// `prompts/list`.
    Prompts,
}

impl Listing {
    /// The key of the items in each page.
    pub(crate) const fn key(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Resources => "resources",
            Self::Prompts => "prompts",
        }
    }

    const fn rpc(self, cursor: Option<String>) -> Rpc {
        match self {
            Self::Tools => Rpc::ListTools { cursor },
            Self::Resources => Rpc::ListResources { cursor },
            Self::Prompts => Rpc::ListPrompts { cursor },
        }
    }
}

/// All pages of a list.
#[derive(Debug)]
pub(crate) struct Pages {
    /// One result with every item under the list's key.
    pub(crate) merged: RawResult,
    /// Why there is more than was read.
    pub(crate) cut: Option<&'static str>,
}

/// Reads a list page by page and merges the pages.
///
/// # Errors
/// Those of the session; a page that fails fails the list.
pub(crate) async fn collect(
    session: &dyn Upstream,
    listing: Listing,
    limits: &RpcLimits,
) -> Result<Pages, Failure> {
    let mut merge = Merge::new(listing.key());
    let mut seen = BTreeSet::new();
    let mut cursor = None;
    for _ in 0..MAX_PAGES {
        let page = session.request(listing.rpc(cursor), limits.clone()).await?;
        let next = page
            .json
            .get("nextCursor")
            .and_then(Value::as_str)
            .map(str::to_owned);
        merge.add(page);
        let Some(next) = next else {
            return Ok(merge.finish(None));
        };
        if !seen.insert(next.clone()) {
            return Ok(merge.finish(Some("the server's cursors go in a circle")));
        }
        if merge.raw.wire_bytes > MAX_BYTES {
            return Ok(merge.finish(Some("the list is larger than 64 MiB")));
        }
        cursor = Some(next);
    }
    Ok(merge.finish(Some("the list has more than 50 pages")))
}

/// Pages merged so far.
#[derive(Debug)]
struct Merge {
    key: &'static str,
    items: Vec<Value>,
    raw: RawResult,
}

impl Merge {
    fn new(key: &'static str) -> Self {
        Self {
            key,
            items: Vec::new(),
            raw: RawResult::default(),
        }
    }

    fn add(&mut self, page: RawResult) {
        let RawResult {
            mut json,
            payloads,
            notes,
            wire_bytes,
        } = page;
        let offset = self.items.len();
        if let Some(Value::Array(items)) = json.get_mut(self.key).map(Value::take) {
            self.items.extend(items);
        }
        let moved = payloads
            .into_iter()
            .filter_map(|(at, payload)| shifted(&at, self.key, offset).map(|at| (at, payload)));
        self.raw
            .payloads
            .extend::<Vec<(String, Payload)>>(moved.collect());
        self.raw.notes.extend(notes);
        self.raw.wire_bytes = self.raw.wire_bytes.saturating_add(wire_bytes);
    }

    fn finish(mut self, cut: Option<&'static str>) -> Pages {
        let mut json = Map::new();
        json.insert(self.key.to_owned(), Value::Array(self.items));
        self.raw.json = Value::Object(json);
        self.raw.notes.sort_unstable();
        self.raw.notes.dedup();
        Pages {
            merged: self.raw,
            cut,
        }
    }
}

/// The pointer of a payload once its page stands behind `offset` other items.
fn shifted(at: &str, key: &str, offset: usize) -> Option<String> {
    let rest = at.strip_prefix('/')?.strip_prefix(key)?.strip_prefix('/')?;
    let (index, tail) = rest
        .find('/')
        .map_or((rest, ""), |slash| rest.split_at(slash));
    let index: usize = index.parse().ok()?;
    Some(format!("/{key}/{}{tail}", index + offset))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payload_pointers_move_with_their_items() {
        assert_eq!(
            shifted("/resources/2/blob", "resources", 40),
            Some("/resources/42/blob".to_owned())
        );
        assert_eq!(
            shifted("/resources/2", "resources", 1),
            Some("/resources/3".to_owned())
        );
        assert_eq!(shifted("/other/2", "resources", 1), None);
        assert_eq!(shifted("/resources/x", "resources", 1), None);
    }
}
