//! Names, lists and schemas: what is offered, and that a call reaches the tool it names.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::script::{Action, text_result, tool};
use talaria_testkit::service::PATIENCE;
use talaria_testkit::{Script, Service, ServiceBuilder, programs};

fn builder() -> ServiceBuilder {
    Service::builder(programs!()).unwrap()
}

async fn offering(server: &str, tools: Vec<Value>) -> Service {
    let mut script = Script::new(server);
    for tool in &tools {
        let name = tool["name"].as_str().unwrap();
        script = script.text_tool(name, &format!("this is {name}"));
    }
    builder()
        .stdio(server, script.with_tools(tools))
        .unwrap()
        .start()
        .await
        .unwrap()
}

/// The tools of servers.
async fn listed(service: &Service) -> Vec<Value> {
    let listed = service.get("/v1/tools").await.unwrap().ok().unwrap();
    let mut tools = listed["tools"].as_array().unwrap().clone();
    tools.retain(|tool| tool["name"] != "vision_analyze");
    tools
}

async fn names(service: &Service) -> Vec<String> {
    listed(service)
        .await
        .iter()
        .map(|tool| tool["name"].as_str().unwrap().to_owned())
        .collect()
}

async fn call(service: &Service, public: &str) -> String {
    let body = json!({"tool": public, "arguments": {}});
    let delivery = service
        .post("/v1/tools/call", &body)
        .await
        .unwrap()
        .ok()
        .unwrap();
    delivery["text"].as_str().unwrap().to_owned()
}

/// Calls every tool by its public name and collects what the tools say.
async fn call_all(service: &Service) -> BTreeSet<String> {
    let mut said = BTreeSet::new();
    for name in names(service).await {
        said.insert(call(service, &name).await);
    }
    said
}

fn assert_provider_safe(name: &str) {
    let sane = name
        .bytes()
        .all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte));
    assert!(sane && (1..=64).contains(&name.len()), "{name:?}");
}

#[tokio::test]
async fn n01_names_are_made_of_server_and_tool() {
    let service = offering("my.srv", vec![tool("do-it")]).await;
    assert_eq!(names(&service).await, ["mcp__my_srv__do_it"]);
    assert_eq!(call(&service, "mcp__my_srv__do_it").await, "this is do-it");
}

#[tokio::test]
async fn n03_tools_whose_names_collide_are_both_callable() {
    let service = offering("s", vec![tool("a-b"), tool("a_b")]).await;
    assert_eq!(call(&service, "mcp__s__a_b").await, "this is a_b");
    let names = names(&service).await;
    let other = names.iter().find(|name| *name != "mcp__s__a_b").unwrap();
    let hash = other.strip_prefix("mcp__s__a_b_").expect(other);
    assert!(
        hash.len() == 8 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()),
        "{other}"
    );
    assert_eq!(call(&service, other).await, "this is a-b");
}

#[tokio::test]
async fn n05_servers_whose_names_collide_are_both_callable() {
    let script = |name: &str| Script::new(name).text_tool("t", &format!("this is {name}"));
    let service = builder()
        .stdio("a.b", script("a.b"))
        .unwrap()
        .stdio("a_b", script("a_b"))
        .unwrap()
        .start()
        .await
        .unwrap();
    assert_eq!(call(&service, "mcp__a_b__t").await, "this is a_b");
    let names = names(&service).await;
    assert_eq!(names.len(), 2, "{names:?}");
    let other = names.iter().find(|name| *name != "mcp__a_b__t").unwrap();
    assert!(other.starts_with("mcp__a_b__t_"), "{other}");
    assert_eq!(call(&service, other).await, "this is a.b");
}

#[tokio::test]
async fn n06_include_beats_exclude() {
    let script = ["get_x", "get_y", "set_x"]
        .into_iter()
        .fold(Script::new("s"), |script, name| {
            script.text_tool(name, name)
        });
    let service = builder()
        .stdio("s", script)
        .unwrap()
        .set(
            &["mcp_servers", "s", "tools"],
            json!({"include": ["get_*"], "exclude": ["get_x"]}),
        )
        .start()
        .await
        .unwrap();
    assert_eq!(names(&service).await, ["mcp__s__get_x", "mcp__s__get_y"]);
    let hidden = service.call("s", "set_x", json!({})).await.unwrap();
    assert_eq!(hidden.code().unwrap(), "unknown_tool");
}

#[tokio::test]
async fn n09_utilities_appear_with_the_capability_only() {
    let service = builder()
        .stdio("none", Script::new("none").text_tool("t", "t"))
        .unwrap()
        .stdio(
            "res",
            Script::new("res").with_capabilities(json!({"tools": {}, "resources": {}})),
        )
        .unwrap()
        .stdio(
            "pro",
            Script::new("pro").with_capabilities(json!({"tools": {}, "prompts": {}})),
        )
        .unwrap()
        .start()
        .await
        .unwrap();
    let names: BTreeSet<String> = names(&service).await.into_iter().collect();
    let wanted = [
        "mcp__none__t",
        "mcp__pro__get_prompt",
        "mcp__pro__list_prompts",
        "mcp__res__list_resources",
        "mcp__res__read_resource",
    ];
    assert_eq!(names, wanted.map(str::to_owned).into());
}

#[tokio::test]
async fn utilities_reach_the_server() {
    let answer = |result: Value| [Action::Answer { result }];
    let script = Script::new("s")
        .with_capabilities(json!({"tools": {}, "resources": {}, "prompts": {}}))
        .on_method(
            "resources/list",
            answer(json!({
                "resources": [{"uri": "x://h/a", "name": "a", "mimeType": "text/plain", "size": 3}],
                "nextCursor": "two",
            })),
        )
        .on_method(
            "resources/list",
            answer(json!({
                "resources": [{"uri": "x://h/b", "name": "b"}],
            })),
        )
        .on_method(
            "resources/read",
            answer(json!({
                "contents": [{"uri": "x://h/a", "mimeType": "text/plain", "text": "the body"}],
            })),
        )
        .on_method(
            "prompts/list",
            answer(json!({
                "prompts": [{"name": "p", "arguments": [{"name": "topic", "required": true}]}],
            })),
        )
        .on_method(
            "prompts/get",
            answer(json!({
                "messages": [{"role": "user", "content": {"type": "text", "text": "ask me"}}],
            })),
        );
    let service = builder().stdio("s", script).unwrap().start().await.unwrap();
    let ask = |tool: &str, arguments: Value| {
        let body = json!({"tool": tool, "arguments": arguments, "format": "hermes"});
        let service = &service;
        async move {
            service
                .post("/v1/tools/call", &body)
                .await
                .unwrap()
                .ok()
                .unwrap()
        }
    };
    let resources = ask("mcp__s__list_resources", json!({})).await;
    let found: Vec<&Value> = resources["resources"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| &entry["uri"])
        .collect();
    assert_eq!(found, ["x://h/a", "x://h/b"], "both pages: {resources}");
    let read = ask("mcp__s__read_resource", json!({"uri": "x://h/a"})).await;
    assert_eq!(read, json!({"result": "the body"}));
    let prompts = ask("mcp__s__list_prompts", json!({})).await;
    assert_eq!(prompts["prompts"][0]["name"], "p", "{prompts}");
    let prompt = ask(
        "mcp__s__get_prompt",
        json!({"name": "p", "arguments": {"topic": 7}}),
    )
    .await;
    assert_eq!(prompt["messages"][0]["role"], "user", "{prompt}");
    assert!(prompt.to_string().contains("ask me"), "{prompt}");
    let records = service.records("s").unwrap();
    let sent = records
        .iter()
        .find(|record| record.method() == Some("prompts/get"))
        .unwrap();
    assert_eq!(
        sent.message["params"]["arguments"],
        json!({"topic": "7"}),
        "strings only"
    );
}

#[tokio::test]
async fn fr_169_every_name_becomes_a_safe_one_and_calls_its_own_tool() {
    let long = "a".repeat(90);
    let raw = [
        "task.begin",
        "make/dev",
        "ship it",
        &long,
        "\u{8aad}\u{3080}",
        "\u{641c}\u{7d22}\u{6587}\u{4ef6}",
    ];
    let service = offering("files", raw.iter().map(|name| tool(name)).collect()).await;
    let names = names(&service).await;
    assert_eq!(names.iter().collect::<BTreeSet<_>>().len(), 6, "{names:?}");
    names.iter().for_each(|name| assert_provider_safe(name));
    let said = call_all(&service).await;
    assert_eq!(
        said,
        raw.iter().map(|name| format!("this is {name}")).collect()
    );
}

#[tokio::test]
async fn fr_170_five_names_that_look_alike_stay_apart() {
    let stem = "x".repeat(70);
    let raw = [
        "wiki.find",
        "wiki_find",
        "wiki-find",
        &format!("{stem}1"),
        &format!("{stem}2"),
    ]
    .map(str::to_owned);
    let service = offering("wiki", raw.iter().map(|name| tool(name)).collect()).await;
    let names = names(&service).await;
    names.iter().for_each(|name| assert_provider_safe(name));
    assert_eq!(
        call_all(&service).await,
        raw.iter().map(|name| format!("this is {name}")).collect()
    );
}

#[tokio::test]
async fn names_are_the_same_after_a_restart() {
    let service = offering("s", vec![tool("a-b"), tool("a_b"), tool("a b")]).await;
    let before = names(&service).await;
    let again = service
        .post("/v1/servers/s/reconnect", &json!({}))
        .await
        .unwrap();
    assert_eq!(again.status, 200);
    assert_eq!(names(&service).await, before);
}

#[tokio::test]
async fn a_server_may_offer_its_tools_under_their_own_names() {
    let script = Script::new("s").text_tool("plain", "this is plain");
    let service = builder()
        .stdio("s", script)
        .unwrap()
        .set(&["mcp_servers", "s", "name_prefix"], "none")
        .start()
        .await
        .unwrap();
    assert_eq!(names(&service).await, ["plain"]);
    assert_eq!(call(&service, "plain").await, "this is plain");
}

#[tokio::test]
async fn l29_pages_are_followed_up_to_a_bound() {
    let pages = (1..=60).fold(Script::new("s"), |script, page| {
        let tools = [tool(&format!("t{page}"))];
        let result = json!({"tools": tools, "nextCursor": format!("page {page}")});
        script.on_method("tools/list", [Action::Answer { result }])
    });
    let service = builder()
        .stdio("s", pages.text_tool("t1", "this is t1"))
        .unwrap();
    let service = service.start().await.unwrap();
    assert_eq!(names(&service).await.len(), 50);
    assert_eq!(call(&service, "mcp__s__t1").await, "this is t1");
    assert!(
        service.log().unwrap().contains("50"),
        "a warning tells of it"
    );
}

#[tokio::test]
async fn l29_a_cursor_that_leads_in_a_circle_ends() {
    let page = Action::Answer {
        result: json!({"tools": [tool("t")], "nextCursor": "again"}),
    };
    let script = Script::new("s")
        .text_tool("t", "this is t")
        .on_method("tools/list", [page]);
    let service = builder().stdio("s", script).unwrap().start().await.unwrap();
    let asked = service.records("s").unwrap();
    let lists = asked
        .iter()
        .filter(|record| record.method() == Some("tools/list"))
        .count();
    assert!(lists <= 50, "{lists} pages");
    assert_eq!(call(&service, "mcp__s__t").await, "this is t");
}

#[tokio::test]
async fn pages_are_put_together() {
    let pages = (1..=3).fold(Script::new("s"), |script, page| {
        let mut result = json!({"tools": [tool(&format!("t{page}"))]});
        if page < 3 {
            result["nextCursor"] = json!(format!("page {}", page + 1));
        }
        script.on_method("tools/list", [Action::Answer { result }])
    });
    let service = builder().stdio("s", pages).unwrap().start().await.unwrap();
    assert_eq!(
        names(&service).await,
        ["mcp__s__t1", "mcp__s__t2", "mcp__s__t3"]
    );
}

#[tokio::test]
async fn fr_175_references_in_schemas_resolve() {
    let schema = json!({
        "type": "object",
        "definitions": {"Q": {"type": "object", "properties": {
            "limit": {"type": "integer", "default": 20}, "next": {"$ref": "#/definitions/Q"},
        }}},
        "properties": {"filter": {"$ref": "#/definitions/Q"}},
        "required": ["filter"],
    });
    let definition = json!({"name": "search", "inputSchema": schema});
    let service = offering("s", vec![definition]).await;
    let tools = listed(&service).await;
    let offered = &tools[0]["inputSchema"];
    let text = offered.to_string();
    assert!(text.contains("limit"), "{text}");
    for piece in text.split("\"$ref\":\"").skip(1) {
        let target = piece.split('"').next().unwrap().strip_prefix('#').unwrap();
        assert!(offered.pointer(target).is_some(), "{target} in {text}");
    }
}

#[tokio::test]
async fn fr_177_null_means_absent() {
    let odd = json!({
        "name": "a", "title": null, "description": null,
        "annotations": {"readOnlyHint": null, "title": null}, "_meta": null, "outputSchema": null,
        "icons": null,
        "inputSchema": {"type": "object", "properties": {"x": {"type": ["string", "null"], "default": null}}},
    });
    let service = offering("s", vec![odd, tool("b")]).await;
    assert_eq!(names(&service).await, ["mcp__s__a", "mcp__s__b"]);
}

#[tokio::test]
async fn a_tool_that_is_no_tool_costs_itself() {
    let tools = json!([null, 5, {"name": 7}, {"title": "nameless"}, {"name": ""}, tool("good")]);
    let list = Action::Answer {
        result: json!({ "tools": tools }),
    };
    let script = Script::new("s")
        .text_tool("good", "this is good")
        .on_method("tools/list", [list]);
    let service = builder().stdio("s", script).unwrap().start().await.unwrap();
    assert_eq!(names(&service).await, ["mcp__s__good"]);
    assert_eq!(call(&service, "mcp__s__good").await, "this is good");
}

#[tokio::test]
async fn k07_an_entry_that_makes_no_sense_is_named_and_the_others_start() {
    let service = builder()
        .stdio("good", Script::new("good").text_tool("t", "this is t"))
        .unwrap()
        .server("neither", json!({"timeout": 5}))
        .server(
            "both",
            json!({"command": "x", "url": "http://127.0.0.1:1/mcp"}),
        )
        .server("args", json!({"command": "x", "args": {"a": 1}}))
        .start_unsettled()
        .await
        .unwrap();
    service.wait_state("good", "ready", PATIENCE).await.unwrap();
    assert_eq!(call(&service, "mcp__good__t").await, "this is t");
    for name in ["neither", "both", "args"] {
        let status = service
            .wait_state(name, "failed", Duration::from_secs(5))
            .await
            .unwrap();
        assert!(
            status["reason"].as_str().unwrap().contains(name),
            "{status}"
        );
        let refused = service.call(name, "t", json!({})).await.unwrap();
        assert_eq!(refused.code().unwrap(), "server_misconfigured");
    }
}

#[tokio::test]
async fn k01_variables_reach_servers_and_an_unset_one_fails_its_server() {
    let script = Script::new("s").text_tool("t", "this is t");
    let service = builder()
        .stdio("s", script)
        .unwrap()
        .set(
            &["mcp_servers", "s", "env"],
            json!({"MINE": "${env:GIVEN}"}),
        )
        .server("lost", json!({"command": "true", "args": ["${UNSET_X}"]}))
        .env("GIVEN", "value")
        .start_unsettled()
        .await
        .unwrap();
    let status = service.wait_state("s", "ready", PATIENCE).await.unwrap();
    let environment = environment_of(status["pid"].as_u64().unwrap());
    assert!(
        environment.contains(&"MINE=value".to_owned()),
        "{environment:?}"
    );
    let lost = service
        .wait_state("lost", "failed", PATIENCE)
        .await
        .unwrap();
    assert!(
        lost["reason"].as_str().unwrap().contains("UNSET_X"),
        "{lost}"
    );
}

#[tokio::test]
async fn fr_179_servers_see_a_small_safe_environment() {
    let script = |name: &str| Script::new(name).text_tool("t", "t");
    let service = builder()
        .stdio("s1", script("s1"))
        .unwrap()
        .set(&["mcp_servers", "s1", "env"], json!({"MY_SETTING": "1"}))
        .stdio("s2", script("s2"))
        .unwrap()
        .env("ANTHROPIC_API_KEY", "a-test")
        .env("AWS_SECRET_ACCESS_KEY", "b-test")
        .env("LANG", "C.UTF-8")
        .start()
        .await
        .unwrap();
    for (name, own) in [("s1", true), ("s2", false)] {
        let status = service.server(name).await.unwrap();
        let environment = environment_of(status["pid"].as_u64().unwrap());
        let sees = |wanted: &str| environment.iter().any(|entry| entry.contains(wanted));
        assert!(!sees("=a-test") && !sees("=b-test"), "{environment:?}");
        assert_eq!(sees("MY_SETTING=1"), own, "{environment:?}");
        assert!(
            sees("PATH=") && sees("HOME=") && sees("LANG="),
            "{environment:?}"
        );
    }
}

#[tokio::test]
async fn a_name_with_underscores_is_routed_by_the_directory() {
    let service = builder()
        .stdio("a", Script::new("a").text_tool("b__c", "tool b__c of a"))
        .unwrap()
        .stdio("a__b", Script::new("a__b").text_tool("c", "tool c of a__b"))
        .unwrap()
        .start()
        .await
        .unwrap();
    let said = call_all(&service).await;
    assert_eq!(
        said,
        ["tool b__c of a", "tool c of a__b"]
            .map(str::to_owned)
            .into()
    );
}

#[tokio::test]
async fn many_calls_reach_their_own_servers() {
    let mut builder = builder();
    for number in 0..5 {
        let name = format!("s{number}");
        let script = Script::new(&name).on_call(
            "t",
            [
                Action::Delay { ms: 20 },
                Action::Answer {
                    result: text_result(&name),
                },
            ],
        );
        builder = builder.stdio(&name, script).unwrap();
    }
    let service = builder.start().await.unwrap();
    for _ in 0..5 {
        let ask = |number: usize| {
            let service = &service;
            async move { call(service, &format!("mcp__s{number}__t")).await }
        };
        let (a, b, c, d, e) = tokio::join!(ask(0), ask(1), ask(2), ask(3), ask(4));
        assert_eq!([a, b, c, d, e], ["s0", "s1", "s2", "s3", "s4"]);
    }
}

fn environment_of(pid: u64) -> Vec<String> {
    let bytes = std::fs::read(format!("/proc/{pid}/environ")).unwrap();
    bytes
        .split(|byte| *byte == 0)
        .map(|entry| String::from_utf8_lossy(entry).into_owned())
        .collect()
}
