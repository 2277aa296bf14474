//! The OpenAPI 3.1 document, written from the table of operations and the real types.

use schemars::generate::SchemaSettings;
use schemars::{JsonSchema, SchemaGenerator};
use serde_json::{Map, Value, json};
use talaria_actors::{ReloadReport, ServerStatus};
use talaria_content::Delivery;
use talaria_content::tools::ToolFormat;

use crate::auth::Access;
use crate::operation::Operation;
use crate::problem::{PROBLEM_JSON, Problem};
use crate::routes::{
    AnalyzeAnswer, AnalyzeRequest, ArtifactMeta, CallRequest, DeliverRequest, DowngradeRequest,
    EventData, ImageRequest, Liveness, Readiness, ReloadProblems, ServerList, ServerTest, ToolList,
    VisionFailure,
};

/// The whole document.
pub(crate) fn document() -> Value {
    let mut schemas = SchemaSettings::draft2020_12()
        .with(|settings| settings.definitions_path = "/components/schemas".into())
        .into_generator();
    let mut paths = Map::new();
    for operation in Operation::ALL {
        let path = paths.entry(operation.path()).or_insert_with(|| json!({}));
        let method = operation.method().as_str().to_ascii_lowercase();
        if let Value::Object(methods) = path {
            methods.insert(method, describe(*operation, &mut schemas));
            if *operation == Operation::ReadArtifact {
                methods.insert("head".to_owned(), head_of_artifact(&mut schemas));
            }
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Talaria",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "The delivery runtime between MCP servers and models.",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": [
            { "name": "tools", "description": "Calling tools and delivering results" },
            { "name": "servers", "description": "The MCP servers and their life cycle" },
            { "name": "artifacts", "description": "The media store" },
            { "name": "service", "description": "Probes, metrics and this document" },
        ],
        "paths": paths,
        "components": {
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer" } },
            "schemas": schemas.take_definitions(true),
        },
    })
}

/// What the document says of an operation besides method and path.
struct Description {
    id: &'static str,
    tag: &'static str,
    summary: &'static str,
    parameters: Vec<Value>,
    body: Option<Value>,
    answers: Map<String, Value>,
}

fn describe(operation: Operation, schemas: &mut SchemaGenerator) -> Value {
    let described = description(operation, schemas);
    let mut answers = described.answers;
    answers.insert("default".to_owned(), problem(schemas));
    let mut entry = json!({
        "operationId": described.id,
        "tags": [described.tag],
        "summary": described.summary,
        "security": security(operation.access()),
        "responses": answers,
    });
    if let Value::Object(entry) = &mut entry {
        if !described.parameters.is_empty() {
            entry.insert("parameters".to_owned(), Value::Array(described.parameters));
        }
        if let Some(schema) = described.body {
            let content = json!({ "application/json": { "schema": schema } });
            entry.insert(
                "requestBody".to_owned(),
                json!({ "required": true, "content": content }),
            );
        }
    }
    entry
}

fn description(operation: Operation, schemas: &mut SchemaGenerator) -> Description {
    match operation {
        Operation::CallTool => Description {
            body: Some(reference::<CallRequest>(schemas)),
            answers: delivery(schemas),
            ..named("callTool", "tools", "Calls a tool and delivers its result")
        },
        Operation::DeliverResult => Description {
            body: Some(reference::<DeliverRequest>(schemas)),
            answers: delivery(schemas),
            ..named(
                "deliverResult",
                "tools",
                "Delivers a result the caller got itself",
            )
        },
        Operation::DowngradeResult => Description {
            body: Some(reference::<DowngradeRequest>(schemas)),
            answers: delivery(schemas),
            ..named(
                "downgradeResult",
                "tools",
                "Takes the pictures out of a delivery whose provider refused them",
            )
        },
        Operation::DeliverImage => Description {
            body: Some(reference::<ImageRequest>(schemas)),
            answers: delivery(schemas),
            ..named(
                "deliverImage",
                "tools",
                "Delivers one picture, as pixels where the model sees",
            )
        },
        Operation::AnalyzeImage => Description {
            body: Some(reference::<AnalyzeRequest>(schemas)),
            answers: analysis(schemas),
            ..named("analyzeImage", "tools", "Describes one picture in words")
        },
        Operation::ListTools => Description {
            parameters: vec![
                in_query(
                    "format",
                    &json!({
                        "type": "string",
                        "enum": ToolFormat::ALL.map(ToolFormat::as_str),
                        "default": ToolFormat::default().as_str(),
                    }),
                ),
                in_query("server", &json!({ "type": "string" })),
                in_header("If-None-Match"),
            ],
            answers: tagged::<ToolList>(schemas, "The tools the caller may use"),
            ..named("listTools", "tools", "Lists tools")
        },
        Operation::ListServers => Description {
            parameters: vec![in_header("If-None-Match")],
            answers: tagged::<ServerList>(schemas, "The servers the caller may use"),
            ..named("listServers", "servers", "Lists the servers")
        },
        Operation::GetServer => Description {
            parameters: vec![in_path("name")],
            answers: status(schemas),
            ..named("getServer", "servers", "Tells what is known of a server")
        },
        Operation::TestServer => Description {
            parameters: vec![in_path("name")],
            answers: answer::<ServerTest>(schemas, "What the test found"),
            ..named(
                "testServer",
                "servers",
                "Connects if need be and lists the tools",
            )
        },
        Operation::ReconnectServer => Description {
            parameters: vec![in_path("name")],
            answers: status(schemas),
            ..named(
                "reconnectServer",
                "servers",
                "Ends the session and starts a new one",
            )
        },
        Operation::EnableServer => Description {
            parameters: vec![in_path("name")],
            answers: status(schemas),
            ..named("enableServer", "servers", "Starts a disabled server")
        },
        Operation::DisableServer => Description {
            parameters: vec![in_path("name")],
            answers: status(schemas),
            ..named(
                "disableServer",
                "servers",
                "Stops a server until it is enabled again",
            )
        },
        Operation::ReloadConfiguration => Description {
            answers: reloading(schemas),
            ..named(
                "reloadConfiguration",
                "servers",
                "Reads the configuration again; only servers whose entry changed stop or start",
            )
        },
        Operation::ListenToEvents => Description {
            parameters: vec![in_header("Last-Event-ID")],
            answers: events(schemas),
            ..named(
                "listenToEvents",
                "servers",
                "Tells what changes, as it happens",
            )
        },
        Operation::ReadArtifact => Description {
            parameters: artifact_parameters(),
            answers: file(),
            ..named(
                "readArtifact",
                "artifacts",
                "Sends a file, or a range of it",
            )
        },
        Operation::DescribeArtifact => Description {
            parameters: vec![in_path("id")],
            answers: answer::<ArtifactMeta>(schemas, "What is known of the file"),
            ..named(
                "describeArtifact",
                "artifacts",
                "Tells what is known of a file",
            )
        },
        Operation::DeleteArtifact => Description {
            parameters: vec![in_path("id")],
            answers: one("204", json!({ "description": "The file is gone" })),
            ..named("deleteArtifact", "artifacts", "Removes a file")
        },
        Operation::Liveness => Description {
            answers: answer::<Liveness>(schemas, "The process answers"),
            ..named("liveness", "service", "Liveness")
        },
        Operation::Readiness => Description {
            answers: answer::<Readiness>(schemas, "Calls are taken"),
            ..named("readiness", "service", "Readiness; 503 while draining")
        },
        Operation::Metrics => Description {
            answers: one("200", text("The metrics in Prometheus' text format")),
            ..named("metrics", "service", "Metrics")
        },
        Operation::OpenApi => Description {
            answers: one(
                "200",
                json!({
                    "description": "OpenAPI 3.1",
                    "content": { "application/json": { "schema": { "type": "object" } } },
                }),
            ),
            ..named("openapi", "service", "This document")
        },
    }
}

fn named(id: &'static str, tag: &'static str, summary: &'static str) -> Description {
    Description {
        id,
        tag,
        summary,
        parameters: Vec::new(),
        body: None,
        answers: Map::new(),
    }
}

/// `HEAD` differs from `GET` in its name only; elsewhere it goes without saying.
fn head_of_artifact(schemas: &mut SchemaGenerator) -> Value {
    json!({
        "operationId": "headArtifact",
        "tags": ["artifacts"],
        "summary": "Tells size, type and entity tag of a file",
        "security": security(Operation::ReadArtifact.access()),
        "parameters": [in_path("id")],
        "responses": {
            "200": { "description": "The headers of the file" },
            "default": problem(schemas),
        },
    })
}

fn security(access: Access) -> Value {
    match access {
        Access::Open => json!([]),
        // Whether a token is needed depends on the configuration and the address.
        Access::Probe | Access::Metrics | Access::AnyToken | Access::Call | Access::Admin => {
            json!([{}, { "token": [] }])
        }
    }
}

fn reference<T: JsonSchema>(schemas: &mut SchemaGenerator) -> Value {
    schemas.subschema_for::<T>().to_value()
}

fn one(status: &str, answer: Value) -> Map<String, Value> {
    Map::from_iter([(status.to_owned(), answer)])
}

fn answer<T: JsonSchema>(schemas: &mut SchemaGenerator, what: &str) -> Map<String, Value> {
    let schema = reference::<T>(schemas);
    one(
        "200",
        json!({ "description": what, "content": { "application/json": { "schema": schema } } }),
    )
}

/// An answer with an entity tag.
fn tagged<T: JsonSchema>(schemas: &mut SchemaGenerator, what: &str) -> Map<String, Value> {
    let mut answers = answer::<T>(schemas, what);
    answers.insert(
        "304".to_owned(),
        json!({ "description": "The caller has it already" }),
    );
    answers
}

fn status(schemas: &mut SchemaGenerator) -> Map<String, Value> {
    answer::<ServerStatus>(schemas, "What is known of the server now")
}

/// A delivery: as it is, in the shape of an agent or a provider, or only its text.
fn delivery(schemas: &mut SchemaGenerator) -> Map<String, Value> {
    let schema = reference::<Delivery>(schemas);
    let either = json!({
        "anyOf": [schema, { "description": "The other formats, in shapes that are not ours" }],
    });
    one(
        "200",
        json!({
            "description": "The delivery; a tool's own error is one too, with `is_error`",
            "content": {
                "application/json": { "schema": either },
                "text/plain": { "schema": { "type": "string", "description": "Format `text`" } },
            },
        }),
    )
}

/// A description, or the problem that says who was asked and failed.
fn analysis(schemas: &mut SchemaGenerator) -> Map<String, Value> {
    let mut answers = answer::<AnalyzeAnswer>(schemas, "The description");
    let failed = json!({
        "allOf": [reference::<Problem>(schemas), reference::<VisionFailure>(schemas)],
    });
    for (status, what) in [
        ("502", "Everybody who was asked failed"),
        ("504", "Time ran out before somebody answered"),
    ] {
        let content = json!({ PROBLEM_JSON: { "schema": failed } });
        answers.insert(
            status.to_owned(),
            json!({ "description": what, "content": content }),
        );
    }
    answers
}

/// What a reload changed, or everything that is wrong with the file.
fn reloading(schemas: &mut SchemaGenerator) -> Map<String, Value> {
    let mut answers = answer::<ReloadReport>(schemas, "What changed");
    let refused = json!({
        "allOf": [reference::<Problem>(schemas), reference::<ReloadProblems>(schemas)],
    });
    let content = json!({ PROBLEM_JSON: { "schema": refused } });
    let what = "The configuration cannot be used; nothing changed";
    answers.insert(
        "409".to_owned(),
        json!({ "description": what, "content": content }),
    );
    answers
}

/// Server-sent events.
fn events(schemas: &mut SchemaGenerator) -> Map<String, Value> {
    let data = reference::<EventData>(schemas);
    let content = json!({ "text/event-stream": { "schema": {
        "type": "string",
        "description": "Events whose data is JSON of the shape named here",
        "contentMediaType": "application/json",
        "contentSchema": data,
    } } });
    one(
        "200",
        json!({ "description": "Events, until the service is stopped", "content": content }),
    )
}

fn text(what: &str) -> Value {
    json!({ "description": what, "content": { "text/plain": { "schema": { "type": "string" } } } })
}

fn file() -> Map<String, Value> {
    let content = json!({ "*/*": { "schema": { "type": "string", "format": "binary" } } });
    Map::from_iter([
        (
            "200".to_owned(),
            json!({ "description": "The file", "content": content }),
        ),
        (
            "206".to_owned(),
            json!({ "description": "The range", "content": content }),
        ),
        (
            "304".to_owned(),
            json!({ "description": "The caller has it already" }),
        ),
        (
            "416".to_owned(),
            json!({ "description": "The range lies outside the file" }),
        ),
    ])
}

fn artifact_parameters() -> Vec<Value> {
    vec![
        in_path("id"),
        in_header("Range"),
        in_header("If-Range"),
        in_header("If-None-Match"),
    ]
}

fn in_header(name: &str) -> Value {
    json!({ "name": name, "in": "header", "required": false, "schema": { "type": "string" } })
}

fn in_path(name: &str) -> Value {
    json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
}

fn in_query(name: &str, schema: &Value) -> Value {
    json!({ "name": name, "in": "query", "required": false, "schema": schema })
}

fn problem(schemas: &mut SchemaGenerator) -> Value {
    let schema = reference::<Problem>(schemas);
    json!({
        "description": "Why the request was not answered with what it asked for",
        "content": { PROBLEM_JSON: { "schema": schema } },
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;
    use std::path::Path;

    use super::*;
    use crate::body::JsonRequest;
    use crate::operation::allowed_methods;

    const GOLDEN: &str = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/tests/golden/openapi-paths.json"
    );

    /// Every `$ref` in a value.
    fn references(value: &Value, found: &mut BTreeSet<String>) {
        match value {
            Value::Object(members) => {
                if let Some(Value::String(reference)) = members.get("$ref") {
                    found.insert(reference.clone());
                }
                members
                    .values()
                    .for_each(|member| references(member, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
        }
    }

    fn keys(schema: &str) -> BTreeSet<String> {
        let document = document();
        let properties = document["components"]["schemas"][schema]["properties"].clone();
        properties.as_object().unwrap().keys().cloned().collect()
    }

    fn strings(keys: &[&str]) -> BTreeSet<String> {
        keys.iter().map(|key| (*key).to_owned()).collect()
    }

    #[test]
    fn describes_every_operation_under_its_method() {
        let document = document();
        let paths = document["paths"].as_object().unwrap();
        for operation in Operation::ALL {
            let method = operation.method().as_str().to_ascii_lowercase();
            assert!(
                paths[operation.path()][&method].is_object(),
                "{operation:?}"
            );
        }
        for (path, methods) in paths {
            for method in methods.as_object().unwrap().keys() {
                assert!(
                    allowed_methods(path).contains(&method.to_uppercase()),
                    "{method} {path}"
                );
            }
        }
        let ids: Vec<_> = paths
            .values()
            .flat_map(|methods| methods.as_object().unwrap().values())
            .map(|entry| entry["operationId"].as_str().unwrap())
            .collect();
        assert_eq!(ids.iter().collect::<BTreeSet<_>>().len(), ids.len());
    }

    #[test]
    fn declares_the_parameters_of_each_path() {
        let document = document();
        for (path, methods) in document["paths"].as_object().unwrap() {
            let named: BTreeSet<_> = path
                .split('{')
                .skip(1)
                .filter_map(|rest| rest.split('}').next())
                .collect();
            for entry in methods.as_object().unwrap().values() {
                let declared: BTreeSet<_> = entry["parameters"]
                    .as_array()
                    .into_iter()
                    .flatten()
                    .filter(|parameter| parameter["in"] == "path")
                    .map(|parameter| parameter["name"].as_str().unwrap())
                    .collect();
                assert_eq!(declared, named, "{path}");
            }
        }
    }

    #[test]
    fn refers_only_to_what_it_contains() {
        let document = document();
        let mut found = BTreeSet::new();
        references(&document, &mut found);
        assert!(found.len() > 8, "{found:?}");
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn knows_the_keys_that_the_routes_know() {
        assert_eq!(keys("CallRequest"), strings(&CallRequest::keys()));
        assert_eq!(keys("DeliverRequest"), strings(&DeliverRequest::keys()));
        assert_eq!(keys("DowngradeRequest"), strings(&DowngradeRequest::keys()));
        assert_eq!(keys("ImageRequest"), strings(&ImageRequest::keys()));
        assert_eq!(keys("AnalyzeRequest"), strings(&AnalyzeRequest::keys()));
        let schemas = document()["components"]["schemas"].clone();
        for request in [
            "CallRequest",
            "DeliverRequest",
            "DowngradeRequest",
            "ImageRequest",
            "AnalyzeRequest",
        ] {
            assert_eq!(schemas[request]["additionalProperties"], false, "{request}");
        }
        assert_eq!(schemas["DeliverRequest"]["required"], json!(["result"]));
        assert_eq!(
            schemas["ImageRequest"]["required"],
            json!(["source", "image"])
        );
    }

    #[test]
    fn shows_the_delivery_and_the_problem_in_full() {
        let delivery = [
            "id",
            "text",
            "attachments",
            "artifacts",
            "links",
            "structured",
            "meta",
            "is_error",
            "notices",
            "gate",
            "vision",
            "server",
            "tool",
            "elapsed_ms",
        ];
        assert_eq!(keys("Delivery"), strings(&delivery));
        let problem = [
            "type",
            "title",
            "status",
            "code",
            "detail",
            "retryable",
            "retry_after_ms",
            "outcome_uncertain",
            "server",
            "model_text",
            "request_id",
        ];
        assert_eq!(keys("Problem"), strings(&problem));
    }

    /// The schemas have their own tests where the types are; this pins the routes.
    #[test]
    fn matches_the_golden_paths() {
        let mut paths = serde_json::to_string_pretty(&document()["paths"]).unwrap();
        paths.push('\n');
        let golden = std::fs::read_to_string(Path::new(GOLDEN)).unwrap_or_default();
        if golden != paths {
            let seen = std::env::temp_dir().join("openapi-paths.json");
            std::fs::write(&seen, &paths).unwrap();
            panic!(
                "the paths changed; if that is meant: cp {} {GOLDEN}",
                seen.display()
            );
        }
    }
}
