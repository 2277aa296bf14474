//! The committed fuzz corpus, run once through the bodies of the fuzz targets.

#[path = "../fuzz/bodies.rs"]
mod bodies;

use std::path::Path;

fn run(target: &str, body: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/corpus")
        .join(target);
    let mut inputs = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        body(&std::fs::read(&path).unwrap());
        inputs += 1;
    }
    assert!(inputs >= 20, "{}: only {inputs} inputs", folder.display());
}

#[test]
fn frame() {
    run("frame", bodies::frame);
}

#[test]
fn result() {
    run("result", bodies::result);
}

#[test]
fn file_name() {
    run("file_name", bodies::file_name);
}

#[test]
fn base64() {
    run("base64", bodies::base64);
}

#[test]
fn prepare() {
    run("prepare", bodies::prepare);
}

#[test]
fn vision_reply() {
    run("vision_reply", bodies::vision_reply);
}
