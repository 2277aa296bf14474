//! Sentences about attached pictures.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::words::{is_about_unusable, longest_base64_run};
use super::{Scene, Verdict, expect, payloads, quoted};
use crate::pictures::SeenPicture;

/// The types every provider takes.
const TYPES: &[&str] = &["image/png", "image/jpeg", "image/webp", "image/gif"];
/// Longest side of an attached picture.
const LONGEST_SIDE: u32 = 1568;
/// Shortest side that providers take.
const SHORTEST_SIDE: u32 = 28;
/// What no line for a model says: the words of an encoder that failed.
const ENCODER_WORDS: &[&str] = &[
    "encoder",
    "encoding error",
    "cannot write mode",
    "RGBA as JPEG",
];

/// An attached picture.
#[derive(Debug)]
struct Attached {
    declared: String,
    bytes: Vec<u8>,
    seen: Result<SeenPicture, String>,
}

impl Attached {
    fn read(attachment: &Value) -> Self {
        let text = |key: &str| attachment[key].as_str().unwrap_or_default();
        let bytes = STANDARD.decode(text("data")).unwrap_or_default();
        Self {
            declared: text("media_type").to_owned(),
            seen: SeenPicture::decode(&bytes).map_err(|error| format!("{error:#}")),
            bytes,
        }
    }

    /// Decodes whole and is what it is declared to be.
    fn is_sound(&self) -> Result<(), String> {
        let seen = self.seen.as_ref().map_err(String::clone)?;
        expect(seen.media_type == self.declared, || {
            format!(
                "{} is declared, the bytes are {}",
                self.declared, seen.media_type
            )
        })?;
        expect(TYPES.contains(&self.declared.as_str()), || {
            format!("{} is attached", self.declared)
        })
    }

    fn holds(&self, condition: impl Fn(&SeenPicture) -> bool) -> bool {
        self.seen.as_ref().is_ok_and(condition)
    }

    fn size(&self) -> (u32, u32) {
        self.seen
            .as_ref()
            .map_or((0, 0), |seen| (seen.width, seen.height))
    }
}

pub(super) fn judge(scene: &Scene<'_>, sentence: &str) -> Verdict {
    let attachments = scene.one.delivery["attachments"].as_array()?;
    let attached: Vec<Attached> = attachments.iter().map(Attached::read).collect();
    counts(&attached, sentence)
        .or_else(|| formats(scene, &attached, sentence))
        .or_else(|| bytes(scene, &attached, sentence))
        .or_else(|| looks(&attached, sentence))
        .or_else(|| text(scene, &attached, sentence))
}

/// How many pictures there are, and in which order.
fn counts(attached: &[Attached], sentence: &str) -> Verdict {
    let bars = |wanted: &[usize]| {
        let found: Vec<usize> = attached
            .iter()
            .map(|one| one.seen.as_ref().map_or(0, SeenPicture::bars))
            .collect();
        expect(found == wanted, || format!("they show {found:?} bars"))
    };
    let count = |wanted: usize| {
        expect(attached.len() == wanted, || {
            format!("{} are attached", attached.len())
        })
    };
    match sentence {
        "2 images are attached, 1 bar then 2 bars" => Some(bars(&[1, 2])),
        "they are the pictures with 1, 2, 3 and 4 white bars in that order"
        | "they show 1, 2, 3 and 4 white bars in that order" => Some(bars(&[1, 2, 3, 4])),
        "exactly 1 image is attached and it has 1 frame" => Some(count(1).and_then(|()| {
            let is_still = attached
                .iter()
                .all(|one| one.holds(|seen| seen.frames == 1));
            expect(is_still, || format!("{attached:?}"))
        })),
        _ => {
            let number = sentence
                .trim_start_matches("exactly ")
                .strip_suffix(" images are attached")
                .or_else(|| {
                    sentence
                        .strip_prefix("exactly ")?
                        .strip_suffix(" image is attached")
                })?;
            Some(count(number.parse().ok()?))
        }
    }
}

/// Types, declared and real.
fn formats(scene: &Scene<'_>, attached: &[Attached], sentence: &str) -> Verdict {
    let some = || expect(!attached.is_empty(), || "none is attached".to_owned());
    let every_sound = || attached.iter().try_for_each(Attached::is_sound);
    Some(match sentence {
        "the attached image's bytes decode without error"
        | "both decode"
        | "the declared media type of the attached image equals the type sniffed from the \
           attached bytes"
        | "that media type is one of image/png, image/jpeg, image/webp, image/gif" => {
            some().and_then(|()| every_sound())
        }
        "every attached image is image/png, image/jpeg, image/webp or image/gif and its bytes \
         match"
        | "if an image is attached its bytes decode completely"
        | "if an image is attached it ends with a valid IEND chunk (or is another complete format)"
        | "no attached image has SVG or ICO bytes under any label" => every_sound(),
        "its media type is image/png, image/jpeg or image/webp" => {
            some().and_then(|()| every_sound()).and_then(|()| {
                let is_gif = attached.iter().any(|one| one.declared == "image/gif");
                expect(!is_gif, || "it is a GIF".to_owned())
            })
        }
        "the media type reported to the model is image/png, not application/png" => {
            let reported = scene.one.delivery["artifacts"].as_array()?;
            let types = reported
                .iter()
                .map(|artifact| artifact["media_type"].as_str());
            let is_png = types.chain(attached.iter().map(|one| Some(one.declared.as_str())));
            let is_right = is_png.into_iter().all(|kind| kind == Some("image/png"));
            some().and_then(|()| {
                expect(is_right && !scene.text.contains("application/png"), || {
                    format!("{reported:?} {attached:?}")
                })
            })
        }
        "no attached image has 'ftyp' at byte 4" => {
            let boxed = attached
                .iter()
                .any(|one| one.bytes.get(4..8) == Some(b"ftyp"));
            every_sound().and_then(|()| expect(!boxed, || "one has".to_owned()))
        }
        "0 images are attached for the mp4" => expect(attached.is_empty(), || {
            format!("{} are attached", attached.len())
        }),
        "the attached image has 1 frame or is a plain PNG without acTL chunk" => {
            some().and_then(|()| {
                let is_still = attached
                    .iter()
                    .all(|one| one.holds(|seen| seen.frames == 1));
                expect(is_still, || format!("{attached:?}"))
            })
        }
        _ => return None,
    })
}

/// What was attached beside what came in.
fn bytes(scene: &Scene<'_>, attached: &[Attached], sentence: &str) -> Verdict {
    let inputs = payloads(scene.case);
    let unchanged = || attached.iter().any(|one| inputs.contains(&one.bytes));
    Some(match sentence {
        "the attached bytes are not the input bytes"
        | "the input bytes are not attached unchanged" => {
            expect(!unchanged(), || "they are".to_owned())
        }
        "attached bytes are fewer than the 3126 input bytes" => {
            let smaller = attached
                .iter()
                .all(|one| one.is_sound().is_ok() && one.bytes.len() < 3126);
            expect(smaller && !attached.is_empty(), || format!("{attached:?}"))
        }
        "either 1 valid PNG is attached or model text says an image block was unusable" => {
            let is_png = attached.len() == 1
                && attached
                    .iter()
                    .all(|one| one.declared == "image/png" && one.is_sound().is_ok());
            expect(is_png || is_about_unusable(scene.text, "image"), || {
                scene.text.to_owned()
            })
        }
        "the mp4 is saved with extension .mp4 and identical bytes" => {
            let mut files = scene.files.iter();
            let saved = files.any(|file| {
                file.name.ends_with(".mp4")
                    && file.bytes.get(4..8) == Some(b"ftyp")
                    && inputs.contains(&file.bytes)
            });
            expect(saved, || format!("{:?}", scene.files))
        }
        "the saved .gif has 3 frames (bytes unchanged)" => {
            let is_whole = scene.files.iter().any(|file| {
                let frames = SeenPicture::decode(&file.bytes).map(|seen| seen.frames);
                file.name.ends_with(".gif")
                    && inputs.contains(&file.bytes)
                    && frames.ok() == Some(3)
            });
            expect(is_whole, || format!("{:?}", scene.files))
        }
        "the saved .png is byte-identical" => {
            let mut files = scene.files.iter();
            let is_whole =
                files.any(|file| file.name.ends_with(".png") && inputs.contains(&file.bytes));
            expect(is_whole, || format!("{:?}", scene.files))
        }
        "3 files are saved or listed" => expect(scene.files.len() == 3, || {
            format!("{} are", scene.files.len())
        }),
        "if a file is saved its extension is not .png" => {
            let png = scene
                .files
                .iter()
                .any(|file| file.name.ends_with(".png") || file.path.ends_with(".png"));
            expect(!png, || format!("{:?}", scene.files))
        }
        _ => return None,
    })
}

/// Sizes and colours.
fn looks(attached: &[Attached], sentence: &str) -> Verdict {
    let sizes: Vec<(u32, u32)> = attached.iter().map(Attached::size).collect();
    let sized = |holds: &dyn Fn(u32, u32) -> bool| {
        expect(
            sizes.iter().all(|(width, height)| holds(*width, *height)),
            || format!("the sizes are {sizes:?}"),
        )
    };
    let some = || expect(!attached.is_empty(), || "none is attached".to_owned());
    Some(match sentence {
        "attached size is 32x32 or a padded/upscaled version of it" => {
            some().and_then(|()| sized(&|width, height| width >= 32 && height >= 32))
        }
        "the BMP and the TIFF are attached after conversion (32x32)" => {
            let converted = sizes.iter().filter(|size| **size == (32, 32)).count();
            expect(converted >= 2, || format!("the sizes are {sizes:?}"))
        }
        "no attached image has a side shorter than 28 px" => {
            sized(&|width, height| width.min(height) >= SHORTEST_SIDE)
        }
        "every attached image has max(width,height) <= 1568" => some().and_then(|()| {
            sized(&|width, height| width.max(height) <= LONGEST_SIDE && width.min(height) > 0)
        }),
        "centre pixel of the attached image is red (R>150, G<80, B<80)" => {
            let is_red = |seen: &SeenPicture| {
                seen.centre()
                    .is_some_and(|[red, green, blue, _]| red > 150 && green < 80 && blue < 80)
            };
            some().and_then(|()| {
                let all = attached.iter().all(|one| one.holds(is_red));
                expect(all, || format!("{attached:?}"))
            })
        }
        "if an attached image has no alpha, its four corners are near white (>=240) and its \
         centre near black (<=40)" => {
            let is_flat = |seen: &SeenPicture| {
                let mut corners = seen.corners().into_iter().flat_map(|corner| {
                    let [red, green, blue, _] = corner;
                    [red, green, blue]
                });
                let centre = seen.centre().unwrap_or([255; 4]);
                let [red, green, blue, _] = centre;
                corners.all(|value| value >= 240) && red.max(green).max(blue) <= 40
            };
            some().and_then(|()| {
                let all = attached
                    .iter()
                    .all(|one| one.holds(|seen| seen.has_alpha || is_flat(seen)));
                expect(all, || format!("{attached:?}"))
            })
        }
        _ => return None,
    })
}

/// What the text says of pictures.
fn text(scene: &Scene<'_>, attached: &[Attached], sentence: &str) -> Verdict {
    let text = scene.text;
    let lower = text.to_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| lower.contains(word));
    let names_file = || scene.files.iter().any(|file| text.contains(&file.path));
    let shown = || format!("the text is {text:?}");
    Some(match sentence {
        "model text contains 'cam 2' and mentions a damaged or truncated image" => expect(
            text.contains("cam 2") && says(&["damaged", "truncated", "cut off"]),
            shown,
        ),
        "if none is attached, model text says why and gives the saved path" => expect(
            !attached.is_empty() || (names_file() && is_about_unusable(text, "image")),
            shown,
        ),
        "model text mentions unusable image data" | "model text says the data is not an image" => {
            expect(is_about_unusable(text, "image"), shown)
        }
        "the SVG is attached as a raster picture, or model text names the SVG and its saved path" =>
        {
            let drawn = attached
                .iter()
                .any(|one| one.size() == (64, 64) && one.is_sound().is_ok());
            let named = scene
                .files
                .iter()
                .any(|file| file.name.ends_with(".svg") && text.contains(&file.path));
            expect(drawn || named, shown)
        }
        "each input is either attached as a real raster image or mentioned in model text" => {
            let mentioned = scene
                .files
                .iter()
                .filter(|file| text.contains(&file.path))
                .count();
            let inputs = payloads(scene.case).len();
            expect(attached.len().max(mentioned) >= inputs && inputs > 0, shown)
        }
        "model text mentions HEIC (or an unsupported image) and gives a path" => {
            expect(says(&["heic", "unsupported image"]) && names_file(), shown)
        }
        "model text says the image is animated" => expect(says(&["animated", "animation"]), shown),
        "model text contains 'spacer' and mentions 1x1" => {
            expect(text.contains("spacer") && says(&["1x1", "1×1"]), shown)
        }
        "6 files are saved and 6 paths appear in model text" => {
            let named = scene
                .files
                .iter()
                .filter(|file| text.contains(&file.path))
                .count();
            expect((scene.files.len(), named) == (6, 6), || {
                format!("{} are saved, {named} are named", scene.files.len())
            })
        }
        "model text says that 2 images were not attached" => expect(
            says(&["4 of 6", "2 images were not attached", "2 not attached"]),
            shown,
        ),
        "model text contains no encoder error" => expect(!says(ENCODER_WORDS), shown),
        "model text contains 'captured' and a MEDIA: line (or equivalent) with an absolute path \
         that exists" => {
            let mut paths = text.lines().filter_map(|line| line.strip_prefix("MEDIA:"));
            let exists = paths.any(|path| {
                let path = std::path::Path::new(path);
                path.is_absolute() && path.is_file()
            });
            expect(exists && text.contains("captured"), shown)
        }
        "no base64 appears in model text" => {
            let inputs = payloads(scene.case);
            let mut heads = inputs.iter().map(|bytes| {
                let encoded = STANDARD.encode(bytes);
                encoded.chars().take(40).collect::<String>()
            });
            let is_clean = !heads.any(|head| text.contains(&head)) && longest_base64_run(text) < 60;
            expect(is_clean, shown)
        }
        "the saved name contains 'shot'" => {
            let words = quoted(sentence);
            let mut files = scene.files.iter();
            let named = files.all(|file| words.iter().all(|word| file.name.contains(word)));
            expect(named && !scene.files.is_empty(), || {
                format!("{:?}", scene.files)
            })
        }
        "in model text the first saved path comes before 'width=64' and the second between \
         'width=64' and 'height=64'" => {
            let place = |word: &str| text.find(word);
            let path = |index: usize| scene.files.get(index).and_then(|file| place(&file.path));
            let order = [path(0), place("width=64"), path(1), place("height=64")];
            let in_order = order.iter().all(Option::is_some) && order.is_sorted();
            expect(in_order, shown)
        }
        _ => return None,
    })
}
