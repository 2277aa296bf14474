//! Every field case that needs no pixels, from the data file, with payloads inline and staged.

use std::time::Instant;

use serde_json::Value;
use talaria_content::{Format, ReaderTool, ResultKind};
use talaria_testkit::field_cases::{FieldCase, Observed, check_all};

use crate::bench::{Bench, render};

const DATA: &str = include_str!("../../../../tests/data/field-cases.jsonl");

const AREAS: &[&str] = &[
    "result-shape",
    "resource",
    "resource-link",
    "resource-read",
    "resource-base64",
    "image-base64",
    "file-name",
    "uri",
    "text",
    "text-size",
    "meta",
    "audio",
];

/// These count attached pictures.
const NEED_PIXELS: &[&str] = &["FR-061", "FR-089"];

fn run(id: &str) {
    let cases = FieldCase::read_all(DATA).unwrap();
    let case = cases.iter().find(|case| case.id == id).unwrap();
    for staged in [false, true] {
        judge(case, staged);
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the case limits the time of pure code"
)]
fn judge(case: &FieldCase, staged: bool) {
    let mut bench = Bench::new();
    bench.staged = staged;
    if case.kind == "read_resource_result" {
        bench.request.kind = ResultKind::ReadResource;
    }
    if let Some(tool) = case.read_tool() {
        bench.request.reader = ReaderTool::Registered(tool.to_owned());
    }
    let mut deliveries = Vec::new();
    for result in case.results().unwrap() {
        let began = Instant::now();
        let delivery = bench.deliver(result);
        let took = began.elapsed();
        let json: Value = serde_json::from_str(&render(&delivery, Format::Talaria).body).unwrap();
        deliveries.push((json, took));
    }
    let observed: Vec<Observed<'_>> = deliveries
        .iter()
        .map(|(delivery, took)| Observed {
            delivery,
            cache: bench.folder(),
            took: *took,
            requests: 0,
            seen: None,
            described: 0,
        })
        .collect();
    if let Err(problems) = check_all(case, &observed) {
        panic!("staged: {staged}\n{problems}");
    }
}

macro_rules! field_cases {
    ($($name:ident = $id:literal;)*) => {
        const COVERED: &[&str] = &[$($id,)*];
        $(#[test] fn $name() { run($id); })*
    };
}

field_cases! {
    fr_013_picture_bytes_sent_as_text = "FR-013";
    fr_014_address_instead_of_a_picture = "FR-014";
    fr_016_data_url_without_base64 = "FR-016";
    fr_017_wrapped_base64 = "FR-017";
    fr_060_unknown_role_in_annotations = "FR-060";
    fr_064_old_wrapper = "FR-064";
    fr_068_null_fields = "FR-068";
    fr_069_text_block_without_text = "FR-069";
    fr_070_blank_texts = "FR-070";
    fr_073_text_repeats_the_structure = "FR-073";
    fr_077_number_as_media_type = "FR-077";
    fr_079_pdf_resource = "FR-079";
    fr_081_empty_text_with_an_address = "FR-081";
    fr_082_empty_text_hides_no_blob = "FR-082";
    fr_083_text_and_blob = "FR-083";
    fr_086_text_with_byte_order_marks = "FR-086";
    fr_087_binary_labelled_text = "FR-087";
    fr_088_pdf_labelled_picture = "FR-088";
    fr_092_link_without_a_name = "FR-092";
    fr_095_link_without_a_reader = "FR-095";
    fr_096_forged_lines_in_a_link = "FR-096";
    fr_097_two_contents = "FR-097";
    fr_101_name_of_joined_characters = "FR-101";
    fr_105_names_of_other_platforms = "FR-105";
    fr_107_same_name_twice = "FR-107";
    fr_108_names_that_differ_in_an_escape = "FR-108";
    fr_109_address_that_is_a_name = "FR-109";
    fr_115_hidden_words = "FR-115";
    fr_116_flags_and_joined_characters = "FR-116";
    fr_118_hidden_words_everywhere = "FR-118";
    fr_120_escape_sequences = "FR-120";
    fr_121_sixty_two_megabytes_of_text = "FR-121";
    fr_122_sixty_five_thousand_blocks = "FR-122";
    fr_125_reserved_meta_keys = "FR-125";
    fr_126_no_meta_left = "FR-126";
    fr_130_unusable_audio = "FR-130";
}

#[test]
fn every_case_of_these_areas_is_run() {
    let cases = FieldCase::read_all(DATA).unwrap();
    let wanted: Vec<&str> = cases
        .iter()
        .filter(|case| AREAS.contains(&case.area.as_str()))
        .map(|case| case.id.as_str())
        .filter(|id| !NEED_PIXELS.contains(id))
        .collect();
    assert_eq!(COVERED, wanted);
}
