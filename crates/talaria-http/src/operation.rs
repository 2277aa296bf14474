//! The table of operations: method, path, who may use it, and the route behind it.
//!
//! Routes are registered from this table and the OpenAPI document is written from it, so the two
//! cannot drift apart.

use actix_web::guard::{self, Guard};
use actix_web::http::Method;
use actix_web::{HttpRequest, Route, web};

use crate::auth::Access;
use crate::exchange;

/// Everything the API can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Operation {
    CallTool,
    ListTools,
    DeliverResult,
    DowngradeResult,
    DeliverImage,
    AnalyzeImage,
    ListServers,
    GetServer,
    TestServer,
    ReconnectServer,
    EnableServer,
    DisableServer,
    ReloadConfiguration,
    ListenToEvents,
    ReadArtifact,
    DescribeArtifact,
    DeleteArtifact,
    Liveness,
    Readiness,
    Metrics,
    OpenApi,
}

impl Operation {
    /// Every operation, operations of one path next to each other.
    pub(crate) const ALL: &'static [Self] = &[
        Self::CallTool,
        Self::ListTools,
        Self::DeliverResult,
        Self::DowngradeResult,
        Self::DeliverImage,
        Self::AnalyzeImage,
        Self::ListServers,
        Self::GetServer,
        Self::TestServer,
        Self::ReconnectServer,
        Self::EnableServer,
        Self::DisableServer,
        Self::ReloadConfiguration,
        Self::ListenToEvents,
        Self::ReadArtifact,
        Self::DeleteArtifact,
        Self::DescribeArtifact,
        Self::Liveness,
        Self::Readiness,
        Self::Metrics,
        Self::OpenApi,
    ];

    /// The method; `GET` stands for `HEAD` too.
    pub(crate) const fn method(self) -> Method {
        match self {
            Self::CallTool
            | Self::DeliverResult
            | Self::DowngradeResult
            | Self::DeliverImage
            | Self::AnalyzeImage
            | Self::TestServer
            | Self::ReconnectServer
            | Self::EnableServer
            | Self::DisableServer
            | Self::ReloadConfiguration => Method::POST,
            Self::ListTools
            | Self::ListServers
            | Self::GetServer
            | Self::ListenToEvents
            | Self::ReadArtifact
            | Self::DescribeArtifact
            | Self::Liveness
            | Self::Readiness
            | Self::Metrics
            | Self::OpenApi => Method::GET,
            Self::DeleteArtifact => Method::DELETE,
        }
    }

    /// The path, with parameters in braces.
    pub(crate) const fn path(self) -> &'static str {
        match self {
            Self::CallTool => "/v1/tools/call",
            Self::ListTools => "/v1/tools",
            Self::DeliverResult => "/v1/results/deliver",
            Self::DowngradeResult => "/v1/results/downgrade",
            Self::DeliverImage => "/v1/images/deliver",
            Self::AnalyzeImage => "/v1/vision/analyze",
            Self::ListServers => "/v1/servers",
            Self::GetServer => "/v1/servers/{name}",
            Self::TestServer => "/v1/servers/{name}/test",
            Self::ReconnectServer => "/v1/servers/{name}/reconnect",
            Self::EnableServer => "/v1/servers/{name}/enable",
            Self::DisableServer => "/v1/servers/{name}/disable",
            Self::ReloadConfiguration => "/v1/reload",
            Self::ListenToEvents => "/v1/events",
            Self::ReadArtifact | Self::DeleteArtifact => "/v1/artifacts/{id}",
            Self::DescribeArtifact => "/v1/artifacts/{id}/meta",
            Self::Liveness => "/healthz",
            Self::Readiness => "/readyz",
            Self::Metrics => "/metrics",
            Self::OpenApi => "/openapi.json",
        }
    }

    /// Who may use it.
    pub(crate) const fn access(self) -> Access {
        match self {
            Self::CallTool
            | Self::DeliverResult
            | Self::DowngradeResult
            | Self::DeliverImage
            | Self::AnalyzeImage => Access::Call,
            Self::ListTools
            | Self::ListServers
            | Self::GetServer
            | Self::ListenToEvents
            | Self::ReadArtifact
            | Self::DescribeArtifact
            | Self::DeleteArtifact => Access::AnyToken,
            Self::TestServer
            | Self::ReconnectServer
            | Self::EnableServer
            | Self::DisableServer
            | Self::ReloadConfiguration => Access::Admin,
            Self::Liveness | Self::Readiness => Access::Probe,
            Self::Metrics => Access::Metrics,
            Self::OpenApi => Access::Open,
        }
    }
}

/// What a request turned out to ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Target {
    /// One of the table.
    Operation(Operation),
    /// A path of the table with another method.
    WrongMethod(&'static str),
    /// No path of the table.
    Nothing,
}

impl Target {
    /// The route as a label: a closed set.
    pub(crate) const fn label(self) -> &'static str {
        match self {
            Self::Operation(operation) => operation.path(),
            Self::WrongMethod(path) => path,
            Self::Nothing => "unmatched",
        }
    }
}

/// The methods of a path, as the `Allow` header lists them.
pub(crate) fn allowed_methods(path: &str) -> String {
    let mut allowed = Vec::new();
    for operation in Operation::ALL
        .iter()
        .filter(|operation| operation.path() == path)
    {
        let method = operation.method();
        allowed.push(method.as_str().to_owned());
        if method == Method::GET {
            allowed.push(Method::HEAD.as_str().to_owned());
        }
    }
    allowed.join(", ")
}

/// Registers every operation of the table.
pub(crate) fn register(services: &mut web::ServiceConfig) {
    for group in Operation::ALL.chunk_by(|one, next| one.path() == next.path()) {
        let Some(path) = group.first().map(|operation| operation.path()) else {
            continue;
        };
        let mut resource = web::resource(path).default_service(handler(Target::WrongMethod(path)));
        for operation in group {
            let route = handler(Target::Operation(*operation));
            resource = resource.route(route.guard(accepts(operation.method())));
        }
        services.service(resource);
    }
    services.default_service(handler(Target::Nothing));
}

fn accepts(method: Method) -> impl Guard {
    guard::fn_guard(move |context| {
        let asked = &context.head().method;
        *asked == method || (method == Method::GET && *asked == Method::HEAD)
    })
}

fn handler(target: Target) -> Route {
    web::to(
        move |request: HttpRequest, payload: web::Payload| async move {
            exchange::answer(target, request, payload).await
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_each_method_and_path_once_and_keeps_paths_together() {
        let mut seen = std::collections::BTreeSet::new();
        for operation in Operation::ALL {
            let unique = seen.insert((operation.path(), operation.method().to_string()));
            assert!(unique, "{operation:?} stands twice");
        }
        let paths: Vec<_> = Operation::ALL
            .iter()
            .map(|operation| operation.path())
            .collect();
        let mut grouped = paths.clone();
        grouped.dedup();
        let distinct: std::collections::BTreeSet<_> = paths.iter().collect();
        assert_eq!(grouped.len(), distinct.len());
    }

    #[test]
    fn lists_head_beside_get_in_allow() {
        assert_eq!(allowed_methods("/v1/artifacts/{id}"), "GET, HEAD, DELETE");
        assert_eq!(allowed_methods("/v1/tools/call"), "POST");
    }
}
