//! `talaria.images` and the section `vision`.

use std::num::NonZeroUsize;
use std::path::Path;

use talaria_config::{ImageDelivery, ImagesConfig, Tiles};

use crate::{good, problems};

fn images(text: &str) -> ImagesConfig {
    good(text).talaria.images
}

#[test]
fn e11_budget_is_brought_within_its_bounds() {
    for (value, budget) in [
        ("1", 65_536),
        ("99999999", 4_194_304),
        ("true", 262_144),
        ("\"x\"", 262_144),
        ("-5", 65_536),
        ("0", 65_536),
        ("100000.7", 100_000),
        ("1e6", 1_000_000),
        ("1e300", 4_194_304),
        ("nan", 262_144),
        ("'131072'", 131_072),
        ("128KiB", 131_072),
        ("[1]", 262_144),
        ("null", 262_144),
    ] {
        let read = images(&format!("vision: {{ embed_target_bytes: {value} }}"));
        assert_eq!(read.budget, budget, "{value}");
    }
}

#[test]
fn budgets_that_are_not_taken_as_written_leave_a_warning() {
    let warnings =
        |value: &str| good(&format!("vision: {{ embed_target_bytes: {value} }}")).warnings;
    assert_eq!(
        warnings("1"),
        ["vision.embed_target_bytes: must be 65536 to 4194304; 65536 is used"]
    );
    assert_eq!(
        warnings("x"),
        ["vision.embed_target_bytes: is not a number of bytes; 262144 is used"]
    );
    assert_eq!(warnings("131072"), Vec::<String>::new());
}

#[test]
fn questions_about_one_image_are_unlimited_unless_counted() {
    for (value, calls, warnings) in [
        ("3", 3, 0),
        ("0", 0, 0),
        ("null", 0, 0),
        ("-1", 0, 1),
        ("true", 0, 1),
        ("many", 0, 1),
    ] {
        let config = good(&format!("vision: {{ max_calls_per_image: {value} }}"));
        let read = config.talaria.images.max_calls_per_image;
        assert_eq!((read, config.warnings.len()), (calls, warnings), "{value}");
    }
}

#[test]
fn every_setting_is_read() {
    let read = images(
        "talaria: { images: { workers: 3, queue: 5, allowed_roots: [/srv/shots, ~/pictures], tiles: AUTO, image_delivery: user_message } }",
    );
    assert_eq!(
        read,
        ImagesConfig {
            workers: NonZeroUsize::new(3),
            queue: NonZeroUsize::new(5).unwrap(),
            allowed_roots: ["/srv/shots", "/home/me/pictures"]
                .map(|root| Path::new(root).to_path_buf())
                .into(),
            tiles: Tiles::Auto,
            image_delivery: ImageDelivery::UserMessage,
            ..ImagesConfig::default()
        }
    );
    for (word, tiles) in [
        ("off", Tiles::Off),
        ("false", Tiles::Off),
        ("true", Tiles::On),
    ] {
        let read = images(&format!("talaria: {{ images: {{ tiles: {word} }} }}"));
        assert_eq!(read.tiles, tiles, "{word}");
    }
    assert_eq!(
        images("talaria: { images: { workers: auto } }").workers,
        None
    );
}

#[test]
fn wrong_settings_are_errors() {
    assert_eq!(
        problems(
            "talaria: { images: { workers: 0, queue: none, allowed_roots: [shots], tiles: some, image_delivery: mail } }"
        ),
        [
            "talaria.images.workers: must be `auto` or a whole number, 1 to 256",
            "talaria.images.queue: must be a whole number, 1 to 1000000",
            "talaria.images.allowed_roots: `shots` must be the absolute path of a directory",
            "talaria.images.tiles: must be `off` or `on` or `auto`",
            "talaria.images.image_delivery: must be `tool_result` or `user_message`",
        ]
    );
}
