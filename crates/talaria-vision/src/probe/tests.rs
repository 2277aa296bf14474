//! Probes against scripted servers of this machine.

use std::net::SocketAddr;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

use super::*;

/// What a scripted server does with a request.
#[derive(Clone, Debug)]
enum Act {
    /// Status, further header lines, body.
    Answer(u16, &'static str, String),
    /// Says nothing and keeps the connection.
    Stall,
    /// Answers, and never ends.
    Flood,
}

/// A server that writes its HTTP by hand and remembers what it was asked.
struct Scripted {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Scripted {
    async fn start(script: impl Fn(&str) -> Act + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&seen);
        let script = Arc::new(script);
        drop(runtime::spawn("scripted", async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (seen, script) = (Arc::clone(&kept), Arc::clone(&script));
                drop(runtime::spawn("scripted_connection", async move {
                    drop(serve(stream, &seen, &*script).await);
                }));
            }
        }));
        Self { address, seen }
    }

    /// One that answers `paths` and 404 to everything else.
    async fn answering(paths: &'static [(&'static str, &'static str)]) -> Self {
        Self::start(move |request| {
            let path = request.split(' ').nth(1).unwrap();
            let found = paths.iter().find(|(known, _)| *known == path);
            found.map_or(Act::Answer(404, "", String::new()), |(_, body)| {
                Act::Answer(200, "", (*body).to_owned())
            })
        })
        .await
    }

    fn url(&self, path: &str) -> Url {
        Url::parse(&format!("http://{}{path}", self.address)).unwrap()
    }

    /// Method and path of every request.
    fn asked(&self) -> Vec<String> {
        let seen = self.seen.lock();
        let line = |request: &String| {
            let mut words = request.split(' ');
            format!("{} {}", words.next().unwrap(), words.next().unwrap())
        };
        seen.iter().map(line).collect()
    }
}

async fn serve(
    mut stream: TcpStream,
    seen: &Mutex<Vec<String>>,
    script: &(dyn Fn(&str) -> Act + Send + Sync),
) -> std::io::Result<()> {
    let mut received = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        received.extend_from_slice(&buffer[..count]);
        let text = String::from_utf8_lossy(&received).into_owned();
        let Some((head, body)) = text.split_once("\r\n\r\n") else {
            continue;
        };
        let head = head.to_lowercase();
        let length = head.split("content-length: ").nth(1);
        let length = length.map_or(0, |rest| rest.lines().next().unwrap().parse().unwrap());
        if body.len() < length {
            continue;
        }
        received.clear();
        seen.lock().push(text.clone());
        match script(&text) {
            Act::Answer(status, headers, body) => {
                let length = body.len();
                let answer = format!(
                    "HTTP/1.1 {status} x\r\n{headers}content-length: {length}\r\n\r\n{body}"
                );
                stream.write_all(answer.as_bytes()).await?;
            }
            Act::Stall => std::future::pending().await,
            Act::Flood => {
                stream
                    .write_all(b"HTTP/1.1 200 x\r\n\r\n{\"a\": \"")
                    .await?;
                loop {
                    stream.write_all(&[b'a'; 4096]).await?;
                }
            }
        }
    }
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(10))
}

async fn ask(server: &Scripted, hint: Hint) -> Finding {
    Prober::default()
        .ask(&server.url("/v1"), hint, "m", soon())
        .await
}

const LLAMA: &str = r#"{"default_generation_settings": {}, "modalities": {"vision": true}}"#;
const VERSION: (&str, &str) = ("/api/version", r#"{"version": "0.12.0"}"#);

#[tokio::test]
async fn g65_props_are_tried_below_v1_and_after_404_at_the_root() {
    let server = Scripted::answering(&[("/props", LLAMA)]).await;
    let finding = ask(&server, Hint::LlamaCpp).await;
    assert_eq!(finding.sees, Some(true));
    assert_eq!(server.asked(), ["GET /v1/props", "GET /props"]);

    let server = Scripted::answering(&[("/v1/props", LLAMA), ("/props", "{}")]).await;
    assert_eq!(ask(&server, Hint::LlamaCpp).await.sees, Some(true));
    assert_eq!(server.asked(), ["GET /v1/props"]);
}

#[tokio::test]
async fn g65_variants_of_modalities_are_told_apart() {
    for (body, sees) in [
        (r#"{"modalities":{"vision":true}}"#, Some(true)),
        (r#"{"modalities":{"vision":false}}"#, Some(false)),
        (r#"{"modalities":{"vision":"yes"}}"#, None),
        (r#"{"modalities":{}}"#, None),
        (r#"{"modalities":["vision"]}"#, Some(true)),
        (r#"{"modalities":["text"]}"#, Some(false)),
        (r"{}", None),
        ("[1]", None),
        ("not json", None),
    ] {
        let server = Scripted::start(move |_| Act::Answer(200, "", body.to_owned())).await;
        assert_eq!(ask(&server, Hint::LlamaCpp).await.sees, sees, "{body}");
    }
}

#[tokio::test]
async fn g65_an_error_that_is_not_404_ends_the_search() {
    for status in [301, 401, 500, 503] {
        let server = Scripted::start(move |_| Act::Answer(status, "", LLAMA.to_owned())).await;
        assert_eq!(ask(&server, Hint::LlamaCpp).await.sees, None, "{status}");
        assert_eq!(server.asked(), ["GET /v1/props"]);
    }
}

#[tokio::test]
async fn an_unnamed_server_must_show_what_it_is() {
    let marked = Scripted::answering(&[("/v1/props", LLAMA)]).await;
    let finding = ask(&marked, Hint::Nothing).await;
    assert_eq!(
        (finding.server, finding.sees),
        (Server::LlamaCpp, Some(true))
    );

    let bare = r#"{"modalities":{"vision":true}}"#;
    let by_header = Scripted::start(move |request| {
        if request.starts_with("GET /v1/props") {
            Act::Answer(200, "Server: llama.cpp\r\n", bare.to_owned())
        } else {
            Act::Answer(404, "", String::new())
        }
    })
    .await;
    assert_eq!(ask(&by_header, Hint::Nothing).await.sees, Some(true));

    let liar = Scripted::start(move |_| Act::Answer(200, "", bare.to_owned())).await;
    let finding = ask(&liar, Hint::Nothing).await;
    assert_eq!((finding.server, finding.sees), (Server::Unknown, None));

    let website = Scripted::start(|_| Act::Answer(200, "", "<html>".repeat(100))).await;
    assert_eq!(ask(&website, Hint::Nothing).await.sees, None);
}

#[tokio::test]
async fn ollama_is_identified_before_it_is_asked() {
    let show = r#"{"capabilities": ["completion", "vision"]}"#;
    let server = Scripted::start(move |request| match request.split(' ').nth(1).unwrap() {
        "/api/version" => Act::Answer(200, "", VERSION.1.to_owned()),
        "/api/show" => Act::Answer(200, "", show.to_owned()),
        _ => Act::Answer(404, "", String::new()),
    })
    .await;
    let finding = ask(&server, Hint::Nothing).await;
    assert_eq!((finding.server, finding.sees), (Server::Ollama, Some(true)));
    assert_eq!(server.asked(), ["GET /api/version", "POST /api/show"]);
    assert!(server.seen.lock()[1].ends_with(r#"{"model":"m"}"#));

    let named = Scripted::start(move |_| Act::Answer(200, "", show.to_owned())).await;
    assert_eq!(ask(&named, Hint::Ollama).await.sees, Some(true));
    assert_eq!(named.asked(), ["POST /api/show"]);
}

#[tokio::test]
async fn a_model_that_ollama_does_not_have_is_unknown() {
    let server = Scripted::answering(&[VERSION]).await;
    let finding = ask(&server, Hint::Nothing).await;
    assert_eq!(finding.sees, None);
    assert_eq!(finding.detail, "Ollama does not have the model");
}

#[tokio::test]
async fn a_server_that_says_nothing_costs_a_second() {
    let server = Scripted::start(|_| Act::Stall).await;
    let started = runtime::now();
    let finding = ask(&server, Hint::LlamaCpp).await;
    assert_eq!(finding.sees, None);
    let taken = runtime::now() - started;
    assert!(taken < Duration::from_millis(1_500), "{taken:?}");
}

#[tokio::test]
async fn without_time_only_what_was_found_before_answers() {
    let server = Scripted::answering(&[]).await;
    let prober = Prober::default();
    let url = server.url("");
    let past = Deadline::after(Duration::ZERO);
    let finding = prober.ask(&url, Hint::LlamaCpp, "m", past).await;
    assert_eq!(finding.detail, "not asked: there is no time");
    assert!(server.seen.lock().is_empty());
    let soon = Deadline::after(Duration::from_secs(5));
    let found = prober.ask(&url, Hint::LlamaCpp, "m", soon).await;
    assert!(!server.seen.lock().is_empty());
    let known = prober.ask(&url, Hint::LlamaCpp, "m", past).await;
    assert_eq!(known, found);
}

#[tokio::test]
async fn nobody_waits_beyond_the_deadline() {
    let server = Scripted::start(|_| Act::Stall).await;
    let deadline = Deadline::after(Duration::from_millis(50));
    let started = runtime::now();
    let finding = Prober::default()
        .ask(&server.url(""), Hint::LlamaCpp, "m", deadline)
        .await;
    assert_eq!(finding, Finding::nothing("no answer in time"));
    let taken = runtime::now() - started;
    assert!(taken < Duration::from_millis(500), "{taken:?}");
}

#[tokio::test]
async fn an_endless_answer_is_cut() {
    let server = Scripted::start(|_| Act::Flood).await;
    let finding = ask(&server, Hint::LlamaCpp).await;
    assert_eq!(finding, Finding::nothing("the answer is too long"));
}

#[tokio::test]
async fn redirects_are_not_followed() {
    let other = Scripted::answering(&[("/props", LLAMA)]).await;
    let to = format!("location: {}\r\n", other.url("/props"));
    let to: &'static str = to.leak();
    let server = Scripted::start(move |_| Act::Answer(307, to, String::new())).await;
    for hint in [Hint::Ollama, Hint::LlamaCpp, Hint::Nothing] {
        assert_eq!(ask(&server, hint).await.sees, None, "{hint:?}");
    }
    assert_eq!(other.asked(), Vec::<String>::new());
}

#[tokio::test]
async fn endpoints_that_are_not_local_are_never_asked() {
    let prober = Prober::default();
    for url in [
        "https://ollama.com",
        "http://203.0.113.7:11434",
        "http://169.254.169.254",
        "http://127.0.0.1.example.com",
    ] {
        let url = Url::parse(url).unwrap();
        for hint in [Hint::Ollama, Hint::LlamaCpp, Hint::Nothing] {
            let finding = prober.ask(&url, hint, "m", soon()).await;
            assert!(finding.detail.starts_with("not asked"), "{url} {finding:?}");
        }
    }
    assert!(prober.client.get().is_none(), "a client was made");
}

#[tokio::test]
async fn nothing_but_the_question_is_sent() {
    let server = Scripted::answering(&[VERSION]).await;
    ask(&server, Hint::Nothing).await;
    for request in server.seen.lock().iter() {
        let request = request.to_lowercase();
        assert!(
            !request.contains("authorization") && !request.contains("cookie"),
            "{request}"
        );
    }
}

#[tokio::test]
async fn a_dead_endpoint_is_noticed_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    drop(listener);
    let url = Url::parse(&url).unwrap();
    let finding = Prober::default()
        .ask(&url, Hint::Nothing, "m", soon())
        .await;
    assert_eq!(finding, Finding::nothing("nobody listens there"));
}

#[tokio::test]
async fn findings_are_kept_also_when_there_is_none() {
    for (body, sees) in [(LLAMA, Some(true)), ("{}", None)] {
        let server = Scripted::start(move |_| Act::Answer(200, "", body.to_owned())).await;
        let prober = Prober::default();
        for model in ["a", "b", "a"] {
            let finding = prober
                .ask(&server.url("/v1/"), Hint::LlamaCpp, model, soon())
                .await;
            assert_eq!(finding.sees, sees);
        }
        assert_eq!(server.asked().len(), 1, "{body}");
    }
}

#[tokio::test]
async fn ollama_is_asked_about_each_model_once() {
    let server = Scripted::start(|request| {
        let seeing = request.contains("llava");
        let word = if seeing { "vision" } else { "tools" };
        Act::Answer(200, "", format!(r#"{{"capabilities": ["{word}"]}}"#))
    })
    .await;
    let prober = Prober::default();
    for _ in 0..3 {
        for (model, sees) in [("llava", true), ("llama3", false)] {
            let finding = prober
                .ask(&server.url(""), Hint::Ollama, model, soon())
                .await;
            assert_eq!(finding.sees, Some(sees), "{model}");
        }
    }
    assert_eq!(server.asked().len(), 2);
}

#[tokio::test]
async fn one_probe_serves_everybody_who_waits() {
    let server = Scripted::answering(&[("/v1/props", LLAMA)]).await;
    let prober = Prober::default();
    let url = server.url("/v1");
    let asks = (0..20).map(|_| prober.ask(&url, Hint::LlamaCpp, "m", soon()));
    for finding in futures_util::future::join_all(asks).await {
        assert_eq!(finding.sees, Some(true));
    }
    assert_eq!(server.asked().len(), 1);
}

#[tokio::test]
async fn questions_about_many_models_take_turns_at_one_endpoint() {
    let server =
        Scripted::start(|_| Act::Answer(200, "", r#"{"capabilities": []}"#.to_owned())).await;
    let prober = Prober::default();
    let url = server.url("");
    let models: Vec<String> = (0..8).map(|number| number.to_string()).collect();
    let asks = models
        .iter()
        .map(|model| prober.ask(&url, Hint::Ollama, model, soon()));
    for finding in futures_util::future::join_all(asks).await {
        assert_eq!(finding.sees, Some(false));
    }
    assert_eq!(server.asked().len(), models.len());
}

#[tokio::test]
async fn a_probe_outlives_the_caller_who_gave_up() {
    let server = Scripted::answering(&[("/v1/props", LLAMA)]).await;
    let prober = Prober::default();
    let gone = Deadline::after(Duration::ZERO);
    let first = prober.ask(&server.url(""), Hint::LlamaCpp, "m", gone).await;
    assert_eq!(first.sees, None);
    let second = prober
        .ask(&server.url(""), Hint::LlamaCpp, "m", soon())
        .await;
    assert_eq!(second.sees, Some(true));
    assert_eq!(server.asked().len(), 1);
}

#[test]
fn the_root_is_the_endpoint_without_v1() {
    for (endpoint, wanted) in [
        ("http://h:1", "http://h:1/"),
        ("http://h:1/v1", "http://h:1/"),
        ("http://h:1/v1/", "http://h:1/"),
        ("http://h:1/llama/v1", "http://h:1/llama/"),
        ("http://h:1/llama", "http://h:1/llama/"),
    ] {
        assert_eq!(root(&Url::parse(endpoint).unwrap()).as_str(), wanted);
    }
}

#[test]
fn names_of_providers_hint_at_their_server() {
    for (provider, hint) in [
        ("ollama", Hint::Ollama),
        ("custom:ollama", Hint::Ollama),
        ("llama.cpp", Hint::LlamaCpp),
        ("llama-cpp", Hint::LlamaCpp),
        ("llamacpp", Hint::LlamaCpp),
        ("llama-server", Hint::LlamaCpp),
        ("ollama-cloud", Hint::Nothing),
        ("custom", Hint::Nothing),
        ("lmstudio", Hint::Nothing),
    ] {
        assert_eq!(Hint::of(provider), hint, "{provider}");
    }
}
