//! What a vision tool of a scripted server demands of the picture it is handed.

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::pictures::SeenPicture;

/// A look at the picture of a call.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Look {
    /// The argument that holds the picture.
    pub argument: String,
    /// How it must be given.
    pub form: PictureForm,
    /// The result when it is. `{seen}` in a text becomes type and size of the picture, such as
    /// `image/png 64x48`, with what stands in the middle: `… 200,10,10`.
    pub result: Value,
}

/// How a picture is given to a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PictureForm {
    /// `data:image/…;base64,…`.
    DataUrl,
    /// Base64 and nothing else.
    Base64,
    /// The absolute path of a file there is, whose ending tells the truth.
    File,
    /// Any of these.
    Any,
}

impl Look {
    /// Looks at the arguments of a call and answers the tool's result.
    pub(crate) fn at(&self, arguments: &Value) -> Value {
        let given = arguments.get(&self.argument).and_then(Value::as_str);
        let bytes = given
            .ok_or_else(|| format!("no {}", self.argument))
            .and_then(|given| self.form.read(given));
        let seen = bytes
            .and_then(|bytes| SeenPicture::decode(&bytes).map_err(|error| format!("{error:#}")));
        match seen {
            Ok(seen) => fill(&self.result, &describe(&seen)),
            Err(problem) => json!({
                "content": [{"type": "text", "text": format!("cannot look: {problem}")}],
                "isError": true,
            }),
        }
    }
}

impl PictureForm {
    fn read(self, given: &str) -> Result<Vec<u8>, String> {
        match self {
            Self::DataUrl => {
                let (_, encoded) = given
                    .strip_prefix("data:image/")
                    .and_then(|rest| rest.split_once(";base64,"))
                    .ok_or("no data URL of a picture")?;
                decode(encoded)
            }
            Self::Base64 => decode(given),
            Self::File => read_file(Path::new(given)),
            Self::Any => [Self::DataUrl, Self::Base64, Self::File]
                .into_iter()
                .find_map(|form| form.read(given).ok())
                .ok_or_else(|| "none of the forms".to_owned()),
        }
    }
}

fn decode(encoded: &str) -> Result<Vec<u8>, String> {
    STANDARD.decode(encoded).map_err(|error| error.to_string())
}

fn read_file(path: &Path) -> Result<Vec<u8>, String> {
    if !path.is_absolute() {
        return Err(format!("{} is not absolute", path.display()));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let ending = path.extension().and_then(|ending| ending.to_str());
    let fits = match ending {
        Some("png") => bytes.starts_with(b"\x89PNG"),
        Some("jpg" | "jpeg") => bytes.starts_with(b"\xff\xd8\xff"),
        Some("webp") => bytes.get(8..12) == Some(b"WEBP"),
        Some(_) | None => false,
    };
    if fits {
        Ok(bytes)
    } else {
        Err(format!("the ending {ending:?} does not fit"))
    }
}

fn describe(seen: &SeenPicture) -> String {
    let [red, green, blue, _] = seen.centre().unwrap_or_default();
    format!(
        "{} {}x{} {red},{green},{blue}",
        seen.media_type, seen.width, seen.height
    )
}

fn fill(result: &Value, seen: &str) -> Value {
    match result {
        Value::String(text) => text.replace("{seen}", seen).into(),
        Value::Array(items) => items.iter().map(|item| fill(item, seen)).collect(),
        Value::Object(members) => members
            .iter()
            .map(|(key, member)| (key.clone(), fill(member, seen)))
            .collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) => result.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pictures;
    use crate::script::text_result;

    fn look(form: PictureForm, given: &str) -> Value {
        let look = Look {
            argument: "image".to_owned(),
            form,
            result: text_result("saw {seen}"),
        };
        look.at(&json!({"image": given}))
    }

    #[test]
    fn each_form_is_taken_and_no_other() {
        let home = tempfile::tempdir().unwrap();
        let bytes = pictures::plain_png(64, 48, [200, 10, 10]).unwrap();
        let file = home.path().join("a.png");
        std::fs::write(&file, &bytes).unwrap();
        std::fs::write(home.path().join("a.jpg"), &bytes).unwrap();
        let encoded = STANDARD.encode(&bytes);
        let given = [
            (
                PictureForm::DataUrl,
                format!("data:image/png;base64,{encoded}"),
            ),
            (PictureForm::Base64, encoded),
            (PictureForm::File, file.to_str().unwrap().to_owned()),
        ];
        let forms = [PictureForm::DataUrl, PictureForm::Base64, PictureForm::File];
        for (wanted, text) in &given {
            for form in forms.into_iter().chain([PictureForm::Any]) {
                let result = look(form, text);
                if form == *wanted || form == PictureForm::Any {
                    assert_eq!(result, text_result("saw image/png 64x48 200,10,10"));
                } else {
                    assert_eq!(result["isError"], true, "{form:?} {text:.40}");
                }
            }
        }
        let lying = home.path().join("a.jpg");
        for bad in [lying.to_str().unwrap(), "a.png", "/no/such.png", "@/a.png"] {
            assert_eq!(look(PictureForm::File, bad)["isError"], true, "{bad}");
        }
    }
}
