//! HTTP surface of Talaria: routes, authentication, OpenAPI.
