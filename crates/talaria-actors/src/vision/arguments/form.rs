//! In which form a tool wants its picture: what its words say, then where it is.

use talaria_config::{ImageForm, McpFallback};
use talaria_vision::describe::Fault;

use super::{Reach, misconfigured};

/// Words that turn a clause into its opposite.
const NEGATIONS: &[&str] = &[
    "not",
    "no",
    "never",
    "cannot",
    "unsupported",
    "without",
    "isn't",
    "aren't",
    "don't",
    "doesn't",
];

/// How a picture is put into an argument.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::vision) enum Form {
    /// Absolute path of a file.
    Path,
    /// Address of a file of our store.
    Url,
    /// Data URL.
    DataUrl,
    /// Base64 alone.
    Base64,
}

/// What is said of one form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Word {
    #[default]
    Nothing,
    Wanted,
    Refused,
}

/// What a name and a description say of every form.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Told {
    path: Word,
    url: Word,
    data: Word,
    base64: Word,
}

impl Told {
    /// What the name and the description of an argument say.
    pub(super) fn of(name: &str, description: &str) -> Self {
        let mut told = Self::read(description);
        if !told.wants_any() {
            told.read_name(name);
        }
        told
    }

    /// What the description of the whole tool says, where that of the argument wants nothing.
    pub(super) fn or(self, description: &str) -> Self {
        if self.wants_any() {
            return self;
        }
        let said = Self::read(description);
        Self {
            path: self.path.or(said.path),
            url: self.url.or(said.url),
            data: self.data.or(said.data),
            base64: self.base64.or(said.base64),
        }
    }

    fn wants_any(&self) -> bool {
        [self.path, self.url, self.data, self.base64].contains(&Word::Wanted)
    }

    fn read(description: &str) -> Self {
        let text = description.to_lowercase();
        let mut told = Self::default();
        for clause in text.split(['.', ';', ',', '(', ')', '\n']) {
            told.read_clause(clause);
        }
        told
    }

    fn read_clause(&mut self, clause: &str) {
        let is_negated = words(clause)
            .iter()
            .any(|word| NEGATIONS.contains(&word.as_str()));
        let mention = if is_negated {
            Word::Refused
        } else {
            Word::Wanted
        };
        // A data URL is none that is fetched.
        let data = [
            "data url", "data-url", "data uri", "data-uri", "data: ur", "data:", "dataurl",
        ];
        let mut rest = clause.to_owned();
        for phrase in data {
            if rest.contains(phrase) {
                self.data.hear(mention);
                rest = rest.replace(phrase, " ");
            }
        }
        let says = |known: &[&str]| known.iter().any(|word| rest.contains(word));
        if says(&["path", "local file", "file system", "filesystem"]) {
            self.path.hear(mention);
        }
        if says(&["base64", "base-64", "b64"]) {
            self.base64.hear(mention);
        }
        if says(&["url", "uri", "http"]) {
            self.url.hear(mention);
        }
    }

    fn read_name(&mut self, name: &str) {
        for word in words(name) {
            match word.as_str() {
                "path" | "file" | "filename" | "filepath" => self.path.hear(Word::Wanted),
                "url" | "uri" | "link" => self.url.hear(Word::Wanted),
                "base64" | "b64" => self.base64.hear(Word::Wanted),
                _ => {}
            }
        }
    }
}

impl Word {
    /// What is refused at the nearer place stays so.
    const fn or(self, other: Self) -> Self {
        match self {
            Self::Nothing => other,
            Self::Wanted | Self::Refused => self,
        }
    }

    /// A wish outweighs a refusal: "not only a path" is no refusal of paths.
    fn hear(&mut self, said: Self) {
        if *self != Self::Wanted {
            *self = said;
        }
    }
}

/// The form for a tool. A path does not leave the machine unless the operator allows it.
///
/// # Errors
/// The configured form is a path, and may not leave.
pub(super) fn choose(tool: &McpFallback, told: &Told, reach: Reach) -> Result<Form, Fault> {
    let may_have_path = reach == Reach::Local || tool.allow_remote_path;
    match tool.image_form {
        ImageForm::Path if may_have_path => Ok(Form::Path),
        ImageForm::Path => Err(misconfigured(&format!(
            "the server is not on this machine; a path leaves it only with \
             `{}.allow_remote_path: true`",
            tool.path
        ))),
        ImageForm::Url => Ok(Form::Url),
        ImageForm::Data => Ok(Form::DataUrl),
        ImageForm::Base64 => Ok(Form::Base64),
        ImageForm::Auto => Ok(told.form(may_have_path)),
    }
}

impl Told {
    fn form(&self, may_have_path: bool) -> Form {
        if self.path == Word::Wanted && may_have_path {
            return Form::Path;
        }
        if self.data == Word::Wanted {
            return Form::DataUrl;
        }
        if self.base64 == Word::Wanted {
            return Form::Base64;
        }
        if self.wants_any() {
            // An address that is asked for, or a path that may not leave: a data URL is both an
            // address and the picture itself.
            return if self.data == Word::Refused {
                Form::Url
            } else {
                Form::DataUrl
            };
        }
        if may_have_path && self.path != Word::Refused {
            return Form::Path;
        }
        Form::DataUrl
    }
}

/// The words of a name or of a text, in lower case: `imagePath`, `image_path` and `image path`
/// have the same.
pub(super) fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before = ' ';
    for letter in name.chars() {
        let begins = letter.is_uppercase() && before.is_lowercase();
        let is_part = letter.is_alphanumeric() || letter == '\'';
        if (begins || !is_part) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if is_part {
            word.extend(letter.to_lowercase());
        }
        before = letter;
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}
