//! Whether a model sees: the look-up of specification 2.3. The first definite answer wins.

use talaria_config::GateConfig;

use crate::Catalogue;
use crate::explanation::{Answer, Step};
use crate::live_route::{LiveRoute, is_same_model};

/// An opinion, and where it stands or why there is none.
type Said = (Option<bool>, String);

/// What the steps before any network say.
pub(crate) fn look_up(config: &GateConfig, catalogue: &Catalogue, route: &LiveRoute) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::with_capacity(6);
    let mut step = |source, ask: &dyn Fn() -> Said| {
        let next = if answered(&steps).is_some() {
            not_asked(source)
        } else {
            let (opinion, detail) = ask();
            Step {
                source,
                answer: opinion.into(),
                detail,
            }
        };
        steps.push(next);
    };
    step("model.supports_vision", &|| main_model(config, route));
    step("providers", &|| configured(config, route, false));
    step("custom_providers", &|| configured(config, route, true));
    step("catalogue", &|| listed(catalogue, route));
    steps
}

/// A step after the one that answered.
pub(crate) const fn not_asked(source: &'static str) -> Step {
    Step {
        source,
        answer: Answer::NotAsked,
        detail: String::new(),
    }
}

/// The step that answered.
pub(crate) fn answered(steps: &[Step]) -> Option<&Step> {
    steps.iter().find(|step| step.answer.opinion().is_some())
}

fn main_model(config: &GateConfig, route: &LiveRoute) -> Said {
    match config.main.supports_vision {
        None => (None, "not set".to_owned()),
        Some(_) if !route.is_main => (None, "set for another model".to_owned()),
        opinion => (opinion, "model.supports_vision".to_owned()),
    }
}

fn configured(config: &GateConfig, route: &LiveRoute, custom: bool) -> Said {
    let stated = route
        .facts(config)
        .filter(|facts| facts.is_custom == custom)
        .find_map(|facts| {
            let (name, sees) = facts.models.iter().find_map(|(name, model)| {
                let sees = model.supports_vision?;
                is_same_model(name, &route.model).then_some((name, sees))
            })?;
            Some((Some(sees), format!("{}.models.{name}", facts.path)))
        });
    stated.unwrap_or_else(|| (None, "says nothing of it".to_owned()))
}

fn listed(catalogue: &Catalogue, route: &LiveRoute) -> Said {
    let date = catalogue.date();
    match catalogue.sees(&route.provider, &route.model) {
        None if route.catalogue_name(catalogue).is_none() => {
            (None, "does not know the provider".to_owned())
        }
        None => (None, "does not know the model".to_owned()),
        opinion => (opinion, format!("catalogue of {date}")),
    }
}
