//! Screens of real programs through the real service: a page in Chromium by Playwright's MCP
//! server, and a desktop under Xvfb by cua-driver. A model that sees gets their pixels and can
//! read them; one that does not gets none.

#[path = "pictures/scripts.rs"]
mod scripts;

use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use talaria_testkit::programs;
use talaria_testkit::service::Service;
use talaria_testkit::wait::wait_for;
use talaria_types::runtime::spawn;
use tempfile::TempDir;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

use scripts::{picture, python, root};

/// The id under which an agent's provider knows the call.
const CALL: &str = "toolu_01Screen";
/// Programs of others take their time on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// The share of the words on the saved screenshot that must be legible on what was attached.
const LEGIBLE: f64 = 0.95;
/// Chromium in a test: no sandbox below root, and no errands of its own.
const CHROMIUM: &[&str] = &[
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
];

fn seeing() -> Value {
    json!({"provider": "anthropic", "model": "claude-sonnet-4-5"})
}

fn blind() -> Value {
    json!({"provider": "deepseek", "model": "deepseek-chat"})
}

/// Words that the screens show, and the file the reading is compared with.
fn shown_words(folder: &Path, count: usize) -> (Vec<String>, std::path::PathBuf) {
    let words: Vec<String> = std::fs::read_to_string(picture("doc1080.txt"))
        .unwrap()
        .split_whitespace()
        .filter(|word| word.len() > 1 && word.chars().all(|letter| letter.is_ascii_alphabetic()))
        .take(count)
        .map(str::to_owned)
        .collect();
    assert_eq!(words.len(), count);
    let file = folder.join("words.txt");
    std::fs::write(&file, words.join(" ")).unwrap();
    (words, file)
}

/// A page of words on a port of its own.
async fn serve_page(words: &[String]) -> String {
    let page = format!(
        "<!doctype html><title>Ledger</title>\
         <body style='font: 17px/1.5 sans-serif; columns: 3; margin: 24px'><p>{}</p></body>",
        words.join(" ")
    );
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    // Ends with the test's runtime.
    drop(spawn("page", async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let answer = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{page}",
                page.len()
            );
            let mut request = [0_u8; 4096];
            if stream.read(&mut request).await.is_ok() {
                // A browser that went away needs no page.
                drop(stream.write_all(answer.as_bytes()).await);
            }
        }
    }));
    format!("http://{address}/")
}

/// Calls a tool for a route in the provider's own format.
async fn call(
    service: &Service,
    server: &str,
    tool: &str,
    arguments: Value,
    route: Value,
) -> Value {
    let body = json!({
        "server": server, "name": tool, "arguments": arguments,
        "route": route, "format": "anthropic", "call_id": CALL,
    });
    let block = service
        .post("/v1/tools/call", &body)
        .await
        .unwrap()
        .ok()
        .unwrap();
    assert_eq!(block["type"], "tool_result", "{block}");
    assert_eq!(block["tool_use_id"], CALL);
    assert_ne!(block["is_error"], true, "{block}");
    block
}

fn parts<'a>(block: &'a Value, kind: &str) -> Vec<&'a Value> {
    block["content"]
        .as_array()
        .unwrap()
        .iter()
        .filter(|part| part["type"] == kind)
        .collect()
}

fn text(block: &Value) -> String {
    let texts = parts(block, "text");
    let lines: Vec<&str> = texts
        .iter()
        .map(|part| part["text"].as_str().unwrap())
        .collect();
    lines.join("\n")
}

/// The path of the one file a result names.
fn media(block: &Value) -> String {
    let text = text(block);
    let paths: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("MEDIA:"))
        .collect();
    let [path] = paths.as_slice() else {
        panic!("not one MEDIA line: {text}");
    };
    assert!(Path::new(path).is_absolute(), "{path}");
    (*path).to_owned()
}

/// What a provider would be sent holds one picture, within every bound, on which the words of the
/// saved screenshot can be read.
fn assert_legible(block: &Value, words: &Path, folder: &Path) {
    let images = parts(block, "image");
    let [image] = images.as_slice() else {
        panic!("{} pictures: {}", images.len(), text(block));
    };
    let source = &image["source"];
    assert_eq!(source["type"], "base64");
    let data = source["data"].as_str().unwrap();
    assert!(data.len() <= 262_144, "{} characters", data.len());
    let attached = folder.join("attached");
    std::fs::write(&attached, STANDARD.decode(data).unwrap()).unwrap();

    let original = media(block);
    let readings = json!([
        {"id": "attached", "words": words, "pictures": [{"path": attached}]},
        {"id": "original", "words": words, "pictures": [{"path": original}]},
    ]);
    let report = python("legibility.py", &[], &readings);
    println!("{report}");
    let read = |id: &str| report[id]["read"].as_f64().unwrap();
    assert!(
        read("original") > 0.8 * report["original"]["known"].as_f64().unwrap(),
        "{report}"
    );
    assert!(read("attached") >= LEGIBLE * read("original"), "{report}");

    let sides =
        json!([{"path": attached, "media_type": source["media_type"], "width": 0, "height": 0}]);
    let verdict = python("check_pillow.py", &[], &sides);
    let verdict = verdict[0]["wrong"].as_str().unwrap();
    assert!(
        verdict.starts_with("is (1568, "),
        "of the declared type and as wide as it may be: {verdict}"
    );
}

/// No pixels for a model that cannot see them, but the file all the same.
fn assert_no_pixels(block: &Value) {
    assert!(parts(block, "image").is_empty(), "pixels for a blind model");
    let body = block.to_string();
    assert!(
        body.len() < 20_000 && !body.contains("base64"),
        "{} bytes",
        body.len()
    );
    assert!(!std::fs::read(media(block)).unwrap().is_empty());
}

#[tokio::test]
async fn a_page_in_chromium_reaches_only_a_model_that_sees() {
    let folder = tempfile::tempdir().unwrap();
    let (words, file) = shown_words(folder.path(), 500);
    let page = serve_page(&words).await;
    let config = folder.path().join("playwright.json");
    let settings = json!({
        "browser": {
            "browserName": "chromium",
            "isolated": true,
            "launchOptions": {"executablePath": "/usr/bin/chromium", "headless": true, "args": CHROMIUM},
            "contextOptions": {"viewport": {"width": 1920, "height": 1080}},
        },
        "outputDir": folder.path().join("out"),
    });
    std::fs::write(&config, settings.to_string()).unwrap();
    let script = root().join(".peers/node/node_modules/@playwright/mcp/cli.js");
    assert!(
        script.exists(),
        "Playwright is not installed: run .ci/peers"
    );
    let service = Service::builder(programs!())
        .unwrap()
        .server(
            "browser",
            json!({"command": "node", "args": [script, "--config", config]}),
        )
        .start()
        .await
        .unwrap();

    let opened = call(
        &service,
        "browser",
        "browser_navigate",
        json!({"url": page}),
        seeing(),
    )
    .await;
    assert!(text(&opened).contains("Ledger"), "{opened}");
    let shot = json!({"type": "png"});
    let seen = call(
        &service,
        "browser",
        "browser_take_screenshot",
        shot.clone(),
        seeing(),
    )
    .await;
    assert_legible(&seen, &file, folder.path());
    let unseen = call(
        &service,
        "browser",
        "browser_take_screenshot",
        shot,
        blind(),
    )
    .await;
    assert_no_pixels(&unseen);
    call(&service, "browser", "browser_close", json!({}), seeing()).await;
}

/// A display of its own with one window; everything is killed when dropped.
struct Desktop {
    _display: Child,
    _window: Child,
    name: String,
}

impl Desktop {
    async fn start(words: &Path) -> Self {
        let mut display = Command::new("Xvfb")
            .args([
                "-displayfd",
                "1",
                "-screen",
                "0",
                "2560x1440x24",
                "-nolisten",
                "tcp",
            ])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("Xvfb is not installed: run .ci/debian Xvfb=xvfb");
        let mut number = String::new();
        let mut lines = BufReader::new(display.stdout.take().unwrap());
        lines.read_line(&mut number).await.unwrap();
        let name = format!(":{}", number.trim());
        let window = Command::new("xterm")
            .args([
                "-fa",
                "Monospace",
                "-fs",
                "16",
                "-geometry",
                "150x45+20+20",
                "-title",
                "Ledger",
                "-e",
                "sh",
                "-c",
            ])
            .arg(format!(
                "fold -s -w 140 {}; exec sleep 600",
                words.display()
            ))
            .env("DISPLAY", &name)
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("xterm is not installed: run .ci/debian xterm");
        Self {
            _display: display,
            _window: window,
            name,
        }
    }
}

#[tokio::test]
async fn a_desktop_by_cua_driver_reaches_only_a_model_that_sees() {
    let folder = tempfile::tempdir().unwrap();
    let (_, file) = shown_words(folder.path(), 500);
    let desktop = Desktop::start(&file).await;
    let home = TempDir::new().unwrap();
    let driver = root().join(".peers/python/bin/cua-driver");
    assert!(
        driver.exists(),
        "cua-driver is not installed: run .ci/peers"
    );
    let quiet = Command::new(&driver)
        .args(["telemetry", "disable"])
        .env("HOME", home.path())
        .output()
        .await
        .unwrap();
    assert!(quiet.status.success(), "{quiet:?}");
    let service = Service::builder(programs!())
        .unwrap()
        .server(
            "desktop",
            json!({"command": driver, "args": ["mcp"], "env": {"DISPLAY": desktop.name, "HOME": home.path()}}),
        )
        .start()
        .await
        .unwrap();

    wait_for("the window to be on the screen", PATIENCE, || async {
        let windows = call(&service, "desktop", "list_windows", json!({}), seeing()).await;
        let windows = text(&windows);
        if windows.contains("Ledger") {
            Ok(())
        } else {
            Err(windows)
        }
    })
    .await
    .unwrap();
    let seen = call(
        &service,
        "desktop",
        "get_desktop_state",
        json!({}),
        seeing(),
    )
    .await;
    assert!(text(&seen).contains("2560x1440"), "{}", text(&seen));
    assert_legible(&seen, &file, folder.path());
    let unseen = call(&service, "desktop", "get_desktop_state", json!({}), blind()).await;
    assert_no_pixels(&unseen);
}
