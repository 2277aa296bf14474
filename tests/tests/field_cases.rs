//! The field cases of `tests/data/field-cases.jsonl`, end to end: a scripted server answers with
//! the case's result, an agent calls it over HTTP, and every `must:` is asserted.

use std::collections::BTreeSet;
use std::time::Duration;

use serde_json::{Value, json};
use talaria_testkit::field_cases::{DESCRIBED, FieldCase, Observed, check_all};
use talaria_testkit::{Action, Answer, HttpServer, RecordKind, Script, Service, programs};

const DATA: &str = include_str!("../data/field-cases.jsonl");

/// The areas this version answers for.
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
    "image-label",
    "image-shape",
    "image-corrupt",
    "image-format",
    "image-animated",
    "image-size",
    "image-count",
    "image-decode",
    "gate",
];

/// One test per case, named after it.
macro_rules! cases {
    ($($test:ident = $id:literal;)*) => {
        const TESTED: &[&str] = &[$($id),*];

        $(
            #[tokio::test]
            async fn $test() {
                run($id).await;
            }
        )*
    };
}

cases! {
    fr_002_a_jpeg_that_is_called_a_png = "FR-002";
    fr_003_a_webp_that_is_called_a_png = "FR-003";
    fr_006_a_png_in_a_blob_of_an_odd_type = "FR-006";
    fr_008_pixels_in_the_field_of_a_text = "FR-008";
    fr_013_raw_bytes_instead_of_base64 = "FR-013";
    fr_014_an_address_where_pixels_belong = "FR-014";
    fr_016_a_malformed_data_url = "FR-016";
    fr_017_wrapped_base64 = "FR-017";
    fr_021_a_jpeg_that_is_cut_off = "FR-021";
    fr_022_a_png_without_its_end = "FR-022";
    fr_023_a_png_with_something_behind_it = "FR-023";
    fr_024_a_png_that_is_cut_off = "FR-024";
    fr_025_a_sentence_where_pixels_belong = "FR-025";
    fr_026_a_web_page_where_pixels_belong = "FR-026";
    fr_027_formats_that_no_provider_takes = "FR-027";
    fr_028_labels_that_lie = "FR-028";
    fr_031_a_heic_and_a_film = "FR-031";
    fr_032_a_bitmap = "FR-032";
    fr_033_an_animated_gif = "FR-033";
    fr_034_an_animated_png = "FR-034";
    fr_038_pictures_of_a_few_pixels = "FR-038";
    fr_042_large_pictures_of_a_failed_result = "FR-042";
    fr_043_six_pictures = "FR-043";
    fr_044_unusable_pictures_among_good_ones = "FR-044";
    fr_050_transparent_pictures_that_shrink = "FR-050";
    fr_051_black_on_nothing = "FR-051";
    fr_053_a_model_that_sees = "FR-053";
    fr_060_annotations_with_unknown_roles = "FR-060";
    fr_061_pictures_between_texts = "FR-061";
    fr_064_the_old_wrapper = "FR-064";
    fr_068_a_link_with_null_members = "FR-068";
    fr_069_a_text_block_without_text = "FR-069";
    fr_070_blank_parts = "FR-070";
    fr_073_structured_content_that_repeats_the_text = "FR-073";
    fr_077_a_link_with_a_bad_field = "FR-077";
    fr_079_a_pdf_in_a_blob = "FR-079";
    fr_081_an_empty_resource_and_its_reader = "FR-081";
    fr_082_a_blob_beside_an_empty_text = "FR-082";
    fr_083_text_and_blob_of_one_content = "FR-083";
    fr_086_texts_in_blobs_with_byte_order_marks = "FR-086";
    fr_087_bytes_that_are_no_text = "FR-087";
    fr_088_a_document_labelled_as_an_image = "FR-088";
    fr_089_a_picture_in_a_blob = "FR-089";
    fr_092_a_link_without_a_name = "FR-092";
    fr_095_a_link_nobody_reads = "FR-095";
    fr_096_a_link_that_forges_lines = "FR-096";
    fr_097_a_resource_of_two_contents = "FR-097";
    fr_101_a_name_of_joined_emoji_too_long_for_the_disk = "FR-101";
    fr_105_hostile_names = "FR-105";
    fr_107_two_files_in_one_result = "FR-107";
    fr_108_two_calls_with_names_alike = "FR-108";
    fr_109_an_address_with_escapes = "FR-109";
    fr_115_hidden_tags = "FR-115";
    fr_116_flags_and_joined_emoji = "FR-116";
    fr_118_hidden_tags_in_names_keys_and_errors = "FR-118";
    fr_120_terminal_sequences = "FR-120";
    fr_121_a_text_of_62_megabytes = "FR-121";
    fr_122_very_many_blocks = "FR-122";
    fr_125_reserved_meta = "FR-125";
    fr_126_meta_of_the_wrong_shape = "FR-126";
    fr_130_unusable_audio = "FR-130";
}

#[test]
fn every_case_of_our_areas_is_tested() {
    let wanted: BTreeSet<String> = FieldCase::read_all(DATA)
        .unwrap()
        .into_iter()
        .filter(|case| {
            AREAS.contains(&case.area.as_str()) && !DESCRIBED.contains(&case.id.as_str())
        })
        .map(|case| case.id)
        .collect();
    assert!(wanted.len() > 30, "the file holds {} cases", wanted.len());
    assert_eq!(
        TESTED
            .iter()
            .map(|id| (*id).to_owned())
            .collect::<BTreeSet<_>>(),
        wanted
    );
}

async fn run(id: &str) {
    let cases = FieldCase::read_all(DATA).unwrap();
    let case = cases.iter().find(|case| case.id == id).unwrap();
    assert!(!case.musts.is_empty(), "{id} asserts nothing");
    let results = case.results().unwrap();
    // Whatever the service would fetch by itself goes through this proxy.
    let proxy = HttpServer::start(Script::new("proxy")).unwrap();
    let server = server_name(case);
    let service = Service::builder(programs!())
        .unwrap()
        .stdio(&server, script(case, &results))
        .unwrap()
        // The model of the cases' context sees, and its wire takes pictures in tool results.
        .set(
            &["model"],
            json!({"provider": "anthropic", "default": "m", "supports_vision": true}),
        )
        .env("HTTP_PROXY", &proxy_url(&proxy))
        .env("HTTPS_PROXY", &proxy_url(&proxy))
        .start()
        .await
        .unwrap();
    let mut deliveries = Vec::new();
    for _ in &results {
        let started = talaria_types::runtime::now();
        let delivery = ask(&service, &server, case).await.ok().unwrap();
        deliveries.push((delivery, started.elapsed()));
    }
    let fetched = proxy
        .records()
        .all()
        .into_iter()
        .filter(|record| record.kind != RecordKind::Started);
    let requests = fetched.count();
    let cache = service.cache();
    let observed: Vec<Observed<'_>> = deliveries
        .iter()
        .map(|(delivery, took)| Observed {
            delivery,
            cache: &cache,
            took: *took,
            requests,
            seen: None,
            described: 0,
        })
        .collect();
    if let Err(problems) = check_all(case, &observed) {
        panic!("{problems}\n{}", shown(&deliveries));
    }
    assert_eq!(
        service.get("/healthz").await.unwrap().status,
        200,
        "the service still runs"
    );
}

/// Lets the server give its next result.
async fn ask(service: &Service, server: &str, case: &FieldCase) -> Answer {
    if case.kind == "read_resource_result" {
        let tool = format!("mcp__{server}__read_resource");
        let call = json!({"tool": tool, "arguments": {"uri": case.input["uri"]}});
        return service.post("/v1/tools/call", &call).await.unwrap();
    }
    service.call(server, "t", json!({})).await.unwrap()
}

fn script(case: &FieldCase, results: &[Value]) -> Script {
    let reads = case.read_tool().is_some() || case.kind == "read_resource_result";
    let capabilities = match case.input.pointer("/server/capabilities") {
        Some(capabilities) => capabilities.clone(),
        None if reads => json!({"tools": {}, "resources": {}}),
        None => json!({"tools": {}}),
    };
    let method = if case.kind == "read_resource_result" {
        "resources/read"
    } else {
        "tools/call"
    };
    results.iter().fold(
        Script::new("field").with_capabilities(capabilities),
        |script, result| {
            let answer = [Action::Answer {
                result: result.clone(),
            }];
            if method == "tools/call" {
                script.on_call("t", answer)
            } else {
                script.on_method(method, answer)
            }
        },
    )
}

/// The server whose reader the case names, or whose name it gives.
fn server_name(case: &FieldCase) -> String {
    let named = case
        .input
        .pointer("/server/display_name")
        .and_then(Value::as_str);
    let of_reader = case
        .read_tool()
        .and_then(|tool| tool.strip_prefix("mcp__")?.strip_suffix("__read_resource"));
    named.or(of_reader).unwrap_or("field").to_owned()
}

fn proxy_url(proxy: &HttpServer) -> String {
    format!("http://{}", proxy.address())
}

fn shown(deliveries: &[(Value, Duration)]) -> String {
    let texts = deliveries.iter().map(|(delivery, took)| {
        let text: String = delivery.to_string().chars().take(3_000).collect();
        format!("after {took:?}: {text}")
    });
    texts.collect::<Vec<_>>().join("\n")
}
