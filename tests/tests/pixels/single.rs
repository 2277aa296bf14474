//! `POST /v1/images/deliver`: one picture by path or data, regions, questions, and what is
//! refused.

use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use talaria_testkit::{Answer, Service, pictures};

use crate::scene::{
    assert_no_pixels, attached, bars, base64, blind, builder, codes, deliver, media_lines, post,
    result, seeing, service, text,
};

const IMAGES: &str = "/v1/images/deliver";

fn at(path: &Path) -> Value {
    json!({"source": "vision_analyze", "image": {"path": path}, "route": seeing()})
}

async fn refused(service: &Service, body: &Value) -> (u16, Value) {
    let answer = service.post(IMAGES, body).await.unwrap();
    (answer.status, answer.problem().unwrap())
}

/// A service that may read below one folder of its home, and that folder.
async fn with_root() -> (Service, PathBuf) {
    let builder = builder();
    let root = builder.home().canonicalize().unwrap().join("allowed");
    std::fs::create_dir_all(root.join("deep")).unwrap();
    std::fs::write(root.join("deep/shot.png"), bars(3)).unwrap();
    let roots = json!([root]);
    let service = builder
        .set(&["talaria", "images", "allowed_roots"], roots)
        .start()
        .await
        .unwrap();
    (service, root)
}

#[tokio::test]
async fn a_question_stands_with_the_picture_it_is_about() {
    let service = service().await;
    let large = pictures::plain_png(3_136, 1_764, [9, 9, 90]).unwrap();
    let body = json!({
        "source": "vision_analyze", "image": {"data": base64(&large)}, "route": seeing(),
        "question": "What colour is it?",
    });
    let delivery = post(&service, IMAGES, &body).await;
    assert_eq!(attached(&delivery).len(), 1);
    let words = text(&delivery);
    assert!(words.contains("The picture is loaded"), "{words}");
    assert!(words.contains("What colour is it?"), "{words}");
    assert!(words.contains("3136") && words.contains("2.00"), "{words}");
    assert_eq!(media_lines(words), 1);
    let mut closed = body.clone();
    closed["route"] = blind();
    let delivery = post(&service, IMAGES, &closed).await;
    assert_no_pixels(&delivery.to_string());
    let words = text(&delivery);
    let reason = delivery["gate"]["reason"].as_str().unwrap();
    assert!(
        words.contains(reason) && !words.contains("loaded"),
        "{words}"
    );
    assert_eq!(media_lines(words), 1);
}

#[tokio::test]
async fn a_region_is_cut_out_before_anything_is_scaled() {
    let service = service().await;
    let picture = pictures::drawn_png(4_000, 3_000, |x, y| {
        if (2_000..2_400).contains(&x) && (1_000..1_300).contains(&y) {
            [200, 10, 10]
        } else {
            [10, 10, 200]
        }
    });
    let picture = base64(&picture.unwrap());
    let ask = |region: Value| {
        let body = json!({
            "source": "browser", "image": {"data": picture}, "route": seeing(), "region": region,
        });
        let service = &service;
        async move { service.post(IMAGES, &body).await.unwrap() }
    };
    let delivery = ask(json!([2_000, 1_000, 2_400, 1_300])).await.ok().unwrap();
    let seen = &attached(&delivery)[0];
    assert_eq!((seen.width, seen.height), (400, 300));
    assert_eq!(seen.centre().map(|[red, ..]| red > 150), Some(true));
    let area = json!({"x": 2_000, "y": 1_000, "width": 400, "height": 300});
    assert_eq!(delivery["attachments"][0]["area"], area);
    assert!(codes(&delivery).contains(&"image_cropped"), "{delivery}");
    // What lies beyond the edge is left out.
    let delivery = ask(json!([3_900, -50, 9_000, 100])).await.ok().unwrap();
    let area = json!({"x": 3_900, "y": 0, "width": 100, "height": 100});
    assert_eq!(delivery["attachments"][0]["area"], area);
    for nothing in [
        json!([5_000, 0, 6_000, 10]),
        json!([10, 10, 10, 20]),
        json!([9, 9, 3, 3]),
    ] {
        let answer = ask(nothing.clone()).await;
        assert_eq!(answer.status, 400, "{nothing}: {}", answer.excerpt());
    }
}

#[tokio::test]
async fn a_file_of_an_earlier_delivery_is_taken_as_it_lies() {
    let service = service().await;
    let first = deliver(&service, result(&[bars(4)]), blind()).await;
    let artifact = &first["artifacts"][0];
    let path = PathBuf::from(artifact["path"].as_str().unwrap());
    let delivery = post(&service, IMAGES, &at(&path)).await;
    assert_eq!(attached(&delivery)[0].bars(), 4);
    assert_eq!(
        &delivery["artifacts"],
        &json!([artifact]),
        "it is not stored twice"
    );
    assert!(path.is_file(), "and stays where it is");
    assert!(text(&delivery).contains(&format!("MEDIA:{}", path.display())));
}

#[tokio::test]
async fn a_file_of_an_allowed_folder_is_stored_under_its_name() {
    let (service, root) = with_root().await;
    symlink(root.join("deep"), root.join("inside")).unwrap();
    for path in [root.join("deep/shot.png"), root.join("inside/shot.png")] {
        let delivery = post(&service, IMAGES, &at(&path)).await;
        assert_eq!(attached(&delivery)[0].bars(), 3);
        let artifact = &delivery["artifacts"][0];
        assert_eq!(artifact["name"], "shot.png");
        assert_eq!(std::fs::read(root.join("deep/shot.png")).unwrap(), bars(3));
    }
}

#[tokio::test]
async fn no_path_leads_out_of_the_allowed_folders() {
    let (service, root) = with_root().await;
    let outside = service.home().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("secret.png"), bars(5)).unwrap();
    symlink(&outside, root.join("way")).unwrap();
    symlink(outside.join("secret.png"), root.join("picture.png")).unwrap();
    std::fs::create_dir_all(root.join(".ssh")).unwrap();
    for secret in [".ssh/shot.png", "id_rsa", ".env", "server.pem"] {
        std::fs::write(root.join(secret), bars(5)).unwrap();
    }
    for path in [
        root.join("way/secret.png"),
        root.join("picture.png"),
        root.join("deep/../../outside/secret.png"),
        root.join(".ssh/shot.png"),
        root.join("id_rsa"),
        root.join(".env"),
        root.join("server.pem"),
        outside.join("secret.png"),
        outside.join("no such file"),
        service.cache().join("index.jsonl"),
        service.home().join("config.yaml"),
        PathBuf::from("/etc/passwd"),
        PathBuf::from("/proc/self/environ"),
        PathBuf::from("shot.png"),
    ] {
        let (status, problem) = refused(&service, &at(&path)).await;
        assert_eq!(
            (status, &problem["code"]),
            (403, &json!("path_refused")),
            "{}: {problem}",
            path.display()
        );
    }
    nix::unistd::mkfifo(&root.join("pipe.png"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for path in [
        root.join("absent.png"),
        root.join("deep"),
        root.join("pipe.png"),
    ] {
        let (status, problem) = refused(&service, &at(&path)).await;
        assert_eq!(
            (status, &problem["code"]),
            (400, &json!("invalid_request")),
            "{}",
            path.display()
        );
    }
}

#[tokio::test]
async fn a_file_of_another_token_is_not_shown() {
    let token = |name: &str| json!({"name": name, "token": format!("the-secret-of-{name}"), "scopes": ["call"], "servers": ["*"]});
    let tokens = json!([token("one"), token("two")]);
    let service = builder()
        .set(&["talaria", "auth", "tokens"], tokens)
        .start()
        .await
        .unwrap();
    let ask = |token: &str, path: &str, body: Value| {
        let request = service.client().post(service.url(path)).json(&body);
        let request = request.bearer_auth(format!("the-secret-of-{token}"));
        async move { Answer::read(request.send().await.unwrap()).await.unwrap() }
    };
    let body = json!({"result": result(&[bars(2)]), "route": seeing()});
    let first = ask("one", "/v1/results/deliver", body).await.ok().unwrap();
    let path = PathBuf::from(first["artifacts"][0]["path"].as_str().unwrap());
    assert_eq!(ask("one", IMAGES, at(&path)).await.status, 200);
    let other = ask("two", IMAGES, at(&path)).await;
    assert_eq!(
        (other.status, other.code().unwrap().as_str()),
        (403, "forbidden")
    );
}

#[tokio::test]
async fn data_is_base64_of_a_picture_or_refused() {
    let service = service().await;
    let (status, _) = {
        let url = format!("data:image/png;base64,{}", base64(&bars(1)));
        let body = json!({"source": "mcp", "image": {"data": url}, "route": seeing()});
        let answer = service.post(IMAGES, &body).await.unwrap();
        (answer.status, answer)
    };
    assert_eq!(status, 200);
    let large = "QUFB".repeat(17_500_000);
    for (image, words) in [
        (json!({"data": "***"}), "base64"),
        (json!({"data": "data:image/png,iVBORw0KGgo"}), "base64"),
        (json!({"data": ""}), "empty"),
        (
            json!({"data": base64(b"<html><body>404</body></html>")}),
            "picture",
        ),
        (json!({"data": base64(b"%PDF-1.7\n1 0 obj\n")}), "picture"),
        (json!({"data": "https://host.example/a.png"}), "`image.url`"),
        (json!({"url": "data:image/png;base64,***"}), "base64"),
        (json!({"data": large}), "50 MiB"),
        (json!({}), "exactly one"),
        (json!({"data": "AAAA", "path": "/a.png"}), "exactly one"),
        (json!({"file": "/a.png"}), "file"),
    ] {
        for route in [seeing(), blind()] {
            let body = json!({"source": "mcp", "image": image, "route": route});
            let (status, problem) = refused(&service, &body).await;
            assert_eq!(status, 400, "{problem}");
            assert!(
                problem["detail"].as_str().unwrap().contains(words),
                "{words}: {problem}"
            );
        }
    }
    let saved = service.cache().join("images");
    let files = std::fs::read_dir(saved).unwrap().count();
    assert_eq!(files, 1, "what is refused leaves no file");
}

#[tokio::test]
async fn a_picture_that_does_not_decode_is_a_delivery_that_says_so() {
    let service = service().await;
    let mut cut = bars(6);
    cut.truncate(70);
    let body =
        json!({"source": "computer_use", "image": {"data": base64(&cut)}, "route": seeing()});
    let delivery = post(&service, IMAGES, &body).await;
    assert!(attached(&delivery).is_empty());
    assert!(
        codes(&delivery).contains(&"image_not_decodable"),
        "{delivery}"
    );
    assert!(
        text(&delivery).contains("not attached"),
        "{}",
        text(&delivery)
    );
}

#[tokio::test]
async fn one_picture_speaks_every_format() {
    let service = service().await;
    for format in [
        "talaria",
        "hermes",
        "text",
        "anthropic",
        "openai-responses",
        "gemini",
        "mcp",
    ] {
        let body = json!({
            "source": "browser", "image": {"data": base64(&bars(2))}, "format": format,
            "route": {"provider": "openrouter", "model": "sees"}, "call_id": "call_1",
        });
        let answer = service.post(IMAGES, &body).await.unwrap();
        assert_eq!(answer.status, 200, "{format}: {}", answer.excerpt());
        let words = answer.text().unwrap();
        assert!(words.contains("MEDIA:"), "{format}: {words}");
        let has_pixels = words.contains("base64,") || words.contains("\"data\":\"iVBOR");
        assert_eq!(has_pixels, format != "text", "{format}: {words}");
    }
}
