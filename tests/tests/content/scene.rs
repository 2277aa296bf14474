//! One service, one result, and what came of it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use talaria_testkit::samples::base64;
use talaria_testkit::{Script, Service, programs};

/// What came of one result.
pub struct Scene {
    /// The service, for what is asked afterwards.
    pub service: Service,
    /// The delivery in format `talaria`.
    pub delivery: Value,
}

impl Scene {
    /// Delivers a result in format `talaria`.
    pub async fn of(result: Value) -> Self {
        let service = idle_service().await;
        let delivery = service
            .deliver(result, "talaria")
            .await
            .unwrap()
            .ok()
            .unwrap();
        Self { service, delivery }
    }

    /// Delivers one block.
    pub async fn of_block(block: Value) -> Self {
        Self::of(json!({ "content": [block] })).await
    }

    /// Lets a scripted server answer a call of its tool `t`, and delivers that.
    pub async fn of_call(server: &str, script: Script) -> Self {
        let service = serving(server, script).await;
        let answer = service.call(server, "t", json!({})).await.unwrap();
        let delivery = answer.ok().unwrap();
        Self { service, delivery }
    }

    /// What the model reads.
    pub fn text(&self) -> &str {
        self.delivery["text"].as_str().expect("text is a string")
    }

    /// The codes of the notices.
    pub fn notices(&self) -> Vec<&str> {
        let notices = self.delivery["notices"]
            .as_array()
            .expect("notices is a list");
        notices
            .iter()
            .map(|notice| notice["code"].as_str().expect("a code"))
            .collect()
    }

    /// The one file of the delivery.
    pub fn artifact(&self) -> &Value {
        match self.artifacts() {
            [artifact] => artifact,
            other => panic!("{} files: {other:?}; {}", other.len(), self.delivery),
        }
    }

    /// Every file of the delivery.
    pub fn artifacts(&self) -> &[Value] {
        self.delivery["artifacts"]
            .as_array()
            .expect("artifacts is a list")
    }

    /// The path of the one file; it is absolute and exists.
    pub fn path(&self) -> PathBuf {
        let path = PathBuf::from(self.artifact()["path"].as_str().expect("a path"));
        assert!(path.is_absolute() && path.is_file(), "{}", path.display());
        path
    }

    /// The name of the one file.
    pub fn name(&self) -> &str {
        self.artifact()["name"].as_str().expect("a name")
    }

    /// The bytes of the one file on disk.
    pub fn saved(&self) -> Vec<u8> {
        fs::read(self.path()).unwrap()
    }

    /// Asserts that nothing was saved, neither told nor left on the disk.
    pub fn assert_nothing_saved(&self) {
        assert_eq!(self.artifacts(), &[] as &[Value], "{}", self.delivery);
        assert_eq!(files_below(&self.service.cache()), Vec::<PathBuf>::new());
    }
}

/// Delivers a result in format `hermes`.
pub async fn hermes(result: Value) -> Value {
    let service = idle_service().await;
    service
        .deliver(result, "hermes")
        .await
        .unwrap()
        .ok()
        .unwrap()
}

/// A service without servers.
pub async fn idle_service() -> Service {
    Service::builder(programs!())
        .unwrap()
        .start()
        .await
        .unwrap()
}

/// A service with one scripted server.
pub async fn serving(server: &str, script: Script) -> Service {
    let builder = Service::builder(programs!())
        .unwrap()
        .stdio(server, script)
        .unwrap();
    builder.start().await.unwrap()
}

/// The files of the cache that hold content: not the index, nothing hidden.
pub fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for kind in [
        "images",
        "documents",
        "audio",
        "texts",
        "text",
        "spillover",
        "staging",
    ] {
        let Ok(entries) = fs::read_dir(folder.join(kind)) else {
            continue;
        };
        found.extend(
            entries
                .map(|entry| entry.unwrap().path())
                .filter(|path| path.is_file()),
        );
    }
    found
}

/// A text block.
pub fn text(text: &str) -> Value {
    json!({"type": "text", "text": text})
}

/// An image block of these bytes.
pub fn image(mime: &str, bytes: &[u8]) -> Value {
    json!({"type": "image", "mimeType": mime, "data": base64(bytes)})
}

/// An audio block with this base64.
pub fn audio(mime: &str, data: &str) -> Value {
    json!({"type": "audio", "mimeType": mime, "data": data})
}

/// An embedded blob with this base64.
pub fn blob(uri: &str, mime: &str, data: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": mime, "blob": data}})
}

/// An embedded text.
pub fn embedded_text(uri: &str, text: &str) -> Value {
    json!({"type": "resource", "resource": {"uri": uri, "mimeType": "text/plain", "text": text}})
}

/// A resource link.
pub fn link(uri: &str, name: &str) -> Value {
    json!({"type": "resource_link", "uri": uri, "name": name, "mimeType": "text/plain"})
}
