//! The look-up at a server of this machine: a fake that answers like llama.cpp, or badly.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::scene::{attached, bars, builder, deliver, media_lines, result, text};

/// What the fake answers by path; any other path is not found.
type Answers = BTreeMap<&'static str, &'static str>;

/// A model server on a port of its own; lives as long as the test.
async fn model_server(answers: Answers) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let answers = Arc::new(answers);
    talaria_types::runtime::spawn("test", async move {
        while let Ok((connection, _)) = listener.accept().await {
            talaria_types::runtime::spawn("test", answer(connection, Arc::clone(&answers)));
        }
    });
    format!("http://{address}")
}

/// Answers one request and closes.
async fn answer(mut connection: TcpStream, answers: Arc<Answers>) {
    let mut head = vec![0; 8192];
    let read = connection.read(&mut head).await.unwrap_or(0);
    let head = String::from_utf8_lossy(&head[..read]).into_owned();
    let path = head.split_whitespace().nth(1).unwrap_or_default();
    let (status, body) = match answers.get(path) {
        Some(body) => ("200 OK", *body),
        None => ("404 Not Found", "{}"),
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\
         connection: close\r\n\r\n{body}"
    );
    drop(connection.write_all(answer.as_bytes()).await);
}

/// Whether the gate opens for a model behind an endpoint.
async fn opens(endpoint: &str) -> bool {
    let provider = json!({"base_url": format!("{endpoint}/v1")});
    let service = builder()
        .set(&["providers", "llama-server"], provider)
        .start()
        .await
        .unwrap();
    let route = json!({"provider": "llama-server", "model": "m"});
    let delivery = deliver(&service, result(&[bars(1)]), route).await;
    assert_eq!(media_lines(text(&delivery)), 1, "the call goes on");
    let open = delivery["gate"]["open"] == true;
    assert_eq!(
        attached(&delivery).len(),
        usize::from(open),
        "{}",
        delivery["gate"]
    );
    open
}

#[tokio::test]
async fn g63_a_look_up_that_fails_closes_the_gate_and_not_the_call() {
    let nobody = {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        format!("http://{}", listener.local_addr().unwrap())
    };
    assert!(!opens(&nobody).await);
    let garbage = model_server(Answers::from([
        ("/v1/props", "{\"modal"),
        ("/props", "<html>"),
    ]));
    assert!(!opens(&garbage.await).await);
}

#[tokio::test]
async fn g65_a_llama_server_says_by_its_modalities_whether_it_sees() {
    for (answers, sees) in [
        (
            Answers::from([("/v1/props", r#"{"modalities": {"vision": "yes"}}"#)]),
            false,
        ),
        (
            Answers::from([("/v1/props", r#"{"modalities": {"vision": true}}"#)]),
            true,
        ),
        (
            Answers::from([("/v1/props", r#"{"modalities": {"vision": false}}"#)]),
            false,
        ),
        (
            Answers::from([("/v1/props", r#"{"modalities": ["vision"]}"#)]),
            true,
        ),
        (
            Answers::from([("/v1/props", r#"{"modalities": ["audio"]}"#)]),
            false,
        ),
        (
            Answers::from([("/props", r#"{"modalities": {"vision": true}}"#)]),
            true,
        ),
        (Answers::new(), false),
    ] {
        let shown = format!("{answers:?}");
        let server = model_server(answers).await;
        assert_eq!(opens(&server).await, sees, "{shown}");
    }
}
