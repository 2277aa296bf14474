//! What a live route does with pictures in tool results (specification 2.4).

use talaria_config::{GateConfig, ImageDelivery, ProviderFacts};
use url::Url;

use crate::live_route::{LiveRoute, is_same_model, shown};
use crate::route_facts::{
    GEMINI_3, OPENAI_OWN, REFUSING_HOSTS, REFUSING_VENDORS, ROUTE_FACTS, RouteFact, Takes,
};
use crate::{ApiShape, Cause};

/// The three classes of the truth table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum RouteClass {
    /// Known to take pictures in tool results.
    Accepts,
    /// Nothing is known.
    Neutral,
    /// Known to refuse them.
    Veto,
}

impl RouteClass {
    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepts => "accepts",
            Self::Neutral => "neutral",
            Self::Veto => "veto",
        }
    }
}

/// The class of a route, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Classified {
    pub(crate) class: RouteClass,
    /// In words.
    pub(crate) why: String,
    /// What a veto is counted under.
    pub(crate) veto: Cause,
    /// Where pictures go.
    pub(crate) delivery: ImageDelivery,
}

impl Classified {
    fn new(class: RouteClass, why: impl Into<String>) -> Self {
        Self {
            class,
            why: why.into(),
            veto: Cause::RouteRefuses,
            delivery: ImageDelivery::ToolResult,
        }
    }
}

/// Classes a route. What the operator states beats what is known; a veto can be got round by a
/// user message where the operator allows it and the API has such messages.
pub(crate) fn classify(
    config: &GateConfig,
    allowed: ImageDelivery,
    route: &LiveRoute,
) -> Classified {
    let known = stated(config, route).unwrap_or_else(|| known(route));
    let by_message = known.class == RouteClass::Veto
        && allowed == ImageDelivery::UserMessage
        && route.api == Some(ApiShape::OpenaiChat);
    if !by_message {
        return known;
    }
    // The model's own API takes pictures in user messages as in the table's first class; of any
    // other only the model's sight is known.
    let class = if known.veto == Cause::ApiRefuses {
        RouteClass::Accepts
    } else {
        RouteClass::Neutral
    };
    Classified {
        delivery: ImageDelivery::UserMessage,
        ..Classified::new(
            class,
            format!(
                "{}; a user message carries them (image_delivery)",
                known.why
            ),
        )
    }
}

/// What the operator says: of the model, of the provider over this API, of the provider.
fn stated(config: &GateConfig, route: &LiveRoute) -> Option<Classified> {
    route.own_facts(config).find_map(|facts| {
        let (takes, path) = stated_of(facts, route)?;
        let (class, verb) = if takes {
            (RouteClass::Accepts, "takes")
        } else {
            (RouteClass::Veto, "refuses")
        };
        let why = format!("it {verb} images in tool results ({path})");
        Some(Classified::new(class, why))
    })
}

fn stated_of(facts: &ProviderFacts, route: &LiveRoute) -> Option<(bool, String)> {
    let of_model = facts.models.iter().find_map(|(name, model)| {
        let takes = model.tool_result_images?;
        is_same_model(name, &route.model).then(|| {
            let path = format!("{}.models.{name}.tool_result_images", facts.path);
            (takes, path)
        })
    });
    let path = format!("{}.tool_result_images", facts.path);
    let of_api = || {
        let mut by_api = facts.tool_result_images.by_api.iter();
        by_api.find_map(|(word, takes)| {
            let api = ApiShape::from_word(word)?;
            (route.api == Some(api)).then(|| (*takes, format!("{path}.{word}")))
        })
    };
    let of_provider = || Some((facts.tool_result_images.any?, path.clone()));
    of_model.or_else(of_api).or_else(of_provider)
}

fn known(route: &LiveRoute) -> Classified {
    let vendor = route.model.split_once('/').map(|(vendor, _)| vendor);
    if let Some(vendor) = vendor.filter(|vendor| {
        let vendor = vendor.to_lowercase();
        REFUSING_VENDORS.contains(&vendor.as_str())
    }) {
        let why = format!("models of {} refuse images in tool results", shown(vendor));
        return Classified::new(RouteClass::Veto, why);
    }
    let provider = route.provider.replace('_', "-");
    let at_host = route.endpoint.as_ref().and_then(refusing_host);
    let name = at_host.unwrap_or(&provider);
    if route.api == Some(ApiShape::OpenaiChat) && OPENAI_OWN.contains(&name) {
        return Classified {
            veto: Cause::ApiRefuses,
            ..Classified::new(
                RouteClass::Veto,
                "tool messages of OpenAI's Chat Completions carry text only",
            )
        };
    }
    let fact = ROUTE_FACTS
        .iter()
        .find(|fact| fact.providers.contains(&name));
    fact.map_or_else(
        || {
            let why = "nothing is known of images in its tool results";
            Classified::new(RouteClass::Neutral, why)
        },
        |fact| apply(fact, route),
    )
}

fn apply(fact: &RouteFact, route: &LiveRoute) -> Classified {
    let source = fact.source;
    let accepts = |what: &str| {
        let why = format!("it takes images in tool results{what} ({source})");
        Classified::new(RouteClass::Accepts, why)
    };
    let refuses = |what: &str| {
        let why = format!("it refuses images in tool results{what} ({source})");
        Classified::new(RouteClass::Veto, why)
    };
    match fact.takes {
        Takes::Accepts => accepts(""),
        Takes::Refuses => refuses(""),
        Takes::AcceptsGemini3 => {
            let model = route.model.to_lowercase();
            if GEMINI_3.iter().any(|part| model.contains(part)) {
                accepts(" for Gemini 3 and later")
            } else {
                let why = format!(
                    "only Gemini 3 and later are known to take images in tool results ({source})"
                );
                Classified::new(RouteClass::Neutral, why)
            }
        }
        Takes::RefusesOver(api) if route.api.is_none_or(|it| it == api) => {
            refuses(&format!(" over {}", api.as_str()))
        }
        Takes::RefusesOver(_) => {
            let why =
                format!("nothing is known of images in its tool results over this API ({source})");
            Classified::new(RouteClass::Neutral, why)
        }
        Takes::AcceptsOnlyOver(api) if route.api == Some(api) => {
            accepts(&format!(" over {}", api.as_str()))
        }
        Takes::AcceptsOnlyOver(api) => refuses(&format!(" except over {}", api.as_str())),
    }
}

fn refusing_host(endpoint: &Url) -> Option<&'static str> {
    let host = endpoint.host_str()?;
    REFUSING_HOSTS
        .iter()
        .find(|(name, path, _)| host == *name && endpoint.path().starts_with(path))
        .map(|(_, _, provider)| *provider)
}

#[cfg(test)]
mod tests;
