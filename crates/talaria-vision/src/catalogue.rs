//! The catalogue of models: who sees pictures. Data of `catalogue/catalogue.txt`, read once.

use std::collections::{BTreeMap, HashMap};
use std::sync::LazyLock;

use crate::model_name::{fold, names};

/// Made by `catalogue/generate.py`, which says from what.
const TEXT: &str = include_str!("../catalogue/catalogue.txt");

/// Providers that pass on models of others under `vendor/model`.
const AGGREGATORS: [&str; 3] = ["openrouter", "vercel-ai-gateway", "cloudflare"];

static SHIPPED: LazyLock<Result<Catalogue, CatalogueError>> =
    LazyLock::new(|| Catalogue::parse(TEXT));

/// What is known of models.
#[derive(Debug)]
pub struct Catalogue {
    source: &'static str,
    date: &'static str,
    providers: BTreeMap<&'static str, Provider>,
    /// Every name of a provider to the one of the catalogue.
    aliases: HashMap<&'static str, &'static str>,
}

/// Why a catalogue cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("read line {line} of the catalogue of models")]
pub struct CatalogueError {
    line: usize,
}

#[derive(Debug, Default)]
struct Provider {
    models: BTreeMap<&'static str, bool>,
    /// Folded names, and folded last parts of `vendor/model`; none where two models disagree.
    loose: HashMap<String, Option<bool>>,
}

impl Catalogue {
    /// The one that is shipped.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn shipped() -> Result<&'static Self, CatalogueError> {
        SHIPPED.as_ref().map_err(Clone::clone)
    }

    /// Reads a catalogue.
    ///
    /// # Errors
    /// A line is not one of a catalogue.
    pub fn parse(text: &'static str) -> Result<Self, CatalogueError> {
        let mut catalogue = Self {
            source: "",
            date: "",
            providers: BTreeMap::new(),
            aliases: HashMap::new(),
        };
        let mut current = "";
        for (index, line) in text.lines().enumerate() {
            let wrong = CatalogueError { line: index + 1 };
            let (word, rest) = line.split_once(' ').ok_or_else(|| wrong.clone())?;
            match word {
                "#" => {}
                "source" => catalogue.source = rest,
                "date" => catalogue.date = rest,
                "provider" => {
                    current = rest.split(' ').next().unwrap_or_default();
                    for name in rest.split(' ') {
                        catalogue.aliases.insert(name, current);
                    }
                    catalogue.providers.insert(current, Provider::default());
                }
                "sees" | "blind" => {
                    let provider = catalogue.providers.get_mut(current).ok_or(wrong)?;
                    for model in rest.split(' ') {
                        provider.add(model, word == "sees");
                    }
                }
                _ => return Err(wrong),
            }
        }
        if catalogue.providers.is_empty() {
            return Err(CatalogueError { line: 0 });
        }
        Ok(catalogue)
    }

    /// The packages it was made from.
    #[must_use]
    pub const fn source(&self) -> &'static str {
        self.source
    }

    /// The day it was made.
    #[must_use]
    pub const fn date(&self) -> &'static str {
        self.date
    }

    /// The catalogue's name of a provider.
    #[must_use]
    pub fn provider(&self, name: &str) -> Option<&'static str> {
        let name = name.trim().to_lowercase().replace('_', "-");
        self.aliases.get(name.as_str()).copied()
    }

    /// Whether a provider's model sees pictures, as far as is known.
    #[must_use]
    pub fn sees(&self, provider: &str, model: &str) -> Option<bool> {
        let ours = self.provider(provider)?;
        if let Some(answer) = self.listed(ours, model) {
            return answer;
        }
        // One hop and no more: an aggregator of aggregators is nobody's vendor, and names are a
        // request's to write.
        let (vendor, rest) = model.trim().split_once('/')?;
        let vendor = self.provider(vendor).filter(|vendor| *vendor != ours)?;
        if AGGREGATORS.contains(&ours) {
            self.listed(vendor, rest).flatten()
        } else {
            None
        }
    }

    /// What a provider's own list says of a model; the inner `None` where it contradicts itself.
    fn listed(&self, ours: &str, model: &str) -> Option<Option<bool>> {
        let facts = self.providers.get(ours)?;
        let mut tried = names(model);
        // `anthropic/claude-…` at Anthropic itself, `openrouter/…` at `OpenRouter`.
        if let Some((head, rest)) = model.trim().split_once('/')
            && self.provider(head) == Some(ours)
        {
            tried.extend(names(rest));
        }
        let exact = tried
            .iter()
            .find_map(|name| facts.models.get(name.as_str()));
        if let Some(sees) = exact {
            return Some(Some(*sees));
        }
        tried
            .iter()
            .find_map(|name| facts.loose.get(&fold(name)).copied())
    }

    /// Every provider with its models, in order of their names.
    pub fn iter(
        &self,
    ) -> impl Iterator<
        Item = (
            &'static str,
            impl Iterator<Item = (&'static str, bool)> + '_,
        ),
    > {
        self.providers.iter().map(|(name, provider)| {
            let models = provider.models.iter().map(|(model, sees)| (*model, *sees));
            (*name, models)
        })
    }
}

impl Provider {
    fn add(&mut self, model: &'static str, sees: bool) {
        self.models.insert(model, sees);
        let tail = model.rsplit('/').next().filter(|tail| *tail != model);
        for name in [Some(model), tail].into_iter().flatten() {
            self.loose
                .entry(fold(name))
                .and_modify(|known| {
                    if *known != Some(sees) {
                        *known = None;
                    }
                })
                .or_insert(Some(sees));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shipped() -> &'static Catalogue {
        Catalogue::shipped().unwrap()
    }

    #[test]
    fn the_shipped_file_is_small_and_says_where_it_is_from() {
        assert!(TEXT.len() <= 150 * 1024, "{} bytes", TEXT.len());
        let catalogue = shipped();
        assert!(catalogue.source().contains("pi-catalog@"));
        assert_eq!(catalogue.date().len(), "2026-11-30".len());
        assert!(catalogue.providers.len() >= 30);
    }

    #[test]
    fn every_model_is_named_once_in_small_letters() {
        for (provider, models) in shipped().iter() {
            let mut count = 0;
            for (model, sees) in models {
                count += 1;
                assert_eq!(model, model.trim().to_lowercase(), "{provider}");
                assert_eq!(
                    shipped().sees(provider, model),
                    Some(sees),
                    "{provider} {model}"
                );
            }
            assert!(count > 0, "{provider}");
        }
        let words = TEXT.lines().filter(|line| !line.starts_with('#'));
        for line in words {
            let names: Vec<_> = line.split(' ').skip(1).collect();
            let unique: std::collections::BTreeSet<_> = names.iter().collect();
            assert_eq!(unique.len(), names.len(), "{line}");
        }
    }

    #[test]
    fn well_known_models_are_known() {
        for (provider, model, sees) in [
            ("anthropic", "claude-sonnet-4-5", Some(true)),
            ("anthropic", "claude-sonnet-4-5-20250929", Some(true)),
            ("Claude", "anthropic/claude-opus-4.5", Some(true)),
            ("openai", "gpt-4o", Some(true)),
            ("openai", "gpt-4o-2024-11-20", Some(true)),
            ("openai", "gpt-3.5-turbo", Some(false)),
            ("openai", "o3-mini", Some(false)),
            ("openai-codex", "gpt-5.5-900k", Some(true)),
            ("gemini", "models/gemini-3-pro-preview", Some(true)),
            ("deepseek", "deepseek-chat", Some(false)),
            ("openrouter", "deepseek/deepseek-v3.2", Some(false)),
            ("openrouter", "deepseek-v3.2", Some(false)),
            ("openrouter", "anthropic/claude-sonnet-4.5:beta", Some(true)),
            (
                "openrouter",
                "anthropic/claude-sonnet-4-5-20250929",
                Some(true),
            ),
            ("nous", "anthropic/claude-sonnet-4.5", Some(true)),
            (
                "bedrock",
                "us.anthropic.claude-sonnet-4-5-20250929-v1:0",
                Some(true),
            ),
            ("vertex", "claude-sonnet-4-5@20250929", Some(true)),
            ("xai", "grok-4.5", Some(true)),
            ("xiaomi", "mimo-v2-omni", Some(true)),
            ("xiaomi", "mimo-v2-flash", Some(false)),
            ("mistral", "pixtral-12b-latest", Some(true)),
        ] {
            assert_eq!(shipped().sees(provider, model), sees, "{provider} {model}");
        }
    }

    #[test]
    fn models_that_only_look_alike_are_unknown() {
        for (provider, model) in [
            ("openai", "gpt-4o-but-mine"),
            ("openai", "gpt-4"),
            ("openai", "ft:gpt-4o-2024-08-06:org::id"),
            ("anthropic", "claude"),
            ("anthropic", "claude-sonnet-99"),
            ("anthropic", "openai/gpt-4o"),
            ("custom", "gpt-4o"),
            ("lmstudio", "claude-sonnet-4-5"),
            ("", "gpt-4o"),
            ("openai", ""),
            ("openrouter", "openrouter/"),
            ("openrouter", "nobody/gpt-4o-but-mine"),
        ] {
            let sees = shipped().sees(provider, model);
            assert_ne!(sees, Some(true), "{provider} {model}");
        }
    }

    #[test]
    fn an_aggregator_s_unlisted_model_is_looked_up_at_its_vendor() {
        let text = "provider openrouter or\nsees a/b\nprovider v w\nsees m-4-5\nblind n";
        let catalogue = Catalogue::parse(text).unwrap();
        assert_eq!(catalogue.sees("or", "w/m-4.5"), Some(true));
        assert_eq!(catalogue.sees("openrouter", "v/n:free"), Some(false));
        assert_eq!(catalogue.sees("v", "w/m-4-5"), Some(true));
        assert_eq!(catalogue.sees("v", "a/b"), None);
    }

    #[test]
    fn a_chain_of_aggregators_is_followed_for_one_hop() {
        let text = "provider openrouter or\nsees a/b\nprovider cloudflare\nprovider v\nsees m";
        let catalogue = Catalogue::parse(text).unwrap();
        assert_eq!(catalogue.sees("cloudflare", "or/a/b"), Some(true));
        assert_eq!(catalogue.sees("or", "cloudflare/v/m"), None);
        let endless = "cloudflare/openrouter/".repeat(100_000);
        assert_eq!(catalogue.sees("or", &endless), None);
    }

    #[test]
    fn models_that_disagree_say_nothing_under_their_short_name() {
        let catalogue = Catalogue::parse("provider p\nsees a/m b/n\nblind c/m").unwrap();
        assert_eq!(catalogue.sees("p", "m"), None);
        assert_eq!(catalogue.sees("p", "n"), Some(true));
        assert_eq!(catalogue.sees("p", "c/m"), Some(false));
    }

    #[test]
    fn broken_catalogues_are_refused() {
        for (text, line) in [
            ("", 0),
            ("date 1", 0),
            ("provider p\nmodels a", 2),
            ("sees a", 1),
            ("provider p\n\n", 2),
        ] {
            assert_eq!(
                Catalogue::parse(text).unwrap_err(),
                CatalogueError { line },
                "{text}"
            );
        }
    }
}
