//! The one gate for pictures of every source.

use std::sync::Arc;

use talaria_config::{Config, GateConfig, ImageDelivery, ImageInputMode};
use talaria_types::{Deadline, Route, SessionKey};

use crate::class::{Classified, classify};
use crate::explanation::{Answer, Explanation, Step};
use crate::live_route::LiveRoute;
use crate::lookup::{answered, look_up, not_asked};
use crate::probe::{Hint, Prober, Server};
use crate::refusals::Refusals;
use crate::{Catalogue, CatalogueError, Cause, ProviderLimits, RouteClass, gate};

/// Where a picture comes from. It plays no role in the decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageSource {
    /// The result of an MCP tool.
    Mcp,
    /// A question about a picture.
    VisionAnalyze,
    /// A screenshot of a browser.
    Browser,
    /// A capture of a screen.
    ComputerUse,
}

impl ImageSource {
    /// Every source.
    pub const ALL: &'static [Self] = &[
        Self::Mcp,
        Self::VisionAnalyze,
        Self::Browser,
        Self::ComputerUse,
    ];

    /// Its word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Mcp => "mcp",
            Self::VisionAnalyze => "vision_analyze",
            Self::Browser => "browser",
            Self::ComputerUse => "computer_use",
        }
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug)]
pub struct GateQuestion<'a> {
    /// The live route; the configured main model stands in.
    pub route: Option<&'a Route>,
    /// The caller's conversation.
    pub session: Option<&'a SessionKey>,
    /// The mode the request asks for; the configured one otherwise.
    pub mode: Option<ImageInputMode>,
    /// API shape of the format asked for; the route's own word comes first.
    pub api: Option<&'a str>,
    /// Where the picture comes from.
    pub source: ImageSource,
}

/// Whether pictures may pass.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// They may.
    pub open: bool,
    /// The mode that counted.
    pub mode: ImageInputMode,
    /// What decided.
    pub cause: Cause,
    /// What decided, in words for an operator.
    pub reason: String,
    /// Where they go.
    pub image_delivery: ImageDelivery,
    /// Whether the route takes WebP.
    pub webp: bool,
    /// What the provider takes at most.
    pub limits: ProviderLimits,
}

impl Decision {
    /// Whether the gate is closed although somebody will wonder: the model sees, or the mode is
    /// `native`. The specification wants a log line then.
    #[must_use]
    pub fn is_surprising(&self) -> bool {
        let ordered = self.mode == ImageInputMode::Native;
        let refused = matches!(self.cause, Cause::RouteRefuses | Cause::ApiRefuses);
        !self.open && (ordered || refused)
    }
}

/// Answers for every source of pictures; cheap to clone.
#[derive(Clone, Debug)]
pub struct Gatekeeper(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    config: GateConfig,
    allowed: ImageDelivery,
    catalogue: Result<&'static Catalogue, CatalogueError>,
    prober: Prober,
    refusals: Refusals,
}

impl Gatekeeper {
    /// A gatekeeper for a configuration, with the shipped catalogue.
    #[must_use]
    pub fn new(config: &Config) -> Self {
        Self::with_catalogue(config, Catalogue::shipped())
    }

    fn with_catalogue(
        config: &Config,
        catalogue: Result<&'static Catalogue, CatalogueError>,
    ) -> Self {
        Self(Arc::new(Inner {
            config: config.gate.clone(),
            allowed: config.talaria.images.image_delivery,
            catalogue,
            prober: Prober::default(),
            refusals: Refusals::default(),
        }))
    }

    /// Decides. Never fails: whatever goes wrong closes the gate.
    ///
    /// Waits for a server of this machine or network at most a second, at most until the
    /// deadline, and only where nothing else knows the model. A deadline that is past asks nobody.
    pub async fn decide(&self, question: &GateQuestion<'_>, deadline: Deadline) -> Decision {
        self.explain(question, deadline).await.decision
    }

    /// Decides, and says how it came to that.
    pub async fn explain(&self, question: &GateQuestion<'_>, deadline: Deadline) -> Explanation {
        let config = &self.0.config;
        let stand_in = main_route(config);
        let asked = question
            .route
            .filter(|route| !route.model.trim().is_empty());
        let route = asked.or(stand_in.as_ref());
        let live = route.map(|route| LiveRoute::new(config, route, question.api));
        let mut explanation = Explanation {
            provider: live
                .as_ref()
                .map(|it| it.provider.clone())
                .unwrap_or_default(),
            model: live.as_ref().map(|it| it.model.clone()).unwrap_or_default(),
            api: live.as_ref().and_then(|it| it.api),
            is_stand_in: asked.is_none(),
            mode: question.mode.unwrap_or(config.mode),
            explicit_aux: config.explicit_aux,
            prefer_native: config.prefer_native,
            steps: Vec::new(),
            class: None,
            decision: closed(question.mode.unwrap_or(config.mode), Cause::NoRoute, ""),
        };
        let (Some(route), Some(live)) = (route, live) else {
            explanation.decision = self.without_route(explanation.mode);
            return explanation;
        };
        let classified = classify(config, self.0.allowed, &live);
        let limits = self.limits(&live);
        let verdict = match &self.0.catalogue {
            Err(error) => Err((Cause::LookUpFailed, error.to_string())),
            Ok(catalogue) => {
                let mut steps = look_up(config, catalogue, &live);
                // No server is asked for what cannot change the outcome.
                if self.is_worth_asking(explanation.mode, classified.class) {
                    self.probe(&live, &mut steps, deadline).await;
                }
                explanation.steps = steps;
                Ok(answered(&explanation.steps))
            }
        };
        let remembers = self.0.refusals.holds(question.session, route);
        let mut decision = match verdict {
            Err((cause, reason)) if explanation.mode != ImageInputMode::Text => {
                closed(explanation.mode, cause, &reason)
            }
            Ok(_) if remembers && explanation.mode != ImageInputMode::Text => {
                let reason = format!(
                    "{}: the provider refused images in this session",
                    live.shown()
                );
                closed(explanation.mode, Cause::RefusedBefore, &reason)
            }
            verdict => {
                let known = verdict.ok().flatten();
                self.judge(explanation.mode, &live, &classified, known)
            }
        };
        decision.webp = limits.webp;
        decision.limits = limits;
        explanation.class = Some((classified.class, classified.why));
        explanation.decision = decision;
        explanation
    }

    /// Remembers that a provider refused pictures; binds the session's further questions.
    pub fn remember_refusal(&self, session: Option<&SessionKey>, route: &Route) {
        self.0.refusals.remember(session, route);
    }

    pub(crate) fn config(&self) -> &GateConfig {
        &self.0.config
    }

    pub(crate) fn allowed(&self) -> ImageDelivery {
        self.0.allowed
    }

    /// The catalogue, if it can be read.
    #[must_use]
    pub fn catalogue(&self) -> Option<&'static Catalogue> {
        self.0.catalogue.as_ref().ok().copied()
    }

    fn without_route(&self, mode: ImageInputMode) -> Decision {
        let (cause, reason) = match mode {
            ImageInputMode::Text => (Cause::ModeText, "image_input_mode is text"),
            ImageInputMode::Auto | ImageInputMode::Native => (
                Cause::NoRoute,
                "the request names no route, and the configuration no main model (`model`)",
            ),
        };
        closed(mode, cause, reason)
    }

    fn is_worth_asking(&self, mode: ImageInputMode, class: RouteClass) -> bool {
        let config = &self.0.config;
        let (aux, prefer) = (config.explicit_aux, config.prefer_native);
        let is_open = |sees| gate(mode, aux, prefer, sees, class).0;
        is_open(Some(true)) != is_open(None)
    }

    /// Steps 6 and 7 of the look-up.
    async fn probe(&self, live: &LiveRoute, steps: &mut Vec<Step>, deadline: Deadline) {
        const OLLAMA: &str = "ollama";
        const LLAMA_CPP: &str = "llama.cpp";
        let step = |source, answer, detail: &str| Step {
            source,
            answer,
            detail: detail.to_owned(),
        };
        if answered(steps).is_some() {
            steps.extend([not_asked(OLLAMA), not_asked(LLAMA_CPP)]);
            return;
        }
        let hint = Hint::of(&live.provider);
        let endpoint = live.endpoint.clone().or_else(|| hint.usual_endpoint());
        let Some(endpoint) = endpoint else {
            let detail = "no endpoint is configured";
            steps.push(step(OLLAMA, Answer::Unknown, detail));
            steps.push(step(LLAMA_CPP, Answer::Unknown, detail));
            return;
        };
        let found = self
            .0
            .prober
            .ask(&endpoint, hint, &live.model, deadline)
            .await;
        let (mine, other) = if found.server == Server::LlamaCpp || hint == Hint::LlamaCpp {
            (LLAMA_CPP, OLLAMA)
        } else {
            (OLLAMA, LLAMA_CPP)
        };
        let detail = format!("{} ({endpoint})", found.detail);
        let answer = step(mine, found.sees.into(), &detail);
        let other = if found.server == Server::Unknown && hint == Hint::Nothing {
            step(other, Answer::Unknown, &detail)
        } else {
            step(other, Answer::Unknown, "another server")
        };
        if mine == OLLAMA {
            steps.extend([answer, other]);
        } else {
            steps.extend([other, answer]);
        }
    }

    fn limits(&self, live: &LiveRoute) -> ProviderLimits {
        let hint = Hint::of(&live.provider);
        let name = match hint {
            Hint::Ollama => Some("ollama"),
            Hint::LlamaCpp => Some("llamacpp"),
            Hint::Nothing => self.catalogue().and_then(|it| live.catalogue_name(it)),
        };
        name.map_or_else(ProviderLimits::default, |name| {
            ProviderLimits::of(name, &live.model)
        })
    }

    fn judge(
        &self,
        mode: ImageInputMode,
        live: &LiveRoute,
        classified: &Classified,
        known: Option<&Step>,
    ) -> Decision {
        let config = &self.0.config;
        let sees = known.and_then(|step| step.answer.opinion());
        let class = classified.class;
        let (open, cause) = gate(mode, config.explicit_aux, config.prefer_native, sees, class);
        let cause = if cause == Cause::RouteRefuses {
            classified.veto
        } else {
            cause
        };
        Decision {
            open,
            mode,
            cause,
            reason: reason(cause, live, classified, known),
            image_delivery: classified.delivery,
            webp: false,
            limits: ProviderLimits::default(),
        }
    }
}

/// The main model as a route.
fn main_route(config: &GateConfig) -> Option<Route> {
    Some(Route {
        provider: config.main.provider.clone().unwrap_or_default(),
        model: config.main.model.clone()?,
        api: config.main.api.clone(),
    })
}

fn closed(mode: ImageInputMode, cause: Cause, reason: &str) -> Decision {
    let limits = ProviderLimits::default();
    Decision {
        open: false,
        mode,
        cause,
        reason: reason.to_owned(),
        image_delivery: ImageDelivery::ToolResult,
        webp: limits.webp,
        limits,
    }
}

/// The cause in words.
fn reason(cause: Cause, live: &LiveRoute, classified: &Classified, known: Option<&Step>) -> String {
    let route = live.shown();
    let why = &classified.why;
    let source = known.map_or("nobody knows", |step| step.detail.as_str());
    match cause {
        Cause::ModelSees => format!("{route} sees images ({source}); {why}"),
        Cause::OperatorOrdered => match known {
            Some(_) => format!(
                "{route} does not see images ({source}), but image_input_mode is native; {why}"
            ),
            None => format!(
                "it is not known whether {route} sees images, but image_input_mode is native; {why}"
            ),
        },
        Cause::ModeText => "image_input_mode is text".to_owned(),
        Cause::VisionBackend => {
            "image_input_mode is auto and auxiliary.vision names a backend; agent.prefer_native lets models that see have the images".to_owned()
        }
        Cause::ModelBlind => format!("{route} does not see images ({source})"),
        Cause::ModelUnknown => format!(
            "it is not known whether {route} sees images; model.supports_vision or providers.*.models.*.supports_vision can say so"
        ),
        Cause::RouteRefuses | Cause::ApiRefuses => format!("{route}: {why}"),
        Cause::RefusedBefore | Cause::NoRoute | Cause::LookUpFailed => route,
    }
}

#[cfg(test)]
mod tests;
