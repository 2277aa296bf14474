//! Reads what the gate for pictures is told: `agent`, `model`, `providers`,
//! `custom_providers` and whether `auxiliary.vision` names a backend.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

use crate::interpolate::Variables;
use crate::problem::Findings;
use crate::schema::Kind;
use crate::section::{Section, scalar_text};
use crate::tree::{
    Endpoint, GateConfig, ImageInputMode, MainModel, ModelFacts, ProviderFacts, ToolResultImages,
    is_nobody,
};
use crate::vision::read_key;

/// Keys under which the address of a provider stands; Hermes reads all of them.
const ADDRESS_KEYS: [&str; 3] = ["base_url", "url", "api"];
/// Keys under which the API shape stands.
const API_KEYS: [&str; 2] = ["api_mode", "transport"];
/// Keys under which the model stands that is meant where nobody names one.
const DEFAULT_MODEL_KEYS: [&str; 2] = ["default_model", "model"];
/// Keys under which a model's sight stands.
const SIGHT_KEYS: [&str; 2] = ["supports_vision", "vision"];

/// Reads everything from the root of the file.
pub(crate) fn read(
    root: &Map<String, Value>,
    variables: Variables<'_>,
    findings: &mut Findings,
) -> GateConfig {
    let section = |name: &str| Section::new(name.to_owned(), root.get(name), variables);
    let agent = section("agent");
    let mode = read_mode(&agent, findings);
    let explicit_aux = is_explicit(&section("auxiliary").child("vision"), findings);
    GateConfig {
        mode,
        prefer_native: agent.boolean(findings, "prefer_native").unwrap_or(false),
        explicit_aux,
        main: read_main(root.get("model"), &section("model"), findings),
        providers: read_providers(root, variables, findings),
    }
}

/// Any other word means `auto`, as in Hermes.
fn read_mode(agent: &Section<'_>, findings: &mut Findings) -> ImageInputMode {
    let Some(value) = agent.get("image_input_mode") else {
        return ImageInputMode::Auto;
    };
    let known = value.as_str().and_then(ImageInputMode::from_word);
    known.unwrap_or_else(|| {
        findings.warn(
            &agent.path("image_input_mode"),
            format!(
                "is not {}; `auto` is used",
                Kind::Word(&["auto", "native", "text"]).describe()
            ),
        );
        ImageInputMode::Auto
    })
}

/// Whether a vision backend is named (specification 2.1): anything but a provider that is empty
/// or `auto` or means nobody, no model and no address.
fn is_explicit(vision: &Section<'_>, findings: &mut Findings) -> bool {
    let provider = vision
        .word(findings, "provider")
        .is_some_and(|word| !word.eq_ignore_ascii_case("auto") && !is_nobody(&word));
    provider
        || vision.word(findings, "model").is_some()
        || vision.get("base_url").is_some_and(is_said)
}

/// An address counts as one also where a variable in it is not set.
fn is_said(value: &Value) -> bool {
    scalar_text(value).is_some_and(|text| !text.trim().is_empty())
}

/// `model` is a map, or the name of the model.
fn read_main(value: Option<&Value>, model: &Section<'_>, findings: &mut Findings) -> MainModel {
    if let Some(name) = value.and_then(Value::as_str) {
        let name = name.trim();
        return MainModel {
            model: (!name.is_empty()).then(|| name.to_owned()),
            ..MainModel::default()
        };
    }
    let (api_key, key_problem) = read_key(model, findings);
    MainModel {
        provider: model
            .word(findings, "provider")
            .filter(|word| !word.eq_ignore_ascii_case("auto")),
        model: first(model, findings, &["default", "name", "model"]),
        base_url: model.word(findings, "base_url").map(Endpoint::from),
        api_key,
        key_problem,
        api: model.word(findings, "api_mode"),
        supports_vision: model.opinion(findings, "supports_vision"),
    }
}

fn read_providers(
    root: &Map<String, Value>,
    variables: Variables<'_>,
    findings: &mut Findings,
) -> Vec<ProviderFacts> {
    let mut providers = Vec::new();
    let named = root.get("providers").and_then(Value::as_object);
    for (name, value) in named.into_iter().flatten() {
        let section = Section::new(format!("providers.{name}"), Some(value), variables);
        providers.push(read_provider(
            name.trim().to_owned(),
            false,
            &section,
            findings,
        ));
    }
    let listed = root.get("custom_providers").and_then(Value::as_array);
    for (index, value) in listed.into_iter().flatten().enumerate() {
        let path = format!("custom_providers[{index}]");
        let section = Section::new(path.clone(), Some(value), variables);
        match section.word(findings, "name") {
            Some(name) => providers.push(read_provider(name, true, &section, findings)),
            None => findings.warn(&path, "has no `name` and is ignored"),
        }
    }
    providers
}

fn read_provider(
    name: String,
    is_custom: bool,
    section: &Section<'_>,
    findings: &mut Findings,
) -> ProviderFacts {
    let (api_key, key_problem) = read_key(section, findings);
    ProviderFacts {
        name,
        path: section.at().to_owned(),
        is_custom,
        base_url: first(section, findings, &ADDRESS_KEYS).map(Endpoint::from),
        api_key,
        key_problem,
        default_model: first(section, findings, &DEFAULT_MODEL_KEYS),
        api: first(section, findings, &API_KEYS),
        tool_result_images: read_tool_result_images(section, findings),
        models: read_models(&section.child("models"), findings),
    }
}

fn read_tool_result_images(section: &Section<'_>, findings: &mut Findings) -> ToolResultImages {
    match section.get("tool_result_images") {
        Some(Value::Object(map)) => {
            let shapes = section.child("tool_result_images");
            let named = |name: &String| {
                let opinion = shapes.opinion(findings, name)?;
                Some((name.trim().to_lowercase(), opinion))
            };
            ToolResultImages {
                any: None,
                by_api: map.keys().filter_map(named).collect(),
            }
        }
        Some(value) if scalar_text(value).is_none() => {
            let message = "must be true or false, or a map of API shapes to true or false";
            findings.error(&section.path("tool_result_images"), message);
            ToolResultImages::default()
        }
        _ => ToolResultImages {
            any: section.boolean(findings, "tool_result_images"),
            by_api: BTreeMap::new(),
        },
    }
}

/// A list of names says nothing about any of them.
fn read_models(models: &Section<'_>, findings: &mut Findings) -> BTreeMap<String, ModelFacts> {
    let mut read = BTreeMap::new();
    for name in models.keys() {
        let model = models.child(name);
        let mut sight = None;
        for key in SIGHT_KEYS {
            sight = sight.or_else(|| model.opinion(findings, key));
        }
        let facts = ModelFacts {
            supports_vision: sight,
            tool_result_images: model.boolean(findings, "tool_result_images"),
        };
        if facts != ModelFacts::default() {
            read.insert(name.trim().to_owned(), facts);
        }
    }
    read
}

/// The first of several keys that holds a text.
fn first(section: &Section<'_>, findings: &mut Findings, keys: &[&str]) -> Option<String> {
    keys.iter().find_map(|key| section.word(findings, key))
}
