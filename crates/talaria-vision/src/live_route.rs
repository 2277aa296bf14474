//! The live route of a request, seen against the configuration: who answers, under which names,
//! over which API, at which address.

use talaria_config::{Endpoint, GateConfig, ProviderFacts};
use talaria_types::Route;
use url::Url;

use crate::model_name::names;
use crate::{ApiShape, Catalogue};

/// Longest part of a name that comes from a request and is shown.
const SHOWN_CHARS: usize = 80;
/// Hermes' word for an endpoint of the operator's own.
const CUSTOM: &str = "custom";

/// A route and what the configuration says about where it leads.
#[derive(Clone, Debug)]
pub(crate) struct LiveRoute {
    /// Provider, trimmed, in small letters.
    pub(crate) provider: String,
    /// Model, trimmed.
    pub(crate) model: String,
    /// Names under which the configuration may speak of the provider, the first beats the rest.
    pub(crate) candidates: Vec<String>,
    /// API shape, as far as somebody names one.
    pub(crate) api: Option<ApiShape>,
    /// Its address, where the configuration has one.
    pub(crate) endpoint: Option<Url>,
    /// Whether the section `model` speaks of it.
    pub(crate) is_main: bool,
}

impl LiveRoute {
    /// Looks at a route; `api` is the shape of the format asked for, which counts where the route
    /// names none that is known.
    pub(crate) fn new(config: &GateConfig, route: &Route, api: Option<&str>) -> Self {
        let provider = route.provider.trim().to_lowercase();
        let model = route.model.trim().to_owned();
        let main = config.main.provider.as_deref().map(str::to_lowercase);
        let is_main_provider = main
            .as_deref()
            .is_none_or(|main| is_same_provider(main, &provider));
        let is_main_model = config
            .main
            .model
            .as_deref()
            .is_none_or(|main| is_same_model(main, &model));
        let mut candidates = Vec::new();
        for name in [Some(provider.as_str()), main.as_deref()]
            .into_iter()
            .flatten()
        {
            for name in [name, bare(name)] {
                if !name.is_empty() && !candidates.iter().any(|known| known == name) {
                    candidates.push(name.to_owned());
                }
            }
        }
        let mut live = Self {
            provider,
            model,
            candidates,
            api: None,
            endpoint: None,
            is_main: is_main_provider && is_main_model,
        };
        let own_api = live.own_facts(config).find_map(|facts| facts.api.clone());
        let own_url = live
            .own_facts(config)
            .find_map(|facts| facts.base_url.clone());
        let from_main = |value: Option<String>| value.filter(|_| is_main_provider);
        live.api = [
            route.api.clone(),
            api.map(ToOwned::to_owned),
            own_api,
            from_main(config.main.api.clone()),
        ]
        .iter()
        .flatten()
        .find_map(|word| ApiShape::from_word(word));
        let main_url = config.main.base_url.clone().filter(|_| is_main_provider);
        live.endpoint = own_url.or(main_url).and_then(|url| address(&url));
        live
    }

    /// What the configuration says of each provider this may be, the best name first.
    pub(crate) fn facts<'a>(
        &'a self,
        config: &'a GateConfig,
    ) -> impl Iterator<Item = &'a ProviderFacts> {
        self.candidates.iter().flat_map(|name| {
            let named = move |facts: &&ProviderFacts| facts.name.to_lowercase() == *name;
            config.providers.iter().filter(named)
        })
    }

    /// What the configuration says of the provider itself; `model.provider` counts as itself
    /// where the route is just `custom`.
    pub(crate) fn own_facts<'a>(
        &'a self,
        config: &'a GateConfig,
    ) -> impl Iterator<Item = &'a ProviderFacts> {
        self.facts(config).filter(|facts| {
            self.provider == CUSTOM || bare(&facts.name.to_lowercase()) == bare(&self.provider)
        })
    }

    /// The catalogue's name of the provider.
    pub(crate) fn catalogue_name(&self, catalogue: &Catalogue) -> Option<&'static str> {
        catalogue.provider(&self.provider)
    }

    /// Provider and model for people; what a request wrote is cut and made harmless.
    pub(crate) fn shown(&self) -> String {
        format!("{}/{}", shown(&self.provider), shown(&self.model))
    }
}

/// A name out of a request as it may be shown.
pub(crate) fn shown(name: &str) -> String {
    let harmless = |c: char| if c.is_control() { '\u{fffd}' } else { c };
    name.chars().take(SHOWN_CHARS).map(harmless).collect()
}

/// Whether two names of models mean the same one.
pub(crate) fn is_same_model(configured: &str, asked: &str) -> bool {
    let configured = names(configured);
    let asked = names(asked);
    configured.first().is_some_and(|name| asked.contains(name))
        || asked.first().is_some_and(|name| configured.contains(name))
}

/// Hermes runs every provider of the operator's own as `custom`.
fn is_same_provider(main: &str, asked: &str) -> bool {
    bare(main) == bare(asked) || asked == CUSTOM
}

/// The name without `custom:` in front.
pub(crate) fn bare(name: &str) -> &str {
    name.strip_prefix("custom:").map_or(name, str::trim)
}

/// The address without what must never be sent: user, password, query.
fn address(endpoint: &Endpoint) -> Option<Url> {
    let mut url = Url::parse(endpoint.as_str()).ok()?;
    if !matches!(url.scheme(), "http" | "https") {
        return None;
    }
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    url.set_query(None);
    url.set_fragment(None);
    Some(url)
}

#[cfg(test)]
mod tests {
    use talaria_config::MainModel;

    use super::*;

    fn route(provider: &str, model: &str) -> Route {
        Route {
            provider: provider.to_owned(),
            model: model.to_owned(),
            api: None,
        }
    }

    fn config() -> GateConfig {
        let provider = |name: &str, url: &str, api: Option<&str>| ProviderFacts {
            name: name.to_owned(),
            base_url: Some(Endpoint::from(url.to_owned())),
            api: api.map(ToOwned::to_owned),
            ..ProviderFacts::default()
        };
        GateConfig {
            main: MainModel {
                provider: Some("custom:Lab".to_owned()),
                model: Some("m".to_owned()),
                ..MainModel::default()
            },
            providers: vec![
                provider(
                    "lab",
                    "http://me:pw@10.0.0.5:8080/v1?k=v#f",
                    Some("chat_completions"),
                ),
                provider("other", "http://10.0.0.6", None),
            ],
            ..GateConfig::default()
        }
    }

    #[test]
    fn names_of_the_provider_are_tried_in_order() {
        let live = LiveRoute::new(&config(), &route("custom:Other", "x"), None);
        assert_eq!(
            live.candidates,
            ["custom:other", "other", "custom:lab", "lab"]
        );
        assert_eq!(live.endpoint.unwrap().as_str(), "http://10.0.0.6/");
        assert!(!live.is_main);
    }

    #[test]
    fn custom_stands_for_the_configured_provider() {
        let live = LiveRoute::new(&config(), &route("custom", "m"), None);
        assert!(live.is_main);
        assert_eq!(live.api, Some(ApiShape::OpenaiChat));
        assert_eq!(live.endpoint.unwrap().as_str(), "http://10.0.0.5:8080/v1");
    }

    #[test]
    fn another_provider_never_gets_the_address_of_the_main_one() {
        let live = LiveRoute::new(&config(), &route("anthropic", "m"), None);
        assert_eq!(live.endpoint, None);
        assert_eq!(live.api, None);
        assert!(!live.is_main);
    }

    #[test]
    fn the_route_s_api_beats_the_format_s_and_that_the_configured_one() {
        let live = |own: Option<&str>, of_format| {
            let mut lab = route("lab", "m");
            lab.api = own.map(ToOwned::to_owned);
            LiveRoute::new(&config(), &lab, of_format).api
        };
        let gemini = Some("gemini");
        assert_eq!(live(Some("anthropic"), gemini), Some(ApiShape::Anthropic));
        assert_eq!(live(Some("nobody-s"), gemini), Some(ApiShape::Gemini));
        assert_eq!(live(None, gemini), Some(ApiShape::Gemini));
        assert_eq!(live(None, None), Some(ApiShape::OpenaiChat));
    }

    #[test]
    fn names_out_of_requests_are_shown_short_and_harmless() {
        assert_eq!(shown("a\nb\u{1b}"), "a\u{fffd}b\u{fffd}");
        assert_eq!(shown(&"x".repeat(500)).len(), SHOWN_CHARS);
    }
}
