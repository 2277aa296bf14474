//! What servers offer: lists, changes, utilities, readers.

use serde_json::{Value, json};
use talaria_content::{ReaderTool, ResultKind};
use talaria_types::{ErrorCode, WireNote};

use super::stage::{LONG, Stage, on_paused_clock, text, wait_until};
use crate::directory::{ToolTarget, Utility};
use crate::fake::{FakeServer, Fleet, Seen};
use crate::feed::{Event, Heard, ToolsChangedEvent};

fn names(stage: &Stage) -> Vec<String> {
    stage
        .supervisor
        .tools()
        .into_iter()
        .map(|tool| tool.name)
        .collect()
}

async fn offering(server: &str, prepare: impl FnOnce(&FakeServer), config: &Value) -> Stage {
    let fleet = Fleet::default();
    prepare(&fleet.server(server));
    let stage = Stage::start(&fleet, &json!({ server: config }));
    stage.settle().await;
    stage
}

#[test]
fn tools_are_listed_in_a_fixed_order_under_their_public_names() {
    on_paused_clock(async {
        let config = json!({ "command": "fake" });
        let stage = offering(
            "my.srv",
            |server| server.offer(&["z", "do-it", "a"]),
            &config,
        )
        .await;
        assert_eq!(
            names(&stage),
            ["mcp__my_srv__a", "mcp__my_srv__do_it", "mcp__my_srv__z"]
        );
        let tool = stage.supervisor.find_tool("mcp__my_srv__do_it").unwrap();
        assert_eq!(tool.target, ToolTarget::Tool("do-it".to_owned()));
        assert_eq!(tool.definition["name"], "mcp__my_srv__do_it");
        assert_eq!(tool.definition["inputSchema"]["type"], "object");
        assert_eq!(stage.supervisor.server("my.srv").unwrap().tools, 3);
    });
}

#[test]
fn n03_both_colliding_tools_are_callable() {
    on_paused_clock(async {
        let config = json!({ "command": "fake" });
        let stage = offering("s", |server| server.offer(&["a-b", "a_b"]), &config).await;
        for raw in ["a-b", "a_b"] {
            let public = stage.supervisor.resolve("s", raw).unwrap().name;
            let answer = stage.call_public(&public, json!({}), LONG).await.unwrap();
            assert_eq!(answer.tool, raw);
        }
    });
}

#[test]
fn n05_both_servers_of_one_prefix_are_callable() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        let servers = json!({ "a.b": { "command": "fake" }, "a_b": { "command": "fake" } });
        let stage = Stage::start(&fleet, &servers);
        stage.settle().await;
        assert_eq!(
            stage.supervisor.resolve("a_b", "echo").unwrap().name,
            "mcp__a_b__echo"
        );
        let other = stage.supervisor.resolve("a.b", "echo").unwrap().name;
        let answer = stage.call_public(&other, json!({}), LONG).await.unwrap();
        assert_eq!(answer.server.as_str(), "a.b");
        assert_eq!(fleet.server("a.b").calls("echo"), 1);
        assert_eq!(fleet.server("a_b").calls("echo"), 0);
    });
}

#[test]
fn name_prefix_none_offers_the_own_names() {
    on_paused_clock(async {
        let config = json!({ "command": "fake", "name_prefix": "none" });
        let stage = offering("s", |_| {}, &config).await;
        assert_eq!(names(&stage), ["echo"]);
        assert!(stage.call_public("echo", json!({}), LONG).await.is_ok());
    });
}

#[test]
fn filters_apply_to_raw_names() {
    on_paused_clock(async {
        let config = json!({
            "command": "fake",
            "tools": { "include": ["get_*"], "exclude": ["get_x"] },
        });
        let stage = offering(
            "s",
            |server| server.offer(&["get_x", "get_y", "put_x"]),
            &config,
        )
        .await;
        assert_eq!(names(&stage), ["mcp__s__get_x", "mcp__s__get_y"]);
    });
}

#[test]
fn l25_a_changed_list_replaces_the_old_one() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.offer(&["a", "b"]);
        server.say_tools_changed();
        wait_until("a and b", || names(&stage) == ["mcp__s__a", "mcp__s__b"]).await;
        server.offer(&["a", "c"]);
        server.say_tools_changed();
        wait_until("a and c", || names(&stage) == ["mcp__s__a", "mcp__s__c"]).await;
        assert!(stage.call("c").await.is_ok());
        assert_eq!(
            stage.call("b").await.unwrap_err().code(),
            ErrorCode::UnknownTool
        );
        assert_eq!(stage.status().tools, 2);
    });
}

#[test]
fn l25_changes_during_a_call_are_coalesced_and_wait_for_the_lock() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        let release = server.hold("echo");
        let call = stage.start_call("echo", LONG);
        wait_until("it runs", || server.calls("echo") == 1).await;
        let before = server.count(&Seen::Listed);
        server.offer(&["new"]);
        for _ in 0..10 {
            server.say_tools_changed();
        }
        let status = stage.status();
        assert_eq!((status.in_flight, server.count(&Seen::Listed)), (1, before));
        release.notify_one();
        assert!(call.await.unwrap().is_ok());
        wait_until("the new list", || names(&stage) == ["mcp__s__new"]).await;
        let again = server.count(&Seen::Listed) - before;
        assert!((1..=2).contains(&again), "ten changes made {again} lists");
    });
}

#[test]
fn l28_the_old_list_stays_when_the_new_one_fails() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.fail_lists(Some(ErrorCode::ServerError));
        let before = server.count(&Seen::Listed);
        server.say_tools_changed();
        wait_until("the list was asked for", || {
            server.count(&Seen::Listed) > before
        })
        .await;
        assert!(stage.call("echo").await.is_ok());
        assert_eq!(names(&stage), ["mcp__s__echo"]);
        server.fail_lists(None);
        server.offer(&["other"]);
        server.say_tools_changed();
        wait_until("the next change counts", || {
            names(&stage) == ["mcp__s__other"]
        })
        .await;
    });
}

#[test]
fn l29_sixty_pages_end_after_fifty() {
    on_paused_clock(async {
        let pages = (0..60)
            .map(|n| json!([{ "name": format!("t{n}") }]))
            .collect();
        let config = json!({ "command": "fake" });
        let stage = offering("s", |server| server.offer_pages(pages), &config).await;
        assert_eq!(names(&stage).len(), 50);
        assert_eq!(stage.fleet.server("s").count(&Seen::Listed), 50);
    });
}

#[test]
fn l29_an_endless_cursor_is_noticed() {
    on_paused_clock(async {
        let config = json!({ "command": "fake" });
        let stage = offering("s", FakeServer::list_endlessly, &config).await;
        assert_eq!(names(&stage), ["mcp__s__echo"]);
        assert_eq!(stage.fleet.server("s").count(&Seen::Listed), 2);
    });
}

#[test]
fn a_server_whose_list_fails_at_the_start_is_tried_again() {
    on_paused_clock(async {
        let fleet = Fleet::default();
        let server = fleet.server("s");
        server.fail_lists(Some(ErrorCode::Timeout));
        let stage = Stage::start(&fleet, &json!({ "s": { "command": "fake" } }));
        stage.reaches("backoff").await;
        assert_eq!(server.open_sessions(), 0, "its session was closed");
        server.fail_lists(None);
        stage.reaches("ready").await;
    });
}

#[test]
fn n09_utilities_follow_the_capabilities_and_the_filter() {
    on_paused_clock(async {
        let plain = json!({ "command": "fake" });
        let without = offering("s", |_| {}, &plain).await;
        assert_eq!(names(&without), ["mcp__s__echo"]);
        let with = offering("s", FakeServer::with_resources_and_prompts, &plain).await;
        let expected = [
            "echo",
            "get_prompt",
            "list_prompts",
            "list_resources",
            "read_resource",
        ];
        assert_eq!(names(&with), expected.map(|name| format!("mcp__s__{name}")));
        let filtered = json!({ "command": "fake", "tools": { "prompts": false } });
        let filtered = offering("s", FakeServer::with_resources_and_prompts, &filtered).await;
        let expected = ["echo", "list_resources", "read_resource"];
        assert_eq!(
            names(&filtered),
            expected.map(|name| format!("mcp__s__{name}"))
        );
    });
}

#[test]
fn c24_c25_the_reader_is_the_tool_that_is_really_registered() {
    on_paused_clock(async {
        let config = json!({ "command": "fake" });
        let with = offering("my-srv.io", FakeServer::with_resources_and_prompts, &config).await;
        let reader = ReaderTool::Registered("mcp__my_srv_io__read_resource".to_owned());
        assert_eq!(with.supervisor.reader_tool("my-srv.io"), reader);
        let answer = with
            .call_public("mcp__my_srv_io__echo", json!({}), LONG)
            .await
            .unwrap();
        assert_eq!(answer.reader, reader);
        let without = offering("s", |_| {}, &config).await;
        assert_eq!(without.supervisor.reader_tool("s"), ReaderTool::Missing);
        let other = offering("s", |server| server.offer(&["read_resource"]), &config).await;
        assert_eq!(
            other.supervisor.reader_tool("s"),
            ReaderTool::Missing,
            "a server without resources means something else by the name"
        );
        let own = |server: &FakeServer| {
            server.offer(&["read_resource"]);
            server.with_resources_and_prompts();
        };
        let native = offering("s", own, &config).await;
        let reader = ReaderTool::Registered("mcp__s__read_resource".to_owned());
        assert_eq!(native.supervisor.reader_tool("s"), reader);
        let tool = native
            .supervisor
            .find_tool("mcp__s__read_resource")
            .unwrap();
        assert_eq!(tool.target, ToolTarget::Tool("read_resource".to_owned()));
    });
}

#[test]
fn utilities_read_pages_and_resources() {
    on_paused_clock(async {
        let config = json!({ "command": "fake" });
        let stage = offering("s", FakeServer::with_resources_and_prompts, &config).await;
        let listed = stage.call("list_resources").await.unwrap();
        assert_eq!(listed.kind, ResultKind::ListResources);
        let both = json!({ "resources": [{ "name": "first" }, { "name": "second" }] });
        assert_eq!((listed.raw.json, listed.raw.wire_bytes), (both, 20));
        let prompts = stage.call("list_prompts").await.unwrap();
        assert_eq!(prompts.kind, ResultKind::ListPrompts);
        let read = stage
            .call_public("mcp__s__read_resource", json!({ "uri": "x:y" }), LONG)
            .await
            .unwrap();
        assert_eq!(
            (read.kind, read.tool.as_str()),
            (ResultKind::ReadResource, "read_resource")
        );
        let arguments = json!({ "name": "p", "arguments": { "n": 1, "gone": null } });
        let prompt = stage
            .call_public("mcp__s__get_prompt", arguments, LONG)
            .await
            .unwrap();
        assert_eq!(prompt.kind, ResultKind::GetPrompt);
        let seen = stage.fleet.server("s").seen();
        assert!(seen.contains(&Seen::Read("x:y".to_owned())));
        assert!(seen.contains(&Seen::Prompted(json!({ "n": "1" }))));
        let tool = stage.supervisor.find_tool("mcp__s__read_resource").unwrap();
        assert_eq!(tool.target, ToolTarget::Utility(Utility::ReadResource));
    });
}

#[test]
fn a_list_that_is_not_read_to_its_end_says_so() {
    on_paused_clock(async {
        let config = json!({ "command": "fake" });
        let endless = |server: &FakeServer| {
            server.with_resources_and_prompts();
            server.list_endlessly();
        };
        let stage = offering("s", endless, &config).await;
        for list in ["list_resources", "list_prompts"] {
            let listed = stage.call(list).await.unwrap();
            assert_eq!(listed.raw.notes, [WireNote::ListCut], "{list}");
        }
    });
}

#[test]
fn c50_read_resource_without_uri_does_not_touch_the_server() {
    on_paused_clock(async {
        let config = json!({ "command": "fake" });
        let stage = offering("s", FakeServer::with_resources_and_prompts, &config).await;
        let before = stage.fleet.server("s").seen();
        let answer = stage.call("read_resource").await.unwrap();
        assert_eq!(answer.kind, ResultKind::ToolCall);
        assert_eq!(answer.raw.json["isError"], true);
        assert_eq!(text(&answer), "Missing required parameter 'uri'");
        assert_eq!(stage.fleet.server("s").seen(), before);
    });
}

#[test]
fn tools_stay_listed_while_their_server_is_away() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        server.kill();
        stage.reaches("backoff").await;
        assert_eq!(names(&stage), ["mcp__s__echo"]);
    });
}

#[test]
fn arguments_that_do_not_fit_are_refused_before_anything_is_sent() {
    on_paused_clock(async {
        let schema = json!({
            "type": "object",
            "properties": { "path": { "type": "string" } },
            "required": ["path"],
        });
        let odd = json!({ "type": "object", "properties": { "x": { "type": "any" } } });
        let outside = json!({ "properties": { "x": { "$ref": "https://example.com/x" } } });
        let tools = json!([
            { "name": "strict", "inputSchema": schema },
            { "name": "odd", "inputSchema": odd },
            { "name": "outside", "inputSchema": outside },
        ]);
        let config = json!({ "command": "fake" });
        let stage = offering("s", |server| server.offer_pages(vec![tools]), &config).await;
        let call = async |tool: &str, arguments: Value| {
            let name = format!("mcp__s__{tool}");
            stage.call_public(&name, arguments, LONG).await
        };
        let refused = call("strict", json!({ "path": 7 })).await.unwrap_err();
        assert_eq!(refused.code(), ErrorCode::InvalidArguments);
        assert!(!refused.is_outcome_uncertain() && !refused.retryable());
        let words = "/path: expected string, got number";
        assert!(refused.detail().ends_with(words), "{refused}");
        assert!(call("strict", json!({})).await.is_err());
        let server = stage.fleet.server("s");
        assert_eq!(server.calls("strict"), 0);
        assert!(call("strict", json!({ "path": "a" })).await.is_ok());
        for tool in ["odd", "outside"] {
            assert!(call(tool, json!({ "x": 1 })).await.is_ok(), "{tool}");
        }
        assert_eq!(server.calls("strict"), 1);
    });
}

#[test]
fn every_change_of_the_tools_is_told_and_raises_the_version() {
    on_paused_clock(async {
        let (stage, server) = Stage::one().await;
        let mut listener = stage.supervisor.listen(None).unwrap();
        let before = stage.supervisor.version();
        server.offer_pages(vec![json!([
            { "name": "echo", "description": "another" },
            { "name": "new" },
        ])]);
        server.say_tools_changed();
        let Some(Heard::Event(_, event)) = listener.next().await else {
            panic!("nothing was told")
        };
        let expected = Event::ToolsChanged(ToolsChangedEvent {
            server: "s".to_owned(),
            added: vec!["mcp__s__new".to_owned()],
            removed: vec![],
            changed: vec!["mcp__s__echo".to_owned()],
            truncated: false,
            version: before + 1,
        });
        assert_eq!(*event, expected);
        assert_eq!(stage.supervisor.listing().version, before + 1);
        server.say_tools_changed();
        server.kill();
        let Some(Heard::Event(_, event)) = listener.next().await else {
            panic!("nothing was told")
        };
        assert!(matches!(&*event, Event::ServerState(state) if state.from == "ready"));
        let listing = stage.supervisor.listing();
        assert_eq!((listing.version, listing.tools.len()), (before + 1, 2));
        let down: Vec<_> = listing
            .down
            .iter()
            .map(|outage| outage.server.as_str())
            .collect();
        assert_eq!(down, ["s"]);
        assert!(
            listing
                .down
                .iter()
                .all(|outage| outage.down_since.is_some())
        );
    });
}
