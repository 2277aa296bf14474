//! Every model that the catalogue or the configuration knows, with the gate's answer.

use std::collections::BTreeSet;

use serde::Serialize;
use talaria_types::Route;

use crate::class::classify;
use crate::gatekeeper::Gatekeeper;
use crate::live_route::LiveRoute;
use crate::lookup::{answered, look_up};
use crate::{RouteClass, gate};

/// One model, as the gate answers for it under the configured mode.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct KnownModel {
    /// Provider.
    pub provider: String,
    /// Model.
    pub model: String,
    /// Whether it sees pictures.
    pub sees: bool,
    /// Who says so.
    pub source: String,
    /// What its route does with pictures in tool results.
    pub class: RouteClass,
    /// Whether pictures pass.
    pub open: bool,
}

impl Gatekeeper {
    /// Every model anybody knows, by provider and name; of one provider where it is named.
    #[must_use]
    pub fn known_models(&self, provider: Option<&str>) -> Vec<KnownModel> {
        let mut routes = BTreeSet::new();
        let wanted = provider.map(|name| self.plain_provider(name));
        for facts in &self.config().providers {
            let models = facts.models.iter();
            let stated = models.filter(|(_, model)| model.supports_vision.is_some());
            routes
                .extend(stated.map(|(model, _)| (self.plain_provider(&facts.name), model.clone())));
        }
        for (provider, models) in self.catalogue().into_iter().flat_map(|it| it.iter()) {
            routes.extend(models.map(|(model, _)| (provider.to_owned(), model.to_owned())));
        }
        routes
            .into_iter()
            .filter(|(provider, _)| wanted.as_ref().is_none_or(|wanted| wanted == provider))
            .filter_map(|(provider, model)| self.known_model(provider, model))
            .collect()
    }

    fn known_model(&self, provider: String, model: String) -> Option<KnownModel> {
        let config = self.config();
        let route = Route {
            provider,
            model,
            api: None,
        };
        let live = LiveRoute::new(config, &route, None);
        let steps = look_up(config, self.catalogue()?, &live);
        let step = answered(&steps)?;
        let sees = step.answer.opinion()?;
        let class = classify(config, self.allowed(), &live).class;
        let (aux, prefer) = (config.explicit_aux, config.prefer_native);
        let (open, _) = gate(config.mode, aux, prefer, Some(sees), class);
        Some(KnownModel {
            provider: route.provider,
            model: route.model,
            sees,
            source: step.detail.clone(),
            class,
            open,
        })
    }

    /// The catalogue's name of a provider where it has one.
    fn plain_provider(&self, name: &str) -> String {
        let ours = self.catalogue().and_then(|it| it.provider(name));
        ours.map_or_else(|| name.trim().to_lowercase(), ToOwned::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use talaria_config::{Source, load};

    use super::*;

    #[test]
    fn models_of_catalogue_and_configuration_are_listed_with_their_answer() {
        let text = r#"
custom_providers: [{ name: Lab, models: { big: { vision: yes }, small: {} } }]
providers: { claude: { models: { claude-sonnet-4-5: { supports_vision: no } } } }
"#;
        let environment = BTreeMap::from([("HOME".to_owned(), "/home/me".to_owned())]);
        let config = load(text, &environment, &Source::default()).unwrap();
        let keeper = Gatekeeper::new(&config);
        let lab = keeper.known_models(Some("lab"));
        assert_eq!(
            lab,
            [KnownModel {
                provider: "lab".to_owned(),
                model: "big".to_owned(),
                sees: true,
                source: "custom_providers[0].models.big".to_owned(),
                class: RouteClass::Neutral,
                open: true,
            }]
        );
        let all = keeper.known_models(None);
        assert!(all.len() > 1_000);
        let blind = all
            .iter()
            .find(|it| (it.provider.as_str(), it.model.as_str()) == ("deepseek", "deepseek-chat"));
        assert!(blind.is_some_and(|it| !it.sees && !it.open));
        let claude = keeper.known_models(Some("anthropic"));
        assert_eq!(claude, keeper.known_models(Some("Claude")));
        assert!(
            claude
                .iter()
                .any(|it| it.open && it.class == RouteClass::Accepts)
        );
    }
}
