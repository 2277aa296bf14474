//! Field cases of names and schemas, read from their file: what is offered, and that it calls.

use std::collections::BTreeSet;

use serde_json::{Value, json};
use talaria_testkit::field_cases::FieldCase;
use talaria_testkit::{Script, Service, ServiceBuilder};

use crate::stage::{builder, listed, names, text_of};

const DATA: &str = include_str!("../../data/field-cases.jsonl");

fn input(id: &str) -> Value {
    let cases = FieldCase::read_all(DATA).unwrap();
    cases.into_iter().find(|case| case.id == id).unwrap().input
}

/// A server that offers these tools, each of which says its own name.
fn offering(builder: ServiceBuilder, server: &str, tools: &Value) -> ServiceBuilder {
    let tools = tools.as_array().unwrap().clone();
    let mut script = Script::new("field");
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        script = script.text_tool(name, &format!("this is {name}"));
    }
    builder.stdio(server, script.with_tools(tools)).unwrap()
}

/// The service of a case of the kind `tools_list`.
async fn of_list(id: &str) -> Service {
    let input = input(id);
    let server = input["server"].as_str().unwrap();
    let builder = offering(builder(), server, &input["tools"]);
    builder.start().await.unwrap()
}

fn assert_provider_safe(name: &str) {
    let sane = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    assert!(sane && (1..=64).contains(&name.len()), "{name:?}");
}

/// Every reference of a schema points into that schema.
fn assert_references_resolve(schema: &Value) {
    let text = schema.to_string();
    for piece in text.split("\"$ref\":\"").skip(1) {
        let target = piece.split('"').next().unwrap();
        let place = target.strip_prefix('#');
        let place = place.unwrap_or_else(|| panic!("{target} leads out of {text}"));
        assert!(schema.pointer(place).is_some(), "{target} in {text}");
    }
}

#[tokio::test]
async fn fr_171_servers_of_any_name_offer_safe_ones() {
    let input = input("FR-171");
    let servers = input["servers"].as_object().unwrap();
    let builder = servers.iter().fold(builder(), |builder, (name, tools)| {
        offering(builder, name, tools)
    });
    let service = builder.start().await.unwrap();
    let names = names(&service).await;
    assert_eq!(names.len(), 2, "{names:?}");
    let mut said = BTreeSet::new();
    for name in &names {
        assert_provider_safe(name);
        said.insert(text_of(&service, name).await);
    }
    let wanted = ["this is append", "this is read_page"];
    assert_eq!(said, wanted.map(str::to_owned).into());
}

#[tokio::test]
async fn fr_176_references_resolve_and_recursion_ends() {
    let service = of_list("FR-176").await;
    let tools = listed(&service).await;
    let schema = &tools[0]["inputSchema"];
    assert!(schema.to_string().contains("limit"), "{schema}");
    assert_references_resolve(schema);
}

#[tokio::test]
async fn fr_177_a_null_in_a_definition_means_absent() {
    let service = of_list("FR-177").await;
    assert_eq!(names(&service).await, ["mcp__s__a", "mcp__s__b"]);
}

#[tokio::test]
async fn fr_173_another_server_changes_no_name() {
    let input = input("FR-173");
    let of = |state: &str| {
        let servers = input[state].as_object().unwrap().clone();
        servers.iter().fold(builder(), |builder, (name, tools)| {
            offering(builder, name, tools)
        })
    };
    let before = names(&of("before").start().await.unwrap()).await;
    let after = names(&of("after").start().await.unwrap()).await;
    let of_github = |names: &[String]| -> Vec<String> {
        let names = names.iter().filter(|name| name.contains("search_code"));
        names.cloned().collect()
    };
    assert_eq!(of_github(&before).len(), 1, "{before:?}");
    assert_eq!(of_github(&before), of_github(&after));
    assert_eq!(after.len(), 2, "{after:?}");
}

#[tokio::test]
async fn a_schema_that_refers_elsewhere_fetches_nothing() {
    let remote = talaria_testkit::HttpServer::start(Script::new("bait")).unwrap();
    let schema = json!({
        "type": "object",
        "properties": {"x": {"$ref": remote.url()}, "y": {"$ref": "file:///etc/passwd"}},
    });
    let tools = json!([{"name": "t", "inputSchema": schema}]);
    let service = offering(builder(), "s", &tools).start().await.unwrap();
    let offered = listed(&service).await;
    assert_eq!(offered.len(), 1, "{offered:?}");
    let said = service.call("s", "t", json!({"x": 1})).await.unwrap();
    assert_eq!(said.ok().unwrap()["text"], "this is t");
    let fetched = remote.records().all();
    assert!(fetched.is_empty(), "{fetched:?}");
}
#[tokio::test]
async fn fr_178_a_required_name_without_a_property_is_no_obstacle() {
    let service = of_list("FR-178").await;
    for format in ["mcp", "openai", "anthropic", "gemini"] {
        let answer = service
            .get(&format!("/v1/tools?format={format}&server=s"))
            .await
            .unwrap();
        let tools = answer.ok().unwrap()["tools"].to_string();
        assert!(tools.contains("mcp__s__a"), "{format}: {tools}");
        assert!(!tools.contains("ghost"), "{format}: {tools}");
    }
    let tools = listed(&service).await;
    let schema = &tools[0]["inputSchema"];
    let properties = schema["properties"].as_object().unwrap();
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(properties.contains_key(name.as_str().unwrap()), "{schema}");
    }
    let said = service.call("s", "a", json!({"x": "1"})).await.unwrap();
    assert_eq!(said.ok().unwrap()["text"], "this is a");
}

#[tokio::test]
async fn names_and_references_hold_in_every_providers_list() {
    let service = of_list("FR-176").await;
    for format in ["openai", "openai-responses", "anthropic", "gemini"] {
        let answer = service
            .get(&format!("/v1/tools?format={format}&server=pd"))
            .await
            .unwrap();
        let tools = answer.ok().unwrap()["tools"].clone();
        let text = tools.to_string();
        assert!(text.contains("mcp__pd__list_rosters"), "{format}: {text}");
        assert!(text.contains("limit"), "{format}: {text}");
        if format == "gemini" {
            assert!(!text.contains("$ref"), "{format}: {text}");
        }
    }
}
