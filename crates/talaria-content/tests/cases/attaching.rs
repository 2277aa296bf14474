//! Which pictures of a call are attached, and what is said about them (specification 2.7).

use serde_json::{Value, json};
use talaria_content::{
    AttachOutcome, Attaching, Candidate, Delivery, Draft, ImageNote, ReadyPicture,
};
use talaria_types::NoticeCode;

use crate::bench::{Bench, codes, encode, image, picture, ready};

pub(crate) fn images(count: usize) -> Value {
    let blocks: Vec<Value> = (0..count).map(|number| image(&picture(number))).collect();
    json!({ "content": blocks })
}

/// Runs wave after wave, reporting each one in the opposite order.
pub(crate) fn run(
    attaching: &mut Attaching,
    outcome: impl Fn(&Candidate) -> AttachOutcome,
) -> Vec<usize> {
    let mut asked = Vec::new();
    loop {
        let mut wave = attaching.next_wave();
        if wave.is_empty() {
            return asked;
        }
        asked.extend(wave.iter().map(|candidate| candidate.index));
        wave.reverse();
        for candidate in wave {
            attaching.report(candidate.index, outcome(&candidate));
        }
    }
}

pub(crate) fn good(candidate: &Candidate) -> AttachOutcome {
    AttachOutcome::Ready(ready(&format!("{}", candidate.index)))
}

pub(crate) fn broken(_: &Candidate) -> AttachOutcome {
    AttachOutcome::Refused {
        code: NoticeCode::ImageNotDecodable,
        detail: "the data ends early".to_owned(),
    }
}

pub(crate) fn attach(
    draft: &mut Draft,
    outcome: impl Fn(&Candidate) -> AttachOutcome,
) -> Vec<usize> {
    let mut attaching = draft.attaching();
    let asked = run(&mut attaching, outcome);
    draft.attach(attaching);
    asked
}

pub(crate) fn deliver(
    bench: &Bench,
    result: Value,
    outcome: impl Fn(&Candidate) -> AttachOutcome,
) -> Delivery {
    let mut draft = bench.draft(result);
    attach(&mut draft, outcome);
    bench.settle(draft)
}

pub(crate) fn shown(delivery: &Delivery) -> Vec<usize> {
    delivery
        .attachments
        .iter()
        .map(|attachment| {
            let is_it = |artifact: &talaria_content::Artifact| artifact.id == attachment.artifact;
            delivery.artifacts.iter().position(is_it).unwrap()
        })
        .collect()
}

pub(crate) fn path(delivery: &Delivery, index: usize) -> String {
    delivery.artifacts[index].path.display().to_string()
}

#[test]
fn fr_043_attaches_the_first_four_in_order_and_says_so() {
    let delivery = deliver(&Bench::new(), images(6), good);
    assert_eq!(shown(&delivery), [0, 1, 2, 3]);
    assert_eq!(codes(&delivery), ["images_not_attached"]);
    let line = delivery.text.lines().last().unwrap();
    assert!(
        line.starts_with("[MCP images: 4 of 6 images attached; 2 not attached"),
        "{line}"
    );
    assert!(
        line.contains("vision_analyze") && line.contains("MEDIA:"),
        "{line}"
    );
    for index in 0..6 {
        assert!(
            delivery
                .text
                .contains(&format!("MEDIA:{}", path(&delivery, index)))
        );
    }
}

#[test]
fn fr_053_a_single_picture_needs_no_words() {
    let bench = Bench::new();
    let result = json!({"content": [{"type": "text", "text": "captured"}, image(&picture(0))]});
    let delivery = deliver(&bench, result, good);
    assert_eq!(
        delivery.text,
        format!("captured\nMEDIA:{}", path(&delivery, 0))
    );
    assert_eq!(codes(&delivery), Vec::<&str>::new());
    let attachment = &delivery.attachments[0];
    assert_eq!(attachment.data, encode(b"0"));
    assert_eq!(
        (
            attachment.width,
            attachment.original_width,
            attachment.area.width
        ),
        (64, 128, 128)
    );
}

#[test]
fn fr_044_only_pictures_that_can_be_delivered_take_a_place() {
    let mut blocks = vec![
        json!({"type": "image", "mimeType": "image/png", "data": ""}),
        json!({"type": "image", "mimeType": "image/png", "data": "Z2FyYmFnZQ=="}),
    ];
    blocks.extend((0..4).map(|number| image(&picture(number))));
    let delivery = deliver(&Bench::new(), json!({ "content": blocks }), good);
    assert_eq!(delivery.attachments.len(), 4);
    assert!(!delivery.text.contains("[MCP images"), "{}", delivery.text);
    assert_eq!(
        delivery.text.matches("unusable").count(),
        2,
        "{}",
        delivery.text
    );
}

#[test]
fn broken_pictures_give_their_place_to_the_next() {
    let delivery = deliver(&Bench::new(), images(5), |candidate| {
        if candidate.index < 4 {
            broken(candidate)
        } else {
            good(candidate)
        }
    });
    assert_eq!(shown(&delivery), [4]);
    assert_eq!(codes(&delivery), ["image_not_decodable"; 4]);
    let lines: Vec<&str> = delivery.text.lines().skip(5).collect();
    assert_eq!(
        lines[0],
        "[MCP images: 1 of 5 images attached; 4 could not be attached, see below]"
    );
    for (index, line) in lines.iter().skip(1).enumerate() {
        let path = path(&delivery, index);
        assert_eq!(
            *line,
            format!("- MEDIA:{path}: not attached: the data ends early (image_not_decodable)")
        );
        assert_eq!(delivery.notices[index].block, Some(index));
    }
}

#[test]
fn sixteen_are_looked_at_in_waves_as_large_as_the_free_places() {
    let bench = Bench::new();
    let mut draft = bench.draft(images(20));
    let mut attaching = draft.attaching();
    let mut waves = Vec::new();
    loop {
        let wave = attaching.next_wave();
        if wave.is_empty() {
            break;
        }
        waves.push(wave.len());
        for candidate in wave {
            let outcome = match candidate.index {
                0 | 4 => good(&candidate),
                _ => broken(&candidate),
            };
            attaching.report(candidate.index, outcome);
        }
    }
    assert_eq!(waves, [4, 3, 2, 2, 2, 2, 1]);
    draft.attach(attaching);
    let delivery = bench.settle(draft);
    assert_eq!(shown(&delivery), [0, 4]);
    assert!(
        delivery
            .text
            .contains("[MCP images: 2 of 20 images attached; 14 could not be attached"),
        "{}",
        delivery.text
    );
    assert!(
        delivery.text.contains("; 4 not attached"),
        "{}",
        delivery.text
    );
}

#[test]
fn a_place_is_promised_until_its_outcome_is_there() {
    let mut draft = Bench::new().draft(images(6));
    let mut attaching = draft.attaching();
    let first = attaching.next_wave();
    assert_eq!(first.len(), 4);
    assert_eq!(attaching.next_wave(), []);
    attaching.report(2, broken(&first[2]));
    let second = attaching.next_wave();
    assert_eq!(second.iter().map(|one| one.index).collect::<Vec<_>>(), [4]);
    // Nobody asked for the sixth, and the third was reported already.
    attaching.report(5, good(&first[0]));
    attaching.report(2, good(&first[2]));
    attaching.report(99, good(&first[0]));
    draft.attach(attaching);
}

#[test]
fn what_nobody_reports_stays_a_file_with_a_reason() {
    let bench = Bench::new();
    let mut draft = bench.draft(images(1));
    let mut attaching = draft.attaching();
    assert_eq!(attaching.next_wave().len(), 1);
    draft.attach(attaching);
    let delivery = bench.settle(draft);
    assert_eq!(codes(&delivery), ["image_failed"]);
    assert!(
        delivery.text.contains("0 of 1 images attached"),
        "{}",
        delivery.text
    );
}

#[test]
fn the_same_file_is_attached_once_and_gives_its_place() {
    let mut blocks = vec![image(&picture(0)); 3];
    blocks.extend((1..6).map(|number| image(&picture(number))));
    let bench = Bench::new();
    let mut draft = bench.draft(json!({ "content": blocks }));
    let asked = attach(&mut draft, good);
    assert_eq!(asked, [0, 3, 4, 5]);
    let delivery = bench.settle(draft);
    assert_eq!(shown(&delivery), [0, 3, 4, 5]);
    let line = format!(
        "- MEDIA:{}: not attached: the same picture as MEDIA:{} (image_duplicate)",
        path(&delivery, 2),
        path(&delivery, 0)
    );
    assert!(delivery.text.contains(&line), "{}", delivery.text);
    assert_eq!(
        codes(&delivery),
        ["image_duplicate", "image_duplicate", "images_not_attached"]
    );
}

#[test]
fn files_that_look_alike_are_pictures_of_their_own() {
    let alike = |_: &Candidate| AttachOutcome::Ready(ready("same"));
    let delivery = deliver(&Bench::new(), images(3), alike);
    assert_eq!(shown(&delivery), [0, 1, 2]);
    assert!(delivery.notices.is_empty());
}

#[test]
fn when_all_that_are_looked_at_are_broken_the_rest_is_said_to_be_unseen() {
    let delivery = deliver(&Bench::new(), images(20), broken);
    let why = "only the first 16 of a result are looked at";
    assert!(
        delivery.text.contains(&format!("; 4 not attached, {why}")),
        "{}",
        delivery.text
    );
    let last = delivery.notices.last().unwrap();
    assert_eq!(last.message, format!("0 of 20 images attached; {why}"));
}

#[test]
fn tiles_share_the_places() {
    let bench = Bench::new();
    let mut draft = bench.draft(images(1));
    assert_eq!(draft.attaching().next_wave()[0].most, 4);
    let shares = |count: usize| -> Vec<usize> {
        let mut draft = Bench::new().draft(images(count));
        let wave = draft.attaching().next_wave();
        wave.iter().map(|candidate| candidate.most).collect()
    };
    assert_eq!(shares(2), [2, 2]);
    assert_eq!(shares(3), [2, 1, 1]);
    assert_eq!(shares(9), [1, 1, 1, 1]);
    let mut attaching = draft.attaching();
    run(&mut attaching, |_| AttachOutcome::Ready(tiles(3)));
    draft.attach(attaching);
    let delivery = bench.settle(draft);
    assert_eq!(shown(&delivery), [0, 0, 0]);
    assert!(
        delivery
            .text
            .contains("the image is attached, cut into tiles, 3 pictures in all"),
        "{}",
        delivery.text
    );
}

#[test]
fn with_tiles_a_place_left_over_goes_to_the_next() {
    let bench = Bench::new();
    let mut draft = bench.draft(images(3));
    let mut attaching = draft.attaching().tiled();
    let mut most = Vec::new();
    loop {
        let wave = attaching.next_wave();
        let Some(candidate) = wave.first() else { break };
        assert_eq!((wave.len(), attaching.next_wave().len()), (1, 0));
        most.push(candidate.most);
        let count = if candidate.index == 1 { 2 } else { 1 };
        attaching.report(
            candidate.index,
            AttachOutcome::Ready(tiles_of(candidate.index, count)),
        );
    }
    assert_eq!(most, [2, 2, 1]);
    draft.attach(attaching);
    assert_eq!(shown(&bench.settle(draft)), [0, 1, 1, 2]);
}

#[test]
fn more_tiles_than_places_are_refused() {
    let delivery = deliver(&Bench::new(), images(4), |candidate| {
        match candidate.index {
            0 => AttachOutcome::Ready(tiles(2)),
            _ => good(candidate),
        }
    });
    assert_eq!(shown(&delivery), [1, 2, 3]);
    assert_eq!(codes(&delivery), ["image_failed"]);
}

fn tiles(count: usize) -> ReadyPicture {
    tiles_of(0, count)
}

fn tiles_of(number: usize, count: usize) -> ReadyPicture {
    let mut picture = ready("");
    picture.images = (0..count)
        .flat_map(|tile| ready(&format!("{number}-{tile}")).images)
        .collect();
    picture.notes = vec![ImageNote {
        code: NoticeCode::ImageTiled,
        text: format!("cut into {count} tiles"),
    }];
    picture
}
