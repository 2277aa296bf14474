//! The field cases about describing pictures: every backend and tool of a case's chain is
//! scripted as it says, the picture goes through the service, and every `must:` is asserted for
//! the case as it stands and for each of its variants.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};
use talaria_testkit::field_cases::{
    CaseLink, DESCRIBED, FieldCase, Observed, Sightings, VisionRun, check_all,
};
use talaria_testkit::{RefusingPort, Reply, Service, ServiceBuilder, VisionEndpoint};
use talaria_types::runtime::now;

use crate::scene::{ANALYZE, SERVER, backend, blind, builder, eyes, picture, question};

const DATA: &str = include_str!("../../data/field-cases.jsonl");

/// The areas that are about describing.
const AREAS: &[&str] = &["vision-endpoint", "vision-tool"];

/// What the helper of a case is asked.
const QUESTION: &str = "Which way does the arrow point?";

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
    fr_007_a_jpeg_whose_address_and_label_say_png = "FR-007";
    fr_055_text_mode_and_a_failed_result = "FR-055";
    fr_058_a_wire_that_takes_no_pictures_in_tool_results = "FR-058";
    fr_181_a_success_with_an_error_inside = "FR-181";
    fr_182_answers_without_choices = "FR-182";
    fr_184_reasoning_that_was_cut_off = "FR-184";
    fr_185_nothing_but_reasoning = "FR-185";
    fr_190_please_wait_two_seconds = "FR-190";
    fr_192_a_request_that_is_too_large = "FR-192";
    fr_194_answers_of_a_vendors_own_shape = "FR-194";
    fr_199_a_helper_whose_key_is_bad = "FR-199";
    fr_200_a_backend_that_hangs_or_floods = "FR-200";
    fr_201_a_request_that_is_bad_stays_bad = "FR-201";
    fr_203_tools_of_many_shapes = "FR-203";
    fr_204_a_tool_that_takes_no_paths = "FR-204";
    fr_205_a_tool_that_takes_no_gif = "FR-205";
    fr_206_the_tool_of_the_same_server = "FR-206";
    fr_207_a_server_that_is_still_starting = "FR-207";
}

#[test]
fn every_case_about_describing_is_tested() {
    let cases = FieldCase::read_all(DATA).unwrap();
    let wanted: BTreeSet<String> = cases
        .into_iter()
        .filter(|case| AREAS.contains(&case.area.as_str()) || DESCRIBED.contains(&case.id.as_str()))
        .map(|case| case.id)
        .collect();
    let tested: BTreeSet<String> = TESTED.iter().map(|id| (*id).to_owned()).collect();
    assert_eq!(tested, wanted);
}

/// One way a case ran.
struct Ran {
    delivery: Value,
    took: std::time::Duration,
    seen: Sightings,
    described: usize,
    /// Kept for its files.
    service: Service,
}

async fn run(id: &str) {
    let cases = FieldCase::read_all(DATA).unwrap();
    let case = cases.iter().find(|case| case.id == id).unwrap();
    assert!(!case.musts.is_empty(), "{id} asserts nothing");
    let mut ran = Vec::new();
    match case.kind.as_str() {
        "vision_failover" => {
            for run in VisionRun::of(case).unwrap() {
                ran.push(fail_over(run).await);
            }
        }
        "vision_tool_arguments" => ran.push(offer_tools(case).await),
        "call_tool_result" => ran.push(hand_over(case).await),
        other => panic!("{id} is of kind {other}"),
    }
    let caches: Vec<_> = ran.iter().map(|one| one.service.cache()).collect();
    let observed: Vec<Observed<'_>> = ran
        .iter()
        .zip(&caches)
        .map(|(one, cache)| Observed {
            delivery: &one.delivery,
            cache,
            took: one.took,
            requests: 0,
            seen: Some(&one.seen),
            described: one.described,
        })
        .collect();
    if let Err(problems) = check_all(case, &observed) {
        let deliveries: Vec<String> = ran
            .iter()
            .map(|one| {
                let shown: String = one.delivery.to_string().chars().take(4_000).collect();
                format!("after {:?}: {shown}", one.took)
            })
            .collect();
        panic!("{problems}\n{}", deliveries.join("\n"));
    }
    for one in &ran {
        assert_eq!(one.service.get("/healthz").await.unwrap().status, 200);
    }
}

/// The backends of a chain while it runs.
#[derive(Default)]
struct Backends {
    endpoints: BTreeMap<String, VisionEndpoint>,
    refusing: Vec<RefusingPort>,
}

impl Backends {
    fn start(&mut self, name: &str, replies: Option<Vec<Reply>>) -> String {
        let Some(replies) = replies else {
            let port = RefusingPort::take().unwrap();
            let base = port.base();
            self.refusing.push(port);
            return base;
        };
        let endpoint = VisionEndpoint::start(replies).unwrap();
        let base = endpoint.base();
        self.endpoints.insert(name.to_owned(), endpoint);
        base
    }

    fn sightings(&self) -> Sightings {
        let peaks = self.endpoints.values().map(|one| one.requests().peak);
        Sightings {
            peak: peaks.max().unwrap_or(0),
            backends: self
                .endpoints
                .iter()
                .map(|(name, endpoint)| (name.clone(), endpoint.asked()))
                .collect(),
            ..Sightings::default()
        }
    }
}

/// Runs a chain as the case tells it.
async fn fail_over(run: VisionRun) -> Ran {
    let mut backends = Backends::default();
    let mut chain = Vec::new();
    let mut tools = Vec::new();
    let mut definitions = Vec::new();
    let mut builder = builder();
    let mut is_starting = false;
    for link in run.links {
        match link {
            CaseLink::Backend { name, replies } => {
                let base = backends.start(&name, replies);
                let mut entry = backend(&base, &name);
                if let Some(timeout) = run.timeout {
                    entry["timeout"] = json!(timeout.as_secs());
                }
                chain.push(entry);
            }
            CaseLink::Tool {
                server,
                definition,
                script,
            } => {
                is_starting |= !script.at_start.is_empty();
                builder = builder.stdio(&server, *script).unwrap();
                tools.push(json!({"server": server, "tool": definition["name"]}));
                definitions.push((server, definition));
            }
        }
    }
    let builder = with_links(builder, chain, tools);
    let service = if is_starting {
        builder.start_unsettled().await.unwrap()
    } else {
        builder.start().await.unwrap()
    };
    let count = run.content.len().min(4);
    let started = now();
    let (path, body) = match &run.call {
        Some((server, tool)) => (
            "/v1/tools/call",
            json!({"server": server, "name": tool, "arguments": {}, "route": blind()}),
        ),
        None => (
            "/v1/results/deliver",
            json!({"result": {"content": run.content}, "route": blind()}),
        ),
    };
    let answer = service.post(path, &body).await.unwrap();
    let took = started.elapsed();
    let mut seen = backends.sightings();
    for (server, definition) in definitions {
        seen.tools.extend(calls(&service, &server, &definition));
    }
    Ran {
        delivery: answer.ok().unwrap(),
        took,
        seen,
        described: count,
        service,
    }
}

/// The chain as configuration: the first backend is the primary.
fn with_links(builder: ServiceBuilder, mut chain: Vec<Value>, tools: Vec<Value>) -> ServiceBuilder {
    let primary = (!chain.is_empty()).then(|| chain.remove(0));
    crate::scene::chained(builder, primary, chain, tools)
}

/// The calls of a vision tool: its definition and the arguments.
fn calls(service: &Service, server: &str, definition: &Value) -> Vec<(Value, Value)> {
    let tool = definition["name"].as_str().unwrap();
    let records = service.records(server).unwrap();
    records
        .iter()
        .filter(|record| record.calls(tool))
        .map(|record| {
            let arguments = record.message["params"]["arguments"].clone();
            (definition.clone(), arguments)
        })
        .collect()
}

/// Lets tools of several shapes describe a picture each, one service a tool.
async fn offer_tools(case: &FieldCase) -> Ran {
    let mut seen = Sightings {
        question: QUESTION.to_owned(),
        ..Sightings::default()
    };
    let mut texts = Vec::new();
    let started = now();
    let mut last = None;
    for definition in case.input["cases"].as_array().unwrap() {
        let tool = definition["name"].as_str().unwrap();
        let script = talaria_testkit::Script::new("eyes")
            .text_tool(tool, "FALLBACK-OK")
            .with_tools(vec![definition.clone()]);
        let builder = builder().stdio("eyes", script).unwrap();
        let tools = vec![json!({"server": "eyes", "tool": tool})];
        let service = with_links(builder, Vec::new(), tools)
            .start()
            .await
            .unwrap();
        let mut body = question(&picture(1));
        body["prompt"] = json!(QUESTION);
        let answer = service.post(ANALYZE, &body).await.unwrap().ok().unwrap();
        texts.push(answer["analysis"].as_str().unwrap().to_owned());
        seen.tools.extend(calls(&service, "eyes", definition));
        last = Some(service);
    }
    Ran {
        delivery: json!({"text": texts.join("\n"), "artifacts": [], "attachments": []}),
        took: started.elapsed(),
        seen,
        described: 0,
        service: last.unwrap(),
    }
}

/// Hands a result over in the context that the case tells.
async fn hand_over(case: &FieldCase) -> Ran {
    let context = &case.input["context"];
    let helper = context["vision_helper"].as_str().unwrap();
    let is_tool = case.input["note"]
        .as_str()
        .is_some_and(|note| note.contains("tool"));
    let answer = helper
        .split([' ', ';', ','])
        .find(|word| word.ends_with("-OK"));
    let status = helper.split(' ').find_map(|word| word.parse::<u16>().ok());
    let mut backends = Backends::default();
    let (builder, definition) = if is_tool {
        let script = eyes();
        let definition = script.tool_definitions()[0].clone();
        let builder = builder().stdio(SERVER, script).unwrap();
        let tools = vec![crate::scene::tool_link(SERVER)];
        (with_links(builder, Vec::new(), tools), Some(definition))
    } else {
        let reply = match (answer, status) {
            (Some(answer), _) => Reply::chat(answer),
            (None, Some(status)) => Reply::error(status, "denied", "not with this key"),
            (None, None) => panic!("a helper that {helper}"),
        };
        let base = backends.start("helper", Some(vec![reply]));
        let chain = vec![backend(&base, "helper")];
        (with_links(builder(), chain, Vec::new()), None)
    };
    let mode = context["image_mode"].as_str().unwrap();
    let builder = builder
        .set(&["agent", "image_input_mode"], mode)
        .set(&["agent", "prefer_native"], true);
    let service = builder.start().await.unwrap();
    let result = case.results().unwrap().remove(0);
    let started = now();
    let body = json!({"result": result, "route": route(&context["model"])});
    let answer = service.post("/v1/results/deliver", &body).await.unwrap();
    let took = started.elapsed();
    let mut seen = backends.sightings();
    if let Some(definition) = definition {
        seen.tools = calls(&service, SERVER, &definition);
    }
    Ran {
        delivery: answer.ok().unwrap(),
        took,
        seen,
        described: 1,
        service,
    }
}

/// The route of a model: one that takes pictures in tool results, or one that takes none there.
fn route(model: &Value) -> Value {
    let sees = model["sees_images"] == true;
    let takes = model["wire_accepts_images_in_tool_results"] == true;
    let name = if sees { "sees" } else { "blind" };
    if takes || !sees {
        return json!({"provider": "anthropic", "model": name});
    }
    // Its tool messages hold text only, and no message follows them unless configured.
    json!({"provider": "openai", "model": name, "api": "openai-chat"})
}
