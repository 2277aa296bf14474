//! The truth table (specification 2.5): open if and only if the mode resolves to native, there
//! is no veto, and the route is known to take pictures or the model is known to see them.

use talaria_config::ImageInputMode;

use crate::RouteClass;

/// What decided. A closed set: the words are labels of metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Open: the model is known to see.
    ModelSees,
    /// Open: mode `native` on a route that takes pictures, whatever is known of the model.
    OperatorOrdered,
    /// Closed: mode `text`.
    ModeText,
    /// Closed: mode `auto` and a vision backend is configured.
    VisionBackend,
    /// Closed: the model is known not to see.
    ModelBlind,
    /// Closed: nothing is known of the model.
    ModelUnknown,
    /// Closed: the route takes no pictures in tool results.
    RouteRefuses,
    /// Closed: the API shape has no place for pictures in tool results.
    ApiRefuses,
    /// Closed: the provider refused pictures in this session.
    RefusedBefore,
    /// Closed: neither the request nor the configuration names a model.
    NoRoute,
    /// Closed: the look-up failed.
    LookUpFailed,
}

impl Cause {
    /// Every cause.
    pub const ALL: &'static [Self] = &[
        Self::ModelSees,
        Self::OperatorOrdered,
        Self::ModeText,
        Self::VisionBackend,
        Self::ModelBlind,
        Self::ModelUnknown,
        Self::RouteRefuses,
        Self::ApiRefuses,
        Self::RefusedBefore,
        Self::NoRoute,
        Self::LookUpFailed,
    ];

    /// Its label.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::ModelSees => "model_sees",
            Self::OperatorOrdered => "operator_ordered",
            Self::ModeText => "mode_text",
            Self::VisionBackend => "vision_backend",
            Self::ModelBlind => "model_blind",
            Self::ModelUnknown => "model_unknown",
            Self::RouteRefuses => "route_refuses",
            Self::ApiRefuses => "api_refuses",
            Self::RefusedBefore => "refused_before",
            Self::NoRoute => "no_route",
            Self::LookUpFailed => "look_up_failed",
        }
    }
}

/// Whether pictures may pass, and what decided.
///
/// `sees` is what is known of the model; `prefer_native` lets `auto` ignore an explicit vision
/// backend for models that see.
#[must_use]
pub const fn gate(
    mode: ImageInputMode,
    explicit_aux: bool,
    prefer_native: bool,
    sees: Option<bool>,
    class: RouteClass,
) -> (bool, Cause) {
    match mode {
        ImageInputMode::Text => (false, Cause::ModeText),
        ImageInputMode::Auto => match sees {
            Some(true) if explicit_aux && !prefer_native => (false, Cause::VisionBackend),
            None | Some(false) if explicit_aux => (false, Cause::VisionBackend),
            None => (false, Cause::ModelUnknown),
            Some(false) => (false, Cause::ModelBlind),
            Some(true) => match class {
                RouteClass::Accepts | RouteClass::Neutral => (true, Cause::ModelSees),
                RouteClass::Veto => (false, Cause::RouteRefuses),
            },
        },
        ImageInputMode::Native => match (class, sees) {
            (RouteClass::Veto, _) => (false, Cause::RouteRefuses),
            (RouteClass::Accepts | RouteClass::Neutral, Some(true)) => (true, Cause::ModelSees),
            (RouteClass::Accepts, None | Some(false)) => (true, Cause::OperatorOrdered),
            (RouteClass::Neutral, None) => (false, Cause::ModelUnknown),
            (RouteClass::Neutral, Some(false)) => (false, Cause::ModelBlind),
        },
    }
}

#[cfg(test)]
mod tests;
