//! A picture that comes with a request: in which ways it may be named, and what is asked about it.

use std::fmt;

use schemars::JsonSchema;
use serde::de::Visitor;
use serde::{Deserialize, Deserializer};
use talaria_actors::PictureInput;
use talaria_content::base64_guard::decode;
use talaria_image::Region;
use talaria_types::{CallContext, PayloadRefusal};

use crate::exchange::Asked;
use crate::problem::Rejection;

/// Longest question, in bytes.
const MAX_QUESTION_BYTES: usize = 64 * 1024;
/// What begins a data URL.
const DATA: &str = "data:";
/// What begins an address that is fetched.
const ADDRESSES: [&str; 2] = ["http://", "https://"];
/// What a line of ours that names a file begins with: models copy it whole.
const MEDIA: &str = "MEDIA:";
/// A path as an address.
const FILE: &str = "file://";

/// A picture, in exactly one way.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Image {
    /// A file of a delivery, or below a folder of `talaria.images.allowed_roots`.
    #[serde(default)]
    path: Option<String>,
    /// Base64, also as a `data:` URL; at most 50 MiB of picture.
    #[serde(default)]
    #[schemars(with = "Option<String>")]
    data: Option<Data>,
    /// An `http` or `https` address, or a `data:` URL. What it leads to must be a picture of at
    /// most 50 MiB, at an address that is not of this machine or network.
    #[serde(default)]
    url: Option<String>,
}

/// Bytes, decoded while the body is read, so that the base64 is not kept beside them.
struct Data(Result<(Vec<u8>, Option<String>), PayloadRefusal>);

impl Data {
    fn of(text: &str) -> Self {
        Self(decode(text).map(|(bytes, decoded)| (bytes, decoded.data_url_type)))
    }
}

impl fmt::Debug for Data {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Ok((bytes, _)) => write!(f, "Data({} bytes)", bytes.len()),
            Err(refusal) => f.debug_tuple("Data").field(refusal).finish(),
        }
    }
}

impl<'de> Deserialize<'de> for Data {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_str(DataVisitor)
    }
}

struct DataVisitor;

impl Visitor<'_> for DataVisitor {
    type Value = Data;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("base64")
    }

    fn visit_str<E>(self, text: &str) -> Result<Data, E> {
        Ok(Data::of(text))
    }
}

impl Image {
    /// The picture that a model names in one word: an address, a data URL, or a path, also as the
    /// `MEDIA:` line has it.
    pub(crate) fn named(word: &str) -> Self {
        let word = word.trim();
        if is_at(word, DATA) || ADDRESSES.iter().any(|scheme| is_at(word, scheme)) {
            return Self {
                url: Some(word.to_owned()),
                ..Self::default()
            };
        }
        let path = match word.get(FILE.len()..) {
            Some(rest) if is_at(word, FILE) => path_of(word).unwrap_or_else(|| rest.to_owned()),
            Some(_) | None => word.strip_prefix(MEDIA).unwrap_or(word).to_owned(),
        };
        Self {
            path: Some(path),
            ..Self::default()
        }
    }

    /// Brings the picture here. An address is fetched within the deadline of the call.
    pub(crate) async fn open(
        self,
        asked: &Asked<'_>,
        context: &CallContext,
    ) -> Result<PictureInput, Rejection> {
        match (self.path, self.data, self.url) {
            (Some(path), None, None) => at_path(asked, context, path).await,
            (None, Some(data), None) => of_data(data, "data"),
            (None, None, Some(url)) if is_at(&url, DATA) => {
                // Base64 of 50 MiB is no work for a loop.
                let blocking = &asked.state.blocking;
                let data = blocking.run(context.deadline, move || Data::of(&url));
                of_data(data.await?, "url")
            }
            (None, None, Some(url)) => Ok(asked.state.delivery.open_url(context, &url).await?),
            (None, None, None) | (Some(_), _, _) | (None, Some(_), Some(_)) => Err(
                Rejection::invalid("`image` must have exactly one of `path`, `data` and `url`"),
            ),
        }
    }
}

fn of_data(Data(data): Data, key: &str) -> Result<PictureInput, Rejection> {
    let (bytes, declared) = data.map_err(|refusal| unusable(key, &refusal))?;
    Ok(PictureInput::Bytes(bytes, declared))
}

/// The file of a path. One of the media store belongs to the token whose call made it.
async fn at_path(
    asked: &Asked<'_>,
    context: &CallContext,
    path: String,
) -> Result<PictureInput, Rejection> {
    let input = asked.state.delivery.open_picture(context, path).await?;
    if let PictureInput::Stored(record) = &input {
        asked.caller.need_artifact(record)?;
    }
    Ok(input)
}

/// What is asked about a picture; a blank question is none.
pub(crate) fn question(key: &str, asked: Option<String>) -> Result<Option<String>, Rejection> {
    let question = asked.filter(|question| !question.trim().is_empty());
    if question
        .as_ref()
        .is_some_and(|it| it.len() > MAX_QUESTION_BYTES)
    {
        let detail = format!("`{key}` must have at most {MAX_QUESTION_BYTES} bytes");
        return Err(Rejection::invalid(detail));
    }
    Ok(question)
}

/// The part of a picture that is wanted.
pub(crate) fn region([x1, y1, x2, y2]: [i64; 4]) -> Result<Region, Rejection> {
    if x2 <= x1 || y2 <= y1 {
        return Err(Rejection::invalid(
            "`region` is empty: it must be [x1, y1, x2, y2] with x1 < x2 and y1 < y2",
        ));
    }
    Ok(Region { x1, y1, x2, y2 })
}

/// The path in a `file:` address.
fn path_of(address: &str) -> Option<String> {
    let path = url::Url::parse(address).ok()?.to_file_path().ok()?;
    path.into_os_string().into_string().ok()
}

/// Whether an address begins with a scheme, however that is spelled.
fn is_at(address: &str, scheme: &str) -> bool {
    address
        .get(..scheme.len())
        .is_some_and(|start| start.eq_ignore_ascii_case(scheme))
}

/// What is wrong with the data, in words for its sender.
fn unusable(key: &str, refusal: &PayloadRefusal) -> Rejection {
    let why = match refusal {
        PayloadRefusal::Empty => "is empty".to_owned(),
        PayloadRefusal::NotBase64 { reason } => format!("is not base64: {reason}"),
        PayloadRefusal::Address { .. } => {
            "is an address; name it as `image.url` to have it fetched".to_owned()
        }
        PayloadRefusal::TooLarge { bytes, exact } => {
            let about = if *exact { "" } else { "about " };
            format!("has {about}{bytes} bytes; the limit is 50 MiB")
        }
        PayloadRefusal::NotStored { detail, .. } => detail.clone(),
    };
    Rejection::invalid(format!("`image.{key}` {why}"))
}

#[cfg(test)]
mod tests {
    use super::{Image, question, region};

    #[test]
    fn a_word_names_a_picture_in_one_way() {
        let shown = |word: &str| {
            let Image { path, data, url } = Image::named(word);
            assert!(data.is_none());
            (path.unwrap_or_default(), url.unwrap_or_default())
        };
        let path = |path: &str| (path.to_owned(), String::new());
        let url = |url: &str| (String::new(), url.to_owned());
        for (word, expected) in [
            ("/a/b.png", path("/a/b.png")),
            (" MEDIA:/a/b.png\n", path("/a/b.png")),
            ("FILE:///a/b%20c.png", path("/a/b c.png")),
            ("file://localhost/a.png", path("/a.png")),
            ("file:///a/%ff.png", path("/a/%ff.png")),
            ("https://h/a.png", url("https://h/a.png")),
            ("HTTP://h/a.png", url("HTTP://h/a.png")),
            (
                "data:image/png;base64,AA==",
                url("data:image/png;base64,AA=="),
            ),
            ("ftp://h/a.png", path("ftp://h/a.png")),
            ("é", path("é")),
        ] {
            assert_eq!(shown(word), expected, "{word}");
        }
    }

    #[test]
    fn a_blank_question_is_none_and_a_long_one_refused() {
        assert_eq!(question("prompt", Some(" \n".to_owned())).unwrap(), None);
        let asked = question("prompt", Some("what?".to_owned())).unwrap();
        assert_eq!(asked.as_deref(), Some("what?"));
        let long = question("prompt", Some("x".repeat(65_537))).unwrap_err();
        assert!(long.failure().detail().contains("`prompt`"));
    }

    #[test]
    fn an_empty_region_is_refused() {
        assert!(region([0, 0, 1, 1]).is_ok());
        for empty in [[0, 0, 0, 1], [0, 0, 1, 0], [5, 5, 4, 6]] {
            assert!(region(empty).is_err(), "{empty:?}");
        }
    }
}
