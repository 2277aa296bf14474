//! `talaria models`.

use std::time::Duration;

use serde::Serialize;
use talaria_types::{Deadline, Route};
use talaria_vision::{
    Explanation, GateQuestion, Gatekeeper, ImageSource, KnownModel, ProviderLimits, RouteClass,
    Step,
};

use super::Surroundings;
use crate::arguments::ModelsArguments;
use crate::configuration;
use crate::describers::Describers;
use crate::exit::{CommandError, Exit};
use crate::output::with_progress;
use crate::table::Table;

/// How long a model server of this machine or network may take.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// What is known of models.
#[derive(Debug, Serialize)]
struct ModelList {
    catalogue: CatalogueHead,
    models: Vec<KnownModel>,
    describers: Describers,
}

#[derive(Debug, Serialize)]
struct CatalogueHead {
    source: &'static str,
    date: &'static str,
}

/// Why a route gets pictures or does not.
#[derive(Debug, Serialize)]
struct Account {
    provider: String,
    model: String,
    api: Option<&'static str>,
    mode: &'static str,
    vision_backend: bool,
    prefer_native: bool,
    steps: Vec<Step>,
    class: Option<RouteClass>,
    class_reason: Option<String>,
    open: bool,
    cause: &'static str,
    reason: String,
    image_delivery: &'static str,
    limits: ProviderLimits,
    describers: Describers,
}

/// Lists models, or explains the answer for one route.
pub(super) async fn run(
    surroundings: &Surroundings,
    arguments: ModelsArguments,
) -> Result<Exit, CommandError> {
    let _log = surroundings.quiet_log()?;
    let config = configuration::load(&arguments.config, &surroundings.environment)?.config;
    let keeper = Gatekeeper::new(&config);
    let describers = Describers::of(&config, keeper.catalogue());
    match arguments.route {
        Some(route) => {
            let route = parse(&route, arguments.api)?;
            let account = with_progress("asking", explain(&keeper, &route, describers)).await?;
            surroundings.output.print(&account, Account::render)?;
        }
        None => {
            let list = list(&keeper, arguments.provider.as_deref(), describers)?;
            surroundings.output.print(&list, ModelList::render)?;
        }
    }
    Ok(Exit::Ok)
}

fn parse(text: &str, api: Option<String>) -> Result<Route, CommandError> {
    match text.split_once('/') {
        Some((provider, model)) if !provider.is_empty() && !model.is_empty() => Ok(Route {
            provider: provider.to_owned(),
            model: model.to_owned(),
            api,
        }),
        Some(_) | None => Err(CommandError::usage(
            "a route is PROVIDER/MODEL, for example openrouter/anthropic/claude-sonnet-4.5",
        )),
    }
}

async fn explain(
    keeper: &Gatekeeper,
    route: &Route,
    describers: Describers,
) -> Result<Account, CommandError> {
    let question = GateQuestion {
        route: Some(route),
        session: None,
        mode: None,
        api: None,
        source: ImageSource::Mcp,
    };
    let deadline = Deadline::after(PROBE_TIMEOUT);
    let explanation = keeper.explain(&question, deadline).await;
    Ok(Account::new(explanation, describers))
}

fn list(
    keeper: &Gatekeeper,
    provider: Option<&str>,
    describers: Describers,
) -> Result<ModelList, CommandError> {
    let catalogue = keeper
        .catalogue()
        .ok_or_else(|| anyhow::anyhow!("the catalogue of models cannot be read"))?;
    let models = keeper.known_models(provider);
    if models.is_empty() {
        return Err(CommandError::usage(format!(
            "no model of the provider `{}` is known",
            provider.unwrap_or_default()
        )));
    }
    Ok(ModelList {
        catalogue: CatalogueHead {
            source: catalogue.source(),
            date: catalogue.date(),
        },
        models,
        describers,
    })
}

impl ModelList {
    fn render(&self) -> String {
        let mut table = Table::new(&[
            "PROVIDER",
            "MODEL",
            "SEES",
            "TOOL RESULTS",
            "GATE",
            "SOURCE",
        ]);
        for known in &self.models {
            table.row(&[
                known.provider.clone(),
                known.model.clone(),
                yes_or_no(known.sees).to_owned(),
                known.class.as_str().to_owned(),
                open_or_closed(known.open).to_owned(),
                known.source.clone(),
            ]);
        }
        format!("{}\n{}", table.render(), self.describers.render())
    }
}

impl Account {
    fn new(explanation: Explanation, describers: Describers) -> Self {
        let decision = explanation.decision;
        let (class, class_reason) = explanation.class.unzip();
        Self {
            provider: explanation.provider,
            model: explanation.model,
            api: explanation.api.map(|api| api.as_str()),
            mode: explanation.mode.as_str(),
            vision_backend: explanation.explicit_aux,
            prefer_native: explanation.prefer_native,
            steps: explanation.steps,
            class,
            class_reason,
            open: decision.open,
            cause: decision.cause.as_str(),
            reason: decision.reason,
            image_delivery: decision.image_delivery.as_str(),
            limits: decision.limits,
            describers,
        }
    }

    fn render(&self) -> String {
        let mut steps = Table::new(&["DOES THE MODEL SEE", "ANSWER", "DETAIL"]);
        for step in &self.steps {
            steps.row(&[
                step.source.to_owned(),
                step.answer.as_str().to_owned(),
                step.detail.clone(),
            ]);
        }
        let mut text = steps.render();
        text.push('\n');
        let mut facts = Table::new(&["ROUTE", &format!("{}/{}", self.provider, self.model)]);
        let class = self.class.map_or("unknown", RouteClass::as_str);
        let why = self.class_reason.as_deref().unwrap_or_default();
        for (name, value) in [
            ("API", self.api.unwrap_or("not named").to_owned()),
            ("TOOL RESULTS", format!("{class}: {why}")),
            ("MODE", self.mode.to_owned()),
            ("VISION BACKEND", self.backend().to_owned()),
            ("LIMITS", limits(&self.limits)),
            (
                "GATE",
                format!("{} ({})", open_or_closed(self.open), self.cause),
            ),
            ("REASON", self.reason.clone()),
            ("IMAGES GO INTO", self.image_delivery.to_owned()),
        ] {
            facts.row(&[name.to_owned(), value]);
        }
        text.push_str(&facts.render());
        text.push('\n');
        text.push_str(&self.describers.render());
        text
    }

    const fn backend(&self) -> &'static str {
        match (self.vision_backend, self.prefer_native) {
            (false, _) => "none",
            (true, false) => "configured",
            (true, true) => "configured; agent.prefer_native beats it",
        }
    }
}

fn limits(limits: &ProviderLimits) -> String {
    let mut text = format!(
        "{} images, {} px, {} bytes of base64; png, jpeg",
        limits.max_images, limits.max_side, limits.max_bytes
    );
    for (takes, name) in [(limits.webp, "webp"), (limits.gif, "gif")] {
        if takes {
            text.push_str(", ");
            text.push_str(name);
        }
    }
    text
}

const fn yes_or_no(yes: bool) -> &'static str {
    if yes { "yes" } else { "no" }
}

const fn open_or_closed(open: bool) -> &'static str {
    if open { "open" } else { "closed" }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_a_provider_and_the_rest() {
        let route = parse("openrouter/anthropic/claude-sonnet-4.5", None).unwrap();
        assert_eq!(route.provider, "openrouter");
        assert_eq!(route.model, "anthropic/claude-sonnet-4.5");
        for wrong in ["gpt-4o", "/gpt-4o", "openai/", ""] {
            assert_eq!(
                parse(wrong, None).unwrap_err().exit(),
                Exit::Usage,
                "{wrong}"
            );
        }
    }
}
