//! The demo server, driven by a real client over an in-memory pipe.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rmcp::model::{
    CallToolRequestParams, CallToolResult, ContentBlock, ReadResourceRequestParams,
    ResourceContents,
};
use rmcp::service::RunningService;
use rmcp::{RoleClient, ServiceExt};
use serde_json::{Value, json};

use super::{DemoServer, assets, blob_bytes, hostile};

async fn connect() -> RunningService<RoleClient, ()> {
    let (server_end, client_end) = tokio::io::duplex(1 << 16);
    talaria_types::runtime::spawn("demo-server", async move {
        let service = DemoServer::new().serve(server_end).await.unwrap();
        service.waiting().await.unwrap();
    });
    ().serve(client_end).await.unwrap()
}

async fn call(
    client: &RunningService<RoleClient, ()>,
    tool: &'static str,
    arguments: Value,
) -> CallToolResult {
    let Value::Object(arguments) = arguments else {
        panic!("arguments are an object")
    };
    client
        .call_tool(CallToolRequestParams::new(tool).with_arguments(arguments))
        .await
        .unwrap()
}

fn blob(block: &ContentBlock) -> Vec<u8> {
    let resource = &block.as_resource().unwrap().resource;
    let ResourceContents::BlobResourceContents { blob, .. } = resource else {
        panic!("not a blob: {resource:?}");
    };
    STANDARD.decode(blob).unwrap()
}

#[tokio::test]
async fn introduces_itself_and_advertises_what_it_has() {
    let client = connect().await;
    let info = client.peer_info().unwrap();
    assert_eq!(info.server_info.as_ref().unwrap().name, "talaria-demo");
    let capabilities = serde_json::to_value(&info.capabilities).unwrap();
    let mut names: Vec<_> = capabilities.as_object().unwrap().keys().cloned().collect();
    names.sort();
    assert_eq!(names, ["prompts", "resources", "tools"]);
    assert_eq!(
        client.list_all_resources().await.unwrap().len(),
        assets::ALL.len()
    );
    assert_eq!(client.list_all_prompts().await.unwrap().len(), 1);
    assert!(
        client
            .list_all_tools()
            .await
            .unwrap()
            .iter()
            .all(|tool| tool.description.is_some())
    );
}

#[tokio::test]
async fn documents_arrive_as_the_shipped_bytes() {
    let client = connect().await;
    for (tool, asset) in [
        ("pdf", assets::REPORT),
        ("docx", assets::NOTES),
        ("xlsx", assets::ORDERS),
        ("zip", assets::BUNDLE),
    ] {
        let result = call(&client, tool, json!({})).await;
        assert_eq!(blob(&result.content[0]), asset.bytes, "{tool}");
    }
}

#[tokio::test]
async fn every_link_can_be_read() {
    let client = connect().await;
    let result = call(&client, "links", json!({})).await;
    assert_eq!(result.content.len(), 2);
    for block in &result.content {
        let link = block.as_resource_link().unwrap();
        let read = client
            .read_resource(ReadResourceRequestParams::new(&link.uri))
            .await
            .unwrap();
        let size = match &read.contents[0] {
            ResourceContents::TextResourceContents { text, .. } => text.len(),
            ResourceContents::BlobResourceContents { blob, .. } => {
                STANDARD.decode(blob).unwrap().len()
            }
            other => panic!("unknown contents: {other:?}"),
        };
        assert_eq!(u64::try_from(size).unwrap(), link.size.unwrap());
    }
    let unknown = client
        .read_resource(ReadResourceRequestParams::new("demo://files/none"))
        .await;
    assert!(unknown.is_err());
}

#[tokio::test]
async fn echo_and_blob_follow_their_arguments() {
    let client = connect().await;
    let echo = call(&client, "echo", json!({ "text": "héllo" })).await;
    assert_eq!(echo.content[0].as_text().unwrap().text, "héllo");
    let result = call(&client, "blob", json!({ "bytes": 100_003, "seed": 7 })).await;
    assert_eq!(blob(&result.content[0]), blob_bytes(100_003, 7));
    let over = client
        .call_tool(
            CallToolRequestParams::new("blob")
                .with_arguments(json!({ "bytes": 1_u64 << 40 }).as_object().unwrap().clone()),
        )
        .await;
    assert!(over.is_err());
}

#[tokio::test]
async fn failing_is_a_tool_error_and_structured_has_both_halves() {
    let client = connect().await;
    assert_eq!(
        call(&client, "failing", json!({})).await.is_error,
        Some(true)
    );
    let structured = call(&client, "structured", json!({})).await;
    assert_eq!(
        structured.structured_content.unwrap()["regions"][1]["orders"],
        98
    );
    assert_eq!(structured.meta.unwrap().0.len(), 2);
}

#[tokio::test]
async fn a_picture_is_measured_and_nothing_is_made_up() {
    let client = connect().await;
    let folder = tempfile::TempDir::new().unwrap();
    let picture = folder.path().join("a.png");
    std::fs::write(&picture, assets::SCREENSHOT.bytes).unwrap();
    let ask = |path: String| json!({ "prompt": "How large?", "image_source": path });
    let looked = call(
        &client,
        "understand_image",
        ask(picture.display().to_string()),
    )
    .await;
    let ContentBlock::Text(text) = &looked.content[0] else {
        panic!("{looked:?}")
    };
    assert!(
        text.text
            .starts_with("Asked: How large?\nA picture in format Png")
    );
    assert!(
        text.text.contains("1280 pixels wide and 800 high"),
        "{}",
        text.text
    );
    for path in [
        "a.png".to_owned(),
        folder.path().join("b").display().to_string(),
    ] {
        let failed = call(&client, "understand_image", ask(path)).await;
        assert_eq!(failed.is_error, Some(true), "{failed:?}");
    }
}

#[test]
fn blob_bytes_have_the_length_and_depend_on_the_seed() {
    for length in [0, 1, 17, 18, 19, 4096, 4097] {
        assert_eq!(blob_bytes(length, 1).len(), length);
    }
    assert_eq!(blob_bytes(4096, 1), blob_bytes(4096, 1));
    assert_ne!(blob_bytes(4096, 1), blob_bytes(4096, 2));
}

#[test]
fn hidden_words_are_spelled_in_tag_characters_only() {
    let text = hostile::hidden_text();
    assert!(!text.contains(hostile::HIDDEN_WORDS));
    let tags = text
        .chars()
        .filter(|letter| ('\u{E0000}'..='\u{E007F}').contains(letter))
        .count();
    assert_eq!(tags, hostile::HIDDEN_WORDS.len() + 6);
}
