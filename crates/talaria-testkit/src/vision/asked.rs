//! A request that an endpoint got.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use tokio::time::Instant;

use crate::pictures::SeenPicture;

/// One request.
#[derive(Clone, Debug)]
pub struct Asked {
    /// When it was read whole.
    pub at: Instant,
    /// Method.
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Body.
    pub body: Vec<u8>,
}

impl Asked {
    /// A header; empty when absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", String::as_str)
    }

    /// The body as JSON; null when it is none.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }

    /// The bytes of every picture in the body, whatever API it is for.
    #[must_use]
    pub fn pictures(&self) -> Vec<Vec<u8>> {
        let mut found = Vec::new();
        strings(&self.json(), &mut |text| {
            let encoded = match text.split_once(";base64,") {
                Some((head, encoded)) if head.starts_with("data:image/") => encoded,
                Some(_) | None => text,
            };
            let bytes = STANDARD.decode(encoded).unwrap_or_default();
            // Short words are base64 by chance, but never a picture.
            if SeenPicture::decode(&bytes).is_ok() {
                found.push(bytes);
            }
        });
        found
    }

    /// The one picture of the body as its model sees it.
    ///
    /// # Errors
    /// There is none, or more than one.
    pub fn picture(&self) -> anyhow::Result<SeenPicture> {
        let pictures = self.pictures();
        match pictures.as_slice() {
            [one] => SeenPicture::decode(one),
            other => anyhow::bail!("{} pictures", other.len()),
        }
    }

    /// Every text of the body that is not a picture, a line each.
    #[must_use]
    pub fn words(&self) -> String {
        let mut words = Vec::new();
        strings(&self.json(), &mut |text| {
            if text.len() < 20_000 && !text.starts_with("data:") {
                words.push(text.to_owned());
            }
        });
        words.join("\n")
    }
}

fn strings(value: &Value, visit: &mut impl FnMut(&str)) {
    match value {
        Value::String(text) => visit(text),
        Value::Array(items) => items.iter().for_each(|item| strings(item, visit)),
        Value::Object(members) => members.values().for_each(|member| strings(member, visit)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
