//! What the gate for pictures is told: mode, main model, capabilities the operator states.

use std::collections::BTreeMap;
use std::fmt;

use super::Secret;
use crate::secrets::mask_url;

/// `agent.image_input_mode` (specification 2.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ImageInputMode {
    /// Pixels where the model is known to see.
    #[default]
    Auto,
    /// Pixels wherever the route takes them.
    Native,
    /// Never pixels.
    Text,
}

impl ImageInputMode {
    /// Every mode.
    pub const ALL: &'static [Self] = &[Self::Auto, Self::Native, Self::Text];

    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Native => "native",
            Self::Text => "text",
        }
    }

    /// The mode of a word, blanks and case aside.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        let word = word.trim();
        Self::ALL
            .iter()
            .copied()
            .find(|mode| word.eq_ignore_ascii_case(mode.as_str()))
    }
}

/// Everything in the file that has a say in whether pictures reach a model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GateConfig {
    /// `agent.image_input_mode`.
    pub mode: ImageInputMode,
    /// `agent.prefer_native`: `auto` ignores an explicit vision backend for models that see.
    pub prefer_native: bool,
    /// Whether `auxiliary.vision` names a backend (specification 2.1).
    pub explicit_aux: bool,
    /// The section `model`.
    pub main: MainModel,
    /// `providers` and `custom_providers`, in this order.
    pub providers: Vec<ProviderFacts>,
}

/// The section `model`: it stands in where a request names no route.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct MainModel {
    /// Provider; none where it is `auto`.
    pub provider: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Endpoint.
    pub base_url: Option<Endpoint>,
    /// Key.
    pub api_key: Option<Secret>,
    /// Why there is no key although one was meant.
    pub key_problem: Option<String>,
    /// API shape.
    pub api: Option<String>,
    /// `model.supports_vision`, coerced (specification 2.3).
    pub supports_vision: Option<bool>,
}

/// An address that may hold a password, which is never printed.
#[derive(Clone, PartialEq, Eq)]
pub struct Endpoint(String);

impl Endpoint {
    /// As it stands in the file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// With user, password and query masked.
    #[must_use]
    pub fn masked(&self) -> String {
        mask_url(&self.0)
    }
}

impl From<String> for Endpoint {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.masked())
    }
}

/// One entry of `providers` or `custom_providers`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ProviderFacts {
    /// Its name.
    pub name: String,
    /// Where it stands in the file, for example `custom_providers[0]`.
    pub path: String,
    /// Whether it stands under `custom_providers`.
    pub is_custom: bool,
    /// Endpoint.
    pub base_url: Option<Endpoint>,
    /// Key.
    pub api_key: Option<Secret>,
    /// Why there is no key although one was meant.
    pub key_problem: Option<String>,
    /// The model where nobody names one.
    pub default_model: Option<String>,
    /// API shape.
    pub api: Option<String>,
    /// Whether its tool results may carry pictures.
    pub tool_result_images: ToolResultImages,
    /// What is said about single models, by name.
    pub models: BTreeMap<String, ModelFacts>,
}

/// `tool_result_images` of a provider.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ToolResultImages {
    /// For every API shape that is not named.
    pub any: Option<bool>,
    /// By API shape.
    pub by_api: BTreeMap<String, bool>,
}

/// What is said about one model.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ModelFacts {
    /// It sees pictures.
    pub supports_vision: Option<bool>,
    /// Its tool results may carry pictures.
    pub tool_result_images: Option<bool>,
}
