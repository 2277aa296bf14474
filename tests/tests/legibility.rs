//! What can still be read on the pictures that leave: word recall of tesseract, beside a lossless
//! picture of the same size and beside the reference agent's ladder.

#[path = "pictures/scripts.rs"]
mod scripts;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use talaria_image::{Prepared, Region, Target, Tiling, Watch, prepare};
use talaria_types::runtime::environment;
use tempfile::TempDir;

use scripts::{picture, python, root, run};

/// Screenshots whose words are known and that one picture of 1568 px can carry.
const SCREENS: &[&str] = &[
    "web1080", "web1440", "doc1080", "doc1440", "doc4k2x", "edit1440", "desk1080",
];
/// Those on which the reference agent's ladder loses much.
const LOST_BY_THE_LADDER: &[&str] = &["doc1080", "doc1440", "doc4k2x", "edit1440", "desk1080"];
/// Those that no single picture of 1568 px can carry.
const TOO_LARGE: &[&str] = &["tall", "doc4k1x"];
/// A part of each of them that needs no scaling.
const PARTS: &[(&str, [u32; 4])] = &[
    ("tall", [0, 3000, 1200, 4568]),
    ("doc4k1x", [1100, 300, 2668, 1868]),
];

/// Seed of the pages that are drawn anew; `TALARIA_SEED` takes another.
const SEED: &str = "20261130";

/// Budgets in characters, and the share of the lossless picture's words that must remain.
const BUDGETS: &[(usize, f64)] = &[(262_144, 0.98), (131_072, 0.95)];
/// What a page drawn by a seed may miss of that: the reading of one page is no surer than a point,
/// and `board` of the seed above comes to 0.948 at the smaller budget.
const ONE_POINT: f64 = 0.01;
/// How many hundredths of the words the reference agent's ladder must read less.
const AHEAD_OF_THE_LADDER: f64 = 0.20;
/// How many times the words of the single picture tiles must carry.
const GAIN_OF_TILES: f64 = 2.0;
/// The share of the words of the original that a part must keep.
const PART: f64 = 0.95;

/// A screenshot with known words: `NAME.png` and `NAME.txt` in a folder.
#[derive(Clone, Debug)]
struct Screen {
    name: String,
    folder: PathBuf,
}

impl Screen {
    fn kept(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            folder: picture(""),
        }
    }

    fn file(&self, end: &str) -> PathBuf {
        self.folder.join(format!("{}.{end}", self.name))
    }

    /// The size that fits 1568 px; the header of a PNG says the sides.
    fn fitted(&self) -> (u32, u32) {
        let bytes = std::fs::read(self.file("png")).unwrap();
        let side = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap());
        let (width, height) = (f64::from(side(16)), f64::from(side(20)));
        let scale = 1568.0 / width.max(height);
        (
            (width * scale).round() as u32,
            (height * scale).round() as u32,
        )
    }
}

/// Readings to be made in one run of the script.
struct Readings {
    folder: TempDir,
    list: Vec<Value>,
}

impl Readings {
    fn new() -> Self {
        Self {
            folder: tempfile::tempdir().unwrap(),
            list: Vec::new(),
        }
    }

    fn add(&mut self, screen: &Screen, what: &str, pictures: &Value) {
        self.list.push(json!({
            "id": format!("{}/{what}", screen.name),
            "words": screen.file("txt"),
            "pictures": pictures,
        }));
    }

    /// Prepares a screenshot and reads everything that comes out.
    fn add_ours(&mut self, screen: &Screen, what: &str, target: &Target) -> Prepared {
        let source = std::fs::read(screen.file("png")).unwrap();
        let prepared = prepare(&source, target, &Watch::never()).unwrap();
        let mut files = Vec::new();
        for (index, picture) in prepared.pictures.iter().enumerate() {
            let file = self
                .folder
                .path()
                .join(format!("{}-{what}-{index}", screen.name));
            std::fs::write(&file, &picture.bytes).unwrap();
            files.push(json!({"path": file}));
        }
        self.add(screen, what, &Value::Array(files));
        prepared
    }

    /// The share of the known words of each reading.
    fn recall(self) -> Recall {
        let report = python("legibility.py", &[], &Value::Array(self.list));
        let share = |reading: &Value| {
            reading["read"].as_f64().unwrap() / reading["known"].as_f64().unwrap()
        };
        let report = report.as_object().unwrap();
        Recall(
            report
                .iter()
                .map(|(id, reading)| (id.clone(), share(reading)))
                .collect(),
        )
    }
}

struct Recall(BTreeMap<String, f64>);

impl Recall {
    fn of(&self, screen: &Screen, what: &str) -> f64 {
        self.0[&format!("{}/{what}", screen.name)]
    }
}

/// Fails with all that is wrong, not with the first.
fn check(wrong: &[String]) {
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Reads ours at every budget beside a lossless picture, and beside the reference agent's ladder
/// where that has to be far behind.
fn compare(screens: &[Screen], lost_by_the_ladder: &[&str], slack: f64) {
    let mut readings = Readings::new();
    for screen in screens {
        for (budget, _) in BUDGETS {
            let target = Target {
                budget: *budget,
                ..Target::default()
            };
            let prepared = readings.add_ours(screen, &budget.to_string(), &target);
            let [picture] = prepared.pictures.as_slice() else {
                panic!("{}: {} pictures", screen.name, prepared.pictures.len());
            };
            println!(
                "{:<10} {budget:>7} {:<10} {:>4}x{:<4} {:>7} bytes, {} encodes",
                screen.name,
                picture.format.media_type(),
                picture.width,
                picture.height,
                picture.bytes.len(),
                prepared.encodes
            );
        }
        let (width, height) = screen.fitted();
        let source = screen.file("png");
        let lossless = json!([{"path": source, "via": "lanczos", "size": [width, height]}]);
        readings.add(screen, "lossless", &lossless);
        let ladder = json!([{"path": source, "via": "reference"}]);
        readings.add(screen, "ladder", &ladder);
    }

    let recall = readings.recall();
    let mut wrong = Vec::new();
    for screen in screens {
        let name = &screen.name;
        let lossless = recall.of(screen, "lossless");
        let ladder = recall.of(screen, "ladder");
        let mut line = format!("{name:<10} lossless {:5.1} %", lossless * 100.0);
        for (budget, least) in BUDGETS {
            let ours = recall.of(screen, &budget.to_string());
            let share = ours / lossless;
            line += &format!("   {budget} {:5.1} % = {share:.3}", ours * 100.0);
            if share < *least - slack {
                wrong.push(format!(
                    "{name} at {budget}: {share:.3} of the lossless picture"
                ));
            }
        }
        let ahead = recall.of(screen, &BUDGETS[0].0.to_string()) - ladder;
        println!(
            "{line}   ladder {:5.1} %, {:+.1} points",
            ladder * 100.0,
            ahead * 100.0
        );
        if lost_by_the_ladder.contains(&name.as_str()) && ahead < AHEAD_OF_THE_LADDER {
            wrong.push(format!(
                "{name}: only {:.1} points ahead of the ladder",
                ahead * 100.0
            ));
        }
        // Against a page that nothing can be read on.
        if lossless < 0.5 {
            wrong.push(format!(
                "{name}: even the lossless picture reads {lossless:.3}"
            ));
        }
    }
    check(&wrong);
}

#[test]
fn dense_screens_stay_legible_where_the_ladder_loses_them() {
    let screens: Vec<Screen> = SCREENS.iter().map(|name| Screen::kept(name)).collect();
    compare(&screens, LOST_BY_THE_LADDER, 0.0);
}

#[test]
fn pages_that_nothing_was_tuned_on_stay_legible() {
    let chosen = environment().remove("TALARIA_SEED");
    let seed = chosen.unwrap_or_else(|| SEED.to_owned());
    println!("seed {seed}");
    let folder = tempfile::tempdir().unwrap();
    let mut node = Command::new("node");
    node.env("NODE_PATH", root().join(".peers/node/node_modules"));
    let names = run(
        node,
        "make_pages.cjs",
        &[folder.path(), Path::new(&seed)],
        &Value::Null,
    );
    let screens: Vec<Screen> = names
        .as_array()
        .unwrap()
        .iter()
        .map(|name| Screen {
            name: name.as_str().unwrap().to_owned(),
            folder: folder.path().to_owned(),
        })
        .collect();
    assert!(screens.len() > 4);
    compare(&screens, &[], ONE_POINT);
}

#[test]
fn tiles_and_parts_show_what_one_picture_cannot() {
    let mut readings = Readings::new();
    for name in TOO_LARGE {
        let screen = Screen::kept(name);
        readings.add_ours(&screen, "single", &Target::default());
        let target = Target {
            tiling: Tiling::Auto { most: 4 },
            ..Target::default()
        };
        let tiled = readings.add_ours(&screen, "tiles", &target);
        println!("{name}: {} tiles", tiled.pictures.len());
    }
    for (name, corners) in PARTS {
        let screen = Screen::kept(name);
        let [x1, y1, x2, y2] = corners.map(i64::from);
        let target = Target {
            region: Some(Region { x1, y1, x2, y2 }),
            ..Target::default()
        };
        readings.add_ours(&screen, "part", &target);
        let original = json!([{"path": screen.file("png"), "box": corners}]);
        readings.add(&screen, "original", &original);
    }

    let recall = readings.recall();
    let mut wrong = Vec::new();
    for name in TOO_LARGE {
        let [single, tiles, part, original] = ["single", "tiles", "part", "original"]
            .map(|what| recall.of(&Screen::kept(name), what));
        println!(
            "{name:<10} single {:5.1} %   tiles {:5.1} %   a part keeps {:.3} of its words",
            single * 100.0,
            tiles * 100.0,
            part / original,
        );
        if tiles < GAIN_OF_TILES * single {
            wrong.push(format!(
                "{name}: tiles read {tiles:.3}, one picture {single:.3}"
            ));
        }
        if part < PART * original {
            wrong.push(format!(
                "{name}: a part reads {part:.3}, the original {original:.3}"
            ));
        }
        // Against parts that nothing can be read on.
        if original < 0.05 || tiles < 0.2 {
            wrong.push(format!(
                "{name}: the original's part reads {original:.3}, tiles {tiles:.3}"
            ));
        }
    }
    check(&wrong);
}

#[test]
fn the_ladder_beside_ours_is_the_reference_agents_own() {
    let names = [
        "doc1080.png",
        "edit1440.png",
        "photo.webp",
        "photo_cmyk.jpg",
        "photo_exif6.jpg",
        "anim.gif",
    ];
    let sources: Vec<PathBuf> = names.map(picture).into();
    let home = tempfile::tempdir().unwrap();
    let same = python("ladder_check.py", &[home.path()], &json!(sources));
    for source in &sources {
        assert_eq!(same[source.to_str().unwrap()], true, "{}", source.display());
    }
}
