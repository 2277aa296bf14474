//! What describes pictures: the chain of backends and of MCP tools, its limits, its keys.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroUsize;
use std::time::Duration;

use regex_lite::Regex;
use talaria_types::ServerName;

use super::Endpoint;
use crate::defaults;

/// `auxiliary.vision`, `talaria.vision`, `fallback_providers`, and what else concerns
/// descriptions of pictures.
#[derive(Clone, Debug, PartialEq)]
pub struct VisionConfig {
    /// `auxiliary.vision` itself.
    pub aux: BackendConfig,
    /// `auxiliary.vision.fallback_chain`.
    pub fallback_chain: Vec<BackendConfig>,
    /// `auxiliary.vision.mcp_fallback`.
    pub mcp_fallback: Vec<McpFallback>,
    /// `fallback_providers`.
    pub fallback_providers: Vec<BackendConfig>,
    /// Keys of well-known providers that stand in the environment.
    pub keys: KeyRing,
    /// Sampling temperature.
    pub temperature: f64,
    /// Limit of a whole description.
    pub total_timeout: Duration,
    /// When the next link is asked as well; never where absent.
    pub hedge_after: Option<Duration>,
    /// How long a description is remembered; zero switches that off.
    pub cache_ttl: Duration,
    /// Descriptions at a time.
    pub max_concurrency: Option<NonZeroUsize>,
    /// Limit of fetching a picture.
    pub download_timeout: Duration,
    /// `security.allow_private_urls`.
    pub allow_private_urls: bool,
    /// `security.allow_tun_fakeip`.
    pub allow_tun_fakeip: bool,
    /// `talaria.calls.describe_images`.
    pub describe_images: DescribeImages,
}

impl Default for VisionConfig {
    fn default() -> Self {
        Self {
            aux: BackendConfig::at("auxiliary.vision"),
            fallback_chain: Vec::new(),
            mcp_fallback: Vec::new(),
            fallback_providers: Vec::new(),
            keys: KeyRing::default(),
            temperature: defaults::VISION_TEMPERATURE,
            total_timeout: defaults::VISION_TOTAL_TIMEOUT,
            hedge_after: None,
            cache_ttl: defaults::VISION_CACHE_TTL,
            max_concurrency: None,
            download_timeout: defaults::DOWNLOAD_TIMEOUT,
            allow_private_urls: false,
            allow_tun_fakeip: false,
            describe_images: DescribeImages::Auto,
        }
    }
}

/// One backend as the file has it; which endpoint that is, the chain decides.
#[derive(Clone, Debug, PartialEq)]
pub struct BackendConfig {
    /// Where it stands in the file.
    pub path: String,
    /// Provider; none where it is `auto`.
    pub provider: Option<String>,
    /// Model.
    pub model: Option<String>,
    /// Endpoint; beats the provider.
    pub base_url: Option<Endpoint>,
    /// Key.
    pub api_key: Option<Secret>,
    /// API shape.
    pub api: Option<String>,
    /// Limit of one attempt.
    pub timeout: Duration,
    /// Why it cannot be used, with variable and key path.
    pub problem: Option<String>,
}

impl BackendConfig {
    /// Nothing but the defaults, standing at a path.
    #[must_use]
    pub fn at(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            provider: None,
            model: None,
            base_url: None,
            api_key: None,
            api: None,
            timeout: defaults::VISION_TIMEOUT,
            problem: None,
        }
    }

    /// Whether it says that nobody is asked.
    #[must_use]
    pub fn is_off(&self) -> bool {
        self.provider.as_deref().is_some_and(is_nobody)
    }
}

/// Whether a word in place of a provider means nobody.
pub(crate) fn is_nobody(provider: &str) -> bool {
    let mut words = defaults::NO_PROVIDER.iter();
    words.any(|word| provider.trim().eq_ignore_ascii_case(word))
}

/// An MCP tool that describes pictures.
#[derive(Clone, Debug, PartialEq)]
pub struct McpFallback {
    /// Where it stands in the file.
    pub path: String,
    /// Server.
    pub server: ServerName,
    /// Tool, as the server names it.
    pub tool: String,
    /// Argument of the question; found in the tool's schema where absent.
    pub prompt_arg: Option<String>,
    /// Argument of the picture; found in the tool's schema where absent.
    pub image_arg: Option<String>,
    /// How the picture is handed over.
    pub image_form: ImageForm,
    /// Limit of the call, waiting included.
    pub timeout: Duration,
    /// Answers that are failures in disguise.
    pub failure_patterns: Vec<Pattern>,
    /// The question where nobody asks one.
    pub prompt: Option<String>,
    /// Whether paths of this machine may go to a server that is reached over HTTP.
    pub allow_remote_path: bool,
}

impl McpFallback {
    /// A tool with everything else at its default.
    #[must_use]
    pub fn new(
        path: impl Into<String>,
        server: impl Into<ServerName>,
        tool: impl Into<String>,
    ) -> Self {
        Self {
            path: path.into(),
            server: server.into(),
            tool: tool.into(),
            prompt_arg: None,
            image_arg: None,
            image_form: ImageForm::Auto,
            timeout: defaults::MCP_FALLBACK_TIMEOUT,
            failure_patterns: Pattern::defaults(),
            prompt: None,
            allow_remote_path: false,
        }
    }
}

/// How a picture is handed to an MCP tool (design decision 27).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageForm {
    /// As the tool's schema says, else as its transport suggests.
    Auto,
    /// Path of a file of this machine.
    Path,
    /// Address of our own store.
    Url,
    /// Data URL.
    Data,
    /// Base64 alone.
    Base64,
}

impl ImageForm {
    /// Every form.
    pub const ALL: &'static [Self] = &[Self::Auto, Self::Path, Self::Url, Self::Data, Self::Base64];

    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Path => "path",
            Self::Url => "url",
            Self::Data => "data",
            Self::Base64 => "base64",
        }
    }
}

/// `talaria.calls.describe_images` (design decision 15).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DescribeImages {
    /// Where the gate is closed and there is a chain.
    Auto,
    /// Always where the gate is closed.
    True,
    /// Never.
    False,
}

impl DescribeImages {
    /// Every wish.
    pub const ALL: &'static [Self] = &[Self::Auto, Self::True, Self::False];

    /// The word in the configuration.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::True => "true",
            Self::False => "false",
        }
    }
}

/// A secret that no output shows.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Secret(String);

impl Secret {
    /// The secret itself, for the one place that sends it.
    #[must_use]
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Secret(hidden)")
    }
}

/// A regular expression that was checked when the file was read. Matching takes time linear in
/// the text.
#[derive(Clone)]
pub struct Pattern(Regex);

impl Pattern {
    /// Reads an expression; the error says what is wrong with it.
    ///
    /// # Errors
    /// It is no regular expression, or too large.
    pub fn new(text: &str) -> Result<Self, String> {
        regex_lite::RegexBuilder::new(text)
            .size_limit(defaults::MAX_PATTERN_BYTES)
            .build()
            .map(Self)
            .map_err(|error| error.to_string())
    }

    /// Those that are used where a tool has none of its own.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        let patterns = defaults::FAILURE_PATTERNS.iter();
        patterns.filter_map(|text| Self::new(text).ok()).collect()
    }

    /// As it stands in the file.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }

    /// Whether it occurs in a text.
    #[must_use]
    pub fn is_match(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Pattern({:?})", self.as_str())
    }
}

/// Keys of well-known providers out of the environment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct KeyRing(BTreeMap<&'static str, Secret>);

impl KeyRing {
    /// The keys that an environment holds; [`defaults::KEY_VARIABLES`] says where.
    #[must_use]
    pub fn of(environment: &BTreeMap<String, String>) -> Self {
        let variables = defaults::KEY_VARIABLES.iter().flat_map(|(_, names)| *names);
        let held = variables.filter_map(|name| {
            let value = environment.get(*name)?.trim();
            (!value.is_empty()).then(|| (*name, Secret(value.to_owned())))
        });
        Self(held.collect())
    }

    /// The variables that may hold a provider's key.
    #[must_use]
    pub fn variables(provider: &str) -> &'static [&'static str] {
        let mut rows = defaults::KEY_VARIABLES.iter();
        rows.find(|(name, _)| *name == provider)
            .map_or(&[], |(_, names)| names)
    }

    /// A provider's key.
    #[must_use]
    pub fn key(&self, provider: &str) -> Option<&Secret> {
        let mut names = Self::variables(provider).iter();
        names.find_map(|name| self.0.get(name))
    }

    /// Every variable with a key, and the key.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &Secret)> {
        self.0.iter().map(|(name, secret)| (*name, secret))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_default_pattern_is_one() {
        assert_eq!(Pattern::defaults().len(), defaults::FAILURE_PATTERNS.len());
    }

    #[test]
    fn default_patterns_know_a_failure_told_as_text() {
        let fails = |text: &str| Pattern::defaults().iter().any(|it| it.is_match(text));
        assert!(fails("Failed to perform VLM analysis: 1004"));
        assert!(fails("Failed to load image: no such file"));
        assert!(fails("Error: API key invalid"));
        assert!(fails(
            "Traceback (most recent call last):\n  File \"eyes.py\", line 3"
        ));
        assert!(!fails("A dialog says: Failed to perform VLM analysis"));
        assert!(!fails("A terminal shows\nError: no such file"));
        assert!(!fails("Failed blossoms on a tree"));
    }

    #[test]
    fn expressions_are_bounded() {
        assert!(Pattern::new("(").is_err());
        assert!(Pattern::new(&"(a{1000}){1000}".repeat(9)).is_err());
    }

    #[test]
    fn the_first_variable_that_is_set_holds_the_key() {
        let variables = [("GOOGLE_API_KEY", "hunter22"), ("GEMINI_API_KEY", " ")];
        let environment = variables.map(|(name, value)| (name.to_owned(), value.to_owned()));
        let keys = KeyRing::of(&BTreeMap::from(environment));
        assert_eq!(keys.key("google").map(Secret::expose), Some("hunter22"));
        assert_eq!(keys.key("openai"), None);
        assert!(!format!("{keys:?}").contains("hunter22"));
    }
}
