//! Pictures that leave, before two decoders that know nothing of ours: Pillow and sharp.

#[path = "pictures/scripts.rs"]
mod scripts;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};
use talaria_image::{NoteKind, Prepared, Refusal, RefusalKind, Target, Watch, prepare};
use talaria_types::runtime::environment;
use tokio::time::Instant;

use scripts::{picture, python, root, run};

const BUDGET: usize = 262_144;
const MAX_SIDE: u32 = 1_568;
/// Mean distance, in levels of 255 over a coarse grid, to what Pillow shows upright on white.
/// Turned or mirrored pictures are over 30 away; 16 colours for gradients come to 3.
const SAME: f64 = 6.0;
/// The same for dithered black and white, which a budget may leave with fewer greys.
const SAME_DITHERED: f64 = 20.0;
/// Longest that any picture of this size may take in the test profile.
const PATIENCE: Duration = Duration::from_secs(20);
/// Seed of the damaged pictures; `TALARIA_SEED` takes another.
const SEED: u64 = 20_261_130;

/// Everything that left, to be shown to both decoders at once.
#[derive(Default)]
struct Left {
    folder: Option<tempfile::TempDir>,
    rows: Vec<Value>,
    names: Vec<String>,
}

impl Left {
    fn new() -> Self {
        Self {
            folder: Some(tempfile::tempdir().unwrap()),
            ..Self::default()
        }
    }

    /// Checks what needs no decoder and writes the pictures down for those.
    fn add(&mut self, name: &str, prepared: &Prepared, source: Option<&Path>) -> Vec<String> {
        let mut wrong = Vec::new();
        assert!(
            !prepared.pictures.is_empty(),
            "{name}: no picture and no refusal"
        );
        for (index, picture) in prepared.pictures.iter().enumerate() {
            let media_type = picture.format.media_type();
            let url = url_length(picture.bytes.len(), media_type);
            if url > BUDGET {
                wrong.push(format!("{name}: {url} characters of data URL"));
            }
            if picture.width.max(picture.height) > MAX_SIDE {
                wrong.push(format!("{name}: {}x{}", picture.width, picture.height));
            }
            let path = self
                .folder
                .as_ref()
                .unwrap()
                .path()
                .join(format!("{}-{index}", self.names.len()));
            std::fs::write(&path, &picture.bytes).unwrap();
            let mut row = json!({"path": path, "media_type": media_type, "width": picture.width, "height": picture.height});
            if let Some(source) = source {
                row["source"] = json!(source);
            }
            self.rows.push(row);
            self.names.push(name.to_owned());
        }
        wrong
    }

    /// What Pillow and sharp have against the pictures.
    fn faults(self) -> Vec<String> {
        let rows = Value::Array(self.rows);
        let pillow = python("check_pillow.py", &[], &rows);
        let sharp = sharp(&rows);
        let mut faults = Vec::new();
        for (index, name) in self.names.iter().enumerate() {
            for fault in [&pillow[index]["wrong"], &sharp[index]["wrong"]] {
                if !fault.is_null() {
                    faults.push(format!("{name}: {fault}"));
                }
            }
            let same = if name.contains("-bits") {
                SAME_DITHERED
            } else {
                SAME
            };
            if let Some(difference) = pillow[index]["difference"].as_f64()
                && difference > same
            {
                faults.push(format!(
                    "{name}: {difference:.1} levels from the upright original"
                ));
            }
        }
        assert_eq!(pillow.as_array().unwrap().len(), self.names.len());
        assert_eq!(sharp.as_array().unwrap().len(), self.names.len());
        faults
    }
}

/// sharp's answer to a list of pictures.
fn sharp(rows: &Value) -> Value {
    let packages = root().join(".peers/node/node_modules");
    assert!(
        packages.exists(),
        "{} is missing: run .ci/peers",
        packages.display()
    );
    let mut node = Command::new("node");
    node.env("NODE_PATH", packages);
    run(node, "check_sharp.cjs", &[], rows)
}

fn url_length(bytes: usize, media_type: &str) -> usize {
    "data:;base64,".len() + media_type.len() + bytes.div_ceil(3) * 4
}

fn prepare_in_time(name: &str, bytes: &[u8]) -> Result<Prepared, Refusal> {
    let started = Instant::now();
    let outcome = catch_unwind(AssertUnwindSafe(|| {
        prepare(bytes, &Target::default(), &Watch::never())
    }))
    .unwrap_or_else(|_| panic!("{name}: panicked"));
    let took = started.elapsed();
    assert!(took < PATIENCE, "{name}: took {took:?}");
    outcome
}

/// The files a script made in a folder.
fn made(script: &str, folder: &Path, seed: Option<u64>) -> Vec<PathBuf> {
    let seed = seed.map(|seed| PathBuf::from(seed.to_string()));
    let mut arguments = vec![folder];
    arguments.extend(seed.as_deref());
    let names = python(script, &arguments, &Value::Null);
    let names = names.as_array().unwrap();
    assert!(names.len() > 50, "{script} made {} files", names.len());
    names
        .iter()
        .map(|name| folder.join(name.as_str().unwrap()))
        .collect()
}

#[test]
fn sound_pictures_of_every_format_arrive_upright_and_within_bounds() {
    let folder = tempfile::tempdir().unwrap();
    let mut sources = made("make_sound.py", folder.path(), None);
    let kept = ["png", "jpg", "webp", "gif"];
    sources.extend(
        std::fs::read_dir(picture(""))
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| {
                path.extension()
                    .is_some_and(|end| kept.iter().any(|kept| end == *kept))
            })
            .filter(|path| {
                !path
                    .file_name()
                    .unwrap()
                    .to_string_lossy()
                    .starts_with("bomb")
            }),
    );

    let mut left = Left::new();
    let mut wrong = Vec::new();
    for source in &sources {
        let name = source.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(source).unwrap();
        let prepared = match prepare_in_time(&name, &bytes) {
            Ok(prepared) => prepared,
            Err(refusal) => {
                wrong.push(format!("{name}: refused: {refusal}"));
                continue;
            }
        };
        wrong.extend(left.add(&name, &prepared, Some(source)));
        let is_taken = name.ends_with("png") || name.ends_with("jpg") || name.ends_with("webp");
        // What leaves of an animation is a still, so the animation's size says nothing.
        let fits = is_taken
            && prepared.source.frames == 1
            && url_length(bytes.len(), prepared.pictures[0].format.media_type()) <= BUDGET
            && prepared.source.width.max(prepared.source.height) <= MAX_SIDE;
        let size: usize = prepared
            .pictures
            .iter()
            .map(|picture| picture.bytes.len())
            .sum();
        let padded = prepared
            .notes
            .iter()
            .any(|note| note.kind == NoteKind::Padded);
        if fits && !padded && size > bytes.len() {
            wrong.push(format!("{name}: {} bytes became {size}", bytes.len()));
        }
    }
    wrong.extend(left.faults());
    assert!(
        wrong.is_empty(),
        "{} faults:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    println!("{} pictures", sources.len());
}

#[test]
fn bombs_are_refused_and_formats_without_a_decoder_say_so() {
    for name in ["bomb_hdr.png", "bomb_real.png"] {
        let bytes = std::fs::read(picture(name)).unwrap();
        let refusal = prepare_in_time(name, &bytes).unwrap_err();
        assert_eq!(refusal.kind, RefusalKind::TooLarge, "{name}: {refusal}");
    }
    let avif = std::fs::read(picture("photo.avif")).unwrap();
    let refusal = prepare_in_time("photo.avif", &avif).unwrap_err();
    assert_eq!(refusal.kind, RefusalKind::Unsupported, "{refusal}");
}

#[test]
fn whatever_leaves_of_damaged_and_odd_pictures_decodes_elsewhere() {
    let seed = environment()
        .get("TALARIA_SEED")
        .map_or(SEED, |seed| seed.parse().unwrap());
    println!("seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let sources = made("make_odd.py", folder.path(), Some(seed));

    let mut left = Left::new();
    let mut wrong = Vec::new();
    let mut refused = 0_usize;
    for source in &sources {
        let name = source.file_name().unwrap().to_string_lossy().into_owned();
        let bytes = std::fs::read(source).unwrap();
        match prepare_in_time(&name, &bytes) {
            Ok(prepared) => wrong.extend(left.add(&name, &prepared, None)),
            Err(_) => refused += 1,
        }
    }
    let prepared = sources.len() - refused;
    println!(
        "{} pictures: {prepared} prepared, {refused} refused",
        sources.len()
    );
    // A build that refuses all of them, or none, would prove nothing.
    assert!(
        prepared > sources.len() / 4 && refused > sources.len() / 10,
        "{prepared} of {}",
        sources.len()
    );
    wrong.extend(left.faults());
    assert!(
        wrong.is_empty(),
        "{} faults, seed {seed}:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}
