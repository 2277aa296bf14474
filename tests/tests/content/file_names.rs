//! Cases of specification 7.3: what a file is called.

use serde_json::json;
use talaria_testkit::samples::{PDF, base64};

use crate::scene::{Scene, blob};

async fn named_by(uri: &str) -> Scene {
    Scene::of_block(blob(uri, "application/pdf", &base64(PDF))).await
}

#[tokio::test]
async fn f02_escaped_separators_do_not_climb() {
    assert_eq!(named_by("x://h/a%2F..%2F..%2Fb.pdf").await.name(), "b.pdf");
}

#[tokio::test]
async fn f04_a_long_name_keeps_its_extension() {
    let scene = named_by(&format!("x://h/{}.pdf", "a".repeat(500))).await;
    assert_eq!(scene.name(), format!("{}.pdf", "a".repeat(146)));
}

#[tokio::test]
async fn f06_a_long_name_in_chinese_fits_the_disk() {
    let scene = named_by(&format!("x://h/{}.pdf", "报".repeat(150))).await;
    let name = scene.name();
    assert!(name.len() <= 200, "{} bytes", name.len());
    assert!(
        name.strip_suffix(".pdf")
            .unwrap()
            .chars()
            .all(|character| character == '报')
    );
    let on_disk = scene.path().file_name().unwrap().len();
    assert!(on_disk <= 255, "{on_disk} bytes on disk");
    assert_eq!(scene.saved(), PDF);
}

#[tokio::test]
async fn f08_backslashes_separate_nothing() {
    let scene = named_by("x://h/..%5C..%5Cwin.ini").await;
    let name = scene.name();
    assert!(!name.contains(['\\', '/', ':']), "{name}");
    assert!(!name.starts_with('.'), "{name}");
    assert!(name.contains("win"), "{name}");
    assert!(scene.path().starts_with(scene.service.cache()));
}

#[tokio::test]
async fn f11_an_address_that_is_none_gives_a_plain_name() {
    assert_eq!(named_by("http://[bad/").await.name(), "resource.pdf");
}

#[tokio::test]
async fn f12_the_same_address_twice_gives_two_files() {
    let block = blob("x://h/a.pdf", "application/pdf", &base64(PDF));
    let scene = Scene::of(json!({"content": [block, block]})).await;
    let [one, other] = scene.artifacts() else {
        panic!("{}", scene.delivery)
    };
    assert_ne!(one["path"], other["path"]);
    for artifact in [one, other] {
        assert_eq!(artifact["name"], "a.pdf");
        let path = artifact["path"].as_str().unwrap();
        assert_eq!(std::fs::read(path).unwrap(), PDF);
        let file = std::path::Path::new(path)
            .file_name()
            .unwrap()
            .to_str()
            .unwrap();
        let prefix = file
            .strip_prefix("doc_")
            .unwrap()
            .strip_suffix("_a.pdf")
            .unwrap();
        assert_eq!(prefix.len(), 12, "{file}");
        assert!(
            prefix.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{file}"
        );
    }
}

#[tokio::test]
async fn f15_names_are_safe_on_every_platform() {
    for uri in ["x://h/CON.pdf", "x://h/con.tar.pdf", "x://h/LPT1"] {
        let scene = named_by(uri).await;
        let stem = scene.name().split('.').next().unwrap().to_lowercase();
        assert!(
            !["con", "lpt1"].contains(&stem.as_str()),
            "{uri} became {}",
            scene.name()
        );
    }
    for uri in [
        "x://h/report.pdf.",
        "x://h/report.pdf%20",
        "x://h/report.pdf.%20.",
    ] {
        let scene = named_by(uri).await;
        assert_eq!(scene.name(), "report.pdf", "{uri}");
    }
}
